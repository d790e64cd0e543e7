"""A fingerprint of a sweep, by which a store checks that the same sweep is continued.

Equal models, cases and questions have equal fingerprints in every process: arrays count by their
numbers, functions by what they do (code, constants, what they close over), not by their address.
"""

import functools
import hashlib
import inspect
import types
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np


def digest(*parts: Any) -> str:
    """The fingerprint of arrays, modules, functions and plain values."""
    hasher = hashlib.sha256()
    _Walk(hasher).add(parts)
    return hasher.hexdigest()


class _Walk:
    """Goes once through everything that is reached."""

    def __init__(self, hasher: Any):
        self._hasher = hasher
        self._seen: dict[int, int] = {}
        # What was met stays alive, so that no other object takes its identity.
        self._met: list[Any] = []

    def word(self, text: str) -> None:
        data = text.encode()
        self._hasher.update(f"{len(data)}:".encode() + data)

    def add(self, x: Any) -> None:
        if id(x) in self._seen:
            self.word(f"again {self._seen[id(x)]}")
            return
        _add(x, self)

    def mark(self, x: Any) -> None:
        """Objects that may hold themselves are met once."""
        self._seen[id(x)] = len(self._seen)
        self._met.append(x)


@functools.singledispatch
def _add(x: Any, walk: _Walk) -> None:
    """The digest of any other object: its class and its attributes."""
    walk.mark(x)
    walk.word(f"{type(x).__module__}.{type(x).__qualname__}")
    inner = getattr(x, "__wrapped__", None)
    if inner is not None:
        # Compiled functions.
        walk.add(inner)
        return
    fields = getattr(x, "__dict__", None)
    if fields is None:
        walk.word(repr(x))
        return
    # Cached properties follow from the rest, and may have been evaluated or not.
    cached = {
        name
        for cls in type(x).__mro__
        for name, own in vars(cls).items()
        if isinstance(own, functools.cached_property)
    }
    # Hashes of text differ between processes.
    for name in sorted(set(fields) - cached - {"_hash"}):
        walk.word(name)
        walk.add(fields[name])


@_add.register(str | bytes | int | float | complex)
def _(x: Any, walk: _Walk) -> None:
    walk.word(f"{type(x).__name__} {x!r}")


@_add.register(types.NoneType)
def _(x: None, walk: _Walk) -> None:
    del x
    walk.word("none")


@_add.register(np.ndarray)
@_add.register(np.generic)
@_add.register(jax.Array)
def _(x: Any, walk: _Walk) -> None:
    array = np.ascontiguousarray(np.asarray(x))
    walk.word(f"array {array.dtype} {np.shape(x)}")
    walk.word(array.tobytes().hex())


@_add.register(tuple)
@_add.register(list)
def _(x: Any, walk: _Walk) -> None:
    walk.word(f"{type(x).__name__} of {len(x)}")
    for entry in x:
        walk.add(entry)


@_add.register(set)
@_add.register(frozenset)
def _(x: Any, walk: _Walk) -> None:
    walk.word(f"set {sorted(map(repr, x))}")


@_add.register(Mapping)
def _(x: Any, walk: _Walk) -> None:
    walk.mark(x)
    walk.word(f"mapping of {len(x)}")
    for key in x:
        walk.add(key)
        walk.add(x[key])


@_add.register(type)
@_add.register(types.ModuleType)
@_add.register(types.BuiltinFunctionType)
def _(x: Any, walk: _Walk) -> None:
    walk.word(f"{getattr(x, '__module__', '')} {x.__name__}")


@_add.register(functools.partial)
def _(x: Any, walk: _Walk) -> None:
    walk.word("partial")
    walk.add((x.func, x.args, x.keywords))


@_add.register(types.MethodType)
def _(x: Any, walk: _Walk) -> None:
    walk.word("method")
    walk.add((x.__func__, x.__self__))


@_add.register(types.CodeType)
def _(x: Any, walk: _Walk) -> None:
    walk.word(f"code {x.co_code.hex()} {x.co_names} {x.co_varnames}")
    walk.add(x.co_consts)


@_add.register(types.FunctionType)
def _(x: Any, walk: _Walk) -> None:
    walk.mark(x)
    walk.word(f"function {x.__module__} {x.__qualname__}")
    if x.__module__.split(".")[0] in _LIBRARIES:
        return
    walk.add(x.__code__)
    walk.add((x.__defaults__, x.__kwdefaults__))
    free = inspect.getclosurevars(x)
    walk.add((dict(sorted(free.nonlocals.items())), dict(sorted(free.globals.items()))))


# Their functions count by their names; the version of this package is part of the fingerprint.
_LIBRARIES = ("jax", "jaxlib", "jaxmbs", "equinox", "diffrax", "lineax", "optimistix", "numpy")
