"""Forces and torques of joints as they are drawn at one state: arrows where they are unique, and
where they are not the bars and boxes between whose ends they lie.
"""

import enum
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from .._verdict import UNIQUE
from ..report._contents import Contents


class Shown(enum.Enum):
    """Quantities that arrows can show, in the words of the page."""

    FORCES = "forces"
    TORQUES = "torques"
    NOTHING = "nothing"


_WORD = {Shown.FORCES: "force", Shown.TORQUES: "torque"}
_UNIT = {Shown.FORCES: "N", Shown.TORQUES: "N m"}

# The length of the longest arrow, and of what has no bound, to each side, over the diagonal of the
# scene; what is shorter than the third is not drawn.
_LONGEST, _UNBOUNDED, _SHORTEST = 0.2, 0.1, 1e-3

# A line of dashes has so many of them.
_DASHES = 9

Segments = Float[np.ndarray, "n 2 3"]


class Loads(NamedTuple):
    """Segments that show reactions (m).

    - `arrows`: what is unique, from where it acts; `doubtful`: the same at a state whose ranks are
      marginal.
    - `bars`: on a line, between whose ends the tip of the arrow lies, and `boxes`: the edges of the
      box in which it lies, with lines to where it acts.
    - `unbounded`: dashes towards where nothing bounds it.
    - `longest`: the largest number of an arrow or a bound at all states, which has the length of
      the longest arrow; empty words where there is none.
    """

    arrows: Segments
    doubtful: Segments
    bars: Segments
    boxes: Segments
    unbounded: Segments
    longest: str


class _Vectors(NamedTuple):
    """Forces or torques of a constraint at n states: where they act, and their least and greatest
    components, in space. NaN where there is no answer; `unique`: are all components?"""

    constraint: int
    unique: Bool[np.ndarray, " n"]
    origin: Float[np.ndarray, "n 3"]
    low: Float[np.ndarray, "n 3"]
    high: Float[np.ndarray, "n 3"]


def largest_of(contents: Contents, shown: Shown) -> float:
    """The largest number that is drawn as an arrow or as the end of a range, at all states: one
    scale for a whole motion."""
    largest = 0.0
    for own in _vectors(contents, shown):
        ends = np.stack([own.low, own.high])
        drawn = ~np.any(np.isnan(ends), axis=(0, 2)) & ~_unbounded(own.low, own.high)
        known = np.isfinite(ends) & drawn[:, None]
        largest = max(largest, float(np.max(np.abs(ends), initial=0.0, where=known)))
    return largest


def loads_of(
    contents: Contents, state: int, shown: Shown, size: float, largest: float | None = None
) -> Loads:
    """Segments of one state.

    **Arguments:** `size`: the diagonal of the scene (m); `largest`: as of `largest_of`, where it is
    known.
    """
    none = np.zeros((0, 2, 3))
    if shown is Shown.NOTHING:
        return Loads(none, none, none, none, none, "")
    if largest is None:
        largest = largest_of(contents, shown)
    scale = _LONGEST * size / largest if largest > 0 else 0.0
    arrows, bars, boxes, unbounded = [], [], [], []
    for own in _vectors(contents, shown):
        start, low, high = (x[state] for x in (own.origin, own.low, own.high))
        if np.any(np.isnan([low, high])):
            continue
        if own.unique[state]:
            if np.linalg.norm(scale * low) > _SHORTEST * size:
                arrows.append((start, start + scale * low))
            continue
        ways, reach = _directions(contents, state, own.constraint, shown), _UNBOUNDED * size
        if _unbounded(low, high):
            for way in ways:
                unbounded += _dashes(start - reach * way, start + reach * way)
        elif len(ways) == 1:
            ends, way, open_ = _line(low, high, ways[0])
            several = ends if np.any(ends[0] != ends[1]) else ends[:1]
            if len(several) > 1:
                bars.append((start + scale * ends[0], start + scale * ends[1]))
            boxes += [(start, start + scale * x) for x in several if np.any(scale * x)]
            for end, side, free in zip(ends, (-reach, reach), open_, strict=True):
                begin = start + scale * end
                unbounded += _dashes(begin, begin + side * way) if free else []
        else:
            span = np.stack([_least(low, high), -_least(-high, -low)])
            nearest = np.clip(0.0, *span)
            edges = _box(start, scale * span[0], scale * span[1])
            # A box that is a point has no edges.
            boxes += edges or [(start, start + scale * nearest)] * bool(np.any(nearest))
            for axis in np.flatnonzero(low < high):
                for side, end in ((-reach, low), (reach, high)):
                    if np.isinf(end[axis]):
                        at = nearest.copy()
                        at[axis] = span[int(side > 0), axis]
                        begin = start + scale * at
                        unbounded += _dashes(begin, begin + side * np.eye(3)[axis])
    words = f"{largest:.4g} {_UNIT[shown]}" if largest > 0 else ""
    told, doubt = (none, _stacked(arrows)), bool(contents.solvability.doubtful[state])
    sure, doubtful = told if doubt else told[::-1]
    return Loads(sure, doubtful, _stacked(bars), _stacked(boxes), _stacked(unbounded), words)


def _unbounded(
    low: Float[np.ndarray, "*n 3"], high: Float[np.ndarray, "*n 3"]
) -> Bool[np.ndarray, " *n"]:
    """Is nothing known of what is not unique?"""
    several = low < high
    return np.any(several, axis=-1) & np.all(~several | (np.isinf(low) & np.isinf(high)), axis=-1)


def _least(low: Float[np.ndarray, "3"], high: Float[np.ndarray, "3"]) -> Float[np.ndarray, "3"]:
    """The least components that are drawn solid: where there is no least one, zero if it lies
    within the range, else the greatest."""
    return np.where(np.isneginf(low), np.minimum(high, 0.0), low)


def _line(
    low: Float[np.ndarray, "3"], high: Float[np.ndarray, "3"], way: Float[np.ndarray, "3"]
) -> tuple[list[np.ndarray], np.ndarray, tuple[bool, bool]]:
    """Ends of the bar on a line of which ranges of components are those of its ends, the direction
    from the first to the second, and which of them nothing bounds. There the bar ends where the
    tip is nearest to where the vector acts."""
    way = way * np.sign(way[np.argmax(np.abs(way))])
    first, last = np.where(way >= 0, low, high), np.where(way >= 0, high, low)
    open_ = bool(np.any(np.isinf(first))), bool(np.any(np.isinf(last)))
    if open_ == (False, False):
        return [first, last], way, open_
    if open_ == (True, True):
        # (Of what is bounded at neither end something is known only by rounding.)
        middle = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
        return [middle, middle], way, open_
    known = last if open_[0] else first
    beyond = -(known @ way) * way
    inside = (beyond @ way) * (1.0 if open_[1] else -1.0) > 0
    other = known + beyond if inside else known
    return ([other, known] if open_[0] else [known, other]), way, open_


def _stacked(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Segments:
    return np.array(pairs, float).reshape(-1, 2, 3)


def _vectors(contents: Contents, shown: Shown) -> Iterator[_Vectors]:
    """Vectors of all states."""
    if shown is Shown.NOTHING:
        return
    reactions, word = contents.reactions, _WORD[shown]
    points = np.asarray(reactions.point)
    planar = points.shape[2] == 2
    for constraint, place in enumerate(reactions.layout.seconds):
        own = [
            (k, component)
            for k, component in enumerate(contents.components)
            if component.constraint == constraint and component.what == word
        ]
        if place < 0 or not own:
            continue
        low, high, origin = (np.zeros((len(points), 3)) for _ in range(3))
        every = np.all(contents.verdicts[:, [k for k, _ in own]] == UNIQUE, axis=1)
        for k, component in own:
            axis = 2 if planar and shown is Shown.TORQUES else component.place
            unique = contents.verdicts[:, k] == UNIQUE
            value = contents.values[:, k]
            value = np.where(np.abs(value) <= component.rounding, 0.0, value)
            low[:, axis] = np.where(unique, value, contents.bands.low[:, k])
            high[:, axis] = np.where(unique, value, contents.bands.high[:, k])
        origin[:, : points.shape[2]] = points[:, place]
        yield _Vectors(constraint, every, origin, low, high)


def _directions(
    contents: Contents, state: int, constraint: int, shown: Shown
) -> Float[np.ndarray, "d 3"]:
    spread = contents.spread
    if constraint not in spread.constraints:
        return np.zeros((0, 3))
    place, part = spread.constraints.index(constraint), list(_WORD).index(shown)
    count = int(spread.count[state, place, part])
    # Of all directions of space any three are those of the axes.
    return np.eye(3) if count == 3 else spread.directions[state, place, part, :count]


def _dashes(start: np.ndarray, end: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """A line of dashes, of which the first and the last end at its ends."""
    ends = start + np.linspace(0.0, 1.0, 2 * _DASHES)[:, None] * (end - start)
    return list(zip(ends[::2], ends[1::2], strict=True))


def _box(
    start: np.ndarray, low: np.ndarray, high: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Edges of the box of the ranges of components."""
    ends, found = np.stack([low, high]), []
    several = [(0, 1) if high[k] > low[k] else (0,) for k in range(3)]
    for axis in range(3):
        if len(several[axis]) == 1:
            continue
        one, other = (axis + 1) % 3, (axis + 2) % 3
        for m in several[one]:
            for n in several[other]:
                edge = np.stack([start, start])
                edge[:, one] += ends[m, one]
                edge[:, other] += ends[n, other]
                edge[:, axis] += ends[:, axis]
                found.append((edge[0], edge[1]))
    return found
