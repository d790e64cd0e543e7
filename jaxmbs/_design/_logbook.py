"""The way of one study: its iterates, and at each of them the rank, and whether what it depends on
is unique."""

from collections.abc import Callable
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np

from ._objective import require_unique, unique
from ._optimum import Visit
from ._path import rank_changes, told
from ._problem import Problem
from ._refusal import DesignError
from ._study import responded


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

    def enter(self, point: np.ndarray, value: float, ranks: np.ndarray, across: np.ndarray) -> None:
        """Add an iterate. An infinite value marks a failed evaluation without ranks. `across` (m,):
        how much each function depends on reactions that are not unique there.

        **Raises:** `DesignError` that states where the rank changed since the previous iterate, or
        which reactions are no longer unique.
        """
        if np.isfinite(value) and not np.array_equal(ranks, self._ranks):
            raise DesignError(self._changed(point))
        if np.isfinite(value) and not unique(across):
            self._require_unique(point)
        self.points.append(np.array(point))
        self.history.append(Visit(self._problem.named(point), float(value)))
        self.tell(len(self.history) - 1, point, float(value))

    def tell(self, number: int, point: np.ndarray, value: float) -> None:
        """Progress alone."""
        if self._progress is not None:
            self._progress(number, Visit(self._problem.named(point), value))

    def _require_unique(self, point: np.ndarray) -> None:
        problem = self._problem
        response = responded(problem.study, problem.design(jnp.asarray(point)))
        try:
            for function in problem.functions:
                require_unique(function, response)
        except DesignError as error:
            where = told(problem.named(point))
            raise DesignError(
                f"on the way, at {where}, {str(error).removesuffix('.')}; or narrow the bounds so "
                "that they leave such designs out."
            ) from None

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
