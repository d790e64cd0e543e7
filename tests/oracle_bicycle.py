"""Whipple's bicycle in reduced coordinates, by Kane's equations in NumPy.

Independent of the library: lean, pitch and steer angles and the heading's own axes in the place of
poses, partial velocities in the place of multipliers, steps into the complex plane in the place of
derivatives. Numbers of Meijaard et al. 2007, table 1; x forward, y to the left, z upwards.
"""

from typing import NamedTuple

import numpy as np


G = 9.81
WHEELBASE, TRAIL, TILT = 1.02, 0.08, np.pi / 10
REAR, FRONT = 0.3, 0.35
MASSES = (2.0, 85.0, 4.0, 3.0)
INERTIAS = (
    np.diag([0.0603, 0.12, 0.0603]),
    np.array([[9.2, 0.0, -2.4], [0.0, 11.0, 0.0], [-2.4, 0.0, 2.8]]),
    np.array([[0.05892, 0.0, 0.00756], [0.0, 0.06, 0.0], [0.00756, 0.0, 0.00708]]),
    np.diag([0.1405, 0.28, 0.1405]),
)
# From the rear wheel's centre, upright and straight: frame, a point of the steering axis, and from
# there fork and front wheel.
UP = np.array([-np.sin(TILT), 0.0, np.cos(TILT)])
RIGHT_ANGLES = np.eye(3)
TO_FRAME = np.array([0.3, 0.0, 0.9 - REAR])
TO_HEAD = np.array([WHEELBASE + TRAIL, 0.0, -REAR])
TO_FORK = np.array([0.9, 0.0, 0.7 - REAR]) - TO_HEAD
TO_FRONT = np.array([WHEELBASE, 0.0, FRONT - REAR]) - TO_HEAD
STEP = 1e-30


def cross(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def rotation(axis, angle):
    k = cross(axis)
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


def to_contact(radius, axle):
    """From a wheel's centre to its lowest point."""
    x, y, z = axle
    down = np.array([x * z, y * z, z * z - 1])
    return radius * down / np.sqrt(x * x + y * y)


class Kinematics(NamedTuple):
    """In axes of the heading, linear in the speeds (yaw, lean, pitch, steer, rear and front wheel
    rates): velocities (4, 3, 6) and angular velocities (4, 3, 6) of rear wheel, frame, fork and
    front wheel, and the velocity of the front wheel's lowest point (3, 6); its height."""

    linear: np.ndarray
    angular: np.ndarray
    contact: np.ndarray
    height: complex
    rotations: tuple[np.ndarray, np.ndarray]
    places: np.ndarray


def kinematics(angles):
    lean, pitch, steer = angles
    x, y, z = RIGHT_ANGLES
    leaning = rotation(x, lean)
    frame = leaning @ rotation(y, pitch)
    fork = frame @ rotation(UP, steer)
    none = np.zeros(3)
    rear_axle, front_axle, head = frame @ y, fork @ y, frame @ UP
    of_frame = np.stack([z, x, leaning @ y, none, none, none], axis=1)
    of_fork = of_frame + np.stack([none, none, none, head, none, none], axis=1)
    of_rear = of_frame + np.stack([none] * 4 + [rear_axle, none], axis=1)
    of_front = of_fork + np.stack([none] * 5 + [front_axle], axis=1)
    rear_down, front_down = to_contact(REAR, rear_axle), to_contact(FRONT, front_axle)
    at_rear = cross(rear_down) @ of_rear
    at_frame = at_rear - cross(frame @ TO_FRAME) @ of_frame
    at_head = at_rear - cross(frame @ TO_HEAD) @ of_frame
    at_fork = at_head - cross(fork @ TO_FORK) @ of_fork
    at_front = at_head - cross(fork @ TO_FRONT) @ of_fork
    centre = -rear_down
    ahead = centre + frame @ TO_HEAD
    places = np.stack(
        [centre, centre + frame @ TO_FRAME, ahead + fork @ TO_FORK, ahead + fork @ TO_FRONT]
    )
    return Kinematics(
        np.stack([at_rear, at_frame, at_fork, at_front]),
        np.stack([of_rear, of_frame, of_fork, of_front]),
        at_front - cross(front_down) @ of_front,
        (places[3] + front_down)[2],
        (frame, fork),
        places,
    )


def pitch_of(lean, steer):
    """So that the front wheel touches the ground."""
    pitch = 0.0
    for _ in range(20):
        height = kinematics((lean, pitch + 1j * STEP, steer)).height
        change = height.real / (height.imag / STEP)
        pitch -= change
        if abs(change) < 1e-16:
            break
    return pitch


def speeds_of(found, free):
    """All six speeds from (lean rate, steer rate, rear wheel rate): the front wheel does not
    slip."""
    chosen, others = [1, 3, 4], [0, 2, 5]
    passing = np.zeros((6, 3), found.contact.dtype)
    passing[chosen] = np.eye(3)
    passing[others] = -np.linalg.solve(found.contact[:, others], found.contact[:, chosen])
    return passing, passing @ free


def accelerations(lean, steer, free):
    """d/dt (lean rate, steer rate, rear wheel rate)."""
    angles = np.array([lean, pitch_of(lean, steer), steer])
    here = kinematics(angles)
    passing, speeds = speeds_of(here, free)
    rates = speeds[[1, 2, 3]]
    later = kinematics(angles + 1j * STEP * rates)
    _, speeds_later = speeds_of(later, free)
    # What changes while the free speeds stay the same.
    linear = np.imag(later.linear @ speeds_later) / STEP
    angular = np.imag(later.angular @ speeds_later) / STEP
    yaw = cross(speeds[0] * RIGHT_ANGLES[2])
    frame, fork = here.rotations
    matrix, force = np.zeros((3, 3)), np.zeros(3)
    for k, turned in enumerate((frame, frame, fork, fork)):
        at, of = here.linear[k] @ passing, here.angular[k] @ passing
        inertia = turned @ INERTIAS[k] @ turned.T
        spin = of @ free
        matrix += MASSES[k] * at.T @ at + of.T @ inertia @ of
        drift = linear[k] + yaw @ (at @ free) + G * RIGHT_ANGLES[2]
        force -= MASSES[k] * at.T @ drift
        force -= of.T @ (inertia @ (angular[k] + yaw @ spin) + cross(spin) @ inertia @ spin)
    return np.linalg.solve(matrix, force)


def flow(state):
    """d/dt (lean, steer, lean rate, steer rate, rear wheel rate)."""
    lean, steer, *free = state
    return np.concatenate([free[:2], accelerations(lean, steer, np.array(free))])


def steady_turn(steer):
    """Hands-free circular motion at this steer angle: its state, by Newton from the capsize speed,
    in small changes of the steer angle."""
    state = np.array([0.0, 0.0, 0.0, 0.0, 6.024262015388375 / REAR])
    for part in np.linspace(0.0, steer, 6)[1:]:
        state[1] = part
        if not state[0]:
            # The first one leans as a bicycle that is upright nearly.
            state[0] = -0.5 * part
        for _ in range(30):
            columns = []
            for k in (0, 4):
                step = np.zeros(5)
                step[k] = 1e-6
                columns.append((flow(state + step) - flow(state - step))[2:4] / 2e-6)
            change = np.linalg.solve(np.stack(columns, axis=1), flow(state)[2:4])
            state[[0, 4]] -= change
            if np.max(np.abs(change)) < 1e-14:
                break
    return state


def reduced_eigenvalues(state):
    """Of the reduced flow, by differences of sixth order."""
    nodes = np.array([-3, -2, -1, 1, 2, 3])
    weights = np.array([-1, 9, -45, 45, -9, 1]) / 60
    columns = []
    for k in range(5):
        step = np.zeros(5)
        step[k] = 2e-3 * max(1.0, abs(state[k]))
        values = [flow(state + node * step) for node in nodes]
        columns.append(sum(w * x for w, x in zip(weights, values, strict=True)) / step[k])
    return np.linalg.eigvals(np.stack(columns, axis=1))


def bodies_of(state):
    """Positions (4, 3), rotations (4, 3, 3), velocities and angular velocities (4, 3) in the world
    of a state, headed along x, its rear wheel on the origin."""
    lean, steer, *free = state
    found = kinematics((lean, pitch_of(lean, steer), steer))
    _, speeds = speeds_of(found, np.array(free))
    frame, fork = found.rotations
    turned = np.stack([frame, frame, fork, fork])
    return found.places, turned, found.linear @ speeds, found.angular @ speeds, speeds[0]
