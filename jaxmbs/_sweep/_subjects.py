"""What is varied: from the names and values of one case to a system and a state."""

import abc
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import Scalar
from .._errors import ModelError
from .._system import AbstractSystem
from ._units import unit_of


# Names of the state.
STATE = ("q", "v", "time")

# Entries of vectors, and with two letters of symmetric matrices (an inertia).
_LETTERS = ("x", "y", "z")

Values = Mapping[str, Any]


class Placed(NamedTuple):
    """One case before it is assembled: the system, the same with what is held while it is
    assembled, and the state to start from."""

    system: AbstractSystem
    held: AbstractSystem
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    t: Scalar


class State(eqx.Module):
    """The state (q, v, t) from which every case starts, unless its own names say another."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    t: Scalar

    def value(self, word: str, entry: str, name: str) -> Array:
        """One of q, v and time, or an entry of it."""
        return entry_of({"q": self.q, "v": self.v, "time": self.t}[word], entry, name)

    def changed(self, values: Values) -> "State":
        """The same with what a case names."""
        fields = {"q": self.q, "v": self.v, "time": self.t}
        for name, value in values.items():
            word, _, entry = name.partition(".")
            if word in fields:
                fields[word] = with_entry(fields[word], entry, value, name)
        return State(fields["q"], fields["v"], fields["time"])


class AbstractSubject(eqx.Module):
    """What is varied, by names."""

    @abc.abstractmethod
    def name(self, given: str) -> str:
        """The full name of what the user calls `given`.

        **Raises:** `ModelError` if there is nothing of that name.
        """

    @abc.abstractmethod
    def unit(self, name: str) -> str:
        """The unit of the number of that full name; empty where it is not known."""

    @abc.abstractmethod
    def value(self, name: str) -> Array:
        """What stands there before anything is varied.

        **Raises:** `ModelError` for a number that is not given.
        """

    @abc.abstractmethod
    def check(self, values: Values) -> None:
        """Refuse values that cannot be. Concrete ones only.

        **Raises:** `ValueError`.
        """

    @abc.abstractmethod
    def place(self, values: Values) -> Placed:
        """One case. Works under `jit` and `vmap`."""


class SystemSubject(AbstractSubject):
    """A system that no model describes: its arrays by the way to them (`gravity`,
    `mass_function.length`), and its state."""

    system: AbstractSystem
    start: State

    def name(self, given: str) -> str:
        if given.split(".")[0] not in STATE:
            self._way(given)
        return given

    def unit(self, name: str) -> str:
        return unit_of(name.split(".")[-1])

    def value(self, name: str) -> Array:
        word, _, entry = name.partition(".")
        if word in STATE:
            return self.start.value(word, entry, name)
        return jnp.asarray(_follow(self.system, self._way(name)))

    def check(self, values: Values) -> None:
        self.place(values)

    def place(self, values: Values) -> Placed:
        start, system = self.start.changed(values), self.system
        for name, value in values.items():
            if name.split(".")[0] not in STATE:
                way = self._way(name)
                new = with_entry(_follow(system, way), "", value, name)
                system = eqx.tree_at(functools.partial(_follow, way=way), system, new)
        return Placed(system, system, start.q, start.v, start.t)

    def _way(self, name: str) -> tuple[str, ...]:
        way = tuple(name.split("."))
        try:
            found = _follow(self.system, way)
        except (AttributeError, LookupError, ValueError):
            found = None
        if not eqx.is_inexact_array(found):
            raise ModelError(
                f"{name!r} is no array of floating-point numbers of the system; name one by the "
                "way to it, such as gravity, or q, v or time."
            )
        return way


def _follow(tree: Any, way: Sequence[str]) -> Any:
    """What stands at the end of the way: attributes, keys and places in a sequence."""
    for word in way:
        if isinstance(tree, Mapping):
            tree = tree[word]
        elif isinstance(tree, Sequence):
            tree = tree[int(word)]
        else:
            tree = getattr(tree, word)
    return tree


def with_entry(old: Any, entry: str, value: Any, name: str) -> Any:
    """An array with a new value, or with a new entry (see `entry_of`).

    **Raises:** `ModelError` if it has no such entry, or the value is of another shape.
    """
    value = jnp.asarray(value)
    if not entry:
        if value.shape != old.shape:
            raise ModelError(
                f"{name!r} is of shape {list(old.shape)}, got values of shape {list(value.shape)}."
            )
        return value.astype(old.dtype)
    places = places_of(old, entry, name)
    if value.shape != ():
        raise ModelError(f"{name!r} is one number, got values of shape {list(value.shape)}.")
    for place in places:
        old = old.at[place].set(value)
    return old


def entry_of(array: Any, entry: str, name: str) -> Array:
    """An array, or its entry (along its last axis, where all of them are the same number; of a
    symmetric matrix by its row and its column).

    **Raises:** `ModelError` if it has no such entry, or entries of that name differ.
    """
    if not entry:
        return jnp.asarray(array)
    given = jnp.asarray(array)
    places = places_of(array, entry, name)
    found = jnp.concatenate([given[place].ravel() for place in places])
    if not bool(jnp.all(found == found[0])):
        raise ModelError(f"{name!r} stands for several numbers, {found.tolist()}.")
    return found[0]


def places_of(array: Any, entry: str, name: str) -> tuple[tuple[Any, ...], ...]:
    """Where the entry of that name stands.

    **Raises:** `ModelError` if there is none.
    """
    words: dict[str, tuple[tuple[Any, ...], ...]]
    if array.shape == (3, 3):
        pairs = [(i, j) for i in range(3) for j in range(i, 3)]
        words = {_LETTERS[i] + _LETTERS[j]: ((..., i, j), (..., j, i)) for i, j in pairs}
    else:
        size = array.shape[-1] if array.ndim else 0
        words = {str(k): ((..., k),) for k in range(size)}
        if size in (2, 3):
            words |= {_LETTERS[k]: ((..., k),) for k in range(size)}
    if entry not in words:
        raise ModelError(
            f"{name!r}: there is no entry {entry!r}; the entries are "
            f"{', '.join(words) or 'none, as it is one number'}."
        )
    return words[entry]


def said_of(name: str, make: Callable[[], Any]) -> Any:
    """What is made from a case's values, with what is wrong about them said of the name."""
    try:
        return make()
    except ModelError:
        raise
    except ValueError as error:
        raise ModelError(f"{name!r}: {error}") from None
