"""Changes of the rank of the constraints between two designs."""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import Numbers, RealScalarLike, Setting
from .._linalg._concrete_rank import values_and_rank
from ._constraints import scaled
from ._guard import succeeded
from ._study import design_vector, states, Study


# A singular value below this part of the largest is zero at the place where it is least: next to
# a singular configuration a mechanism closes only to the root of rounding.
_ZERO = 1e-6
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
    if min(values) > _ZERO:
        return []
    rank = int(first.ranks.min())
    lower = _rank_at_zero(way, fraction)
    return [RankChange(fraction, way.study.named(way.design(fraction)), rank, lower, rank)]


def _rank_at_zero(way: _PathState, fraction: float) -> int:
    found = scaled(states(way.study, way.design(fraction)))
    return min(values_and_rank(m, _ZERO)[1] for m in found.matrix)
