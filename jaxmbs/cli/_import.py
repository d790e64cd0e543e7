"""`jaxmbs import`: a file of another program as a model file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer

from .._errors import ModelError
from .._files import replacing
from .._limits import LARGEST_PRECISION


class Request(NamedTuple):
    """Options of an import: input, settings and output."""

    path: Path
    out: Path | None
    keyframe: str | None
    control: Sequence[str]
    floating: bool
    ground: Sequence[str]
    keep: Sequence[str]
    drop: Sequence[str]
    outside: bool
    balance: bool
    close: Sequence[str]
    names: bool
    precision: float | None = None

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        precision = self.precision
        if precision is not None and not 0 <= precision <= LARGEST_PRECISION:
            raise ModelError(
                f"--precision must be a number from 0 to {LARGEST_PRECISION:g}, got {precision:g}."
            )
        self.controls()

    def controls(self) -> dict[str, float]:
        """Control inputs of actuators.

        **Raises:** `ModelError`.
        """
        return dict(map(_control, self.control))


class Answer(NamedTuple):
    """The model file's text, and what it does not hold."""

    request: Request
    imported: Any
    text: str


def answer(request: Request) -> Answer:
    """Read, and write the model file if one is requested.

    **Raises:** `ModelError`.
    """
    from ..io import import_model, write_model

    imported = import_model(
        request.path,
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
    )
    text = write_model(imported.model)
    if request.out is not None:
        try:
            with replacing(request.out) as new:
                new.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ModelError(f"cannot write {str(request.out)!r}: {error.strerror}.") from None
    return Answer(request, imported, text)


def _control(given: str) -> tuple[str, float]:
    name, sign, value = given.rpartition("=")
    try:
        if sign:
            return name, float(value)
    except ValueError:
        pass
    raise ModelError(f"--control {given!r} is not NAME=VALUE, such as motor=1.5.")


def document(answer: Answer) -> dict[str, Any]:
    """The document for `--json`."""
    model, out = answer.imported.model, answer.request.out
    masses = answer.imported.masses
    precision = model.precision
    return {
        "model": model.name,
        "precision": None if precision is None else float(precision),
        "moved": answer.imported.moved,
        "file": None if out is None else str(out),
        "bodies": len(model.bodies),
        "joints": len(model.joints),
        "drivers": len(model.drivers),
        "forces": len(model.forces),
        "elements": len(model.elements),
        "body_of_link": dict(answer.imported.bodies),
        "mass": {
            "moving": masses.moving,
            "ground": masses.ground,
            "stated": masses.stated,
            "derived": [own._asdict() for own in masses.derived],
        },
        "omissions": [own._asdict() for own in answer.imported.omissions],
        "text": answer.text if out is None else None,
    }


def show(answer: Answer) -> None:
    """The text, or where it went; what it does not hold on standard error."""
    from ..io import omission_lines

    imported, names = answer.imported, answer.request.names
    head = str(imported).splitlines()[0]
    lines = [*imported.masses.lines(), *omission_lines(imported.omissions, names=names)]
    if answer.request.out is None:
        typer.echo(answer.text, nl=False)
    else:
        typer.echo(f"wrote {answer.request.out}: {head}")
    typer.echo("\n".join(lines), err=True)
