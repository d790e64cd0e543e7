import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _settings, generalized, planar
from .._constraints import Servo
from .._custom_types import Numbers, RealScalarLike, Scalar, Setting
from .._system import Model


_START = np.array([(2.0, 0.0), (0.7, 1.9), (-1.6, 1.2), (-1.5, -1.1), (0.5, -1.8)])
_REMARK = (
    "Chosen: initial positions and velocities, which the source leaves out, and the time constant "
    "of the servo law, which it does not have."
)


def swarm(
    time_constant: Setting[Numbers | None] = 0.5,
    mass: Setting[Numbers] = 2.0,
    *,
    attraction: Setting[Numbers] = 1.0,
    repulsion: Setting[Numbers] = 0.5,
) -> Model:
    """Five robots in the plane, each steered by where the others are: a swarm.

    Zhao et al. (2018), section 8.2: robot i has to move at

        dq_i/dt = -sum over j of (q_i - q_j) (1 - 0.5 / |q_i - q_j|),

    towards robots that are farther than half a metre and away from nearer ones. Nothing else acts,
    so that the force of this servo constraint is the control. The start breaks it: all have half of
    the wanted velocities. The constraint force as it is printed (eq. 64, from the derivative of the
    constraint) leaves the error beta as it was; the decay in the source's Fig. 8 needs a term more,
    which is that of the servo law d(beta)/dt = -beta / P.

    **Arguments:** `time_constant`: P (s), as for `Servo`; None for the law as it is printed.
    `mass`: of each robot (kg). `attraction` (1/s) and `repulsion` (m/s): the numbers 1 and 0.5 of
    the law.

    **Raises:** `ValueError` or `TypeError` that names the argument.
    """
    law = _Deviation(
        _settings.between(attraction, "attraction"), _settings.between(repulsion, "repulsion")
    )
    if time_constant is not None:
        time_constant = _settings.between(time_constant, "time_constant", above=0)
    mass = _settings.between(mass, "mass", above=0)
    names = [f"robot {k + 1}" for k in range(len(_START))]
    # Each robot before the others, so that all of them have one function.
    turns = [[*names[k:], *names[:k]] for k in range(len(names))]
    bodies = [
        planar.Particle(name, mass=mass, position=_START[k], velocity=0.5 * law.wanted(_turned(k)))
        for k, name in enumerate(names)
    ]
    joints = [
        Servo(
            generalized.RateCondition(
                f"control {k + 1}", turn, law, rows=("x", "y"), quantity=generalized.LENGTH
            ),
            time_constant,
        )
        for k, turn in enumerate(turns)
    ]
    return Model("swarm", 2, bodies=bodies, joints=joints, remark=_REMARK)


class _Deviation(eqx.Module):
    """beta of the first of several robots: its velocity minus the wanted one."""

    attraction: Scalar
    repulsion: Scalar

    def __call__(
        self,
        q: tuple[Float[Array, "2"], ...],
        v: tuple[Float[Array, "2"], ...],
        t: RealScalarLike,
    ) -> Float[Array, "2"]:
        del t
        return v[0] - self.wanted(q)

    def wanted(self, q: tuple[Float[Array, "2"], ...]) -> Float[Array, "2"]:
        apart = q[0][None] - jnp.stack(q[1:])
        distance = jnp.linalg.norm(apart, axis=1, keepdims=True)
        return -jnp.sum(apart * (self.attraction - self.repulsion / distance), axis=0)


def _turned(first: int) -> tuple[Float[Array, "2"], ...]:
    """Initial positions from this robot on."""
    return tuple(jnp.asarray(place) for place in np.roll(_START, -first, axis=0))
