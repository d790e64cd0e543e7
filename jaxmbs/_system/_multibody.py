"""Bodies, joints and forces."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.lax as lax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .. import _checks
from .._bodies import AbstractBody, AbstractElement, ModalElasticity
from .._compliances import AbstractCompliance
from .._constraints import AbstractJoint, Driver, Frames, Release, Servo, Switched
from .._custom_types import BoolScalar, Indices, Numbers, RealScalarLike, Scalar
from .._fields import GRAVITY, PRECISION
from .._forces import (
    AbstractForce,
    AbstractOneSidedLoad,
    Clearance,
    ContactInfo,
    ContactState,
    JointStop,
    MotorInfo,
    MotorState,
    StopInfo,
    StopState,
)
from .._linalg import (
    BlockKKTMatrices,
    BlockMass,
    Elasticity,
    gather,
    layout_of,
    Pattern,
    scatter_add,
)
from .._programs import Compiling, program
from .._stop_gradient import stop_gradient
from . import _deformations, _groups, _limits_as_rows
from ._blocks import (
    add_blocks,
    block_mass,
    blocks_of,
    combined,
    constraint_blocks,
    is_posed,
    padded_blocks,
    Scales,
)
from ._building import build, Built, refuse_unknown_weight
from ._deformations import Deformations
from ._groups import (
    arms_of,
    BodyGroup,
    ConstraintGroup,
    drawn_frames,
    drawn_ways,
    DrawnFrame,
    ElementGroup,
    ForceGroup,
    frames_of,
    FrictionGroup,
    map_parts,
    motion_and_directions_of,
    motion_of,
    ways_of,
)
from ._light_parts import light_parts_as_data, loses_light_parts, MOST
from ._loads import (
    clearances,
    contact_states,
    friction_maps,
    FrictionMaps,
    generalized_friction,
    generalized_loads,
    motor_states,
    state_rates,
    stop_depths,
    stop_states,
    stored_energy,
)
from ._places import Attachments, places_of
from ._states import jitted, state_method
from ._structure import Equations, Evaluation, GROUND, Structure
from .base import AbstractSystem, ReleaseOption


# --------------------------------------------------------------------------------------------------
# Joints of fewer rows in the places of others.
# --------------------------------------------------------------------------------------------------


def row_count(group: ConstraintGroup) -> int:
    """Number of rows of all joints of a group."""
    return len(group.names) * group.indices["order"].shape[0]


def released_group(group: ConstraintGroup, release: Release, start: int) -> ConstraintGroup:
    """The group with the release's joints in the places of its own, rows from `start` on."""
    count = len(group.names)
    size = sum(len(p.rows) for p in release.primitives)
    markers = group.markers
    if release.turns is not None:
        markers = tuple(
            map_parts(lambda m, turn=turn: m.turned(jnp.asarray(turn)), marker)
            for marker, turn in zip(markers, release.turns, strict=True)
        )
    primitives = jax.tree.map(
        lambda x: jnp.broadcast_to(x, (count, *x.shape)) if eqx.is_array(x) else x,
        release.primitives,
    )
    slots = {
        f"{letter}{k}": group.indices[f"{letter}{k}"]
        for letter in "qv"
        for k in range(len(markers))
    }
    indices = Indices(
        row=start + np.arange(count) * size,
        order=np.arange(size),
        located=group.indices["located"],
        **slots,
    )
    return ConstraintGroup(primitives, markers, indices, group.names, group.bodies, group.joint)


def released_options(
    released: Sequence[tuple[ConstraintGroup, type[AbstractJoint] | type[JointStop], Release]],
    matrix: Float[Array, "rows nv"],
    frames: Sequence[Float[Array, "_ dim dim"]],
) -> list[ReleaseOption]:
    """One for each joint of the groups, from the rows of C of all of them, and the axes of each
    one's last marker."""
    options = []
    # Indexed one by one, arrays of JAX are a small program each.
    every_row, axes = np.asarray(matrix), [np.asarray(x) for x in frames]
    for (group, joint, release), rotations in zip(released, axes, strict=True):
        size = group.indices["order"].shape[0]
        for i, name in enumerate(group.names):
            axis = None
            if release.axis is not None:
                # Adding zero turns a printed -0 into 0.
                column = rotations[i, :, release.axis].round(12) + 0.0
                axis = tuple(column.tolist())
            first = group.indices["row"][i]
            rows = every_row[first : first + size]
            options.append(ReleaseOption(name, joint.kind, release.kind, axis, rows))
    return options


class MultibodySystem(AbstractSystem):
    """A system of bodies (rigid ones, particles, ones in coordinates of their own), joints,
    drivers and forces.

    **Arguments:**

    - `bodies`, `joints`, `drivers`, `forces`: parts of `jaxmbs.planar` or `jaxmbs.spatial`, of
      one dimension, and of `jaxmbs.generalized`. Rows: joints in order, then drivers in order;
      columns: bodies in order.
    - `elements`: mass and elasticity between bodies (`jaxmbs.generalized.Element`).
    - `compliances`: flexibility of bodies and joints (`jaxmbs.elastic`), for `ElasticResolution`.
    - `gravity`: m/s^2, world; default none.
    - `length`: the characteristic length (m) that makes lengths and angles comparable; default
      that of `characteristic_length`.
    - `precision`: how exact positions and directions are, lengths relative to the characteristic
      length and angles in rad; default exact. Ranks, verdicts and closure follow it.

    Every physical number is an array leaf (masses, inertias, marker offsets, parameters of
    joints, drivers and forces), stacked by kind; new values never recompile.

    **Raises:** `ValueError` that names the part for unknown, repeated or mixed-up parts.
    """

    body_groups: tuple[BodyGroup, ...]
    element_groups: tuple[ElementGroup, ...]
    constraint_groups: tuple[ConstraintGroup, ...]
    force_groups: tuple[ForceGroup, ...]
    friction_groups: tuple[FrictionGroup, ...]
    gravity: Float[Array, " dim"] = eqx.field(converter=GRAVITY)
    length: Scalar | None
    precision: Scalar | None
    reference_q: Float[Array, " nq"]
    initial_v: Float[Array, " nv"]
    structure: Structure = eqx.field(static=True)
    indices: Indices = eqx.field(static=True)
    pattern: Pattern = eqx.field(static=True)
    deformations: Deformations | None
    # Of light parts: does the structure know, and what is known as data.
    looked_at: bool = eqx.field(static=True)
    light: BoolScalar | None

    def __init__(
        self,
        bodies: Sequence[AbstractBody],
        joints: Sequence[AbstractJoint] = (),
        drivers: Sequence[Driver] = (),
        forces: Sequence[AbstractForce] = (),
        *,
        elements: Sequence[AbstractElement] = (),
        compliances: Sequence[AbstractCompliance] = (),
        gravity: Numbers | None = None,
        length: Numbers | None = None,
        precision: Numbers | None = None,
    ):
        planar = gravity is not None and _checks.shape_of(gravity) == (2,)
        built: Built = build(
            bodies, joints, drivers, forces, elements, compliances, 2 if planar else 3
        )
        dimension = built.dimension
        field = np.zeros(dimension) if gravity is None else gravity
        self.body_groups = built.body_groups
        self.element_groups = built.element_groups
        self.constraint_groups = built.constraint_groups
        self.force_groups = built.force_groups
        self.friction_groups = built.friction_groups
        self.gravity = _checks.real(field, (dimension,), "gravity")
        if gravity is not None:
            refuse_unknown_weight(bodies, elements, self.gravity)
        self.length = None if length is None else _checks.positive(length, "length")
        self.precision = PRECISION(precision)
        self.reference_q = built.reference_q
        self.initial_v = built.initial_v
        self.structure = built.structure
        self.indices = built.indices
        self.pattern = built.pattern
        self.deformations = built.deformations
        self.looked_at, self.light = True, None
        loses = loses_light_parts(self)
        self.looked_at = loses is not None
        if loses:
            self.structure = self.structure.with_light_parts(True)

    def with_light_parts(self, light: bool) -> "MultibodySystem":
        if light == self.structure.light and self.looked_at and self.light is None:
            return self
        return self._known(self.structure.with_light_parts(light), True, None)

    def with_light_parts_looked_at(self) -> "MultibodySystem":
        if self.light is not None:
            return self
        loses = loses_light_parts(self)
        if loses is not None:
            return self.with_light_parts(loses)
        # Whatever is traced may be a system that was looked at before it was an argument.
        replaced = not isinstance(self.reference_q, Tracer)
        if self.structure.light or (self.looked_at and not replaced):
            return self
        return self._known(self.structure, False, light_parts_as_data(self))

    def with_limits_as_rows(self) -> "MultibodySystem":
        if self.deformations is not None:
            raise ValueError(
                "rigid limits take no flexible bodies and joints (jaxmbs.elastic); leave the "
                "compliances out."
            )
        found = _limits_as_rows.switched_groups(
            self.constraint_groups, self.force_groups, self.structure
        )
        groups, forces, structure = found
        places = _limits_as_rows.places_of_rows(
            self.body_groups, self.element_groups, groups, structure, self.indices
        )
        return self._changed(
            constraint_groups=groups,
            force_groups=forces,
            structure=structure,
            indices=places[0],
            pattern=places[1],
        )

    def with_active_limits(self, active: Float[Array, " limits"]) -> "MultibodySystem":
        groups = _limits_as_rows.with_active(self.constraint_groups, self.structure, active)
        return self._changed(constraint_groups=groups)

    def with_restitution(self, values: Float[Array, " limits"]) -> "MultibodySystem":
        groups = _limits_as_rows.with_restitution(self.constraint_groups, self.structure, values)
        return self._changed(constraint_groups=groups)

    @property
    def restitution(self) -> Float[Array, " limits"]:
        return _limits_as_rows.restitution(self.constraint_groups, self.structure)

    @jitted
    def limit_gaps(self, q: Float[Array, " nq"], t: RealScalarLike) -> Float[Array, " limits"]:
        t = jnp.asarray(t, q.dtype)
        coordinates = self._with_ground(q, jnp.zeros(self.structure.nv, q.dtype))[0]
        groups = [
            group for group in self.constraint_groups if isinstance(group.primitives[0], Switched)
        ]
        whole = jnp.full((len(self.structure.rows),), jnp.inf, q.dtype)
        for group, frames in zip(groups, frames_of(groups, coordinates), strict=True):
            found = map_parts(_groups.gaps, group.primitives, frames, shared=(t,))
            places = group.indices["row"][:, None] + np.arange(found.shape[1])
            whole = whole.at[places].set(found)
        return whole[np.array(self.structure.opening_rows, int)]

    def _changed(self, **changed: Any) -> "MultibodySystem":
        other = object.__new__(MultibodySystem)
        for name, value in (vars(self) | changed).items():
            object.__setattr__(other, name, value)
        return other

    def _known(
        self, structure: Structure, looked_at: bool, light: BoolScalar | None
    ) -> "MultibodySystem":
        return self._changed(structure=structure, looked_at=looked_at, light=light)

    @property
    def light_parts(self) -> BoolScalar | None:
        if self.looked_at:
            return None
        # Without a look the way that is always right.
        return jnp.asarray(True) if self.light is None else self.light

    @property
    def _inertia_groups(self) -> tuple[BodyGroup | ElementGroup, ...]:
        return (*self.body_groups, *self.element_groups)

    @jitted
    def mass_matrix(
        self, q: Float[Array, " nq"], t: RealScalarLike | None = None
    ) -> Float[Array, "nv nv"]:
        return self._mass(q, self._mass_time(q, t)).dense()

    def _mass(self, q: Float[Array, " nq"], t: Scalar, pattern: Pattern | None = None) -> BlockMass:
        light = self.light_parts if self.light_parts is not None else self.structure.light
        if self.structure.nv > MOST:
            light = False
        unit = self.column_scale() if self.structure.semidefinite or light is not False else None
        own = pattern or self.pattern
        return block_mass(self.body_groups, self.element_groups, own, q, t, unit, light)

    @jitted
    def force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " nv"]:
        t = jnp.asarray(t, q.dtype)
        own = [
            map_parts(
                lambda b, x, u: (
                    b.inertia_force(x, u, t) + b.internal_force(x, u, t) + b.weight(x, self.gravity)
                ),
                group.inertia,
                gather(q, group.indices["q"]),
                gather(v, group.indices["v"]),
            )
            for group in self._inertia_groups
        ]
        places = [group.indices["v"] for group in self._inertia_groups]
        total = scatter_add(own, places, self.structure.nv)
        loads = generalized_loads(self.force_groups, *self._with_ground(q, v), t)
        return total + loads[: self.structure.nv]

    def force_couplings(self) -> tuple[tuple[int, ...], ...]:
        own = [group.indices["v"] for group in self._inertia_groups]
        own += [
            np.concatenate([group.indices[f"v{k}"] for k in range(len(group.markers))], axis=1)
            for group in self.force_groups
        ]
        # The ground's columns follow the last one.
        return tuple(
            tuple(column for column in columns if column < self.structure.nv)
            for places in own
            for columns in places.tolist()
        )

    @jitted
    def free_acceleration(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " nv"]:
        self.structure.require_definite_mass("free_acceleration")
        return self._mass(q, jnp.asarray(t, q.dtype)).solve(self.force(q, v, t))

    @jitted
    def position_residual(
        self, q: Float[Array, " nq"], t: RealScalarLike
    ) -> Float[Array, " geometric"]:
        t = jnp.asarray(t, q.dtype)
        coordinates = self._with_ground(q, jnp.zeros(self.structure.nv, q.dtype))[0]
        parts = [jnp.zeros((0,), q.dtype)]
        groups = self.constraint_groups
        for group, frames in zip(groups, frames_of(groups, coordinates), strict=True):
            residual = map_parts(_groups.position, group.primitives, frames, shared=(t,))
            parts.append(residual.ravel())
        return gather(jnp.concatenate(parts), self.indices["geometric_order"])

    @jitted
    def driver_readings(self, q: Float[Array, " nq"], t: RealScalarLike) -> Float[Array, "3 rows"]:
        t = jnp.asarray(t, q.dtype)
        groups = [group for group in self.constraint_groups if group.joint is None]
        rows = len(self.structure.rows)
        if not groups:
            return jnp.zeros((3, rows), q.dtype)
        coordinates = self._with_ground(q, jnp.zeros(self.structure.nv, q.dtype))[0]
        found = [
            map_parts(_groups.reading, group.primitives, frames, shared=(t,))
            for group, frames in zip(groups, frames_of(groups, coordinates), strict=True)
        ]
        places = [group.indices["row"] for group in groups]
        return jnp.stack([scatter_add([x[:, k] for x in found], places, rows) for k in range(3)])

    @jitted
    def constraint_matrix(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, "rows nv"]:
        count = len(self.structure.rows)
        return self._matrix(self.constraint_groups, count, q, v, t, self._scales())

    def _scales(self) -> Scales | None:
        """Scales of C; None if C cannot consist of rounding errors alone (`combined`)."""
        if all(map(is_posed, self.constraint_groups)):
            return None
        columns, ground = self.column_scale(), jnp.ones(self.indices["ground_v"].shape)
        return Scales(self.residual_scale(), jnp.concatenate([columns, ground]))

    def _matrix(
        self,
        groups: Sequence[ConstraintGroup],
        count: int,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        t: RealScalarLike,
        scales: Scales | None = None,
    ) -> Float[Array, "rows nv"]:
        t = jnp.asarray(t, q.dtype)
        coordinates, velocities = self._with_ground(q, v)
        # The ground's columns follow the last one and are cut off at the end.
        matrix = jnp.zeros((count, velocities.shape[0]), q.dtype)
        found = blocks_of(groups, coordinates, velocities, t, scales)
        for group, blocks in zip(groups, found, strict=True):
            for k, block in enumerate(blocks):
                corner = [group.indices["row"], group.indices[f"v{k}"][:, 0]]
                matrix = add_blocks(
                    matrix, block[:, group.indices["order"]], np.stack(corner, axis=1)
                )
        return matrix[:, : self.structure.nv]

    @jitted
    def velocity_residual(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " rows"]:
        return self._rows(_groups.velocity_rows, q, v, t)

    @jitted
    def acceleration_offset(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " rows"]:
        return self._rows(_groups.acceleration_rows, q, v, t)

    @jitted
    def servo_error(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " rows"]:
        return self._rows(_groups.servo_error, q, v, t)

    @jitted
    def wound(self, q: Float[Array, " nq"], t: RealScalarLike) -> Float[Array, " rows"]:
        return self._rows(_groups.wound, q, jnp.zeros((self.structure.nv,), q.dtype), t)

    def servo_limits(self) -> Float[Array, " rows"]:
        return gather(_groups.servo_limits_of(self.constraint_groups), self.indices["row_order"])

    def _rows(
        self, function, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " rows"]:
        t = jnp.asarray(t, q.dtype)
        groups = self.constraint_groups
        parts = [jnp.zeros((0,), q.dtype)]
        for group, motion in zip(groups, motion_of(groups, *self._with_ground(q, v)), strict=True):
            rows = map_parts(function, group.primitives, motion, shared=(t,))
            parts.append(gather(rows, group.indices["order"]).ravel())
        return gather(jnp.concatenate(parts), self.indices["row_order"])

    @jitted
    def descriptor(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> BlockKKTMatrices:
        t = jnp.asarray(t, q.dtype)
        coordinates, velocities = self._with_ground(q, v)
        groups, scales = self.constraint_groups, self._scales()
        blocks = constraint_blocks(groups, self.pattern, coordinates, velocities, t, scales)
        return BlockKKTMatrices(blocks, self._mass(q, t), layout_of(self.pattern))

    @jitted
    def evaluation(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Evaluation:
        t = jnp.asarray(t, q.dtype)
        groups = self.constraint_groups
        found: list[_groups.Rows] = [
            map_parts(_groups.rows, group.primitives, *own, shared=(t,))
            for group, own in zip(
                groups, motion_and_directions_of(groups, *self._with_ground(q, v)), strict=True
            )
        ]
        scales, pairs = self._scales(), zip(groups, found, strict=True)
        own = [combined(group, rows.blocks, scales) for group, rows in pairs]
        blocks = padded_blocks(groups, self.pattern, own, q.dtype)

        def in_order(parts: Sequence[Float[Array, "_ _"]]) -> Float[Array, " rows"]:
            """One number for each row of all joints."""
            ordered = [
                gather(part, group.indices["order"]).ravel()
                for group, part in zip(groups, parts, strict=True)
            ]
            together = jnp.concatenate([jnp.zeros((0,), q.dtype), *ordered])
            return gather(together, self.indices["row_order"])

        equations = Equations(
            BlockKKTMatrices(blocks, self._mass(q, t), layout_of(self.pattern)),
            self.force(q, v, t),
            in_order([rows.offset for rows in found]),
            self.structure,
            elasticity=self._elasticity(own, q, v, t),
            light=self.light_parts,
        )
        gap, rate = in_order([rows.gap for rows in found]), in_order([rows.rate for rows in found])
        return Evaluation(equations, gap, rate)

    @jitted
    def elasticity(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Elasticity | None:
        if self.deformations is None:
            return None
        t = jnp.asarray(t, q.dtype)
        own = blocks_of(self.constraint_groups, *self._with_ground(q, v), t, self._scales())
        return self._elasticity(own, q, v, t)

    def _elasticity(
        self,
        blocks: Sequence[tuple[Float[Array, "_ _ _"], ...]],
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        t: Scalar,
    ) -> Elasticity | None:
        """The elasticity from the blocks of C of each group."""
        if (giving := self.deformations) is None:
            return None
        groups, extended = self.constraint_groups, self._with_ground(q, v)
        padded = padded_blocks(groups, self.pattern, blocks, q.dtype, giving.pattern)
        mass = self._mass(q, t, giving.pattern)
        loads = giving.loads(self.force_groups, *extended, t)
        columns = giving.columns(groups, *extended, t)
        return giving.elasticity(padded, mass, columns, loads, self.structure.geometric)

    @jitted
    def deformation_matrix(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, "rows deformations"]:
        rows, t = len(self.structure.rows), jnp.asarray(t, q.dtype)
        if (giving := self.deformations) is None:
            return jnp.zeros((rows, 0), q.dtype)
        columns = giving.columns(self.constraint_groups, *self._with_ground(q, v), t)
        return giving.matrix(columns, rows)

    @jitted
    def friction(
        self,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        t: RealScalarLike,
        multipliers: Float[Array, " rows"],
    ) -> Float[Array, " nv"]:
        own, t = self._with_ground(q, v), jnp.asarray(t, q.dtype)
        return generalized_friction(self.friction_groups, *own, t, multipliers)[: self.structure.nv]

    @jitted
    def friction_maps(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> FrictionMaps:
        own, t = self._with_ground(q, v), jnp.asarray(t, q.dtype)
        found = friction_maps(self.friction_groups, *own, t, jnp.zeros((len(self.structure.rows),)))
        return eqx.tree_at(lambda x: x.slip, found, found.slip[..., : self.structure.nv])

    @property
    def frictional_joints(self) -> tuple[str, ...]:
        names = {name for group in self.friction_groups for name in group.names}
        return tuple(name for name in self.structure.constraint_names if name in names)

    @property
    def motors(self) -> tuple[MotorInfo, ...]:
        return tuple(info for group in self.force_groups for info in group.motors)

    @jitted
    def motor_states(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> MotorState:
        if not self.motors:
            raise ValueError("the system has no motor (forces.Motor).")
        t = jnp.asarray(t, q.dtype)
        return motor_states(self.force_groups, *self._with_ground(q, v), t)

    @property
    def stops(self) -> tuple[StopInfo, ...]:
        return tuple(info for group in self.force_groups for info in group.stops)

    @jitted
    def stop_depths(self, q: Float[Array, " nq"]) -> Float[Array, "stops 2"]:
        v = jnp.zeros((self.structure.nv,), q.dtype)
        return stop_depths(self.force_groups, self._with_ground(q, v)[0])

    @jitted
    def stop_states(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> StopState:
        del t
        if not self.stops:
            raise ValueError("the system has no stop of a joint (forces.JointStop).")
        return stop_states(self.force_groups, *self._with_ground(q, v))

    @property
    def contacts(self) -> tuple[ContactInfo, ...]:
        return tuple(info for group in self.force_groups for info in group.contacts)

    @jitted
    def contact_states(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> ContactState:
        del t
        if not self.contacts:
            raise ValueError("the system has no contact (forces.Contact).")
        return contact_states(self.force_groups, *self._with_ground(q, v))

    @property
    def one_sided(self) -> bool:
        return bool(self._one_sided_groups())

    @jitted
    def clearances(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Clearance:
        if not self.one_sided:
            raise ValueError(
                "the system has no force that sets in where a gap closes (forces.Contact, "
                "JointStop, ElasticRope)."
            )
        return self._clearances(self._one_sided_groups(), q, v)

    @jitted
    def contact_clearances(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Clearance:
        if not self.contacts:
            raise ValueError("the system has no contact (forces.Contact).")
        return self._clearances([group for group in self.force_groups if group.contacts], q, v)

    def _one_sided_groups(self) -> list[ForceGroup]:
        return [own for own in self.force_groups if isinstance(own.load, AbstractOneSidedLoad)]

    def _clearances(
        self, groups: Sequence[ForceGroup], q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> Clearance:
        found = clearances(groups, *self._with_ground(q, v))
        size = jnp.where(jnp.isinf(found.size), self.characteristic_length(), found.size)
        return found._replace(size=size)

    @jitted
    def kinetic_energy(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike | None = None
    ) -> Scalar:
        s, total = self._mass_time(q, t), jnp.zeros((), q.dtype)
        for group in self._inertia_groups:
            total = total + jnp.sum(
                map_parts(
                    lambda b, x, u: 0.5 * u @ b.mass_matrix(x, s) @ u,
                    group.inertia,
                    gather(q, group.indices["q"]),
                    gather(v, group.indices["v"]),
                )
            )
        return total

    @jitted
    def energy(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> tuple[Scalar, Scalar]:
        """Kinetic and potential energy (J): of gravity, zero at the world's origin, and of what
        the forces store (springs, bushings) and bodies (elasticity).

        Constant forces, motors and drivers store nothing: their work changes the sum.
        """
        potential = stored_energy(self.force_groups, self._with_ground(q, v)[0])
        for group in self._inertia_groups:
            potential = potential + jnp.sum(
                map_parts(
                    lambda b, x: b.potential(x, self.gravity) + b.stored_energy(x),
                    group.inertia,
                    gather(q, group.indices["q"]),
                )
            )
        return self.kinetic_energy(q, v, t), potential

    @jitted
    def places(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Attachments:
        t = jnp.asarray(t, q.dtype)
        return places_of(
            self.constraint_groups, self.structure, GROUND, *self._with_ground(q, v), t
        )

    def _mass_time(self, q: Float[Array, " nq"], t: RealScalarLike | None) -> Scalar:
        """The time at which M is evaluated; only time-dependent masses need it."""
        if t is None and any(group.inertia.rheonomic for group in self._inertia_groups):
            raise ValueError("the mass of this system depends on time: give t (s).")
        return jnp.asarray(0.0 if t is None else t, q.dtype)

    def _places(self, kind: str) -> list[np.ndarray]:
        return [group.indices[kind] for group in self.body_groups]

    @state_method()
    def rate(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nq"]:
        parts = [
            jax.vmap(group.inertia.coordinates.rate)(
                gather(q, group.indices["q"]), gather(v, group.indices["v"])
            )
            for group in self.body_groups
        ]
        return scatter_add(parts, self._places("q"), self.structure.nq)

    @state_method()
    def flow(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " nq"]:
        moving, t = self.rate(q, v), jnp.asarray(t, q.dtype)
        if not self.structure.internal.size:
            return moving
        own = self.force_groups, self.friction_groups
        return moving + state_rates(*own, *self._with_ground(q, v), t)[: len(q)]

    @state_method(step="v")
    def retract(self, q: Float[Array, " nq"], step: Float[Array, " nv"]) -> Float[Array, " nq"]:
        parts = [
            jax.vmap(group.inertia.coordinates.retract)(
                gather(q, group.indices["q"]), gather(step, group.indices["v"])
            )
            for group in self.body_groups
        ]
        return self._beside_states(parts, q)

    def _beside_states(self, parts: list[Array], q: Float[Array, " nq"]) -> Float[Array, " nq"]:
        """Coordinates of all bodies, and the states of forces as they are in q."""
        places, states = self._places("q"), self.structure.internal
        if states.size:
            parts, places = [*parts, gather(q, states)], [*places, states]
        return scatter_add(parts, places, self.structure.nq)

    @state_method(end="q")
    def difference(self, q: Float[Array, " nq"], end: Float[Array, " nq"]) -> Float[Array, " nv"]:
        parts = [
            jax.vmap(group.inertia.coordinates.difference)(
                gather(q, group.indices["q"]), gather(end, group.indices["q"])
            )
            for group in self.body_groups
        ]
        return scatter_add(parts, self._places("v"), self.structure.nv)

    @jitted
    def world_axes(self, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        blocks = [
            jax.vmap(group.inertia.coordinates.world_axes)(gather(q, group.indices["q"]))
            for group in self.body_groups
        ]
        return self._diagonal(blocks, q)

    @jitted
    def turning(self, rate: Float[Array, "3"]) -> Float[Array, "nv nv"]:
        blocks = []
        for group in self.body_groups:
            block = group.inertia.coordinates.turning(rate)
            blocks.append(jnp.broadcast_to(block, (len(group.indices["v"]), *block.shape)))
        return self._diagonal(blocks, rate)

    def _diagonal(self, blocks: list[Array], like: Array) -> Float[Array, "nv nv"]:
        """A matrix of one block for each body."""
        matrix = jnp.zeros((self.structure.nv,) * 2, like.dtype)
        for group, block in zip(self.body_groups, blocks, strict=True):
            start = group.indices["v"][:, 0]
            matrix = add_blocks(matrix, block, np.stack([start, start], axis=1))
        return matrix

    @state_method()
    def steady(
        self,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        rate: Float[Array, "3"],
        t: RealScalarLike,
    ) -> Float[Array, " nq"]:
        t = jnp.asarray(t, q.dtype)
        parts = [
            jax.vmap(group.inertia.coordinates.steady, in_axes=(0, 0, None, None))(
                gather(q, group.indices["q"]), gather(v, group.indices["v"]), rate, t
            )
            for group in self.body_groups
        ]
        return self._beside_states(parts, q)

    def elasticities(self) -> tuple[tuple[ModalElasticity, tuple[int, ...]], ...]:
        return _deformations.elasticities(self.body_groups, self.structure)

    def body_loads(self, bodies: tuple[int, ...], *state: Array) -> tuple[Array, Array]:
        return _deformations.body_loads(self, bodies, *state)

    def knots(self) -> Float[Array, " knots"]:
        return _groups.knots_of((*self.constraint_groups, *self.force_groups))

    def characteristic_length(self) -> Scalar:
        """The one that was given, or the root mean square distance from a joint's point to the
        centre of mass of each moving body it acts on; 1 m if there is none or it is zero."""
        if self.length is not None:
            return lax.stop_gradient(self.length)
        groups = [group for group in self.constraint_groups if group.indices["located"].any()]
        return _mean_distance(stop_gradient(groups))

    @state_method()
    def marker_frames(self, q: Float[Array, " nq"]) -> dict[str, Frames]:
        """The world frames of the markers of each joint and driver at q, by its name."""
        coordinates = self._with_ground(q, jnp.zeros(self.structure.nv, q.dtype))[0]
        frames: dict[str, Frames] = {}
        groups = self.constraint_groups
        for group, stacked in zip(groups, frames_of(groups, coordinates), strict=True):
            for i, name in enumerate(group.names):
                frames[name] = jax.tree.map(lambda x, i=i: x[i], stacked)
        return frames

    @property
    def has_ways(self) -> bool:
        """Is there a rope, a belt, or a tendon along which something acts?"""
        return any(map(ways_of, (*self.constraint_groups, *self.force_groups)))

    def drawn_ways(self, q: Float[Array, " nq"]) -> list[tuple[Array, Array]]:
        """Lines and circles of ropes, belts and tendons at q: (parts, m, dim), and (parts, n, k,
        dim), whose points coincide where there is no circle."""
        coordinates = self._with_ground(q, jnp.zeros(self.structure.nv, q.dtype))[0]
        return drawn_ways((*self.constraint_groups, *self.force_groups), coordinates)

    def drawn_frames(
        self, q: Float[Array, " nq"]
    ) -> tuple[list[tuple[DrawnFrame, ...]], list[tuple[DrawnFrame, ...]]]:
        """Frames of all markers at q, and those of their bodies: for each group of constraints, and
        for each group of forces."""
        coordinates = self._with_ground(q, jnp.zeros(self.structure.nv, q.dtype))[0]
        found = drawn_frames((*self.constraint_groups, *self.force_groups), coordinates)
        count = len(self.constraint_groups)
        return found[:count], found[count:]

    @state_method()
    def release_options(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> tuple[ReleaseOption, ...]:
        options = [
            ReleaseOption(info.name, info.kind, "none", None, np.zeros((0, self.structure.nv)))
            for info in self.structure.constraints
            if info.stop - info.start == 1 and info.kind not in (Driver.kind, Servo.kind)
        ]
        released = []
        for group in self.constraint_groups:
            start = sum(row_count(r) for r, _, _ in released)
            for release in group.joint.releases() if group.joint else ():
                changed = released_group(group, release, start)
                released.append((changed, group.joint, release))
                start += row_count(changed)
        groups = tuple(group for group, _, _ in released)
        matrix, frames = _released_rows(self, groups, q, v, t)
        options += released_options(released, matrix, frames)
        order = self.structure.constraint_names.index
        return tuple(sorted(options, key=lambda option: order(option.constraint)))

    def _with_ground(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, " extended_q"], Float[Array, " extended_v"]]:
        """q and v followed by the ground's constant pose and zero velocity."""
        pose = jnp.asarray(self.indices["ground_q"], q.dtype)
        rest = jnp.zeros(self.indices["ground_v"].shape, v.dtype)
        return jnp.concatenate([q, pose]), jnp.concatenate([v, rest])


@program(compiling=Compiling.ONCE, inline=True)
def _mean_distance(groups: list[ConstraintGroup]) -> Scalar:
    """From the points of joints to the centres of mass of the bodies that they act on."""
    squares, count = jnp.asarray(0.0), 0.0
    for group, own in zip(groups, arms_of(groups), strict=True):
        located = group.indices["located"]
        distances = map_parts(_groups.distances, group.primitives, own)
        squares = squares + jnp.sum(located * distances**2)
        count = count + np.sum(located)
    mean = squares / max(count, 1.0)
    return jnp.where(mean > 0, jnp.sqrt(jnp.where(mean > 0, mean, 1.0)), 1.0)


@program(compiling=Compiling.ONCE)
def _released_rows(
    system: MultibodySystem,
    groups: tuple[ConstraintGroup, ...],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
) -> tuple[Float[Array, "rows nv"], list[Float[Array, "n dim dim"]]]:
    """Rows of C of released joints, and the axes of each one's last marker."""
    matrix = system._matrix(groups, sum(map(row_count, groups)), q, v, t)
    coordinates = system._with_ground(q, v)[0]
    axes = [
        jax.vmap(lambda frame: frame.rotation)(frames[-1])
        for frames in frames_of(groups, coordinates)
    ]
    return matrix, axes
