"""The reference of model files, from what the fields of parts declare."""

from collections.abc import Mapping
from typing import Any

from .._constraints import Driver
from .._fields import Key, keys_of
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


_HEAD = """# Keys of model files

Made by `jaxmbs.io.reference()` from what the parts declare. All but motions have a `name` as well.
Numbers are varied in sweeps and designs by the same words, `points` as `at` and `rotation` as
`orientation`. `x` in a unit is that of the driven coordinate, m or rad. Where the entries of a key
have several units, its meaning names them. At the head of a file stand `schema` (1), `dimension`
(2 or 3), `name`, and `gravity` (m/s2, world axes; default none).
"""


def reference() -> str:
    """The keys of all parts in a model file, as Markdown: what each admits, its unit, what stands
    where it is not given, and what it means. The page `REFERENCE.md` is this text."""
    sections = {
        "`[[body]]`": {f"dimension {dimension}": cls for dimension, cls in BODIES.items()}
        | dict(TYPED_BODIES[3]),
        "`[[joint]]`, dimension 2": JOINTS[2],
        "`[[joint]]`, dimension 3": JOINTS[3],
        "`[[driver]]`": {"all": Driver},
        "`motion` of a driver": MOTIONS,
        "`[[force]]`": FORCES,
        "`[[compliance]]`": COMPLIANCES,
        "`[[element]]`, dimension 3": ELEMENTS[3],
    }
    return "\n".join([_HEAD, *(_section(title, parts) for title, parts in sections.items())])


def _section(title: str, parts: Mapping[str, type[Any]]) -> str:
    rows = [line for word, cls in parts.items() for line in _rows(word, cls)]
    head = ["", "| type | key | admits | unit | default | meaning |", "|---|---|---|---|---|---|"]
    return "\n".join([f"## {title}", *head, *rows, ""])


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
