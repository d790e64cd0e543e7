"""The routines of LAPACK that executables call.

JAX takes them from two modules of SciPy, and looks them up where a program that calls them is
lowered, which one from the store is not. To import these modules is to import the package around
them, `scipy.linalg`, with all that it needs in turn: 0.08 of the CPU seconds of a second call of
the command line, a tenth of what JAX itself takes to load, for nothing that is used. So they are
imported (0.01 s) with an empty package in its place, which is gone afterwards: who needs
`scipy.linalg` imports it as ever. Only a thread that does so for the first time within the same
hundredth of a second would find it empty.
"""

import importlib.util
import sys

import numpy as np
from jaxlib import lapack


_PACKAGE = "scipy.linalg"


def load_lapack() -> None:
    """Have the routines at hand; an executable that calls one without ends the process."""
    spec = None if _PACKAGE in sys.modules else importlib.util.find_spec(_PACKAGE)
    if spec is None:
        _look_up()
        return
    sys.modules[_PACKAGE] = importlib.util.module_from_spec(spec)
    try:
        _look_up()
    finally:
        del sys.modules[_PACKAGE]


def _look_up() -> None:
    # All of them, for the name of any.
    lapack.prepare_lapack_call("getrf_ffi", np.float64)
