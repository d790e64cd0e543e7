"""The directions of a design that have a derivative, and where the rank of the constraints changes
between designs.
"""

import itertools
from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .. import _settings
from .._checks import known_array
from .._custom_types import NumberList, Numbers, RealScalarLike, Scalar, Setting
from .._limits import EXACT
from .._linalg._concrete_rank import null_spaces, values_and_rank
from .._printing import AbstractAnswer, Column, Description, Table
from .._programs import Compiling, program
from .._solution import RESULTS
from ._study import design_vector, DesignError, States, states, Study


# --------------------------------------------------------------------------------------------------
# The constraint matrix along a design's states, with its null spaces and its changes.
#
# C is scaled as in `analyze`: linear columns times the characteristic length, rows of unit length.
# Decompositions are NumPy's, of concrete numbers, and nothing is differentiated through them.
# --------------------------------------------------------------------------------------------------


class Rows(eqx.Module):
    """Changes at each state, along each parameter: of C and of Phi at a fixed configuration.
    What the configuration follows: its geometric rows (joints whose coordinate is held have one
    more), their change, and the change of the configuration from which it is assembled."""

    matrix: Float[Array, "*n rows nv p"]
    residual: Float[Array, "*n geometric p"]
    followed: Float[Array, "*n held nv"]
    held: Float[Array, "*n held p"]
    start: Float[Array, "*n nv p"]


class Scaled(NamedTuple):
    """C at each state (n, rows, nv) with rows of unit length, the lengths that the rows had
    (n, rows), and what the columns were multiplied by (nv,)."""

    matrix: np.ndarray
    rows: np.ndarray
    columns: np.ndarray


@program(compiling=Compiling.ONCE)
def _matrices(at: States) -> tuple[Float[Array, "n rows nv"], Scalar]:
    system = at.system
    states = (at.q, at.v, at.times)
    matrices = lax.map(lambda s: system.constraint_matrix(*s), states)
    return matrices, system.characteristic_length()


def scaled(at: States) -> Scaled:
    """The constraint matrices of a concrete at."""
    matrices, length = _matrices(at)
    structure = at.system.structure
    columns = structure.column_scale(float(length))
    matrix = np.asarray(matrices) * columns
    rows = np.linalg.norm(matrix, axis=2)
    rows = np.where(rows > 0, rows, 1.0)
    return Scaled(matrix / rows[:, :, None], rows, columns)


@program(compiling=Compiling.ONCE)
def changes(study: Study, design: Float[Array, " p"], at: States) -> Rows:
    """Changes of C and Phi along every parameter, at every state."""
    moving, nv = study.run.moving, at.v.shape[1]
    origin = lax.stop_gradient(study.place_parts(design).q)

    def state(given: tuple[Array, Array, Array]) -> Rows:
        q, v, t = given

        def varied(x: Float[Array, " p"]) -> tuple[Array, Array, Array, Array]:
            system, held, start, _, time = study.place_parts(x)
            held, time = (system, t) if moving else (held, time)
            begin = jnp.zeros(nv) if moving else system.difference(origin, start)
            matrix, residual = system.constraint_matrix(q, v, time), held.position_residual(q, time)
            return matrix, system.position_residual(q, time), residual, begin

        matrix, residual, held, start = jax.jacfwd(varied)(design)
        follower = study.place_parts(design)
        system, time = (follower.system, t) if moving else (follower.held, follower.t)
        followed = system.constraint_matrix(q, v, time)[system.structure.geometric_rows]
        return Rows(matrix, residual, followed, held, start)

    states = (at.q, at.v, at.times)
    return lax.map(state, lax.stop_gradient(states))


def following(moved: Rows, columns: np.ndarray) -> Float[np.ndarray, "n p nv"]:
    """The displacement with which each state follows each parameter: the start's, and the least one
    that satisfies the constraints again, or comes closest. Free motions may be added to it."""
    followed = np.asarray(moved.followed) * columns
    start = np.asarray(moved.start) / columns[:, None]
    if not followed.shape[1]:
        return np.swapaxes(start, 1, 2) * columns
    gap = followed @ start + np.asarray(moved.held)
    least = np.linalg.pinv(followed, rcond=EXACT.rank) @ gap
    return np.swapaxes(start - least, 1, 2) * columns


@program(compiling=Compiling.ONCE)
def changes_of_motion(at: States, steps: Float[Array, "n k nv"]) -> Float[Array, "n k rows nv"]:
    """The change of C along displacements of each state."""
    system = at.system

    def state(given: tuple[Array, Array, Array, Array]) -> Float[Array, "k rows nv"]:
        q, v, t, own = given

        def along(step: Float[Array, " nv"]) -> Float[Array, "rows nv"]:
            def matrix(s: Scalar) -> Float[Array, "rows nv"]:
                return system.constraint_matrix(system.retract(q, s * step), v, t)

            return jax.jvp(matrix, (jnp.zeros((), q.dtype),), (jnp.ones((), q.dtype),))[1]

        return jax.vmap(along)(own)

    return lax.map(state, (at.q, at.v, at.times, steps))


# --------------------------------------------------------------------------------------------------
# Which directions of a design have a derivative.
#
# At constant rank the derivative of a reaction is given by a formula that returns a number for any
# direction. It means nothing along a direction that changes the rank of C or opens the mechanism.
# With N and Z the left and the right null space of C and dC its total change, the configuration
# following the constraints, a direction keeps the rank to first order iff N^T dC Z = 0; and the
# mechanism closes after it iff N_h^T dPhi = 0, N_h the left null space of the geometric rows. Both
# are linear in the direction, so that the directions that keep both are a null space again.
# --------------------------------------------------------------------------------------------------


# A parameter that changes rows of unit length by less than this changes nothing.
_ROUNDING = 1e-10


class _Conditions(NamedTuple):
    """N^T dC Z and N_h^T dPhi of all states, a column for each parameter, with the size of the
    whole change of C and of Phi of each parameter."""

    rank: np.ndarray
    closure: np.ndarray
    rank_size: np.ndarray
    closure_size: np.ndarray


class Guard(AbstractAnswer):
    """Directions of a design that keep the rank and the closure of its mechanism.

    - `names` (p,): the parameters. `ranks` (n,): of C at each state.
    - `rank_measure`, `closure_measure` (p,): the part of the change of C, and of Phi, along each
      parameter that breaks the rank, and the closure; 0 where it keeps them.
    - `kept` (p, k): a basis of the directions that keep both.

    `keeps`, `require` and `project` answer for a direction or a gradient.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    ranks: np.ndarray
    rank_measure: np.ndarray
    closure_measure: np.ndarray
    kept: np.ndarray
    study: Study
    conditions: _Conditions

    def keeps(self, direction: Setting[Mapping[str, float] | str]) -> bool:
        """Does this direction (numbers by name, or one parameter) keep rank and closure?"""
        return not self.broken(direction)

    def broken(self, direction: Setting[Mapping[str, float] | str]) -> list[str]:
        """The conditions that this direction violates, in words; empty where there is a derivative
        along it."""
        return self._broken(self._vector(direction))

    def require(self, direction: Setting[Mapping[str, float] | str]) -> None:
        """Refuse directions along which the derivative does not exist.

        **Raises:** `DesignError` that names the violated condition and the combination that keeps
        it.
        """
        vector = self._vector(direction)
        broken = self._broken(vector)
        if broken:
            raise DesignError(
                f"there is no derivative along {said_of(self.names, vector)}: it breaks "
                f"{' and '.join(broken)}; {self._way_out(vector)}."
            )

    def project(
        self, gradient: Setting[NumberList], scale: Setting[Mapping[str, float] | None] = None
    ) -> Float[np.ndarray, " p"]:
        """The direction of steepest ascent among those that keep both: the orthogonal projection
        of the gradient onto them.

        **Arguments:** `gradient` (p,): in the order of `names`. `scale`: the amount by which each
        parameter may reasonably change, relative to which orthogonal and steepest are meant;
        default 1 in its unit, where the result is a gradient again.
        """
        slope = np.asarray(_settings.vector(gradient, "gradient", size=len(self.names)))
        scales = np.ones(len(self.names))
        if scale is not None:
            for name, size in _settings.mapping(
                scale, "scale", '{"bodies.crank.mass": 1.0}'
            ).items():
                _settings.known_number(size, f"scale of {name!r}", above=0)
            given = self.study.direction(scale)
            scales = np.where(given > 0, given, scales)
        basis, _ = np.linalg.qr(self.kept / scales[:, None])
        return scales * (basis @ (basis.T @ (slope * scales)))

    def _vector(self, direction: Setting[Mapping[str, float] | str]) -> np.ndarray:
        given = {direction: 1.0} if isinstance(direction, str) else direction
        return self.study.direction(given)

    def _broken(self, vector: np.ndarray) -> list[str]:
        found = []
        conditions = self.conditions
        for matrix, size, what in (
            (conditions.rank, conditions.rank_size, self._rank_words()),
            (conditions.closure, conditions.closure_size, "the closure of the mechanism"),
        ):
            whole = np.abs(vector) @ size
            if np.linalg.norm(matrix @ vector) > EXACT.keeps_rank * whole:
                found.append(what)
        return found

    def _rank_words(self) -> str:
        ranks = sorted(set(self.ranks.tolist()))
        return f"the rank of the constraints ({', '.join(map(str, ranks))} here)"

    def _way_out(self, vector: np.ndarray) -> str:
        """The fewest other parameters that compensate for a violated condition."""
        others = [k for k in range(len(self.names)) if not vector[k]]
        for count in (1, 2):
            for chosen in itertools.combinations(others, count):
                found = self._completed(vector, list(chosen))
                if found is not None:
                    return f"together with {_combination(found)} it keeps both"
        found = self._completed(vector, others)
        if found is not None:
            return f"together with {_combination(found)} it keeps both"
        return (
            "no combination with the other parameters of the study keeps it, so leave it out, or "
            "make a body or joint elastic (bushings have no such limit)"
        )

    def _completed(self, vector: np.ndarray, others: list[int]) -> dict[str, float] | None:
        """The changes of the other parameters that satisfy the conditions; None if there are
        none."""
        if not others:
            return None
        conditions = self.conditions
        size = conditions.rank_size + conditions.closure_size
        unit = np.where(size > 0, size, 1.0)[others]
        matrix = np.concatenate([conditions.rank, conditions.closure])
        # Columns have at most unit length: what is smaller than a kept change is rounding.
        u, values, vt = np.linalg.svd(matrix[:, others] / unit, full_matrices=False)
        large = values > EXACT.keeps_rank
        amounts = vt[large].T @ (u[:, large].T @ (-matrix @ vector) / values[large])
        whole = vector.copy()
        whole[others] = amounts / unit
        if self._broken(whole):
            return None
        # Numbers that are only rounding do not enter a combination.
        moved = np.abs(amounts) > EXACT.keeps_rank * np.max(np.abs(amounts), initial=0.0)
        return {self.names[k]: whole[k] for k, own in zip(others, moved, strict=True) if own}

    def described(self) -> Description:
        ranks = ", ".join(map(str, sorted(set(self.ranks.tolist()))))
        broken = [" and ".join(self._broken(unit)) for unit in np.eye(len(self.names))]
        table = Table(
            [
                Column("parameter", self.names),
                Column("unit", [self.study.subject.unit(name) for name in self.names]),
                Column("rank", [f"{x:.1e}" for x in self.rank_measure]),
                Column("closure", [f"{x:.1e}" for x in self.closure_measure]),
                Column("derivative", [f"none: breaks {x}" if x else "yes" for x in broken]),
            ],
            marked=[bool(x) for x in broken],
        )
        head = (
            f"rank {ranks}; {self.kept.shape[1]} of {len(self.names)} directions keep rank and "
            "closure"
        )
        return Description([head], [table])


def guard(
    study: Study, design: Setting[Mapping[str, RealScalarLike] | Numbers | None] = None
) -> Guard:
    """Find the directions of a design that keep the rank of C and the closure during its run.

    Costs two singular value decompositions for each state, besides derivatives of C.

    **Arguments:** `design`: numbers by name or in order; default as the model gives them.

    **Returns:** a `Guard`.

    **Raises:** `DesignError` if the run of this design fails.
    """
    x = study.design if design is None else study.values(design)
    study.check(x)
    return guard_at(study, x, states(study, x))


def guard_at(study: Study, x: Float[Array, " p"], found: States) -> Guard:
    """`guard` for a design whose states are known."""
    succeeded(found.result, "this design")
    conditions, ranks = _conditions(study, x, found)
    size = conditions.rank_size, conditions.closure_size
    rank, closure = (
        np.linalg.norm(m, axis=0) / np.where(s > 0, s, 1.0)
        for m, s in zip(conditions[:2], size, strict=True)
    )
    return Guard(study.names, ranks, rank, closure, _kept(conditions), study, conditions)


def succeeded(result: RESULTS, what: str) -> None:
    """Raise what a run ended with, if that was a failure."""
    if RESULTS[result]:
        raise DesignError(f"{what} cannot be computed. {RESULTS[result]}")


def _conditions(
    study: Study, design: Float[Array, " p"], at: States
) -> tuple[_Conditions, np.ndarray]:
    found, structure = scaled(at), at.system.structure
    moved = changes(study.settled(design), design, at)
    steps = following(moved, found.columns)
    with_states = np.moveaxis(np.asarray(changes_of_motion(at, known_array(steps))), 1, 3)
    unit = found.columns[None, None, :, None] / found.rows[:, :, None, None]
    direct, follow = np.asarray(moved.matrix) * unit, with_states * unit
    residual = np.asarray(moved.residual) / found.rows[:, structure.geometric_rows, None]
    rank, closure, ranks = [], [], []
    for k, matrix in enumerate(found.matrix):
        here = null_spaces(matrix)
        held = null_spaces(matrix[structure.geometric])
        across = np.einsum("ra,rcp,cb->abp", here.left, direct[k] + follow[k], here.right)
        rank.append(across.reshape(-1, len(study.names)))
        closure.append(held.left.T @ residual[k])
        ranks.append(here.rank)
    sizes = amounts(study, np.asarray(design), float(at.system.characteristic_length()))
    whole = _norms(direct) + _norms(follow)
    rank_part, rank_size = _without_rounding(np.concatenate(rank), whole, sizes)
    closure_part, closure_size = _without_rounding(np.concatenate(closure), _norms(residual), sizes)
    return _Conditions(rank_part, closure_part, rank_size, closure_size), np.array(ranks)


def _norms(arrays: np.ndarray) -> np.ndarray:
    """The norm of all entries that belong to a parameter, the last axis."""
    return np.linalg.norm(arrays.reshape(-1, arrays.shape[-1]), axis=0)


def amounts(study: Study, design: np.ndarray, length: float) -> np.ndarray:
    """The scale of each parameter's change: its own magnitude, at least one characteristic length,
    or one where it is not a length."""
    units = [study.subject.unit(name) for name in study.names]
    least = np.array([length if unit == "m" else 1.0 for unit in units])
    return np.maximum(np.abs(design), least)


def _without_rounding(
    conditions: np.ndarray, size: np.ndarray, amounts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Parameters that change nothing but by rounding change nothing. Rows have unit length, so
    that changes are compared with one."""
    changing = size * amounts > _ROUNDING
    return np.where(changing, conditions, 0.0), np.where(changing, size, 0.0)


def _kept(conditions: _Conditions) -> np.ndarray:
    """A basis of the directions that break nothing."""
    size = conditions.rank_size + conditions.closure_size
    unit = np.where(size > 0, size, 1.0)
    matrix = np.concatenate([conditions.rank, conditions.closure]) / unit
    if not matrix.shape[0]:
        return np.eye(unit.size)
    _, values, basis = np.linalg.svd(matrix)
    return basis[int(np.sum(values > EXACT.keeps_rank)) :].T / unit[:, None]


def said_of(names: tuple[str, ...], direction: np.ndarray) -> str:
    """A direction in words: one parameter, or a combination."""
    moved = {name: x for name, x in zip(names, direction, strict=True) if x}
    single = list(moved.values()) == [1.0]
    return repr(next(iter(moved))) if single else _combination(moved)


def _combination(amounts: Mapping[str, float]) -> str:
    """Such as 2 bodies.rod.mass - 0.1 joints.B.at.x."""
    terms = [f"{'-' if x < 0 else '+'} {abs(x):.7g} {name}" for name, x in amounts.items()]
    return " ".join(terms).removeprefix("+ ")


# --------------------------------------------------------------------------------------------------
# Changes of the rank of the constraints between two designs.
# --------------------------------------------------------------------------------------------------


_GOLDEN = (5**0.5 - 1) / 2
_HALVINGS = 45

# Numbers of a design in messages.
_SHOWN = 4


class RankChange(NamedTuple):
    """`fraction`: of the way, `design`: numbers by name, where the rank changes; ranks before,
    there and after, the least of all states of the run."""

    fraction: float
    design: dict[str, float]
    before: int
    there: int
    after: int

    def __str__(self) -> str:
        ranks = f"{self.before} -> {self.there} -> {self.after}"
        if self.there == self.after:
            ranks = f"{self.before} -> {self.after}"
        return f"rank {ranks} at fraction {self.fraction:.9g} of the way: {told(self.design)}"


def told(design: Mapping[str, float]) -> str:
    """The first numbers of a design, by name."""
    shown = list(design.items())[:_SHOWN]
    more = ", ..." if len(design) > _SHOWN else ""
    return ", ".join(f"{name} = {x:.9g}" for name, x in shown) + more


class _Look(NamedTuple):
    """The rank at each state of a design, and the least of the singular values that the ranks at
    the start of the way keep, relative to the largest."""

    ranks: np.ndarray
    margin: float


class _PathState(eqx.Module):
    study: Study
    start: Float[Array, " p"]
    end: Float[Array, " p"]

    def design(self, fraction: float) -> Float[Array, " p"]:
        return self.start + fraction * (self.end - self.start)

    def look(self, fraction: float, kept: np.ndarray | None = None) -> _Look:
        x = self.design(fraction)
        return look(self.study, x, f"the design at fraction {fraction:.6g} of the way", kept)


def look(study: Study, design: Float[Array, " p"], what: str, kept: np.ndarray | None) -> _Look:
    """Ranks of a design. `kept`: what the margin refers to, default its own ranks.

    **Raises:** `DesignError` if its run fails.
    """
    found = states(study, design)
    succeeded(found.result, what)
    ranks, margins = [], [1.0]
    for k, matrix in enumerate(scaled(found).matrix):
        values, rank = values_and_rank(matrix)
        ranks.append(rank)
        wanted = rank if kept is None else int(kept[k])
        if wanted:
            margins.append(float(values[wanted - 1] / values[0]))
    return _Look(np.array(ranks), min(margins))


def rank_changes(
    study: Study,
    start: Setting[Mapping[str, RealScalarLike] | Numbers],
    end: Setting[Mapping[str, RealScalarLike] | Numbers],
    *,
    count: Setting[int] = 33,
) -> tuple[RankChange, ...]:
    """Changes of the rank of the constraints on the straight line between two designs: permanent,
    or at a singular design on the line.

    The search is between `count` designs, and around those with the smallest singular value; a
    change that begins and ends between two of them without a trace at either is missed.

    **Arguments:** `start`, `end`: designs, by names or in order; `count`: at least 3.

    **Returns:** `RankChange`s in order of the way.

    **Raises:** `DesignError` if a design on the way cannot be computed; `TypeError` or `ValueError`
    for a count that cannot be.
    """
    count = _settings.whole_number(count, "count", least=3)
    way = _PathState(study, design_vector(study, start, "start"), design_vector(study, end, "end"))
    fractions = np.linspace(0.0, 1.0, count)
    first = way.look(0.0)
    looks = [first, *(way.look(s, first.ranks) for s in fractions[1:])]
    found = []
    for k in range(count - 1):
        one, other = looks[k], looks[k + 1]
        if not np.array_equal(one.ranks, other.ranks):
            found.append(_bisected(way, fractions[k], fractions[k + 1], one, other))
        elif k > 0 and one.margin <= min(looks[k - 1].margin, other.margin):
            found += _passed(way, fractions[k - 1], fractions[k + 1], first, looks[k - 1 : k + 2])
    # A design of the grid that is singular itself is left and entered once each.
    merged: list[RankChange] = []
    for change in found:
        if merged and abs(change.fraction - merged[-1].fraction) < 1e-6:
            merged[-1] = merged[-1]._replace(
                there=min(merged[-1].there, change.there), after=change.after
            )
        else:
            merged.append(change)
    return tuple(merged)


def _bisected(way: _PathState, low: float, high: float, one: _Look, other: _Look) -> RankChange:
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if np.array_equal(way.look(middle).ranks, one.ranks):
            low = middle
        else:
            high = middle
    there = min(int(way.look(high).ranks.min()), int(other.ranks.min()))
    design = way.study.named(way.design(high))
    return RankChange(high, design, int(one.ranks.min()), there, int(other.ranks.min()))


def _passed(
    way: _PathState, low: float, high: float, first: _Look, looks: list[_Look]
) -> list[RankChange]:
    """A singular design between two that are not: where the smallest kept singular value goes
    through zero, by golden section."""
    if any(not np.array_equal(x.ranks, first.ranks) for x in looks):
        return []
    ends = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    values = [way.look(s, first.ranks).margin for s in ends]
    for _ in range(_HALVINGS):
        if values[0] < values[1]:
            high, ends[1], values[1] = ends[1], ends[0], values[0]
            ends[0] = high - _GOLDEN * (high - low)
            values[0] = way.look(ends[0], first.ranks).margin
        else:
            low, ends[0], values[0] = ends[0], ends[1], values[1]
            ends[1] = low + _GOLDEN * (high - low)
            values[1] = way.look(ends[1], first.ranks).margin
    fraction = ends[int(np.argmin(values))]
    if min(values) > EXACT.singular_design:
        return []
    rank = int(first.ranks.min())
    lower = _rank_at_zero(way, fraction)
    return [RankChange(fraction, way.study.named(way.design(fraction)), rank, lower, rank)]


def _rank_at_zero(way: _PathState, fraction: float) -> int:
    found = scaled(states(way.study, way.design(fraction)))
    return min(values_and_rank(m, EXACT.singular_design)[1] for m in found.matrix)
