from collections.abc import Callable, Mapping
from types import MappingProxyType

from .._system import Model
from ._chain import four_bar_chain, four_bar_chain_spatial
from ._parallelogram import parallelogram
from ._robot import mobile_robot
from ._small import (
    bennett,
    door,
    sarrus,
    slider_crank,
    table,
    three_crank_parallelogram,
)


_PLAIN: Mapping[str, Callable[[], Model]] = MappingProxyType(
    {
        "mobile-robot": mobile_robot,
        "parallelogram": parallelogram,
        "slider-crank": slider_crank,
        "door": door,
        "bennett": bennett,
        "sarrus": sarrus,
        "three-crank-parallelogram": three_crank_parallelogram,
        "table": table,
    }
)
_SIZED: Mapping[str, Callable[[int], Model]] = MappingProxyType(
    {
        "four-bar-chain": four_bar_chain,
        "four-bar-chain-spatial": four_bar_chain_spatial,
    }
)


def names() -> tuple[str, ...]:
    """Names of the built-in mechanisms."""
    return (*_PLAIN, *_SIZED)


def describe(name: str) -> str:
    """The first line of a mechanism's description."""
    function = _PLAIN.get(name) or _SIZED[name]
    return (function.__doc__ or "").strip().splitlines()[0]


def get(name: str) -> Model:
    """A built-in mechanism by its name.

    Chains take a number of windows after a colon: `"four-bar-chain:16"`; default 4.

    **Raises:** `KeyError` for a name that is none; `ValueError` for a bad number of windows.
    """
    base, _, size = name.partition(":")
    if base in _SIZED:
        if size and not (size.isdecimal() and int(size) > 0):
            raise ValueError(
                f"{name!r}: the number of windows after the colon must be a whole number "
                f"greater than zero, such as {base}:4."
            )
        return _SIZED[base](int(size or 4))
    if name in _PLAIN:
        return _PLAIN[name]()
    raise KeyError(name)
