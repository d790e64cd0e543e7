"""Verbs of files: what there is, from what other programs write, and what may stand in one."""

from pathlib import Path
from typing import Annotated

import typer

from .. import mechanisms
from . import _import, _reference
from ._computing import computing
from ._options import complete_built_in, JsonOption
from ._output import print_answer, print_json, refusing


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


@app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="MJCF, URDF, SDF or USD physics.")],
    out: Annotated[
        Path | None, typer.Option(help="Model file to write; standard output if left out.")
    ] = None,
    keyframe: Annotated[
        str | None, typer.Option(help="Of MJCF: that which is the reference configuration.")
    ] = None,
    control: Annotated[
        list[str] | None, typer.Option(help="Control input of an actuator: NAME=VALUE. Repeats.")
    ] = None,
    floating: Annotated[
        bool, typer.Option("--floating", help="The root link of a URDF moves freely.")
    ] = False,
    ground: Annotated[
        list[str] | None, typer.Option(help="A link that is part of the ground. Repeats.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Links to keep, a pattern such as left*. Repeats.")
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Links to leave out, a pattern. Repeats.")
    ] = None,
    close: Annotated[
        list[str] | None,
        typer.Option(help="A joint that closes a loop: LINK=LINK:spherical. Repeats."),
    ] = None,
    outside: Annotated[
        bool, typer.Option("--outside", help="Files outside of the model's folder may be read.")
    ] = False,
    balance: Annotated[
        bool, typer.Option("--balance", help="Replace moments of inertia that no body can have.")
    ] = False,
    names: Annotated[
        bool, typer.Option("--names", help="Tell each part that is not carried by its name.")
    ] = False,
    precision: Annotated[
        float | None,
        typer.Option(help="How exact positions and directions are; default by format and digits."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """A model file from a robot's file of another program."""
    with refusing():
        request = _import.Request(
            path=file,
            out=out,
            keyframe=keyframe,
            control=tuple(control or ()),
            floating=floating,
            ground=tuple(ground or ()),
            keep=tuple(keep or ()),
            drop=tuple(drop or ()),
            outside=outside,
            balance=balance,
            close=tuple(close or ()),
            names=names,
            precision=precision,
        )
        request.check()
        with computing("import") as verb:
            print_answer(verb, verb.answer(request), json)


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
