import numpy as np

from .. import _settings, planar
from .._constraints import AbstractMotion, Driver, Step
from .._custom_types import Setting
from .._system import Model


_A = 0.05
_POINTS = {
    "A": (-8.0, 0.0),
    "B": (4.0, 0.0),
    "C": (-4.0, 0.0),
    "D": (3.4, -0.8),
    "E": (-3.4, -0.8),
    "F": (0.4, 3.2),
    "G": (-0.4, 3.2),
    "L": (0.0, 4.0),
    "M": (0.0, -4.0),
    "N": (-15.0, 0.0),
}
_REMARK = (
    "Chosen, since the source has lost its tables: the layout of the points, all centres of "
    "mass, masses and inertias, and the rack's motion. They reproduce every published rank and "
    "verdict (Wojtyra & Fraczek 2013)."
)
# Time for which the rack is held at -0.3 a, solved so that the platform ends parallel to x.
_T2 = 0.37121615


def mobile_robot(rack: Setting[AbstractMotion | None] = None) -> Model:
    """Four-wheeled mobile robot with a one-wheeled trolley (Wojtyra & Fraczek 2013).

    **Arguments:** `rack`: the motion of the steering rack (m); default the manoeuvre.
    """
    at = {name: _A * np.array(point) for name, point in _POINTS.items()}

    def body(name, mass, inertia, *points):
        return planar.Body(
            name,
            mass=mass,
            inertia=inertia,
            position=np.mean([at[p] for p in points], axis=0),
            velocity=(1.0, 0.0),
        )

    bodies = (
        body("platform", 10.0, 0.27, "L", "M"),
        body("front knuckle", 0.5, 0.001, "B", "D"),
        body("rear knuckle", 0.5, 0.001, "C", "E"),
        body("front rod", 0.4, 0.0021, "D", "F"),
        body("rear rod", 0.4, 0.0021, "E", "G"),
        body("rack", 0.6, 0.002, "F", "G"),
        planar.Body(
            "trolley", mass=5.0, inertia=0.08, position=(-11 * _A, 0.0), velocity=(1.0, 0.0)
        ),
    )
    names = [b.name for b in bodies]
    pairs = {"A": (0, 6), "B": (0, 1), "C": (0, 2), "D": (1, 3), "E": (2, 4), "F": (3, 5)}
    pairs["G"] = (4, 5)
    wheels = {"W1": (1, "B"), "W2": (2, "C"), "W3": (0, "L"), "W4": (0, "M"), "W5": (6, "N")}
    joints = (
        *(planar.Revolute(k, (names[i], names[j]), at[k]) for k, (i, j) in pairs.items()),
        planar.Translational("H", ("platform", "rack"), (0.0, 3.2 * _A), (0.0, 1.0)),
        *(planar.KnifeEdge(w, names[i], at[point], (1.0, 0.0)) for w, (i, point) in wheels.items()),
    )
    motion = _manoeuvre() if rack is None else rack
    _settings.instance(motion, AbstractMotion, "rack", "a motion such as motions.Linear(rate=0.05)")
    return Model(
        "mobile-robot",
        2,
        bodies=bodies,
        joints=joints,
        drivers=[Driver("steering", "H", "translation", motion)],
        remark=_REMARK,
    )


def _manoeuvre() -> Step:
    """Right turn, straight run, left turn back (after the paper's Fig. 2)."""
    full = 0.3 * _A
    return Step(
        times=[0.5, 1.0, 1.4, 1.9, 2.9, 3.4, 3.4 + _T2, 3.9 + _T2],
        values=[0.0, full, full, 0.0, 0.0, -full, -full, 0.0],
    )
