"""Singular configurations on the way of a motion, what is not determined there, and their
confirmation when the motion is known.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._checks import known_array, listed
from .._custom_types import IntScalar
from .._kinematics import position_residual
from .._limits import EXACT
from .._linalg._concrete_rank import (
    damped_solutions,
    null_spaces,
    shortest_solutions,
    singular_values,
    thin_svd,
)
from .._programs import Compiling, program
from .._system import AbstractSystem, Structure


# --------------------------------------------------------------------------------------------------
# Which motions rows of C leave free, and who makes them. Concrete numbers, dense.
# --------------------------------------------------------------------------------------------------


def null_space(
    matrix: np.ndarray, structure: Structure, length: float, tolerance: float = EXACT.rank
) -> np.ndarray:
    """Velocities (nv, k) that span the null space of rows of C, orthonormal with lengths
    relative to the characteristic length."""
    unit = structure.column_scale(length)
    scaled = matrix * unit
    sizes = np.linalg.norm(scaled, axis=1)
    scaled = scaled[sizes > 0] / sizes[sizes > 0, None]
    return null_spaces(scaled, tolerance).right * unit[:, None]


def movers(free: np.ndarray, structure: Structure, length: float) -> list[str]:
    """One body for each motion in the span of the columns of `free` (nv, k), and its kind of
    motion: "'rod' (turning)". No two are the same coordinate."""
    rest = free / structure.column_scale(length)[:, None]
    names = []
    for _ in range(free.shape[1]):
        # Pivoting: the coordinate that moves most, and what is left when it is held.
        column = int(np.argmax(np.linalg.norm(rest, axis=1)))
        names.append(_mover(column, structure))
        along = rest[column] / np.linalg.norm(rest[column])
        rest = rest - np.outer(rest @ along, along)
    return names


def look_at_drivers(structure: Structure) -> str:
    """Advice where constraints cannot be satisfied."""
    drivers = ", ".join(c.name for c in structure.constraints if c.kind == "driver")
    if not drivers:
        return "End the run before that, or look at the constraints that open."
    return (
        f"Look whether a driver ({drivers}) asks for more than the mechanism can reach; end before "
        "that, or let it ask for less."
    )


def _mover(column: int, structure: Structure) -> str:
    name = structure.velocities[column].name.removesuffix(".rate")
    for body in structure.bodies:
        if column not in body.columns:
            continue
        if body.posed and column in body.force:
            return f"{body.name!r} (moving along {'xyz'[body.force.index(column)]})"
        if body.posed and column in body.torque:
            return f"{body.name!r} (turning)"
        return f"{body.name!r} ({name.removeprefix(f'{body.name}.')})"
    return repr(name)


# --------------------------------------------------------------------------------------------------
# Singular configurations on the way of a motion, and what is not determined there. Concrete
# numbers, dense, in NumPy, after the motion is known.
#
# With C of unit rows, without units, of rank r next to a state a, let U and W (r columns each) hold
# its singular vectors there. The rank drops at b where D = U^T C(b) W loses its own. D is smooth in
# the motion, so that nothing has to be said of the order of singular values or of the sense of
# their vectors: between a and b det D changes its sign where one of them passes through zero. That
# it does not vanish between both is held for certain where
#
#     sigma(a) + sigma(b) > |the change of the smallest part of D| + |the change of C|^2 / gap,
#
# sigma the smallest singular value and gap the next one that is not in that part; the change of C
# is at least what the motion can make of it, and a change of velocities counts like one of D. Where
# that does not hold the interval is halved, on the constraints. What is left at last is a value of
# zero to rounding, with or without a change of sign, or a motion that comes close and does not
# pass.
# --------------------------------------------------------------------------------------------------


# Singular values below this, of rows of unit length, are zero: lengths that are off by a part d
# leave about sqrt(d).
ZERO = EXACT.rank_nearby

# Values that do not count as the rank anywhere.
_NO_RANK = 1e-7

# Modes whose change is measured, and how much more than that must be left of the values.
_LOW, _SAFETY = 2, 1.3

# Of what velocities move (characteristic lengths, radians) this much may turn up in C.
_TURNS = 0.5

# A prediction over more than this is made in parts.
_FAR = 1.0

# Newton's steps back onto the constraints, and where they end. Damped by this part of C C^T, they
# need no singular values: a tenth of the time for a hundred rows.
_NEWTON, _CLOSED, _DAMPING = 12, EXACT.neighbour_closed, 1e-13

# An interval whose middle is on another branch is entered by this part from both ends.
_ENTERING = 0.12

# States evaluated at once; halvings; states at most; rows or columns at most.
_LANES, _HALVINGS, MOST_STATES, _LARGEST = 64, 40, 50_000, 400

# Changes of sign between which nothing moves by more than the first are one passage, and one with
# all small values that are not further off than the second (characteristic lengths, radians).
_ONE, _SMALL = 1e-3, 0.05


class Passage(NamedTuple):
    """A singular configuration on the way of a motion.

    `time` (s); `rank` of C there, and `nearby`: next to it. `joints`: whose reactions are not
    unique there, and are next to it; `motions`: what can move there besides, one entry for each
    rank that is missing.
    """

    time: float
    rank: int
    nearby: int
    joints: tuple[str, ...]
    motions: tuple[str, ...]

    def __str__(self) -> str:
        text = (
            f"singular configuration at {self.time:.6g} s: rank {self.rank} there, {self.nearby} "
            "next to it"
        )
        if self.motions:
            free = "so that velocities are not determined: free to move is also"
            text = f"{text}, {free} {', '.join(self.motions)}"
        if self.joints:
            text = f"{text}; the reactions of {listed(list(self.joints))} are not unique there"
        return text


# What to do where a motion is not looked after.
_ADVICE = "ask `singularity` at single configurations"


def size_remark(structure: Structure) -> str:
    """Why a system is not looked at, where it is too large for that: what is done is dense."""
    sizes = {"rows": len(structure.rows), "velocities": structure.nv}
    word, most = max(sizes.items(), key=lambda x: x[1])
    return f"{most} {word}, and at most {_LARGEST} are looked at" if most > _LARGEST else ""


def unsearched_remark(reason: str) -> str:
    """The sentence on a motion that was not searched for passages."""
    return f"passages were not looked for: {reason}; {_ADVICE}"


def unconfirmed_remark(count: int, reason: str = "") -> str:
    """The sentence on passages that a run detected from the states on either side alone."""
    why = f" ({reason})" if reason else ""
    return (
        f"{count} of these could not be confirmed{why}, so that the motion may only come near "
        f"there; ask `singularity` at states next to {'it' if count == 1 else 'them'}"
    )


def passed_lines(
    count: int,
    times: Sequence[float] | np.ndarray,
    passed: tuple[Passage, ...],
    remark: str = "",
) -> list[str]:
    """Sentences on passages: their times where these are known, the quantities that are not
    determined in the first ones, and the intervals that were not examined."""
    if not remark and count > len(passed):
        remark = unconfirmed_remark(count - len(passed))
    remarks = [remark] if remark else []
    if not count:
        return remarks
    shown = ", ".join(f"{t:.4f}" for t in times[:8]) + (" ..." if count > 8 else "")
    configurations = "singular configuration" + "s" * (count > 1)
    return [f"passed {count} {configurations}, at {shown} s", *map(str, passed[:2]), *remarks]


class Passages(eqx.Module):
    """Singular configurations that a motion passed.

    - `times` (k,): s, NaN where there was none; `count` of them.
    - `nearby` (n, 1 + nq + nv): time, q and v of states next to the first ones, from which
      `confirmed` tells passages from near ones; None if they are known, or never will be.
    - `passed`: what is not determined there, of the first ones. `remark`: which were not confirmed,
      or not searched for, and what to try.
    """

    times: Float[Array, " k"]
    count: IntScalar
    nearby: Float[Array, "n numbers"] | None = None
    passed: tuple[Passage, ...] = eqx.field(static=True, default=())
    remark: str = eqx.field(static=True, default="")

    @classmethod
    def none(cls, dtype: Any) -> "Passages":
        """Those of a motion that passed none, or that was not watched."""
        return cls(known_array(np.zeros(0, dtype)), known_array(np.asarray(0)))

    @property
    def unconfirmed(self) -> "Passages":
        """As a run detected them: among them there may be near ones."""
        return Passages(self.times, self.count)

    def until(self, end: float) -> "Passages":
        """Those until a time (s): an event may end a run within a step."""
        if self.nearby is None or not int(self.count):
            return self.unconfirmed
        times = np.asarray(self.times)
        times = known_array(np.where(times > end, np.nan, times))
        return Passages(times, self.count, self.nearby)


class Points(NamedTuple):
    """States of a motion: `t` (n,), `q` (n, nq), `v` (n, nv) without units; `matrix` (n, rows, nv),
    and its singular vectors and values, the largest first."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    matrix: np.ndarray
    left: np.ndarray
    values: np.ndarray
    right: np.ndarray

    def at(self, which: Any) -> "Points":
        return Points(*(x[which] for x in self))


def joined(*points: Points) -> Points:
    return Points(*(np.concatenate(x) for x in zip(*points, strict=True)))


@program(compiling=Compiling.ONCE)
def _evaluate(
    system: AbstractSystem,
    q: Float[Array, "n nq"],
    step: Float[Array, "n nv"],
    t: Float[Array, " n"],
) -> tuple[Array, ...]:
    """q displaced by a step without units, and there C, Phi, dPhi/dt, all without units."""
    unit, scale = system.column_scale(), system.residual_scale()
    rest = jnp.zeros_like(unit)

    def one(q: Float[Array, " nq"], step: Float[Array, " nv"], t: Float[Array, ""]):
        at = system.retract(q, unit * step)
        matrix = system.constraint_matrix(at, rest, t) * unit[None] / scale[:, None]
        gap, drift = position_residual(system, at, t), system.velocity_offset(at, rest, t)
        return at, matrix, gap / scale, drift / scale

    return jax.vmap(one)(q, step, t)


@program(compiling=Compiling.ONCE)
def _difference(
    system: AbstractSystem, q: Float[Array, "n nq"], end: Float[Array, "n nq"]
) -> Float[Array, "n nv"]:
    unit = system.column_scale()
    return jax.vmap(lambda a, b: system.difference(a, b) / unit)(q, end)


def _anywhere(t: np.ndarray) -> np.ndarray:
    return np.full(len(t), True)


class Motion:
    """A motion between its known states. `driven`: do drivers determine it? `most`: how many states
    are evaluated."""

    def __init__(self, system: AbstractSystem, driven: bool, most: int | None = None):
        self.system = system
        self.driven = driven
        self.most = MOST_STATES if most is None else most
        self.unit = np.asarray(system.column_scale())
        self.length = float(system.characteristic_length())
        self.geometric = np.asarray(system.structure.geometric)
        self.evaluated = 0

    @property
    def full(self) -> bool:
        return self.evaluated > self.most

    # -- States

    def evaluate(self, q: np.ndarray, step: np.ndarray, t: np.ndarray) -> list[np.ndarray]:
        """As `_evaluate`, in batches of one size."""
        found = []
        self.evaluated += len(t)
        for k in range(0, len(t), _LANES):
            lanes = np.minimum(np.arange(k, k + _LANES), len(t) - 1)
            some = _evaluate(self.system, *(jnp.asarray(x[lanes]) for x in (q, step, t)))
            found.append([np.asarray(x)[: len(t) - k] for x in some])
        return [np.concatenate(x) for x in zip(*found, strict=True)]

    def closed(
        self, q: np.ndarray, step: np.ndarray, t: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Displaced by a step and led back onto the constraints; C and whether it is there."""
        q, matrix, gap, _ = self.evaluate(q, step, t)
        for _ in range(_NEWTON):
            if np.max(np.abs(gap), initial=0.0) <= _CLOSED:
                break
            rows = np.where(self.geometric[:, None], matrix, 0.0)
            step = -damped_solutions(rows, gap, _DAMPING)
            q, matrix, gap, _ = self.evaluate(q, step, t)
        return q, matrix, np.max(np.abs(gap), axis=1, initial=0.0) <= EXACT.nearly_closed

    def points(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> Points:
        """States that are known, with their matrices."""
        matrix = self.evaluate(q, np.zeros_like(v), t)[1]
        return self.decomposed(t, q, v, matrix)

    def decomposed(self, t: np.ndarray, q: np.ndarray, v: np.ndarray, matrix: np.ndarray) -> Points:
        rows = unit_rows(matrix)
        left, values, right = thin_svd(np.nan_to_num(rows))
        return Points(t, q, v, rows, left, values, np.swapaxes(right, 1, 2))

    def driven_rates(self, q: np.ndarray, t: np.ndarray) -> np.ndarray:
        _, matrix, _, drift = self.evaluate(q, np.zeros((len(t), len(self.unit))), t)
        return -shortest_solutions(matrix, drift, 1e-7)

    def between(self, a: Points, b: Points) -> Points:
        """A state a little off the middle of each interval: by a cubic, and closed."""
        part, h = 0.48, (b.t - a.t)[:, None]
        t = a.t + part * (b.t - a.t)
        way = self.differences(a.q, b.q)
        step = (
            part**2 * (3 - 2 * part) * way
            + part * (1 - part) ** 2 * h * a.v
            - part**2 * (1 - part) * h * b.v
        )
        q, matrix, _ = self.closed(a.q, step, t)
        slopes = 6 * part * (1 - part) * way / h
        v = slopes + (1 - part) * (1 - 3 * part) * a.v + part * (3 * part - 2) * b.v
        return self.decomposed(t, q, v, matrix)

    def onward(self, a: Points, h: np.ndarray) -> Points:
        """States a little later or earlier, as drivers make them."""
        t = a.t + h
        # The middle first, whose velocity is that of the second order.
        half = self.closed(a.q, h[:, None] / 2 * a.v, a.t + h / 2)[0]
        v = self.driven_rates(half, a.t + h / 2)
        q, matrix, _ = self.closed(a.q, h[:, None] * v, t)
        return self.decomposed(t, q, self.driven_rates(q, t), matrix)

    def halves(self, a: Points, b: Points, turned: np.ndarray, rank: int) -> tuple[Points, Points]:
        """Two parts of each interval. One whose middle has another sign than both ends may have
        closed on another branch there, next to this one: it is entered from both ends, by steps
        that are too short for that."""
        middle = self.between(a, b)
        lost = ~turned & _turned(a, middle, rank) & _turned(b, middle, rank) & self.driven
        if not lost.any():
            return joined(a, middle), joined(middle, b)
        begin, end, way = a.at(lost), b.at(lost), _ENTERING * (b.t - a.t)[lost]
        after, before = self.onward(begin, way), self.onward(end, -way)
        a, b, middle = a.at(~lost), b.at(~lost), middle.at(~lost)
        return joined(a, middle, begin, after, before), joined(middle, b, after, before, end)

    def differences(self, q: np.ndarray, end: np.ndarray) -> np.ndarray:
        found = []
        for k in range(0, len(q), _LANES):
            lanes = np.minimum(np.arange(k, k + _LANES), len(q) - 1)
            some = _difference(self.system, jnp.asarray(q[lanes]), jnp.asarray(end[lanes]))
            found.append(np.asarray(some)[: len(q) - k])
        return np.concatenate(found)

    def filled(self, known: Points) -> Points:
        """With states in between where known ones are far apart, one after the other, as drivers
        make them."""
        h = np.diff(known.t)
        speed = np.max(np.abs(known.v), axis=1)
        parts = np.ceil(np.maximum(speed[1:], speed[:-1]) * h / _FAR).astype(int)
        parts = np.minimum(parts, MOST_STATES // 4)
        steps = h / np.maximum(parts, 1)
        last, more = known.at(slice(None, -1)), []
        where = np.arange(len(h))
        for k in range(1, int(np.max(parts))):
            on = parts > k
            last, where, steps, parts = last.at(on), where[on], steps[on], parts[on]
            if not len(where) or self.full:
                break
            last = self.onward(last, steps)
            more.append(last)
        whole = joined(known, *more)
        return whole.at(np.argsort(whole.t, kind="stable"))

    # -- What they pass

    def zeros(
        self, points: Points, open_at: Callable[[np.ndarray], np.ndarray] = _anywhere
    ) -> "Zeros":
        """Find where the rank is lost between the first and the last of these states, and where
        that remains undecided; `open_at`: the times at which other means do not decide it."""
        if len(points.t) < 2:
            return Zeros([], 0, "")
        largest = points.values[:, :1]
        rank = int(np.max(np.sum(points.values > max(_NO_RANK, EXACT.rank) * largest, axis=1)))
        rank = int(np.max(np.sum(points.values > ZERO * largest, axis=1), initial=0)) or rank
        if rank == 0:
            return Zeros([], 0, "")
        found: list[Zero] = []
        unknown: list[Points] = []
        a, b = points.at(slice(None, -1)), points.at(slice(1, None))
        for _ in range(_HALVINGS):
            change = _change(a, b, rank)
            ends = np.minimum(a.values[:, rank - 1], b.values[:, rank - 1])
            both = np.maximum(a.values[:, rank - 1], b.values[:, rank - 1])
            there = np.where(change.turned, both, ends) < ZERO
            for k in np.flatnonzero(there & ~change.regular):
                found.append(_zero(a.at(k), b.at(k), rank, bool(change.turned[k])))
            going = ~there & ~change.regular
            long = b.t - a.t > 1e-13 * np.abs(b.t)
            full = self.full
            unknown.append(a.at(going & (~long | full)))
            going = going & long
            if full or not going.any():
                break
            a, b = self.halves(a.at(going), b.at(going), change.turned[going], rank)
        else:
            unknown.append(a)
        kept, left = _apart(found), joined(*unknown)
        left = left.at(open_at(left.t))
        return Zeros(kept, rank, _left(left, kept, self.full))

    def passage(self, own: "Zero", nearby: int) -> Passage:
        structure, point, length = self.system.structure, own.point, self.length
        rank = int(np.sum(point.values[:nearby] > 2 * ZERO))
        free = point.right[:, rank:nearby] * self.unit[:, None]
        left = point.left
        if left.shape[1] < len(left):
            left, _, _ = np.linalg.svd(point.matrix)
        joints = []
        for info in structure.constraints:
            rows = slice(info.start, info.stop)
            columns = point.matrix[rows].T
            here = np.linalg.norm(columns @ left[rows, rank:])
            there = np.linalg.norm(columns @ left[rows, nearby:])
            if here > 1e-2 and there < 1e-3:
                joints.append(info.name)
        motions = tuple(movers(free, structure, length)) if free.shape[1] else ()
        return Passage(own.time, rank, nearby, tuple(joints), motions)


def unit_rows(matrices: np.ndarray) -> np.ndarray:
    """Matrices (n, rows, nv) with rows of unit length; those of zeros stay."""
    sizes = np.linalg.norm(matrices, axis=2, keepdims=True)
    return matrices / np.where(sizes > 0, sizes, 1.0)


def _inner(a: Points, b: Points, rank: int) -> np.ndarray:
    """D of the module's description, of b next to a."""
    return np.swapaxes(a.left[:, :, :rank], 1, 2) @ b.matrix @ a.right[:, :, :rank]


def _turned(a: Points, b: Points, rank: int) -> np.ndarray:
    return np.linalg.slogdet(_inner(a, b, rank))[0] < 0


class _Change(NamedTuple):
    """`turned` (n,): did the sign change between two states? `regular` (n,): is it certain that no
    singular value vanished between them?"""

    turned: np.ndarray
    regular: np.ndarray


def _change(a: Points, b: Points, rank: int) -> _Change:
    inner, turned = _inner(a, b, rank), _turned(a, b, rank)
    low = min(_LOW, rank)
    moved = inner - a.values[:, :rank, None] * np.eye(rank)
    near = np.linalg.norm(moved[:, rank - low :, rank - low :], ord=2, axis=(1, 2))
    gap = a.values[:, rank - low - 1] if rank > low else np.ones(len(turned))
    speed = np.maximum(*(np.max(np.abs(x.v), axis=1) for x in (a, b)))
    whole = np.maximum(_size(b.matrix - a.matrix), _TURNS * speed * (b.t - a.t))
    # Where branches meet a motion may go on along another one than it came: its velocities jump.
    jump = np.max(np.abs(b.v - a.v), axis=1) * (b.t - a.t)
    least = a.values[:, rank - 1] + b.values[:, rank - 1]
    regular = least > _SAFETY * near + _TURNS * jump + whole**2 / np.maximum(gap, 1e-12)
    return _Change(turned, regular & ~turned)


def _size(matrices: np.ndarray) -> np.ndarray:
    """A bound of the largest singular values, close for matrices with a few entries a row."""
    entries = np.abs(matrices)
    sums = (np.max(np.sum(entries, axis=k), axis=1, initial=0.0) for k in (1, 2))
    return np.minimum(np.sqrt(np.prod([*sums], axis=0)), np.linalg.norm(matrices, axis=(1, 2)))


class Zero(NamedTuple):
    """A time at which the smallest singular value vanishes, the known state next to it with that
    `value`, the `speed` there, and whether the sign changed."""

    time: float
    point: Points
    value: float
    speed: float
    turned: bool


class Zeros(NamedTuple):
    """The zeros that were `found`, the `rank` next to them, and a `remark` on intervals that could
    not be decided."""

    found: list[Zero]
    rank: int
    remark: str


def _zero(a: Points, b: Points, rank: int, turned: bool) -> Zero:
    """The zero of the least singular value within an interval."""
    one, other = float(a.values[rank - 1]), float(b.values[rank - 1])
    closest = a if one <= other else b
    between = turned and one + other > 0
    time = a.t + (b.t - a.t) * one / (one + other) if between else closest.t
    speed = float(np.max(np.abs(closest.v)))
    return Zero(float(time), closest, min(one, other), speed, turned)


def _apart(found: list[Zero]) -> list[Zero]:
    """Each passage once, in the order of times. Next to a change of sign values are small too."""
    kept: list[Zero] = []
    for own in sorted(found, key=lambda own: (not own.turned, own.value)):
        near = (_ONE if own.turned and other.turned else _SMALL for other in kept)
        ways = (abs(own.time - other.time) * max(own.speed, other.speed) for other in kept)
        if all(way > least for way, least in zip(ways, near, strict=True)):
            kept.append(own)
    return sorted(kept, key=lambda own: own.time)


def _left(unknown: Points, found: list[Zero], full: bool) -> str:
    """A sentence on intervals that could not be decided, by their beginnings; `full`: because no
    more states could be examined. Those next to a passage are left out."""
    speeds = np.max(np.abs(unknown.v), axis=1, initial=0.0)
    left = np.full(len(speeds), True)
    for own in found:
        left &= np.abs(unknown.t - own.time) * np.maximum(speeds, own.speed) > _SMALL
    times = np.sort(unknown.t[left])
    if not len(times):
        return ""
    if full:
        return (
            f"the search for singular configurations ended after {MOST_STATES} states, so that "
            f"there may be more from {times[0]:.4g} s on; ask for less of the motion at once, and "
            f"{_ADVICE}"
        )
    places = list(dict.fromkeys(f"{t:.4g} s" for t in times))
    near = ", ".join(places[:4]) + (" ..." if len(places) > 4 else "")
    return (
        f"near {near} the motion passes a singular configuration, or comes so close to one that "
        f"states before and after it may be of different branches, which could not be told; ask "
        f"for more times there, and {_ADVICE}"
    )


# --------------------------------------------------------------------------------------------------
# The passages of a motion, after it is known: of a driven one all of them, of a run those that it
# detected from the states on either side.
#
# Next to a passage the smallest singular value is a straight line on either side of it. So a few
# states, of all passages at once, lead to one in which it is zero to rounding, and with it whatever
# else vanishes there. That is enough for a passage that a run detected. Where it does not lead
# there, and in driven motions, a search that passes over nothing decides between a
# passage and a motion that only comes near one; it ends near the zeros, to which such states then
# lead.
# --------------------------------------------------------------------------------------------------


# This far around a state that a run detected a passage is looked for (characteristic lengths,
# radians), and the places, in parts of that, at which values are taken first.
_REACH = 0.05
_AROUND = np.array([-1.0, -0.25, 0.25, 1.0])

# The same of zeros that the search found.
_NEXT = 1e-3

# A zero within this part of it of the time at which a passage is expected belongs to that.
_ITS = 0.3

# A passage is approached so many times at most, by a straight line. Below the second a value is
# rounding: the root of that of lengths in a closed configuration.
_LINES, _ROUNDING = 5, 1e-7

# What is spent on the passages of a run (states times the cube of rows or velocities): half a
# minute.
_PATIENCE = 2e10


def passages_between(
    system: AbstractSystem,
    times: np.ndarray,
    q: np.ndarray,
    v: np.ndarray,
    regular: np.ndarray,
) -> tuple[tuple[Passage, ...], str]:
    """On a motion that drivers determine, known at some times; and where it was not looked.
    `regular`: are the steps from each time before known to have kept the rank?"""
    structure = system.structure
    if len(times) < 2 or not len(structure.rows):
        return (), ""
    too_large = size_remark(structure)
    if too_large:
        before = [f"{t:.4g} s" for t in times[~regular]]
        near = f". The motion passes one, or comes near one, just before {listed(before[:4])}"
        return (), unsearched_remark(too_large) + (near if before else "")
    motion = Motion(system, driven=True)
    known = motion.points(*(np.asarray(x) for x in (times, q, v / motion.unit)))

    def open_at(t: np.ndarray) -> np.ndarray:
        return ~regular[np.minimum(np.searchsorted(times, t, side="right"), len(times) - 1)]

    zeros = motion.zeros(motion.filled(known), open_at)
    return _passages_at(motion, zeros), zeros.remark


def _passages_at(motion: Motion, zeros: Zeros) -> tuple[Passage, ...]:
    """The passages at zeros that a search found, from the states nearest to them. (Where the search
    ends many values that vanish with the least one are larger than what counts as zero.)"""
    if not zeros.found:
        return ()
    point = Points(*map(np.stack, zip(*(own.point for own in zeros.found), strict=True)))
    times = np.array([own.time for own in zeros.found])
    ranks = np.full(len(times), zeros.rank)
    nearest = _nearest_passages(motion, times, (point.t, point.q, point.v), _NEXT, ranks)
    return tuple(
        nearest[k] if k in nearest else motion.passage(own, zeros.rank)
        for k, own in enumerate(zeros.found)
    )


class Confirmation:
    """A search around the passages that a run detected from the states on either side. The number
    of states that it evaluates is bounded for all of them together."""

    def __init__(self, system: AbstractSystem):
        self._too_large = size_remark(system.structure)
        # Each state costs some decompositions of C.
        size = max(len(system.structure.rows), system.structure.nv)
        self._motion = Motion(system, driven=False, most=int(min(MOST_STATES, _PATIENCE / size**3)))

    def __call__(
        self, times: np.ndarray, t: np.ndarray, q: np.ndarray, v: np.ndarray
    ) -> list[tuple[Passage | None, str]]:
        """The passage next to each of these states (n,) of any motion, as that moves on evenly on
        the constraints; or none, and why this could not be found out, if it could not: then there
        may be one. `times` (n,): about when they are passed."""
        if self._too_large:
            return [(None, self._too_large)] * len(t)
        v = v / self._motion.unit
        found = _nearest_passages(self._motion, times, (t, q, v), _REACH)
        return [
            (found[k], "") if k in found else self._searched(*state)
            for k, state in enumerate(zip(t, q, v, strict=True))
        ]

    def _searched(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[Passage | None, str]:
        """One of them by a search that passes over nothing."""
        motion = self._motion
        ended = f"the search ends after {motion.most} states"
        if motion.full:
            return None, ended
        speed = float(np.max(np.abs(v)))
        if not (np.isfinite(speed) and speed > 0):
            return None, "nothing moves there"
        ahead = np.linspace(-_REACH, _REACH, 9) / speed
        rates, start = np.tile(v, (len(ahead), 1)), np.tile(q, (len(ahead), 1))
        closed, _, ok = motion.closed(start, ahead[:, None] * rates, t + ahead)
        if not ok.all():
            return None, "the mechanism could not be closed around them"
        zeros = motion.zeros(motion.points(t + ahead, closed, rates))
        closest = sorted(zeros.found, key=lambda own: abs(own.time - t))[:1]
        if closest:
            return _passages_at(motion, zeros._replace(found=closest))[0], ""
        if not zeros.remark:
            return None, ""
        return None, ended if motion.full else "the motion may change its branch there"


class _Answer(NamedTuple):
    """Confirmed passages of states of a motion `nearby` of a `system`."""

    nearby: "weakref.ref[Array]"
    system: AbstractSystem
    passages: Passages


# What was confirmed, by the identity of the states: printing asks for it several times.
_ANSWERS: dict[int, _Answer] = {}


def confirmed(system: AbstractSystem, found: Passages) -> Passages:
    """Passages that a run detected from the states on either side, without those that it only came
    near, and with what is not determined there. Evaluated on first use. Traced ones, and those of
    many runs, are left as they were detected."""
    nearby = found.nearby
    traced = any(isinstance(x, Tracer) for x in jax.tree.leaves((system, found)))
    if nearby is None or traced or found.times.ndim > 1:
        return found
    key = id(nearby)
    known = _ANSWERS.get(key)
    if known is None or known.nearby() is not nearby or known.system is not system:
        # The run may be one of outside a function that is being traced.
        with jax.ensure_compile_time_eval():
            answer = _confirmed(system, found, np.asarray(nearby))
        forget = weakref.ref(nearby, lambda _: _ANSWERS.pop(key, None))
        known = _ANSWERS[key] = _Answer(forget, system, answer)
    return known.passages


def _confirmed(system: AbstractSystem, found: Passages, states: np.ndarray) -> Passages:
    count, times = int(found.count), np.array(found.times)
    passed: list[Passage] = []
    reasons: list[str] = []
    which = np.flatnonzero(np.isfinite(times[: min(count, len(states))]))
    t, q, v = np.split(states[which], [1, 1 + system.structure.nq], axis=1)
    asked = Confirmation(system)(times[which], t[:, 0], q, v)
    for k, (own, unknown) in zip(which, asked, strict=True):
        reasons += [unknown] if unknown else []
        if own is not None:
            # When it is there the run knows better: around that state it was taken to move evenly.
            passed.append(own._replace(time=float(times[k])))
        elif not unknown:
            times[k] = np.nan
    kept = times[np.isfinite(times)]
    count -= min(count, len(times)) - len(kept)
    reasons = reasons or [f"the first {len(states)} are looked at"]
    unknown = count - len(passed)
    times = np.append(kept, np.full(len(times) - len(kept), np.nan))
    return Passages(
        known_array(times),
        known_array(np.asarray(count)),
        passed=tuple(passed),
        remark=unconfirmed_remark(unknown, reasons[0]) if unknown else "",
    )


def _nearest_passages(
    motion: Motion,
    expected: np.ndarray,
    states: tuple[np.ndarray, np.ndarray, np.ndarray],
    reach: float,
    ranks: np.ndarray | None = None,
) -> dict[int, Passage]:
    """The passages on straight lines through states (t, q, v of n), as far as that (characteristic
    lengths, radians), by the number of the state: see `_Lines`."""
    speed = np.max(np.abs(states[2]), axis=1, initial=0.0)
    moving = np.flatnonzero(np.isfinite(speed) & (speed > 0))
    if not len(moving):
        return {}
    t, q, v = (x[moving] for x in states)
    lines = _Lines(motion, expected[moving], t, q, v, reach / speed[moving])
    found = lines.passages(None if ranks is None else ranks[moving])
    return {int(moving[k]): passage for k, passage in found.items()}


class _States(NamedTuple):
    """States on lines: times `t` (n,), `q` (n, nq), rates `v` (n, nv) and `matrix` (n, rows, nv),
    without units."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    matrix: np.ndarray

    def at(self, which: Any) -> "_States":
        return _States(*(x[which] for x in self))


class _Nearest(NamedTuple):
    """The state with the least `value` on a line until now, and its `time` (s)."""

    time: float
    value: float
    state: _States


class _Lines:
    """Straight lines through states of a motion, each next to a passage: times `t` (s), `q`, and
    rates `v` without units. `expected`: about when the passages are (s); `reach`: how far around
    that they are looked for (s)."""

    def __init__(
        self,
        motion: Motion,
        expected: np.ndarray,
        t: np.ndarray,
        q: np.ndarray,
        v: np.ndarray,
        reach: np.ndarray,
    ):
        self._motion, self._t, self._q, self._v = motion, t, q, v
        self._reach = reach
        self._center = np.clip(expected, t - reach, t + reach)

    def passages(self, known: np.ndarray | None) -> dict[int, Passage]:
        """The passages of those lines on which the value of the rank next to them vanishes about
        when it is expected. `known` (n,): those ranks, where they are."""
        times = self._center[:, None] + self._reach[:, None] * _AROUND
        states, values = self._states(np.arange(len(times)), times)
        ranks = np.max(np.sum(values > ZERO * values[..., :1], axis=2), axis=1, initial=0)
        ranks = ranks if known is None else known
        least = _of_rank(values, ranks[:, None])
        # A pair of places with the zero between them makes it less steep than it is.
        apart = self._reach[:, None] * np.diff(_AROUND)
        slopes = np.max(np.abs(np.diff(least, axis=1)) / apart, axis=1)
        which = np.flatnonzero(np.isfinite(least).all(axis=1) & (ranks > 0) & (slopes > 0))
        nearest: dict[int, _Nearest] = {}
        states = states.at((which[:, None] * len(_AROUND) + np.arange(len(_AROUND))).ravel())
        times, least = times[which], np.where(np.abs(_AROUND) <= _ITS, least[which], np.nan)
        for _ in range(1 + _LINES):
            which = _approached(nearest, which, times, least, states)
            if not len(which) or self._motion.full:
                break
            # The value does not say on which side of the zero it is.
            middle, value = np.array([nearest[k][:2] for k in which.tolist()]).T
            times = middle[:, None] + np.outer(value / slopes[which], [-1.0, 1.0])
            states, values = self._states(which, times)
            # Another one may be near.
            inside = np.abs(times - self._center[which, None]) <= _ITS * self._reach[which, None]
            least = np.where(inside, _of_rank(values, ranks[which, None]), np.nan)
        found = {k: own for k, own in nearest.items() if own.value < ZERO}
        if not found:
            return {}
        at = _States(*map(np.stack, zip(*(own.state for own in found.values()), strict=True)))
        points = self._motion.decomposed(*at)
        return {
            k: self._motion.passage(
                Zero(own.time, points.at(n), own.value, 0.0, False), int(ranks[k])
            )
            for n, (k, own) in enumerate(found.items())
        }

    def _states(self, which: np.ndarray, times: np.ndarray) -> tuple[_States, np.ndarray]:
        """The states of these lines at times (n, k), led back onto the constraints, one after the
        other, and their singular values (n, k, values): NaN where they could not be closed."""
        own, t = np.repeat(which, times.shape[1]), times.ravel()
        q, v = self._q[own], self._v[own]
        q, matrix, met = self._motion.closed(q, (t - self._t[own])[:, None] * v, t)
        values = singular_values(np.nan_to_num(unit_rows(matrix)))
        values = np.where(met[:, None], values, np.nan)
        return _States(t, q, v, matrix), values.reshape(*times.shape, -1)


def _approached(
    nearest: dict[int, _Nearest],
    which: np.ndarray,
    times: np.ndarray,
    least: np.ndarray,
    states: _States,
) -> np.ndarray:
    """Those of the lines that came nearer to their zeros, and not yet to rounding. `times`, `least`
    (n, k): of their new states."""
    following = []
    for n, own in enumerate(which.tolist()):
        finite = np.where(np.isfinite(least[n]), least[n], np.inf)
        k = int(np.argmin(finite))
        value = float(finite[k])
        if value < (nearest[own].value if own in nearest else np.inf):
            state = states.at(n * times.shape[1] + k)
            nearest[own] = _Nearest(float(times[n, k]), value, state)
            following += [own] if value > _ROUNDING else []
    return np.array(following, dtype=int)


def _of_rank(values: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """The least of as many values (..., k), in descending order, as the rank says."""
    places = np.broadcast_to(np.maximum(ranks, 1) - 1, values.shape[:-1])
    return np.take_along_axis(values, places[..., None], axis=-1)[..., 0]
