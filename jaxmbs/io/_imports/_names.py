"""Names of files as names of models, and patterns of names."""

import fnmatch
from collections.abc import Iterable, Sequence

from ._description import GROUND


_REPLACED = ",.'\"`"


class Names:
    """Gives names that a model admits, each once: commas, full stops and quotes become underscores,
    and what is used already gets a number."""

    def __init__(self, taken: Iterable[str] = ()):
        self._used = set(taken)

    def new(self, name: str, noun: str) -> str:
        """For a part that the file calls so; `noun`, where nothing of the name is left."""
        kept = "".join("_" if c in _REPLACED or not c.isprintable() else c for c in name).strip()
        kept = kept or noun
        free, count = kept, 1
        while free in self._used:
            count += 1
            free = f"{kept}_{count}"
        self._used.add(free)
        return free


def selected(names: Sequence[str], keep: Sequence[str], drop: Sequence[str]) -> set[str]:
    """The names that match a pattern of `keep` (all, where there is none) and none of `drop`; `*`,
    `?` and `[...]` as in file names."""

    def matches(name: str, patterns: Sequence[str]) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)

    return {
        name
        for name in names
        if name == GROUND or ((not keep or matches(name, keep)) and not matches(name, drop))
    }
