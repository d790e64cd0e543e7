"""Prescribed motions of drivers as functions of time."""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import NumberList, RealScalarLike, Scalar
from .._fields import AbstractDeclared, number, numbers


# --------------------------------------------------------------------------------------------------
# Declarations that motions share.
# --------------------------------------------------------------------------------------------------


OFFSET = number("offset", "{driven}", "added to the value at every time")
TIMES = numbers("times", "s", "two or more, increasing")
VALUES = numbers("values", "{driven}", "at these times")


class AbstractMotion(AbstractDeclared):
    """A prescribed value (m or rad) as a twice continuously differentiable function of time."""

    @abc.abstractmethod
    def __call__(self, t: RealScalarLike) -> Scalar:
        """The value at time t (s), measured from the reference configuration."""

    @abc.abstractmethod
    def knots(self) -> Float[Array, " knots"]:
        """Times (s) at which a higher derivative jumps; an integrator steps onto them."""

    def domain(self) -> tuple[Scalar, Scalar] | None:
        """First and last time at which the motion is defined; None: at all times."""
        return None


class Linear(AbstractMotion):
    """offset + rate t."""

    rate: Scalar = eqx.field(kw_only=True, converter=number("rate", "{driven}/s", "of change"))
    offset: Scalar = eqx.field(default=0.0, kw_only=True, converter=OFFSET)

    def knots(self) -> Float[Array, " knots"]:
        return jnp.zeros((0,))

    def __call__(self, t: RealScalarLike) -> Scalar:
        return self.offset + self.rate * t


class Polynomial(AbstractMotion):
    """c_0 + c_1 t + c_2 t^2 + ..."""

    coefficients: Float[Array, " terms"] = eqx.field(
        kw_only=True,
        converter=numbers("coefficients", "", "c_k, of t^k: {driven} over s^k"),
    )

    def knots(self) -> Float[Array, " knots"]:
        return jnp.zeros((0,))

    def __call__(self, t: RealScalarLike) -> Scalar:
        return jnp.polyval(self.coefficients[::-1], jnp.asarray(t))


class Sine(AbstractMotion):
    """offset + amplitude sin(2 pi frequency t + phase); frequency in Hz, phase in rad."""

    amplitude: Scalar = eqx.field(
        kw_only=True, converter=number("amplitude", "{driven}", "of the sine")
    )
    frequency: Scalar = eqx.field(kw_only=True, converter=number("frequency", "Hz", "of the sine"))
    offset: Scalar = eqx.field(default=0.0, kw_only=True, converter=OFFSET)
    phase: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("phase", "rad", "at time 0")
    )

    def knots(self) -> Float[Array, " knots"]:
        return jnp.zeros((0,))

    def __call__(self, t: RealScalarLike) -> Scalar:
        angle = 2 * jnp.pi * self.frequency * t + self.phase
        return self.offset + self.amplitude * jnp.sin(angle)


def table_of(
    times: NumberList, values: NumberList
) -> tuple[Float[Array, " knots"], Float[Array, " knots"]]:
    """Times and values as arrays.

    **Raises:** `ValueError` for tables that are not functions of time.
    """
    knots, prescribed = TIMES(times), VALUES(values)
    _checks.check_table(knots, prescribed, ("times", "values"))
    return knots, prescribed


class Table(AbstractMotion):
    """C2 cubic spline through (times, values) with not-a-knot ends (de Boor 2001, ch. IV).

    Two points give a line, three a parabola. It is not defined outside its times: the value
    there is NaN, so that nothing closes there; the command line refuses such a time.
    """

    times: Float[Array, " knots"] = eqx.field(converter=TIMES)
    values: Float[Array, " knots"] = eqx.field(converter=VALUES)
    slope_weights: Float[Array, "knots knots"]

    def __init__(
        self,
        *,
        times: NumberList,
        values: NumberList,
    ):
        self.times, self.values = table_of(times, values)
        self.slope_weights = _slope_weights(self.times)

    def knots(self) -> Float[Array, " knots"]:
        return self.times

    def __call__(self, t: RealScalarLike) -> Scalar:
        t = jnp.asarray(t, self.times.dtype)
        last = self.times.shape[0] - 2
        i = jnp.clip(jnp.searchsorted(self.times, t, side="right") - 1, 0, last)
        start, stop = self.times[i], self.times[i + 1]
        width = stop - start
        s = (t - start) / width
        left, right = self.values[i], self.values[i + 1]
        left_slope = width * (self.slope_weights[i] @ self.values)
        right_slope = width * (self.slope_weights[i + 1] @ self.values)
        # Cubic Hermite form on one interval.
        change = right - left
        c2 = 3 * change - 2 * left_slope - right_slope
        c3 = left_slope + right_slope - 2 * change
        value = left + s * (left_slope + s * (c2 + s * c3))
        inside = (t >= self.times[0]) & (t <= self.times[-1])
        return jnp.where(inside, value, jnp.nan)

    def domain(self) -> tuple[Scalar, Scalar] | None:
        return self.times[0], self.times[-1]


def _slope_weights(times: Float[Array, " knots"]) -> Float[Array, "knots knots"]:
    """The matrix that turns values at the knots into slopes at the knots.

    Interior rows: continuity of the second derivative. End rows: continuity of the third
    derivative at the second and the last but one knot ("not a knot").
    """
    n = times.shape[0]
    h = jnp.diff(times)
    difference = (jnp.eye(n)[1:] - jnp.eye(n)[:-1]) / h[:, None]
    if n == 2:
        return jnp.concatenate([difference, difference])
    left, right = jnp.zeros((n, n)), jnp.zeros((n, n))
    i = np.arange(1, n - 1)
    left = left.at[i, i - 1].set(h[1:]).at[i, i].set(2 * (h[:-1] + h[1:]))
    left = left.at[i, i + 1].set(h[:-1])
    right = right.at[i].set(3 * (h[1:, None] * difference[:-1] + h[:-1, None] * difference[1:]))
    if n == 3:
        # One parabola: its slope changes linearly, in both intervals.
        left = left.at[0, :2].set(1.0).at[2, 1:].set(1.0)
        right = right.at[0].set(2 * difference[0]).at[2].set(2 * difference[1])
        return jnp.linalg.solve(left, right)
    left, right = _not_a_knot(left, right, 0, 1, 2, h[0], h[1], difference[0], difference[1])
    left, right = _not_a_knot(
        left, right, n - 1, n - 2, n - 3, h[-1], h[-2], difference[-1], difference[-2]
    )
    return jnp.linalg.solve(left, right)


def _not_a_knot(
    left: Float[Array, "knots knots"],
    right: Float[Array, "knots knots"],
    end: int,
    second: int,
    third: int,
    outer: Scalar,
    inner: Scalar,
    outer_difference: Float[Array, " knots"],
    inner_difference: Float[Array, " knots"],
) -> tuple[Float[Array, "knots knots"], Float[Array, "knots knots"]]:
    """Equal third derivatives on the two intervals next to an end:
    (s_end + s_2 - 2 d_outer) / outer^2 = (s_2 + s_3 - 2 d_inner) / inner^2."""
    a, b = 1 / outer**2, 1 / inner**2
    left = left.at[end, end].set(a).at[end, second].set(a - b).at[end, third].set(-b)
    right = right.at[end].set(2 * a * outer_difference - 2 * b * inner_difference)
    return left, right


class Step(AbstractMotion):
    """Quintic steps (C2) between neighbouring values, constant before and after."""

    times: Float[Array, " knots"] = eqx.field(converter=TIMES)
    values: Float[Array, " knots"] = eqx.field(converter=VALUES)

    def __init__(
        self,
        *,
        times: NumberList,
        values: NumberList,
    ):
        self.times, self.values = table_of(times, values)

    def knots(self) -> Float[Array, " knots"]:
        return self.times

    def __call__(self, t: RealScalarLike) -> Scalar:
        s = jnp.clip((t - self.times[:-1]) / jnp.diff(self.times), 0.0, 1.0)
        # 10 s^3 - 15 s^4 + 6 s^5 rises from 0 to 1 with two vanishing derivatives at the ends.
        rise = s**3 * (10 - 15 * s + 6 * s**2)
        return self.values[0] + jnp.diff(self.values) @ rise
