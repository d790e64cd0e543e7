from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._cases import Cases as Cases, tolerances as tolerances
    from ._questions import (
        AbstractIteration as AbstractIteration,
        AbstractQuestion as AbstractQuestion,
        AbstractSecondLook as AbstractSecondLook,
        Case as Case,
        Certification as Certification,
        Contradiction as Contradiction,
        Fit as Fit,
        Misfit as Misfit,
        Verdicts as Verdicts,
    )
    from ._simulation import simulate_many as simulate_many, Simulation as Simulation
    from ._spread import (
        Component as Component,
        Spread as Spread,
        spread as spread,
        Workspace as Workspace,
        workspace as workspace,
    )
    from ._subjects import vary as vary
    from ._sweep import Sweep as Sweep, sweep as sweep
else:
    _NAMES = {
        "_cases": (
            "Cases",
            "tolerances",
        ),
        "_questions": (
            "AbstractIteration",
            "AbstractQuestion",
            "AbstractSecondLook",
            "Case",
            "Certification",
            "Contradiction",
            "Fit",
            "Misfit",
            "Verdicts",
        ),
        "_simulation": (
            "simulate_many",
            "Simulation",
        ),
        "_spread": (
            "Component",
            "spread",
            "Spread",
            "Workspace",
            "workspace",
        ),
        "_sweep": (
            "sweep",
            "Sweep",
        ),
        "_subjects": ("vary",),
    }
    _load_late(__name__, _NAMES)
