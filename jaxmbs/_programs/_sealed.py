"""Trees that are carried from one program to the next: their arrays, and their form as bytes.

The form may be built from classes of a package that takes long to load. So it is opened where the
next program is traced, and one that is found in the store is called without that package.
"""

import io
import pickle
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array

from ._store import Place, Unpickler


class _HeldForm:
    """A form that lives in this process alone, as one with objects of a user's own class."""

    def __init__(self, tree: Any):
        self.tree = tree

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _HeldForm) and eqx.tree_equal(self.tree, other.tree) is True

    def __hash__(self) -> int:
        return hash(jax.tree.structure(self.tree))


class Sealed(eqx.Module):
    """The arrays of a tree, and the tree with a `Place` for each of them."""

    arrays: tuple[Array, ...]
    form: bytes | _HeldForm = eqx.field(static=True)

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
        same = eqx.tree_equal(_loaded(written), places)
    except Exception:
        # Whatever a user's object says to that.
        return Sealed(arrays, _HeldForm(places))
    # (What is compared by identity comes back as something else.)
    return Sealed(arrays, written if same is True else _HeldForm(places))


def _parted(tree: Any) -> tuple[tuple[Array, ...], Any]:
    """The arrays, and the tree with their places."""
    leaves, shape = jax.tree.flatten(tree)
    arrays = tuple(x for x in leaves if eqx.is_array(x))
    places = iter(map(Place, range(len(arrays))))
    filled = [next(places) if eqx.is_array(x) else x for x in leaves]
    return arrays, jax.tree.unflatten(shape, filled)


def _loaded(written: bytes) -> Any:
    return Unpickler(io.BytesIO(written)).load()
