"""Names of the built-in mechanisms, without what they are made of."""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType


# By name, the module within this package and the function in it.
PLAIN: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "mobile-robot": ("_robot", "mobile_robot"),
        "parallelogram": ("_parallelogram", "parallelogram"),
        "elastic-parallelogram": ("_parallelogram", "elastic_parallelogram"),
        "slider-crank": ("_small", "slider_crank"),
        "driven-slider-crank": ("_small", "driven_slider_crank"),
        "door": ("_small", "door"),
        "bennett": ("_small", "bennett"),
        "sarrus": ("_small", "sarrus"),
        "three-crank-parallelogram": ("_small", "three_crank_parallelogram"),
        "table": ("_small", "table"),
        "whipple-bicycle": ("_bicycle", "whipple_bicycle"),
        "spiral": ("_spiral", "spiral"),
        "swarm": ("_swarm", "swarm"),
        "flexible-joint-manipulator": ("_manipulator", "flexible_joint_manipulator"),
    }
)
# Those of any number of windows.
SIZED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "four-bar-chain": ("_chain", "four_bar_chain"),
        "four-bar-chain-spatial": ("_chain", "four_bar_chain_spatial"),
    }
)

# Made by `docs/make_files.py`, as is all in this folder.
FILES = Path(__file__).parent / "files"


def names() -> tuple[str, ...]:
    """Names of the built-in mechanisms."""
    return (*PLAIN, *SIZED)


def describe(name: str) -> str:
    """The first line of a mechanism's description."""
    return _descriptions()[name]


@functools.cache
def _descriptions() -> dict[str, str]:
    return json.loads((FILES / "descriptions.json").read_text(encoding="utf-8"))


def model_file(name: str) -> str | None:
    """The model file of a built-in mechanism; None for one that has none, or is made to a size."""
    path = FILES / f"{name}.toml"
    return path.read_text(encoding="utf-8") if name in names() and path.is_file() else None
