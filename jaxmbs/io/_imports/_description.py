"""The common form of a mechanism for all formats: links, joints, and the forces in them, all in
the world of the file.
"""

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .._digits import Digits


class State(NamedTuple):
    """The state in which a file is read: by a keyframe, with these control inputs of actuators (by
    name), with the root link of a URDF free to move, and with files outside of its folder
    allowed."""

    keyframe: str | None = None
    controls: Mapping[str, float] = MappingProxyType({})
    floating: bool = False
    outside: bool = False


# --------------------------------------------------------------------------------------------------
# The common form of a mechanism for all formats: links, joints, and the forces in them, all in the
# world of the reference configuration. Readers create it; `_translation.py` turns it into a model.
# --------------------------------------------------------------------------------------------------


Vector = Float[np.ndarray, "3"]
Matrix = Float[np.ndarray, "3 3"]

GROUND = "ground"


class Slip(NamedTuple):
    """An invalid inertia of a file: the defect, empty where it is unknown, and the inertia that is
    used in its place: the intended one, if it is `repaired`, else the same."""

    said: str
    inertia: Matrix
    repaired: bool = False


class Link(NamedTuple):
    """A rigid body: its frame in the world, its mass (kg) with the centre in the world and the
    inertia about that along the frame's axes, and the velocity of its frame's origin (m/s) and its
    angular velocity (rad/s), both in world axes. `mass` None: it has none.

    `stated`: the mass that the file gives it in numbers; `derived`: where its mass is from if not
    from there. `slip`: what is wrong with its inertia, which no body has. `between`: not a link of
    the file, it lies between the joints of one. `unknown`: the reason why the file does not define
    its mass, which matters where it moves."""

    name: str
    position: Vector
    rotation: Matrix
    mass: float | None
    center: Vector
    inertia: Matrix
    velocity: Vector
    angular_velocity: Vector
    stated: float | None = None
    derived: str = ""
    slip: Slip | None = None
    between: bool = False
    unknown: str = ""


class Dynamics(NamedTuple):
    """Forces along one coordinate of a joint, or about every axis of a spherical one: -stiffness
    (coordinate - rest) - damping rate + effort, dry friction of the size `friction` (not of a
    spherical joint), and the inertia of its drive. Torques and rad about an axis, forces and m
    along one. `limits`: of the force, if it is that of a drive that holds it
    between two numbers."""

    # The coordinate: `rotation`, `translation` or `ball`.
    word: str
    # Its own, or else that of the joint.
    name: str = ""
    stiffness: float = 0.0
    damping: float = 0.0
    rest: float = 0.0
    effort: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    # Of a spherical joint: the rotation vector, world axes.
    rest_rotation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    limits: tuple[float, float] | None = None


class Omission(NamedTuple):
    """An item of the file that the model does not have: its kind, its name, and the reason, or its
    replacement."""

    kind: str
    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}: {self.why}"


class CoordinateRange(NamedTuple):
    """The range of one coordinate of a joint (rad or m), from the reference configuration; None
    where an end has no bound. `stiffness` (N m/rad or N/m): of its stops, where the file gives one;
    `told`: the omissions of a model that does not keep it."""

    word: str
    lower: float | None
    upper: float | None
    stiffness: float | None = None
    told: tuple[Omission, ...] = ()


class Joint(NamedTuple):
    """A joint between `parent` and `child`, by the words of model files. `points`: one on each;
    `axes`: none, one, or one on each. `welds`: it makes one body of two. `dynamics`: of
    springs, dampers and motors in it; `ranges` of its coordinates."""

    name: str
    kind: str
    parent: str
    child: str
    points: Float[np.ndarray, "2 3"]
    axes: tuple[Vector, ...] = ()
    pitch: float = 0.0
    welds: bool = False
    dynamics: tuple[Dynamics, ...] = ()
    ranges: tuple[CoordinateRange, ...] = ()
    # As the child has them, where a file says so; and by which angle (rad) the orientation that a
    # fixed joint asks for is another than that of the links.
    child_axes: tuple[Vector, ...] = ()
    turned: float = 0.0


class JointCoordinate(NamedTuple):
    """A coordinate (`rotation` or `translation`) of two links: about or along an axis."""

    word: str
    parent: str
    child: str
    point: Vector
    axis: Vector


class CoordinateCoupling(NamedTuple):
    """`first` as a polynomial of `second`, coefficients c0, c1, ...; of none: a number."""

    name: str
    first: JointCoordinate
    second: JointCoordinate | None
    coefficients: tuple[float, ...]
    # By which a coordinate alone can be held.
    joint: str = ""


class Tendon(NamedTuple):
    """A length that forces act along: the sum of `ratios` times coordinates of joints, or that of
    the way through `points` (world, reference configuration; m) of `links`. `dynamics` and
    `ranges` of its `translation`, zero in the reference configuration; `slack`: the range within
    which its spring has no force, with the stiffness of that."""

    name: str
    coordinates: tuple[JointCoordinate, ...]
    ratios: tuple[float, ...]
    links: tuple[str, ...] = ()
    points: Float[np.ndarray, "n 3"] | None = None
    dynamics: tuple[Dynamics, ...] = ()
    ranges: tuple[CoordinateRange, ...] = ()
    slack: CoordinateRange | None = None

    @property
    def on(self) -> tuple[str, ...]:
        """The links on which it acts."""
        return (*self.links, *(x for own in self.coordinates for x in (own.parent, own.child)))


class HeldTendon(NamedTuple):
    """A tendon, by its name, whose translation is held at a value (m)."""

    name: str
    tendon: str
    value: float


class Wrench(NamedTuple):
    """A constant force and torque (world axes of the reference configuration) at a point of one
    link; `turns`: with the link."""

    name: str
    link: str
    point: Vector
    force: Vector
    torque: Vector
    turns: bool


class Look(NamedTuple):
    """A visual shape of a link: its kind ("box", "sphere", "cylinder", "capsule", "mesh") and size
    (edges; radius; radius and length, m; of a mesh the scale along its axes) in a frame given in
    that of the link; `file` of a mesh; `color` as `#rrggbb`, None where the file gives none."""

    link: str
    kind: str
    size: tuple[float, ...]
    file: str
    position: Vector
    rotation: Matrix
    color: str | None


class Description(NamedTuple):
    """A mechanism. `inputs`: the constant control inputs at which its actuators are, by name."""

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    couplings: tuple[CoordinateCoupling, ...] = ()
    wrenches: tuple[Wrench, ...] = ()
    gravity: Vector | None = None
    omissions: tuple[Omission, ...] = ()
    inputs: tuple[tuple[str, float], ...] = ()
    tendons: tuple[Tendon, ...] = ()
    held_tendons: tuple[HeldTendon, ...] = ()
    looks: tuple[Look, ...] = ()


# --------------------------------------------------------------------------------------------------
# Rotations of files, in NumPy.
# --------------------------------------------------------------------------------------------------


# Radii of gyration (m) below which a moment is the rounding of zero.
POINT = 1e-7


def matrix_of_quaternion(quaternion: Float[np.ndarray, "4"]) -> Matrix:
    """The rotation matrix of a quaternion `[w, x, y, z]` of any nonzero length."""
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def quaternion_of_matrix(rotation: Matrix) -> Float[np.ndarray, "4"]:
    """The unit quaternion `[w, x, y, z]` of a rotation matrix."""
    vector = rotation_vector(rotation)
    angle = float(np.linalg.norm(vector))
    if angle < 1e-12:
        return np.array([1.0, 0.0, 0.0, 0.0])
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * vector / angle])


def matrix_of_angles(angles: Float[np.ndarray, "3"]) -> Matrix:
    """The rotation matrix of roll, pitch and yaw (rad): rotations about the fixed x, y and z axes,
    in this order."""
    (cx, cy, cz), (sx, sy, sz) = np.cos(angles), np.sin(angles)
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return about_z @ about_y @ about_x


def rotation_vector(rotation: Matrix) -> Vector:
    """Axis times angle (rad), of at most half a turn."""
    skew = np.array(
        [
            rotation[2, 1] - rotation[1, 2],
            rotation[0, 2] - rotation[2, 0],
            rotation[1, 0] - rotation[0, 1],
        ]
    )
    sine, cosine = np.linalg.norm(skew) / 2, (np.trace(rotation) - 1) / 2
    angle = np.arctan2(sine, cosine)
    if sine > 1e-9:
        return skew * (angle / (2 * sine))
    if cosine > 0:
        return skew / 2
    # Half a turn: the axis is the column of R + 1 that is longest.
    columns = rotation + np.eye(3)
    axis = columns[:, np.argmax(np.linalg.norm(columns, axis=0))]
    return axis * (angle / np.linalg.norm(axis))


def moved_inertia(inertia: Matrix, mass: float, offset: Vector) -> Matrix:
    """About a point at `offset` from the centre of mass, from that about the centre (Steiner)."""
    return inertia + mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))


def is_physical(mass: float, inertia: Matrix) -> bool:
    """Can a body have this mass and this inertia about its centre?"""
    moments = np.linalg.eigvalsh((inertia + inertia.T) / 2)
    thin = moments[2] <= (moments[0] + moments[1]) * (1 + 1e-9)
    # An eigenvalue of the size of rounding counts as zero.
    return bool(mass > 0 and moments[0] > 1e-12 * moments[2] and thin)


def thin_or_point(inertia: Matrix) -> bool:
    """Is it that of a rod without thickness, or zero?"""
    moments = np.linalg.eigvalsh(inertia)
    zero = abs(moments[0]) <= 1e-12 * moments[2]
    # Moments that are equal up to the rounding of a file.
    return bool(zero and moments[2] - moments[1] <= 1e-9 * moments[2])


def round_moments(
    radius: float, height: float, axis: int, *, ends: bool
) -> tuple[float, np.ndarray]:
    """Volume, and moments of inertia for a mass of one, of a cylinder about an axis (0, 1 or 2),
    with half a ball on each end or not."""
    tube = np.pi * radius**2 * height
    along = tube * radius**2 / 2
    across = tube * (radius**2 / 4 + height**2 / 12)
    volume = tube
    if ends:
        ball = 4 / 3 * np.pi * radius**3
        along += ball * 0.4 * radius**2
        # Half balls, 3/8 of the radius from their flat sides to their centres.
        across += ball * (0.4 * radius**2 + height**2 / 4 + 3 / 8 * height * radius)
        volume += ball
    moments = np.full(3, across)
    moments[axis] = along
    return volume, moments / volume


# --------------------------------------------------------------------------------------------------
# Names of files as names of models, and patterns of names.
# --------------------------------------------------------------------------------------------------


_REPLACED = ",.'\"`"


class Names:
    """Gives names that a model admits, each once: commas, full stops and quotes become underscores,
    and what is used already gets a number."""

    def __init__(self, taken: Iterable[str] = ()):
        self._used = set(taken)

    @staticmethod
    def _legal(name: str, noun: str) -> str:
        kept = "".join("_" if c in _REPLACED or not c.isprintable() else c for c in name).strip()
        return kept or noun

    def new(self, name: str, noun: str) -> str:
        """For a part that the file calls so; `noun`, where nothing of the name is left."""
        kept = self._legal(name, noun)
        free, count = kept, 1
        while free in self._used:
            count += 1
            free = f"{kept}_{count}"
        self._used.add(free)
        return free

    def all(self, names: Sequence[str], noun: str) -> list[str]:
        """New names for parts with these names in the file; valid names are kept."""
        legal = [k for k, name in enumerate(names) if self._legal(name, noun) == name]
        first = {*legal}
        others = [k for k in range(len(names)) if k not in first]
        found = {k: self.new(names[k], noun) for k in (*legal, *others)}
        return [found[k] for k in range(len(names))]


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Any of these patterns; `*`, `?` and `[...]` as in file names."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def selected(names: Sequence[str], keep: Sequence[str], drop: Sequence[str]) -> set[str]:
    """The names that match a pattern of `keep` (all, where there is none) and none of `drop`."""
    return {
        name
        for name in names
        if name == GROUND or ((not keep or matches(name, keep)) and not matches(name, drop))
    }


# --------------------------------------------------------------------------------------------------
# The two frames of a joint, one on each of its links: where they agree within the precision of the
# file they are made equal, otherwise the gap is reported.
# --------------------------------------------------------------------------------------------------


# Between two frames lie several errors of numbers: those of a link's place, of its orientation and
# of the point in it, of each of two links.
_ERRORS = 8.0

# Of double precision, relative to the largest coordinate, or rad: sums of many rounded numbers.
_ROUNDING = 1e-9

# Joints whose link may be displaced along the axis.
_SLIDING = ("translational", "cylindrical", "screw")
# Joints whose two points need not coincide.
_APART = ("distance",)


class Agreed(NamedTuple):
    """The description with joints that are closed within the precision of its numbers; by how much
    points were moved for that (m); and what does not agree."""

    description: Description
    moved: float
    omissions: tuple[Omission, ...]


def agreed(description: Description, digits: Digits) -> Agreed:
    """Close what is open by no more than the numbers may be off."""
    size = size_of(description)
    length = max(_ERRORS * digits.length, _ROUNDING * size)
    angle = max(_ERRORS * digits.angle, _ROUNDING)
    joints, moved, omissions = [], 0.0, []
    for joint in description.joints:
        gap = _gap(joint)
        distance, turn = float(np.linalg.norm(gap)), _turn(joint)
        if distance > length or turn > angle:
            omissions.append(Omission("joint", joint.name, _difference(joint, gap, turn, length)))
        if distance <= length:
            # To the child's, which is often that of its own origin, and exact.
            moved = max(moved, distance)
            joint = joint._replace(points=joint.points + np.stack([gap, 0 * gap]))  # noqa: PLW2901
        joints.append(joint)
    return Agreed(description._replace(joints=tuple(joints)), moved, tuple(omissions))


def size_of(description: Description) -> float:
    """The largest coordinate of a joint or a link (m)."""
    points = [own.points for own in description.joints]
    places = [own.position[None] for own in description.links]
    return max((float(np.max(np.abs(own))) for own in (*points, *places)), default=0.0)


def _gap(joint: Joint) -> Vector:
    """Vector from the first point to the second, without the joint's free directions."""
    gap = joint.points[1] - joint.points[0]
    if joint.kind in _APART:
        return np.zeros(3)
    if joint.kind in _SLIDING:
        axis = joint.axes[0] / np.linalg.norm(joint.axes[0])
        return gap - axis * (axis @ gap)
    return gap


def _turn(joint: Joint) -> float:
    """The largest angle (rad) between axes of the two frames that are meant to be one."""
    found = [joint.turned]
    for first, second in zip(joint.axes, joint.child_axes, strict=False):
        sine = np.linalg.norm(np.cross(first, second))
        found.append(float(np.arctan2(sine, first @ second)))
    return max(found)


def _difference(joint: Joint, gap: Vector, turn: float, length: float) -> str:
    distance = float(np.linalg.norm(gap))
    said = []
    if distance > length:
        away = ", ".join(f"{x:.6g}" for x in gap)
        of = "frame" if joint.welds else "point"
        kept = (
            "; the links are welded as they lie"
            if joint.welds
            else ", and it is open in the reference configuration"
        )
        said.append(
            f"its {of} on {joint.child!r} lies {distance:.6g} m away from that on "
            f"{joint.parent!r} ({away}){kept}"
        )
    if turn > 0 and not (said and turn <= _ROUNDING):
        what = "the orientation" if joint.kind == "fixed" else f"the axis on {joint.parent!r}"
        said.append(
            f"its axes on {joint.parent!r} and {joint.child!r} are {turn:.6g} rad apart; {what} "
            "in the reference configuration is kept"
        )
    return "; ".join(said)
