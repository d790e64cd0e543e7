"""The equations of one step of the generalized-alpha scheme.

For M dv/dt + C^T lambda = F, Phi = 0 and velocity rows g = 0, a step of length h from q, v, dv/dt
and the auxiliary acceleration a finds the increment d along the velocities and the multipliers
lambda at its end, marked by 1 (Arnold & Bruels 2007, eqs. 3-5; with a retraction Bruels, Cardona &
Arnold 2012, eqs. 21-23):

    q1 = retract(q, d),           d  = h v + h^2 ((1/2 - beta) a + beta a1)
                                  v1 = v + h ((1 - gamma) a + gamma a1)
    (1 - alpha_m) a1 + alpha_m a = (1 - alpha_f) dv/dt1 + alpha_f dv/dt
    M1 dv/dt1 + C1^T lambda = F1,    Phi1 = 0,    g1 = 0

The unknowns are d and beta h^2 lambda, the dynamic equations are multiplied by beta h^2 and the
velocity rows by beta h / gamma: so all entries of the matrix of Newton's method remain bounded when
h goes to zero, M and C (Bottasso, Bauchau & Cardona 2007, SIAM J. Sci. Comput. 29).
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import Scalar
from .._kinematics import position_residual
from .._system import AbstractSystem


class Coefficients(NamedTuple):
    """Coefficients of the scheme."""

    alpha_m: Scalar
    alpha_f: Scalar
    gamma: Scalar
    beta: Scalar


def coefficients(spectral_radius: Scalar) -> Coefficients:
    """The second-order coefficients whose spectral radius is this for infinite frequencies, and
    least for lower ones (Chung & Hulbert 1993, J. Appl. Mech. 60, eqs. 17, 19, 25)."""
    alpha_m = (2 * spectral_radius - 1) / (spectral_radius + 1)
    alpha_f = spectral_radius / (spectral_radius + 1)
    gamma = 0.5 + alpha_f - alpha_m
    return Coefficients(alpha_m, alpha_f, gamma, (gamma + 0.5) ** 2 / 4)


class Beginning(eqx.Module):
    """Beginning and length of a step: `q`, `v`, dv/dt (`acceleration`), a (`auxiliary`),
    the time `t1` (s) of its end and its length `h` (s)."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    acceleration: Float[Array, " nv"]
    auxiliary: Float[Array, " nv"]
    t1: Scalar
    h: Scalar
    scheme: Coefficients

    @property
    def force_scale(self) -> Scalar:
        """beta h^2, by which forces are multiplied."""
        return self.scheme.beta * self.h**2

    def increment(self, acceleration: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """d for dv/dt at the end."""
        c = self.scheme
        mean = (1 - c.alpha_f) * acceleration + c.alpha_f * self.acceleration
        following = (mean - c.alpha_m * self.auxiliary) / (1 - c.alpha_m)
        pushed = (0.5 - c.beta) * self.auxiliary + c.beta * following
        return self.h * self.v + self.h**2 * pushed


class End(NamedTuple):
    """End of a step after an increment: as `Beginning`."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    acceleration: Float[Array, " nv"]
    auxiliary: Float[Array, " nv"]


def end_of(system: AbstractSystem, start: Beginning, increment: Float[Array, " nv"]) -> End:
    """The end of the step with this increment."""
    c, h = start.scheme, start.h
    before = h * start.v + (0.5 - c.beta) * h**2 * start.auxiliary
    auxiliary = (increment - before) / start.force_scale
    velocity = start.v + h * ((1 - c.gamma) * start.auxiliary + c.gamma * auxiliary)
    mean = (1 - c.alpha_m) * auxiliary + c.alpha_m * start.auxiliary
    acceleration = (mean - c.alpha_f * start.acceleration) / (1 - c.alpha_f)
    return End(system.retract(start.q, increment), velocity, acceleration, auxiliary)


class Residual(NamedTuple):
    """Residual of the scaled equations: of the dynamic ones (nv,) and of the rows (rows,)."""

    dynamic: Float[Array, " nv"]
    rows: Float[Array, " rows"]


def residual(
    system: AbstractSystem,
    start: Beginning,
    increment: Float[Array, " nv"],
    multipliers: Float[Array, " rows"],
) -> Residual:
    """`multipliers`: scaled, beta h^2 lambda."""
    end, t = end_of(system, start, increment), start.t1
    geometric = system.structure.geometric

    def closure(step: Float[Array, " nv"]) -> Float[Array, " rows"]:
        return position_residual(system, system.retract(end.q, step), t)

    # C^T lambda is the gradient of lambda^T Phi: blocks of C, which are more, are not needed.
    rows, pull = jax.vjp(closure, jnp.zeros_like(increment))
    reaction = pull(multipliers)[0]
    if not geometric.all():
        rate, pull = jax.vjp(lambda v: system.velocity_residual(end.q, v, t), end.v)
        reaction = reaction + pull(jnp.where(geometric, 0.0, multipliers))[0]
        turned = start.scheme.beta * start.h / start.scheme.gamma
        rows = jnp.where(geometric, rows, turned * rate)
    mass = system.descriptor(end.q, end.v, t).mass(end.acceleration)
    inertia = mass - system.force(end.q, end.v, t)
    return Residual(start.force_scale * inertia + reaction, rows)
