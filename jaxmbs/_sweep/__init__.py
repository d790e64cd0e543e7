from ._cases import Cases as Cases
from ._questions import (
    AbstractQuestion as AbstractQuestion,
    Certification as Certification,
    Verdicts as Verdicts,
)
from ._sweep import Sweep as Sweep, sweep as sweep
from ._workspace import Workspace as Workspace, workspace as workspace
