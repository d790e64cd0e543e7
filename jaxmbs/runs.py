"""Options of runs: stabilisation, methods, events; and accelerations with friction."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._dynamics import (
        Baumgarte as Baumgarte,
        GeneralizedAlpha as GeneralizedAlpha,
        Projection as Projection,
        SimulationInterrupted as SimulationInterrupted,
        solve_with_friction as solve_with_friction,
        StopAtSingular as StopAtSingular,
        StopWhen as StopWhen,
    )
else:
    _NAMES = {
        "_dynamics": (
            "Baumgarte",
            "GeneralizedAlpha",
            "Projection",
            "SimulationInterrupted",
            "solve_with_friction",
            "StopAtSingular",
            "StopWhen",
        ),
    }
    _load_late(__name__, _NAMES)
