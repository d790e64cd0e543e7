"""Names of a package that are loaded with their first use (PEP 562)."""

import importlib
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from ._extras import optional


def load_late(
    package: str,
    names: Mapping[str, Sequence[str]],
    modules: Sequence[str] = (),
    *,
    extras: Mapping[str, str] | None = None,
    extra: str = "",
) -> None:
    """Give a package, from within it, the names that it offers: its `__getattr__`, `__dir__` and
    `__all__`.

    **Arguments:**

    - `names`: by the module within the package that holds them.
    - `modules`: modules of the package that it offers as they are; `extras`: those that need an
      extra, and its name, which a star does not bring. `extra`: what all the others need.
    """
    module_of = {name: module for module, own in names.items() for name in own}
    extra_of = extras or {}
    held = vars(sys.modules[package])

    def load(name: str) -> Any:
        if name in module_of:
            value = getattr(_module(f"{package}.{module_of[name]}", extra), name)
        elif name in extra_of:
            value = _module(f"{package}.{name}", extra_of[name])
        elif name in modules:
            value = _module(f"{package}.{name}", extra)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # What the package holds is found without this function.
        held[name] = value
        return value

    def listed() -> list[str]:
        return sorted({*held, *module_of, *modules, *extra_of})

    own = [name for name in held if name == "__version__" or not name.startswith("_")]
    held.update(__getattr__=load, __dir__=listed, __all__=(*own, *modules, *module_of))


def _module(name: str, extra: str) -> ModuleType:
    return optional(name, extra) if extra else importlib.import_module(name)
