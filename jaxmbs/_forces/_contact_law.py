"""The normal force of a contact over its depth and its speed (Hunt & Crossley 1975), and the
damping that a coefficient of restitution asks for.

Functions of plain numbers and arrays, which broadcast. Depths are positive in contact, speeds where
the depth grows; lengths and angles alike.

**References:** K. H. Hunt, F. R. E. Crossley, "Coefficient of restitution interpreted as damping in
vibroimpact", J. Appl. Mech. 42 (1975) 440-445; H. M. Lankarani, P. E. Nikravesh, "A contact force
model with hysteresis damping for impact analysis of multibody systems", J. Mech. Des. 112 (1990)
369-376; D. W. Marhefka, D. E. Orin, "A compliant contact model with nonlinear damping for
simulation of robotic systems", IEEE Trans. Syst. Man Cybern. A 29 (1999) 566-572.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks


def normal_force(
    depth: Float[Array, "..."],
    speed: Float[Array, "..."],
    stiffness: Float[Array, "..."],
    exponent: Float[Array, "..."],
    damping: Float[Array, "..."],
) -> Float[Array, "..."]:
    """stiffness depth^exponent (1 + damping speed) where the depth is positive, else zero.

    It never pulls: it is zero where the bracket is negative. Continuous; the derivatives at depth
    zero are those from outside, zero, and those where the bracket is zero likewise.

    **Arguments:** `depth`: m or rad; `speed`: its rate; `stiffness`: N/m^exponent, or
    N m/rad^exponent; `exponent`: at least 1; `damping`: s/m or s/rad, at least 0.
    """
    pressed = depth > 0
    spring = stiffness * jnp.where(pressed, depth, 1.0) ** exponent
    factor = 1 + damping * speed
    pushes = pressed & (factor > 0)
    return jnp.where(pushes, spring * jnp.where(pushes, factor, 1.0), 0.0)


def stored_energy(
    depth: Float[Array, "..."], stiffness: Float[Array, "..."], exponent: Float[Array, "..."]
) -> Float[Array, "..."]:
    """The energy (J) of the spring in `normal_force`: minus its derivative is the force at speed
    zero."""
    pressed = depth > 0
    energy = stiffness * jnp.where(pressed, depth, 1.0) ** (exponent + 1) / (exponent + 1)
    return jnp.where(pressed, energy, 0.0)


def restitution_damping(restitution: Float[Array, "..."]) -> Float[Array, "..."]:
    """damping * (impact speed) of `normal_force` for a coefficient of restitution e.

    A mass that meets the contact with speed v and is pressed by nothing else leaves it with speed
    e v. With x = damping v, m u du/ddepth = -k depth^n (1 + damping u) integrates to

        (1 + e) x = ln((1 + x) / (1 - e x)),

    whatever mass, stiffness and exponent are; the bracket of the force stays positive, 1 - e x > 0.
    The relation is solved to rounding for 0 < e <= 1. Lankarani & Nikravesh's
    x = 3 (1 - e^2) / 4 is its limit for e near 1; elsewhere that is too little damping.
    """
    return _checks.of_known(_solve, restitution)


# x / (1 - e) as a power series in 1 - e, exact coefficients rounded. Next to e = 1 the relation's
# terms cancel, and there this is as exact as the numbers are, together with all its derivatives.
_SERIES = (
    1.5,
    1.5,
    1.35,
    1.2,
    1.0842857142857143,
    1.002857142857143,
    0.9484285714285714,
    0.9137142857142857,
    0.8930287569573284,
    0.8822866419294991,
    0.878639040959041,
    0.8801097559583274,
    0.8853154529755959,
    0.8932697292707292,
    0.9032515344974353,
    0.9147183955741737,
    0.927249491448017,
    0.9405082205774652,
)
_NEAR = 0.1
_ITERATIONS = 14


def _solve(restitution: Any) -> Any:
    xp = _checks.namespace(restitution)
    lost = 1 - restitution
    near = lost < _NEAR
    small = xp.where(near, lost, 0.0)
    series = xp.zeros_like(small)
    for coefficient in reversed(_SERIES):
        series = series * small + coefficient
    elastic = xp.where(near, 0.5, restitution)
    far = _newton(elastic) if xp is jnp else _iterate(elastic)
    return xp.where(near, small * series, far)


@jax.custom_jvp
def _newton(e: Float[Array, "..."]) -> Float[Array, "..."]:
    return _iterate(e)


@_newton.defjvp
def _(primals: Any, tangents: Any) -> Any:
    """The derivative of the relation, into which x is put so that no logarithm is left."""
    (e,), (change,) = primals, tangents
    x = _newton(e)
    return x, -change * e * x * (1 + x) / ((1 + e) * (e * x - (1 - e)))


def _iterate(e: Any) -> Any:
    """x by Newton's method in u = -ln(1 - e x), which keeps digits where e x is 1 to rounding.

    With y = e x = 1 - exp(-u) the relation is ln(1 + y/e) + u - (1 + 1/e) y = 0. Its left side is
    convex and increasing above its positive zero, and 1 + 1/e is above that: Newton's method
    approaches from there without overshooting.
    """
    xp = _checks.namespace(e)
    u = 1 + 1 / e
    for _ in range(_ITERATIONS):
        y = -xp.expm1(-u)
        value = xp.log1p(y / e) + u - (1 + 1 / e) * y
        slope = 1 + (1 - y) * (1 / (e + y) - (1 + 1 / e))
        u = u - value / slope
    return -xp.expm1(-u) / e
