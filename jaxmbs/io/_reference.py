"""The reference of model files, from what the fields of parts declare."""

from collections.abc import Mapping, Sequence
from typing import Any

from .._constraints import Driver
from .._fields import Key, keys_of
from . import _examples, _reference_pages as pages
from ._expansion import Assembly, Cylinder, SHAPES, USES
from ._registry import (
    BODIES,
    COMPLIANCES,
    ELEMENTS,
    FOLLOWS,
    FORCES,
    JOINTS,
    MOTIONS,
    TYPED_BODIES,
)
from ._source import tables_text


def reference() -> str:
    """All that a model file may hold, as Markdown: for each key its admissible values, unit,
    default and meaning, with an example of every table; names of rows, refusals, and the output of
    commands. The page `REFERENCE.md` is this text."""
    bodies = {f"dimension {dimension}": cls for dimension, cls in BODIES.items()}
    bodies |= dict(TYPED_BODIES[3])
    uses = {f"dimension {dimension}": cls for dimension, cls in USES.items()}
    return "\n".join(
        [
            pages.HEAD,
            pages.NUMBERS,
            pages.PRECISION,
            _section("`[[body]]`", bodies, _of_dimensions("body", _examples.BODIES)),
            _section("`shape` of a body", SHAPES, _shapes(), pages.SHAPES),
            *(_joints(dimension) for dimension in JOINTS),
            _section("`[[driver]]`", {"all": Driver}, tables_text("driver", [_examples.DRIVER])),
            _section("`motion` of a driver", MOTIONS, _motions()),
            _section(
                "`[[force]]`",
                FORCES,
                _typed("force", "F", {**_examples.FORCES, **_examples.SPATIAL_FORCES}),
            ),
            _section("`[[compliance]]`", COMPLIANCES, _typed("compliance", "C", _compliances())),
            _section(
                "`[[element]]`, dimension 3",
                ELEMENTS[3],
                _typed("element", "E", _examples.ELEMENTS),
                pages.ELEMENTS,
            ),
            _assemblies(uses),
            _section(
                "`[[cylinder]]`",
                {"all": Cylinder},
                _of_dimensions("cylinder", {d: (x,) for d, x in _examples.CYLINDERS.items()}),
                pages.CYLINDERS,
            ),
            pages.ROWS,
            pages.REFUSALS,
            pages.COMMANDS,
        ]
    )


def _section(title: str, parts: Mapping[str, type[Any]], examples: str, text: str = "") -> str:
    rows = [line for word, cls in parts.items() for line in _rows(word, cls)]
    head = ["| type | key | admits | unit | default | meaning |", "|---|---|---|---|---|---|"]
    shown = ["```toml", examples.strip(), "```"]
    return "\n".join([f"## {title}", "", *([text] if text else []), *head, *rows, "", *shown, ""])


def _rows(word: str, cls: type[Any]) -> list[str]:
    cells = [
        (key, own.said.admits, own.said.unit, _default(own), own.said.meaning)
        for key, own in keys_of(cls).items()
        if key != "name"
    ]
    if cls in FOLLOWS.values():
        first = next(iter(FOLLOWS))
        cells.append(("follows", " or ".join(FOLLOWS), "", first, "whose axes the numbers are in"))
    return [f"| {word} | {' | '.join(row)} |".format(driven="x") for row in cells]


def _default(key: Key) -> str:
    if key.needed:
        return f"this or `{key.instead}`" if key.instead else "required"
    if key.default is None:
        return key.said.left_out or f"`{key.instead}`"
    return str(list(key.default) if isinstance(key.default, tuple) else key.default)


# ---------------------------------------------------------------------------------------------
# Examples
# ---------------------------------------------------------------------------------------------


def _joints(dimension: int) -> str:
    examples = _typed("joint", "J", _examples.JOINTS[dimension])
    return _section(f"`[[joint]]`, dimension {dimension}", JOINTS[dimension], examples)


def _typed(kind: str, letter: str, examples: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Tables of every type in turn."""
    entries = [(word, entry) for word, several in examples.items() for entry in several]
    return tables_text(
        kind,
        [
            {"name": f"{letter}{k}", "type": word, **entry}
            for k, (word, entry) in enumerate(entries, start=1)
        ],
    )


def _compliances() -> dict[str, tuple[dict[str, Any], ...]]:
    return {word: (entry,) for word, entry in _examples.COMPLIANCES.items()}


def _motions() -> str:
    lines = [
        tables_text("driver", [{"motion": {"type": word, **own}}]).splitlines()[-1]
        for word, own in _examples.MOTIONS.items()
    ]
    return "\n".join(f"{'' if k == 0 else '# '}{line}" for k, line in enumerate(lines))


def _shapes() -> str:
    lines = [
        tables_text("body", [{"shape": {"type": word, **own}}]).splitlines()[-1]
        for word, own in _examples.SHAPES.items()
    ]
    return "\n".join(f"{'' if k == 0 else '# '}{line}" for k, line in enumerate(lines))


def _of_dimensions(kind: str, examples: Mapping[int, Sequence[Mapping[str, Any]]]) -> str:
    parts = [
        f"# dimension = {dimension}\n{tables_text(kind, list(entries)).strip()}"
        for dimension, entries in examples.items()
    ]
    return "\n\n".join(parts)


def _assemblies(uses: Mapping[str, type[Any]]) -> str:
    examples = "\n\n".join(
        f"# dimension = {dimension}\n"
        + tables_text("assembly", [_examples.ASSEMBLIES[dimension]]).strip()
        + "\n\n"
        + tables_text("use", list(_examples.USES[dimension])).strip()
        for dimension in USES
    )
    return _section(
        "`[[assembly]]` and `[[use]]`", {"assembly": Assembly, **uses}, examples, pages.ASSEMBLIES
    )
