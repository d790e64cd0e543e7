from ._cases import Cases as Cases
from ._misfit import Contradiction as Contradiction, Fit as Fit, Misfit as Misfit
from ._questions import (
    AbstractQuestion as AbstractQuestion,
    AbstractSecondLook as AbstractSecondLook,
    Case as Case,
    Certification as Certification,
    Verdicts as Verdicts,
)
from ._spread import Component as Component, Spread as Spread, spread as spread
from ._sweep import Sweep as Sweep, sweep as sweep
from ._tolerances import tolerances as tolerances
from ._vary import vary as vary
from ._workspace import Workspace as Workspace, workspace as workspace
