"""The parallelogram of elastic bodies, and what rods in its rigid motion would carry."""

from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

import jaxmbs as jm
from jaxmbs import elastic, spatial


LINKS = ("AB", "CD", "EF", "GH", "KL", "MN")
FORCE, TORQUE = np.array([2000.0, 3000.0, 3000.0]), np.array([300.0, 0.0, 500.0])
GRAVITY = np.array([0.0, 0.0, -9.81])
# Of the lower links, in which the mechanism can be stressed without any load.
SELF_STRESS = np.array([1.0, -1.0, 1.0, -1.0, 0.0, 0.0])


def rigid_counterpart(model: jm.Model, stiffness: Any) -> jm.Model:
    """The same mechanism of rigid bodies with the mass and inertia of the elastic ones, and links
    that are rods."""
    joints: Any = model.joints
    points = {joint.name: np.asarray(joint.at[0]) for joint in joints}
    modal: Any = model.bodies
    bodies = [
        spatial.Body(
            body.name,
            mass=body.reduced.mass,
            inertia=body.reduced.inertia,
            position=body.position,
            orientation=body.orientation,
        )
        for body in modal
    ]
    rods = [
        elastic.Rod(name, f"link {name}", points=[points[k] for k in name], stiffness=stiffness)
        for name in LINKS
    ]
    return jm.Model(
        "parallelogram of rods",
        3,
        bodies=bodies,
        joints=model.joints,
        forces=model.forces,
        compliances=rods,
        gravity=model.gravity,
    )


def axial_forces(run: jm.results.Trajectory) -> np.ndarray:
    """Mean of what the joints at both ends of each link press it with (N), at all saved times."""
    found = run.reactions()
    forces = []
    for first, second in LINKS:
        base, top = found.wrench(first), found.wrench(second)
        line = np.asarray(top.point) - np.asarray(base.point)
        line /= np.linalg.norm(line, axis=-1, keepdims=True)
        # On the link, and by the link on the platform.
        pushed = np.asarray(base.force) + np.asarray(top.force)
        forces.append(0.5 * np.sum(pushed * line, axis=-1))
    return np.stack(forces, axis=-1)


class Bodies(NamedTuple):
    """Mass of a link (kg) and its moment of inertia (kg m^2) about its centre, across it; mass of
    the platform (kg)."""

    link: float
    inertia: float
    platform: float


def _accelerated(bodies: Bodies, theta: float) -> float:
    """Second derivative of theta, the one degree of freedom: the platform moves in a circle and
    does not turn, links turn about the vertical through their base joints and do not spin."""
    # The links are at 45 degrees to the vertical.
    inertia = 0.25 * bodies.platform + 6 * (bodies.link / 16 + bodies.inertia / 2)
    return 0.5 * (FORCE[0] * np.cos(theta) - FORCE[1] * np.sin(theta)) / inertia


def rigid_motion(bodies: Bodies, times: np.ndarray) -> np.ndarray:
    """Angle theta and its rate (2, times), from rest."""
    found = solve_ivp(
        lambda t, y: (y[1], _accelerated(bodies, y[0])),
        (0.0, float(times[-1])),
        (0.0, 0.0),
        "DOP853",
        times,
        rtol=1e-11,
        atol=1e-12,
    )
    return found.y


def rod_forces(bodies: Bodies, theta: float, rate: float) -> np.ndarray:
    """Mean axial forces (N) of links that are alike rods, at one state of the rigid motion.

    The balance of the platform leaves a multiple of the self-stress open; the elongations of the
    lower links, which fit together, decide it.
    """
    out = np.array([np.sin(theta), np.cos(theta), 0.0])
    across = np.array([np.cos(theta), -np.sin(theta), 0.0])
    # Second derivative of `out`, the horizontal direction of all links.
    turned = _accelerated(bodies, theta) * across - rate**2 * out
    up = np.array([0.0, 0.0, 1.0])
    joints = 0.25 * np.array(
        [[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0], [-1, 0, 0], [1, 0, 0]]
    )
    length, root = np.sqrt(0.5), np.sqrt(0.5)
    unknown, known, means = np.zeros((6, 6)), np.zeros(6), np.zeros(6)
    known[:3] = FORCE + bodies.platform * (GRAVITY - 0.5 * turned)
    known[3:] = TORQUE
    for k, joint in enumerate(joints):
        # The line of the link, from its base joint, and its second derivative.
        line, bent = root * (out + (up if k < 4 else -up)), root * turned
        # Moments about the base joint: what acts on the platform across the link.
        moment = bodies.inertia + bodies.link * length**2 / 4
        side = bodies.link * GRAVITY / 2 - moment / length * bent
        side -= line * (line @ side)
        unknown[:3, k], unknown[3:, k] = line, np.cross(joint, line)
        known[:3] += side
        known[3:] += np.cross(joint, side)
        # The base joint presses with that much more as accelerates the link and carries it.
        means[k] = 0.5 * bodies.link * (0.5 * length * bent - GRAVITY) @ line
    forces = np.linalg.lstsq(unknown, -known, rcond=1e-9)[0] + means
    return forces - SELF_STRESS * (SELF_STRESS @ forces) / 4
