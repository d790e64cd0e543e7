"""`jaxmbs analyze`: verdicts, and what explains them."""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from .._checks import as_numpy
from .._errors import AnalysisError, ModelError
from .._mobility import is_left_out, LEFT_OUT, Mobility, mobility, without_asking
from .._printing import Column, Description, Table
from .._solvability import (
    AbstractCriterion,
    analyze,
    complete_removal,
    dependent_sets,
    DependentSets,
    is_long,
    QR,
    RankComparison,
    reason,
    Releases,
    releases,
    removable_rows,
    sharing,
    Singularity,
    singularity,
    Solvability,
    SVD,
)
from .._solvability._report import one_sided_note
from .._system import Model, MultibodySystem
from . import _load
from ._given_state import check_time, configuration_at, in_order, of_model
from ._requests import Analyze as Request, Method, names_of


_CRITERIA: dict[Method, type[QR] | type[SVD] | type[RankComparison]] = {
    Method.qr: QR,
    Method.svd: SVD,
    Method.rank: RankComparison,
}


class Analysis(NamedTuple):
    """Results of the command. `report`: of rigid bodies; `elastic`: with the compliances of the
    model, None if it has none."""

    model: Model
    system: MultibodySystem
    q: np.ndarray
    report: Solvability
    elastic: Solvability | None
    removable: tuple[str, ...]
    complete: tuple[str, ...]
    dependent: DependentSets
    singularity: Singularity | None
    releases: Releases | None
    mobility: Mobility | None
    mobility_asked: bool


def answer(request: Request) -> Description:
    """The analysis of the reference configuration, which must be closed.

    **Raises:** `ModelError` for bad input, `AnalysisError` when it does not close.
    """
    return described(analysis(_load.load(request.model), request))


def analysis(model: Model, request: Request) -> Analysis:
    """Compute everything that is requested.

    **Raises:** `ModelError` for bad input, `AnalysisError` when it does not close.
    """
    criterion = _criterion(request)
    system = model.system()
    check_time(model, request.time)
    subsets = [names_of(subset) for subset in request.subset]
    q = configuration_at(system, request.time, request.assemble)
    v, t = system.initial_v, request.time
    if not bool(np.all(np.isfinite(np.asarray(system.constraint_matrix(q, v, t))))):
        raise AnalysisError(
            "the constraint matrix is not finite at this configuration; a distance of length "
            "zero or a rolling disk that lies flat has no derivative."
        )
    asked: dict[str, Any] = {
        "criterion": criterion,
        "subsets": subsets,
        "combinations": request.combination,
    }
    giving = bool(system.structure.compliances)
    try:
        report = analyze(system, q, v, t, **asked)
        elastic = analyze(system, q, v, t, **asked, elastic=True) if giving else None
    except ValueError as error:
        raise ModelError(str(error)) from None
    near = None
    if request.singular:
        near = singularity(system, q, v, t, key=jax.random.key(0), criterion=criterion)
    return Analysis(
        model=model,
        system=system,
        q=np.asarray(q),
        report=as_numpy(report),
        elastic=None if elastic is None else as_numpy(elastic),
        removable=removable_rows(report),
        complete=complete_removal(report),
        dependent=dependent_sets(report),
        singularity=near,
        releases=releases(system, q, v, t, report=report) if request.releases else None,
        mobility=_real_mobility(system, q, report, request),
        mobility_asked=request.mobility,
    )


def _real_mobility(
    system: MultibodySystem, q: Any, report: Solvability, request: Request
) -> Mobility | None:
    """The mobility where it is requested, or may differ from n - rank."""
    tolerance = max(request.tolerance, float(np.finfo(float).eps))
    ask = mobility if request.mobility else partial(without_asking, report)
    try:
        return ask(system, q, request.time, tolerance=tolerance)
    except ValueError as error:
        raise ModelError(f"--mobility: {error}") from None


def _criterion(request: Request) -> AbstractCriterion:
    try:
        return _CRITERIA[request.method](request.tolerance)
    except ValueError as error:
        raise ModelError(f"--{error}") from None


# The entries of the document, in their order, and those of its entry "elastic".
_ENTRIES = (
    *("dimension", "method", "coordinates", "constraints", "rank", "redundancy", "mobility"),
    *("rank_geometric", "rank_velocity", "rank_gap", "doubtful", "scale", "configuration"),
    *("joints", "bodies", "removable_rows", "complete_removal", "dependent_sets"),
    *("dependent_sets_complete", "sharing", "precision", "subsets", "combinations", "elastic"),
    *("singularity", "real_mobility", "releases", "releases_complete"),
)
_ELASTIC = (
    *("compliances", "rank", "redundancy", "doubtful", "joints", "bodies", "sharing", "subsets"),
    "combinations",
)


def _data(found: Analysis) -> dict[str, Any]:
    data = _verdicts(found.report) | {
        "dimension": found.model.dimension,
        "configuration": configuration(found.model, found.q),
        "removable_rows": list(found.removable),
        "complete_removal": list(found.complete),
        "dependent_sets": [list(members) for members in found.dependent.sets],
        "dependent_sets_complete": found.dependent.complete,
    }
    if found.elastic is not None:
        # Ranks count the columns of deformations.
        data["elastic"] = in_order(_verdicts(found.elastic), _ELASTIC)
    if found.singularity is not None:
        data["singularity"] = found.singularity.described().data()
    if found.mobility is not None:
        data["real_mobility"] = found.mobility.described().data()
    elif is_left_out(found.report):
        data["real_mobility"] = None
    if found.releases is not None:
        data["releases"] = [[_release(o) for o in chosen] for chosen in found.releases.sets]
        data["releases_complete"] = found.releases.complete
    return in_order(data, _ENTRIES)


def _verdicts(report: Solvability) -> dict[str, Any]:
    shared = [list(members) for members in sharing(report)]
    data = report.described().data()
    return {**data, "compliances": list(report.layout.elastic), "sharing": shared}


def configuration(model: Model, q: np.ndarray) -> dict[str, Any]:
    """The coordinates of each body by their words: position and angle (or orientation)."""
    result, start = {}, 0
    for body in model.bodies:
        names = body.inertia_properties().coordinates.names
        own, found = q[start : start + len(names)].tolist(), {}
        start += len(names)
        for name, value in zip(names, own, strict=True):
            word, _, part = name.partition(".")
            if part:
                found.setdefault(word, []).append(value)
            else:
                found[word] = value
        result[body.name] = found
    return result


def _release(option) -> dict[str, Any]:
    entry = {"joint": option.constraint, "from": option.kind, "to": option.to}
    return entry if option.axis is None else entry | {"axis": list(option.axis)}


# --------------------------------------------------------------------------------------------------
# What a person reads.
# --------------------------------------------------------------------------------------------------


# So many dependent sets and sets of releases are listed.
_LISTED = 20


def described(found: Analysis) -> Description:
    """Verdicts, and what explains them."""
    beyond = Description()
    if found.mobility is not None and (found.mobility_asked or not found.mobility.is_finite):
        beyond = found.mobility.described()
    told = Description(
        [] if found.elastic is None else [_elastic_head(found.report, found.elastic)],
        [_table(found), *beyond.tables],
        [
            one_sided_note(found.report.structure),
            *_doubts(found),
            *_dependence(found),
            *_of_subsets(found),
            *beyond.head,
            *beyond.notes,
            "" if found.singularity is None else str(found.singularity),
            *_releases(found.releases),
        ],
        partial(_data, found),
    )
    return of_model(found.model, told)


def _table(found: Analysis) -> Table:
    """The table of verdicts, with those of the model with its compliances, and with the reason of
    each in the place of its measure."""
    report, table, elastic = found.report, found.report.table(), []
    if found.elastic is not None:
        elastic = [Column("elastic", found.elastic.verdicts())]
        table = table._replace(marked=found.elastic.table().marked)
    shared, names = sharing(report), report.structure.constraint_names
    why = Column("why", [reason(report, shared, name) for name in names])
    return table._replace(
        columns=[*table.without("measure"), *elastic, why],
        title=f"{report.headline()}{_beyond_first_order(found)}",
    )


def _beyond_first_order(analysis: Analysis) -> str:
    """Result beyond first order, where it differs."""
    found = analysis.mobility
    if found is None and is_left_out(analysis.report):
        return f" to first order ({LEFT_OUT}; ask with --mobility, or jm.mobility)"
    if found is None or found.is_finite:
        return ""
    if not found.decided:
        return " to first order; the real one was not decided"
    if not found.branches:
        return " to first order; really 0: it does not move"
    words = f" to first order; really {found.mobility}" if found.is_shaky else ""
    count = len(found.branches)
    return words + f", as {count} branches of motion meet" * (count > 1)


def _elastic_head(report: Solvability, elastic: Solvability) -> str:
    """Effect of the model's compliances on the verdicts."""
    names = ", ".join(elastic.layout.elastic)
    rigid, giving = (np.asarray(x.reaction_unique.unique) for x in (report, elastic))
    open_, left = int(np.sum(~rigid)), int(np.sum(~giving))
    if not open_:
        return f"compliances {names}: nothing is left to them; every reaction is unique without"
    decided = open_ - left
    return (
        f"compliances {names}: they make {decided} of the {open_} reactions unique that rigid "
        "bodies do not determine (column 'elastic'; values: simulate --formulation elastic); all "
        "else here is of rigid bodies"
    )


def _doubts(found: Analysis) -> list[str]:
    giving = "" if found.elastic is None else found.elastic.doubt()
    return [found.report.doubt(), f"with compliances: {giving}" if giving else ""]


def _dependence(found: Analysis) -> list[str]:
    """Rows that may be dropped, and joints that share loads."""
    notes, sets = [], [", ".join(members) for members in found.dependent.sets]
    if found.removable:
        notes.append(f"rows that may be dropped, one of them: {', '.join(found.removable)}")
        notes.append(f"rows that may be dropped together: {', '.join(found.complete)}")
    notes += [f"share loads: {', '.join(own)}" for own in sharing(found.report) if is_long(own)]
    notes += _first([f"dependent set: {members}" for members in sets], "dependent sets")
    if not found.dependent.complete:
        notes.append("the search for dependent sets was cut off; there are more")
    return notes


def _first(lines: list[str], what: str) -> list[str]:
    """The first lines, and how many there are besides."""
    more = len(lines) - _LISTED
    return [*lines[:_LISTED], f"and {more} {what} more (see --json)" if more > 0 else ""]


def _of_subsets(found: Analysis) -> list[str]:
    """Verdicts on subsets and combinations, and those with compliances where they differ."""
    notes, report, giving = [], found.report, found.elastic
    for k, subset in enumerate(report.described().data().get("subsets", ())):
        own = None if giving is None else bool(giving.subset_unique[k])
        notes.append(f"subset {', '.join(subset['names'])}: {_both(subset['unique'], own)}")
        for body, on_body in subset["bodies"].items():
            words = [f"{part} {_WORDS[unique]}" for part, unique in on_body.items()]
            notes.append(f"    resultant on {body}: {', '.join(words)}")
    for k, text in enumerate(report.layout.expressions):
        own = None if giving is None else bool(giving.combination_unique[k])
        notes.append(f"combination {text}: {_both(bool(report.combination_unique[k]), own)}")
    return notes


_WORDS = {True: "unique", False: "not unique"}


def _both(unique: bool, elastic: bool | None) -> str:
    more = "" if elastic in (None, unique) else f", with compliances {_WORDS[bool(elastic)]}"
    return _WORDS[unique] + more


def _releases(found: Releases | None) -> list[str]:
    if found is None:
        return []
    lines = _first([f"release {line}" for line in found.lines()], "sets of releases")
    return [found.advice(), *lines, *found.remarks()]
