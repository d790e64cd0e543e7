"""Small mechanisms whose verdicts are known (all numbers chosen)."""

import numpy as np

from .. import planar, spatial
from .._constraints import Driver, Linear
from .._system import Model


_REMARK = "Chosen: all numbers."
_X, _Y, _Z = np.eye(3)


def _body(name: str, *points, position=None) -> spatial.Body:
    """1 kg, inertia 0.1, centre of mass in the mean of the joint points."""
    centre = np.mean(points, axis=0) if position is None else position
    return spatial.Body(name, mass=1.0, inertia=(0.1, 0.1, 0.1), position=centre)


def slider_crank() -> Model:
    """Planar slider-crank: no redundancy, every reaction unique."""
    a, b, c = np.array([[0.0, 0.0], [0.1, 0.1], [0.3, 0.0]])

    def body(name: str, *points: np.ndarray) -> planar.Body:
        return planar.Body(name, mass=1.0, inertia=0.1, position=np.mean(points, axis=0))

    return Model(
        "slider-crank",
        2,
        bodies=[body("crank", a, b), body("rod", b, c), body("slider", c)],
        joints=[
            planar.Revolute("A", ("ground", "crank"), a),
            planar.Revolute("B", ("crank", "rod"), b),
            planar.Revolute("C", ("rod", "slider"), c),
            planar.Translational("D", ("ground", "slider"), c, (1.0, 0.0)),
        ],
        remark=_REMARK,
    )


def driven_slider_crank() -> Model:
    """Planar slider-crank at 600 revolutions a minute: a driver moves its one mobility."""
    a, b, c = np.array([[0.0, 0.0], [0.05, 0.0], [0.25, 0.0]])
    rate = 20 * np.pi
    # In the dead centre the piston rests, and the rod turns about C against the crank.
    turning = -rate * 0.05 / 0.2

    def body(name: str, mass: float, inertia: float, x: float, speed: float, spin: float):
        return planar.Body(
            name,
            mass=mass,
            inertia=inertia,
            position=(x, 0.0),
            velocity=(0.0, speed),
            angular_velocity=spin,
        )

    return Model(
        "driven-slider-crank",
        2,
        bodies=[
            body("crank", 0.8, 5e-4, 0.01, 0.01 * rate, rate),
            body("rod", 0.5, 2e-3, 0.15, -0.1 * turning, turning),
            body("piston", 0.4, 1e-3, 0.25, 0.0, 0.0),
        ],
        joints=[
            planar.Revolute("A", ("ground", "crank"), a),
            planar.Revolute("B", ("crank", "rod"), b),
            planar.Revolute("C", ("rod", "piston"), c),
            planar.Translational("D", ("ground", "piston"), c, (1.0, 0.0)),
        ],
        drivers=[Driver("motor", "A", "rotation", Linear(rate=rate))],
        gravity=(0.0, -9.81),
        remark=_REMARK,
    )


def door() -> Model:
    """A door on two coaxial hinges: five redundant rows, neither reaction unique."""
    lower, upper = 0.3 * _Z, 1.7 * _Z
    return Model(
        "door",
        3,
        bodies=[_body("door", lower, upper)],
        joints=[
            spatial.Revolute("lower", ("ground", "door"), lower, _Z),
            spatial.Revolute("upper", ("ground", "door"), upper, _Z),
        ],
        remark=_REMARK,
    )


def bennett() -> Model:
    """Bennett's four-bar linkage: mobile only by its proportions, no reaction unique."""
    lengths = (1.0, 0.75, 1.0, 0.75)
    short = np.degrees(np.arcsin(0.75 * np.sin(np.radians(60.0))))
    twists = (60.0, short, 60.0, short)
    thetas = (70.0, -162.46987769779088, -70.0, 162.46987769779088)
    rotation, origin = np.eye(3), np.zeros(3)
    points, axes = [origin], [rotation[:, 2]]
    for theta, length, twist in zip(thetas[:3], lengths, twists, strict=False):
        rotation = rotation @ _rotation(2, theta)
        origin = origin + length * rotation[:, 0]
        rotation = rotation @ _rotation(0, twist)
        points.append(origin)
        axes.append(rotation[:, 2])
    names = ("ground", "link 1", "link 2", "link 3", "ground")
    return Model(
        "bennett",
        3,
        bodies=[_body(names[i], points[i - 1], points[i]) for i in (1, 2, 3)],
        joints=[
            spatial.Revolute(f"J{i + 1}", (names[i], names[i + 1]), points[i], axes[i])
            for i in range(4)
        ],
        remark=_REMARK,
    )


def sarrus() -> Model:
    """Sarrus linkage: two legs of three hinges guide a platform along a line."""
    a = np.array([[0.0, 1.0, 0.0], [0.0, 1.5, 0.3], [0.0, 1.0, 0.6]])
    b = np.array([[1.0, 0.0, 0.0], [1.5, 0.0, 0.3], [1.0, 0.0, 0.6]])
    joints = []
    for leg, points, axis in (("A", a, _X), ("B", b, _Y)):
        names = ("ground", f"{leg} lower", f"{leg} upper", "platform")
        joints += [
            spatial.Revolute(f"{leg}{i + 1}", (names[i], names[i + 1]), points[i], axis)
            for i in range(3)
        ]
    return Model(
        "sarrus",
        3,
        bodies=[
            _body("A lower", a[0], a[1]),
            _body("A upper", a[1], a[2]),
            _body("B lower", b[0], b[1]),
            _body("B upper", b[1], b[2]),
            _body("platform", a[2], b[2]),
        ],
        joints=joints,
        remark=_REMARK,
    )


def three_crank_parallelogram() -> Model:
    """A coupler on three parallel cranks, in space: seven redundant rows."""
    crank = np.array([0.3, 0.5, 0.0])
    pivots = [np.array([x, 0.0, 0.0]) for x in (0.0, 1.0, 2.2)]
    joints = []
    for i, pivot in enumerate(pivots, start=1):
        bodies = ("ground", f"crank {i}", "coupler")
        joints.append(spatial.Revolute(f"G{i}", bodies[:2], pivot, _Z))
        joints.append(spatial.Revolute(f"P{i}", bodies[1:], pivot + crank, _Z))
    cranks = [_body(f"crank {i + 1}", p, p + crank) for i, p in enumerate(pivots)]
    coupler = _body("coupler", *(p + crank for p in pivots))
    return Model(
        "three-crank-parallelogram",
        3,
        bodies=[*cranks, coupler],
        joints=joints,
        remark=_REMARK,
    )


def table() -> Model:
    """A table on four legs against three stops: the stops' reactions are unique."""
    legs = [(0.5, 0.4, 0.0), (-0.5, 0.4, 0.0), (-0.5, -0.4, 0.0), (0.5, -0.4, 0.0)]
    stops = [
        ((0.6, 0.3, 0.7), _X),
        ((0.6, -0.3, 0.7), _X),
        ((0.0, 0.5, 0.7), _Y),
    ]
    pair = ("table", "ground")
    joints = [spatial.PointOnPlane(f"leg{i}", pair, at, _Z) for i, at in enumerate(legs, start=1)]
    joints += [
        spatial.PointOnPlane(f"stop{i}", pair, at, axis)
        for i, (at, axis) in enumerate(stops, start=1)
    ]
    return Model(
        "table",
        3,
        bodies=[_body("table", position=(0.0, 0.0, 0.7))],
        joints=joints,
        remark=_REMARK,
    )


def _rotation(axis: int, degrees: float) -> np.ndarray:
    """Rotation matrix about a coordinate axis."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    i, j = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.eye(3)
    matrix[i, i] = matrix[j, j] = c
    matrix[i, j], matrix[j, i] = -s, s
    return matrix
