"""Arguments and options that several verbs have."""

from pathlib import Path
from typing import Annotated

import typer

from .. import mechanisms


# --------------------------------------------------------------------------------------------------
# Completions of a shell where a model is expected.
# --------------------------------------------------------------------------------------------------


def complete_built_in(incomplete: str) -> list[tuple[str, str]]:
    """Built-in mechanisms that begin so, with what each is."""
    names = [name for name in mechanisms.names() if name.startswith(incomplete)]
    return [(name, mechanisms.describe(name)) for name in names]


def complete_model(incomplete: str) -> list[tuple[str, str]]:
    """Built-in mechanisms, model files and folders that begin so."""
    return [*complete_built_in(incomplete), *_files(incomplete)]


def _files(incomplete: str) -> list[tuple[str, str]]:
    head, name = incomplete.rpartition("/")[::2]
    folder = Path(f"{head}/" if "/" in incomplete else ".")
    try:
        found = sorted(path for path in folder.iterdir() if path.name.startswith(name))
        kinds = [(path, path.is_dir()) for path in found if name or path.name[0] != "."]
    except OSError:
        return []
    before = incomplete.removesuffix(name)
    folders = [(f"{before}{path.name}/", "folder") for path, is_folder in kinds if is_folder]
    models = [p.name for p, is_folder in kinds if not is_folder and p.suffix == ".toml"]
    return [*((f"{before}{model}", "model file") for model in models), *folders]


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
