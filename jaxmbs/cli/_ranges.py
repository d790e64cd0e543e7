"""`jaxmbs ranges`: between which values reactions lie that are not unique."""

from typing import Any

import numpy as np

from .._errors import ModelError
from .._formulations import AbstractFormulation, chosen_formulation, elastic_formulation
from .._printing import Description
from .._ranges import check_question, Ranges, ranges, ranges_along
from .._system import MultibodySystem
from . import _load
from ._given_state import check_time, in_order, initial_state, of_model
from ._requests import Ranges as Request, Simulate


def answer(request: Request) -> Description:
    """Ranges at the reference configuration, or at the saved states of a motion from it.

    **Raises:** `ModelError` for bad input; `AnalysisError` if it does not close, or the motion or
    a linear program has no solution.
    """
    model = _load.load(request.model)
    system = model.system()
    asked: dict[str, Any] = {"bounds": request.bound, "combinations": request.combination}
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
                model=request.model,
                end=request.end,
                every=request.every,
                assemble=request.assemble,
                time=request.time,
                formulation=formulation.word if formulation.elastic else None,
            )
            found = ranges_along(_simulate.run(model, motion).trajectory, **asked)
    except ModelError:
        raise
    except ValueError as error:
        raise ModelError(str(error)) from None
    told = found.described()
    if not request.bound:
        told = told._replace(notes=[*told.notes, _ask_for_bounds(system, found)])
    head = [said, *(f"bound: {bound}" for bound in found.bounds), *told.head]
    used = said.startswith("with")
    return of_model(
        model,
        told._replace(head=head, data=lambda: in_order({**told.data(), "elastic": used}, _ENTRIES)),
    )


def _ask_for_bounds(system: MultibodySystem, found: Ranges) -> str:
    """A hint on how to give bounds, with a row of this system as example; empty if not needed."""
    rows = system.structure.row_names
    known = ((row, found.of(row)) for row in rows)
    open_rows = [row for row, own in known if np.any(np.isinf([own.low, own.high]))]
    if not open_rows:
        return ""
    row = open_rows[0]
    return (
        f'without bounds forces can be any; say what is known of them, such as --bound "|{row}| <= '
        f'500" (at most 500 N or N m) or --bound "{row} >= 0"'
    )


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
        for bound in request.bound:
            check_question(system, (bound,), ())
        option = "--combination"
        check_question(system, (), request.combination)
    except ValueError as error:
        raise ModelError(f"{option}: {error}") from None


# The entries of the document, in their order.
_ENTRIES = (
    *("time", "closed", "bounds", "feasible", "shortfall", "elastic", "joints"),
    "combinations",
)
