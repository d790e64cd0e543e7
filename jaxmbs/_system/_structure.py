"""The static side of a system: which rows, columns and names belong together; and its equations at
one state.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from .._bodies import AbstractBody
from .._checks import namespace, of_known
from .._compliances import Direction
from .._constraints import OneSided, RowKind, Servo
from .._custom_types import BoolScalar, Scalar
from .._forces import States
from .._geometry import ANGLE, PlanarPose, Quantity, SpatialPose
from .._linalg import AbstractFactor, AbstractKKTMatrices, Elasticity


# --------------------------------------------------------------------------------------------------
# The static side of a system: which rows, columns and names belong together.
#
# Everything here is known before any number is, is hashed once, and decides what is compiled.
# --------------------------------------------------------------------------------------------------


class RowInfo(NamedTuple):
    """One scalar constraint row. `linear`: is its part of C the same for all velocities?
    `one_sided`: its mark if it acts one way only."""

    name: str
    kind: RowKind
    quantity: Quantity
    linear: bool = True
    one_sided: OneSided | None = None


class ConstraintInfo(NamedTuple):
    """One joint, driver or user constraint: rows `start` to `stop`, and the bodies (indices
    into `Structure.bodies`) and columns on which its reaction acts; `sites`: the names by which it
    calls them ("bar" or "bar.A")."""

    name: str
    kind: str
    start: int
    stop: int
    bodies: tuple[int, ...]
    columns: tuple[int, ...]
    sites: tuple[str, ...]


class BodyInfo(NamedTuple):
    """One moving body: the columns of its velocities, among them those of its resultant force and
    of its resultant torque, and the places of its coordinates in q. `posed`: its coordinates begin
    with the pose of its own frame."""

    name: str
    posed: bool
    columns: tuple[int, ...]
    force: tuple[int, ...]
    torque: tuple[int, ...]
    coordinates: tuple[int, ...]

    @property
    def resultants(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The columns of the resultant force and of the resultant torque; of a body without a frame
        of its own all its columns, and none."""
        return (self.force, self.torque) if self.force or self.torque else (self.columns, ())

    @property
    def others(self) -> tuple[int, ...]:
        """The columns that are not those of its own frame."""
        frame = (*self.force, *self.torque) if self.posed else ()
        return tuple(column for column in self.columns if column not in frame)


class ComplianceInfo(NamedTuple):
    """One compliance: the flexible body, or the joint (`in_joint`), and its deformations, `start`
    to `stop` among all."""

    name: str
    of: str
    in_joint: bool
    directions: tuple[Direction, ...]
    start: int

    @property
    def stop(self) -> int:
        """Index after its last deformation."""
        return self.start + len(self.directions)


class ColumnInfo(NamedTuple):
    """One coordinate or one velocity: of a velocity, what it is the rate of."""

    name: str
    quantity: Quantity


# What a structure is made from, besides whether parts are light.
_GIVEN = (
    *("constraints", "rows", "bodies", "coordinates", "velocities", "quaternions", "internal"),
    *("compliances", "semidefinite", "sites", "sticking"),
)


class Structure:
    """Names and index maps of one system; equal structures share compiled code."""

    def __init__(
        self,
        *,
        constraints: tuple[ConstraintInfo, ...],
        rows: tuple[RowInfo, ...],
        bodies: tuple[BodyInfo, ...],
        coordinates: tuple[ColumnInfo, ...],
        velocities: tuple[ColumnInfo, ...],
        quaternions: tuple[tuple[int, ...], ...] = (),
        internal: tuple[int, ...] = (),
        compliances: tuple[ComplianceInfo, ...] = (),
        semidefinite: tuple[int, ...] = (),
        sites: tuple[tuple[str, str], ...] = (),
        sticking: tuple[str, ...] = (),
        light: bool = False,
    ):
        self.constraints = constraints
        self.rows = rows
        self.bodies = bodies
        self.coordinates = coordinates
        self.velocities = velocities
        self.nq = len(coordinates)
        self.nv = len(velocities)
        # Places in q of each quaternion of unit length (n, 4).
        self.quaternions = np.array(quaternions, dtype=int).reshape(-1, 4)
        # Places in q of states that have no velocities.
        self.internal = np.array(internal, dtype=int)
        self.compliances = compliances
        # Velocities of bodies whose mass need only be positive semidefinite.
        self.semidefinite = semidefinite
        # Each name by which joints and forces call a moving body, and that body's own.
        self.sites = sites
        # Frictions in joints that hold at rest.
        self.sticking = sticking
        # Are parts so light that C M^-1 C^T loses what C has (`_light_parts.py`)?
        self.light = light
        # Of numbers that may be rounded, or be exact: no part of any program.
        self.possible_precision: float | None = None
        self._key = (
            *(constraints, rows, bodies, coordinates, velocities, quaternions, internal),
            *(compliances, semidefinite, sites, sticking, light),
        )
        self._hash = hash(self._key)

    def with_constraints(
        self, constraints: tuple[ConstraintInfo, ...], rows: tuple[RowInfo, ...]
    ) -> "Structure":
        """The same with more constraints behind the others."""
        given: dict[str, Any] = dict(zip(_GIVEN, self._key[:-1], strict=True))
        given["constraints"] = (*self.constraints, *constraints)
        given["rows"] = (*self.rows, *rows)
        other = Structure(**given, light=self.light)
        other.possible_precision = self.possible_precision
        return other

    def with_light_parts(self, light: bool) -> "Structure":
        """The same, of light parts or of none."""
        given: dict[str, Any] = dict(zip(_GIVEN, self._key[:-1], strict=True))
        other = Structure(**given, light=light)
        other.possible_precision = self.possible_precision
        return other

    def __getstate__(self) -> tuple[Any, ...]:
        return (*self._key, self.possible_precision)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        *given, light, precision = state
        Structure.__init__(self, **dict(zip(_GIVEN, given, strict=True)), light=light)
        self.possible_precision = precision

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Structure) and self._key == other._key

    def require_definite_mass(
        self, name: str, advice: str = "give every coordinate mass, or describe it without those"
    ) -> None:
        """Refuse what needs an M^-1, or a metric that is M. `name`: of what needs it.

        **Raises:** `ValueError` where M need only be positive semidefinite.
        """
        if self.semidefinite:
            names = (self.velocities[c].name.removesuffix(".rate") for c in self.semidefinite)
            raise ValueError(
                f"{name} needs a positive definite mass matrix, and that of {', '.join(names)} "
                f"need only be semidefinite; {advice}."
            )

    @cached_property
    def origin(self) -> np.ndarray:
        """Coordinates of bodies at the origin whose axes are the world's."""
        q = np.zeros(self.nq)
        q[self.quaternions[:, 0]] = 1.0
        return q

    @cached_property
    def has_loops(self) -> bool:
        """Do joints close loops? Rows of joints that make trees are independent, whatever the
        numbers, and so are those of a driver from those of its joint."""
        root = list(range(len(self.bodies) + 1))

        def find(body: int) -> int:
            while root[body] != body:
                body = root[body]
            return body

        for own in self.constraints:
            if own.kind == "driver":
                continue
            ends = [find(body) for body in (*own.bodies, len(self.bodies))[:2]]
            if len(own.bodies) > 2 or len(set(ends)) < 2:
                return True
            root[ends[0]] = ends[1]
        return False

    @cached_property
    def row_names(self) -> tuple[str, ...]:
        """Names of all rows, in order."""
        return tuple(row.name for row in self.rows)

    @cached_property
    def constraint_names(self) -> tuple[str, ...]:
        """Names of all joints and drivers, in row order."""
        return tuple(constraint.name for constraint in self.constraints)

    @cached_property
    def geometric(self) -> np.ndarray:
        """True for geometric rows (bool, (rows,))."""
        return np.array([row.kind is RowKind.position for row in self.rows], dtype=bool)

    @cached_property
    def geometric_rows(self) -> np.ndarray:
        """Indices of the geometric rows."""
        return np.flatnonzero(self.geometric)

    @cached_property
    def velocity_level(self) -> np.ndarray:
        """True for rows that velocities have to satisfy: all but those that are given at
        acceleration level (bool, (rows,))."""
        return np.array([row.kind is not RowKind.acceleration for row in self.rows], dtype=bool)

    @cached_property
    def nonlinear(self) -> np.ndarray:
        """True for rows whose part of C may depend on velocities (bool, (rows,))."""
        return np.array([not row.linear for row in self.rows], dtype=bool)

    @cached_property
    def one_sided_rows(self) -> tuple[int, ...]:
        """Indices of the rows that act one way only."""
        return tuple(k for k, row in enumerate(self.rows) if row.one_sided is not None)

    @cached_property
    def opening_rows(self) -> tuple[int, ...]:
        """Indices of the one-sided rows that motions with rigid limits may release."""
        marks = ((k, self.rows[k].one_sided) for k in self.one_sided_rows)
        return tuple(k for k, mark in marks if mark is not None and mark.opens)

    @property
    def other_rows(self) -> str:
        """The name of the rows that are not geometric."""
        return "velocity" if self.velocity_level.all() else "velocity and acceleration"

    @cached_property
    def servo(self) -> np.ndarray:
        """True for the rows of servo constraints (bool, (rows,))."""
        kinds = [constraint.kind for constraint in self.constraints]
        return np.array([kinds[owner] == Servo.kind for owner in self.row_owner], dtype=bool)

    @cached_property
    def holonomic(self) -> bool:
        """Are all rows that velocities have to satisfy the derivatives of geometric ones?"""
        return bool(np.all(self.geometric == self.velocity_level))

    @cached_property
    def is_internal(self) -> np.ndarray:
        """True for coordinates that are states without velocities (bool, (nq,))."""
        return np.isin(np.arange(self.nq), self.internal)

    @cached_property
    def angle_rows(self) -> np.ndarray:
        """True for rows whose residual is an angle, which may be full turns off."""
        return np.array([row.quantity == ANGLE for row in self.rows], dtype=bool)

    @cached_property
    def length_columns(self) -> np.ndarray:
        """True for velocities whose unit is the characteristic length."""
        return _lengths(info.quantity for info in self.velocities)

    def residual_scale(self, length: Any) -> Any:
        """The unit of each row's residual (rows,), given the unit `length` (m) of lengths; a NumPy
        array if that is a `float`."""
        return _scale([row.quantity for row in self.rows], length)

    def coordinate_scale(self, length: Any) -> Any:
        """The unit of each coordinate (nq,), likewise."""
        return _scale([info.quantity for info in self.coordinates], length)

    def column_scale(self, length: Any) -> Any:
        """The unit of each velocity (nv,), likewise, per second."""
        return _scale([info.quantity for info in self.velocities], length)

    def deformation_scale(self, length: Any) -> Any:
        """The unit of each deformation of flexible bodies and joints, likewise."""
        return _scale([d.quantity for own in self.compliances for d in own.directions], length)

    @cached_property
    def driven(self) -> np.ndarray:
        """True for the rows of drivers (bool, (rows,))."""
        kinds = [constraint.kind for constraint in self.constraints]
        return np.array([kinds[owner] == "driver" for owner in self.row_owner], dtype=bool)

    @cached_property
    def row_owner(self) -> np.ndarray:
        """Index of the constraint that each row belongs to."""
        sizes = [c.stop - c.start for c in self.constraints]
        return np.repeat(np.arange(len(self.constraints)), sizes)

    def constraint(self, name: str) -> ConstraintInfo:
        """The joint or driver of that name.

        **Raises:** `ValueError` that lists the names there are.
        """
        if name not in self.constraint_names:
            raise ValueError(
                f"there is no joint or driver {name!r}; there are "
                f"{', '.join(self.constraint_names)}."
            )
        return self.constraints[self.constraint_names.index(name)]

    def owner(self, site: str) -> str:
        """The moving body that joints and forces call by that name ("bar" for "bar.A"); any other
        name, such as that of the fixed frame, as it is."""
        return self._owners.get(site, site)

    @cached_property
    def _owners(self) -> dict[str, str]:
        return dict(self.sites)

    def rows_of(self, name: str) -> tuple[int, ...]:
        """Rows of the joint, driver or single row of that name.

        **Raises:** `ValueError` that lists the names there are.
        """
        if name in self.constraint_names:
            constraint = self.constraint(name)
            return tuple(range(constraint.start, constraint.stop))
        if name in self.row_names:
            return (self.row_names.index(name),)
        raise ValueError(
            f"there is no joint, driver or row {name!r}; the rows are {', '.join(self.row_names)}."
        )


def _lengths(quantities: Iterable[Quantity]) -> np.ndarray:
    return np.array([quantity.scale is None for quantity in quantities], dtype=bool)


def _scale(quantities: Sequence[Quantity], length: Any) -> Any:
    own = [1.0 if quantity.scale is None else quantity.scale for quantity in quantities]
    other = 1.0 if all(scale == 1.0 for scale in own) else np.array(own)
    are_lengths = _lengths(quantities)
    if isinstance(length, float):
        return np.where(are_lengths, length, other)
    return of_known(lambda x: namespace(x).where(are_lengths, x, other), length)


# --------------------------------------------------------------------------------------------------
# Indices and names of the numbers of bodies and states.
# --------------------------------------------------------------------------------------------------


GROUND = "ground"


class Slot(NamedTuple):
    """Indices of a body's numbers in the ground-extended state, and of the body or its parts among
    the bodies of the structure."""

    infos: tuple[int, ...]
    q: np.ndarray
    v: np.ndarray


def slots_of(
    bodies: Sequence[AbstractBody], states: Mapping[str, States], dimension: int
) -> dict[str, Slot]:
    """Slots by the names of bodies, of their frames and of forces with these states."""
    slots, nq, nv, first = {}, 0, 0, 0
    for body in bodies:
        kind, parts = body.inertia_properties().coordinates, body.parts()
        stop = first + (1 if parts is None else len(parts))
        own = Slot(
            tuple(range(first, stop)), np.arange(nq, nq + kind.nq), np.arange(nv, nv + kind.nv)
        )
        slots |= {name: own for name in (body.name, *body.sites())}
        nq, nv, first = nq + kind.nq, nv + kind.nv, stop
    for name, own in states.items():
        count = len(own.names)
        slots[states_of(name)] = Slot((), np.arange(nq, nq + count), np.zeros(0, int))
        nq += count
    ground = PlanarPose() if dimension == 2 else SpatialPose()
    slots[GROUND] = Slot((), np.arange(nq, nq + ground.nq), np.arange(nv, nv + ground.nv))
    return slots


def names_of(body: AbstractBody) -> tuple[str, ...]:
    """Names of a body; a part of it may have its own."""
    return tuple({body.name: None} | {part.name: None for part in body.parts() or ()})


def _column_name(body: AbstractBody, name: str) -> str:
    """The system's name of a coordinate or velocity of a body."""
    return f"{body.name}.{name}" if body.parts() is None else name


def coordinate_infos(body: AbstractBody) -> Iterator[ColumnInfo]:
    """The info of each coordinate of a body."""
    kind = body.inertia_properties().coordinates
    for name, quantity in zip(kind.names, kind.measures, strict=True):
        yield ColumnInfo(_column_name(body, name), quantity)


def states_of(force: str) -> str:
    """The key of the states of the force of that name among the slots; no body can have this
    name."""
    return f".{force}"


def state_infos(states: Mapping[str, States]) -> Iterator[ColumnInfo]:
    """The info of each state of the forces of these names."""
    for force, own in states.items():
        for name, quantity in zip(own.names, own.quantities, strict=True):
            yield ColumnInfo(f"{force}.{name}", quantity)


def velocity_infos(body: AbstractBody) -> Iterator[ColumnInfo]:
    """The info of each velocity of a body."""
    kind = body.inertia_properties().coordinates
    for name, quantity in zip(kind.velocity_names, kind.quantities, strict=True):
        yield ColumnInfo(_column_name(body, name), quantity)


def body_infos(body: AbstractBody, slot: Slot) -> Iterator[BodyInfo]:
    """The info of the body or of each of its parts; the coordinates of parts are in the order of
    their velocities."""
    kind, parts = body.inertia_properties().coordinates, body.parts()
    if parts is None:
        columns, (linear, angular) = tuple(slot.v.tolist()), kind.frame
        force, torque = columns[:linear], columns[linear : linear + angular]
        yield BodyInfo(body.name, kind.posed, columns, force, torque, tuple(slot.q.tolist()))
    for part in parts or ():
        force, torque = (tuple(slot.v[[*own]].tolist()) for own in (part.force, part.torque))
        coordinates = tuple(slot.q[[*part.force, *part.torque]].tolist())
        yield BodyInfo(part.name, False, (*force, *torque), force, torque, coordinates)


def quaternions_of(
    bodies: Sequence[AbstractBody], slots: dict[str, Slot]
) -> tuple[tuple[int, ...], ...]:
    """Indices of each quaternion in q."""
    return tuple(
        tuple(slots[body.name].q[list(places)].tolist())
        for body in bodies
        for places in body.inertia_properties().coordinates.quaternions
    )


def slot_indices(
    bodies: Sequence[tuple[str, ...]], slots: dict[str, Slot]
) -> dict[str, np.ndarray]:
    """`q{k}` and `v{k}`: indices of the k-th body of each part of a group."""
    indices = {}
    for k in range(len(bodies[0])):
        indices[f"q{k}"] = np.stack([slots[names[k]].q for names in bodies])
        indices[f"v{k}"] = np.stack([slots[names[k]].v for names in bodies])
    return indices


class State(NamedTuple):
    """Coordinates `q` (nq,), velocities `v` (nv,) and the time `t` (s)."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    t: Scalar


class Equations(eqx.Module):
    """The equations of motion of one state, linear in (dv/dt, lambda):

        M dv/dt + C^T lambda = F        C dv/dt = Gamma

    (Wojtyra & Fraczek 2013, eqs. 10-11). `descriptor` holds M and C, `force` (nv,) is F without
    friction, `offset` (rows,) is Gamma. `factor`: of S + mu I with mu = `REGULARISATION`, if it is
    known. `elasticity`: of flexible bodies and joints, if there are any. `state`: at which they
    were evaluated, for what a formulation adds to them that depends on it. `light`: whether parts
    are so light that C M^-1 C^T loses them, where only the numbers tell.
    """

    descriptor: AbstractKKTMatrices
    force: Float[Array, " nv"]
    offset: Float[Array, " rows"]
    structure: Structure = eqx.field(static=True)
    factor: AbstractFactor | None = None
    elasticity: Elasticity | None = None
    light: BoolScalar | None = None
    state: State | None = None


class Evaluation(eqx.Module):
    """All quantities of a system at one state, evaluated once.

    `equations`: M, C, F and Gamma. `gap` (rows,): Phi, zero in the rows of velocity constraints.
    `rate` (rows,): C v + b.
    """

    equations: Equations
    gap: Float[Array, " rows"]
    rate: Float[Array, " rows"]
