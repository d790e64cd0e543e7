"""From named parts in their reference configuration to stacked groups and index maps."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._bodies import (
    AbstractBody,
    AbstractElement,
    AbstractMarker,
    CoordinateMarker,
    Frame,
    PlanarMarker,
    PoseMarker,
    SpatialMarker,
)
from .._compliances import AbstractCompliance
from .._constraints import (
    AbstractCoordinate,
    AbstractJoint,
    AbstractPrimitive,
    Driver,
    Frames,
    OwnCoordinate,
    RowKind,
    Servo,
)
from .._custom_types import Indices
from .._fields import fields_of
from .._forces import (
    AbstractBodyForce,
    AbstractForce,
    AbstractJointForce,
    AbstractJointFriction,
    AbstractLoad,
    AbstractPatternForce,
    between_each_pair,
    Contact,
    in_each_joint,
    JointFriction,
    JointStop,
    Motor,
    States,
)
from .._geometry import (
    AbstractCoordinates,
    FlatCoordinates,
    PlanarFrame,
    PlanarPose,
    SpatialFrame,
    SpatialPose,
)
from .._linalg import Pattern
from ._blocks import pattern_of
from ._deformations import compliance_groups, Deformations, deformations_of
from ._groups import (
    BodyGroup,
    ConstraintGroup,
    ElementGroup,
    ForceGroup,
    FrictionGroup,
    group_by,
    is_linear_in_velocities,
    joined,
    stack,
)
from ._states import precision
from ._structure import (
    body_infos,
    ColumnInfo,
    ComplianceInfo,
    ConstraintInfo,
    coordinate_infos,
    GROUND,
    names_of,
    quaternions_of,
    RowInfo,
    Slot,
    slot_indices,
    slots_of,
    state_infos,
    states_of,
    Structure,
    velocity_infos,
)


class Built(NamedTuple):
    """The data that `MultibodySystem` stores."""

    dimension: int
    body_groups: tuple[BodyGroup, ...]
    element_groups: tuple[ElementGroup, ...]
    constraint_groups: tuple[ConstraintGroup, ...]
    force_groups: tuple[ForceGroup, ...]
    friction_groups: tuple[FrictionGroup, ...]
    reference_q: Float[Array, " nq"]
    initial_v: Float[Array, " nv"]
    structure: Structure
    indices: Indices
    pattern: Pattern
    deformations: Deformations | None


class _Driven(NamedTuple):
    """An object that a driver may act on: a joint, or a body with coordinates of its own."""

    said: str
    bodies: tuple[str, ...]
    markers: tuple[AbstractMarker, ...]
    coordinates: Mapping[str, AbstractCoordinate]


class _Constraint(NamedTuple):
    """A joint or driver with its markers made."""

    name: str
    kind: str
    joint: type[AbstractJoint] | None
    bodies: tuple[str, ...]
    primitives: tuple[AbstractPrimitive, ...]
    markers: tuple[AbstractMarker, ...]
    located: bool


def build(
    bodies: Sequence[AbstractBody],
    joints: Sequence[AbstractJoint],
    drivers: Sequence[Driver],
    forces: Sequence[AbstractForce],
    elements: Sequence[AbstractElement],
    compliances: Sequence[AbstractCompliance],
    default: int,
) -> Built:
    """Check that the parts belong together, and lay them out. `default`: the dimension, where no
    body is anywhere."""
    bodies = _settings.parts(bodies, AbstractBody, "bodies")
    joints = _settings.parts(joints, AbstractJoint, "joints")
    drivers = _settings.parts(drivers, Driver, "drivers")
    forces = _settings.parts(forces, AbstractForce, "forces")
    elements = _settings.parts(elements, AbstractElement, "elements")
    compliances = _settings.parts(compliances, AbstractCompliance, "compliances")
    _refuse_names(bodies, forces, (*joints, *drivers), elements, compliances)
    for part in (*bodies, *joints, *drivers, *forces, *elements, *compliances):
        _refuse_other_precision(part)
    if len(bodies) == 0:
        raise ValueError("a system needs at least one body.")
    sited = {name: site for body in bodies for name, site in body.sites().items()}
    places = [name for name, site in sited.items() if site.reference.dimension is not None]
    forces = [
        own
        for force in forces
        for own in (
            _of_force(force, in_each_joint, force, joints)
            if isinstance(force, AbstractPatternForce)
            else _of_force(force, between_each_pair, force, places)
            if isinstance(force, Contact)
            else (force,)
        )
    ]
    dimension = _dimension(bodies, default)
    states = _states(forces, joints)
    slots = slots_of(bodies, states, dimension)
    between = _element_groups(bodies, elements, slots)
    place = _Placer(bodies, dimension)
    constraints = _constraints(bodies, joints, drivers, place)
    sites = _Sites(place, joints, constraints)
    constraints = [own for own in constraints if own.primitives]
    infos, rows = _rows(constraints, slots)
    coordinates = (
        *(info for b in bodies for info in coordinate_infos(b)),
        *state_infos(states),
    )
    _unique("coordinate", [info.name for info in coordinates])
    groups = _constraint_groups(constraints, infos, slots)
    force_groups = _force_groups(forces, slots, sites)
    first = {body.name: int(slots[body.name].v[0]) for body in bodies}
    giving, giving_infos = compliance_groups(
        compliances, bodies, groups, force_groups, first, dimension
    )
    structure = _structure(bodies, forces, states, slots, infos, rows, coordinates, giving_infos)
    body_groups = _body_groups(bodies, between, slots)
    pattern = pattern_of(body_groups, between, groups, len(rows))
    ground = PlanarPose() if dimension == 2 else SpatialPose()
    indices = Indices(
        ground_q=np.asarray(ground.origin),
        ground_v=np.zeros(ground.nv),
        **row_orders(groups, rows),
    )
    return Built(
        dimension=dimension,
        body_groups=body_groups,
        element_groups=between,
        constraint_groups=groups,
        force_groups=force_groups,
        friction_groups=_friction_groups(forces, slots, sites, infos),
        reference_q=joined(
            [*(b.coordinates() for b in bodies), *(own.start for own in states.values())]
        ),
        initial_v=joined([b.velocities() for b in bodies]),
        structure=structure,
        indices=indices,
        pattern=pattern,
        deformations=deformations_of(giving, giving_infos, pattern, groups),
    )


def _structure(
    bodies: Sequence[AbstractBody],
    forces: Sequence[AbstractForce],
    states: Mapping[str, States],
    slots: dict[str, Slot],
    infos: tuple[ConstraintInfo, ...],
    rows: tuple[RowInfo, ...],
    coordinates: tuple[ColumnInfo, ...],
    compliances: tuple[ComplianceInfo, ...],
) -> Structure:
    """Names and places of all rows and columns."""
    return Structure(
        constraints=infos,
        rows=rows,
        bodies=tuple(info for b in bodies for info in body_infos(b, slots[b.name])),
        coordinates=coordinates,
        velocities=tuple(info for b in bodies for info in velocity_infos(b)),
        quaternions=quaternions_of(bodies, slots),
        internal=tuple(place for name in states for place in slots[states_of(name)].q.tolist()),
        sticking=tuple(
            f.name
            for f in forces
            if isinstance(f, JointFriction | AbstractJointFriction) and f.name in states
        ),
        compliances=compliances,
        semidefinite=tuple(
            int(column)
            for b in bodies
            if b.inertia_properties().semidefinite
            for column in slots[b.name].v
        ),
        sites=tuple((site, b.name) for b in bodies for site in b.sites()),
    )


def _refuse_other_precision(part: Any) -> None:
    """**Raises:** `ValueError` for a part whose numbers are not of the precision in use."""
    wanted = precision()
    for word in fields_of(part):
        held = getattr(part, word)
        if isinstance(held, jax.Array) and held.dtype.kind == "f" and held.dtype != wanted:
            raise ValueError(
                f"{part.name!r} was made in {held.dtype} and {wanted} is in use now: its numbers "
                "are rounded already. Switch double precision on before the first part is made "
                '(jax.config.update("jax_enable_x64", True) behind the imports), and make all '
                "parts anew."
            )


def _refuse_names(
    bodies: Sequence[AbstractBody],
    forces: Sequence[AbstractForce],
    constraints: Sequence[AbstractJoint | Driver],
    elements: Sequence[AbstractElement],
    compliances: Sequence[AbstractCompliance],
) -> None:
    """**Raises:** `ValueError` for one that is used twice."""
    _unique("body", (GROUND, *(name for body in bodies for name in names_of(body))))
    _unique("joint or driver", [constraint.name for constraint in constraints])
    _unique("force", [force.name for force in forces])
    _unique("element", [element.name for element in elements])
    _unique("compliance", [compliance.name for compliance in compliances])
    _unique("frame", (GROUND, *(site for body in bodies for site in body.sites())))


def refuse_unknown_weight(
    bodies: Sequence[AbstractBody],
    elements: Sequence[AbstractElement],
    gravity: Float[Array, " dim"],
) -> None:
    """Refuse bodies and elements for which the action of gravity is undefined, where there is or
    may be gravity.

    **Raises:** `ValueError`.
    """
    known = _checks.concrete(gravity)
    if known is not None and not np.any(known):
        return
    by_name = {body.name: body for body in bodies}
    inertias = [("body", body.name, body.inertia_properties()) for body in bodies] + [
        ("element", e.name, e.inertia_properties([by_name[name] for name in e.nodes]))
        for e in elements
    ]
    for what, name, inertia in inertias:
        if not inertia.weighed:
            raise ValueError(
                f"{what} {_checks.shown(name)} does not say how gravity acts on it; give "
                "first_moment=..., a function of q that returns the sum of mass times place (zero, "
                "if its force holds the weight already)."
            )


class _Placer:
    """Makes markers on named bodies in the reference configuration."""

    def __init__(self, bodies: Sequence[AbstractBody], dimension: int):
        ground = (
            PlanarFrame(_checks.known_array(np.zeros(2)), _checks.known_array(np.zeros(())))
            if dimension == 2
            else SpatialFrame(_checks.known_array(np.zeros(3)), _checks.known_array(np.eye(3)))
        )
        self._references: dict[str, Frame] = {GROUND: ground}
        self._makers: dict[str, Callable[[Any], AbstractMarker]] = {
            GROUND: PlanarMarker if dimension == 2 else SpatialMarker
        }
        self._kinds: dict[str, AbstractCoordinates] = {}
        for body in bodies:
            self._kinds[body.name] = body.inertia_properties().coordinates
            for name, site in body.sites().items():
                self._references[name] = site.reference
                self._makers[name] = site.marker
        self._dimension = dimension

    def markers(self, part: AbstractJoint | AbstractBodyForce) -> tuple[AbstractMarker, ...]:
        """One marker for each of the part's bodies.

        **Raises:** `ValueError` for a body never declared, for a part that is not attached to a
        moving body, and for a part of the other dimension.
        """
        for name in part.bodies:
            if name not in self._makers:
                raise ValueError(
                    f"body {_checks.shown(name)} was never declared; there are "
                    f"{_checks.listed(self._makers)}."
                )
        if all(name == GROUND for name in part.bodies):
            raise ValueError("it acts on the ground alone; name a moving body.")
        # Every point and direction of a part shows its dimension.
        for field in ("at", "points", "axis", "axes", "direction", "force"):
            value = vars(part).get(field)
            if value is not None and value.shape[-1] != self._dimension:
                raise ValueError(
                    f"it is of dimension {value.shape[-1]} and the bodies are of dimension "
                    f"{self._dimension}."
                )
        references: Frames = tuple(self._references[n] for n in part.bodies)
        frames = part.placements(references)
        for frame in frames:
            if frame.dimension not in (self._dimension, None):
                raise ValueError(
                    f"it is of dimension {frame.dimension} and the bodies are of "
                    f"dimension {self._dimension}."
                )
        return tuple(self._marker(n, f) for n, f in zip(part.bodies, frames, strict=True))

    def _marker(self, name: str, frame: Frame) -> AbstractMarker:
        if frame.dimension is not None or self.is_own_coordinates(name):
            return self._makers[name](frame)
        if name not in self._kinds:
            raise ValueError(
                f"{_checks.shown(name)} has no coordinates of its own; name a moving body, whose "
                "coordinates are meant."
            )
        return PoseMarker(self._kinds[name])

    def is_own_coordinates(self, name: str) -> bool:
        """Does the name of this body mean its coordinates?"""
        return name in self._references and self._references[name].dimension is None


def _unique(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            reserved = " (it is the fixed frame)" if name == GROUND else ""
            raise ValueError(
                f"{what} name {_checks.shown(name)} is used twice{reserved}; rename one."
            )
        seen.add(name)


def _dimension(bodies: Sequence[AbstractBody], default: int) -> int:
    sites = (site for body in bodies for site in body.sites().values())
    found = {site.reference.dimension for site in sites}
    dimensions = {dimension for dimension in found if dimension is not None}
    if len(dimensions) > 1:
        raise ValueError("planar and spatial bodies cannot stand in one system.")
    return dimensions.pop() if dimensions else default


def _constraints(
    bodies: Sequence[AbstractBody],
    joints: Sequence[AbstractJoint],
    drivers: Sequence[Driver],
    place: _Placer,
) -> list[_Constraint]:
    constraints: list[_Constraint] = []
    by_name: dict[str, _Driven] = {}
    for joint in joints:
        try:
            markers = place.markers(joint)
        except ValueError as error:
            raise ValueError(f"joint {_checks.shown(joint.name)}: {error}") from None
        said = f"joint {_checks.shown(joint.name)} ({joint.kind})"
        by_name[joint.name] = _Driven(said, joint.bodies, markers, joint.coordinates())
        constraints.append(
            _Constraint(
                joint.name,
                joint.kind,
                type(joint),
                joint.bodies,
                joint.primitives(),
                markers,
                joint.located,
            )
        )
    for body in bodies:
        if body.name not in by_name and place.is_own_coordinates(body.name):
            by_name[body.name] = _own_coordinates(body)
    for driver in drivers:
        if driver.joint not in by_name:
            raise ValueError(
                f"driver {_checks.shown(driver.name)}: joint {_checks.shown(driver.joint)} was "
                f"never declared; there are {_checks.listed(by_name)}."
            )
        driven = by_name[driver.joint]
        try:
            primitives = (driver.primitive(driven.said, driven.coordinates),)
        except ValueError as error:
            raise ValueError(f"driver {_checks.shown(driver.name)}: {error}") from None
        # A servo has no value that could be read off a configuration.
        kind, joint = (Servo.kind, Servo) if driver.servo else (driver.kind, None)
        constraints.append(
            _Constraint(driver.name, kind, joint, driven.bodies, primitives, driven.markers, False)
        )
    return constraints


def _own_coordinates(body: AbstractBody) -> _Driven:
    """The coordinates that drivers may prescribe of a body that has coordinates of its own."""
    kind = body.inertia_properties().coordinates
    coordinates = {
        name: OwnCoordinate(index=index, quantity=quantity)
        for index, (name, quantity) in enumerate(zip(kind.names, kind.measures, strict=True))
    }
    site = body.sites()[body.name]
    said, marker = f"body {_checks.shown(body.name)}", site.marker(site.reference)
    return _Driven(said, (body.name,), (marker,), coordinates)


def _rows(
    constraints: Sequence[_Constraint], slots: dict[str, Slot]
) -> tuple[tuple[ConstraintInfo, ...], tuple[RowInfo, ...]]:
    infos: list[ConstraintInfo] = []
    rows: list[RowInfo] = []
    linear = _linear_primitives(constraints, slots)
    for constraint, flags in zip(constraints, linear, strict=True):
        primitives = zip(constraint.primitives, flags, strict=True)
        own = [(row, p.row_kind, is_linear) for p, is_linear in primitives for row in p.rows]
        start = len(rows)
        for row, kind, is_linear in own:
            name = constraint.name
            if len(own) > 1:
                name = f"{constraint.name}.{row.suffix}"
            rows.append(RowInfo(name, kind, row.quantity, is_linear, row.one_sided))
        own_slots = [slots[name] for name in constraint.bodies if name != GROUND]
        moving = {int(slot.v[0]): slot for slot in own_slots}.values()
        infos.append(
            ConstraintInfo(
                constraint.name,
                constraint.kind,
                start,
                len(rows),
                tuple(info for slot in moving for info in slot.infos),
                tuple(int(c) for slot in moving for c in slot.v),
                tuple(name for name in constraint.bodies if name != GROUND),
            )
        )
    return tuple(infos), tuple(rows)


def _linear_primitives(
    constraints: Sequence[_Constraint], slots: dict[str, Slot]
) -> list[list[bool]]:
    """Are the rows of each primitive of each constraint linear in velocities?"""
    linear = [[p.linear_in_rates for p in constraint.primitives] for constraint in constraints]
    asked = [k for k, own in enumerate(linear) if not all(own)]
    for members in group_by([(constraints[k].primitives, constraints[k].markers) for k in asked]):
        first = constraints[asked[members[0]]]
        sizes = [(slots[name].q.size, slots[name].v.size) for name in first.bodies]
        try:
            found = [is_linear_in_velocities(p, first.markers, sizes) for p in first.primitives]
        except ValueError as error:
            said = f"{_checks.shown(first.name)} ({first.kind})"
            raise ValueError(f"joint {said}: {error}") from None
        for member in members:
            linear[asked[member]] = found
    return linear


def _body_groups(
    bodies: Sequence[AbstractBody], elements: Sequence[ElementGroup], slots: dict[str, Slot]
) -> tuple[BodyGroup, ...]:
    coupled = {int(c) for e in elements if not e.inertia.massless for c in e.indices["v"].flat}
    inertias = [body.inertia_properties() for body in bodies]
    keys = []
    for body, inertia in zip(bodies, inertias, strict=True):
        is_coupled = int(slots[body.name].v[0]) in coupled
        keys.append((inertia, is_coupled))
        if inertia.massless and not is_coupled and not inertia.semidefinite:
            raise ValueError(
                f"body {_checks.shown(body.name)} has no mass: give it mass_matrix=..., name it "
                "in an element that has mass, or say semidefinite=True."
            )
    groups = []
    for members in group_by(keys):
        own = [slots[bodies[i].name] for i in members]
        indices = Indices(q=np.stack([s.q for s in own]), v=np.stack([s.v for s in own]))
        groups.append(BodyGroup(stack([inertias[i] for i in members]), indices))
    return tuple(groups)


def _element_groups(
    bodies: Sequence[AbstractBody], elements: Sequence[AbstractElement], slots: dict[str, Slot]
) -> tuple[ElementGroup, ...]:
    by_name = {body.name: body for body in bodies}
    for element in elements:
        for name in element.nodes:
            if name not in by_name:
                raise ValueError(
                    f"element {_checks.shown(element.name)}: there is no moving body "
                    f"{_checks.shown(name)}; its nodes may be {_checks.listed(by_name)}, which "
                    "joints hold where they are to stand still."
                )
    inertias = [e.inertia_properties([by_name[name] for name in e.nodes]) for e in elements]
    groups = []
    for members in group_by(inertias):
        own = slot_indices([elements[i].nodes for i in members], slots)
        count = len(elements[members[0]].nodes)
        both = {x: np.concatenate([own[f"{x}{k}"] for k in range(count)], axis=1) for x in "qv"}
        inertia = stack([inertias[i] for i in members])
        groups.append(ElementGroup(inertia, Indices(**own, **both), count))
    return tuple(groups)


def _constraint_groups(
    constraints: Sequence[_Constraint],
    infos: Sequence[ConstraintInfo],
    slots: dict[str, Slot],
) -> tuple[ConstraintGroup, ...]:
    groups = []
    for members in group_by([(c.joint, c.primitives, c.markers) for c in constraints]):
        own = [constraints[i] for i in members]
        located = [[float(c.located and name != GROUND) for name in c.bodies] for c in own]
        kinds = [p.row_kind for p in own[0].primitives for _ in p.rows]
        # Residuals come kind by kind, in this order; `order` puts them into row order.
        sorted_rows = [
            i for kind in RowKind for i, own_kind in enumerate(kinds) if own_kind is kind
        ]
        indices = Indices(
            row=np.array([infos[i].start for i in members]),
            order=np.argsort(np.array(sorted_rows, dtype=int)),
            located=np.array(located),
            **slot_indices([c.bodies for c in own], slots),
        )
        groups.append(
            ConstraintGroup(
                stack([c.primitives for c in own]),
                stack([c.markers for c in own]),
                indices,
                tuple(c.name for c in own),
                tuple(c.bodies for c in own),
                own[0].joint,
            )
        )
    return tuple(groups)


def _state_marker(states: States) -> CoordinateMarker:
    return CoordinateMarker(FlatCoordinates(states.names, states.quantities), moving=False)


class _Sites:
    """Sites where forces act: at markers of their own, or at those of a joint."""

    def __init__(
        self,
        place: _Placer,
        joints: Sequence[AbstractJoint],
        constraints: Sequence[_Constraint],
    ):
        self._place = place
        by_name = {constraint.name: constraint for constraint in constraints}
        self._joints = {joint.name: (joint, by_name[joint.name]) for joint in joints}

    def load(
        self, force: AbstractForce
    ) -> tuple[AbstractLoad, tuple[AbstractMarker, ...], tuple[str, ...]]:
        """The force's law, its markers and the bodies that they are on; last its states."""
        load, markers, bodies = self._acting(force)
        states = force.states()
        if states is None:
            return load, markers, bodies
        return load, (*markers, _state_marker(states)), (*bodies, states_of(force.name))

    def _acting(
        self, force: AbstractForce
    ) -> tuple[AbstractLoad, tuple[AbstractMarker, ...], tuple[str, ...]]:
        if isinstance(force, AbstractBodyForce):
            return force.load(), self._place.markers(force), force.bodies
        if isinstance(force, AbstractJointForce):
            joint, constraint = self.joint(force.joint)
            return force.load_on(joint), constraint.markers, constraint.bodies
        raise TypeError(f"{type(force).__name__} is no force on bodies or in a joint.")

    def joint(self, name: str) -> tuple[AbstractJoint, _Constraint]:
        """The joint of that name.

        **Raises:** `ValueError` that lists the names there are.
        """
        if name not in self._joints:
            raise ValueError(
                f"joint {_checks.shown(name)} was never declared; there are "
                f"{_checks.listed(self._joints)}."
            )
        return self._joints[name]


def _states(forces: Sequence[AbstractForce], joints: Sequence[AbstractJoint]) -> dict[str, States]:
    """The states of each force that has some, by its name."""
    by_name, found = {joint.name: joint for joint in joints}, {}
    for force in forces:
        if not isinstance(force, AbstractJointFriction):
            found[force.name] = force.states()
        elif force.joint in by_name:
            found[force.name] = _of_force(force, force.states_in, by_name[force.joint])
    return {name: own for name, own in found.items() if own is not None}


def _of_force(force: AbstractForce, make: Callable[..., Any], *arguments: Any) -> Any:
    """The result of `make`; an error in it names the force."""
    try:
        return make(*arguments)
    except ValueError as error:
        raise ValueError(f"force {_checks.shown(force.name)}: {error}") from None


def _force_groups(
    forces: Sequence[AbstractForce], slots: dict[str, Slot], sites: _Sites
) -> tuple[ForceGroup, ...]:
    acting = [force for force in forces if not isinstance(force, AbstractJointFriction)]
    parts = [_of_force(force, sites.load, force) for force in acting]
    groups = []
    for members in group_by([(load, markers) for load, markers, _ in parts]):
        load, markers = stack([parts[i][:2] for i in members])
        indices = Indices(**slot_indices([parts[i][2] for i in members], slots))
        own = [acting[i] for i in members]
        motors, stops, contacts = (_infos(own, kind) for kind in (Motor, JointStop, Contact))
        groups.append(ForceGroup(load, markers, indices, motors, stops, contacts))
    return tuple(groups)


def _infos(forces: Sequence[Any], kind: type[Any]) -> tuple[Any, ...]:
    """Descriptions of the forces of one kind."""
    return tuple(force.info for force in forces if isinstance(force, kind))


def _friction_groups(
    forces: Sequence[AbstractForce],
    slots: dict[str, Slot],
    sites: _Sites,
    infos: Sequence[ConstraintInfo],
) -> tuple[FrictionGroup, ...]:
    rows = {info.name: np.arange(info.start, info.stop) for info in infos}
    parts = []
    for force in forces:
        if isinstance(force, AbstractJointFriction):
            joint, constraint = _of_force(force, sites.joint, force.joint)
            law = _of_force(force, force.law_of, joint)
            markers, bodies = constraint.markers, constraint.bodies
            states = force.states_in(joint)
            if states is not None:
                markers = (*markers, _state_marker(states))
                bodies = (*bodies, states_of(force.name))
            parts.append(((law, constraint.primitives, markers), constraint, bodies))
    groups = []
    for members in group_by([part for part, *_ in parts]):
        own = [parts[i][1] for i in members]
        indices = Indices(
            rows=np.stack([rows[constraint.name] for constraint in own]),
            **slot_indices([parts[i][2] for i in members], slots),
        )
        names = tuple(constraint.name for constraint in own)
        law, primitives, markers = stack([parts[i][0] for i in members])
        groups.append(FrictionGroup(law, primitives, markers, indices, names))
    return tuple(groups)


def row_orders(groups: Sequence[ConstraintGroup], rows: Sequence[RowInfo]) -> dict[str, np.ndarray]:
    """Indices of each row, and of each geometric row, among the groups' stacked results."""
    stacked = [
        (group.indices["row"][:, None] + np.arange(group.indices["order"].shape[0])).ravel()
        for group in groups
    ]
    all_rows = np.concatenate([np.zeros(0, dtype=int), *stacked])
    geometric = np.array([row.kind is RowKind.position for row in rows], dtype=bool)
    kept = all_rows[geometric[all_rows]] if rows else all_rows
    return {"row_order": np.argsort(all_rows), "geometric_order": np.argsort(kept)}
