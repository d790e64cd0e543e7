"""Optimisers behind one call: SciPy's for constraints, Optax's without."""

import abc
import importlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import numpy as np

from ._refusal import DesignError


# From a point in units of the bounds to a value and its gradient.
Function: TypeAlias = Callable[[np.ndarray], tuple[float, np.ndarray]]


class Task(NamedTuple):
    """What an optimiser is given: the objective and the constraints (each at least zero) of a
    point between `low` and `high`, from `start`; `visited` is told of each iterate."""

    function: Function
    constraints: Sequence[Function]
    start: np.ndarray
    low: np.ndarray
    high: np.ndarray
    visited: Callable[[np.ndarray], None]


class Outcome(NamedTuple):
    """Where an optimiser ended, and what it says about it."""

    point: np.ndarray
    converged: bool
    message: str


class AbstractOptimiser(eqx.Module):
    """A way to make an objective least."""

    @abc.abstractmethod
    def run(self, task: Task) -> Outcome:
        """The best point met from the start.

        **Raises:** `DesignError` for constraints that it cannot keep, and a missing extra.
        """


class SLSQP(AbstractOptimiser):
    """SciPy's sequential least squares programming, with constraints.

    **Arguments:** `steps`: at most; `tolerance`: on the objective, relative to its first value.
    """

    steps: int = eqx.field(static=True, default=100)
    tolerance: float = eqx.field(static=True, default=1e-9)

    def run(self, task: Task) -> Outcome:
        minimize = extra("scipy.optimize").minimize
        first = abs(task.function(task.start)[0])
        scale = first if first > 0 else 1.0

        def scaled(x: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = task.function(x)
            return value / scale, slope / scale

        def parts(constraint: Function) -> dict[str, Any]:
            return {
                "type": "ineq",
                "fun": lambda x: constraint(x)[0],
                "jac": lambda x: constraint(x)[1],
            }

        found = minimize(
            scaled,
            task.start,
            jac=True,
            method="SLSQP",
            bounds=list(zip(task.low, task.high, strict=True)),
            constraints=[parts(c) for c in task.constraints],
            callback=lambda x: task.visited(np.array(x)),
            options={"maxiter": self.steps, "ftol": self.tolerance},
        )
        return Outcome(found.x, bool(found.success), str(found.message))


class Descent(AbstractOptimiser):
    """Any method of Optax, its steps taken back into the bounds; no constraints.

    **Arguments:** `method`: an `optax.GradientTransformation`, default Adam with a step of
    `rate` (of the width of the bounds) that falls to a hundredth along a cosine; `steps`: how many.
    """

    method: Any = None
    steps: int = eqx.field(static=True, default=200)
    rate: float = eqx.field(static=True, default=0.03)

    def run(self, task: Task) -> Outcome:
        if task.constraints:
            raise DesignError("Descent keeps bounds, no constraints; use SLSQP() for these.")
        optax = extra("optax")
        method = self.method
        if method is None:
            method = optax.adam(optax.cosine_decay_schedule(self.rate, self.steps, 0.01))
        x, state = task.start, method.init(task.start)
        best, least = x, np.inf
        for _ in range(self.steps):
            value, slope = task.function(x)
            if value < least:
                best, least = x, value
            step, state = method.update(slope, state, x)
            x = np.clip(x + np.asarray(step), task.low, task.high)
            task.visited(x)
        if task.function(x)[0] < least:
            best = x
        return Outcome(best, True, f"{self.steps} steps taken")


def extra(module: str) -> ModuleType:
    """A module of the extra `design`.

    **Raises:** `DesignError` that says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise DesignError(
            f"this needs {error.name}, which is not installed; install the extra with: "
            "python -m pip install 'jaxmbs[design]'"
        ) from None
