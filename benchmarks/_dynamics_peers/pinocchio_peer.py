"""Pinocchio: a tree of revolutes or balls, loops closed by constraintDynamics, RK4.

At h = 10 ms, and at a smaller step that reaches 1e-6 rad or 1e-7 m.

A closure takes the three rows of a point, so that planar loops are redundant too; the proximal
iteration resolves that. Without Baumgarte's correction the drift grows wherever the bars lie in
one line, and the motion leaves its branch there.
"""

from collections.abc import Callable
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


_TITLE = "Pinocchio"
# In s; each divides the time between samples.
_CHAIN_STEPS = (1e-2, 5e-3)
_PARALLELOGRAM_STEPS = (1e-2, 2.5e-3)
_CORRECTION = 50.0
_PROXIMAL = {"accuracy": 1e-12, "mu": 1e-10, "max_iter": 2}
_SETTINGS = (
    f"proximal mu {_PROXIMAL['mu']:g}, {_PROXIMAL['max_iter']} iterations, "
    f"Baumgarte {_CORRECTION:g}/s"
)


def rows(mechanism: str, windows: int) -> list[PeerRow]:
    """The rows of this peer, one a step size; none where it is not installed."""
    pin = library("pinocchio", _TITLE)
    if pin is None:
        return []
    found = []
    spatial = mechanism == "parallelogram"
    for step in _PARALLELOGRAM_STEPS if spatial else _CHAIN_STEPS:
        words = f"constraintDynamics, RK4, h = {1e3 * step:g} ms, {_SETTINGS}"
        watch = stopwatch()
        if spatial:
            simulate = _Parallelogram(pin, step).simulate
            row = parallelogram_row(simulate, _TITLE, pin.__version__, words, watch())
        else:
            simulate = _Chain(pin, step, windows).simulate
            row = chain_row(simulate, windows, _TITLE, pin.__version__, words, watch())
        found.append(row)
    return found


class _Chain:
    """Vertical bars on the ground, each but the last with a horizontal bar on its top."""

    def __init__(self, pin: Any, step: float, windows: int):
        self._step = step
        model = pin.Model()
        model.gravity = pin.Motion(_bodies.DOWN_Y, np.zeros(3))
        across, slender = _bodies.ACROSS, _bodies.SLENDER
        upright = pin.Inertia(1.0, np.array([0.0, 0.5, 0.0]), np.diag([across, slender, across]))
        span = pin.Inertia(1.0, np.array([0.5, 0.0, 0.0]), np.diag([slender, across, across]))
        right, top = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])

        def bar(parent: int, at: np.ndarray, inertia: Any) -> int:
            joint = model.addJoint(parent, pin.JointModelRZ(), _at(pin, at), f"{model.njoints}")
            model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
            return joint

        # Children right after their parents: Pinocchio counts on it.
        uprights, spans = [], []
        for i in range(windows + 1):
            uprights.append(bar(0, i * right, upright))
            if i < windows:
                spans.append(bar(uprights[i], top, span))
        closures = zip(spans, uprights[1:], strict=True)
        self._dynamics = _dynamics(pin, model, [(h, right, v, top) for h, v in closures])
        self._uprights = [model.joints[joint].idx_v for joint in uprights]
        self._spans = [model.joints[joint].idx_v for joint in spans]
        self._size = model.nv
        self._torques = np.zeros(model.nv)

    def simulate(self, duration: float) -> Motion:
        v = np.zeros(self._size)
        # Joint rates are relative to the parent: the horizontal bars do not turn.
        v[self._uprights] = -1.0
        v[self._spans] = 1.0
        torques = self._torques
        seconds, positions = _march(self._dynamics, v, lambda q: torques, self._step, duration)
        return Motion(seconds, sample_times(duration), -positions[:, self._uprights])


class _Parallelogram:
    """Six links on balls; the platform hangs on the first by a ball, five closures.

    The balls have angles about z, y, x as coordinates, which stay away from the singularity
    here, so that Runge-Kutta keeps its order without a group's exponential.
    """

    def __init__(self, pin: Any, step: float):
        self._pin, self._step = pin, step
        self._model = model = pin.Model()
        model.gravity = pin.Motion(_bodies.DOWN_Z, np.zeros(3))
        links = _bodies.links()
        start, corner = links.pop("AB")
        first = self._ball(0, start)
        self._link(first, corner - start)
        # Children right after their parents: Pinocchio counts on it.
        self._platform = self._ball(first, corner - start)
        self._centre = _bodies.PLATFORM_CENTRE - corner
        moments = np.diag(_bodies.PLATFORM_MOMENTS)
        plate = pin.Inertia(_bodies.PLATFORM_MASS, self._centre, moments)
        model.appendBodyToJoint(self._platform, plate, pin.SE3.Identity())
        closures = []
        for start, end in links.values():
            joint = self._ball(0, start)
            self._link(joint, end - start)
            closures.append((joint, end - start, self._platform, end - corner))
        self._frame = model.addFrame(
            pin.Frame("", self._platform, _at(pin, self._centre), pin.FrameType.OP_FRAME)
        )
        self._dynamics = _dynamics(pin, model, closures)
        self._data = model.createData()

    def _ball(self, parent: int, at: np.ndarray) -> int:
        pin, model = self._pin, self._model
        joint = pin.JointModelSphericalZYX()
        return model.addJoint(parent, joint, _at(pin, at), f"{model.njoints}")

    def _link(self, joint: int, along: np.ndarray) -> None:
        body = self._pin.Inertia(_bodies.LINK_MASS, along / 2, _bodies.link_inertia(along))
        self._model.appendBodyToJoint(joint, body, self._pin.SE3.Identity())

    def _load(self) -> Callable[[np.ndarray], np.ndarray]:
        """Generalized forces of the load, which is constant in the world's axes."""
        pin, model, data, frame = self._pin, self._model, self._data, self._frame
        axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        wrench = np.concatenate([_bodies.FORCE, _bodies.TORQUE])
        return lambda q: pin.computeFrameJacobian(model, data, q, frame, axes).T @ wrench

    def simulate(self, duration: float) -> Motion:
        load = self._load()
        start = np.zeros(self._model.nv)
        seconds, positions = _march(self._dynamics, start, load, self._step, duration)
        centres = []
        for q in positions:
            self._pin.forwardKinematics(self._model, self._data, q)
            centres.append(self._data.oMi[self._platform].act(self._centre))
        return Motion(seconds, sample_times(duration), np.array(centres))


Dynamics = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
Closure = tuple[int, np.ndarray, int, np.ndarray]


def _at(pin: Any, point: np.ndarray) -> Any:
    return pin.SE3(np.eye(3), point)


def _dynamics(pin: Any, model: Any, closures: list[Closure]) -> Dynamics:
    """Accelerations from q, v and generalized forces; the array is the library's own."""
    kind, axes = pin.ContactType.CONTACT_3D, pin.ReferenceFrame.LOCAL
    models, memories = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for first, p, second, s in closures:
        closure = pin.RigidConstraintModel(
            kind, model, first, _at(pin, p), second, _at(pin, s), axes
        )
        correction = closure.m_baumgarte_parameters
        correction.Kp, correction.Kd = _CORRECTION**2, 2 * _CORRECTION
        models.append(closure)
        memories.append(closure.createData())
    data = model.createData()
    pin.initConstraintDynamics(model, data, models, memories)
    proximal = pin.ProximalSettings(*_PROXIMAL.values())
    solve = pin.constraintDynamics
    return lambda q, v, tau: solve(model, data, q, v, tau, models, memories, proximal)


def _march(
    dynamics: Dynamics,
    v: np.ndarray,
    torques: Callable[[np.ndarray], np.ndarray],
    h: float,
    duration: float,
) -> tuple[float, np.ndarray]:
    """Seconds taken, and positions at the sample times, from q = 0."""
    every = round(SAMPLE / h)
    q = np.zeros_like(v)
    positions = np.empty((round(duration / SAMPLE) + 1, len(q)))
    positions[0] = q
    watch = stopwatch()
    for step in range(1, every * (len(positions) - 1) + 1):
        # The classical method for q' = v, with the four slopes of q written out.
        a1 = dynamics(q, v, torques(q)).copy()
        drift = q + (h / 2) * v
        a2 = dynamics(drift, v + (h / 2) * a1, torques(drift)).copy()
        halfway = drift + (h * h / 4) * a1
        a3 = dynamics(halfway, v + (h / 2) * a2, torques(halfway)).copy()
        end = q + h * v + (h * h / 2) * a2
        a4 = dynamics(end, v + h * a3, torques(end))
        q = q + h * v + (h * h / 6) * (a1 + a2 + a3)
        v = v + (h / 6) * (a1 + 2 * (a2 + a3) + a4)
        if step % every == 0:
            positions[step // every] = q
    return watch(), positions
