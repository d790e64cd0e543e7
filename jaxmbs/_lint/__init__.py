from ._findings import (
    Finding as Finding,
    Findings as Findings,
    Part as Part,
    Severity as Severity,
)
from ._lint import (
    check_codes as check_codes,
    checked as checked,
    lint as lint,
    sarif as sarif,
    Source as Source,
)
from ._possible_bodies import with_possible_bodies as with_possible_bodies
from ._rules import RULES as RULES
from .base import AbstractRule as AbstractRule
