"""On which line of a file a part is declared."""

import re
from pathlib import Path

from .._lint import Part


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
