from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._custom_types import BoolScalar, Numbers, RealScalarLike, Setting
from .._linalg._solvers import Pseudoinverse
from .._solution import RESULTS
from .._system import ColumnInfo, Equations, Structure
from ._elastic_resolution import given_formulation
from ._independent_coordinates import mass_weighted
from ._minimum_norm import MinimumNorm
from .base import AbstractFormulation, Accelerations


# The residual of the accelerations that servo constraints prescribe, relative to these and to those
# of the system without them, where their actuators can provide them.
_ATTAINED = 1e-8

ActuationFunction = Callable[
    [Float[Array, " nq"], Float[Array, " nv"], RealScalarLike], Float[Array, "nv controls"]
]


class Control(NamedTuple):
    """Actuator forces at one state: `values` (controls,), and their generalized `force` (nv,).
    `left` (rows,): accelerations prescribed by servo constraints that are not attained, in units of
    the effective mass of their rows; `attained`: are these zero up to rounding?"""

    values: Float[Array, " controls"]
    force: Float[Array, " nv"]
    left: Float[Array, " rows"]
    attained: BoolScalar


class ServoControl(AbstractFormulation):
    """Servo constraints whose force is carried by given actuators, and by nothing else:

        M dv/dt + C_p^T lambda = F + B u,    C_p dv/dt = Gamma_p,    C_s dv/dt = Gamma_s,

    with C_p the rows of passive constraints, C_s those of servo constraints (`Servo`, or a driver
    with a time constant), B(q, v, t) the actuation matrix and u the controls. Of all forces B u
    that do it the one of least size in the metric of M^-1 is taken, and of all u that are this
    force that of least norm. With B = 1 the motion is that of the ideal force of the servo
    constraints, as all other formulations have it (Chen 2005; Zhao et al. 2018, section 8.3).

    Servo constraints themselves exert nothing then: their multipliers are zero. `control` returns
    what the actuators do, `controls` that along a motion.

    **Arguments:**

    - `actuators`: which bodies or velocities may carry a force: names of bodies (each of their
      velocities has a control), of single velocities ("arm.angular_velocity") or of coordinates of
      generalized bodies. Or B itself, (nv, controls), an array or a function of q, v and t.
    - `limits`: largest size of each control, one number or (controls,), default none. It is
      reported where one is exceeded (`controls`), and nothing is cut off.
    - `formulation`: of the multipliers of all other constraints, default `MinimumNorm()`.

    Accelerations that the actuators cannot provide are reported by the `result`
    `servo_not_attainable`.

    **Raises:** `TypeError` or `ValueError` that names what is wrong; for names that are none, when
    it is used.
    """

    word: ClassVar[str] = "servo-control"
    actuators: tuple[str, ...] = eqx.field(static=True)
    actuation: ActuationFunction | Float[Array, "nv controls"] | None
    limits: Float[Array, ""] | Float[Array, " controls"] | None
    formulation: AbstractFormulation

    def __init__(
        self,
        actuators: Setting[Sequence[str] | ActuationFunction | Numbers],
        *,
        limits: Setting[Numbers | None] = None,
        formulation: Setting[AbstractFormulation | None] = None,
    ):
        self.actuators, self.actuation = _actuators(actuators)
        self.limits = (
            None if limits is None else _checks.positive_numbers(limits, None, "control", "limits")
        )
        given = given_formulation(formulation)
        self.formulation = MinimumNorm() if given is None else given
        if self.formulation.elastic or self.formulation.adds_force:
            raise ValueError(
                "formulation must be one of rigid systems that finds the multipliers of all other "
                f"constraints, such as MinimumNorm(), got {type(self.formulation).__name__}; a "
                "NonIdeal stands around the ServoControl."
            )

    @property
    def inverts_mass(self) -> bool:
        return True

    @property
    def adds_force(self) -> bool:
        return True

    def solve(self, equations: Equations) -> Accelerations:
        if equations.structure.semidefinite:
            equations.structure.require_definite_mass(
                "ServoControl",
                "give every coordinate mass, or leave the formulation out, so that the servo acts "
                "by its ideal force",
            )
        found = self.control(equations)
        others = _without_servos(equations, equations.force + found.force)
        moved = self.formulation.solve(others)
        failed = RESULTS.where(found.attained, RESULTS.successful, RESULTS.servo_not_attainable)
        result = RESULTS.where(moved.result == RESULTS.successful, failed, moved.result)
        return Accelerations(moved.acceleration, moved.multipliers, result)

    def control(self, equations: Equations) -> Control:
        """The actuator forces at the state of the equations (`system.equations(q, v, t)`).

        **Raises:** `ValueError` for names of actuators that are none, and a system without servo
        constraints.
        """
        servo = _servo_rows(equations.structure)
        matrix = self._matrix(equations)
        scaled = mass_weighted(equations)
        passive_rows = jnp.where(servo[:, None], 0.0, scaled.matrix)
        servo_rows = jnp.where(servo[:, None], scaled.matrix, 0.0)
        passive = Pseudoinverse(passive_rows)
        offset = jnp.where(servo, 0.0, scaled.offset)
        without_control = scaled.force + passive.apply(offset - passive_rows @ scaled.force)
        required = jnp.where(servo, scaled.offset, 0.0) - servo_rows @ without_control
        # What a force changes, in coordinates in which mass is 1, is what the other constraints
        # leave of it; and it is one of those that the actuators have.
        admissible_rows = servo_rows - passive.apply_columns(passive_rows @ servo_rows.T).T
        weighed = scaled.weigh(matrix)
        actuated = Pseudoinverse(weighed)
        reachable = (weighed @ actuated.apply_columns(admissible_rows.T)).T
        # Rows are of unit length before what cannot be reached of them is taken away: a one beside
        # them makes the rank tolerance one of that length, so that no rounding is reached.
        beside = jnp.pad(reachable, ((0, 1), (0, 1))).at[-1, -1].set(1.0)
        least = Pseudoinverse(beside).apply(jnp.pad(required, (0, 1)))[:-1]
        left = reachable @ least - required
        values = actuated.apply(least)
        size = jnp.max(jnp.abs(required), initial=0.0) + jnp.max(
            jnp.abs(servo_rows @ without_control), initial=0.0
        )
        attained = jnp.max(jnp.abs(left), initial=0.0) <= _ATTAINED * size
        return Control(values, matrix @ values, left, attained)

    def actuated(self, structure: Structure) -> tuple[ColumnInfo, ...]:
        """The velocities that the controls act on; none where B was given.

        **Raises:** `ValueError` for a name of an actuator that is none.
        """
        return tuple(structure.velocities[k] for k in self._columns(structure))

    def _columns(self, structure: Structure) -> list[int]:
        """The columns of the velocities that the names of actuators denote."""
        velocities = {info.name: k for k, info in enumerate(structure.velocities)}
        # Coordinates whose rates are the velocities have names of their own.
        own = {
            name.removesuffix(".rate"): k
            for name, k in velocities.items()
            if name.endswith(".rate")
        }
        bodies = {body.name: body.columns for body in structure.bodies}
        found = []
        for name in self.actuators:
            if name in bodies:
                columns = bodies[name]
            elif name in velocities or name in own:
                columns = ({**own, **velocities}[name],)
            else:
                raise ValueError(
                    f"actuators names {_checks.shown(name)}, which is no body and no velocity; "
                    f"there are {_checks.listed([*bodies, *velocities])}."
                )
            found += columns
        twice = sorted({structure.velocities[k].name for k in found if found.count(k) > 1})
        if twice:
            raise ValueError(f"actuators names {', '.join(twice)} twice; name each once.")
        return found

    def _matrix(self, equations: Equations) -> Float[Array, "nv controls"]:
        structure = equations.structure
        if self.actuation is None:
            every = np.eye(structure.nv)
            return jnp.asarray(every[:, self._columns(structure)], equations.force.dtype)
        found = self.actuation
        if callable(found):
            state = equations.state
            if state is None:
                raise ValueError(
                    "these equations do not know their state, on which the actuation depends; "
                    "take those of system.equations(q, v, t)."
                )
            found = jnp.asarray(found(*state), float)
        if found.ndim != 2 or found.shape[0] != structure.nv:
            raise ValueError(
                f"the actuation matrix must have {structure.nv} rows, one for each velocity, and a "
                f"column for each control, got an array of shape {list(found.shape)}."
            )
        return found


def _servo_rows(structure: Structure) -> np.ndarray:
    """
    **Raises:** `ValueError` where there are none.
    """
    if not structure.servo.any():
        raise ValueError(
            "ServoControl needs a servo constraint, and this system has none; give it a "
            "jaxmbs.Servo, or a driver with a time_constant."
        )
    return structure.servo


def _without_servos(equations: Equations, force: Float[Array, " nv"]) -> Equations:
    """The equations of all other constraints, with this force."""
    others = ~equations.structure.servo
    descriptor = equations.descriptor.mask_rows(others)
    offset = jnp.where(others, equations.offset, 0.0)
    return Equations(descriptor, force, offset, equations.structure, state=equations.state)


def _actuators(
    value: Any,
) -> tuple[tuple[str, ...], ActuationFunction | Float[Array, "nv controls"] | None]:
    """Names, or the matrix.

    **Raises:** `TypeError` or `ValueError`.
    """
    if callable(value):
        return (), _settings.function(
            value, "actuators", "names, a matrix or a function of q, v, t", "q, v, t"
        )
    given = (value,) if isinstance(value, str) else value
    if isinstance(given, list | tuple) and any(isinstance(x, str) for x in given):
        names = _settings.names(given, "actuators", '("shoulder", "elbow")')
        return names, None
    shape = _checks.shape_of(given)
    if len(shape) != 2 or 0 in shape:
        raise ValueError(
            "actuators must be names of bodies or velocities, or the actuation matrix with a row "
            f"for each velocity and a column for each control, got {_checks.shown(value)}."
        )
    return (), _checks.real(given, shape, "actuators")
