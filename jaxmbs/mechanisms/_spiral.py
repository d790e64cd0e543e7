import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _settings, generalized
from .._constraints import AbstractJoint
from .._custom_types import Numbers, RealScalarLike, Scalar, Setting
from .._system import Model


_GRAVITY = 9.81  # m/s^2
_START = 30.0  # rad
_REMARK = (
    "Chosen: the mass matrix diag(m, m r^2), which the kinetic energy has; the source prints "
    "diag(m, m). All numbers are the source's."
)


def spiral(
    growth: Setting[Numbers] = 0.1,
    speed: Setting[Numbers] = 1.0,
    mass: Setting[Numbers] = 1.0,
    *,
    acceleration_level: Setting[bool] = False,
) -> Model:
    """A particle in polar coordinates that follows a logarithmic spiral inwards, under gravity.

    Zhao et al. (2018), section 8.1: r = exp(0.1 theta), theta = 30 - t, which is the whole motion;
    what the equations have to find is the force. The source prints the mass matrix diag(m, m), with
    theta's equation divided by r^2 (eq. 9). The kinetic energy m (dr^2 + r^2 dtheta^2) / 2 gives
    diag(m, m r^2), which is taken here. The motion is the same; the generalized constraint force
    along theta is a moment here (N m), and m r^2 in the place of m times what the source has.

    **Arguments:** `growth`: of the logarithm of r with theta (1/rad). `speed`: -dtheta/dt (rad/s).
    `mass` (kg). `acceleration_level`: the constraints as the source's equation works with them,
    A dv/dt = b (eq. 55): nothing takes the motion back onto the spiral.

    **Raises:** `ValueError` or `TypeError` that names the argument.
    """
    growth = _settings.between(growth, "growth")
    speed = _settings.between(speed, "speed")
    mass = _settings.between(mass, "mass", above=0)
    flat = _settings.flag(acceleration_level, "acceleration_level")
    radius = jnp.exp(growth * _START)
    body = generalized.Body(
        "particle",
        ("r", "theta"),
        mass_matrix=_PolarMass(mass),
        first_moment=_PolarMoment(mass),
        frames={"place": _PolarFrame()},
        start=jnp.stack([radius, jnp.full_like(radius, _START)]),
        velocity=-speed * jnp.stack([growth * radius, jnp.ones_like(radius)]),
        lengths=("r",),
    )
    joints = _accelerations(growth) if flat else _positions(growth, speed)
    return Model(
        "spiral", 2, bodies=[body], joints=joints, gravity=(0.0, -_GRAVITY), remark=_REMARK
    )


def _positions(growth: Scalar, speed: Scalar) -> list[AbstractJoint]:
    return [
        generalized.Condition("path", "particle", _OnSpiral(growth), quantity=generalized.LENGTH),
        generalized.Condition("drive", "particle", _Turning(speed)),
    ]


def _accelerations(growth: Scalar) -> list[AbstractJoint]:
    return [
        generalized.AccelerationCondition(
            "path",
            "particle",
            _SpiralMatrix(growth),
            _SpiralOffset(growth),
            quantity=generalized.LENGTH,
        ),
        generalized.AccelerationCondition("drive", "particle", [0.0, 1.0]),
    ]


class _PolarMass(eqx.Module):
    mass: Scalar

    def __call__(self, q: Float[Array, "2"]) -> Float[Array, "2 2"]:
        return self.mass * jnp.diag(jnp.stack([jnp.ones_like(q[0]), q[0] ** 2]))


class _PolarMoment(eqx.Module):
    mass: Scalar

    def __call__(self, q: Float[Array, "2"]) -> Float[Array, "2"]:
        return self.mass * _place(q)


class _OnSpiral(eqx.Module):
    growth: Scalar

    def __call__(self, q: Float[Array, "2"], t: RealScalarLike) -> Scalar:
        del t
        return q[0] - jnp.exp(self.growth * q[1])


class _Turning(eqx.Module):
    speed: Scalar

    def __call__(self, q: Float[Array, "2"], t: RealScalarLike) -> Scalar:
        return q[1] - _START + self.speed * t


class _SpiralMatrix(eqx.Module):
    growth: Scalar

    def __call__(
        self, q: Float[Array, "2"], v: Float[Array, "2"], t: RealScalarLike
    ) -> Float[Array, "2"]:
        del v, t
        return jnp.stack([jnp.ones_like(q[0]), -self.growth * jnp.exp(self.growth * q[1])])


class _SpiralOffset(eqx.Module):
    growth: Scalar

    def __call__(self, q: Float[Array, "2"], v: Float[Array, "2"], t: RealScalarLike) -> Scalar:
        del t
        return self.growth**2 * jnp.exp(self.growth * q[1]) * v[1] ** 2


def _place(q: Float[Array, "2"]) -> Float[Array, "2"]:
    return q[0] * jnp.stack([jnp.cos(q[1]), jnp.sin(q[1])])


class _PolarFrame(eqx.Module):
    def __call__(self, q: Float[Array, "2"]) -> generalized.PlanarFrame:
        return generalized.PlanarFrame(_place(q), q[1])
