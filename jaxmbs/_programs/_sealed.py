"""Answers of which only programs of the same kind know what they are made of.

What a program carries from one call to the next may be built from classes of a package that takes
long to load. Its arrays are handed on, and its form as bytes, which are opened where the next
program is traced: a program that is found in the store is called without that package.
"""

import io
import pickle
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array

from ._store import Place, Unpickler


class _Held:
    """A form that lives in this process alone, as one with objects of a user's own class."""

    def __init__(self, tree: Any):
        self.tree = tree


class Sealed(eqx.Module):
    """The arrays of a tree, and the tree with a `Place` for each of them."""

    arrays: tuple[Array, ...]
    form: bytes | _Held = eqx.field(static=True)

    def opened(self) -> Any:
        """The tree."""
        tree = self._places()
        return jax.tree.map(lambda x: self.arrays[x.index] if type(x) is Place else x, tree)

    def holding(self, tree: Any) -> "Sealed":
        """The same form, if the tree has it, with the arrays of the tree: what goes round has one
        form, and its program is traced once."""
        arrays, other = _parted(tree)
        if eqx.tree_equal(self._places(), other):
            return Sealed(arrays, self.form)
        return sealed(tree)

    def _places(self) -> Any:
        return _loaded(self.form) if isinstance(self.form, bytes) else self.form.tree


def sealed(tree: Any) -> Sealed:
    """The tree without its form, until it is opened."""
    arrays, places = _parted(tree)
    try:
        written = pickle.dumps(places, protocol=pickle.HIGHEST_PROTOCOL)
        _loaded(written)
    except (pickle.PicklingError, pickle.UnpicklingError, TypeError, AttributeError, ValueError):
        return Sealed(arrays, _Held(places))
    return Sealed(arrays, written)


def _parted(tree: Any) -> tuple[tuple[Array, ...], Any]:
    """The arrays, and the tree with their places."""
    leaves, shape = jax.tree.flatten(tree)
    arrays = tuple(x for x in leaves if eqx.is_array(x))
    places = iter(map(Place, range(len(arrays))))
    filled = [next(places) if eqx.is_array(x) else x for x in leaves]
    return arrays, jax.tree.unflatten(shape, filled)


def _loaded(written: bytes) -> Any:
    return Unpickler(io.BytesIO(written)).load()
