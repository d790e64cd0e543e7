"""`jaxmbs design`: a study from a file."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from .._checks import shown
from .._design import (
    AbstractObjective,
    AbstractOptimiser,
    AbstractQuantity,
    AbstractRun,
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
from .._dynamics._trajectory import MOST_STATES
from .._errors import ModelError
from .._printing import Description
from .._sweep import Cases
from .._system import Model
from ..io import _registry
from ..io._toml import read_toml
from . import _load
from ._computing import is_shown, say
from ._output import write_figure
from ._requests import Design as Request


# --------------------------------------------------------------------------------------------------
# The tables of a study file, validated by pydantic, and the study that they describe.
# --------------------------------------------------------------------------------------------------


_KEYS = (
    "schema",
    "model",
    "run",
    "objective",
    "parameter",
    "constraint",
    "optimiser",
    "starts",
)


class RunTable(_registry.AbstractTable):
    """`[run]`: what is computed of each design."""

    kind: Literal["state", "driven", "motion"] = "state"
    time: float = 0.0
    end: float | None = None
    count: int = 51
    rtol: float = 1e-8
    atol: float = 1e-10


class ObjectiveTable(_registry.AbstractTable):
    """`[objective]`: the kind, and the quantity that it is of."""

    kind: Literal["peak", "final", "mean-square"]
    force: str | list[str] | None = None
    torque: str | list[str] | None = None
    body: str | None = None
    combination: str | None = None
    exponent: float | None = None


class ConstraintTable(_registry.AbstractTable):
    """`[[constraint]]`: as an objective, with what it is to be at most."""

    kind: Literal["peak", "final", "mean-square"]
    at_most: float
    force: str | list[str] | None = None
    torque: str | list[str] | None = None
    body: str | None = None
    combination: str | None = None
    exponent: float | None = None


class ParameterTable(_registry.AbstractTable):
    """`[[parameter]]`."""

    name: str
    low: float
    high: float
    start: float | None = None


class OptimiserTable(_registry.AbstractTable):
    """`[optimiser]`."""

    method: Literal["adam", "bfgs", "slsqp", "trust-constr"]
    steps: int | None = None
    rate: float | None = None
    tolerance: float | None = None


class StartsTable(_registry.AbstractTable):
    """`[starts]`: many random starts, uniform between the bounds."""

    count: int
    seed: int = 0


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
    for key in content:
        if key not in _KEYS:
            raise ModelError(
                f"unknown key {shown(key)} in the file; the keys are {', '.join(_KEYS)}."
            )
    schema = content.get("schema")
    if type(schema) is not int or schema != 1:
        raise ModelError(f"schema must be 1, got {shown(schema)}.")
    model = _model(content.get("model"), path.parent)
    parameters = _parameters(content)
    objective = _table(content, "objective", ObjectiveTable)
    run = _table(content, "run", RunTable, {})
    chosen = _run_of_study(run)
    study = _said("the file", lambda: Study(model, list(parameters), run=chosen))
    bounds = {name: (x["low"], x["high"]) for name, x in parameters.items()}
    given = {name: x["start"] for name, x in parameters.items() if x.get("start") is not None}
    starts = _starts(content, bounds)
    constraints = _constraints(content)
    optimiser = None
    if "optimiser" in content:
        optimiser = _optimiser(_table(content, "optimiser", OptimiserTable))
    if starts is not None and (constraints or not isinstance(optimiser, Descent | None)):
        raise ModelError(
            "[starts]: many starts go with method 'adam' and no [[constraint]]; leave one of them "
            "out."
        )
    return StudyFile(
        model,
        study,
        _objective(objective, "objective"),
        bounds,
        constraints,
        given,
        optimiser,
        starts,
    )


def _model(given: Any, folder: Path) -> Model:
    if not isinstance(given, str):
        raise ModelError(
            "the key 'model' is missing or no text; give a model file (its path seen from the "
            "study file) or a built-in mechanism."
        )
    beside = folder / given
    return _load.load(str(beside) if given.endswith(".toml") else given)


def _table(
    content: Mapping[str, Any],
    key: str,
    table: type[_registry.AbstractTable],
    default: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The keys that one table gives."""
    if key not in content and default is None:
        raise ModelError(f"the table [{key}] is missing.")
    return _registry.validate(table, content.get(key, default), f"[{key}]")


def _tables(content: Mapping[str, Any], key: str) -> list[Any]:
    entries = content.get(key, [])
    if not isinstance(entries, list):
        raise ModelError(f"[{key}] must be written [[{key}]], as there may be several.")
    return entries


def _parameters(content: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for k, entry in enumerate(_tables(content, "parameter")):
        values = _registry.validate(ParameterTable, entry, f"parameter number {k + 1}")
        if values["name"] in found:
            raise ModelError(f"the parameter {shown(values['name'])} is given twice.")
        found[values["name"]] = values
    if not found:
        raise ModelError("the file declares no parameter; add a [[parameter]] table.")
    return found


def _run_of_study(values: dict[str, Any]) -> AbstractRun:
    kind = values.get("kind", "state")
    if kind == "state":
        _only(values, "[run] of kind 'state'", ("kind",))
        return AtState()
    if values.get("end") is None or values["end"] <= 0:
        raise ModelError(f"[run] of kind {kind!r} needs an end (s) greater than zero.")
    count = values.get("count", 51)
    if not 2 <= count <= MOST_STATES:
        raise ModelError(f"[run]: count must be from 2 to {MOST_STATES:.0e}, got {shown(count)}.")
    if kind == "driven":
        _only(values, "[run] of kind 'driven'", ("kind", "end", "count"))
        return Driven(np.linspace(0.0, values["end"], count))
    _only(values, "[run] of kind 'motion'", ("kind", "end", "count", "rtol", "atol"))
    chosen = {key: values[key] for key in ("rtol", "atol") if key in values}
    return _said("[run]", lambda: Motion(values["end"], count=count, **chosen))


def _only(values: Mapping[str, Any], where: str, keys: tuple[str, ...]) -> None:
    """Refuse keys that mean nothing there."""
    for key in values:
        if key not in keys:
            raise ModelError(f"{where} has no key {shown(key)}; its keys are {', '.join(keys)}.")


def _objective(values: dict[str, Any], where: str) -> AbstractObjective:
    kind, exponent = values["kind"], values.get("exponent")
    quantity = _quantity(values, where)
    if kind == "peak":
        return _said(where, lambda: Peak(quantity, exponent))
    if exponent is not None:
        raise ModelError(f"[{where}]: exponent belongs to kind 'peak'; leave it out.")
    return _SIMPLE[kind](quantity)


_SIMPLE: Mapping[str, Callable[[AbstractQuantity], AbstractObjective]] = MappingProxyType(
    {"final": Final, "mean-square": MeanSquare}
)


_RESULTANTS: Mapping[str, Callable[..., AbstractQuantity]] = MappingProxyType(
    {"force": Force, "torque": Torque}
)


def _quantity(values: dict[str, Any], where: str) -> AbstractQuantity:
    given = [key for key in (*_RESULTANTS, "combination") if values.get(key) is not None]
    if len(given) != 1:
        raise ModelError(
            f"[{where}]: give `force` or `torque` (of a joint, or several) or `combination` (of "
            'multipliers, such as "W1 - W2"), one of the three.'
        )
    (key,) = given
    if key in _RESULTANTS:
        return _said(where, lambda: _RESULTANTS[key](values[key], values.get("body")))
    if values.get("body") is not None:
        raise ModelError(f"[{where}]: body belongs to force and torque; leave it out.")
    return _said(where, lambda: Combination(values[key]))


def _constraints(content: Mapping[str, Any]) -> tuple[AtMost, ...]:
    found = []
    for k, entry in enumerate(_tables(content, "constraint")):
        where = f"constraint number {k + 1}"
        values = _registry.validate(ConstraintTable, entry, where)
        found.append(AtMost(_objective(values, where), values["at_most"]))
    return tuple(found)


def _optimiser(values: dict[str, Any]) -> AbstractOptimiser:
    method = values["method"]
    own = ("steps", "rate") if method == "adam" else ("steps", "tolerance")
    _only(values, f"[optimiser] of method {method!r}", ("method", *own))
    settings = {key: values[key] for key in own if key in values}
    if settings.get("steps", 1) < 1:
        raise ModelError(f"[optimiser]: steps must be at least 1, got {settings['steps']}.")
    return _said("[optimiser]", lambda: _METHODS[method](**settings))


_METHODS: Mapping[str, Callable[..., AbstractOptimiser]] = MappingProxyType(
    {"adam": Descent, "bfgs": BFGS, "slsqp": SLSQP, "trust-constr": TrustRegion}
)


def _starts(content: Mapping[str, Any], bounds: Mapping[str, tuple[float, float]]) -> Cases | None:
    if "starts" not in content:
        return None
    values = _table(content, "starts", StartsTable)
    count, seed = values["count"], values.get("seed", 0)
    return _said("[starts]", lambda: Cases.uniform(bounds, count, seed=seed))


def _said(where: str, make: Callable[[], Any]) -> Any:
    """The result of `make`; an error in it names its table."""
    try:
        return make()
    except ValueError as error:
        raise ModelError(f"{where}: {error}") from None


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
