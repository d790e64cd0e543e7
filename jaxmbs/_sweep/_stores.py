"""Stores of results, written chunk by chunk."""

import abc
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ._answers import CASE, Variable


class Layout(NamedTuple):
    """Layout of a store: the number of cases and of those in a chunk, the arrays, attributes, and
    the fingerprint of the question."""

    count: int
    chunk: int
    variables: tuple[Variable, ...]
    attributes: dict[str, Any]
    digest: str

    @property
    def chunks(self) -> int:
        """The number of chunks; the last one may be shorter."""
        return -(-self.count // self.chunk)

    def cases(self, chunk: int) -> slice:
        """The cases of a chunk."""
        return slice(chunk * self.chunk, min((chunk + 1) * self.chunk, self.count))


class AbstractStore(abc.ABC):
    """Arrays along the cases, and which chunks of them are done."""

    @abc.abstractmethod
    def done(self) -> np.ndarray:
        """Mask of the chunks that are done (chunks,)."""

    @abc.abstractmethod
    def write(self, chunk: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep the arrays of one chunk, and then count it as done."""

    @abc.abstractmethod
    def read(self, name: str) -> np.ndarray:
        """One array of all cases."""

    @abc.abstractmethod
    def close(self, attributes: Mapping[str, Any]) -> None:
        """Note what is known at the end."""


class MemoryStore(AbstractStore):
    """Arrays in memory, gone with the process."""

    def __init__(self, layout: Layout):
        self._layout = layout
        self._done = np.zeros(layout.chunks, dtype=bool)
        self._arrays = {
            v.name: np.zeros((layout.count, *v.shape), v.dtype)
            for v in layout.variables
            if v.dimensions[0] == CASE
        }

    def done(self) -> np.ndarray:
        return self._done.copy()

    def write(self, chunk: int, arrays: Mapping[str, np.ndarray]) -> None:
        for name, array in arrays.items():
            self._arrays[name][self._layout.cases(chunk)] = array
        self._done[chunk] = True

    def read(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def close(self, attributes: Mapping[str, Any]) -> None:
        del attributes
