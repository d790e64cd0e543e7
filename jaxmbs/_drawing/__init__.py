"""Drawings of mechanisms, independent of any library."""

from ._moving import GROUND as GROUND
from ._ropes import rope_lines as rope_lines
from ._scene import (
    DrawnBody as DrawnBody,
    Scene as Scene,
    scene as scene,
    Strand as Strand,
    Symbol as Symbol,
)
from ._solids import Solid as Solid
