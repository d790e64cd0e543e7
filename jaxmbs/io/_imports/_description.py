"""The common form of a mechanism for all formats: links, joints, and the forces in them, all in the
world of the reference configuration. Readers create it; `_translation.py` turns it into a model."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


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
    (coordinate - rest) - damping rate + effort, and the inertia of its drive. Torques and rad about
    an axis, forces and m along one."""

    # The coordinate: `rotation`, `translation` or `ball`.
    word: str
    # Its own, or else that of the joint.
    name: str = ""
    stiffness: float = 0.0
    damping: float = 0.0
    rest: float = 0.0
    effort: float = 0.0
    armature: float = 0.0
    # Of a spherical joint: the rotation vector, world axes.
    rest_rotation: tuple[float, float, float] = (0.0, 0.0, 0.0)


class Joint(NamedTuple):
    """A joint between `parent` and `child`, by the words of model files. `points`: one on each;
    `axes`: none, one, or one on each. `welds`: it makes one body of two. `dynamics`: of
    springs, dampers and motors in it."""

    name: str
    kind: str
    parent: str
    child: str
    points: Float[np.ndarray, "2 3"]
    axes: tuple[Vector, ...] = ()
    pitch: float = 0.0
    welds: bool = False
    dynamics: tuple[Dynamics, ...] = ()
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


class Wrench(NamedTuple):
    """A constant force and torque (world axes of the reference configuration) at a point of one
    link; `turns`: with the link."""

    name: str
    link: str
    point: Vector
    force: Vector
    torque: Vector
    turns: bool


class Omission(NamedTuple):
    """An item of the file that the model does not have: its kind, its name, and the reason, or its
    replacement."""

    kind: str
    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}: {self.why}"


class Description(NamedTuple):
    """A mechanism."""

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    couplings: tuple[CoordinateCoupling, ...] = ()
    wrenches: tuple[Wrench, ...] = ()
    gravity: Vector | None = None
    omissions: tuple[Omission, ...] = ()
