"""`jaxmbs import`: a file of another program as a model file."""

from typing import Any

import typer

from .._errors import ModelError
from .._files import replacing
from ..io import import_model, omission_lines, write_model
from ..io._imports import input_lines
from ._output import print_json
from ._requests import Import as Request


def answer(request: Request) -> None:
    """Read, and print the model file or write it where that is requested; what it does not hold
    goes to standard error.

    **Raises:** `ModelError`.
    """
    imported = import_model(
        request.file,
        keyframe=request.keyframe,
        controls=request.controls(),
        floating=request.floating,
        ground=request.ground,
        keep=request.keep,
        drop=request.drop,
        outside=request.outside,
        balance=request.balance,
        close=request.close,
        precision=request.precision,
        stops=request.limits == "stops",
        stop_stiffness=request.stop_stiffness,
    )
    text = write_model(imported.model)
    if request.out is not None:
        try:
            with replacing(request.out) as new:
                new.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ModelError(f"cannot write {str(request.out)!r}: {error.strerror}.") from None
    if request.json:
        print_json(_data(request, imported, text))
        return
    if request.out is None:
        typer.echo(text, nl=False)
    else:
        typer.echo(f"wrote {request.out}: {str(imported).splitlines()[0]}")
    lines = [
        *imported.masses.lines(),
        *input_lines(imported.inputs, names=request.names),
        *omission_lines(imported.omissions, names=request.names),
    ]
    typer.echo("\n".join(lines), err=True)


def _data(request: Request, imported: Any, text: str) -> dict[str, Any]:
    model, masses, precision = imported.model, imported.masses, imported.model.precision
    return {
        "model": model.name,
        "precision": None if precision is None else float(precision),
        "moved": imported.moved,
        "file": None if request.out is None else str(request.out),
        "bodies": len(model.bodies),
        "joints": len(model.joints),
        "drivers": len(model.drivers),
        "forces": len(model.forces),
        "elements": len(model.elements),
        "body_of_link": dict(imported.bodies),
        "mass": {
            "moving": masses.moving,
            "ground": masses.ground,
            "stated": masses.stated,
            "derived": [own._asdict() for own in masses.derived],
        },
        "inputs": dict(imported.inputs),
        "omissions": [own._asdict() for own in imported.omissions],
        "text": text if request.out is None else None,
    }
