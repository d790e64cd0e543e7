"""Options of runs: stabilisation, methods, events; accelerations with friction; what motors,
stops and contacts do.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._dynamics import (
        Baumgarte as Baumgarte,
        contact_forces as contact_forces,
        feed_forward as feed_forward,
        GeneralizedAlpha as GeneralizedAlpha,
        motor_duty as motor_duty,
        Projection as Projection,
        RigidLimits as RigidLimits,
        SimulationInterrupted as SimulationInterrupted,
        solve_with_friction as solve_with_friction,
        stop_contacts as stop_contacts,
        StopAtLimit as StopAtLimit,
        StopAtSingular as StopAtSingular,
        StopWhen as StopWhen,
    )
else:
    _NAMES = {
        "_dynamics": (
            "Baumgarte",
            "contact_forces",
            "feed_forward",
            "GeneralizedAlpha",
            "motor_duty",
            "Projection",
            "RigidLimits",
            "SimulationInterrupted",
            "solve_with_friction",
            "stop_contacts",
            "StopAtLimit",
            "StopAtSingular",
            "StopWhen",
        ),
    }
    _load_late(__name__, _NAMES)
