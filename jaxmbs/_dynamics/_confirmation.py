"""Confirmation of the passages that a run detected from the states on either side, after the motion
is known (`_passages.py`).

Next to a passage the smallest singular value is a straight line on either side of it. So three or
four states of each, of all passages at once, lead to a state in which it is zero to rounding, and
with it whatever else vanishes there. Where they do not, a search that passes over nothing decides
between a passage and a motion that only comes near one.
"""

from typing import Any, NamedTuple

import numpy as np

from .._linalg._concrete_rank import singular_values
from .._system import AbstractSystem
from ._passages import MOST_STATES, Motion, Passage, size_remark, unit_rows, ZERO, Zero


# This far around a state that a run detected a passage is looked for (characteristic lengths,
# radians), and the places, in parts of that, at which values are taken first.
_REACH = 0.05
_AROUND = np.array([-1.0, -0.25, 0.25, 1.0])

# A passage is approached so many times at most, by a straight line. Below the second a value is
# rounding: the root of that of lengths in a closed configuration.
_LINES, _ROUNDING = 5, 1e-7

# What is spent on the passages of a run (states times the cube of rows or velocities): half a
# minute.
_PATIENCE = 2e10


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
        found: dict[int, Passage] = {}
        speed = np.max(np.abs(v), axis=1, initial=0.0)
        moving = np.flatnonzero(np.isfinite(speed) & (speed > 0))
        if len(moving):
            lines = _Lines(self._motion, *(x[moving] for x in (times, t, q, v, speed)))
            found = {int(moving[k]): passage for k, passage in lines.passages().items()}
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
        found, remark = motion.passages(motion.points(t + ahead, closed, rates))
        closest = min(found, key=lambda own: abs(own.time - t), default=None)
        if closest is not None or not remark:
            return closest, ""
        return None, ended if motion.full else "the motion may change its branch there"


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
    rates `v` without units. `expected`: about when the passages are (s)."""

    def __init__(
        self,
        motion: Motion,
        expected: np.ndarray,
        t: np.ndarray,
        q: np.ndarray,
        v: np.ndarray,
        speed: np.ndarray,
    ):
        self._motion, self._t, self._q, self._v = motion, t, q, v
        self._reach = _REACH / speed
        self._center = np.clip(expected, t - self._reach, t + self._reach)

    def passages(self) -> dict[int, Passage]:
        """The passages of those lines on which the value of the rank next to them vanishes."""
        times = self._center[:, None] + self._reach[:, None] * _AROUND
        states, values = self._states(np.arange(len(times)), times)
        ranks = np.max(np.sum(values > ZERO * values[..., :1], axis=2), axis=1, initial=0)
        least = _of_rank(values, ranks[:, None])
        # A pair of places with the zero between them makes it less steep than it is.
        slopes = np.max(np.abs(np.diff(least, axis=1) / np.diff(times, axis=1)), axis=1)
        which = np.flatnonzero(np.isfinite(least).all(axis=1) & (ranks > 0) & (slopes > 0))
        nearest: dict[int, _Nearest] = {}
        states = states.at((which[:, None] * len(_AROUND) + np.arange(len(_AROUND))).ravel())
        times, least = times[which], least[which]
        for _ in range(1 + _LINES):
            which = _approached(nearest, which, times, least, states)
            if not len(which) or self._motion.full:
                break
            # The value does not say on which side of the zero it is.
            middle, value = np.array([nearest[k][:2] for k in which.tolist()]).T
            times = middle[:, None] + np.outer(value / slopes[which], [-1.0, 1.0])
            states, values = self._states(which, times)
            inside = np.abs(times - self._center[which, None]) <= self._reach[which, None]
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
        k = int(np.argmin(np.where(np.isfinite(least[n]), least[n], np.inf)))
        value = float(least[n, k])
        if value < (nearest[own].value if own in nearest else np.inf):
            state = states.at(n * times.shape[1] + k)
            nearest[own] = _Nearest(float(times[n, k]), value, state)
            following += [own] if value > _ROUNDING else []
    return np.array(following, dtype=int)


def _of_rank(values: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """The least of as many values (..., k), in descending order, as the rank says."""
    places = np.broadcast_to(np.maximum(ranks, 1) - 1, values.shape[:-1])
    return np.take_along_axis(values, places[..., None], axis=-1)[..., 0]
