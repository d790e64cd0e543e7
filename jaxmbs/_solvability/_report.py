"""The answer: which reactions a rigid-body model determines."""

import math
from typing import Annotated, Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from .. import _printing
from .._checks import as_numpy, by_numpy, namespace
from .._custom_types import BoolScalar, Flags, IntScalar, Scalar
from .._kinematics import open_in
from .._limits import EXACT
from .._printing import AbstractAnswer, Column, Description, rows_of_last_table, Table
from .._solution import RESULTS
from .._system import Structure
from .._verdict import Verdict
from ._criteria import RankComparison


# The rank, redundancy and mobility of an invalid state.
NO_RANK = -1


class Layout(NamedTuple):
    """Names of the requested quantities, in the order of the arrays of `Solvability`.

    `pairs`: (constraint, body) for body-wise verdicts; `subset_pairs`: (subset, body). `elastic`:
    the compliances that had a part in it.
    """

    structure: Structure
    method: str
    pairs: tuple[tuple[int, int], ...]
    subsets: tuple[tuple[str, ...], ...]
    subset_pairs: tuple[tuple[int, int], ...]
    expressions: tuple[str, ...]
    elastic: tuple[str, ...] = ()


class Solvability(AbstractAnswer):
    """Verdicts on the reactions of a system at one state (or, batched, at many).

    - `result`: a `RESULTS` member: `state_not_valid` for an invalid state (then the ranks
      are -1, measures NaN and verdicts not decided), `configuration_open` if it is not closed.
      `residual` (geometric rows,): what is left of Phi, lengths relative to `length`.
    - `rank`, `redundancy` p, `mobility`, `rank_geometric`, `rank_velocity` (of all rows that are
      not geometric).
    - `rank_gap`: last kept over first dropped pivot of the scaled C, infinite if none dropped;
      `margin`, `dropped`: last kept and first dropped pivot over the first one; `tolerance`: the
      threshold between them; `rounding`: below it a dropped pivot is nothing but rounding.
      `near_threshold`: is any measure near that of the other verdict?
    - `reaction_measure`, `reaction_unique` (constraints,): of C_X^T lambda_X.
    - `multiplier_measure`, `multiplier_unique` (rows,).
    - `body_measure`, `body_unique` (pairs, 2): resultant force and torque of one constraint on
      one body. `subset_...`: the same of subsets. `combination_...`: of c^T lambda.
    - `null_space` (rows, rows): orthonormal left null space of the SCALED C after `rank` columns of
      zeros. `row_scale` (rows,), `length` (m): C_scaled = C D / row_scale, with D the length for
      linear columns and 1 for angular ones.

    - `precision`: of numbers that are not exact, the part of the first pivot below which one is
      zero within them; None of exact ones. Ranks and verdicts are those within the precision, and
      `rank_as_written`, `reaction_as_written` those of the numbers as written.
    - `possible_precision`: the same of a file's numbers of few digits, which may be rounded or
      exact: a pivot below it is doubtful.

    Everything is invariant under a change of units, frames and order. A measure is the largest
    singular value of the functional times the null space (`qr`, `svd`) or a difference of
    ranks (`rank`); 0 is unique.
    """

    result: RESULTS
    residual: Float[Array, " geometric"]
    rank: IntScalar
    redundancy: IntScalar
    mobility: IntScalar
    rank_geometric: IntScalar
    rank_velocity: IntScalar
    rank_gap: Scalar
    margin: Scalar
    dropped: Scalar
    rounding: Scalar
    tolerance: Scalar
    near_threshold: BoolScalar
    pivots: Float[Array, " k"]
    length: Scalar
    row_scale: Float[Array, " rows"]
    null_space: Float[Array, "rows rows"]
    reaction_measure: Float[Array, " constraints"]
    reaction_unique: Annotated[Verdict, "constraints"]
    multiplier_measure: Float[Array, " rows"]
    multiplier_unique: Annotated[Verdict, "rows"]
    body_measure: Float[Array, "pairs 2"]
    body_unique: Annotated[Verdict, "pairs 2"]
    subset_measure: Float[Array, " subsets"]
    subset_unique: Annotated[Verdict, "subsets"]
    subset_body_measure: Float[Array, "subset_pairs 2"]
    subset_body_unique: Annotated[Verdict, "subset_pairs 2"]
    combination_measure: Float[Array, " combinations"]
    combination_unique: Annotated[Verdict, "combinations"]
    layout: Layout = eqx.field(static=True)
    precision: Scalar | None = None
    rank_as_written: IntScalar | None = None
    reaction_as_written: Annotated[Verdict, "constraints"] | None = None
    possible_precision: Scalar | None = None

    @property
    def structure(self) -> Structure:
        """Names of rows, constraints and bodies."""
        return self.layout.structure

    def unique(self, name: str) -> Verdict:
        """Is the generalized reaction of the joint or driver of that name unique?"""
        info = self.structure.constraint(name)
        return self.reaction_unique[..., self.structure.constraints.index(info)]

    def multipliers_unique(self, name: str) -> Verdict:
        """Is every multiplier of the joint, driver or row of that name unique?"""
        rows = np.array(self.structure.rows_of(name))
        return self.multiplier_unique[..., rows].all(axis=-1)

    def on_body(self, name: str, body: str) -> Verdict:
        """Are the resultant (force, torque) of that joint on that body unique? The name of one of
        the body's frames ("bar.A") stands for the body.

        **Raises:** `ValueError` if the joint does not act on the body, or not at that frame.
        """
        owner = self.structure.owner(body)
        acts = self.structure.constraint(name).sites
        if body not in (owner, *acts):
            raise ValueError(f"{name!r} does not act at {body!r}, but on {' and '.join(acts)}.")
        for k, (constraint, index) in enumerate(self.layout.pairs):
            if (
                self.structure.constraints[constraint].name == name
                and self.structure.bodies[index].name == owner
            ):
                return self.body_unique[..., k, :]
        there = f"; it acts on {' and '.join(acts)}" if acts else ""
        raise ValueError(f"{name!r} does not act on a moving body {body!r}{there}.")

    @property
    @by_numpy
    def redundant_at_precision(self) -> Flags:
        """Are rows redundant within the precision of the model's numbers, and not for the numbers
        as written?"""
        if self.rank_as_written is None:
            return namespace(self.rank).zeros(np.shape(self.rank), bool)
        return self.rank_as_written > self.rank

    @property
    def unique_below(self) -> Any:
        """Measures, and entries of the null space, below this are zero."""
        return EXACT.unique_within(self.precision)

    @property
    @by_numpy
    def _kept_marginally(self) -> Flags:
        xp = namespace(self.rank)
        least = xp.maximum(EXACT.doubtful_above * self.tolerance, EXACT.doubtful_kept)
        gap = self.rank_gap < EXACT.doubtful_gap
        if self.precision is not None:
            least = xp.maximum(least, EXACT.doubtful_precision * self.precision)
            gap = gap & ~self.redundant_at_precision
        if self.possible_precision is not None:
            least = xp.maximum(least, self.possible_precision)
        return (self.margin < least) | gap

    @property
    @by_numpy
    def _dropped_marginally(self) -> Flags:
        xp = namespace(self.rank)
        if self.precision is not None:
            # It is known no better.
            return xp.zeros(np.shape(self.rank), bool)
        return self.dropped > xp.maximum(EXACT.doubtful_below * self.tolerance, self.rounding)

    @property
    @by_numpy
    def doubtful(self) -> Flags:
        """Is a verdict marginal: the last kept or the first dropped pivot near the tolerance, or a
        measure near the threshold? For an invalid state all is doubtful."""
        near = self._kept_marginally | self._dropped_marginally | self.near_threshold
        return near | self.redundant_at_precision | ~self.decided

    @property
    @by_numpy
    def decided(self) -> Flags:
        """Are there verdicts? Not where the state is none, nor, in a sweep, where its
        configuration was not found."""
        xp = namespace(self.rank)
        valid = xp.asarray(self.result != RESULTS.state_not_valid)
        return valid & xp.all(self.reaction_unique.decided, axis=-1)

    def doubt(self) -> str:
        """The doubtful decisions, and the change that would reverse each, in one or two sentences;
        empty if there are none. Concrete values only."""
        if not bool(self.decided):
            return _printing.undecided(self.result)
        rank = int(self.rank)
        reasons, against = [], ""
        if bool(self.redundant_at_precision):
            return self._redundancy_at_precision()
        if np.isfinite(np.asarray(self.rank_gap)):
            against = f" and {float(self.rank_gap):.3g} times the first dropped one"
        if bool(self._kept_marginally):
            reasons.append(
                f"the last kept pivot is {float(self.margin):.3g} times the first"
                f"{against}, so that parts moved by about {self._misalignment(self.margin)} would "
                f"make the rank {rank - 1}; the configuration is near a singular one, or the "
                "model's numbers are not exact"
            )
        if bool(self._dropped_marginally):
            reasons.append(
                f"the first dropped pivot is {float(self.dropped):.3g} times the first, more than "
                f"rounding leaves, as of parts that are misaligned by about "
                f"{self._misalignment(self.dropped)}: if that is meant, the rank is {rank + 1}, "
                "and if not, give more digits"
            )
        if bool(self.near_threshold):
            reasons.append(
                "a measure is near the threshold between unique and not unique, and changes with "
                "the configuration or the model's last digits"
            )
        return f"Doubtful: {'; and '.join(reasons)}." if reasons else ""

    def _redundancy_at_precision(self) -> str:
        assert self.precision is not None
        assert self.rank_as_written is not None
        return (
            f"Redundant at the precision of the model's numbers: by the numbers as they stand the "
            f"rank is {int(self.rank_as_written)}, within their precision {int(self.rank)}. The "
            f"pivots between are less than {float(self.precision):.2g} times the first, as of "
            f"parts that are off by {self._misalignment(self.precision)}, so that forces that rest "
            "on them are as large as that error makes them. Verdicts are those within the "
            "precision; for others give more digits, or state precision = 0 where the numbers are "
            "exact."
        )

    def _misalignment(self, pivot: Any) -> str:
        """Rows and columns of C are relative to the characteristic length."""
        size = float(pivot * self.pivots[0])
        return f"{size * float(self.length):.2g} m or {size:.2g} rad"

    def left_null_space(self) -> np.ndarray:
        """Orthonormal N (rows, p) with N^T C = 0, C scaled. Concrete values only.

        **Raises:** `ValueError` where nothing was decided.
        """
        if not bool(self.decided):
            raise ValueError(self.doubt())
        return np.asarray(self.null_space)[:, int(self.rank) :]

    def openness(self) -> str:
        """The open joints and drivers and their residuals, in one sentence; empty if none is.
        Concrete values only."""
        return openness(self.structure, self.length, self.residual)

    rows = rows_of_last_table

    def described(self) -> Description:
        if self.rank.ndim:
            return _printing.batch("states", self.rank.shape)
        if isinstance(self.rank, jax.Array):
            return as_numpy(self).described()
        if not bool(self.decided):
            return Description([self.doubt()])
        is_open = bool(self.result == RESULTS.configuration_open)
        return Description(
            (),
            [self.table()],
            [
                self._elastic_note(),
                one_sided_note(self.structure),
                self.openness() if is_open else "",
                self.doubt(),
            ],
            self._data,
        )

    def _data(self) -> dict[str, Any]:
        structure, gap = self.structure, float(self.rank_gap)
        data: dict[str, Any] = {
            "method": self.layout.method,
            "coordinates": structure.nv,
            "constraints": len(structure.rows),
            "rank": int(self.rank),
            "redundancy": int(self.redundancy),
            "mobility": int(self.mobility),
            "rank_geometric": int(self.rank_geometric),
            "rank_velocity": int(self.rank_velocity),
            "rank_gap": gap if math.isfinite(gap) else None,
            "doubtful": bool(self.doubtful),
            "scale": {"length": float(self.length)},
            "joints": [self._joint(k) for k in range(len(structure.constraints))],
            "bodies": self._bodies(),
        }
        if self.precision is not None:
            assert self.rank_as_written is not None
            assert self.reaction_as_written is not None
            lost = self.reaction_as_written.unique & self.reaction_unique.not_unique
            data["precision"] = {
                "relative": float(self.precision),
                "rank_as_written": int(self.rank_as_written),
                "redundant_at_precision": bool(self.redundant_at_precision),
                "not_unique_at_precision": [
                    name for name, own in zip(structure.constraint_names, lost, strict=True) if own
                ],
            }
        if self.layout.subsets:
            data["subsets"] = self._subsets()
        if self.layout.expressions:
            data["combinations"] = [
                {"expression": text, "unique": bool(unique), "measure": float(measure)}
                for text, unique, measure in zip(
                    self.layout.expressions,
                    self.combination_unique,
                    self.combination_measure,
                    strict=True,
                )
            ]
        return data

    def _joint(self, k: int) -> dict[str, Any]:
        info, measure = self.structure.constraints[k], float(self.reaction_measure[k])
        return {
            "name": info.name,
            "type": info.kind,
            "rows": info.stop - info.start,
            "unique": bool(self.reaction_unique[k]),
            "multipliers_unique": bool(self.multipliers_unique(info.name)),
            "measure": int(measure) if self.layout.method == RankComparison.word else measure,
        }

    def _bodies(self) -> dict[str, dict[str, Any]]:
        structure = self.structure
        bodies: dict[str, dict[str, Any]] = {body.name: {} for body in structure.bodies}
        for (constraint, body), own in zip(self.layout.pairs, self.body_unique, strict=True):
            name = structure.constraints[constraint].name
            bodies[structure.bodies[body].name][name] = _force_and_torque(own)
        return bodies

    def _subsets(self) -> list[dict[str, Any]]:
        subsets: list[dict[str, Any]] = [
            {"names": list(names), "unique": bool(unique), "measure": float(measure), "bodies": {}}
            for names, unique, measure in zip(
                self.layout.subsets, self.subset_unique, self.subset_measure, strict=True
            )
        ]
        pairs = zip(self.layout.subset_pairs, self.subset_body_unique, strict=True)
        for (subset, body), own in pairs:
            subsets[subset]["bodies"][self.structure.bodies[body].name] = _force_and_torque(own)
        return subsets

    def headline(self) -> str:
        """Ranks, redundancy and mobility, in a sentence. Concrete values only."""
        return (
            f"{self.structure.nv} coordinates, {len(self.structure.rows)} constraint rows, rank "
            f"{int(self.rank)} ({int(self.rank_geometric)} geometric, "
            f"{int(self.rank_velocity)} {self.structure.other_rows}), redundancy p = "
            f"{int(self.redundancy)}, mobility {int(self.mobility)}"
        )

    def _elastic_note(self) -> str:
        if not self.layout.elastic:
            return ""
        return (
            f"With elastic {', '.join(self.layout.elastic)}: rank and redundancy count their "
            "deformations. What is unique because of them depends on which parts are elastic."
        )

    def table(self) -> Table:
        """Joints and drivers with their verdicts. Concrete values only."""
        constraints, verdicts = self.structure.constraints, self.verdicts()
        return Table(
            [
                Column("joint", [info.name for info in constraints]),
                Column("type", [info.kind for info in constraints]),
                Column("rows", [str(info.stop - info.start) for info in constraints]),
                Column("reaction", verdicts),
                Column("measure", [f"{float(x):.1e}" for x in self.reaction_measure]),
            ],
            [not verdict.startswith("unique") for verdict in verdicts],
            self.headline(),
        )

    def verdicts(self) -> list[str]:
        """The verdict on each reaction, in words. Concrete values only."""
        return [self._verdict(k) for k in range(len(self.structure.constraints))]

    def _verdict(self, k: int) -> str:
        name, written = self.structure.constraints[k].name, self.reaction_as_written
        if not bool(self.decided):
            return "not decided"
        if bool(self.reaction_unique[k]):
            every = bool(self.multipliers_unique(name))
            return "unique" if every else "unique (multipliers are not)"
        at_precision = written is not None and bool(written[k])
        return "not unique" + at_precision * " at the precision of the numbers"


def _force_and_torque(unique: Verdict) -> dict[str, bool]:
    return {"force": bool(unique[0]), "torque": bool(unique[1])}


def one_sided_note(structure: Structure) -> str:
    """The joints with rows that act one way only, in one sentence; empty if there are none."""
    owners = dict.fromkeys(structure.row_owner[k] for k in structure.one_sided_rows)
    if not owners:
        return ""
    named = ", ".join(structure.constraints[k].name for k in owners)
    return (
        f"Held both ways here: {named}, which can act one way only; verdicts are those of rows "
        "that act both ways, and `reactions` tells where the sign of a force is not admissible."
    )


def openness(structure: Structure, length: Any, residual: Any) -> str:
    """The open joints and drivers and their residuals, in a sentence or two; empty if none is.
    `length`, `residual` (geometric,): arrays of JAX or of NumPy."""
    opened = open_in(structure, float(length), residual)
    if not opened:
        return ""
    named = ", ".join(f"{name!r} by {amount:.3g} {unit}" for name, amount, unit in opened[:3])
    more = f" and {len(opened) - 3} more" if len(opened) > 3 else ""
    return (
        f"Not closed: {named}{more} open; these verdicts are those of C in this "
        "configuration and need not be the mechanism's. Assemble it first, and give the time "
        "at which its drivers stand so."
    )
