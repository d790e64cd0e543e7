"""Frames of bodies, joints and springs in n states, as arrays of space. In the plane z = 0, and z
is across it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from .._forces._springs import PlanarBushingLoad, SpatialBushingLoad, SpringDamperLoad
from .._programs import Compiling, program
from .._system import MultibodySystem
from .._system._groups import DrawnFrame
from .._system._structure import BodyInfo


# Places that move in their bodies by more than this, against the mechanism, are not rigid in them.
_STILL = 1e-6


class Track(NamedTuple):
    """A frame in n states: origin (n, 3) in m, axes (n, 3, 3) as columns."""

    origin: Float[np.ndarray, "n 3"]
    rotation: Float[np.ndarray, "n 3 3"]

    def local(self, other: "Track") -> "Track":
        """The other frame in the coordinates of this one."""
        turned = np.swapaxes(self.rotation, 1, 2)
        origin = np.einsum("nij,nj->ni", turned, other.origin - self.origin)
        return Track(origin, turned @ other.rotation)


class Hold(NamedTuple):
    """The marker of a constraint (or of a spring, `constraint` -1) on a body.

    - `site`: the frame at which the body is held ("bar" or "bar.A"), `owner`: the body; both are
      `GROUND` of the fixed frame.
    - `marker`, `body`: frames in n states. `origin` (3,), `rotation` (3, 3): of the marker in the
      coordinates of the body, in the first state. `rigid`: are they the same in all states?
    """

    constraint: int
    site: str
    owner: str
    marker: Track
    body: Track
    origin: Float[np.ndarray, "3"]
    rotation: Float[np.ndarray, "3 3"]
    rigid: bool


class DrawnJoint(NamedTuple):
    """A joint or driver: its index and kind, its markers in order, its conditions (of NumPy
    arrays); `located`: its markers are at the joint."""

    constraint: int
    kind: str
    holds: tuple[Hold, ...]
    primitives: Any
    located: bool


class Moving(NamedTuple):
    """All joints and drivers whose markers have places, the pairs of points of springs and of
    bushings, shapes in contact with their places, each once, and the `size` of all points and their
    bodies (m)."""

    joints: tuple[DrawnJoint, ...]
    springs: tuple[tuple[Hold, Hold], ...]
    bushings: tuple[tuple[Hold, Hold], ...]
    contacts: tuple[tuple[Hold, Any], ...]
    size: float


GROUND = "ground"


def moving(system: MultibodySystem, q: Float[np.ndarray, "n nq"]) -> Moving:
    """Frames of bodies and joints at n states."""
    constraints, forces = jax.tree.map(np.asarray, _frames(system, q))
    structure = system.structure
    size = _size([slot for slots in (*constraints, *forces) for slot in slots])
    tracks = {body.name: posed_track(body, q) for body in structure.bodies if body.posed}
    places = {name: k for k, name in enumerate(structure.constraint_names)}

    def held(constraint: int, site: str, slot: Any, k: int) -> Hold:
        owner = structure.owner(site)
        marker = Track(points_in_space(slot.origin[:, k]), axes_in_space(slot.rotation[:, k]))
        if owner in tracks:
            # At whichever of its frames it is held.
            return _hold(constraint, owner, owner, marker, tracks[owner], size)
        own = points_in_space(slot.body_origin[:, k]), axes_in_space(slot.body_rotation[:, k])
        return _hold(constraint, site, owner, marker, Track(*own), size)

    joints = []
    for group, slots in zip(system.constraint_groups, constraints, strict=True):
        if not slots:
            continue
        located: Any = group.indices["located"].any(axis=1)
        primitives = jax.tree.map(np.asarray, group.primitives)
        for k, name in enumerate(group.names):
            place = places[name]
            sites = zip(group.bodies[k], slots, strict=True)
            holds = tuple(held(place, site, slot, k) for site, slot in sites)
            own = jax.tree.map(lambda x, k=k: x[k], primitives)
            kind = structure.constraints[place].kind
            joints.append(DrawnJoint(place, kind, holds, own, bool(located[k])))
    joints.sort(key=lambda joint: joint.constraint)
    springs, bushings, contacts = [], [], []
    kept = ((SpringDamperLoad, springs), ((PlanarBushingLoad, SpatialBushingLoad), bushings))
    first = {body.coordinates[0]: body.name for body in structure.bodies if body.coordinates}
    for group, slots in zip(system.force_groups, forces, strict=True):
        pairs = next((own for kinds, own in kept if isinstance(group.load, kinds)), None)
        used = pairs is not None or group.contacts
        for k in range(len(group.indices["q0"]) if slots and used else 0):
            owners = [first.get(int(group.indices[f"q{s}"][k, 0]), GROUND) for s in (0, 1)]
            one, other = (held(-1, x, slots[s], k) for s, x in enumerate(owners))
            if pairs is not None:
                pairs.append((one, other))
            else:
                load: Any = group.load
                law = jax.tree.map(lambda x, k=k: np.asarray(x)[k], load.law)
                contacts += [(one, law.first), (other, law.second)]
    found = tuple(springs), tuple(bushings), _each_once(contacts)
    return Moving(tuple(joints), *found, size)


def _each_once(contacts: Sequence[tuple[Hold, Any]]) -> tuple[tuple[Hold, Any], ...]:
    """Shapes without those that are the same at the same place, as those of patterns are."""
    found: dict[Any, tuple[Hold, Any]] = {}
    for hold, shape in contacts:
        numbers = tuple(np.round(x, 12).tobytes() for x in jax.tree.leaves(shape))
        place = (np.round(x, 9).tobytes() for x in (hold.origin, hold.rotation))
        found.setdefault((hold.owner, type(shape), *numbers, *place), (hold, shape))
    return tuple(found.values())


def posed_track(body: BodyInfo, q: Float[np.ndarray, "n nq"]) -> Track:
    """The frame of a body whose coordinates begin with its pose."""
    return pose_track(q[:, list(body.coordinates)], len(body.force), len(body.torque))


def _size(slots: Sequence[DrawnFrame]) -> float:
    """The diagonal of the box around all frames, or one where it is a point (m)."""
    points = [x.reshape(-1, x.shape[-1]) for slot in slots for x in (slot.origin, slot.body_origin)]
    everything = np.concatenate(points) if points else np.zeros((1, 3))
    finite = everything[np.all(np.isfinite(everything), axis=1)]
    diagonal = float(np.linalg.norm(np.ptp(finite, axis=0))) if len(finite) else 0.0
    return diagonal if diagonal > 0 else 1.0


@program(compiling=Compiling.ONCE)
def _frames(system: MultibodySystem, q: Any) -> Any:
    return jax.lax.map(system.drawn_frames, q)


def _hold(constraint: int, site: str, owner: str, marker: Track, body: Track, size: float) -> Hold:
    local = body.local(marker)
    # A run that failed has states that are no numbers behind its last one.
    known = np.all(np.isfinite(local.origin), axis=1) & np.all(
        np.isfinite(local.rotation), axis=(1, 2)
    )
    origins, rotations = local.origin[known], local.rotation[known]
    if not len(origins):
        return Hold(constraint, site, owner, marker, body, np.zeros(3), np.eye(3), True)
    apart = np.max(np.abs(origins - origins[:1])) / size
    turned = np.max(np.abs(rotations - rotations[:1]))
    rigid = bool(apart <= _STILL and turned <= _STILL)
    return Hold(constraint, site, owner, marker, body, origins[0], rotations[0], rigid)


def points_in_space(points: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """The points in space, with z = 0 in the plane."""
    missing = 3 - points.shape[-1]
    return np.pad(points, [(0, 0)] * (points.ndim - 1) + [(0, missing)])


def axes_in_space(axes: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """The axes as columns in space, with z across the plane."""
    if axes.shape[-1] == 3:
        return axes
    found = np.zeros((*axes.shape[:-2], 3, 3))
    found[..., :2, :2] = axes
    found[..., 2, 2] = 1.0
    return found


def pose_track(coordinates: Float[np.ndarray, "n k"], dimension: int, turns: int) -> Track:
    """The frame of a body by its coordinates: position, and an angle in the plane, a unit
    quaternion in space, or nothing of a particle."""
    count = len(coordinates)
    origin = points_in_space(coordinates[:, :dimension])
    rotation = np.broadcast_to(np.eye(3), (count, 3, 3)).copy()
    if turns == 1:
        angle = coordinates[:, 2]
        c, s = np.cos(angle), np.sin(angle)
        rotation[:, 0, 0], rotation[:, 0, 1] = c, -s
        rotation[:, 1, 0], rotation[:, 1, 1] = s, c
    elif turns == 3:
        quaternion = coordinates[:, 3:7]
        w, x, y, z = (quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True)).T
        rotation = np.stack(
            [
                np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], -1),
                np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], -1),
                np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1),
            ],
            axis=1,
        )
    return Track(origin, rotation)
