import numpy as np


class Indices:
    """Integer arrays that are part of a compiled function's structure."""

    def __init__(self, **arrays: np.ndarray):
        self._arrays = {key: np.asarray(value) for key, value in arrays.items()}
        self._key = tuple((k, a.shape, a.tobytes()) for k, a in self._arrays.items())
        self._hash = hash(self._key)

    def __getitem__(self, key: str) -> np.ndarray:
        return self._arrays[key]

    def __getstate__(self) -> dict[str, np.ndarray]:
        return self._arrays

    def __setstate__(self, state: dict[str, np.ndarray]) -> None:
        Indices.__init__(self, **state)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Indices) and self._key == other._key
