from collections.abc import Callable, Mapping
from types import MappingProxyType

from .. import _settings
from .._checks import shown
from .._custom_types import Setting
from .._system import Model
from ._bicycle import whipple_bicycle
from ._chain import four_bar_chain, four_bar_chain_spatial
from ._manipulator import flexible_joint_manipulator
from ._parallelogram import elastic_parallelogram, parallelogram
from ._robot import mobile_robot
from ._small import (
    bennett,
    door,
    driven_slider_crank,
    sarrus,
    slider_crank,
    table,
    three_crank_parallelogram,
)
from ._spiral import spiral
from ._swarm import swarm


_PLAIN: Mapping[str, Callable[[], Model]] = MappingProxyType(
    {
        "mobile-robot": mobile_robot,
        "parallelogram": parallelogram,
        "elastic-parallelogram": elastic_parallelogram,
        "slider-crank": slider_crank,
        "driven-slider-crank": driven_slider_crank,
        "door": door,
        "bennett": bennett,
        "sarrus": sarrus,
        "three-crank-parallelogram": three_crank_parallelogram,
        "table": table,
        "whipple-bicycle": whipple_bicycle,
        "spiral": spiral,
        "swarm": swarm,
        "flexible-joint-manipulator": flexible_joint_manipulator,
    }
)
_SIZED: Mapping[str, Callable[[int], Model]] = MappingProxyType(
    {
        "four-bar-chain": four_bar_chain,
        "four-bar-chain-spatial": four_bar_chain_spatial,
    }
)
# A chain is made link by link, a thousandth of a second each.
_MOST_WINDOWS = 100_000


def names() -> tuple[str, ...]:
    """Names of the built-in mechanisms."""
    return (*_PLAIN, *_SIZED)


def describe(name: str) -> str:
    """The first line of a mechanism's description."""
    function = _PLAIN.get(name) or _SIZED[name]
    return (function.__doc__ or "").strip().splitlines()[0]


def get(name: Setting[str]) -> Model:
    """A built-in mechanism by its name.

    Chains take a number of windows after a colon: `"four-bar-chain:16"`; default 4.

    **Raises:** `KeyError` for a name that is none; `ValueError` for a bad number of windows.
    """
    _settings.text(name, "name", "'four-bar-chain:16'")
    base, _, size = name.partition(":")
    if base in _SIZED:
        digits = size.isdecimal() and len(size) <= len(str(_MOST_WINDOWS))
        if size and not (digits and 0 < int(size) <= _MOST_WINDOWS):
            raise ValueError(
                f"{shown(name)}: the number of windows after the colon must be a whole number "
                f"from 1 to {_MOST_WINDOWS}, such as {base}:4."
            )
        return _SIZED[base](int(size or 4))
    if name in _PLAIN:
        return _PLAIN[name]()
    raise KeyError(name)
