from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class State(NamedTuple):
    """The state in which a file is read: by a keyframe, with these control inputs of actuators (by
    name), with the root link of a URDF free to move, and with files outside of its folder
    allowed."""

    keyframe: str | None = None
    controls: Mapping[str, float] = MappingProxyType({})
    floating: bool = False
    outside: bool = False
