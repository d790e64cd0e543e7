"""Quasi-Newton methods of Optimistix with values supplied from outside.

Each of their steps evaluates the objective at one point, which their state contains beforehand. So
the value and the slope there come from the study's tape, as for SciPy's methods, and a step is
given the linear function that has both: a small program, the same for all studies of one size.
"""

from typing import Any, NamedTuple, TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import Scalar, Setting
from .._dynamics import Trajectory
from .._loading import late
from .._programs import program
from ._optimisers import AbstractOptimiser, INSIDE, Outcome, Search, Tape
from ._problem import look, Problem
from ._refusal import DesignError


if TYPE_CHECKING:
    import optimistix as optx
else:
    optx = late("optimistix")


class BFGS(AbstractOptimiser):
    """Optimistix's method of Broyden, Fletcher, Goldfarb and Shanno; no constraints.

    The bounds are kept by a variable z with the point (1 - cos pi z) / 2 (as in Minuit: James
    & Roos 1975). No step leaves them, and an optimum may lie on one. There the slope by z is zero:
    it goes on from a thousandth of their width within.

    **Arguments:** `steps`: designs computed at most; `tolerance`: on the change of z and on that of
    the objective, relative to its first value; `method`: in its place another minimiser of
    Optimistix that steps along a descent, such as `optimistix.LBFGS` or `NonlinearCG`, with
    tolerances of its own.
    """

    method: Any
    steps: int = eqx.field(static=True)
    tolerance: float = eqx.field(static=True)

    def __init__(
        self, *, steps: Setting[int] = 200, tolerance: Setting[float] = 1e-8, method: Any = None
    ):
        self.steps = _settings.whole_number(steps, "steps", least=1)
        self.tolerance = _settings.known_number(tolerance, "tolerance", above=0, below=1)
        self.method = None if method is None else _minimiser(method)

    def run(self, search: Search) -> Outcome:
        if len(search.problem.limits):
            raise DesignError(
                "BFGS keeps bounds, no constraints; use SLSQP() or TrustRegion() for these."
            )
        method = self.method
        if method is None:
            method = optx.BFGS(rtol=self.tolerance, atol=self.tolerance)
        begin = np.asarray(search.start)
        tape = Tape(search)
        tape.visit(begin)
        inside = np.clip(begin, INSIDE, 1 - INSIDE)
        iterate = _begun(method, jnp.asarray(np.arccos(1 - 2 * inside) / np.pi))
        for _ in range(self.steps):
            asked = np.asarray(iterate.state.y_eval)
            value, slope = tape.objective(_point(asked))
            told = jnp.asarray(value), jnp.asarray(slope * np.pi / 2 * np.sin(np.pi * asked))
            iterate = _stepped(method, iterate, *told)
            tape.visit(_point(np.asarray(iterate.z)))
            if iterate.done:
                break
        return tape.outcome(_ended(iterate, self.steps))

    def respond(self, problem: Problem, point: Float[Array, " p"]) -> Trajectory:
        return look(problem, point).response


def _minimiser(method: Any) -> Any:
    """**Raises:** `TypeError` for what does not step along a descent."""
    kinds = (optx.AbstractQuasiNewton, optx.AbstractGradientDescent)
    if isinstance(method, kinds):
        return method
    such_as = "a minimiser such as optimistix.LBFGS(rtol=1e-8, atol=1e-8)"
    return _settings.instance(method, kinds[0], "method", such_as)


class _Iterate(NamedTuple):
    """The best variable so far, what the method keeps, whether it is done, and how that ended."""

    z: Float[Array, " p"]
    state: Any
    done: Any
    result: Any


class _Found(NamedTuple):
    """The end, by the names that SciPy has for it."""

    x: np.ndarray
    success: bool
    message: str


def _point(z: np.ndarray) -> np.ndarray:
    return (1 - np.cos(np.pi * z)) / 2


def _ended(iterate: _Iterate, steps: int) -> _Found:
    success = bool(iterate.done) and bool(iterate.result == optx.RESULTS.successful)
    if success:
        message = "neither the design nor the objective changes any more"
    elif iterate.done:
        message = optx.RESULTS[iterate.result]
    else:
        message = f"not converged after {steps} designs; raise steps"
    return _Found(_point(np.asarray(iterate.z)), success, message)


def _begun(method: Any, z: Float[Array, " p"]) -> _Iterate:
    number = jax.ShapeDtypeStruct((), z.dtype)
    state = method.init(lambda z, _: (jnp.sum(z), None), z, None, {}, number, None, frozenset())
    return _Iterate(z, state, jnp.asarray(False), optx.RESULTS.successful)


@program
def _stepped(method: Any, iterate: _Iterate, value: Scalar, slope: Float[Array, " p"]) -> _Iterate:
    asked = iterate.state.y_eval

    def linear(z: Float[Array, " p"], _: None) -> tuple[Scalar, None]:
        return value + slope @ (z - asked), None

    given = (None, {})
    z, state, _ = method.step(linear, iterate.z, *given, iterate.state, frozenset())
    done, result = method.terminate(linear, z, *given, state, frozenset())
    return _Iterate(z, state, done, result)
