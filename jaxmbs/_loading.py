"""Names that are loaded with their first use (PEP 562), and packages."""

import gc
import importlib
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from ._errors import optional


def load_late(
    place: str,
    names: Mapping[str, Sequence[str]],
    modules: Sequence[str] = (),
    *,
    extras: Mapping[str, str] | None = None,
    extra: str = "",
    moved: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Give a module, from within it, the names that it offers: its `__getattr__`, `__dir__` and
    `__all__`.

    **Arguments:**

    - `place`: the name of the module, or of the package of which it is the `__init__`.
    - `names`: by the module that holds them, seen from the package ("_simulate", "_forces.base").
    - `modules`: modules of the package that it offers as they are; `extras`: those that need an
      extra, and its name, which a star does not bring. `extra`: what all the others need.
    - `moved`: by the namespace that holds them now, names that the module offered before; they
      work, with a `DeprecationWarning`.
    """
    module_of = {name: module for module, own in names.items() for name in own}
    extra_of = extras or {}
    place_of = {name: module for module, own in (moved or {}).items() for name in own}
    held = vars(sys.modules[place])
    package = held["__package__"]

    def load(name: str) -> Any:
        if name in module_of:
            value = getattr(_module(f"{package}.{module_of[name]}", extra), name)
        elif name in extra_of:
            value = _module(f"{package}.{name}", extra_of[name])
        elif name in modules:
            value = _module(f"{package}.{name}", extra)
        elif name in place_of:
            # Not kept, so that each use is told.
            now = f"{package}.{place_of[name]}"
            words = f"{place}.{name} is {now}.{name} now; the old name goes with the next version."
            warnings.warn(words, DeprecationWarning, stacklevel=2)
            return getattr(_module(now, ""), name)
        else:
            raise AttributeError(f"module {place!r} has no attribute {name!r}")
        # What the module holds is found without this function.
        held[name] = value
        return value

    def listed() -> list[str]:
        return sorted({*held, *module_of, *modules, *extra_of})

    own = [name for name in held if name == "__version__" or not name.startswith("_")]
    held.update(__getattr__=load, __dir__=listed, __all__=(*own, *modules, *module_of))


def _module(name: str, extra: str) -> ModuleType:
    with _collector_at_rest(), _outside_of_programs():
        try:
            return optional(name, extra) if extra else importlib.import_module(name)
        except AttributeError as error:
            # Python takes an AttributeError from here for a name that the module does not have.
            raise ImportError(f"{name} cannot be loaded: {error}", name=name) from error


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Suspend the garbage collector while modules load. What they are made of stays, and walking
    through it again and again was an eighth of the time that `jaxmbs.simulate` took to load."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def _outside_of_programs() -> Iterator[None]:
    """A module may be loaded while a program is traced; its constants are numbers all the same."""
    if "jax" not in sys.modules:
        yield
        return
    # (Another thread may be loading it, for which this waits.)
    with importlib.import_module("jax").ensure_compile_time_eval():
        yield


class _Late(ModuleType):
    """Stands in for a module until something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(_module(self.__name__, ""), name)
        self.__dict__[name] = value
        return value


def late(module: str) -> Any:
    """A module that is loaded with its first use."""
    return _Late(module)
