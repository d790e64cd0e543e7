"""Exudyn: redundant coordinates, generalized-alpha at position level (index 3), h = 1 ms.

The chain consists of two-dimensional bodies and joints and takes the sparse solver; the
parallelogram has a redundant row, which only the dense solver with full pivoting accepts.
Modified Newton, Tait-Bryan angles and the module without range checks are the fastest choices
that Exudyn offers for these models.
"""

import math
import sys
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
    stopwatch,
)


_TITLE = "Exudyn"
_STEP = 1e-3
_DAMPING = 0.9
_SETTINGS = f"generalized-alpha, index 3, spectral radius {_DAMPING:g}, h = {1e3 * _STEP:g} ms"


def rows(mechanism: str, windows: int) -> list[PeerRow]:
    """The rows of this peer; none where it is not installed."""
    # Asks for the module without range checks; Exudyn reads it when it is first imported.
    sys.__dict__.setdefault("exudynFast", True)
    exudyn = library("exudyn", _TITLE)
    if exudyn is None:
        return []
    version = str(exudyn.config.Version())
    if mechanism == "parallelogram":
        watch = stopwatch()
        model = _Parallelogram(exudyn)
        words = f"{_SETTINGS}, EigenDense, ignoreSingularJacobian"
        return [parallelogram_row(model.simulate, _TITLE, version, words, watch())]
    watch = stopwatch()
    model = _Chain(exudyn, windows)
    words = f"{_SETTINGS}, EigenSparse"
    return [chain_row(model.simulate, windows, _TITLE, version, words, watch())]


class _Chain:
    """The planar chain: angles from x, counter-clockwise, a body frame along each bar."""

    def __init__(self, exudyn: Any, windows: int):
        self._exudyn = exudyn
        self._items = library("exudyn.itemInterface", _TITLE)
        self._container = exudyn.SystemContainer()
        self._system = self._container.AddSystem()
        ground = self._system.AddObject(self._items.ObjectGround())
        uprights = [self._bar((i, 0.5), math.pi / 2, (0.5, 0.0, -1.0)) for i in range(windows + 1)]
        spans = [self._bar((i + 0.5, 1.0), 0.0, (1.0, 0.0, 0.0)) for i in range(windows)]
        bodies = [body for _, body in uprights]
        for i, body in enumerate(bodies):
            self._hinge(self._point(ground, i), self._point(body, -0.5))
        for i, (_, body) in enumerate(spans):
            self._hinge(self._point(bodies[i], 0.5), self._point(body, -0.5))
            self._hinge(self._point(body, 0.5), self._point(bodies[i + 1], 0.5))
        self._sensors = [self._angle(node) for node, _ in uprights]
        self._system.Assemble()

    def _bar(self, centre: tuple, angle: float, velocity: tuple) -> tuple[Any, Any]:
        system, items = self._system, self._items
        node = system.AddNode(
            items.NodeRigidBody2D(
                referenceCoordinates=[*centre, angle], initialVelocities=[*velocity]
            )
        )
        body = system.AddObject(
            items.ObjectRigidBody2D(mass=1.0, inertia=_bodies.ACROSS, nodeNumber=node)
        )
        marker = system.AddMarker(items.MarkerBodyMass(bodyNumber=body))
        system.AddLoad(items.LoadMassProportional(markerNumber=marker, loadVector=_bodies.DOWN_Y))
        return node, body

    def _point(self, body: Any, x: float) -> Any:
        marker = self._items.MarkerBodyPosition(bodyNumber=body, localPosition=[x, 0.0, 0.0])
        return self._system.AddMarker(marker)

    def _hinge(self, first: Any, second: Any) -> None:
        joint = self._items.ObjectJointRevolute2D(markerNumbers=[first, second])
        self._system.AddObject(joint)

    def _angle(self, node: Any) -> Any:
        return self._system.AddSensor(
            self._items.SensorNode(
                nodeNumber=node,
                outputVariableType=self._exudyn.OutputVariableType.Coordinates,
                storeInternal=True,
                writeToFile=False,
            )
        )

    def simulate(self, duration: float) -> Motion:
        settings = _settings(self._exudyn, duration)
        settings.linearSolver.solverType = self._exudyn.LinearSolverType.EigenSparse
        settings.linearSolver.reuseAnalyzedPattern = True
        seconds = _solve(self._system, settings)
        data = [self._system.GetSensorStoredData(sensor) for sensor in self._sensors]
        # Coordinates are counted from the reference; the exact angle grows clockwise.
        return Motion(seconds, data[0][:, 0], -np.stack([x[:, 3] for x in data], axis=1))


class _Parallelogram:
    """The spatial parallelogram with twelve spherical joints: 36 rows of rank 35."""

    def __init__(self, exudyn: Any):
        self._exudyn = exudyn
        items = library("exudyn.itemInterface", _TITLE)
        utilities = library("exudyn.utilities", _TITLE)
        self._container = exudyn.SystemContainer()
        self._system = system = self._container.AddSystem()
        ground = system.CreateGround()

        def body(centre, rotation, mass, moments):
            inertia = utilities.RigidBodyInertia(mass, np.diag(moments))
            return system.CreateRigidBody(
                referencePosition=centre,
                referenceRotationMatrix=rotation,
                inertia=inertia,
                nodeType=exudyn.NodeType.RotationRxyz,
                gravity=_bodies.DOWN_Z,
                returnDict=True,
            )

        platform = body(
            _bodies.PLATFORM_CENTRE,
            np.eye(3),
            _bodies.PLATFORM_MASS,
            _bodies.PLATFORM_MOMENTS,
        )
        number = platform["bodyNumber"]
        for start, end in _bodies.links().values():
            rotation = _bodies.along(end - start)
            link = body((start + end) / 2, rotation, _bodies.LINK_MASS, _bodies.LINK_MOMENTS)
            for pair, point in (
                ([ground, link["bodyNumber"]], start),
                ([link["bodyNumber"], number], end),
            ):
                system.CreateSphericalJoint(bodyNumbers=pair, position=point, show=False)
        system.CreateForce(bodyNumber=number, loadVector=_bodies.FORCE)
        system.CreateTorque(bodyNumber=number, loadVector=_bodies.TORQUE)
        self._sensor = system.AddSensor(
            items.SensorNode(
                nodeNumber=platform["nodeNumber"],
                outputVariableType=exudyn.OutputVariableType.Position,
                storeInternal=True,
                writeToFile=False,
            )
        )
        system.Assemble()

    def simulate(self, duration: float) -> Motion:
        settings = _settings(self._exudyn, duration)
        settings.linearSolver.solverType = self._exudyn.LinearSolverType.EigenDense
        settings.linearSolver.ignoreSingularJacobian = True
        seconds = _solve(self._system, settings)
        data = self._system.GetSensorStoredData(self._sensor)
        return Motion(seconds, data[:, 0], data[:, 1:])


def _settings(exudyn: Any, duration: float) -> Any:
    """Settings that both mechanisms share."""
    settings = exudyn.SimulationSettings()
    integration = settings.timeIntegration
    integration.endTime = duration
    integration.numberOfSteps = round(duration / _STEP)
    integration.verboseMode = 0
    integration.generalizedAlpha.spectralRadius = _DAMPING
    integration.newton.useModifiedNewton = True
    settings.parallel.numberOfThreads = 1
    settings.solution.file.write = False
    settings.solution.sensors.writePeriod = SAMPLE
    return settings


def _solve(system: Any, settings: Any) -> float:
    """Seconds that a run from the initial state takes."""
    watch = stopwatch()
    system.SolveDynamic(settings)
    return watch()
