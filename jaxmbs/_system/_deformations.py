"""Deformations of flexible bodies and joints, as further columns of C after those of velocities,
and bodies that deform by modes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .. import _checks
from .._bodies import AbstractBody, AbstractMarker, Frame, ModalElasticity
from .._compliances import (
    AbstractBodyCompliance,
    AbstractCompliance,
    AbstractDeformation,
    AbstractJointCompliance,
)
from .._constraints import Servo
from .._custom_types import Indices, Scalar
from .._geometry import PlanarPose, SpatialPose
from .._linalg import (
    BlockKKTMatrices,
    BlockMass,
    ConstraintBlock,
    Elasticity,
    gather,
    layout_of,
    Pattern,
    scatter_add,
    sizes_of,
    SlotBlocks,
)
from ._groups import (
    BodyGroup,
    ConstraintGroup,
    ForceGroup,
    frames_of,
    group_by,
    map_parts,
    of_markers,
    rates_of,
    stack,
)
from ._loads import wrenches_of
from ._places import rows_by_displacements
from ._structure import ComplianceInfo, Structure


# --------------------------------------------------------------------------------------------------
# Bodies that deform by modes, and what constraints and forces exert on them.
# --------------------------------------------------------------------------------------------------


class _Pushed(NamedTuple):
    """Forces (N, world) at points of bodies (m), which are known by their first columns."""

    columns: Int[np.ndarray, " n"]
    forces: Float[Array, "n 3"]
    points: Float[Array, "n 3"]


def elasticities(
    groups: Sequence[BodyGroup], structure: Structure
) -> tuple[tuple[ModalElasticity, tuple[int, ...]], ...]:
    """Elasticities of the bodies that deform by modes, stacked by kind, each with the indices of
    its bodies."""
    place = {body.columns[0]: k for k, body in enumerate(structure.bodies) if body.columns}
    found = []
    for group in groups:
        if group.inertia.deforms:
            bodies = tuple(place[k] for k in group.indices["v"][:, 0].tolist())
            stacked = map_parts(lambda inertia: inertia.elasticity(), group.inertia)
            found.append((stacked, bodies))
    return tuple(found)


def body_loads(
    system: Any,
    bodies: tuple[int, ...],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    multipliers: Float[Array, " rows"],
) -> tuple[Float[Array, "bodies 3"], Float[Array, "bodies 3 3"]]:
    """`AbstractSystem.body_loads` of a `MultibodySystem`."""
    infos = [system.structure.bodies[k] for k in bodies]
    columns = np.array([info.columns[0] for info in infos], int)
    origins = q[np.array([info.coordinates[:3] for info in infos], int)]
    state, matrix = (*system._with_ground(q, v), t), system.constraint_matrix(q, v, t)
    total = jnp.zeros_like(origins)
    moment = jnp.zeros((*origins.shape, 3), origins.dtype)
    on_joints = _of_constraints(system.constraint_groups, state[0], matrix, multipliers)
    for pushed in (*on_joints, *_of_forces(system.force_groups, state)):
        own = np.asarray(pushed.columns[:, None] == columns[None], float)
        if own.any():
            arms = pushed.points[:, None] - origins[None]
            total = total + own.T @ pushed.forces
            moment = moment + jnp.einsum("nk,na,nkb->kab", own, pushed.forces, arms)
    return total, moment


def _of_constraints(
    groups: Sequence[ConstraintGroup],
    q: Float[Array, " extended_q"],
    matrix: Float[Array, "rows nv"],
    multipliers: Float[Array, " rows"],
) -> Iterator[_Pushed]:
    for group, frames in zip(groups, frames_of(groups, q), strict=True):
        rows = group.indices["row"][:, None] + np.arange(len(group.indices["order"]))
        for k, (marker, frame) in enumerate(zip(group.markers, frames, strict=True)):
            own = group.indices[f"v{k}"]
            if marker.located and own.shape[1] >= 3 and own.max() < matrix.shape[1]:
                blocks = matrix[rows[:, :, None], own[:, None, :3]]
                force = -jnp.einsum("nr,nra->na", multipliers[rows], blocks)
                yield _Pushed(own[:, 0], force, frame.origin)


def _of_forces(
    groups: Sequence[ForceGroup],
    state: tuple[Float[Array, " extended_q"], Float[Array, " extended_v"], Scalar],
) -> Iterator[_Pushed]:
    frames = frames_of(groups, state[0])
    wrenches = wrenches_of(groups, *state) if groups else []
    for group, own, exerted in zip(groups, frames, wrenches, strict=True):
        for k, marker in enumerate(group.markers):
            if marker.located and group.indices[f"v{k}"].shape[1]:
                first = group.indices[f"v{k}"][:, 0]
                yield _Pushed(first, exerted[k].linear, own[k].origin)


# --------------------------------------------------------------------------------------------------
# Deformations of flexible bodies and joints, as further columns of C after those of velocities.
#
# A compliance is a body more to the constraints: it has columns in the rows of the joints that it
# displaces, and no place of its own. So S + mu K is factored as S is.
# --------------------------------------------------------------------------------------------------


_T = TypeVar("_T")


class DisplacedMarkers(NamedTuple):
    """Markers displaced by the deformations of a group: on slot `slot` of constraint group `group`,
    of its joints `joint` (n,) by the deformations `which` (n,)."""

    group: int
    slot: int
    indices: Indices


class ComplianceGroup(eqx.Module):
    """Compliances of one kind. `uses`: in joints and drivers; `loads`: in forces. Indices:
    `compliance` (n,), which of all each of them is."""

    deformation: AbstractDeformation
    uses: tuple[DisplacedMarkers, ...] = eqx.field(static=True)
    loads: tuple[DisplacedMarkers, ...] = eqx.field(static=True)
    indices: Indices = eqx.field(static=True)


class _PlacedCompliance(NamedTuple):
    """A compliance with its deformation made, and the slots of joints that it displaces, as
    (group, slot, joint)."""

    info: ComplianceInfo
    deformation: AbstractDeformation
    slots: tuple[tuple[int, int, int], ...]
    loads: tuple[tuple[int, int, int], ...]


def compliance_groups(
    compliances: Sequence[AbstractCompliance],
    bodies: Sequence[AbstractBody],
    groups: Sequence[ConstraintGroup],
    forces: Sequence[ForceGroup],
    columns: Mapping[str, int],
    dimension: int,
) -> tuple[tuple[ComplianceGroup, ...], tuple[ComplianceInfo, ...]]:
    """The groups, and the info of each compliance in the structure. `columns`: the first of each
    moving body.

    **Raises:** `ValueError` that names the compliance.
    """
    placed: list[_PlacedCompliance] = []
    start = 0
    for part in compliances:
        try:
            of, deformation, slots = _placed(part, bodies, groups, dimension)
        except ValueError as error:
            raise ValueError(f"compliance {_checks.shown(part.name)}: {error}") from None
        in_joint = isinstance(part, AbstractJointCompliance)
        info = ComplianceInfo(part.name, of, in_joint, deformation.directions, start)
        loads = ()
        if isinstance(part, AbstractBodyCompliance):
            loads = _loads_on(columns[part.body], forces)
        placed.append(_PlacedCompliance(info, deformation, slots, loads))
        start = info.stop
    found = []
    for members in group_by([own.deformation for own in placed]):
        own = [placed[i] for i in members]
        made, pushed = _uses([part.slots for part in own]), _uses([part.loads for part in own])
        deformation = stack([part.deformation for part in own])
        found.append(
            ComplianceGroup(deformation, made, pushed, Indices(compliance=np.array(members)))
        )
    return tuple(found), tuple(own.info for own in placed)


def _uses(slots: Sequence[Sequence[tuple[int, int, int]]]) -> tuple[DisplacedMarkers, ...]:
    """The uses, from the (group, slot, joint) of each deformation of a group."""
    uses: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for which, own in enumerate(slots):
        for group, slot, joint in own:
            uses.setdefault((group, slot), []).append((joint, which))
    made = []
    for (group, slot), pairs in sorted(uses.items()):
        joint, which = np.array(pairs, dtype=np.int32).T
        made.append(DisplacedMarkers(group, slot, Indices(joint=joint, which=which)))
    return tuple(made)


def _loads_on(column: int, forces: Sequence[ForceGroup]) -> tuple[tuple[int, int, int], ...]:
    """The slots of forces that act on the body with that first column."""
    return tuple(
        (g, k, i)
        for g, group in enumerate(forces)
        for k, marker in enumerate(group.markers)
        if marker.located
        for i, first in enumerate(group.indices[f"v{k}"][:, 0].tolist())
        if first == column
    )


def _placed(
    part: AbstractCompliance,
    bodies: Sequence[AbstractBody],
    groups: Sequence[ConstraintGroup],
    dimension: int,
) -> tuple[str, AbstractDeformation, tuple[tuple[int, int, int], ...]]:
    if isinstance(part, AbstractBodyCompliance):
        body = _named(part.body, {body.name: body for body in bodies}, "moving body")
        if body.inertia_properties().coordinates not in (PlanarPose(), SpatialPose()):
            raise ValueError(
                f"body {_checks.shown(part.body)} has coordinates of its own besides its pose, "
                "whose elasticity would count twice; give compliances to rigid bodies."
            )
        site = body.sites()[body.name]
        deformation = part.deformation(site.reference)
        slots = _on_body(set(body.sites()), groups)
        part.check_points(lambda: _known_points(body, groups, slots))
        return part.body, deformation, slots
    if isinstance(part, AbstractJointCompliance):
        joints = {
            name: (g, i)
            for g, group in enumerate(groups)
            if group.joint is not None
            for i, name in enumerate(group.names)
        }
        g, i = _named(part.joint, joints, "joint")
        if not all(marker.located for marker in groups[g].markers):
            raise ValueError(f"joint {_checks.shown(part.joint)} is nowhere, and cannot give way.")
        slot = min(1, len(groups[g].markers) - 1)
        if groups[g].joint is Servo:
            raise ValueError(
                f"joint {_checks.shown(part.joint)} is a servo, whose force is a control and "
                "strains nothing; leave this out."
            )
        return part.joint, part.deformation(dimension), ((g, slot, i),)
    raise TypeError(f"{type(part).__name__} is no compliance of a body or of a joint.")


def _named(name: str, known: Mapping[str, _T], what: str) -> _T:
    if name not in known:
        raise ValueError(
            f"{what} {_checks.shown(name)} was never declared; there are {_checks.listed(known)}."
        )
    return known[name]


def _on_body(
    names: set[str], groups: Sequence[ConstraintGroup]
) -> tuple[tuple[int, int, int], ...]:
    """The slots of joints that are held at frames of a body. A driver acts at its joint's markers
    along what the joint leaves free, and is displaced with them."""
    return tuple(
        (g, k, i)
        for g, group in enumerate(groups)
        for k, marker in enumerate(group.markers)
        if marker.located
        for i, held in enumerate(group.bodies)
        if held[k] in names
    )


def _known_points(
    body: AbstractBody,
    groups: Sequence[ConstraintGroup],
    slots: Sequence[tuple[int, int, int]],
) -> list[np.ndarray]:
    """Positions of the markers in these slots on their body in the reference configuration, unless
    they are traced."""
    found, q = [], body.coordinates()
    for g, k, joint in slots:
        marker: Any = _entries(groups[g].markers[k], np.array([joint]))
        one = jax.tree.map(lambda x: x[0] if eqx.is_array(x) else x, marker)
        frame, own = one.frame(q), one.body_frame(q)
        point = _checks.concrete(own.rotation.T @ (frame.origin - own.origin))
        if point is not None:
            found.append(point)
    return found


class _Columns(NamedTuple):
    """Columns of D: a block (n, rows, deformations) for each joint of a use, rows in its order;
    `start` (n,) its first row, `compliance` (n,) whose deformations they are."""

    block: Float[Array, "n rows deformations"]
    start: np.ndarray
    compliance: np.ndarray


class Deformations(eqx.Module):
    """The compliances of a system. `pattern`: of the rows on bodies and on compliances."""

    groups: tuple[ComplianceGroup, ...]
    infos: tuple[ComplianceInfo, ...] = eqx.field(static=True)
    pattern: Pattern = eqx.field(static=True)

    def columns(
        self,
        groups: Sequence[ConstraintGroup],
        q: Float[Array, " extended_q"],
        v: Float[Array, " extended_v"],
        t: Scalar,
    ) -> list[_Columns]:
        """The columns D, from the ground-extended state."""
        used = sorted({use.group for own in self.groups for use in own.uses})
        own_groups = [groups[g] for g in used]
        moving = dict(zip(used, rates_of(own_groups, q, v), strict=True))
        bodies = dict(zip(used, of_markers(_body_frame, own_groups, q), strict=True))
        rows = {
            g: map_parts(rows_by_displacements, groups[g].primitives, *moving[g], shared=(t,))
            for g in used
        }
        found = []
        for own in self.groups:
            for use in own.uses:
                group, joint, which = groups[use.group], use.indices["joint"], use.indices["which"]
                marker = _entries(moving[use.group][0][use.slot], joint)
                body = _entries(bodies[use.group][use.slot], joint)
                moved = map_parts(_displacements, _entries(own.deformation, which), marker, body)
                by_motion = _entries(rows[use.group][use.slot], joint)[:, group.indices["order"]]
                block = jnp.einsum("nrm,nmd->nrd", by_motion, moved)
                start = group.indices["row"][joint]
                found.append(_Columns(block, start, own.indices["compliance"][which]))
        return found

    def matrix(self, columns: Sequence[_Columns], rows: int) -> Float[Array, "rows deformations"]:
        """D, dense."""
        count = self.infos[-1].stop
        places = []
        for own in columns:
            first = np.array([info.start for info in self.infos])[own.compliance]
            row = own.start[:, None, None] + np.arange(own.block.shape[1])[None, :, None]
            column = first[:, None, None] + np.arange(own.block.shape[2])[None, None, :]
            places.append(row * count + column)
        total = scatter_add([own.block for own in columns], places, rows * count)
        return total.reshape(rows, count)

    def loads(
        self,
        forces: Sequence[ForceGroup],
        q: Float[Array, " extended_q"],
        v: Float[Array, " extended_v"],
        t: Scalar,
    ) -> Float[Array, " deformations"]:
        """The generalized applied force on each deformation, from the ground-extended state."""
        used = sorted({use.group for own in self.groups for use in own.loads})
        own_forces = [forces[g] for g in used]
        wrenches = dict(zip(used, wrenches_of(own_forces, q, v, t), strict=True))
        frames = dict(zip(used, frames_of(own_forces, q), strict=True))
        bodies = dict(zip(used, of_markers(_body_frame, own_forces, q), strict=True))
        parts, places = [jnp.zeros((0,), q.dtype)], [np.zeros(0, dtype=int)]
        starts = np.array([info.start for info in self.infos])
        for own in self.groups:
            for use in own.loads:
                which = use.indices["which"]
                wrench, marker, body = (
                    _entries(found[use.group][use.slot], use.indices["joint"])
                    for found in (wrenches, frames, bodies)
                )
                part = map_parts(
                    _deformation_load, _entries(own.deformation, which), marker, body, wrench
                )
                first = starts[own.indices["compliance"][which]]
                parts.append(part)
                places.append(first[:, None] + np.arange(part.shape[1]))
        return scatter_add(parts, places, self.infos[-1].stop)

    def elasticity(
        self,
        blocks: SlotBlocks,
        mass: BlockMass,
        columns: Sequence[_Columns],
        loads: Float[Array, " deformations"],
        geometric: np.ndarray,
    ) -> Elasticity:
        """The elasticity from the blocks of C and from M, both in the buckets of the pattern.
        `geometric`: which rows are."""
        pairs = zip(blocks, self._blocks(columns), strict=True)
        both = tuple(jnp.concatenate(own, axis=-1) for own in pairs)
        layout = layout_of(self.pattern)
        return Elasticity(
            BlockKKTMatrices(both, mass, layout),
            self._of_all(lambda d: d.compliance),
            self._of_all(lambda d: d.misfit),
            loads,
            jnp.asarray(geometric, loads.dtype),
        )

    def _of_all(
        self, number: Callable[[AbstractDeformation], Float[Array, "n deformations"]]
    ) -> Float[Array, " deformations"]:
        """A number of each deformation, in their order."""
        parts = [number(own.deformation) for own in self.groups]
        starts = np.array([info.start for info in self.infos])
        places = [
            starts[own.indices["compliance"]][:, None] + np.arange(part.shape[1])
            for own, part in zip(self.groups, parts, strict=True)
        ]
        return scatter_add(parts, places, self.infos[-1].stop)

    def _blocks(self, columns: Sequence[_Columns]) -> SlotBlocks:
        """The blocks of D, one for each joint and compliance, in their buckets."""
        sizes = sizes_of(self.pattern)
        first = len(self.pattern.bodies) - len(self.infos)
        place, counts = {}, [0] * len(sizes.slots)
        for slot in self.pattern.slots:
            if slot.body >= first:
                width = len(self.pattern.bodies[slot.body])
                bucket = sizes.bucket(len(slot.rows), width)
                place[slot.rows[0], slot.body - first] = (bucket, counts[bucket])
                counts[bucket] += 1
        parts: list[list[Array]] = [[] for _ in counts]
        places: list[list[np.ndarray]] = [[] for _ in counts]
        for own in columns:
            _, r, c = own.block.shape
            bucket = sizes.bucket(r, c)
            entries = np.arange(int(np.prod(sizes.slots[bucket])) * counts[bucket])
            entries = entries.reshape(*sizes.slots[bucket], counts[bucket])
            there = [
                place[pair][1]
                for pair in zip(own.start.tolist(), own.compliance.tolist(), strict=True)
            ]
            parts[bucket].append(own.block)
            places[bucket].append(np.moveaxis(entries[:r, :c, there], -1, 0))
        dtype = columns[0].block.dtype
        return tuple(
            scatter_add(part, where, int(np.prod(size)) * count).reshape(*size, count)
            if part
            else jnp.zeros((*size, count), dtype)
            for part, where, size, count in zip(parts, places, sizes.slots, counts, strict=True)
        )


def deformations_of(
    compliances: tuple[ComplianceGroup, ...],
    infos: tuple[ComplianceInfo, ...],
    pattern: Pattern,
    groups: Sequence[ConstraintGroup],
) -> Deformations | None:
    """All of them, with one more body in the pattern for each compliance, after the others; None
    for a rigid system."""
    if not infos:
        return None
    nv, first = sum(map(len, pattern.bodies)), len(pattern.bodies)
    slots = {
        ConstraintBlock(_rows_of(groups[use.group], joint), first + int(compliance))
        for own in compliances
        for use in own.uses
        for joint, compliance in zip(
            use.indices["joint"].tolist(),
            own.indices["compliance"][use.indices["which"]].tolist(),
            strict=True,
        )
    }
    bodies = tuple(tuple(range(nv + info.start, nv + info.stop)) for info in infos)
    extended = pattern._replace(
        slots=(*pattern.slots, *sorted(slots)), bodies=(*pattern.bodies, *bodies)
    )
    return Deformations(compliances, infos, extended)


def _rows_of(group: ConstraintGroup, joint: int) -> tuple[int, ...]:
    start = int(group.indices["row"][joint])
    return tuple(range(start, start + group.indices["order"].shape[0]))


def _body_frame(marker: AbstractMarker, q: Float[Array, " nq"]) -> Frame:
    return marker.body_frame(q)


def _displacements(
    deformation: AbstractDeformation, marker: Frame, body: Frame
) -> Float[Array, "motions n"]:
    return deformation.displacements(marker, body)


def _deformation_load(
    deformation: AbstractDeformation, marker: Any, body: Any, wrench: Any
) -> Float[Array, " n"]:
    """The work of a wrench at a marker along a unit of each deformation."""
    moved = deformation.displacements(marker, body)
    dimension = wrench.linear.shape[0]
    return wrench.linear @ moved[:dimension] + jnp.atleast_1d(wrench.angular) @ moved[dimension:]


def _entries(tree: Any, places: np.ndarray) -> Any:
    """Entries of a stack."""

    def take(x: Any) -> Any:
        return jnp.moveaxis(gather(jnp.moveaxis(x, 0, -1), places), -1, 0) if eqx.is_array(x) else x

    return jax.tree.map(take, tree)
