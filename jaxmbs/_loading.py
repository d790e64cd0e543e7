"""Names of a package that are loaded with their first use (PEP 562)."""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._extras import optional


def loader(
    package: str,
    names: Mapping[str, Sequence[str]],
    modules: Sequence[str] = (),
    extras: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package.

    **Arguments:**

    - `names`: the names that the package offers, by the module within it that holds them.
    - `modules`: modules of the package that it offers as they are; `extras`: those that need an
      extra, and its name.
    """
    module_of = {name: module for module, own in names.items() for name in own}
    extra_of = extras or {}

    def load(name: str) -> Any:
        if name in module_of:
            value = getattr(importlib.import_module(f"{package}.{module_of[name]}"), name)
        elif name in extra_of:
            value = optional(f"{package}.{name}", extra_of[name])
        elif name in modules:
            value = importlib.import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # Asked for once: what stands in the module is found without this function.
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of, *modules, *extra_of})

    return load, listed
