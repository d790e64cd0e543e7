"""What the bodies do, in the words of model files: world axes, angles and quaternions."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .._system import AbstractSystem, BodyInfo, MultibodySystem, Structure


Numbers = Float[np.ndarray, "..."]


class BodyMotion(NamedTuple):
    """One body at n times: `position`, `velocity`, `acceleration` of its centre of mass (n, dim);
    `turn`: the angle (n,) or the orientation (n, 4), None for a particle; `angular_velocity`,
    `angular_acceleration` (n,) or (n, 3). All along world axes."""

    position: Numbers
    turn: Numbers | None
    velocity: Numbers
    angular_velocity: Numbers | None
    acceleration: Numbers
    angular_acceleration: Numbers | None

    @property
    def turn_word(self) -> str:
        """What model files call `turn`."""
        return "angle" if self.turn is None or self.turn.ndim == 1 else "orientation"

    def columns(self) -> dict[str, Numbers]:
        """Position and velocity by the words of model files."""
        named = {"position": self.position, self.turn_word: self.turn, "velocity": self.velocity}
        named["angular_velocity"] = self.angular_velocity
        return {key: value for key, value in named.items() if value is not None}

    def rates(self) -> dict[str, Numbers]:
        """Accelerations, likewise."""
        named = {
            "acceleration": self.acceleration,
            "angular_acceleration": self.angular_acceleration,
        }
        return {key: value for key, value in named.items() if value is not None}


def has_bodies(system: AbstractSystem) -> bool:
    """Are the coordinates of the system poses of bodies? Those of a system in generalized
    coordinates are not, even where it names bodies."""
    return isinstance(system, MultibodySystem) and bool(system.structure.bodies)


def coordinate_slices(structure: Structure) -> Iterator[tuple[BodyInfo, slice]]:
    """Each body with its part of q."""
    start = 0
    for body in structure.bodies:
        size = len(pose_words(body))
        yield body, slice(start, start + size)
        start += size


def pose_words(body: BodyInfo) -> list[str]:
    """The names of a body's coordinates, in order."""
    turns = {0: [], 1: ["angle"], 3: [f"orientation.{c}" for c in "wxyz"]}
    return [*(f"position.{c}" for c in "xyz"[: len(body.force)]), *turns[len(body.torque)]]


def body_motions(
    structure: Structure,
    q: Float[np.ndarray, "n nq"],
    v: Float[np.ndarray, "n nv"],
    acceleration: Float[np.ndarray, "n nv"],
) -> dict[str, BodyMotion]:
    """The motion of each body at n states."""
    found = {}
    for body, part in coordinate_slices(structure):
        own, dim = q[:, part], len(body.force)
        force, torque = list(body.force), list(body.torque)
        turn = spin = turning = None
        if len(torque) == 1:
            turn, spin, turning = own[:, dim], v[:, torque[0]], acceleration[:, torque[0]]
        elif torque:
            turn = own[:, dim:]
            axes = rotation(turn)
            # The rate of R w is R dw/dt, since w x w = 0.
            spin = np.einsum("nij,nj->ni", axes, v[:, torque])
            turning = np.einsum("nij,nj->ni", axes, acceleration[:, torque])
        found[body.name] = BodyMotion(
            own[:, :dim], turn, v[:, force], spin, acceleration[:, force], turning
        )
    return found


def rotation(orientation: Float[np.ndarray, "n 4"]) -> Float[np.ndarray, "n 3 3"]:
    """Matrices whose columns are the body axes of unit quaternions, scalar first."""
    w, x, y, z = orientation.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)


def lettered(name: str, values: Numbers) -> dict[str, Numbers]:
    """Columns of a table: `name` for numbers (n,), `name.x` ... for vectors, `name.w` ... for
    quaternions."""
    if values.ndim == 1:
        return {name: values}
    letters = "wxyz" if values.shape[1] == 4 else "xyz"
    return {f"{name}.{c}": values[:, k] for k, c in enumerate(letters[: values.shape[1]])}
