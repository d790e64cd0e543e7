"""Findings as SARIF 2.1.0, which code review pages read."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from .._version import __version__
from ._findings import Finding, Findings, Part
from ._rules import RULES


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
