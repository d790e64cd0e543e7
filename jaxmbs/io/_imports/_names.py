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

    @staticmethod
    def _legal(name: str, noun: str) -> str:
        kept = "".join("_" if c in _REPLACED or not c.isprintable() else c for c in name).strip()
        return kept or noun

    def new(self, name: str, noun: str) -> str:
        """For a part that the file calls so; `noun`, where nothing of the name is left."""
        kept = self._legal(name, noun)
        free, count = kept, 1
        while free in self._used:
            count += 1
            free = f"{kept}_{count}"
        self._used.add(free)
        return free

    def all(self, names: Sequence[str], noun: str) -> list[str]:
        """New names for parts with these names in the file; valid names are kept."""
        legal = [k for k, name in enumerate(names) if self._legal(name, noun) == name]
        first = {*legal}
        others = [k for k in range(len(names)) if k not in first]
        found = {k: self.new(names[k], noun) for k in (*legal, *others)}
        return [found[k] for k in range(len(names))]


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Any of these patterns; `*`, `?` and `[...]` as in file names."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def selected(names: Sequence[str], keep: Sequence[str], drop: Sequence[str]) -> set[str]:
    """The names that match a pattern of `keep` (all, where there is none) and none of `drop`."""
    return {
        name
        for name in names
        if name == GROUND or ((not keep or matches(name, keep)) and not matches(name, drop))
    }
