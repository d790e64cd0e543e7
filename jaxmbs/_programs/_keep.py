"""Compiled programs, kept for the next process as executables, and in JAX's persistent compilation
cache.

What the latter needs to be safe and bounded is set here. Several processes read and write it at
once, and one may be killed while it writes. With a largest size JAX takes turns by a lock, and
writes beside each program when it was used last; that comes after the program, so that a program
without it is one of which the writing was cut short. Such a program cannot be read, and without
its time nothing can be removed any more: it is taken away at the next start. Programs are
compiled for one processor, which JAX's keys do not contain, so that each kind has a folder.
"""

import hashlib
import os
import platform
import warnings
from pathlib import Path
from typing import Any

import jax

from .. import _settings
from .._custom_types import Setting
from .._errors import optional
from ._program import use_store
from ._store import Store


# Wait for another process so long (s) at the start.
_PATIENCE = 10.0

# No program is as large (bytes).
_NONE = 2**62

# JAX's default; another value is the user's.
_DEFAULTS = {
    "jax_compilation_cache_max_size": -1,
    "jax_persistent_cache_min_compile_time_secs": 1.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
}


def keep_programs(
    folder: Setting[str | os.PathLike[str] | None] = None, *, megabytes: Setting[int] = 1024
) -> Path | None:
    """Keep compiled programs on disk, so that later processes find them and compile nothing anew.

    The command line does this automatically. A program is found again for the same mechanism and
    question with other numbers, by the same versions of JAX and of this library's code on the same
    kind of processor. What JAX has been told about its cache, by its own variables
    (`JAX_COMPILATION_CACHE_DIR`, `JAX_ENABLE_COMPILATION_CACHE`, ...) or settings, takes
    precedence. Needs the extra `cache`.

    **Arguments:**

    - `folder`: default that of the platform for such files (Linux: `~/.cache/jaxmbs`). Whoever
      can write there can make this process run what he likes. One that cannot be written is
      read; one that cannot be made is left out with a warning.
    - `megabytes`: kept at most; those not used for longest go first.

    **Returns:** the folder in use; None where JAX's own settings take precedence, or no folder is
    available.
    """
    folder = None if folder is None else Path(_settings.path(folder, "folder"))
    megabytes = _settings.whole_number(megabytes, "megabytes", least=1)
    config: Any = jax.config
    if config.jax_compilation_cache_dir is not None or not config.jax_enable_compilation_cache:
        return None
    filelock: Any = optional("filelock", "cache")
    place = (folder or _user_folder()) / _processor()
    try:
        if not place.is_absolute() and folder is None:
            raise FileNotFoundError(0, "this user has no home")
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        warnings.warn(
            f"compiled programs are not kept: the folder {str(place)!r} cannot be made "
            f"({error.strerror}); give another one, or make it.",
            stacklevel=2,
        )
        return None
    use_store(Store(place, megabytes * 1_000_000))
    if _is_writable(place, filelock):
        _choose("jax_compilation_cache_max_size", megabytes * 1_000_000)
    else:
        # Nothing is written, and reading takes no turns.
        _choose("jax_persistent_cache_min_entry_size_bytes", _NONE)
    # Small programs are many, and reading one takes a hundredth of compiling it.
    _choose("jax_persistent_cache_min_compile_time_secs", 0.0)
    config.update("jax_compilation_cache_dir", str(place))
    return place


def _is_free(name: str) -> bool:
    """Has nobody set this, so that it is JAX's default?"""
    return name.upper() not in os.environ and getattr(jax.config, name) == _DEFAULTS[name]


def _choose(name: str, value: int | float) -> None:
    if _is_free(name):
        jax.config.update(name, value)


def _user_folder() -> Path:
    platformdirs: Any = optional("platformdirs", "cache")
    return platformdirs.user_cache_path("jaxmbs", appauthor=False)


def _processor() -> str:
    """A name for the kind of processor: one for each set of instructions."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    kinds = ("model name", "flags", "Features")
    told = {line for line in lines if line.startswith(kinds)} or {platform.processor()}
    text = "\n".join([platform.system(), platform.machine(), *sorted(told)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _is_writable(place: Path, filelock: Any) -> bool:
    """Can the folder be written, with a lock? If so, takes away what was left half done."""
    size = "jax_compilation_cache_max_size"
    try:
        with filelock.FileLock(place / ".lockfile", timeout=_PATIENCE):
            # Without a largest size, which a user may have set, JAX writes no times.
            if _is_free(size) or getattr(jax.config, size) != -1:
                _remove_halves(place)
    except filelock.Timeout:
        # Others write.
        return True
    except (OSError, NotImplementedError):
        # It cannot be written, or its file system does not support locks.
        return False
    return True


def _remove_halves(place: Path) -> None:
    """Programs without the time of their last use, and times without a program."""
    found = {
        ending: {path.name.removesuffix(ending) for path in place.glob(f"*{ending}")}
        for ending in ("-cache", "-atime")
    }
    for ending, other in (("-cache", "-atime"), ("-atime", "-cache")):
        for name in found[ending] - found[other]:
            (place / f"{name}{ending}").unlink(missing_ok=True)
