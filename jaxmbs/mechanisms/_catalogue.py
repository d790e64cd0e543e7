import importlib
from collections.abc import Callable

from .. import _settings
from .._checks import shown
from .._custom_types import Setting
from .._system import Model
from ._names import PLAIN, SIZED


# A chain is made link by link, a thousandth of a second each.
_MOST_WINDOWS = 100_000


def function_of(name: str) -> Callable[..., Model]:
    """The function that makes a mechanism."""
    module, function = {**PLAIN, **SIZED}[name]
    return getattr(importlib.import_module(f".{module}", __package__), function)


def get(name: Setting[str]) -> Model:
    """A built-in mechanism by its name.

    Chains take a number of windows after a colon: `"four-bar-chain:16"`; default 4.

    **Raises:** `KeyError` for a name that is none; `ValueError` for a bad number of windows.
    """
    _settings.text(name, "name", "'four-bar-chain:16'")
    base, _, size = name.partition(":")
    if base in SIZED:
        digits = size.isdecimal() and len(size) <= len(str(_MOST_WINDOWS))
        if size and not (digits and 0 < int(size) <= _MOST_WINDOWS):
            raise ValueError(
                f"{shown(name)}: the number of windows after the colon must be a whole number "
                f"from 1 to {_MOST_WINDOWS}, such as {base}:4."
            )
        return function_of(base)(int(size or 4))
    if name in PLAIN:
        return function_of(name)()
    raise KeyError(name)
