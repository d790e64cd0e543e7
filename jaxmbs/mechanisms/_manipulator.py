import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks, _settings, generalized
from .._constraints import Servo
from .._custom_types import Numbers, RealScalarLike, Scalar, Setting
from .._system import Model


_GRAVITY = 9.81  # m/s^2
_RATES = (1.0, -0.1, 0.0, 0.0)  # rad/s
_REMARK = (
    "Chosen: the time constant, initial angles and initial velocities of the motors, which the "
    "source leaves out."
)


def flexible_joint_manipulator(
    time_constant: Setting[Numbers | None] = 0.5,
    stiffness: Setting[Numbers] = (1.0, 1.0),
    *,
    masses: Setting[Numbers] = (1.0, 1.0),
    length: Setting[Numbers] = 1.0,
    centres: Setting[Numbers] = (0.5, 0.5),
    inertias: Setting[Numbers] = (1.0, 1.0),
    motor_inertias: Setting[Numbers] = (1.0, 1.0),
) -> Model:
    """Two links that motors move through springs, under a servo constraint of their rates.

    Zhao et al. (2018), section 8.3. Angles "link 1" (from the hanging position) and "link 2"
    (against link 1) of the links, "motor 1" and "motor 2" of the motors that drive them through the
    springs:

        D(q1) dv1/dt + C(q1, v1) v1 + G(q1) + K (q1 - q2) = control,    J dv2/dt = K (q1 - q2).

    Wanted: the rates of both link angles have the sum zero (the second link keeps its direction).
    At the start it is beta = 0.9 rad/s.
    Three things that the source prints are taken as the standard model has them: its c11 has m1,
    where m2 belongs (it is the velocity term of d11); its constraint force (eq. 71) has q1, where
    the springs' K (q1 - q2) is meant; and its control u is in the motors' equation, although it
    is built with the links' inertia D, for which it has to act on the links. Here it does, as the
    force of least size (`Servo`); `ServoControl` has it carried by chosen coordinates, such as
    "manipulator.link 2" alone.

    **Arguments:** `time_constant`: P (s), as for `Servo`; None leaves beta as it is. `stiffness`: K
    of both springs (N m/rad). Of both links `masses` (kg), distances of the `centres` of mass from
    their joints (m), `inertias` about these (kg m^2); `length` of the first (m); `motor_inertias`
    J (kg m^2).

    **Raises:** `ValueError` or `TypeError` that names the argument.
    """
    if time_constant is not None:
        time_constant = _settings.between(time_constant, "time_constant", above=0)
    masses = _pair(masses, "masses")
    length = _settings.between(length, "length", above=0)
    centres = _pair(centres, "centres")
    moment = _Moment(masses, length, centres)
    body = generalized.Body(
        "manipulator",
        ("link 1", "link 2", "motor 1", "motor 2"),
        mass_matrix=_Mass(
            masses,
            length,
            centres,
            _pair(inertias, "inertias"),
            _pair(motor_inertias, "motor_inertias"),
        ),
        energy=_Springs(_pair(stiffness, "stiffness")),
        first_moment=moment,
        frames={"elbow": moment.elbow, "tip": moment.tip},
        velocity=_RATES,
    )
    level = generalized.RateCondition("level", "manipulator", _SumOfRates())
    return Model(
        "flexible-joint-manipulator",
        2,
        bodies=[body],
        joints=[Servo(level, time_constant)],
        gravity=(0.0, -_GRAVITY),
        remark=_REMARK,
    )


class _Mass(eqx.Module):
    """D(q1) of the links, J of the motors."""

    masses: Float[Array, "2"]
    length: Scalar
    centres: Float[Array, "2"]
    inertias: Float[Array, "2"]
    motor_inertias: Float[Array, "2"]

    def __call__(self, q: Float[Array, "4"]) -> Float[Array, "4 4"]:
        m1, m2 = self.masses
        c1, c2 = self.centres
        i1, i2 = self.inertias
        bent = self.length * c2 * jnp.cos(q[1])
        d22 = m2 * c2**2 + i2
        d12 = d22 + m2 * bent
        d11 = m1 * c1**2 + i1 + d22 + m2 * (self.length**2 + 2 * bent)
        links = jnp.stack([jnp.stack([d11, d12]), jnp.stack([d12, d22])])
        none = jnp.zeros_like(links)
        return jnp.block([[links, none], [none, jnp.diag(self.motor_inertias)]])


class _Springs(eqx.Module):
    """Energy of the springs between links and motors."""

    stiffness: Float[Array, "2"]

    def __call__(self, q: Float[Array, "4"]) -> Scalar:
        return 0.5 * jnp.sum(self.stiffness * (q[:2] - q[2:]) ** 2)


class _Moment(eqx.Module):
    """First moment of the mass of the links; and places on them."""

    masses: Float[Array, "2"]
    length: Scalar
    centres: Float[Array, "2"]

    def __call__(self, q: Float[Array, "4"]) -> Float[Array, "2"]:
        m1, m2 = self.masses
        first, second = _along(q[0]), _along(q[0] + q[1])
        return (m1 * self.centres[0] + m2 * self.length) * first + m2 * self.centres[1] * second

    def elbow(self, q: Float[Array, "4"]) -> generalized.PlanarFrame:
        return generalized.PlanarFrame(self.length * _along(q[0]), q[0])

    def tip(self, q: Float[Array, "4"]) -> generalized.PlanarFrame:
        # The mass of a link is uniform: its centre is in the middle.
        end = self.length * _along(q[0]) + 2 * self.centres[1] * _along(q[0] + q[1])
        return generalized.PlanarFrame(end, q[0] + q[1])


def _along(angle: Scalar) -> Float[Array, "2"]:
    """Direction of a link at this angle from the hanging position."""
    return jnp.stack([jnp.sin(angle), -jnp.cos(angle)])


class _SumOfRates(eqx.Module):
    def __call__(self, q: Float[Array, "4"], v: Float[Array, "4"], t: RealScalarLike) -> Scalar:
        del q, t
        return v[0] + v[1]


def _pair(value: Setting[Numbers], what: str) -> Float[Array, "2"]:
    """Two numbers greater than zero; one number is used for both.

    **Raises:** `ValueError` or `TypeError`.
    """
    if _checks.shape_of(value) == ():
        value = [value, value]
    numbers = _settings.vector(value, what, size=2)
    return jnp.stack([_settings.between(number, what, above=0) for number in numbers])
