"""Finite elements in files: matrices of other programs in Matrix Market, and reduced bodies."""

import csv
import hashlib
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.io
import scipy.sparse as sp

from .. import _settings
from .._bodies import ReducedBody, SecondOrder
from .._checks import listed, PATH, shown
from .._custom_types import Setting
from .._errors import ModelError
from .._files import replacing
from .._version import __version__
from ._elements import FiniteElements


_COLUMNS = ("x", "y", "z", "dof")


class _Table(NamedTuple):
    """The nodes of a table, in its order."""

    names: list[str]
    points: list[list[float]]
    first_dof: list[int]


def read_matrices(
    mass: Setting[str | Path], stiffness: Setting[str | Path], nodes: Setting[str | Path]
) -> FiniteElements:
    """Finite elements of another program: its matrices and a table of its nodes.

    **Arguments:**

    - `mass`, `stiffness`: files in Matrix Market format (`.mtx`), real, general or symmetric; of
      the free body, in SI units, without conditions eliminated.
    - `nodes`: a table with commas between its columns and a first line that names them, in any
      order: `x,y,z` (m), `dof`, and `name` if any node is to be called by one (by `NodesNamed`). A
      line for each node; `dof` is the row of its displacement along x in the matrices, counted from
      zero. The rows of its displacements along y and z follow, then those of its rotations about x,
      y and z where it has any: from one `dof` to the next they are 3 or 6, and every row belongs to
      a node. A beam from a to b, for example:

          name,x,y,z,dof
          a,0,0,0,0
          ,0.5,0,0,6
          b,1,0,0,12

    A node with rotations needs no tie: `Attachment("A", nodes=NodesNamed(["a"]))` is that node.

    **Returns:** the finite elements, whose nodes are in the order of the table.

    **Raises:** `ModelError` for files that are not there or hold something else, and whatever
    `FiniteElements` refuses.
    """
    table = _table(Path(_settings.path(nodes, "nodes")))
    return FiniteElements(
        _matrix(Path(_settings.path(mass, "mass"))),
        _matrix(Path(_settings.path(stiffness, "stiffness"))),
        np.array(table.points),
        np.array(table.first_dof),
        table.names,
    )


def _matrix(path: Path) -> Any:
    quoted = shown(str(path), PATH)
    if not path.is_file():
        raise ModelError(f"there is no file {quoted}; give the path of a Matrix Market file.")
    try:
        return scipy.io.mmread(str(path))
    except (ValueError, OSError, OverflowError, TypeError) as error:
        raise ModelError(f"{quoted} is no Matrix Market file: {error}.") from None


def _table(path: Path) -> _Table:
    quoted = shown(str(path), PATH)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            columns = [name.strip() for name in reader.fieldnames or []]
            reader.fieldnames = columns
            lines = list(reader)
    except FileNotFoundError:
        raise ModelError(f"there is no file {quoted}; give the path of a table of nodes.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ModelError(f"{quoted} cannot be read as a table of nodes: {error}.") from None
    missing = [name for name in _COLUMNS if name not in columns]
    if missing:
        raise ModelError(
            f"{quoted} has no column {listed(missing)}; its first line must name the columns "
            "x, y, z, dof, and name if there is one."
        )
    if not lines:
        raise ModelError(f"{quoted} names no node; give each node a line.")
    table = _Table([], [], [])
    for number, line in enumerate(lines, start=2):
        try:
            point = [float(line[axis]) for axis in "xyz"]
            first = int(line["dof"])
        except (TypeError, ValueError):
            raise ModelError(
                f"{quoted}, line {number}, must hold numbers x, y, z and a whole number dof, got "
                f"{shown([line[name] for name in _COLUMNS])}."
            ) from None
        table.names.append((line.get("name") or "").strip())
        table.points.append(point)
        table.first_dof.append(first)
    return table


# Identification of the file.
_FORMAT = "jaxmbs reduced body 1"

_ARRAYS = (
    "mass",
    "first_moment",
    "inertia",
    "mode_first_moment",
    "mode_second_moment",
    "mode_products",
    "stiffness",
    "damping",
    "points",
    "translations",
    "rotations",
)

# Fields of `SecondOrder`, with a prefix that distinguishes them from those of the body; only where
# they exist.
_SECOND_ORDER = ("first_moment", "second_moment", "translations", "rotations")
_PREFIX = "second_order."


def save(reduced: Setting[ReducedBody], path: Setting[str | Path]) -> None:
    """Writes a reduced body to a file (`.npz`), whole or not at all.

    **Arguments:** `reduced`: of `reduce`. `path`: the file; what is there is replaced.

    **Raises:** `ModelError` if the file cannot be written. `TypeError` for an invalid reduced body
    or path.
    """
    reduced = _settings.instance(reduced, ReducedBody, "reduced", "what reduce(...) returns")
    content = {name: np.asarray(getattr(reduced, name)) for name in _ARRAYS}
    found, second = reduced.second_order, None
    if found is not None:
        second = {name: np.asarray(getattr(found, name)) for name in _SECOND_ORDER}
    content |= {"nodes": reduced.nodes, "second_order": second}
    _write(content, "", Path(_settings.path(path, "path")))


def load(path: Setting[str | Path]) -> ReducedBody:
    """Reads a reduced body that `save` wrote, or that `reduce` kept in its cache.

    **Arguments:** `path`: the file.

    **Raises:** `ModelError` if there is none, or it holds something else.
    """
    return body_of(_read(Path(_settings.path(path, "path"))))


def body_of(content: Mapping[str, Any]) -> ReducedBody:
    """The reduced body of these fields."""
    arrays = {name: jnp.asarray(content[name], dtype=float) for name in _ARRAYS}
    second = content["second_order"]
    if second is not None:
        second = SecondOrder(**{k: jnp.asarray(x, dtype=float) for k, x in second.items()})
    return ReducedBody(**arrays, nodes=content["nodes"], second_order=second)


def cached(path: Path, key: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The content of the file if it was computed from inputs of this key; otherwise it is computed
    and written.

    **Raises:** `ModelError` for a file that holds something else: it is left as it is.
    """
    if path.exists():
        content = _read(path)
        if content["digest"] == key:
            return content
    content = compute()
    _write(content, key, path)
    return content


def digest(elements: FiniteElements, *rest: Any) -> str:
    """A fingerprint of what a reduction is computed from."""
    hasher = hashlib.sha256(__version__.encode())
    _add(hasher, (elements, *rest))
    return hasher.hexdigest()


def _add(hasher: Any, value: Any) -> None:
    """The kind of each part, and its numbers."""
    hasher.update(f"{type(value).__module__}.{type(value).__qualname__}(".encode())
    if isinstance(value, eqx.Module):
        for name in sorted(vars(value)):
            hasher.update(name.encode())
            _add(hasher, vars(value)[name])
    elif isinstance(value, sp.csc_array):
        ordered = value.copy()
        ordered.sum_duplicates()
        for part in (ordered.indptr, ordered.indices, ordered.data):
            _add(hasher, part)
    elif isinstance(value, tuple):
        for part in value:
            _add(hasher, part)
    else:
        array = np.asarray(value)
        text = array.tobytes() if array.dtype.kind in "fiub" else repr(value).encode()
        hasher.update(f"{array.shape} {len(text)}:".encode() + text)
    hasher.update(b")")


def _write(content: Mapping[str, Any], key: str, path: Path) -> None:
    arrays = {name: np.asarray(content[name]) for name in _ARRAYS}
    arrays |= {_PREFIX + name: x for name, x in (content["second_order"] or {}).items()}
    words = {"format": _FORMAT, "digest": key, "nodes": np.array(content["nodes"], dtype=str)}
    try:
        with replacing(path) as new, new.open("wb") as file:
            np.savez(file, **arrays, **words)
    except OSError as error:
        raise ModelError(
            f"{shown(str(path), PATH)} cannot be written: {error.strerror}; choose another place."
        ) from None


def _read(path: Path) -> dict[str, Any]:
    quoted = shown(str(path), PATH)
    try:
        with np.load(path, allow_pickle=False) as file:
            content = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise ModelError(f"there is no file {quoted}; save a reduced body there first.") from None
    except OSError as error:
        if error.strerror:
            raise ModelError(f"{quoted} cannot be read: {error.strerror}.") from None
        raise ModelError(_other(quoted)) from None
    except (ValueError, EOFError, KeyError, AttributeError, TypeError, zipfile.BadZipFile):
        raise ModelError(_other(quoted)) from None
    if str(content.get("format")) != _FORMAT:
        raise ModelError(_other(quoted))
    missing = {*_ARRAYS, "nodes", "digest"} - content.keys()
    if missing:
        raise ModelError(_other(quoted))
    second = {name: content.get(_PREFIX + name) for name in _SECOND_ORDER}
    if all(x is None for x in second.values()):
        second = None
    elif any(x is None for x in second.values()):
        raise ModelError(_other(quoted))
    return content | {
        "second_order": second,
        "nodes": tuple(str(x) for x in content["nodes"]),
        "digest": str(content["digest"]),
    }


def _other(quoted: str) -> str:
    return f"{quoted} holds no reduced body; give a file that save(...) or reduce(cache=...) wrote."
