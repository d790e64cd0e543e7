"""Results of studies."""

from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from .. import _html
from .._dynamics import Trajectory
from .._solvability._report import format_table
from ._problem import FINE, sentence
from ._study import Study


_HEADER = ("parameter", "unit", "from", "to", "")


class Visit(NamedTuple):
    """One iterate: the design by names, and the objective (infinite where it failed)."""

    design: dict[str, float]
    value: float


class Optimum(eqx.Module):
    """Result of a study.

    - `design`: the best design, by names; `value` of the objective there, `start_value` at the
      start, in the objective's `unit`. `constraints`: what each constraint's function is there.
    - `converged`, `message`: as reported by the optimiser. `failed`: designs that were tried and
      could not be computed.
    - `history`: every iterate; `bounds` by names; `study`.
    - `start_response`, `response`: the states of the start and of the best design.
    """

    design: dict[str, float]
    value: float
    start_value: float
    unit: str
    constraints: tuple[float, ...]
    converged: bool
    message: str
    failed: int
    history: tuple[Visit, ...]
    bounds: dict[str, tuple[float, float]]
    study: Study
    start_response: Trajectory
    response: Trajectory

    @property
    def values(self) -> Float[np.ndarray, " visits"]:
        """The objective at every iterate."""
        return np.array([visit.value for visit in self.history])

    def at_bound(self, name: str) -> bool:
        """Does this parameter end at one of its bounds?"""
        low, high = self.bounds[name]
        return min(self.design[name] - low, high - self.design[name]) <= 1e-6 * (high - low)

    def _lines(self) -> list[tuple[str, ...]]:
        """The table of parameters."""
        return [
            (
                name,
                self.study.subject.unit(name),
                f"{self.history[0].design[name]:.6g}",
                f"{value:.6g}",
                "at its bound" if self.at_bound(name) else "",
            )
            for name, value in self.design.items()
        ]

    def _head(self) -> list[str]:
        unit = f" {self.unit}" if self.unit else ""
        head = (
            f"objective {self.start_value:.6g} -> {self.value:.6g}{unit} in "
            f"{len(self.history) - 1} iterations; {self.message}"
        )
        more = [f"designs that could not be computed: {self.failed}"] if self.failed else []
        return [head, *more]

    def _repr_html_(self) -> str:
        head, *more = self._head()
        return _html.table(head, _HEADER, self._lines()) + _html.paragraphs(more)

    def __str__(self) -> str:
        return "\n".join([*self._head(), "", format_table(_HEADER, self._lines())])


class Starts(eqx.Module):
    """Results of many starts.

    - `begins`, `designs` (n, p): where each began, and its best design, in the order of `names`;
      `values` (n,) of the objective there, infinite for a start that failed.
    - `codes` (n,): 0 for a start that did not fail, or the number of a `RESULTS` member;
      `failures()` counts their sentences.
    - `history` (iterates, n): the objective at every iterate.
    - `best`: the best start as an `Optimum`.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    begins: Float[np.ndarray, "n p"]
    designs: Float[np.ndarray, "n p"]
    values: Float[np.ndarray, " n"]
    codes: Int[np.ndarray, " n"]
    history: Float[np.ndarray, "iterates n"]
    best: Optimum

    def failures(self) -> dict[str, int]:
        """Number of failed starts by message."""
        codes, counts = np.unique(self.codes[self.codes != FINE], return_counts=True)
        return {sentence(c): n for c, n in zip(codes.tolist(), counts.tolist(), strict=True)}

    def __str__(self) -> str:
        good = self.values[self.codes == FINE]
        near = int(np.sum(good <= good.min() + 0.01 * abs(good.min())))
        head = (
            f"{len(self.values)} starts, {len(good)} of them without failure; objective "
            f"{good.min():.6g} (best), {np.median(good):.6g} (median); {near} within 1 % of the "
            "best"
        )
        lines = [f"{count} failed: {text}" for text, count in self.failures().items()]
        return "\n".join([head, *lines, "", str(self.best)])
