"""`jaxmbs flexibility`: a study of elastic parts, as a JSON document and as a table."""

import math
from pathlib import Path
from typing import Any, NamedTuple

from rich.markup import escape
from rich.text import Text

from .._elastic import Flexibility, flexibility, SubsetAnswer
from .._errors import ModelError
from .._system import Model
from ._given_state import configuration_at
from ._output import make_console, write_figure
from ._requests import Analyze, Flexibility as Request


class Answer(NamedTuple):
    """The printed results."""

    model: Model
    found: Flexibility
    plot: Path | None


def answer(model: Model, request: Request) -> Answer:
    """Make the study at the reference configuration, which must be closed.

    **Raises:** `ModelError` for bad input.
    """
    subsets = [request.names_of(subset) for subset in request.subsets]
    system = model.system()
    configuration_at(system, Analyze())
    try:
        found = flexibility(
            system,
            reactions=request.reactions or None,
            candidates=request.elastic or None,
            subsets=subsets or None,
            tolerance=request.tolerance,
        )
    except ValueError as error:
        raise ModelError(str(error)) from None
    if request.plot is not None:
        _draw(found, request.plot)
    return Answer(model, found, request.plot)


def _draw(found: Flexibility, path: Path) -> None:
    def figure() -> Any:
        from ..plot import draw_flexibility

        return draw_flexibility(found)

    write_figure(figure, path)


def document(answer: Answer) -> dict[str, Any]:
    """The JSON document."""
    found = answer.found
    told: dict[str, Any] = {
        "model": answer.model.name,
        "reactions": list(found.reactions),
        "candidates": list(found.candidates),
        "skipped": list(found.skipped),
        "tolerance": found.tolerance,
        "subsets": [_subset(found, own) for own in found.answers],
        "everything": _subset(found, found.everything),
        "smallest": [list(own.elastic) for own in found.smallest],
        "plot": str(answer.plot) if answer.plot else None,
    }
    if answer.model.remark:
        told["remark"] = answer.model.remark
    return told


def _subset(found: Flexibility, own: SubsetAnswer) -> dict[str, Any]:
    """JSON entry of a subset; without forces where they were not found or are not unique."""
    told: dict[str, Any] = {
        "elastic": list(own.elastic),
        "redundancy": own.redundancy,
        "doubtful": own.doubtful,
        "undecided": list(own.undecided),
        "elimination_in_disguise": list(own.disguised),
        "difference": None if math.isnan(own.difference) else own.difference,
        "agrees": own.agrees,
        "verdict": own.verdict,
    }
    if own.failed:
        return told | {"failed": own.failed}
    if own.undecided:
        return told
    forces = zip(found.deformations, own.deformation_forces.tolist(), strict=True)
    joints = zip(found.reactions, own.force.tolist(), own.torque.tolist(), strict=True)
    return told | {
        "forces": dict(forces),
        "joints": {name: {"force": force, "torque": torque} for name, force, torque in joints},
    }


def show(answer: Answer) -> None:
    """Print the report."""
    console = make_console()
    console.print(f"[bold]{escape(answer.model.name)}[/bold]")
    console.print(Text(str(answer.found)))
    if answer.plot is not None:
        console.print(Text(f"wrote {answer.plot}"))
    if answer.model.remark:
        console.print(Text(answer.model.remark))
