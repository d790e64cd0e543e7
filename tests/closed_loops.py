"""Loops of revolute joints in space, by Denavit and Hartenberg's numbers, and an oracle in NumPy
that follows them in joint angles alone."""

from typing import NamedTuple

import numpy as np

from jaxmbs import Driver, Model, motions, MultibodySystem, spatial


class Loop(NamedTuple):
    """Rz(angle) Tz(offset) Tx(length) Rx(twist), one for each joint, is the identity."""

    angles: np.ndarray
    lengths: np.ndarray
    twists: np.ndarray
    offsets: np.ndarray


def transform(angle: float, length: float, twist: float, offset: float) -> np.ndarray:
    """Denavit and Hartenberg's transformation of one link."""
    c, s, k, m = np.cos(angle), np.sin(angle), np.cos(twist), np.sin(twist)
    return np.array(
        [
            [c, -s * k, s * m, length * c],
            [s, c * k, -c * m, length * s],
            [0.0, m, k, offset],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def frames(loop: Loop, angles: np.ndarray) -> list[np.ndarray]:
    """The frame before each joint, and the one behind the last."""
    found = [np.eye(4)]
    for numbers in zip(angles, *loop[1:], strict=True):
        found.append(found[-1] @ transform(*numbers))
    return found


def gap_and_screws(loop: Loop, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is open (6,), and its derivative by the angles (6, n): the joints' screws."""
    found = frames(loop, angles)
    end = found[-1]
    turn = np.array([end[2, 1] - end[1, 2], end[0, 2] - end[2, 0], end[1, 0] - end[0, 1]]) / 2
    axes = np.array([f[:3, 2] for f in found[:-1]])
    arms = np.array([np.cross(f[:3, 2], end[:3, 3] - f[:3, 3]) for f in found[:-1]])
    # The derivative of the antisymmetric part, exact where it is closed.
    return np.concatenate([turn, end[:3, 3]]), np.concatenate([axes, arms], axis=1).T


def closed_angles(loop: Loop, guess: np.ndarray, held: int | None = None) -> np.ndarray | None:
    """Angles next to a guess with which the loop closes, one of them held; None if there are none.
    Gauss and Newton, minimum norm, with singular values below 1e-7 left out once it is closed."""
    angles, free = guess.copy(), [k for k in range(len(guess)) if k != held]
    for _ in range(60):
        gap, screws = gap_and_screws(loop, angles)
        size = float(np.linalg.norm(gap))
        step = np.linalg.lstsq(screws[:, free], gap, rcond=max(1e-7, min(0.1 * size, 1e-3)))[0]
        angles[free] -= step
        if np.linalg.norm(step) < 1e-13:
            break
    right = np.allclose(frames(loop, angles)[-1], np.eye(4), rtol=0, atol=1e-10)
    return angles if right else None


def followed(loop: Loop, ends: float, step: float = 0.02) -> dict[float, np.ndarray]:
    """The angles along the branch on which the first one is moved by multiples of `step` up to
    `ends`, straight on where branches cross: by secants."""
    count = round(abs(ends) / step)
    track = [loop.angles]
    for _ in range(count):
        ahead = track[-1] if len(track) == 1 else 2 * track[-1] - track[-2]
        guess = ahead.copy()
        guess[0] = track[-1][0] + np.sign(ends) * step
        found = closed_angles(loop, guess, held=0)
        if found is None or np.max(np.abs(found - track[-1])) > 20 * step:
            break
        track.append(found)
    values = np.sign(ends) * step * np.arange(len(track))
    return {round(float(v), 9): angles for v, angles in zip(values, track, strict=True)}


def line_symmetric(seed: int) -> Loop:
    """A Bricard linkage that a half turn maps on itself, of random lengths, twists and offsets
    (Bricard 1897)."""
    rng = np.random.default_rng(seed)
    lengths, twists = (np.tile(rng.uniform(*ends, 3), 2) for ends in ((0.5, 1.5), (0.5, 2.5)))
    offsets = np.tile(rng.uniform(-0.6, 0.6, 3), 2) * (seed % 2)
    loop = Loop(np.zeros(6), lengths, twists, offsets)
    for _ in range(100):
        found = closed_angles(loop, np.tile(rng.uniform(-3, 3, 3), 2))
        if found is not None and np.allclose(found[:3], found[3:]):
            return loop._replace(angles=found)
    raise AssertionError(f"no closed configuration of seed {seed} was found")


def threefold(angle: float) -> Loop:
    """Bricard's linkage of six equal links, at right angles in turns to either side: by symmetry
    cos a + cos b + cos a cos b = 0 for its alternating angles a and b."""
    other = np.arccos(-np.cos(angle) / (1 + np.cos(angle)))
    twists = np.tile([np.pi / 2, -np.pi / 2], 3)
    return Loop(np.tile([angle, other], 3), np.ones(6), twists, np.zeros(6))


def model_of(loop: Loop) -> Model:
    """Its bodies and joints J1 .. Jn, closed at t = 0; time is the rotation of J1."""
    places = frames(loop, loop.angles)
    count = len(loop.angles)
    names = ["ground", *(f"link {k}" for k in range(1, count)), "ground"]
    points = [place[:3, 3] for place in places]
    bodies = [
        spatial.Body(
            names[k], mass=1.0, inertia=(0.1, 0.1, 0.1), position=(points[k - 1] + points[k]) / 2
        )
        for k in range(1, count)
    ]
    joints = [
        spatial.Revolute(f"J{k + 1}", (names[k], names[k + 1]), points[k], places[k][:3, 2])
        for k in range(count)
    ]
    driver = Driver("drive", "J1", "rotation", motions.Linear(rate=1.0))
    return Model("loop", 3, bodies=bodies, joints=joints, drivers=[driver])


def system_of(loop: Loop) -> MultibodySystem:
    """Of `model_of`."""
    return model_of(loop).system()


def joint_angles(loop: Loop, q: np.ndarray) -> np.ndarray:
    """By how much the joints have turned (n,) in a configuration of `system_of`, between -pi and
    pi: from the bodies' quaternions."""
    axes = [place[:3, 2] for place in frames(loop, loop.angles)[:-1]]
    quaternions = [np.array([1.0, 0, 0, 0]), *np.reshape(q, (-1, 7))[:, 3:], [1.0, 0, 0, 0]]
    found = []
    for k, axis in enumerate(axes):
        (w, *x), (a, *y) = quaternions[k], quaternions[k + 1]
        # conjugate(first) * second; its vector is along the axis.
        scalar = w * a + np.dot(x, y)
        vector = w * np.array(y) - a * np.array(x) - np.cross(x, y)
        found.append(2 * np.arctan2(vector @ axis, scalar))
    return (np.array(found) + np.pi) % (2 * np.pi) - np.pi
