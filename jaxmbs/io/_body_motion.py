"""Motions of bodies, in the terms of model files: world axes, angles and quaternions."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .._system import AbstractSystem, BodyInfo, MultibodySystem, Structure


Numbers = Float[np.ndarray, "..."]


class BodyMotion(NamedTuple):
    """One body at n times, by the words of model files and along world axes: of its frame
    (`position`, the centre of mass of a rigid body, `angle` or `orientation`, `velocity`,
    `angular_velocity`), and of each other coordinate of its own and its rate."""

    states: dict[str, Numbers]
    accelerations: dict[str, Numbers]


def has_bodies(system: AbstractSystem) -> bool:
    """Is each coordinate of the system, save states of forces, called by a body? Those of a system
    in generalized coordinates are not, even where it names bodies."""
    structure = system.structure
    called = [
        place
        for body in structure.bodies
        for place in body.coordinates
        if word_of(body, structure.coordinates[place].name) != structure.coordinates[place].name
    ]
    every = np.all(structure.is_internal | np.isin(np.arange(structure.nq), called))
    return isinstance(system, MultibodySystem) and bool(every)


def body_motions(
    structure: Structure,
    q: Float[np.ndarray, "n nq"],
    v: Float[np.ndarray, "n nv"],
    acceleration: Float[np.ndarray, "n nv"],
) -> dict[str, BodyMotion]:
    """The motion of each body at n states."""
    found = {}
    for body in structure.bodies:
        states, rates = _of_frame(body, q, v, acceleration) if body.posed else ({}, {})
        held = len(body.coordinates) - len(body.others)
        for place, column in zip(body.coordinates[held:], body.others, strict=True):
            name = word_of(body, structure.coordinates[place].name)
            states |= {name: q[:, place], f"{name}.rate": v[:, column]}
            rates[f"{name}.acceleration"] = acceleration[:, column]
        found[body.name] = BodyMotion(states, rates)
    return found


def word_of(body: BodyInfo, name: str) -> str:
    """The name of a coordinate within its body."""
    return name.removeprefix(f"{body.name}.")


def _of_frame(
    body: BodyInfo,
    q: Float[np.ndarray, "n nq"],
    v: Float[np.ndarray, "n nv"],
    acceleration: Float[np.ndarray, "n nv"],
) -> tuple[dict[str, Numbers], dict[str, Numbers]]:
    """States and accelerations of a body's own frame."""
    own, dim = q[:, list(body.coordinates)], len(body.force)
    force, torque = list(body.force), list(body.torque)
    states: dict[str, Numbers] = {"position": own[:, :dim]}
    rates: dict[str, Numbers] = {"acceleration": acceleration[:, force]}
    velocity = {"velocity": v[:, force]}
    if len(torque) == 1:
        states["angle"] = own[:, dim]
        velocity["angular_velocity"] = v[:, torque[0]]
        rates["angular_acceleration"] = acceleration[:, torque[0]]
    elif torque:
        states["orientation"] = own[:, dim : dim + 4]
        axes = rotation(states["orientation"])
        # The rate of R w is R dw/dt, since w x w = 0.
        velocity["angular_velocity"] = np.einsum("nij,nj->ni", axes, v[:, torque])
        turning = np.einsum("nij,nj->ni", axes, acceleration[:, torque])
        rates["angular_acceleration"] = turning
    return states | velocity, rates


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
