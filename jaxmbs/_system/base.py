import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._bodies import ModalElasticity
from .._custom_types import BoolScalar, RealScalarLike, Scalar
from .._forces import (
    Clearance,
    ContactInfo,
    ContactState,
    MotorInfo,
    MotorState,
    StopInfo,
    StopState,
)
from .._limits import Tolerances
from .._linalg import AbstractKKTMatrices, Elasticity
from ._loads import FrictionMaps
from ._places import Attachments
from ._states import state_method
from ._structure import Equations, Evaluation, State, Structure


class ReleaseOption(NamedTuple):
    """A joint of fewer rows in the place of another, at one state.

    `kind` of the constraint `constraint` becomes `to` (with `axis`, a world direction, where
    the new joint has one: what its class calls so, as the normal of a plane); `rows` (k, nv) are
    its rows of C. No rows: the joint is left out.
    """

    constraint: str
    kind: str
    to: str
    axis: tuple[float, ...] | None
    rows: np.ndarray

    def __str__(self) -> str:
        axis = "" if self.axis is None else f", axis {self.axis_in_words()}"
        return f"{self.constraint}: {self.kind} -> {self.to}{axis}"

    def axis_in_words(self) -> str:
        """Its components, empty without an axis."""
        if self.axis is None:
            return ""
        # Adding zero turns a printed -0 into 0.
        return f"({', '.join(f'{round(x, 4) + 0.0:g}' for x in self.axis)})"


class AbstractSystem(eqx.Module):
    """A constrained mechanical system at a state (q, v, t):

        M(q, t) dv/dt + C^T lambda = F(q, v, t)     C dv/dt = Gamma     C v + b = 0     Phi = 0

    (Wojtyra & Fraczek 2013, eqs. 1-11). All other modules use these methods and no others.
    All arguments are flat arrays: q (nq,), v (nv,) in the system's own order, t in s.
    """

    structure: eqx.AbstractVar[Structure]
    reference_q: eqx.AbstractVar[Float[Array, " nq"]]
    # How exact the numbers of positions and directions are, lengths relative to the characteristic
    # length and angles in rad; None: exact to rounding.
    precision: eqx.AbstractVar[Scalar | None]

    @property
    def tolerances(self) -> Tolerances:
        """The tolerances by which questions about this system are decided."""
        return Tolerances(self.precision)

    @abc.abstractmethod
    def with_light_parts(self, light: bool) -> "AbstractSystem":
        """The same where it is known whether parts are so light that C M^-1 C^T loses them."""

    @abc.abstractmethod
    def with_light_parts_looked_at(self) -> "AbstractSystem":
        """The same after a look at masses that were traced when the system was made, or were
        replaced since then (`_light_parts.py`)."""

    @property
    @abc.abstractmethod
    def light_parts(self) -> BoolScalar | None:
        """As data, whether parts are so light; None where `Structure.light` says it."""

    @abc.abstractmethod
    def mass_matrix(
        self, q: Float[Array, " nq"], t: RealScalarLike | None = None
    ) -> Float[Array, "nv nv"]:
        """M(q, t), symmetric positive definite, or semidefinite for bodies declared so. t may be
        left out where masses do not depend on it.

        **Raises:** `ValueError` where they do.
        """

    @abc.abstractmethod
    def force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " nv"]:
        """F(q, v, t): applied forces and velocity-dependent inertia terms."""

    @abc.abstractmethod
    def force_couplings(self) -> tuple[tuple[int, ...], ...]:
        """Sets of columns: forces along one depend on the coordinates and velocities of the columns
        with which it shares a set, and on no others."""

    @abc.abstractmethod
    def free_acceleration(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " nv"]:
        """M^-1 F: what dv/dt would be if no constraint held anything.

        **Raises:** `ValueError` where M need only be positive semidefinite.
        """

    @abc.abstractmethod
    def position_residual(
        self, q: Float[Array, " nq"], t: RealScalarLike
    ) -> Float[Array, " geometric"]:
        """Phi(q, t): the geometric rows alone, in row order, each in the unit of its quantity."""

    @abc.abstractmethod
    def constraint_matrix(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, "rows nv"]:
        """C: the derivative of all rows along the velocities. v matters to nonlinear velocity
        constraints alone."""

    @abc.abstractmethod
    def velocity_residual(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " rows"]:
        """C v + b, zero for a velocity that the constraints allow, and in rows that are given at
        acceleration level."""

    @abc.abstractmethod
    def servo_error(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " rows"]:
        """beta: error of the motion relative to the servo constraints, in the unit of their rows
        per second; zero in all other rows."""

    @abc.abstractmethod
    def wound(self, q: Float[Array, " nq"], t: RealScalarLike) -> Float[Array, " rows"]:
        """The least angle (rad) by which the rope or belt of each row is wound around a pulley,
        negative where it would have left it; infinite in all other rows."""

    @abc.abstractmethod
    def servo_limits(self) -> Float[Array, " rows"]:
        """The largest magnitude of each row's multiplier that a servo can provide; infinite where
        no limit is given."""

    @abc.abstractmethod
    def acceleration_offset(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " rows"]:
        """Gamma, so that C dv/dt = Gamma (Wojtyra & Fraczek 2013, eqs. 8-9)."""

    @abc.abstractmethod
    def descriptor(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> AbstractKKTMatrices:
        """M and C at one state, in the form in which the system solves with them."""

    @abc.abstractmethod
    def elasticity(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Elasticity | None:
        """The elasticity of the system at one state; None if all bodies and joints are rigid."""

    @abc.abstractmethod
    def deformation_matrix(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, "rows deformations"]:
        """D: the derivative of all rows along the deformations of flexible bodies and joints."""

    @abc.abstractmethod
    def friction(
        self,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        t: RealScalarLike,
        multipliers: Float[Array, " rows"],
    ) -> Float[Array, " nv"]:
        """The part of F that depends on the multipliers: Coulomb friction."""

    @abc.abstractmethod
    def friction_maps(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> FrictionMaps:
        """Maps of the slip and the pressing forces of joints with friction."""

    @property
    @abc.abstractmethod
    def frictional_joints(self) -> tuple[str, ...]:
        """Names of the joints with friction, in row order; without any, `friction` is zero."""

    @property
    @abc.abstractmethod
    def motors(self) -> tuple[MotorInfo, ...]:
        """The motors among the forces."""

    @abc.abstractmethod
    def motor_states(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> MotorState:
        """The state of each of the `motors`, its arrays (motors,).

        **Raises:** `ValueError` for a system without motors.
        """

    @property
    @abc.abstractmethod
    def stops(self) -> tuple[StopInfo, ...]:
        """The stops of joints among the forces."""

    @abc.abstractmethod
    def stop_depths(self, q: Float[Array, " nq"]) -> Float[Array, "stops 2"]:
        """Penetration of the lower and of the upper bound of each of the `stops` (m or rad):
        negative, the distance, where a bound is not reached; -inf without a bound."""

    @abc.abstractmethod
    def stop_states(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> StopState:
        """The state of each of the `stops`: value and rate of the coordinate, depths, force, loss.

        **Raises:** `ValueError` for a system without stops.
        """

    @abc.abstractmethod
    def with_limits_as_rows(self) -> "AbstractSystem":
        """The same with stops of joints as one-sided rows behind all others, and not as forces, and
        with all `Structure.opening_rows` as rows that can be switched off (limits).

        **Raises:** `ValueError` for a system with compliances.
        """

    @abc.abstractmethod
    def with_active_limits(self, active: Float[Array, " limits"]) -> "AbstractSystem":
        """The result of `with_limits_as_rows` with these limits on (1) and off (0). A row that is
        off is zero in Phi, C and Gamma."""

    @abc.abstractmethod
    def with_restitution(self, values: Float[Array, " limits"]) -> "AbstractSystem":
        """The same with these coefficients of restitution of the limits."""

    @property
    @abc.abstractmethod
    def restitution(self) -> Float[Array, " limits"]:
        """The coefficient of restitution of each limit; NaN where its damping does not tell it."""

    @abc.abstractmethod
    def limit_gaps(self, q: Float[Array, " nq"], t: RealScalarLike) -> Float[Array, " limits"]:
        """Gap of each limit, active or not (m or rad): negative where it is violated."""

    @property
    @abc.abstractmethod
    def contacts(self) -> tuple[ContactInfo, ...]:
        """The contacts among the forces."""

    @abc.abstractmethod
    def contact_states(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> ContactState:
        """The state of each of the `contacts`, its arrays (contacts, ...).

        **Raises:** `ValueError` for a system without contacts.
        """

    @abc.abstractmethod
    def contact_clearances(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Clearance:
        """Clearance of each of the `contacts`, arrays (contacts,); the size of a shape without
        dimensions is the characteristic length.

        **Raises:** likewise.
        """

    @property
    @abc.abstractmethod
    def one_sided(self) -> bool:
        """Are there forces that set in where a gap closes: contacts, stops, elastic ropes?"""

    @abc.abstractmethod
    def clearances(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Clearance:
        """Clearance of each one-sided force, arrays (forces,).

        **Raises:** `ValueError` for a system without any.
        """

    @abc.abstractmethod
    def kinetic_energy(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike | None = None
    ) -> Scalar:
        """1/2 v^T M(q, t) v (J); t as for `mass_matrix`."""

    @abc.abstractmethod
    def places(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Attachments:
        """Points of action of each constraint on each of its bodies; none where the coordinates do
        not locate points. v and t matter to velocity constraints at frames of generalized bodies
        alone."""

    @abc.abstractmethod
    def rate(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nq"]:
        """qdot = N(q) v."""

    @abc.abstractmethod
    def flow(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " nq"]:
        """dq/dt along a motion: `rate`, and the rates of states that have no velocities."""

    @abc.abstractmethod
    def retract(self, q: Float[Array, " nq"], step: Float[Array, " nv"]) -> Float[Array, " nq"]:
        """The coordinates reached from q by a finite step along the velocities."""

    @abc.abstractmethod
    def difference(self, q: Float[Array, " nq"], end: Float[Array, " nq"]) -> Float[Array, " nv"]:
        """The finite step along the velocities that leads from q to `end`, rotations by less than
        a full turn: the inverse of `retract`."""

    @abc.abstractmethod
    def world_axes(self, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        """Orthogonal: from velocities, or a displacement along them, to the same along axes that
        never turn."""

    @abc.abstractmethod
    def turning(self, rate: Float[Array, "3"]) -> Float[Array, "nv nv"]:
        """Skew: the rate at which velocities along axes that never turn change where they are
        fixed in axes that turn with the angular velocity `rate` (rad/s, world; in the plane its
        z component). Zero where the coordinates do not define axes."""

    @abc.abstractmethod
    def steady(
        self,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        rate: Float[Array, "3"],
        t: RealScalarLike,
    ) -> Float[Array, " nq"]:
        """q after the time t (s), if the velocities keep to axes that turn with the angular
        velocity `rate` (rad/s, world)."""

    @abc.abstractmethod
    def knots(self) -> Float[Array, " knots"]:
        """Times (s), in order, at which prescribed motions are not smooth."""

    @abc.abstractmethod
    def driver_readings(self, q: Float[Array, " nq"], t: RealScalarLike) -> Float[Array, "3 rows"]:
        """Readings in the rows of the drivers: Phi, the coordinate that is prescribed (m or rad),
        an angle between -pi and pi where the configuration counts no turns, and its value at t,
        which does; zero in the others."""

    @abc.abstractmethod
    def elasticities(self) -> tuple[tuple[ModalElasticity, tuple[int, ...]], ...]:
        """Elasticities of the bodies that deform by modes, stacked by kind, each with the indices
        of its bodies in `Structure.bodies`."""

    @abc.abstractmethod
    def body_loads(self, bodies: tuple[int, ...], *state: Array) -> tuple[Array, Array]:
        """Resultants of all constraints and forces, without friction, on these bodies, which are in
        space and have frames, at a state q, v, t with these multipliers: the sum of all forces F
        (N), (n, 3), and of F (r - R)^T (N m) over their points r, with R the body's origin, along
        the world's axes, (n, 3, 3)."""

    @abc.abstractmethod
    def characteristic_length(self) -> Scalar:
        """The length (m) that makes linear and angular columns comparable; not
        differentiated."""

    @abc.abstractmethod
    def release_options(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> tuple[ReleaseOption, ...]:
        """The joints of fewer rows that may take each joint's place, in row order. Concrete
        arguments only."""

    @abc.abstractmethod
    def evaluation(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Evaluation:
        """The equations of one state with Phi and C v + b, friction left out."""

    @state_method()
    def equations(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Equations:
        """The linear equations of (dv/dt, lambda), friction left out."""
        return Equations(
            self.descriptor(q, v, t),
            self.force(q, v, t),
            self.acceleration_offset(q, v, t),
            self.structure,
            elasticity=self.elasticity(q, v, t),
            light=self.light_parts,
            state=State(q, v, jnp.asarray(t, q.dtype)),
        )

    @state_method()
    def velocity_offset(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " rows"]:
        """b in C v + b = 0; v matters to nonlinear velocity constraints alone."""
        residual = self.velocity_residual(q, v, t)
        return residual - self.constraint_matrix(q, v, t) @ v

    @state_method()
    def scaled_residual(
        self, q: Float[Array, " nq"], t: RealScalarLike
    ) -> Float[Array, " geometric"]:
        """Phi with lengths divided by the characteristic length: what "closed" refers to."""
        scale = self.residual_scale()[self.structure.geometric_rows]
        return self.position_residual(q, t) / scale

    def column_scale(self) -> Float[Array, " nv"]:
        """The unit of each velocity: one characteristic length per second for the motion of all
        bodies, one rad/s, and one scale of any other quantity per second."""
        return self.structure.column_scale(self.characteristic_length())

    def residual_scale(self) -> Float[Array, " rows"]:
        """The unit of each row, likewise; that of velocity rows is per second."""
        return self.structure.residual_scale(self.characteristic_length())
