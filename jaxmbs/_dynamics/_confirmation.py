"""The passages of a motion, after it is known: of a driven one all of them, of a run those that it
detected from the states on either side.

Next to a passage the smallest singular value is a straight line on either side of it. So a few
states, of all passages at once, lead to one in which it is zero to rounding, and with it whatever
else vanishes there. That is enough for a passage that a run detected. Where it does not lead there,
and in driven motions, a search that passes over nothing (`_passages.py`) decides between a passage
and a motion that only comes near one; it ends near the zeros, to which such states then lead.
"""

from typing import Any, NamedTuple

import numpy as np

from .._checks import listed
from .._linalg._concrete_rank import singular_values
from .._system import AbstractSystem
from ._passages import (
    MOST_STATES,
    Motion,
    Passage,
    Points,
    size_remark,
    unit_rows,
    unsearched_remark,
    ZERO,
    Zero,
    Zeros,
)


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
