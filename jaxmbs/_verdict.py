"""The answer to "is this unique?": yes, no, or not decided.

A rank is meaningless at an invalid state. A Boolean array has no room for that: whatever stood
there would be read as one of the two. So verdicts are of this type, which becomes a Boolean only
where everything in it has been decided.
"""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Int

from ._checks import by_numpy, namespace, picked


NOT_DECIDED, NOT_UNIQUE, UNIQUE = -1, 0, 1

# What the numbers mean, in the words of a store's attributes (CF conventions, section 3.5).
MEANINGS = {
    "comment": "compare with 1 for unique and with 0 for not unique: -1 is neither",
    "flag_values": [NOT_DECIDED, NOT_UNIQUE, UNIQUE],
    "flag_meanings": "not_decided not_unique unique",
}

_WORDS = {NOT_DECIDED: "not decided", NOT_UNIQUE: "not unique", UNIQUE: "unique"}
_BOOLEANS = {NOT_DECIDED: None, NOT_UNIQUE: False, UNIQUE: True}


class Verdict(eqx.Module):
    """One verdict, or an array of them: unique, not unique, or not decided.

    - `unique`, `not_unique`, `decided`: Boolean arrays, under `jit` and `vmap` as well.
    - `bool(verdict)`, `np.asarray(verdict)`: True where unique, False where not. They raise a
      `ValueError` where one is not decided, and a `TypeError` while the numbers are being traced.
    - `tolist()`: True, False and None. `&`, `|`, `all`, `any`: not decided unless what has been
      decided settles it (Kleene's logic).

    In a store: 1, 0 and -1.
    """

    _value: Int[Array, "..."] | Int[np.ndarray, "..."]

    @classmethod
    def where(cls, decided: Any, unique: Any) -> "Verdict":
        """`unique` where `decided`, and nothing elsewhere."""
        xp = namespace(unique)
        return cls(xp.where(decided, unique, NOT_DECIDED).astype(np.int8))

    @property
    @by_numpy
    def unique(self) -> Any:
        """Decided, and unique."""
        return self._value == UNIQUE

    @property
    @by_numpy
    def not_unique(self) -> Any:
        """Decided, and not unique."""
        return self._value == NOT_UNIQUE

    @property
    @by_numpy
    def decided(self) -> Any:
        """Either of the two."""
        return self.unique | self.not_unique

    def numbers(self) -> Int[np.ndarray, "..."]:
        """1 unique, 0 not unique, -1 not decided. Concrete values only."""
        return np.asarray(self._value)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def dtype(self) -> np.dtype:
        """The dtype of `np.asarray` of it."""
        return np.dtype(bool)

    def __len__(self) -> int:
        return len(self._value)

    def __iter__(self) -> Iterator["Verdict"]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> "Verdict":
        return Verdict(picked(self._value, index))

    def reshape(self, *shape: int) -> "Verdict":
        return Verdict(self._value.reshape(*shape))

    @by_numpy
    def all(self, axis: int | tuple[int, ...] | None = None, **options: Any) -> "Verdict":
        """Unique if all are, not unique if one is not. (`options` are those of NumPy, whose
        functions call this one: they are ignored.)"""
        del options
        xp = namespace(self._value)
        return _settled(xp.all(self.unique, axis=axis), xp.any(self.not_unique, axis=axis))

    @by_numpy
    def any(self, axis: int | tuple[int, ...] | None = None, **options: Any) -> "Verdict":
        """Unique if one is, not unique if none is."""
        del options
        xp = namespace(self._value)
        return _settled(xp.any(self.unique, axis=axis), xp.all(self.not_unique, axis=axis))

    def __and__(self, other: "Verdict") -> "Verdict":
        return _settled(self.unique & other.unique, self.not_unique | other.not_unique)

    def __or__(self, other: "Verdict") -> "Verdict":
        return _settled(self.unique | other.unique, self.not_unique & other.not_unique)

    # Compared as trees, as Modules are, a verdict would differ from True silently.
    def __eq__(self, other: Any) -> Any:
        return self.__array__() == np.asarray(other)

    def __hash__(self) -> int:
        return hash(self.shape)

    def __ne__(self, other: Any) -> Any:
        return self.__array__() != np.asarray(other)

    def tolist(self) -> Any:
        """True, False or None, in lists as deep as the array."""
        return jax.tree.map(_BOOLEANS.__getitem__, np.asarray(self._value).tolist())

    def __bool__(self) -> bool:
        return bool(self.__array__())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        del copy
        if isinstance(self._value, Tracer):
            raise TypeError(
                "a verdict is no array while it is traced (under jit, vmap or grad, and by the "
                "functions of jax.numpy); take its .unique, .not_unique or .decided, which are."
            )
        values = np.asarray(self._value)
        if np.any(values == NOT_DECIDED):
            raise ValueError(
                "a verdict that was not decided is neither unique nor not unique: the state was "
                "not one (its result says why). Take .unique, .not_unique or .decided."
            )
        return np.asarray(values == UNIQUE, dtype=dtype)

    def __jax_array__(self) -> Array:
        # Functions of jax.numpy trace what they are given, and so end in the sentence above.
        return jnp.asarray(self.__array__())

    def __str__(self) -> str:
        if isinstance(self._value, Tracer):
            return f"Verdict{list(self.shape)} (traced)"
        return str(jax.tree.map(_WORDS.__getitem__, np.asarray(self._value).tolist()))


def _settled(unique: Any, not_unique: Any) -> Verdict:
    return Verdict.where(unique | not_unique, unique)
