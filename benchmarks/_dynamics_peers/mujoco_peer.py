"""MuJoCo: a tree of hinges or balls, loops closed by soft equality constraints, h = 1 ms.

Tuned for stiffness: the shortest time constant that MuJoCo accepts (two steps) and nearly full
impedance. Each closure takes three rows, so that planar loops are redundant too; the softness
resolves that.
"""

from typing import Any

import numpy as np

from . import _bodies
from ._record import (
    chain_row,
    library,
    Motion,
    parallelogram_row,
    PeerRow,
    SAMPLE,
    sample_times,
    stopwatch,
)


_TITLE = "MuJoCo"
_STEP = 1e-3
_STIFF = f'solref="{2 * _STEP:g} 1" solimp="0.9999 0.9999 0.001 0.5 2"'
_SETTINGS = f"connect, solref 2h, solimp 0.9999, h = {1e3 * _STEP:g} ms"
_INTEGRATORS = ("Euler", "RK4")


def rows(mechanism: str, windows: int) -> list[PeerRow]:
    """The rows of this peer, one an integrator; none where it is not installed."""
    mujoco = library("mujoco", _TITLE)
    if mujoco is None:
        return []
    found = []
    for integrator in _INTEGRATORS:
        words = f"{integrator}, {_SETTINGS}"
        watch = stopwatch()
        if mechanism == "parallelogram":
            simulate = _Parallelogram(mujoco, integrator).simulate
            row = parallelogram_row(simulate, _TITLE, mujoco.__version__, words, watch())
        else:
            simulate = _Chain(mujoco, integrator, windows).simulate
            row = chain_row(simulate, windows, _TITLE, mujoco.__version__, words, watch())
        found.append(row)
    return found


class _Chain:
    """Vertical bars hinged to the ground, each but the last with a horizontal bar on its top."""

    def __init__(self, mujoco: Any, integrator: str, windows: int):
        self._mujoco = mujoco
        model = mujoco.MjModel.from_xml_string(chain_document(integrator, windows))
        self._model, self._data = model, mujoco.MjData(model)
        first = {model.body(i).name: model.body(i).dofadr[0] for i in range(1, model.nbody)}
        self._uprights = [first[f"v{i}"] for i in range(windows + 1)]
        self._spans = [first[f"h{i}"] for i in range(1, windows + 1)]

    def simulate(self, duration: float) -> Motion:
        self._mujoco.mj_resetData(self._model, self._data)
        # Joint rates are relative to the parent: the horizontal bars do not turn.
        self._data.qvel[self._uprights] = -1.0
        self._data.qvel[self._spans] = 1.0
        seconds, positions = _march(self._mujoco, self._model, self._data, duration)
        return Motion(seconds, sample_times(duration), -positions[:, self._uprights])


class _Parallelogram:
    """Six links on ball joints; the platform hangs on the first by a ball, five closures."""

    def __init__(self, mujoco: Any, integrator: str):
        self._mujoco = mujoco
        self._model = mujoco.MjModel.from_xml_string(parallelogram_document(integrator))
        self._data = mujoco.MjData(self._model)
        self._platform = self._model.body("platform").id

    def simulate(self, duration: float) -> Motion:
        mujoco, model, data = self._mujoco, self._model, self._data
        mujoco.mj_resetData(model, data)
        data.xfrc_applied[self._platform] = [*_bodies.FORCE, *_bodies.TORQUE]
        seconds, positions = _march(mujoco, model, data, duration)
        centres = []
        for q in positions:
            data.qpos[:] = q
            mujoco.mj_kinematics(model, data)
            centres.append(data.xipos[self._platform].copy())
        return Motion(seconds, sample_times(duration), np.array(centres))


def _march(mujoco: Any, model: Any, data: Any, duration: float) -> tuple[float, np.ndarray]:
    """Seconds taken, and positions at the sample times; the steps run inside the library."""
    steps = round(SAMPLE / _STEP)
    positions = np.empty((round(duration / SAMPLE) + 1, model.nq))
    positions[0] = data.qpos
    watch = stopwatch()
    for row in positions[1:]:
        mujoco.mj_step(model, data, steps)
        row[:] = data.qpos
    return watch(), positions


def chain_document(integrator: str, windows: int) -> str:
    """The chain of N windows, as MJCF."""
    across, slender = _bodies.ACROSS, _bodies.SLENDER
    hinge = '<joint type="hinge" axis="0 0 1"/>'
    upright = f'<inertial pos="0 0.5 0" mass="1" diaginertia="{across} {slender} {across}"/>'
    span = f'<inertial pos="0.5 0 0" mass="1" diaginertia="{slender} {across} {across}"/>'
    bodies, closures = [], []
    for i in range(windows + 1):
        on_top = ""
        if i < windows:
            on_top = f'<body name="h{i + 1}" pos="0 1 0">{hinge}{span}</body>'
            closures.append(_closure(f"h{i + 1}", f"v{i + 1}", np.array([1.0, 0.0, 0.0])))
        bodies.append(f'<body name="v{i}" pos="{i} 0 0">{hinge}{upright}{on_top}</body>')
    return _document(integrator, _bodies.DOWN_Y, bodies, closures)


def parallelogram_document(integrator: str) -> str:
    """The parallelogram as MJCF, all frames parallel to the world's at the start."""
    ball = '<joint type="ball"/>'
    links = _bodies.links()
    corner = links["AB"][1]
    # MuJoCo refuses, for a rounding error, a plate whose moments just add up.
    moments = _numbers(_bodies.PLATFORM_MOMENTS * np.array([1.0, 1.0, 1.0 - 1e-15]))
    platform = (
        f'<body name="platform" pos="{_numbers(corner - links["AB"][0])}">{ball}'
        f'<inertial pos="{_numbers(_bodies.PLATFORM_CENTRE - corner)}" '
        f'mass="{_bodies.PLATFORM_MASS}" diaginertia="{moments}"/></body>'
    )
    bodies, closures = [], []
    for name, (start, end) in links.items():
        inertia = _bodies.link_inertia(end - start)
        entries = [inertia[k] for k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
        bodies.append(
            f'<body name="{name}" pos="{_numbers(start)}">{ball}'
            f'<inertial pos="{_numbers((end - start) / 2)}" mass="{_bodies.LINK_MASS}" '
            f'fullinertia="{_numbers(entries)}"/>{platform if name == "AB" else ""}</body>'
        )
        if name != "AB":
            closures.append(_closure(name, "platform", end - start))
    return _document(integrator, _bodies.DOWN_Z, bodies, closures)


def _closure(first: str, second: str, anchor: np.ndarray) -> str:
    """Points coincide; the anchor is given in the first body's frame."""
    return f'<connect body1="{first}" body2="{second}" anchor="{_numbers(anchor)}" {_STIFF}/>'


def _document(integrator: str, gravity: np.ndarray, bodies: list, closures: list) -> str:
    return (
        f'<mujoco><option gravity="{_numbers(gravity)}" timestep="{_STEP}" '
        f'integrator="{integrator}"><flag contact="disable"/></option>'
        f"<worldbody>{''.join(bodies)}</worldbody>"
        f"<equality>{''.join(closures)}</equality></mujoco>"
    )


def _numbers(values: Any) -> str:
    return " ".join(repr(float(x)) for x in values)
