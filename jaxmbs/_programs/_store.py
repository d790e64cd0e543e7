"""Executables on disk: a folder with one file for each.

A file holds the executable as XLA serialises it and the answer that its arrays belong into. It is
written beside its place and then moved there, so that it is whole or not there, whoever else writes
or is killed. What is loaded can do anything that this process can: a file is read only if it and
its folder are the user's own and nobody else may write them, and if its content has the digest that
it was written with. Whatever cannot be read, for whichever reason, is computed anew and replaced.
"""

import contextlib
import hashlib
import io
import itertools
import os
import pickle
import stat
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.experimental import serialize_executable

from ._executable import without_fused_operations
from ._identity import Identity, TRUSTED
from ._lapack import load_lapack
from ._options import default_device


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
