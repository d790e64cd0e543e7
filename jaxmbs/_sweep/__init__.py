from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._cases import Cases as Cases
    from ._misfit import Contradiction as Contradiction, Fit as Fit, Misfit as Misfit
    from ._questions import (
        AbstractIteration as AbstractIteration,
        AbstractQuestion as AbstractQuestion,
        AbstractSecondLook as AbstractSecondLook,
        Case as Case,
        Certification as Certification,
        Verdicts as Verdicts,
    )
    from ._simulation import simulate_many as simulate_many, Simulation as Simulation
    from ._spread import Component as Component, Spread as Spread, spread as spread
    from ._sweep import Sweep as Sweep, sweep as sweep
    from ._tolerances import tolerances as tolerances
    from ._vary import vary as vary
    from ._workspace import Workspace as Workspace, workspace as workspace
else:
    _NAMES = {
        "_cases": ("Cases",),
        "_misfit": ("Contradiction", "Fit", "Misfit"),
        "_questions": (
            "AbstractIteration",
            "AbstractQuestion",
            "AbstractSecondLook",
            "Case",
            "Certification",
            "Verdicts",
        ),
        "_simulation": ("Simulation", "simulate_many"),
        "_spread": ("Component", "Spread", "spread"),
        "_sweep": ("Sweep", "sweep"),
        "_tolerances": ("tolerances",),
        "_vary": ("vary",),
        "_workspace": ("Workspace", "workspace"),
    }
    _load_late(__name__, _NAMES)
