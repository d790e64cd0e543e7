"""Drawings of mechanisms, independent of any library."""

from ._scene import (
    DrawnBody as DrawnBody,
    Scene as Scene,
    scene as scene,
    Solid as Solid,
    Strand as Strand,
    Symbol as Symbol,
)
from ._skeleton import rope_lines as rope_lines, Skeleton as Skeleton, skeleton as skeleton
