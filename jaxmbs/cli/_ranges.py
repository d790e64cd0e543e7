"""`jaxmbs ranges`: between which values reactions lie, as a JSON document and as a table."""

import math
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.markup import escape
from rich.text import Text

from .._errors import ModelError
from .._formulations import AbstractFormulation, chosen_formulation, elastic_formulation
from .._ranges import check_question, Ranges, ranges, ranges_along
from .._solution import RESULTS
from .._system import Model, MultibodySystem
from ._given_state import check_time, initial_state
from ._output import make_console
from ._requests import Ranges as Request, Simulate


class Answer(NamedTuple):
    """The printed results."""

    model: Model
    found: Ranges
    compliances: str = ""


def answer(model: Model, request: Request) -> Answer:
    """Ranges at the reference configuration, or at the saved states of a motion from it.

    **Raises:** `ModelError` for bad input; `AnalysisError` if it does not close, or the motion or
    a linear program has no solution.
    """
    system = model.system()
    asked: dict[str, Any] = {"bounds": request.bounds, "combinations": request.combinations}
    # An invalid bound or combination is reported before anything is computed.
    _check(system, request)
    formulation, said = _with_compliances(system, request.rigid)
    try:
        if request.end is None:
            check_time(model, request.time)
            q, v = initial_state(system, request.time, request.assemble)
            asked["elastic"] = formulation.elastic
            found = ranges(system, q, v, request.time, **asked)
        else:
            from . import _simulate

            motion = Simulate(
                end=request.end,
                every=request.every,
                assemble=request.assemble,
                time=request.time,
                formulation=formulation.word if formulation.elastic else None,
            )
            found = ranges_along(_simulate.answer(model, motion).trajectory, **asked)
    except ModelError:
        raise
    except ValueError as error:
        raise ModelError(str(error)) from None
    return Answer(model, found, said)


def _with_compliances(system: MultibodySystem, rigid: bool) -> tuple[AbstractFormulation, str]:
    """The method for multipliers, and the statement on the model's compliances."""
    structure = system.structure
    names = ", ".join(own.name for own in structure.compliances)
    formulation = elastic_formulation(structure)
    if not names:
        return formulation, ""
    if rigid:
        said = f"of rigid bodies: compliances {names} are left out (--rigid)"
        return chosen_formulation(None, structure), said
    if not formulation.elastic:
        return formulation, (
            f"compliances {names} are left out: values need a mass for every body, and some have "
            "none (`jaxmbs analyze` tells what they make unique)"
        )
    return formulation, f"with compliances {names}: what they decide is unique (--rigid: without)"


def _check(system: MultibodySystem, request: Request) -> None:
    """
    **Raises:** `ModelError` that names the option.
    """
    option = "--bound"
    try:
        for bound in request.bounds:
            check_question(system, (bound,), ())
        option = "--combination"
        check_question(system, (), request.combinations)
    except ValueError as error:
        raise ModelError(f"{option}: {error}") from None


def document(answer: Answer) -> dict[str, Any]:
    """The JSON document. An end without bound is null, and so are both where loads cannot be
    carried."""
    found, structure = answer.found, answer.found.structure
    told: dict[str, Any] = {
        "model": answer.model.name,
        "time": found.times.tolist(),
        "closed": bool(np.all(np.asarray(found.result != RESULTS.configuration_open))),
        "bounds": list(found.bounds),
        "feasible": np.asarray(found.feasible).tolist(),
        "shortfall": np.asarray(found.shortfall).tolist(),
        "elastic": answer.compliances.startswith("with"),
        "joints": [_joint(found, info) for info in structure.constraints],
        "combinations": [_range(found, "expression", text) for text in found.combinations],
    }
    return told | ({"remark": answer.model.remark} if answer.model.remark else {})


def _joint(found: Ranges, info: Any) -> dict[str, Any]:
    names = found.structure.row_names[info.start : info.stop]
    entry: dict[str, Any] = {
        "name": info.name,
        "type": info.kind,
        "unique": info.name in found.determined(),
        "multipliers": [_range(found, "row", name) for name in names],
    }
    if found.has_wrench(info.name):
        own = found.wrench(info.name)
        entry["body"] = own.body
        entry["force"] = {
            "low": _numbers(own.force_low),
            "high": _numbers(own.force_high),
            "unique": own.force_unique.tolist(),
        }
        entry["torque"] = {
            "low": _numbers(own.torque_low),
            "high": _numbers(own.torque_high),
            "unique": own.torque_unique.tolist(),
        }
    return entry


def _range(found: Ranges, key: str, name: str) -> dict[str, Any]:
    own = found.of(name)
    return {
        key: name,
        "low": _numbers(own.low),
        "high": _numbers(own.high),
        "unique": own.unique.tolist(),
    }


def _numbers(values: Any) -> Any:
    """Numbers, in lists as deep as the array; null where there is none."""
    return jax.tree.map(lambda x: x if math.isfinite(x) else None, np.asarray(values).tolist())


def show(answer: Answer) -> None:
    """Print the table."""
    console = make_console()
    console.print(f"[bold]{escape(answer.model.name)}[/bold]")
    if answer.compliances:
        console.print(Text(answer.compliances))
    for bound in answer.found.bounds:
        console.print(Text(f"bound: {bound}"))
    console.print(Text(str(answer.found)))
    if answer.model.remark:
        console.print(Text(answer.model.remark))
