"""What is drawn of a mechanism at n states, independent of any library: bodies and joints as
surfaces of triangles that move rigidly, ropes and springs as lines. Pictures, reports and the
viewer show the same scene.
"""

from typing import NamedTuple

import numpy as np
import trimesh
from jaxtyping import Float, Int

from .._reactions import Reactions
from .._system import AbstractSystem
from ._skeleton import Skeleton, skeleton


BODY_COLOUR = (0.65, 0.70, 0.76)

# Radius of a bar over the diagonal of the scene.
_BAR = 0.008


class Solid(NamedTuple):
    """A visual shape: a surface of triangles in the frame of its body or joint.

    - `vertices` (v, 3) in m, `faces` (f, 3): indices of vertices, counter-clockwise from outside.
    - `colour`: red, green and blue, from 0 to 1.
    """

    vertices: Float[np.ndarray, "v 3"]
    faces: Int[np.ndarray, "f 3"]
    colour: tuple[float, float, float]


class DrawnBody(NamedTuple):
    """A body: its frame at n states and its visual shapes in this frame.

    `position` (n, 3) in m and `rotation` (n, 3, 3), in the fixed frame.
    """

    name: str
    position: Float[np.ndarray, "n 3"]
    rotation: Float[np.ndarray, "n 3 3"]
    solids: tuple[Solid, ...]


class Symbol(NamedTuple):
    """Constraints that are drawn at one point, as the symbol of their kind.

    - `kind`: of the constraint that is drawn, as model files name it ("revolute").
    - `constraints`: indices into `structure.constraint_names`.
    - `position` (n, 3), `rotation` (n, 3, 3): the frame of the joint; its x axis is that of the
      joint in space, its z axis is across the plane of a planar mechanism.
    - `solids`: in this frame. `grounded`: it acts on the fixed frame.
    """

    kind: str
    constraints: tuple[int, ...]
    position: Float[np.ndarray, "n 3"]
    rotation: Float[np.ndarray, "n 3 3"]
    solids: tuple[Solid, ...]
    grounded: bool


class Strand(NamedTuple):
    """A line: `kind` is "rope", "pulley", "spring" or "curve"; `points` (n, m, 3)."""

    kind: str
    name: str
    points: Float[np.ndarray, "n m 3"]


class Scene(NamedTuple):
    """A mechanism at n states; planar ones lie in z = 0.

    - `gravity` (3,): m/s^2, zero where there is none.
    - `low`, `high` (3,): the box that holds everything at all states.
    """

    bodies: tuple[DrawnBody, ...]
    symbols: tuple[Symbol, ...]
    strands: tuple[Strand, ...]
    gravity: Float[np.ndarray, "3"]
    low: Float[np.ndarray, "3"]
    high: Float[np.ndarray, "3"]
    planar: bool

    @property
    def size(self) -> float:
        """The diagonal of the box (m), or one where it is a point."""
        diagonal = float(np.linalg.norm(self.high - self.low))
        return diagonal if diagonal > 0 else 1.0

    @property
    def drawable(self) -> bool:
        """Is there anything to draw?"""
        return bool(self.bodies or self.symbols or self.strands)


def scene(system: AbstractSystem, reactions: Reactions, q: Float[np.ndarray, "n nq"]) -> Scene:
    """The scene of n states.

    **Arguments:** `reactions` of these states, which contain the points of joints; `q` (n, nq).
    """
    lines = skeleton(system, reactions, q)
    bodies = tuple(_generated(lines, k) for k in range(len(lines.hub_names)))
    names = reactions.structure.constraint_names
    still = np.broadcast_to(np.eye(3), (len(q), 3, 3))
    ball = _ball(1.8 * _BAR * lines.size)
    symbols = tuple(
        Symbol(names[own[0]], own, lines.points[:, place], still, (ball,), place in lines.ground)
        for place, own in lines.joints
    )
    strands = tuple(Strand("rope", "", points) for points in lines.ropes)
    strands += tuple(Strand("pulley", "", points) for points in lines.pulleys)
    gravity = np.zeros(3)
    return Scene(bodies, symbols, strands, gravity, lines.low, lines.high, lines.planar)


def _generated(lines: Skeleton, hub: int) -> DrawnBody:
    position = lines.hubs[:, hub]
    still = np.broadcast_to(np.eye(3), (len(position), 3, 3))
    ends = {spoke.point for spoke in lines.spokes if spoke.hub == hub}
    own = [lines.points[0, k] - position[0] for k in ends]
    bars = [_bar(point, _BAR * lines.size) for point in own if np.linalg.norm(point) > 0]
    return DrawnBody(lines.hub_names[hub], position, still, tuple(bars))


def _bar(end: np.ndarray, radius: float) -> Solid:
    made = trimesh.creation.cylinder(radius, segment=np.stack([np.zeros(3), end]), sections=16)
    return Solid(np.asarray(made.vertices), np.asarray(made.faces), BODY_COLOUR)


def _ball(radius: float) -> Solid:
    made = trimesh.creation.icosphere(subdivisions=1, radius=radius)
    return Solid(np.asarray(made.vertices), np.asarray(made.faces), (0.2, 0.2, 0.2))
