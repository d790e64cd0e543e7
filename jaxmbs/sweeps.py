"""Questions of sweeps, their cases, and distributions of their answers."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._sweep import (
        AbstractIteration as AbstractIteration,
        AbstractQuestion as AbstractQuestion,
        AbstractSecondLook as AbstractSecondLook,
        Case as Case,
        Certification as Certification,
        Fit as Fit,
        Misfit as Misfit,
        Simulation as Simulation,
        spread as spread,
        tolerances as tolerances,
        workspace as workspace,
    )
else:
    _NAMES = {
        "_sweep": (
            "AbstractIteration",
            "AbstractQuestion",
            "AbstractSecondLook",
            "Case",
            "Certification",
            "Fit",
            "Misfit",
            "Simulation",
            "spread",
            "tolerances",
            "workspace",
        ),
    }
    _load_late(__name__, _NAMES)
