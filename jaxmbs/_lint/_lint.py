"""Checks of a model that need no simulation."""

from collections.abc import Mapping, Sequence
from typing import Any

from .. import _settings
from .._checks import listed
from .._custom_types import Setting
from .._system import Model
from ._findings import Findings
from ._rules import RULES
from ._subject import Subject


def lint(
    model: Setting[Model],
    *,
    t: Setting[float] = 0.0,
    ignore: Setting[Sequence[str]] = (),
) -> Findings:
    """Defects of a model, and hazards for its simulation, in whichever program.

    Each rule (`jaxmbs lint --rules` lists them) checks the model, or its constraints in the
    reference configuration; where that is open, in the closed one nearest to it.

    **Arguments:** `model`; `t`: s, the time in driver motions; `ignore`: codes of rules that are
    left out, such as `"JM601"`.

    **Returns:** `Findings`, the worst first, to be printed.

    **Raises:** `ValueError` for a code that there is not, or parts that do not belong together.
    """
    _settings.instance(model, Model, "model", "a Model, such as of jaxmbs.io.read_model")
    return checked(model, _settings.known_number(t, "t"), check_codes(ignore, "ignore"), {})


def check_codes(codes: Any, what: str) -> tuple[str, ...]:
    """
    **Raises:** `TypeError` for values that are not strings, `ValueError` for an unknown code.
    """
    own = _settings.names(codes, what, '["JM601"]')
    known = [rule.code for rule in RULES]
    for code in own:
        if code not in known:
            raise ValueError(
                f"{what} names the rule {code!r}, which there is not; there are {listed(known)}."
            )
    return own


def checked(
    model: Model, t: float, ignore: Sequence[str], impossible: Mapping[str, str]
) -> Findings:
    """`lint`, of a model in which bodies that cannot be were replaced (`with_possible_bodies`)."""
    subject = Subject(model, t, impossible)
    found = [
        finding for rule in RULES if rule.code not in ignore for finding in rule.findings(subject)
    ]
    found.sort(key=lambda x: (-x.severity, x.code))
    return Findings(model.name, tuple(found))
