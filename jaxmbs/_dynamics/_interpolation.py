"""States within a step, as exact as its end.

Where states are saved, and where an event is, a step is interpolated. Slopes of its stages alone
determine that to an order that is much lower than a method of eighth order deserves: by all that
Dormand and Prince's has, the order is five, and at a tolerance of 1e-10 states within steps were a
thousand times less exact than their ends. So such a step gets a few stages more, whose slopes are
used for nothing else (bootstrapping; Enright, Jackson, Norsett & Thomsen 1986, ACM Trans. Math.
Softw. 12; Hairer, Norsett & Wanner 1993, section II.6). With x the part of the step, the state is

    y(x) = (cubic Hermite polynomial of both ends) + x^2 (1 - x)^2 h sum_i q_i(x) k_i,

so that it is that of the ends there, with their slopes, and after a projection too. The q_i, of
degree four, fulfil the order conditions up to the order of the interpolant for all x, and of what
is free then those make the error of the next orders least. `tests/oracle_order_conditions.py`
derives them.
"""

import functools
from typing import ClassVar, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, RealScalarLike, Scalar
from .._linalg._arrays import sum_of_products
from ._dopri8_stages import DOPRI8_NODES, DOPRI8_QUARTICS, DOPRI8_USED, DOPRI8_WEIGHTS


class InsideStages(NamedTuple):
    """Stages for an interpolant, before the end of a step: `nodes` (count,), parts of the step;
    `weights` (count, stages), which lead to their states, of all stages before the end. `used`:
    the stages whose slopes the interpolant takes, the first and the last of all among them."""

    nodes: np.ndarray
    weights: np.ndarray
    used: np.ndarray


@functools.singledispatch
def inside_stages(solver: dfx.AbstractSolver) -> InsideStages | None:
    """Stages that a method needs for `StepInterpolation`; None where Diffrax's own interpolant is
    sufficiently accurate."""
    del solver


@inside_stages.register
def _(solver: dfx.Dopri8) -> InsideStages | None:
    del solver
    return InsideStages(DOPRI8_NODES, DOPRI8_WEIGHTS, DOPRI8_USED)


class Inside(eqx.Module):
    """Output of a run between the ends of its steps: states at `times` (s), and the location of
    `events`."""

    times: Float[Array, " times"]
    events: bool = eqx.field(static=True)

    def wanted(self, t0: Scalar, t1: Scalar) -> BoolScalar:
        """Is output requested within this step?"""
        return self.events | jnp.any((t0 < self.times) & (self.times < t1))


class StepInterpolation(dfx.AbstractLocalInterpolation):
    """Interpolation of a `Dopri8` step, from the states at both ends and h times the slopes `k` of
    its used stages."""

    t0: RealScalarLike
    t1: RealScalarLike
    y0: Float[Array, " state"]
    y1: Float[Array, " state"]
    k: Float[Array, "used state"]

    QUARTICS: ClassVar[np.ndarray] = DOPRI8_QUARTICS.T

    def evaluate(
        self, t0: RealScalarLike, t1: RealScalarLike | None = None, left: bool = True
    ) -> Float[Array, " state"]:
        del left
        if t1 is not None:
            return self.evaluate(t1) - self.evaluate(t0)
        # A run may have no length.
        none = self.t0 == self.t1
        start, end = jnp.asarray(self.t0), jnp.asarray(self.t1)
        x = jnp.where(none, 0.0, t0 - start) / jnp.where(none, 1.0, end - start)
        middle = x - 0.5
        quartics = functools.reduce(
            lambda found, row: found * middle + row, jnp.asarray(self.QUARTICS, self.k.dtype)
        )
        of_ends = self.y0 + x**2 * (3 - 2 * x) * (self.y1 - self.y0)
        slopes = (1 - x) * self.k[0] - x * self.k[-1]
        within = sum_of_products(quartics[:, None], self.k, 0, apart=False)
        return of_ends + x * (1 - x) * (slopes + x * (1 - x) * within)
