"""Compiled programs: how they are made, and kept for the next process."""

from ._keep import keep_programs as keep_programs
from ._options import Compiling as Compiling, settings_in_force as settings_in_force
from ._program import forget_programs as forget_programs, jit as jit, program as program
from ._sealed import Sealed as Sealed, sealed as sealed
