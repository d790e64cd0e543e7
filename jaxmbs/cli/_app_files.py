"""Verbs of files: what there is, from what other programs write, and what may stand in one."""

from pathlib import Path
from typing import Annotated

import typer

from .. import mechanisms
from . import _reference
from ._commands import command
from ._options import complete_built_in, JsonOption
from ._output import print_json, refusing
from ._requests import Import


app = typer.Typer()


@app.command("list")
def list_mechanisms(json: JsonOption = False) -> None:
    """The built-in mechanisms."""
    descriptions = {name: mechanisms.describe(name) for name in mechanisms.names()}
    if json:
        print_json({"mechanisms": descriptions})
        return
    width = max(map(len, descriptions))
    for name, description in descriptions.items():
        typer.echo(f"{name.ljust(width)}  {description}")


@app.command()
def export(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A built-in mechanism.", autocompletion=complete_built_in
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="File to write; standard output if left out.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """A built-in mechanism as a model file."""
    with refusing():
        text = _reference.model_text(name)
        if out is not None:
            _reference.write(out, text)
        if json:
            print_json({"name": name, "file": str(out) if out else None, "text": text})
        elif out is None:
            typer.echo(text, nl=False)
        else:
            typer.echo(f"wrote {out}")


command(app, "import", Import)


@app.command()
def reference(
    schema: Annotated[
        bool, typer.Option("--schema", help="The JSON Schema for editors, in place of the page.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="File to write; standard output if left out.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Reference of model files."""
    with refusing():
        text = _reference.text(schema)
        if out is not None:
            _reference.write(out, text)
        if json:
            print_json({"schema": schema, "file": str(out) if out else None, "text": text})
        elif out is None:
            typer.echo(text, nl=False)
        else:
            typer.echo(f"wrote {out}")
