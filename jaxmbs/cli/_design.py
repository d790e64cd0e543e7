"""`jaxmbs design`: a study from a file."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .. import _settings
from .._checks import one_of, shown
from .._design import (
    AbstractObjective,
    AbstractOptimiser,
    AtMost,
    AtState,
    BFGS,
    Combination,
    Descent,
    Driven,
    Final,
    Force,
    MeanSquare,
    minimise,
    Motion,
    multistart,
    Optimum,
    Peak,
    Progress,
    sensitivity,
    SLSQP,
    Starts,
    Study,
    Torque,
    TrustRegion,
    Visit,
)
from .._design._study import STATES
from .._dynamics._trajectory import MOST_STATES
from .._errors import ModelError
from .._printing import Description
from .._sweep import Cases
from .._system import Model
from ..io._registry import check_head, check_keys, check_table, placed, tables_of
from ..io._toml import read_toml
from . import _load
from ._computing import is_shown, say
from ._output import write_figure
from ._requests import Design as Request


# --------------------------------------------------------------------------------------------------
# The tables of a study file: their keys are arguments of what they make, which checks them.
# --------------------------------------------------------------------------------------------------


def _driven(end: float, count: int = STATES) -> Driven:
    end = _settings.known_number(end, "end", above=0)
    count = _settings.whole_number(count, "count", least=2, most=MOST_STATES)
    return Driven(np.linspace(0.0, end, count))


class _Kind(NamedTuple):
    """The function that makes the object of a table, and the keys that are its arguments."""

    make: Callable[..., Any]
    keys: tuple[str, ...]


_RUNS: Mapping[str, _Kind] = MappingProxyType(
    {
        "state": _Kind(AtState, ()),
        "driven": _Kind(_driven, ("end", "count")),
        "motion": _Kind(Motion, ("end", "count", "rtol", "atol")),
    }
)
_OPTIMISERS: Mapping[str, _Kind] = MappingProxyType(
    {
        "adam": _Kind(Descent, ("steps", "rate")),
        "bfgs": _Kind(BFGS, ("steps", "tolerance")),
        "slsqp": _Kind(SLSQP, ("steps", "tolerance")),
        "trust-constr": _Kind(TrustRegion, ("steps", "tolerance")),
    }
)
_OBJECTIVES: Mapping[str, _Kind] = MappingProxyType(
    {
        "peak": _Kind(Peak, ("exponent",)),
        "final": _Kind(Final, ()),
        "mean-square": _Kind(MeanSquare, ()),
    }
)
_QUANTITIES: Mapping[str, _Kind] = MappingProxyType(
    {
        "force": _Kind(Force, ("body",)),
        "torque": _Kind(Torque, ("body",)),
        "combination": _Kind(Combination, ()),
    }
)
_KEYS = ("schema", "model", "run", "objective", "parameter", "constraint", "optimiser", "starts")


class StudyFile(NamedTuple):
    """The content of a study file. `starts`: None for the one start."""

    model: Model
    study: Study
    objective: AbstractObjective
    bounds: dict[str, tuple[float, float]]
    constraints: tuple[AtMost, ...]
    start: dict[str, float]
    optimiser: AbstractOptimiser | None
    starts: Cases | None


def read_study(path: str | Path) -> StudyFile:
    """The study in a TOML file.

    **Raises:** `ModelError` with one sentence that names the table, the key and the usual fix.
    """
    path = Path(path)
    content = read_toml(path)
    check_head(content, _KEYS)
    model = _model(content.get("model"), path.parent)
    parameters = _parameters(content)
    if "objective" not in content:
        raise ModelError("the table [objective] is missing.")
    run = _made("[run]", content.get("run", {}), _RUNS, "kind", "state")
    with placed("the file"):
        study = Study(model, list(parameters), run=run)
    bounds = {name: (own["low"], own["high"]) for name, own in parameters.items()}
    start = {name: own["start"] for name, own in parameters.items() if "start" in own}
    starts = _starts(content, bounds)
    constraints = tuple(
        _constraint(entry, f"constraint number {k + 1}")
        for k, entry in enumerate(tables_of(content, "constraint"))
    )
    optimiser = None
    if "optimiser" in content:
        optimiser = _made("[optimiser]", content["optimiser"], _OPTIMISERS, "method")
    if starts is not None and (constraints or not isinstance(optimiser, Descent | None)):
        raise ModelError(
            "[starts]: many starts go with method 'adam' and no [[constraint]]; leave one of them "
            "out."
        )
    objective = _objective(content["objective"], "[objective]")
    return StudyFile(model, study, objective, bounds, constraints, start, optimiser, starts)


def _model(given: Any, folder: Path) -> Model:
    if not isinstance(given, str):
        raise ModelError(
            "the key 'model' is missing or no text; give a model file (its path seen from the "
            "study file) or a built-in mechanism."
        )
    beside = folder / given
    return _load.load(str(beside) if given.endswith(".toml") else given)


def _made(
    where: str, table: Any, kinds: Mapping[str, _Kind], key: str, default: str | None = None
) -> Any:
    """The result of a table, one key of which selects its kind."""
    check_table(table, where)
    if default is None:
        check_keys((key, *table), table, where, (key,))
    with placed(where):
        kind = one_of(table.get(key, default), kinds, key)
    make, keys = kinds[kind]
    arguments = inspect.signature(make).parameters
    needed = [own for own in keys if arguments[own].default is inspect.Parameter.empty]
    check_keys((key, *keys), table, f"{where} of {key} {kind!r}", needed)
    with placed(where):
        return make(**{own: table[own] for own in keys if own in table})


def _parameters(content: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for k, entry in enumerate(tables_of(content, "parameter")):
        where = f"parameter number {k + 1}"
        check_keys(("name", "low", "high", "start"), entry, where, ("name", "low", "high"))
        with placed(where):
            name = _settings.text(entry["name"], "name", "'bodies.crank.mass'")
            for key in entry.keys() - {"name"}:
                _settings.known_number(entry[key], key)
        if name in found:
            raise ModelError(f"the parameter {shown(name)} is given twice.")
        found[name] = entry
    if not found:
        raise ModelError("the file declares no parameter; add a [[parameter]] table.")
    return found


def _objective(table: Any, where: str, *own: str) -> AbstractObjective:
    """`own`: further keys of the table."""
    check_table(table, where)
    check_keys(("kind", *table), table, where, ("kind",))
    with placed(where):
        kind = one_of(table["kind"], _OBJECTIVES, "kind")
    given = [key for key in _QUANTITIES if key in table]
    if len(given) != 1:
        raise ModelError(
            f"{where}: give `force` or `torque` (of a joint, or several) or `combination` (of "
            'multipliers, such as "W1 - W2"), one of the three.'
        )
    (key,) = given
    objective, quantity = _OBJECTIVES[kind], _QUANTITIES[key]
    keys = (key, *quantity.keys, *objective.keys)
    check_keys(("kind", *keys, *own), table, f"{where} of kind {kind!r} and {key}", own)
    with placed(f"{where}, {key}"):
        made = quantity.make(table[key], *(table.get(own) for own in quantity.keys))
    with placed(where):
        return objective.make(made, *(table.get(own) for own in objective.keys))


def _constraint(table: Any, where: str) -> AtMost:
    objective = _objective(table, where, "at_most")
    with placed(where):
        return AtMost(objective, _settings.known_number(table["at_most"], "at_most"))


def _starts(content: Mapping[str, Any], bounds: Mapping[str, tuple[float, float]]) -> Cases | None:
    if "starts" not in content:
        return None
    table = content["starts"]
    check_table(table, "[starts]")
    check_keys(("count", "seed"), table, "[starts]", ("count",))
    with placed("[starts]"):
        return Cases.uniform(bounds, table["count"], seed=table.get("seed", 0))


def answer(request: Request) -> Description:
    """Read the file, run the study.

    **Raises:** `ModelError` for bad input.
    """
    file = read_study(request.study)
    changes = Description()
    try:
        found, best = _run(file, request, _tell if is_shown() else None)
        if request.sensitivity:
            changes = sensitivity(
                file.study, {"objective": file.objective}, best.design
            ).described()
    except ValueError as error:
        raise ModelError(str(error)) from None

    def figure() -> Any:
        from ..plot import draw_study

        return draw_study(best)

    write_figure(figure, request.plot)
    told = found.described()
    limits = zip(file.constraints, best.constraints, strict=True)
    return Description(
        told.head,
        [*told.tables, *changes.tables],
        [
            *(f"constraint: {value:.6g}, at most {limit.bound:.6g}" for limit, value in limits),
            *changes.notes,
            "" if request.plot is None else f"wrote {request.plot}",
        ],
        lambda: (
            _data(file, found, best, request)
            | ({"sensitivity": changes.data()["objective"]} if request.sensitivity else {})
        ),
        file.model.name,
    )


def _run(
    file: StudyFile, request: Request, progress: Progress | None
) -> tuple[Optimum | Starts, Optimum]:
    common: dict[str, Any] = {"store": request.store, "progress": progress}
    if file.starts is not None:
        # Of the optimisers only Descent goes from many starts; the file has been checked.
        chosen: Any = file.optimiser
        many = multistart(
            file.objective, file.study, file.bounds, file.starts, optimiser=chosen, **common
        )
        return many, many.best
    one = minimise(
        file.objective,
        file.study,
        file.bounds,
        constraints=file.constraints,
        start=file.start,
        optimiser=file.optimiser,
        **common,
    )
    return one, one


def _tell(number: int, visit: Visit) -> None:
    say(f"design: after iteration {number} the objective is {visit.value:.6g}")


def _data(
    file: StudyFile, found: Optimum | Starts, best: Optimum, request: Request
) -> dict[str, Any]:
    data = {
        "model": file.model.name,
        **best.described().data(),
        "constraints": [
            {"value": value, "at_most": limit.bound}
            for value, limit in zip(best.constraints, file.constraints, strict=True)
        ],
        # A design that failed has no value.
        "history": [v.value if v.value < float("inf") else None for v in best.history],
        "plot": str(request.plot) if request.plot else None,
    }
    return data | ({"starts": found.described().data()} if isinstance(found, Starts) else {})
