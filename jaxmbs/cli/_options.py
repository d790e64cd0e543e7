"""Arguments and options that several verbs have."""

from typing import Annotated

import typer

from ._complete import complete_model


ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A .toml file, a robot's file (.xml, .urdf, .sdf, .usd) or a built-in mechanism.",
        autocompletion=complete_model,
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document and nothing else.")
]
