"""A Zarr store: a folder, or any address that fsspec supports, readable by `xarray.open_zarr`.

The arrays of a chunk are written first, and its entry in `done` last: one object each, which the
file system replaces as a whole. So a killed sweep leaves a chunk done or not, and nothing between.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._errors import ModelError
from .._extras import optional
from .._verdict import NOT_DECIDED
from ._answers import CASE, CHUNK, DONE
from ._stores import AbstractStore, Layout


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
