"""Names for everything that a program depends on, the same in every process.

A compiled program depends on its function, on the shapes and types of its arrays, and on whatever
of its arguments is not an array: classes, names and numbers of a structure. All of these are walked
and written into a digest. Functions and classes count by their names where the code behind these
is known by the versions of the packages; code of the user's own has no such name, and neither has
an object whose class this module does not know.
"""

import copyreg
import dataclasses
import enum
import functools
import hashlib
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import numpy as np


# Packages whose code is known by their versions (that of this one by a digest of its files).
TRUSTED = frozenset(
    [
        *("builtins", "collections", "functools", "itertools", "operator", "pathlib", "types"),
        *("diffrax", "equinox", "jax", "jaxlib", "jaxmbs", "jaxtyping", "lineax", "numpy"),
        *("optax", "optimistix"),
    ]
)

_PLAIN = (type(None), bool, int, float, complex, str, bytes)


class Unnameable(TypeError):
    """An object without a name that means the same in another process."""


class Identity:
    """Digests of objects, and the objects by their digests: of two with the same digest either may
    stand for the other."""

    def __init__(self) -> None:
        # What was walked lives as long as this, so that no place in memory is used twice.
        self._walked: dict[int, tuple[bytes, Any]] = {}
        self._of_digest: dict[bytes, Any] = {}

    def digest_of(self, own: Any) -> bytes | None:
        """The digest of that very object, if it was walked as a whole, by value."""
        found = self._walked.get(id(own))
        return None if found is None else found[0]

    def of_digest(self, digest: bytes) -> Any:
        return self._of_digest[digest]

    def arguments(self, own: Any) -> bytes:
        """The digest of arguments or of part of them: arrays count by shape and type.

        **Raises:** `Unnameable`.
        """
        if isinstance(own, jax.Array | np.ndarray | np.generic):
            weak = bool(getattr(own, "weak_type", False))
            return _hash("array", f"{own.shape} {own.dtype} {weak}")
        opened = None if own is None else jax.tree_util.default_registry.flatten_one_level(own)
        if opened is None:
            return self.value(own)
        children, aside = opened
        parts = (self.value(type(own)), self.value(aside), *map(self.arguments, children))
        return _hash("node", *parts)

    def value(self, own: Any) -> bytes:
        """The digest of an object by its value.

        **Raises:** `Unnameable`.
        """
        kind = type(own)
        if kind in _PLAIN:
            return _hash(kind.__name__, repr(own))
        found = self._walked.get(id(own))
        if found is None:
            digest = self._value(own, kind)
            found = self._walked[id(own)] = digest, own
            self._of_digest.setdefault(digest, own)
        return found[0]

    def _value(self, own: Any, kind: type) -> bytes:
        for kinds, method in _OF_KINDS:
            if isinstance(own, kinds):
                return method(self, own)
        if dataclasses.is_dataclass(own):
            return _hash("fields", _named(kind), *map(self.value, _fields(own)))
        if _path(own) is not None:
            return self._function(own)
        # An object of a class that says what it is made from, as for `pickle`, or without state.
        if kind.__getstate__ is not object.__getstate__:
            return _hash("state", _named(kind), self.value(own.__getstate__()))
        if _is_bare(own):
            return _hash("bare", _named(kind))
        raise Unnameable(f"an object of the class {kind.__qualname__}")

    def _array(self, own: Any) -> bytes:
        try:
            values = np.asarray(own)
        except TypeError as error:
            # A key of random numbers.
            raise Unnameable(str(error)) from None
        return _hash("values", f"{values.shape} {values.dtype.str}", values.tobytes())

    def _member(self, own: enum.Enum) -> bytes:
        return _hash("member", _named(type(own)), own.name)

    def _items(self, own: Iterable[Any]) -> bytes:
        return _hash("items", _named(type(own)), *map(self.value, own))

    def _set(self, own: Iterable[Any]) -> bytes:
        return _hash("set", _named(type(own)), *sorted(map(self.value, own)))

    def _map(self, own: Mapping[Any, Any]) -> bytes:
        return _hash("map", _named(type(own)), *map(self.value, own.items()))

    def _partial(self, own: functools.partial[Any]) -> bytes:
        return _hash("partial", *map(self.value, (own.func, own.args, own.keywords)))

    def _method(self, own: types.MethodType) -> bytes:
        return _hash("method", *map(self.value, (own.__func__, own.__self__)))

    def _function(self, own: Any) -> bytes:
        """A function of a package by its name; one that was made within another function by its
        place in the code and what it closes over."""
        name = _path(own)
        if name is not None:
            return _hash("function", name)
        if not _is_trusted(own.__module__):
            raise Unnameable(f"the function {own.__qualname__}")
        closed = tuple(cell.cell_contents for cell in own.__closure__ or ())
        parts = (closed, own.__defaults__, own.__kwdefaults__)
        place = f"{own.__module__} {own.__qualname__}"
        return _hash("made", place, _code(own.__code__), *map(self.value, parts))


# How objects are named that are no dataclasses, in the order in which it is asked.
_OF_KINDS: tuple[tuple[Any, Callable[[Identity, Any], bytes]], ...] = (
    (jax.Array | np.ndarray | np.generic, Identity._array),
    (enum.Enum, Identity._member),
    (type, lambda _, own: _hash("class", _named(own))),
    (
        jax.ShapeDtypeStruct,
        lambda _, own: _hash("shape", f"{own.shape} {own.dtype} {own.weak_type}"),
    ),
    (np.dtype, lambda _, own: _hash("dtype", own.str)),
    (types.ModuleType, lambda _, own: _hash("module", own.__name__)),
    (tuple | list, Identity._items),
    (set | frozenset, Identity._set),
    (Mapping, Identity._map),
    (functools.partial, Identity._partial),
    (types.MethodType, Identity._method),
    (types.FunctionType, Identity._function),
)


def _code(own: types.CodeType) -> bytes:
    """Two functions may be made in one line."""
    constants = [
        _code(x) if isinstance(x, types.CodeType) else repr((type(x), x)) for x in own.co_consts
    ]
    names = repr((own.co_firstlineno, own.co_names, own.co_varnames, own.co_freevars))
    return _hash("code", own.co_code, names, *constants)


def _is_bare(own: Any) -> bool:
    """Is it an object of a class of Python that has no state? (One of `object` itself is there to
    be told from all others.)"""
    if type(own) is object:
        return False
    try:
        # Objects with a hidden state refuse that.
        made, arguments, *rest = own.__reduce_ex__(2)
    except (TypeError, AttributeError):
        return False
    return made is copyreg.__newobj__ and arguments == (type(own),) and not any(rest)  # pyright: ignore[reportAttributeAccessIssue]


def _fields(own: Any) -> list[tuple[str, Any]]:
    """Names and values of the fields that are set."""
    values = vars(own)
    return [(f.name, values[f.name]) for f in dataclasses.fields(own) if f.name in values]


def _hash(kind: str, *parts: str | bytes) -> bytes:
    found = hashlib.sha256(kind.encode())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(b"%d:" % len(data))
        found.update(data)
    return found.digest()


def _is_trusted(module: str | None) -> bool:
    return (module or "").partition(".")[0] in TRUSTED


def _path(own: Any) -> str | None:
    """Module and name of a class or function, if these lead to it and its code is known."""
    module, name = getattr(own, "__module__", None), getattr(own, "__qualname__", None)
    if not (isinstance(module, str) and isinstance(name, str) and _is_trusted(module)):
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    # What is decorated stands behind its decorators.
    while found is not own and found is not None:
        found = getattr(found, "__wrapped__", None)
    return f"{module}:{name}" if found is own else None


def _named(kind: type) -> str:
    name = _path(kind)
    if name is None:
        raise Unnameable(f"the class {kind.__qualname__}")
    return name
