"""Checks of a model that need no simulation, and their findings as SARIF 2.1.0."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from .. import _settings
from .._checks import listed
from .._custom_types import Setting
from .._system import Model
from .._version import __version__
from ._findings import Finding, Findings, Part
from ._rules import RULES
from ._subject import Subject


# --------------------------------------------------------------------------------------------------
# Checks of a model that need no simulation.
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Findings as SARIF 2.1.0, which code review pages read.
# --------------------------------------------------------------------------------------------------


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class Source(NamedTuple):
    """Source of a model: the path of its file, relative where it can be (None: no file), and
    the line on which each part is declared, where that is known."""

    path: str | None
    lines: dict[Part, int]

    def line(self, finding: Finding) -> int | None:
        """Line of the finding's first part that has one."""
        return next((self.lines[part] for part in finding.parts if part in self.lines), None)


def sarif(all_findings: Sequence[tuple[Source, Findings]]) -> dict[str, Any]:
    """One run over several models (OASIS Standard, Static Analysis Results Interchange Format
    2.1.0, sections 3.13 to 3.27)."""
    index = {rule.code: k for k, rule in enumerate(RULES)}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "jaxmbs",
                        "version": __version__,
                        "rules": [_rule(rule) for rule in RULES],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    _result(source, finding, index[finding.code])
                    for source, findings in all_findings
                    for finding in findings.found
                ],
            }
        ],
    }


def _rule(rule: Any) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.name.replace("-", " ")},
        "fullDescription": {"text": rule.text},
        "help": {"text": rule.text},
        "defaultConfiguration": {"level": rule.severity.word},
    }


def _result(source: Source, finding: Finding, index: int) -> dict[str, Any]:
    # A message is a sentence there.
    message = finding.message[0].upper() + finding.message[1:]
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": finding.severity.word,
        "message": {"text": f"{message}."},
    }
    location: dict[str, Any] = {}
    if source.path is not None:
        uri = quote(source.path.replace("\\", "/"), safe="/:")
        physical: dict[str, Any] = {"artifactLocation": {"uri": uri}}
        # Where no line is known the file begins.
        physical["region"] = {"startLine": source.line(finding) or 1}
        location["physicalLocation"] = physical
    if finding.parts:
        location["logicalLocations"] = [
            {"name": part.name, "kind": part.kind} for part in finding.parts
        ]
    if location:
        result["locations"] = [location]
    if finding.numbers:
        result["properties"] = dict(finding.numbers)
    return result
