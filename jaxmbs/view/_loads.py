"""Forces and torques of joints as they are drawn at one state: arrows where they are unique, and
where they are not the bars and boxes between whose ends they lie.
"""

import enum
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .._verdict import UNIQUE
from ..report._contents import Contents


class Shown(enum.Enum):
    """What is drawn of reactions, in the words of the page."""

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
    """What is drawn of reactions: segments in space (m).

    - `arrows`: what is unique, from where it acts.
    - `bars`: on a line, between whose ends the tip of the arrow lies, and `boxes`: the edges of the
      box in which it lies, with lines to where it acts.
    - `unbounded`: dashes along the directions in which nothing bounds it.
    - `longest`: the largest number of an arrow or a bound; empty words where there is none.
    """

    arrows: Segments
    bars: Segments
    boxes: Segments
    unbounded: Segments
    longest: str


class _Vector(NamedTuple):
    """A force or torque of a constraint: where it acts (3,), its least and greatest components (3,)
    in space, and the directions in which it is not unique."""

    origin: Float[np.ndarray, "3"]
    low: Float[np.ndarray, "3"]
    high: Float[np.ndarray, "3"]
    directions: Float[np.ndarray, "d 3"]


def loads_of(contents: Contents, state: int, shown: Shown, size: float) -> Loads:
    """What is drawn of a state; `size`: the diagonal of the scene (m)."""
    none = np.zeros((0, 2, 3))
    if shown is Shown.NOTHING:
        return Loads(none, none, none, none, "")
    every = list(_vectors(contents, state, shown))
    ends = [np.abs(x) for own in every for x in (own.low, own.high)]
    known = [x for own in ends for x in own[np.isfinite(own)]]
    largest = max(known, default=0.0)
    scale = _LONGEST * size / largest if largest > 0 else 0.0
    arrows, bars, boxes, unbounded = [], [], [], []
    for own in every:
        start = own.origin
        if not np.all(np.isfinite(own.low) & np.isfinite(own.high)):
            reach = _UNBOUNDED * size
            for way in own.directions:
                unbounded += _dashes(start - reach * way, start + reach * way)
            continue
        low, high = scale * own.low, scale * own.high
        if np.array_equal(own.low, own.high):
            if np.linalg.norm(low) > _SHORTEST * size:
                arrows.append((start, start + low))
        elif len(own.directions) == 1:
            ends = _bar(start, low, high, own.directions[0])
            bars.append(ends)
            boxes += [(start, end) for end in ends]
        else:
            boxes += _box(start, low, high)
    words = f"{largest:.4g} {_UNIT[shown]}" if largest > 0 else ""
    return Loads(_stacked(arrows), _stacked(bars), _stacked(boxes), _stacked(unbounded), words)


def _stacked(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Segments:
    return np.array(pairs, float).reshape(-1, 2, 3)


def _vectors(contents: Contents, state: int, shown: Shown) -> Iterator[_Vector]:
    """Vectors that are known, or known between bounds."""
    reactions, word = contents.reactions, _WORD[shown]
    points = np.asarray(reactions.point)[state]
    planar = points.shape[1] == 2
    for constraint, place in enumerate(reactions.layout.seconds):
        own = [
            (k, component)
            for k, component in enumerate(contents.components)
            if component.constraint == constraint and component.what == word
        ]
        if place < 0 or not own:
            continue
        low, high = np.zeros(3), np.zeros(3)
        for k, component in own:
            axis = 2 if planar and shown is Shown.TORQUES else component.place
            unique = contents.verdicts[state, k] == UNIQUE
            value = contents.values[state, k]
            if abs(value) <= component.rounding:
                value = 0.0
            low[axis] = value if unique else contents.bands.low[state, k]
            high[axis] = value if unique else contents.bands.high[state, k]
        if np.any(np.isnan(low) | np.isnan(high)):
            continue
        origin = np.zeros(3)
        origin[: points.shape[1]] = points[place]
        yield _Vector(origin, low, high, _directions(contents, state, constraint, shown))


def _directions(
    contents: Contents, state: int, constraint: int, shown: Shown
) -> Float[np.ndarray, "d 3"]:
    spread = contents.spread
    if constraint not in spread.constraints:
        return np.zeros((0, 3))
    place, part = spread.constraints.index(constraint), list(_WORD).index(shown)
    count = int(spread.count[state, place, part])
    return spread.directions[state, place, part, :count]


def _dashes(start: np.ndarray, end: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """A line of dashes, of which the first and the last end at its ends."""
    ends = start + np.linspace(0.0, 1.0, 2 * _DASHES)[:, None] * (end - start)
    return list(zip(ends[::2], ends[1::2], strict=True))


def _bar(
    start: np.ndarray, low: np.ndarray, high: np.ndarray, way: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the line on which the tip lies: ranges of components are those of its ends."""
    along = way * way[np.argmax(np.abs(way))] >= 0
    return start + np.where(along, low, high), start + np.where(along, high, low)


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
