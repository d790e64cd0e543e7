"""`jaxmbs analyze`: the answer as a JSON document (`io/REFERENCE.md`) and as tables."""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from .._checks import as_numpy
from .._errors import AnalysisError, ModelError
from .._mobility import is_left_out, LEFT_OUT, Mobility, mobility, without_asking
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
from .._system import Model, MultibodySystem
from ._given_state import check_time, configuration_at
from ._output import make_console
from ._requests import Analyze as Request, Method, names_of


_CRITERIA: dict[Method, type[QR] | type[SVD] | type[RankComparison]] = {
    Method.qr: QR,
    Method.svd: SVD,
    Method.rank: RankComparison,
}


class Answer(NamedTuple):
    """The printed results. `report`: of rigid bodies; `elastic`: with the compliances of
    the model, None where there are none."""

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


def answer(model: Model, request: Request) -> Answer:
    """Compute everything that is requested.

    **Raises:** `ModelError` for bad input, `AnalysisError` when it does not close.
    """
    criterion = _criterion(request)
    system = model.system()
    check_time(model, request.time)
    subsets = [names_of(subset) for subset in request.subsets]
    q = configuration_at(system, request)
    v, t = system.initial_v, request.time
    if not bool(np.all(np.isfinite(np.asarray(system.constraint_matrix(q, v, t))))):
        raise AnalysisError(
            "the constraint matrix is not finite at this configuration; a distance of length "
            "zero or a rolling disk that lies flat has no derivative."
        )
    asked: dict[str, Any] = {
        "criterion": criterion,
        "subsets": subsets,
        "combinations": request.combinations,
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
    return Answer(
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


def document(answer: Answer) -> dict[str, Any]:
    """The JSON document."""
    report, structure = answer.report, answer.report.structure
    gap = float(report.rank_gap)
    result: dict[str, Any] = {
        "model": answer.model.name,
        "dimension": answer.model.dimension,
        "method": report.layout.method,
        "coordinates": structure.nv,
        "constraints": len(structure.rows),
        "rank": int(report.rank),
        "redundancy": int(report.redundancy),
        "mobility": int(report.mobility),
        "rank_geometric": int(report.rank_geometric),
        "rank_velocity": int(report.rank_velocity),
        "rank_gap": gap if math.isfinite(gap) else None,
        "doubtful": bool(report.doubtful),
        "scale": {"length": float(report.length)},
        "configuration": configuration(answer.model, answer.q),
        "joints": _joints(report),
        "bodies": _bodies(report),
        "removable_rows": list(answer.removable),
        "complete_removal": list(answer.complete),
        "dependent_sets": [list(members) for members in answer.dependent.sets],
        "dependent_sets_complete": answer.dependent.complete,
        "sharing": [list(members) for members in sharing(report)],
    }
    if report.precision is not None:
        assert report.rank_as_written is not None
        assert report.reaction_as_written is not None
        result["precision"] = {
            "relative": float(report.precision),
            "rank_as_written": int(report.rank_as_written),
            "redundant_at_precision": bool(report.redundant_at_precision),
            "not_unique_at_precision": [
                info.name
                for info, here, written in zip(
                    structure.constraints,
                    report.reaction_unique,
                    report.reaction_as_written,
                    strict=True,
                )
                if bool(written) and not bool(here)
            ],
        }
    if report.layout.subsets:
        result["subsets"] = _subsets(report)
    if report.layout.expressions:
        result["combinations"] = _combinations(report)
    if answer.elastic is not None:
        result["elastic"] = _with_compliances(answer.elastic)
    if answer.singularity is not None:
        result["singularity"] = {
            "generic_rank": int(answer.singularity.generic_rank),
            "rank": int(answer.singularity.rank),
            "singular": bool(answer.singularity.singular),
            "isolated": bool(answer.singularity.isolated),
            "displaced_rank": int(answer.singularity.displaced_rank),
            "mobility": int(answer.singularity.mobility),
            "moving": int(answer.singularity.moving),
            "neighbours": int(np.sum(np.asarray(answer.singularity.closed))),
        }
    if answer.mobility is not None:
        result["real_mobility"] = _mobility_entry(answer.mobility)
    elif is_left_out(report):
        result["real_mobility"] = None
    if answer.releases is not None:
        result["releases"] = [[_release(o) for o in chosen] for chosen in answer.releases.sets]
        result["releases_complete"] = answer.releases.complete
    if answer.model.remark:
        result["remark"] = answer.model.remark
    return result


def _mobility_entry(found: Mobility) -> dict[str, Any]:
    """Mobility entry of the JSON output; what was not decided is null."""
    return {
        "mobility": found.mobility if found.decided else None,
        "first_order": found.first_order,
        "order": found.order if found.decided else None,
        "shaky": found.is_shaky if found.decided else None,
        "branches": [
            {
                "degrees_of_freedom": own.freedoms,
                "first_order": own.first_order,
                "one_way": own.one_way,
                "cone": own.is_cone,
                "tangent": np.asarray(own.tangent).T.tolist(),
            }
            for own in found.branches
        ],
        "doubts": list(found.doubts),
    }


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


def _joints(report: Solvability) -> list[dict[str, Any]]:
    exact = report.layout.method == Method.rank
    joints = []
    for i, info in enumerate(report.structure.constraints):
        measure = float(report.reaction_measure[i])
        joints.append(
            {
                "name": info.name,
                "type": info.kind,
                "rows": info.stop - info.start,
                "unique": bool(report.reaction_unique[i]),
                "multipliers_unique": bool(report.multipliers_unique(info.name)),
                "measure": int(measure) if exact else measure,
            }
        )
    return joints


def _combinations(report: Solvability) -> list[dict[str, Any]]:
    return [
        {"expression": text, "unique": bool(unique), "measure": float(measure)}
        for text, unique, measure in zip(
            report.layout.expressions,
            report.combination_unique,
            report.combination_measure,
            strict=True,
        )
    ]


def _with_compliances(report: Solvability) -> dict[str, Any]:
    """Verdicts with compliances. Ranks count the columns of deformations."""
    result = {
        "compliances": list(report.layout.elastic),
        "rank": int(report.rank),
        "redundancy": int(report.redundancy),
        "doubtful": bool(report.doubtful),
        "joints": _joints(report),
        "bodies": _bodies(report),
        "sharing": [list(members) for members in sharing(report)],
    }
    if report.layout.subsets:
        result["subsets"] = _subsets(report)
    if report.layout.expressions:
        result["combinations"] = _combinations(report)
    return result


def _verdict(unique: np.ndarray) -> dict[str, bool]:
    return {"force": bool(unique[0]), "torque": bool(unique[1])}


def _bodies(report: Solvability) -> dict[str, dict[str, Any]]:
    structure = report.structure
    bodies: dict[str, dict[str, Any]] = {body.name: {} for body in structure.bodies}
    unique = np.asarray(report.body_unique)
    for (constraint, body), verdict in zip(report.layout.pairs, unique, strict=True):
        name = structure.constraints[constraint].name
        bodies[structure.bodies[body].name][name] = _verdict(verdict)
    return bodies


def _subsets(report: Solvability) -> list[dict[str, Any]]:
    subsets: list[dict[str, Any]] = [
        {
            "names": list(names),
            "unique": bool(unique),
            "measure": float(measure),
            "bodies": {},
        }
        for names, unique, measure in zip(
            report.layout.subsets, report.subset_unique, report.subset_measure, strict=True
        )
    ]
    unique = np.asarray(report.subset_body_unique)
    for (subset, body), verdict in zip(report.layout.subset_pairs, unique, strict=True):
        subsets[subset]["bodies"][report.structure.bodies[body].name] = _verdict(verdict)
    return subsets


def _release(option) -> dict[str, Any]:
    entry = {"joint": option.constraint, "from": option.kind, "to": option.to}
    return entry if option.axis is None else entry | {"axis": list(option.axis)}


# What a person reads.


def show(answer: Answer, console: Console | None = None) -> None:
    """Print the report as text and tables."""
    console = console or make_console()
    report, structure = answer.report, answer.report.structure
    console.print(f"[bold]{escape(answer.model.name)}[/bold]")
    if answer.elastic is not None:
        console.print(Text(_elastic_head(report, answer.elastic)))
    console.print(
        f"{structure.nv} coordinates, {len(structure.rows)} constraint rows: rank "
        f"{int(report.rank)} (geometric {int(report.rank_geometric)}, "
        f"{structure.other_rows} {int(report.rank_velocity)}), redundancy p = "
        f"{int(report.redundancy)}, mobility {int(report.mobility)}{_beyond_first_order(answer)}"
    )
    console.print(_joint_table(answer))
    for line in _notes(answer):
        console.print(Text(line))


def _beyond_first_order(answer: Answer) -> str:
    """Result beyond first order, where it differs."""
    found = answer.mobility
    if found is None and is_left_out(answer.report):
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


def _joint_table(answer: Answer) -> Table:
    report, shared = answer.report, sharing(answer.report)
    table = Table(pad_edge=False)
    elastic = () if answer.elastic is None else answer.elastic.rows()
    for column in ("joint", "type", "rows", "reaction", *(["elastic"] if elastic else []), "why"):
        table.add_column(column, justify="right" if column == "rows" else "left")
    for k, (name, kind, rows, verdict, _) in enumerate(report.rows()):
        last = elastic[k][3] if elastic else verdict
        style = "" if last.startswith("unique") else "bold"
        words = (name, kind, rows, verdict, *([last] if elastic else []))
        table.add_row(*map(Text, (*words, reason(report, shared, name))), style=style)
    return table


def _notes(answer: Answer) -> list[str]:
    report, giving, notes = answer.report, answer.elastic, []
    if bool(report.doubtful):
        notes.append(report.doubt())
    if giving is not None and bool(giving.doubtful):
        notes.append(f"with compliances: {giving.doubt()}")
    if answer.removable:
        notes.append(f"rows that may be dropped, one of them: {', '.join(answer.removable)}")
        notes.append(f"rows that may be dropped together: {', '.join(answer.complete)}")
    notes += [f"share loads: {', '.join(own)}" for own in sharing(report) if is_long(own)]
    for members in answer.dependent.sets[:20]:
        notes.append(f"dependent set: {', '.join(members)}")
    if len(answer.dependent.sets) > 20:
        notes.append(f"and {len(answer.dependent.sets) - 20} dependent sets more (see --json)")
    if not answer.dependent.complete:
        notes.append("the search for dependent sets was cut off; there are more")
    for k, subset in enumerate(_subsets(report)):
        own = None if giving is None else bool(giving.subset_unique[k])
        verdict = _both(subset["unique"], own)
        notes.append(f"subset {', '.join(subset['names'])}: {verdict}")
        for body, on_body in subset["bodies"].items():
            words = [f"{k} {'unique' if u else 'not unique'}" for k, u in on_body.items()]
            notes.append(f"    resultant on {body}: {', '.join(words)}")
    for k, text in enumerate(report.layout.expressions):
        own = None if giving is None else bool(giving.combination_unique[k])
        notes.append(f"combination {text}: {_both(bool(report.combination_unique[k]), own)}")
    notes += _mobility_notes(answer) + _singularity_notes(answer) + _release_notes(answer)
    if answer.model.remark:
        notes.append(answer.model.remark)
    return notes


def _mobility_notes(answer: Answer) -> list[str]:
    found = answer.mobility
    if found is None or (found.is_finite and not answer.mobility_asked):
        return []
    return str(found).splitlines()


def _both(unique: bool, elastic: bool | None) -> str:
    """A verdict, and that with compliances where it is another."""
    words = {True: "unique", False: "not unique"}
    more = "" if elastic in (None, unique) else f", with compliances {words[bool(elastic)]}"
    return words[unique] + more


def _singularity_notes(answer: Answer) -> list[str]:
    found = answer.singularity
    if found is None:
        return []
    return [str(found)]


def _release_notes(answer: Answer) -> list[str]:
    found = answer.releases
    if found is None:
        return []
    notes = [f"release {line}" for line in found.lines()[:20]]
    if len(found.sets) > 20:
        notes.append(f"and {len(found.sets) - 20} sets of releases more (see --json)")
    return notes + found.remarks()
