"""Trees passed from one program to the next: their arrays, and their form as bytes.

The form may contain classes of a package that takes long to load. It is unpickled where the next
program is traced, so that a stored program is called without that package.
"""

import io
import pickle
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array

from ._store import Place, Unpickler


class _HeldForm:
    """Form that cannot be stored, as it contains objects of a user's class."""

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

    def with_arrays_of(self, tree: Any) -> "Sealed":
        """Seal another tree, with this form if it is the same: a state that a program passes on to
        itself has one form, so that the program is traced once."""
        arrays, other = _parted(tree)
        if eqx.tree_equal(self._places(), other):
            return Sealed(arrays, self.form)
        return sealed(tree)

    def _places(self) -> Any:
        return _loaded(self.form) if isinstance(self.form, bytes) else self.form.tree


def sealed(tree: Any) -> Sealed:
    """Seal a tree: its form is not built again before `opened`."""
    arrays, places = _parted(tree)
    try:
        written = pickle.dumps(places, protocol=pickle.HIGHEST_PROTOCOL)
        same = eqx.tree_equal(_loaded(written), places)
    except Exception:
        # Pickling calls methods of the user's objects, which may raise anything.
        return Sealed(arrays, _HeldForm(places))
    # (Objects that compare by identity differ from their unpickled copies.)
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
