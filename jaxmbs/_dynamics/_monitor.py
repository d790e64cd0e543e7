"""Where does a motion pass through a singular configuration?

Along a motion the singular values of C M^-1/2 (rows of unit length) change continuously if they
are allowed to change sign. A passage is a change of sign of the smallest of them that is not zero
throughout. It is carried along by inverse iteration with the factor of S + mu I: with x its left
singular vector,

    x <- S (S + mu I)^-2 x,

which leaves the null space (the redundancy) out and magnifies the smallest value. The right
singular vector w = M^-1 C^T x / sigma then points the other way after a passage. No step
needs to come close to the singular configuration for that to be seen.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar
from .._linalg import AbstractDescriptor
from .._system import AbstractSystem


_REGULARISATION = 1e-7

# Inverse iterations at the start, and at each step from the vector of the step before.
_FIRST, _EACH = 40, 2

# Passages whose times are kept; later ones are counted.
CAPACITY = 64


class Passages(eqx.Module):
    """What a monitor carries along.

    `left` (rows,), `right` (nv,), `value`: smallest singular value and its vectors; `time` and
    the time and value of the step before. `times` (CAPACITY,) of passages, `count` of them.
    `before` (nq + nv + 1,), `since`: the state before the step of the last passage, its time.
    """

    left: Float[Array, " rows"]
    right: Float[Array, " nv"]
    value: Scalar
    time: Scalar
    earlier_value: Scalar
    earlier_time: Scalar
    times: Float[Array, " capacity"]
    count: IntScalar
    before: Float[Array, " state"]
    since: Scalar


class SingularValueMonitor(eqx.Module):
    """Follows the smallest singular value of the rows `watched` (bool, (rows,)) from step to step.
    Nothing it does has a derivative."""

    watched: tuple[bool, ...] = eqx.field(static=True)

    def init(
        self, system: AbstractSystem, y: Float[Array, " state"], t: RealScalarLike
    ) -> Passages:
        """What it carries, at the start. y: q, v and the number of passages."""
        system, y, now = _fixed((system, y, jnp.asarray(t, y.dtype)))
        descriptor = self._descriptor(system, y, now)
        start = jax.random.normal(jax.random.PRNGKey(0), (len(self.watched),), y.dtype)
        left, right, value = _smallest(descriptor, start, _FIRST)
        times = jnp.full((CAPACITY,), jnp.nan, y.dtype)
        return Passages(left, right, value, now, value, now, times, jnp.asarray(0), y, now)

    def step(
        self,
        system: AbstractSystem,
        y0: Float[Array, " state"],
        y1: Float[Array, " state"],
        t1: RealScalarLike,
        carried: Passages,
    ) -> tuple[Passages, BoolScalar]:
        """What it carries after the step from y0 to y1 at t1, and whether a singular
        configuration was passed."""
        system, y0, y1, now = _fixed((system, y0, y1, jnp.asarray(t1, y0.dtype)))
        descriptor = self._descriptor(system, y1, now)
        left, right, value = _smallest(descriptor, carried.left, _EACH)
        passed = right @ descriptor.mass(carried.right) < 0
        when = _zero(
            (carried.earlier_time, carried.time, now),
            (carried.earlier_value, carried.value, -value),
        )
        times = carried.times.at[carried.count].set(when, mode="drop")
        # On the way out the earlier value belongs to the other sign.
        earlier = jnp.where(passed, -carried.value, carried.value)
        after = Passages(
            left,
            right,
            value,
            now,
            earlier,
            carried.time,
            jnp.where(passed, times, carried.times),
            carried.count + passed,
            jnp.where(passed, y0, carried.before),
            jnp.where(passed, carried.time, carried.since),
        )
        return after, passed

    def _descriptor(
        self, system: AbstractSystem, y: Float[Array, " state"], t: Scalar
    ) -> AbstractDescriptor:
        nq = system.structure.nq
        descriptor = system.descriptor(y[:nq], y[nq : nq + system.structure.nv], t)
        return descriptor if all(self.watched) else descriptor.keeping(np.array(self.watched))


def _fixed(tree: Any) -> Any:
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(lax.stop_gradient(arrays), rest)


def _smallest(
    descriptor: AbstractDescriptor, start: Float[Array, " rows"], steps: int
) -> tuple[Float[Array, " rows"], Float[Array, " nv"], Scalar]:
    """Left and right singular vector and smallest nonzero singular value of the rows."""
    mu = _REGULARISATION
    factor = descriptor.factor(mu)

    def iterate(_, x: Float[Array, " rows"]) -> Float[Array, " rows"]:
        once = factor.solve(x)
        x = once - mu * factor.solve(once)
        return x / jnp.sqrt(jnp.maximum(x @ x, jnp.finfo(x.dtype).tiny))

    left = lax.fori_loop(0, steps, iterate, start)
    force = descriptor.transpose(left / factor.scale)
    motion = descriptor.inverse_mass(force)
    value = jnp.sqrt(jnp.maximum(force @ motion, 0.0))
    return left, motion / jnp.where(value > 0, value, 1.0), value


def _zero(times: tuple[Scalar, Scalar, Scalar], values: tuple[Scalar, Scalar, Scalar]) -> Scalar:
    """Where a quantity is zero between the last two of three samples: inverse quadratic
    interpolation, or the chord where that leaves the interval."""
    (a, b, c), (fa, fb, fc) = times, values
    chord = b + (c - b) * fb / jnp.where(fb == fc, 1.0, fb - fc)
    distinct = (fa != fb) & (fa != fc) & (fb != fc)
    ab, ac, bc = (jnp.where(distinct, x, 1.0) for x in (fa - fb, fa - fc, fb - fc))
    curve = a * fb * fc / (ab * ac) - b * fa * fc / (ab * bc) + c * fa * fb / (ac * bc)
    inside = distinct & (curve >= b) & (curve <= c)
    return jnp.where(inside, curve, chord)
