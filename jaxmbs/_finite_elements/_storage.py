import hashlib
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from .. import _settings
from .._bodies import ReducedBody, SecondOrder
from .._checks import PATH, shown
from .._custom_types import Setting
from .._errors import ModelError
from .._files import replacing
from .._version import __version__
from ._elements import FiniteElements


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
