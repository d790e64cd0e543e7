from typing import Any

import numpy as np

from .. import _settings, planar, spatial
from .._bodies import AbstractBody
from .._constraints import AbstractJoint
from .._custom_types import Setting
from .._system import Model


_GRAVITY = 9.81
# Moment of inertia of a thin bar of 1 kg and 1 m about its own axis. It takes part in no
# motion; zero is no inertia that a body can have.
_SLENDER = 1e-4


def four_bar_chain(windows: Setting[int] = 4) -> Model:
    """Chain of N four-bar windows in the plane (IFToMM benchmark A02).

    **Arguments:** `windows`: N >= 1.
    """
    return _chain("four-bar-chain", windows, _PlanarParts())


def four_bar_chain_spatial(windows: Setting[int] = 4) -> Model:
    """The same chain with spatial revolutes: 3 N redundant rows.

    **Arguments:** `windows`: N >= 1.
    """
    return _chain("four-bar-chain-spatial", windows, _SpatialParts())


class _PlanarParts:
    dimension = 2

    def bar(
        self, name: str, centre: np.ndarray, along: int, speed: float, turning: float
    ) -> AbstractBody:
        del along
        return planar.Body(
            name,
            mass=1.0,
            inertia=1 / 12,
            position=centre,
            velocity=(speed, 0.0),
            angular_velocity=turning,
        )

    def hinge(self, name: str, bodies: tuple[str, str], at: np.ndarray) -> AbstractJoint:
        return planar.Revolute(name, bodies, at)


class _SpatialParts:
    dimension = 3

    def bar(
        self, name: str, centre: np.ndarray, along: int, speed: float, turning: float
    ) -> AbstractBody:
        moments = np.full(3, 1 / 12)
        moments[along] = _SLENDER
        return spatial.Body(
            name,
            mass=1.0,
            inertia=moments,
            position=(*centre, 0.0),
            velocity=(speed, 0.0, 0.0),
            angular_velocity=(0.0, 0.0, turning),
        )

    def hinge(self, name: str, bodies: tuple[str, str], at: np.ndarray) -> AbstractJoint:
        return spatial.Revolute(name, bodies, (*at, 0.0), (0.0, 0.0, 1.0))


def _chain(name: str, windows: Any, parts: _PlanarParts | _SpatialParts) -> Model:
    windows = _settings.whole_number(windows, "windows", least=1)
    columns = range(windows + 1)
    spans = range(1, windows + 1)
    # The tops start at 1 m/s along +x: vertical bars of 1 m turn clockwise at 1 rad/s.
    bodies = [parts.bar(f"v{i}", np.array([i, 0.5]), 1, 0.5, -1.0) for i in columns]
    bodies += [parts.bar(f"h{i}", np.array([i - 0.5, 1.0]), 0, 1.0, 0.0) for i in spans]
    joints = [parts.hinge(f"G{i}", ("ground", f"v{i}"), np.array([i, 0.0])) for i in columns]
    joints += [
        parts.hinge(f"L{i}", (f"v{i - 1}", f"h{i}"), np.array([i - 1.0, 1.0])) for i in spans
    ]
    joints += [parts.hinge(f"R{i}", (f"h{i}", f"v{i}"), np.array([float(i), 1.0])) for i in spans]
    gravity = np.zeros(parts.dimension)
    gravity[1] = -_GRAVITY
    chosen = "Chosen: all numbers, after the IFToMM benchmark A02"
    if parts.dimension == 3:
        chosen += "; each bar's moment of inertia about its own axis takes part in no motion"
    return Model(
        name,
        parts.dimension,
        bodies=bodies,
        joints=joints,
        gravity=gravity,
        remark=f"{chosen}.",
    )
