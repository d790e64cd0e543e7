"""Drawings of mechanisms, independent of any library."""

from ._moving import GROUND as GROUND
from ._scene import (
    DrawnBody as DrawnBody,
    Scene as Scene,
    scene as scene,
    Strand as Strand,
    Symbol as Symbol,
)
from ._skeleton import rope_lines as rope_lines, Skeleton as Skeleton, skeleton as skeleton
from ._solids import Solid as Solid
from ._symbols import GROUND_COLOUR as GROUND_COLOUR
