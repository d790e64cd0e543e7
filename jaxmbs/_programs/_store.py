"""Executables on disk: a folder with one file for each.

A file holds the executable as XLA serialises it and the answer that its arrays belong into. It
is written beside its place and then moved there, so that it is whole or not there, whoever else
writes or is killed. What is loaded can do anything that this process can: a file is read only if
it and its folder are the user's own and nobody else may write them, and if its content has the
digest that it was written with. Whatever cannot be read, for whichever reason, is computed anew
and replaced.
"""

import contextlib
import copyreg
import dataclasses
import enum
import functools
import hashlib
import importlib.util
import io
import itertools
import os
import pickle
import pickletools
import stat
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import serialize_executable
from jaxlib import lapack

from ._options import default_device


# --------------------------------------------------------------------------------------------------
# Serialised executables without the operations that only the compiler reads.
#
# XLA serialises an executable for CPUs as object code, the order of calls into that code with their
# places in memory, and the operations that both were compiled from. To load it, XLA builds all
# these operations once more, which takes three quarters of the time: 0.25 CPU s of a chunk of a run
# of the parallelogram, where linking of the object code takes 0.02 s. Nearly nine tenths of the
# operations (13,200 of 15,500 there) stand inside of fused computations. Such a computation is one
# call of object code, of which only the shape of the result counts any more. So each call is
# replaced by one operation of that shape, without arguments, that is never run, and the computation
# is left out. The chunk loads in 0.09 s, to the same object code.
#
# What is read here is the encoding of Protocol Buffers: fields with a number and a type, one behind
# the other (https://protobuf.dev/programming-guides/encoding). Fields of other numbers are copied
# as they are. The numbers are those of `ExecutableAndOptionsProto` (xla/pjrt/proto), of
# `CompilationResultProto` (xla/service/cpu/executable.proto) and of `HloModuleProto`
# (xla/service/hlo.proto). A version that has others finds nothing to replace, or makes an
# executable that cannot be loaded, which the store then writes as a whole.
# --------------------------------------------------------------------------------------------------


# ExecutableAndOptionsProto, CompilationResultProto, HloModuleProtoWithConfig
_SERIALIZED_EXECUTABLE = 1
_HLO_MODULE_WITH_CONFIG, _THUNK_SEQUENCE = 1, 6
_HLO_MODULE = 1

# HloModuleProto, HloComputationProto
_COMPUTATIONS = 3
_INSTRUCTIONS, _PROGRAM_SHAPE, _COMPUTATION_ID = 2, 4, 5

# HloInstructionProto
_NAME, _OPCODE, _SHAPE, _FUSION_KIND, _CALL_TARGET, _ID, _CALLED = 1, 2, 3, 11, 28, 35, 38

# Fusions that are object code. (Those of the kind "kCustom" are read by the library that runs
# them.)
_COMPILED_KINDS = (b"kLoop", b"kInput", b"kOutput")

# Types of fields.
_VARINT, _BYTES = 0, 2
_LENGTHS = {1: 8, 5: 4}


# Number, value, and the bytes of both.
_Field = tuple[int, Any, bytes]


def without_fused_operations(payload: bytes) -> bytes:
    """The same executable, as by `serialize_executable.serialize`, without the operations inside of
    fused computations; as it is where its format is not known."""
    if jax.default_backend() != "cpu":
        return payload
    made, start = [], 0
    for code, argument, place in pickletools.genops(payload):
        if place is None or code.name not in ("FRAME", "BINBYTES"):
            continue
        made.append(payload[start:place])
        # What JAX pickles comes in frames of so many bytes, which nobody needs.
        start = place + 9
        if code.name == "BINBYTES" and isinstance(argument, bytes):
            try:
                own = _executable(argument)
            except (ValueError, IndexError, KeyError, TypeError):
                return payload
            made.append(code.code.encode() + len(own).to_bytes(4, "little") + own)
            start = place + 5 + len(argument)
    return b"".join((*made, payload[start:]))


def _executable(data: bytes) -> bytes:
    # The first message, behind its length, is about how JAX uses the executable.
    length, start = _varint(data, 0)
    end = start + length
    return data[:end] + _replaced(data[end:], _SERIALIZED_EXECUTABLE, _compilation_result)


def _compilation_result(data: bytes) -> bytes:
    if all(number != _THUNK_SEQUENCE for number, _, _ in _message_fields(data)):
        # Its calls are made from the operations when it is loaded.
        raise ValueError("no calls")
    return _replaced(
        data, _HLO_MODULE_WITH_CONFIG, lambda config: _replaced(config, _HLO_MODULE, _module)
    )


def _module(data: bytes) -> bytes:
    fields = list(_message_fields(data))
    fused: set[int] = set()
    for number, value, _ in fields:
        if number == _COMPUTATIONS:
            fused.update(_fused_by(value))
    made: list[bytes] = []
    for number, value, whole in fields:
        if number != _COMPUTATIONS:
            made.append(whole)
        elif _first(value, _COMPUTATION_ID) not in fused:
            made.append(_message(_COMPUTATIONS, _computation(value)))
    return b"".join(made)


def _fused_by(computation: bytes) -> Iterator[int]:
    """Numbers of the computations that are called as fused and compiled ones."""
    for number, operation, _ in _message_fields(computation):
        if number == _INSTRUCTIONS and _is_compiled(operation):
            for of_field, value, _ in _message_fields(operation):
                if of_field == _CALLED:
                    yield from [value] if isinstance(value, int) else _varints(value)


def _computation(data: bytes) -> bytes:
    """A computation whose fusions are operations that are never run."""
    made: list[bytes] = []
    for number, value, whole in _message_fields(data):
        if number == _INSTRUCTIONS and _is_compiled(value):
            made.append(_message(_INSTRUCTIONS, _never_run(value)))
        # (The shape of the whole is that of its parameters and its result once more.)
        elif number != _PROGRAM_SHAPE:
            made.append(whole)
    return b"".join(made)


def _is_compiled(operation: bytes) -> bool:
    return _is(operation, b"fusion") and _first(operation, _FUSION_KIND) in _COMPILED_KINDS


def _is(operation: bytes, kind: bytes) -> bool:
    # (To look for the bytes is a tenth of the work, and answers nearly always.)
    return kind in operation and _first(operation, _OPCODE) == kind


def _never_run(operation: bytes) -> bytes:
    """An operation without arguments in place of another one: the only kind that has any shape."""
    kept = [
        whole for number, _, whole in _message_fields(operation) if number in (_NAME, _SHAPE, _ID)
    ]
    call = _message(_OPCODE, b"custom-call"), _message(_CALL_TARGET, b"compiled")
    return b"".join((*kept, *call))


def _replaced(data: bytes, number: int, function: Callable[[bytes], bytes]) -> bytes:
    """A message, with the function of its fields of that number."""
    return b"".join(
        _message(number, function(value)) if of_field == number else whole
        for of_field, value, whole in _message_fields(data)
    )


def _first(data: bytes, number: int) -> Any:
    """The first field of that number; None if there is none."""
    return next((value for of_field, value, _ in _message_fields(data) if of_field == number), None)


def _message_fields(data: bytes) -> Iterator[_Field]:
    """The fields of a message.

    **Raises:** `ValueError` or `IndexError` where it is not one.
    """
    place = 0
    while place < len(data):
        start = place
        key, place = _varint(data, place)
        kind = key & 7
        if kind == _VARINT:
            value, place = _varint(data, place)
        else:
            if kind == _BYTES:
                length, place = _varint(data, place)
            elif kind in _LENGTHS:
                length = _LENGTHS[kind]
            else:
                raise ValueError(f"fields of type {kind} are not known")
            value, place = data[place : place + length], place + length
        yield key >> 3, value, data[start:place]


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number in groups of seven bits, lowest first, and the place behind it."""
    value = shift = 0
    while True:
        group = data[place]
        place += 1
        value |= (group & 127) << shift
        shift += 7
        if group < 128:
            return value, place


def _varints(data: bytes) -> Iterator[int]:
    """Numbers, one behind the other."""
    place = 0
    while place < len(data):
        number, place = _varint(data, place)
        yield number


def _message(number: int, data: bytes) -> bytes:
    return _as_varint(number << 3 | _BYTES) + _as_varint(len(data)) + data


def _as_varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


# --------------------------------------------------------------------------------------------------
# Names for everything that a program depends on, the same in every process.
#
# A compiled program depends on its function, on the shapes and types of its arrays, and on whatever
# of its arguments is not an array: classes, names and numbers of a structure. All of these are
# walked and written into a digest. Functions and classes count by their names where the code behind
# these is known by the versions of the packages; code of the user's own has no such name, and
# neither has an object whose class this module does not know.
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# The routines of LAPACK that executables call.
#
# JAX takes them from two modules of SciPy, and looks them up where a program that calls them is
# lowered, which one from the store is not. To import these modules is to import the package around
# them, `scipy.linalg`, with all that it needs in turn: 0.08 of the CPU seconds of a second call of
# the command line, a tenth of what JAX itself takes to load, for nothing that is used. So they are
# imported (0.01 s) with an empty package in its place, which is gone afterwards: who needs
# `scipy.linalg` imports it as ever. Only a thread that does so for the first time within the same
# hundredth of a second would find it empty.
# --------------------------------------------------------------------------------------------------


_PACKAGE = "scipy.linalg"


def load_lapack() -> None:
    """Have the routines at hand; an executable that calls one without ends the process."""
    spec = None if _PACKAGE in sys.modules else importlib.util.find_spec(_PACKAGE)
    if spec is None:
        _look_up()
        return
    sys.modules[_PACKAGE] = importlib.util.module_from_spec(spec)
    try:
        _look_up()
    finally:
        del sys.modules[_PACKAGE]


def _look_up() -> None:
    # All of them, for the name of any.
    lapack.prepare_lapack_call("getrf_ffi", np.float64)


_MAGIC = b"jaxmbs program 1\n"
_ENDING = ".program"
_HALF = ".half"

# Halves that are older (s) were left by a process that was killed.
_ABANDONED = 3600.0

_counts = itertools.count()


class Place:
    """Stands for an array of an answer: which one."""

    __slots__ = ("index",)

    def __init__(self, index: int):
        self.index = index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and other.index == self.index

    def __hash__(self) -> int:
        return hash((Place, self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        return Place, (self.index,)


class Program(NamedTuple):
    """A compiled function from `inputs` arrays to `outputs` arrays, and the answer that the latter
    belong into, with a `Place` for each."""

    compiled: Any
    inputs: int
    outputs: int
    answer: Any


class Store:
    """A folder of programs, with at most so many bytes, those of others' files in it included."""

    def __init__(self, folder: Path, most: int):
        self.folder = folder
        self._most = most
        # Programs that are written as a whole, if they are written again.
        self._unloadable: set[str] = set()
        self._is_own = _is_own(folder, stat.S_ISDIR)
        if self._is_own:
            _remove_halves(folder)

    def load(self, name: str, identity: Identity) -> Program | None:
        """The program of that name; None if there is none that can be used."""
        path = self.folder / (name + _ENDING)
        try:
            if not (self._is_own and _is_own(path, stat.S_ISREG)):
                return None
            found = _opened(path.read_bytes(), identity)
        except Exception:
            # Damaged in a way that its digest does not show, or of another build of XLA.
            self._unloadable.add(name)
            return None
        # The least recently used ones are removed first.
        with contextlib.suppress(OSError):
            os.utime(path)
        return found

    def save(self, name: str, program: Program, identity: Identity) -> None:
        """Write a program, as far as there is room and it can be written at all."""
        if not self._is_own:
            return
        try:
            data = _closed(program, identity, name in self._unloadable)
        except (TypeError, AttributeError, NotImplementedError, ValueError, pickle.PicklingError):
            # A part of it exists in this process alone.
            return
        if len(data) > self._most:
            return
        half = self.folder / f"{name}.{os.getpid()}.{next(_counts)}{_HALF}"
        try:
            with half.open("xb") as file:
                os.chmod(half, 0o600)
                file.write(data)
            half.replace(self.folder / (name + _ENDING))
            self._make_room()
        except OSError:
            # A full disk, or a folder that may only be read: the next process compiles it again.
            with contextlib.suppress(OSError):
                half.unlink()

    def _make_room(self) -> None:
        total, found = 0, []
        for path in self.folder.iterdir():
            # Another process may make room at the same time.
            with contextlib.suppress(OSError):
                about = path.stat()
                total += about.st_size
                if path.suffix == _ENDING:
                    found.append((about.st_mtime_ns, about.st_size, path))
        for _, size, path in sorted(found):
            if total <= self._most:
                break
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size


def _closed(program: Program, identity: Identity, whole: bool) -> bytes:
    payload, _, _ = serialize_executable.serialize(program.compiled)
    if not whole:
        payload = without_fused_operations(payload)
    body = io.BytesIO()
    _Pickler(body, identity).dump((payload, *program[1:]))
    data = body.getvalue()
    return _MAGIC + hashlib.sha256(data).digest() + data


def _opened(data: bytes, identity: Identity) -> Program | None:
    start = len(_MAGIC) + hashlib.sha256().digest_size
    body = memoryview(data)[start:]
    if data[:start] != _MAGIC + hashlib.sha256(body).digest():
        return None
    payload, inputs, outputs, answer = Unpickler(io.BytesIO(body), identity).load()
    if b"lapack_" in payload:
        load_lapack()
    trees = ((0,) * inputs, {}), (0,) * outputs
    given, found = map(jax.tree_util.tree_structure, trees)
    # By default JAX loads it for all devices of the process at once.
    device = default_device()
    compiled = serialize_executable.deserialize_and_load(
        payload, given, found, device.client, [device]
    )
    return Program(compiled, inputs, outputs, answer)


class _Pickler(pickle.Pickler):
    """Pickler that leaves out parts of the arguments, which whoever loads the program has."""

    def __init__(self, file: Any, identity: Identity):
        pickle.Pickler.__init__(self, file, protocol=pickle.HIGHEST_PROTOCOL)
        self._identity = identity

    def persistent_id(self, obj: Any) -> bytes | None:
        return self._identity.digest_of(obj)


class Unpickler(pickle.Unpickler):
    """Unpickler of classes of trusted packages, and of parts of the arguments by their digests."""

    def __init__(self, file: Any, identity: Identity | None = None):
        pickle.Unpickler.__init__(self, file)
        self._identity = identity

    def persistent_load(self, pid: bytes) -> Any:
        if self._identity is None:
            raise pickle.UnpicklingError("parts of arguments are not known here")
        return self._identity.of_digest(pid)

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] not in TRUSTED:
            raise pickle.UnpicklingError(f"{module} is no package that programs are made of")
        return pickle.Unpickler.find_class(self, module, name)


def _is_own(path: Path, is_kind: Any) -> bool:
    """Does a file or folder, itself and no link, belong to this user, who alone may write it?"""
    try:
        about = path.lstat()
    except OSError:
        return False
    user = getattr(os, "getuid", lambda: about.st_uid)
    return about.st_uid == user() and is_kind(about.st_mode) and not about.st_mode & 0o022


def _remove_halves(folder: Path) -> None:
    """Remove what processes that were killed had begun to write."""
    for path in folder.glob(f"*{_HALF}"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _ABANDONED:
                path.unlink()
