"""`jaxmbs holonomy`: which constraints are holonomic, as a JSON document and as a table."""

import math
from typing import Any, NamedTuple

import jax
from rich.markup import escape
from rich.text import Text

from .._errors import ModelError
from .._holonomy import Holonomy, holonomy, Integrability
from .._solution import RESULTS
from .._system import Model
from ._given_state import check_time, configuration_at
from ._output import make_console
from ._requests import Analyze, Holonomy as Request


class Answer(NamedTuple):
    """The printed results."""

    model: Model
    time: float
    found: Holonomy


def answer(model: Model, request: Request) -> Answer:
    """Analyse the reference configuration, which must be closed.

    **Raises:** `ModelError` for bad input; `AnalysisError` if it cannot be assembled.
    """
    check_time(model, request.time)
    system = model.system()
    q = configuration_at(system, Analyze(time=request.time, assemble=request.assemble))
    try:
        found = holonomy(
            system,
            q,
            request.time,
            key=jax.random.key(0),
            samples=request.samples,
            spread=request.spread,
            tolerance=request.tolerance,
        )
    except ValueError as error:
        raise ModelError(str(error)) from None
    return Answer(model, request.time, found)


def document(answer: Answer) -> dict[str, Any]:
    """The JSON document. What was not decided is null."""
    found, structure = answer.found, answer.found.structure
    scleronomic = dict(zip(structure.constraint_names, found.scleronomic.tolist(), strict=True))
    told: dict[str, Any] = {
        "model": answer.model.name,
        "time": answer.time,
        "closed": bool(found.result != RESULTS.configuration_open),
        "holonomic": found.together.integrable.tolist(),
        "neighbours": int(found.counted.sum()),
        "tolerance": float(found.tolerance),
        "doubtful": bool(found.doubtful),
        "constraints": {
            info.name: {
                "type": info.kind,
                "holonomic": found.holonomic(info.name).tolist(),
                "scleronomic": scleronomic[info.name],
                "velocity_rows": _set(found.alone(info.name)) if info.name in found.names else None,
            }
            for info in structure.constraints
        },
        "together": _set(found.together),
    }
    return told | ({"remark": answer.model.remark} if answer.model.remark else {})


def _set(own: Integrability) -> dict[str, Any]:
    return {
        "holonomic": own.integrable.tolist(),
        "holonomic_here": own.here.tolist(),
        "linear": bool(own.linear),
        "consistent": bool(own.consistent),
        "independent": _count(own.rank),
        "integrable": _count(own.integrable_rows),
        "degrees_of_freedom": _count(own.freedoms),
        "measure_here": _number(own.measure_here),
        "measure": _number(own.measure),
    }


def _count(value: Any) -> int | None:
    return None if int(value) < 0 else int(value)


def _number(value: Any) -> float | None:
    return None if math.isnan(float(value)) else float(value)


def show(answer: Answer) -> None:
    """Print the report."""
    console = make_console()
    console.print(f"[bold]{escape(answer.model.name)}[/bold]")
    console.print(Text(str(answer.found)))
    if answer.model.remark:
        console.print(Text(answer.model.remark))
