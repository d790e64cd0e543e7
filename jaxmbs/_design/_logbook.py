"""The way of one study: its iterates, and the rank at each of them."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ._optimum import Visit
from ._path import rank_changes
from ._problem import Problem
from ._refusal import DesignError


# Called with the number of an iterate and the iterate.
Progress: TypeAlias = Callable[[int, Visit], None]


class Logbook:
    """Every iterate of a study is entered, in order.

    **Arguments:** `ranks` (n,): of the start, which every iterate has to keep.
    """

    def __init__(self, problem: Problem, ranks: np.ndarray, progress: Progress | None):
        self._problem = problem
        self._ranks = ranks
        self._progress = progress
        self.history: list[Visit] = []
        self.points: list[np.ndarray] = []

    def enter(self, point: np.ndarray, value: float, ranks: np.ndarray) -> None:
        """One iterate. An infinite value says that it failed: it has no ranks.

        **Raises:** `DesignError` that says where the rank changed since the iterate before.
        """
        if np.isfinite(value) and not np.array_equal(ranks, self._ranks):
            raise DesignError(self._changed(point))
        self.points.append(np.array(point))
        self.history.append(Visit(self._problem.named(point), float(value)))
        self.tell(len(self.history) - 1, point, float(value))

    def tell(self, number: int, point: np.ndarray, value: float) -> None:
        """Progress alone."""
        if self._progress is not None:
            self._progress(number, Visit(self._problem.named(point), value))

    def _changed(self, point: np.ndarray) -> str:
        problem = self._problem
        here = problem.named(point)
        before = [x.design for x in self.history if np.isfinite(x.value)][-1]
        found = rank_changes(problem.study, before, here, count=3)
        where = "; ".join(map(str, found)) or f"at {here}"
        return (
            "the rank of the constraints changes on the way, so that reactions jump there: "
            f"{where}; narrow the bounds so that they leave it out."
        )
