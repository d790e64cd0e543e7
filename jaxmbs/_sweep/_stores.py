"""Answers as named arrays, and their stores, written chunk by chunk: in memory, or Zarr."""

import abc
import dataclasses
import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import GetAttrKey, KeyPath
from jaxtyping import Array

from .._custom_types import BoolScalar
from .._errors import ModelError, optional
from .._solution import code_of, RESULTS
from .._verdict import MEANINGS, NOT_DECIDED, Verdict


# --------------------------------------------------------------------------------------------------
# Answers as named arrays, and back.
# --------------------------------------------------------------------------------------------------


# Dimensions, and variables that do not belong to the answer.
CASE, CHUNK = "case", "chunk"
RESULT, CONFIGURATION, DONE = "result", "configuration", "done"


class Variable(NamedTuple):
    """One array of a store: its name, the shape and dtype of one case, dimensions, attributes."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    dimensions: tuple[str, ...]
    attributes: dict[str, Any]


def flatten(answer: Any) -> list[Any]:
    """The arrays of an answer, in order."""
    return [x for x in jax.tree.leaves(answer) if eqx.is_array(x)]


def unflatten(template: Any, arrays: Sequence[Any]) -> Any:
    """An answer from its arrays; `template` as `variables` takes it."""
    leaves, structure = jax.tree.flatten(template)
    left = iter(arrays)
    return jax.tree.unflatten(structure, [next(left) if _is_shape(x) else x for x in leaves])


def variables(
    template: Any, taken: Sequence[str], units: Mapping[str, str]
) -> tuple[Variable, ...]:
    """The arrays of one case's answer, whose shapes are `template` (`eqx.filter_eval_shape`).

    A name is the way to the array. Dimensions are named as in the annotations of the class that
    holds the array, if given there.
    """
    found: list[Variable] = []
    sizes: dict[str, int] = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(template)[0]:
        if not _is_shape(leaf):
            continue
        name = _name_of(path)
        while name in (*taken, *(v.name for v in found)):
            name = f"answer.{name}"
        dimensions = tuple(
            _dimension(word, size, name, k, sizes)
            for k, (word, size) in enumerate(
                zip(_words(template, path, len(leaf.shape)), leaf.shape, strict=True)
            )
        )
        attributes: dict[str, Any] = {"units": units[name]} if name in units else {}
        if isinstance(_owner(template, path), Verdict):
            attributes |= MEANINGS
        found.append(Variable(name, leaf.shape, np.dtype(leaf.dtype), dimensions, attributes))
    return tuple(found)


def _is_shape(leaf: Any) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct)


def _name_of(path: KeyPath) -> str:
    words = [jax.tree_util.keystr((key,), simple=True) for key in path]
    # A RESULTS member and a verdict hold their numbers in a private field.
    return ".".join(w for w in words if w != "_value").replace("/", "_") or "answer"


def _words(template: Any, path: KeyPath, count: int) -> list[str]:
    """Names of the axes in the annotation of the field that holds the array; empty where it does
    not name them."""
    none = [""] * count
    if isinstance(_owner(template, path), Verdict):
        path = path[:-1]
    if not path or not isinstance(path[-1], GetAttrKey):
        return none
    owner = _owner(template, path)
    hints = {field.name: field.type for field in dataclasses.fields(owner)}
    hint = hints.get(path[-1].name)
    # Of a verdict: Annotated[Verdict, "constraints"].
    said = getattr(hint, "dim_str", " ".join(getattr(hint, "__metadata__", ())))
    words = said.replace("*batch", "").split()
    return words if len(words) == count else none


def _owner(template: Any, path: KeyPath) -> Any:
    """The object that holds the last item of a path."""
    owner = template
    for key in path[:-1]:
        owner = _step(owner, key)
    return owner


def _step(owner: Any, key: Any) -> Any:
    if isinstance(key, GetAttrKey):
        return getattr(owner, key.name)
    return owner[getattr(key, "key", getattr(key, "idx", None))]


def _dimension(word: str, size: int, name: str, k: int, sizes: dict[str, int]) -> str:
    """A dimension has one size in all of a store."""
    if not word.isidentifier() or word in (CASE, CHUNK) or sizes.setdefault(word, size) != size:
        word = f"{name}_{k}"
    return word


# ---------------------------------------------------------------------------------------------
# Failures
# ---------------------------------------------------------------------------------------------


def first_failure(assembly: RESULTS, answer: Any, *used: Array) -> RESULTS:
    """Outcome of one case: the first failure among the assembly's result, those in the answer, and
    NaN in it (an infinite number may be an answer)."""
    leaves = jax.tree.leaves(answer, is_leaf=lambda x: isinstance(x, RESULTS))
    result = assembly
    for leaf in leaves:
        if isinstance(leaf, RESULTS):
            own = leaf if jnp.ndim(code_of(leaf)) == 0 else RESULTS.successful
            result = _then(result, own)
    numbers = [x for x in (*leaves, *used) if eqx.is_inexact_array(x)]
    broken = jnp.asarray(False)
    for x in numbers:
        broken = broken | jnp.any(jnp.isnan(x))
    return _then(result, RESULTS.where(broken, RESULTS.answer_not_a_number, RESULTS.successful))


def _then(first: RESULTS, second: RESULTS) -> RESULTS:
    return RESULTS.where(first != RESULTS.successful, first, second)


def undecided_where(failed: BoolScalar, answer: Any) -> Any:
    """The same answer, in which no verdict is decided where the case has no configuration."""

    def verdict(leaf: Any) -> Any:
        if not isinstance(leaf, Verdict):
            return leaf
        return Verdict.where(leaf.decided & ~failed, leaf.unique)

    return jax.tree.map(verdict, answer, is_leaf=lambda x: isinstance(x, Verdict))


# ---------------------------------------------------------------------------------------------
# Sizes
# ---------------------------------------------------------------------------------------------


def bytes_of(shapes: Any) -> int:
    """Bytes of all arrays of one case."""
    return sum(
        math.prod(x.shape) * np.dtype(x.dtype).itemsize
        for x in jax.tree.leaves(shapes)
        if _is_shape(x)
    )


# --------------------------------------------------------------------------------------------------
# Stores of results, written chunk by chunk.
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# A Zarr store: a folder, or any address that fsspec supports, readable by `xarray.open_zarr`.
#
# The arrays of a chunk are written first, and its entry in `done` last: one object each, which the
# file system replaces as a whole. So a killed sweep leaves a chunk done or not, and nothing
# between.
# --------------------------------------------------------------------------------------------------


# Attribute of the root by which a sweep recognises its own store.
_MARK = "jaxmbs_sweep"


class ZarrStore(AbstractStore):
    """An open store."""

    def __init__(self, address: str, layout: Layout):
        self._group = optional("zarr", "sweep").open_group(address, mode="r+")
        self._address = address
        self._layout = layout
        self._arrays = {v.name: self._group[v.name] for v in layout.variables}
        self._done = self._group[DONE]

    def done(self) -> np.ndarray:
        return self._done[:].astype(bool)

    def write(self, chunk: int, arrays: Mapping[str, np.ndarray]) -> None:
        where = self._layout.cases(chunk)
        for name, array in arrays.items():
            self._arrays[name][where] = array
        self._done[chunk] = 1

    def read(self, name: str) -> np.ndarray:
        return self._arrays[name][:]

    def close(self, attributes: Mapping[str, Any]) -> None:
        self._group.attrs.update(dict(attributes))
        _consolidate(self._address)


def existing_chunk(address: str, digest: str) -> int | None:
    """The cases in a chunk of the store at this address; None if there is none yet.

    **Raises:** `ModelError` if something else is there, or a sweep of something else.
    """
    mark = _mark(address)
    if mark is None or not mark["ready"]:
        return None
    if mark["digest"] != digest:
        raise ModelError(
            f"the store {address!r} holds another sweep: its model, cases or question (or the "
            "version, platform or batch width that computed it) differ. Choose another store, or "
            "remove this one."
        )
    return mark["chunk"]


def _mark(address: str) -> dict[str, Any] | None:
    """The mark of the sweep at the root; None if there is nothing at this address."""
    zarr = optional("zarr", "sweep")
    if "://" in address:
        optional("fsspec", "sweep")
    try:
        mark = zarr.open_group(address, mode="r").attrs.get(_MARK)
    except (FileNotFoundError, zarr.errors.GroupNotFoundError):
        if _empty(Path(address)):
            return None
        mark = None
    except zarr.errors.ContainsArrayError:
        mark = None
    except (OSError, ValueError, ImportError) as error:
        raise ModelError(f"cannot open the store {address!r}: {error}") from None
    if mark is None:
        raise ModelError(
            f"{address!r} exists and is no store of a sweep; choose another place for it."
        )
    return mark


def _empty(path: Path) -> bool:
    """Is the folder empty, except for partial files of an interrupted start?"""
    return not path.exists() or (path.is_dir() and all(map(_remains, path.iterdir())))


def _remains(path: Path) -> bool:
    """Is this a partial file of an interrupted write? (Zarr renames it at the end.)"""
    return path.suffix == ".partial"


def create(address: str, layout: Layout, known: Mapping[str, np.ndarray]) -> None:
    """An empty store, with the arrays that are known beforehand. It counts as a store only once it
    is complete.

    **Raises:** `ModelError` if it cannot be written.
    """
    mark = {"digest": layout.digest, "chunk": layout.chunk, "ready": False}
    try:
        remove_remains(address)
        # The root comes first and is never removed, so that a kill leaves what is known again.
        group = optional("zarr", "sweep").open_group(
            address, mode="a", use_consolidated=False, attributes={_MARK: mark}
        )
        group.attrs[_MARK] = mark
        _clear(group)
        for variable in layout.variables:
            along = variable.dimensions[0] == CASE
            group.create_array(
                variable.name,
                shape=(layout.count, *variable.shape),
                chunks=(layout.chunk if along else 1, *(max(n, 1) for n in variable.shape)),
                dtype=variable.dtype,
                fill_value=_fill(variable.dtype),
                dimension_names=variable.dimensions,
                attributes=variable.attributes,
                overwrite=True,
            )
        for name, array in known.items():
            group[name][:] = array
        group.create_array(
            DONE,
            shape=(layout.chunks,),
            chunks=(1,),
            dtype=np.uint8,
            fill_value=0,
            dimension_names=(CHUNK,),
            attributes={"long_name": "1 for each chunk of cases that is finished"},
            overwrite=True,
        )
        group.attrs.update({**layout.attributes, _MARK: mark | {"ready": True}})
        _consolidate(address)
    except OSError as error:
        raise ModelError(f"cannot write the store {address!r}: {error}.") from None


def _clear(group: Any) -> None:
    """Remove the arrays of a store that was not finished."""
    with warnings.catch_warnings():
        # Zarr names the folders in which a kill left no description; they are made anew.
        warnings.simplefilter("ignore")
        names = list(group)
    for name in names:
        del group[name]


def _consolidate(address: str) -> None:
    """Copy the description of all arrays to the root, where xarray reads it."""
    with warnings.catch_warnings():
        # It is not part of the specification of the third format, as Zarr warns each time.
        warnings.simplefilter("ignore")
        optional("zarr", "sweep").consolidate_metadata(address)


def _fill(dtype: np.dtype) -> Any:
    """Fill value of a case that has not been computed."""
    if np.issubdtype(dtype, np.inexact):
        return np.nan
    # Verdicts are the only numbers of one byte.
    return NOT_DECIDED if dtype == np.int8 else dtype.type(0)


def remove_remains(address: str) -> None:
    """Remove what a kill left of the files that were being written."""
    path = Path(address)
    if path.is_dir():
        for remains in filter(_remains, path.rglob("*")):
            remains.unlink(missing_ok=True)
