"""`jaxmbs lint`: what is wrong with model files, as text, JSON or SARIF."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from .._errors import ModelError
from .._lint import (
    check_codes,
    checked,
    Finding,
    Findings,
    Part,
    RULES,
    sarif,
    Severity,
    Source,
    with_possible_bodies,
)
from .._printing import Description
from .._system import Model
from ._given_state import check_time
from ._load import load, tell
from ._output import print_answer
from ._requests import Format, Lint as Request


# --------------------------------------------------------------------------------------------------
# On which line of a file a part is declared.
# --------------------------------------------------------------------------------------------------


_HEADER = re.compile(r"\s*\[\[\s*(\w+)\s*\]\]\s*(#.*)?$")
_NAME = re.compile(r"""\s*["']?name["']?\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""")
_QUOTED = re.compile(r"""["']([^"'\n]+)["']""")


def lines_of(path: Path) -> dict[Part, int]:
    """The line of each table that has a name; empty for what cannot be read as text."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return {}
    lines = text.splitlines()
    return _of_tables(lines) if path.suffix == ".toml" else _of_names(lines)


def _of_tables(lines: list[str]) -> dict[Part, int]:
    """The line of the name under each [[header]]."""
    found: dict[Part, int] = {}
    kind = ""
    for number, line in enumerate(lines, start=1):
        header = _HEADER.match(line)
        if header:
            kind = header[1]
        elif line.lstrip().startswith("["):
            kind = ""
        name = _NAME.match(line)
        if kind and name:
            found.setdefault(Part(kind, name[1] if name[1] is not None else name[2]), number)
    return found


def _of_names(lines: list[str]) -> dict[Part, int]:
    """In other formats, the first line on which a name is quoted, for any kind."""
    first: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        for name in _QUOTED.findall(line):
            first.setdefault(name, number)
    kinds = ("body", "joint", "driver", "force")
    return {Part(kind, name): number for name, number in first.items() for kind in kinds}


class _Answer(NamedTuple):
    """Each file as it was named, the lines of its parts, and the findings."""

    file: str
    source: Source
    findings: Findings


def _answers(request: Request) -> list[_Answer]:
    """Read all files first, so that nothing is printed of some where others cannot be read.

    **Raises:** `ModelError` for bad input.
    """
    try:
        ignore = check_codes(request.ignore, "--ignore")
    except ValueError as error:
        raise ModelError(str(error)) from None
    models = []
    for file in request.files:
        model, impossible = _read(file)
        check_time(model, request.time)
        models.append((file, model, impossible))
    found = []
    for file, model, impossible in models:
        try:
            findings = checked(model, request.time, ignore, impossible)
        except ValueError as error:
            raise ModelError(f"{file}: {error}") from None
        found.append(_Answer(file, _source(file), findings))
    return found


def _read(file: str) -> tuple[Model, dict[str, str]]:
    """The model, and what is wrong with bodies that cannot be, in whose place it holds others: the
    reader alone would stop at the first."""
    from ..io import MODEL_FORMATS, model_from_tables
    from ..io._imports import import_possible
    from ..io._toml import read_toml

    if Path(file).suffix.lower() in MODEL_FORMATS:
        imported, wrong = import_possible(Path(file))
        tell(imported)
        return imported.model, dict(wrong)
    try:
        return load(file), {}
    except ModelError:
        if Path(file).suffix != ".toml":
            raise
        content, wrong = with_possible_bodies(_evaluated(read_toml(file)))
        if not wrong:
            raise
        try:
            return model_from_tables(content, default_name=Path(file).stem), wrong
        except ModelError as other:
            bodies = "; ".join(f"body {name!r}: {why}" for name, why in wrong.items())
            raise ModelError(f"{str(other).rstrip('.')}. Besides, {bodies}.") from None


def _evaluated(content: dict[str, Any]) -> dict[str, Any]:
    """The table with numbers in place of expressions; unchanged where they cannot be found."""
    from ..io._expansion import expand

    dimension = content.get("dimension", 3)
    if not {"parameters", "use", "cylinder", "assembly"} & content.keys() or dimension not in (
        2,
        3,
    ):
        return content
    try:
        tables = expand(content, dimension).tables
    except ModelError:
        return content
    known = {key: content[key] for key in ("schema", "name", "dimension") if key in content}
    return known | {key: own for key, own in tables.items() if not isinstance(own, list) or own}


def _source(file: str) -> Source:
    path = Path(file)
    return Source(file, lines_of(path)) if path.is_file() else Source(None, {})


def answer(request: Request) -> None:
    """Print findings, or all rules; exit status 1 with a finding of `fail_on` or worse.

    **Raises:** `ModelError` for bad input.
    """
    form = Format.json if request.json else request.format
    if request.rules:
        print_answer(_RULES, form != Format.text)
        return
    found = _answers(request)
    print_answer(_described(found, form), form != Format.text)
    least = Severity[request.fail_on.name.upper()]
    if any(x.severity >= least for own in found for x in own.findings.found):
        raise SystemExit(1)


_RULES = Description(
    [f"{x.code} {x.name} ({x.severity.word})\n  {x.text}" for x in RULES],
    data=lambda: {
        "rules": [
            {"code": x.code, "name": x.name, "severity": x.severity.word, "text": x.text}
            for x in RULES
        ]
    },
)


def _described(found: Sequence[_Answer], form: Format) -> Description:
    """One line for each finding, as compilers do."""
    lines = [_line(own, x) for own in found for x in own.findings.found]
    count = f"{len(lines)} finding{'s' * (len(lines) > 1)}" if lines else "nothing found"
    files = f"{len(found)} file{'s' * (len(found) > 1)}"
    data = partial(_sarif if form == Format.sarif else _data, found)
    return Description([*lines, f"{count} in {files}"], data=data)


def _line(own: _Answer, x: Finding) -> str:
    line = own.source.line(x)
    place = own.file if line is None else f"{own.file}:{line}"
    return f"{place}: {x.severity.word} {x.code} [{x.rule}] {x.message}"


def _data(found: Sequence[_Answer]) -> dict[str, Any]:
    return {
        "files": [
            {
                "file": own.file,
                "model": own.findings.model,
                "findings": [_entry(own.source, x) for x in own.findings.found],
            }
            for own in found
        ]
    }


def _entry(source: Source, finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "rule": finding.rule,
        "severity": finding.severity.word,
        "message": finding.message,
        "line": source.line(finding),
        "parts": [{"kind": part.kind, "name": part.name} for part in finding.parts],
        "numbers": dict(finding.numbers),
    }


def _sarif(found: Sequence[_Answer]) -> dict[str, Any]:
    return sarif([(own.source, own.findings) for own in found])
