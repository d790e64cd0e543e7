"""The one option of the compiler that belongs to a process and not to a program."""

import importlib.metadata
import os


# Each loop over small arrays as one function, which takes two thirds of the time to run and four
# fifths of that to compile. In bytes; XLA's own is 1024. (XLA takes it from the environment alone.)
_SMALL_LOOPS = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=300000"

# The versions of jaxlib known to accept it: one that does not ends the process.
_FIRST, _LAST = (0, 6), (0, 10)


def compile_small_loops_whole() -> None:
    """For processes in which motions run that are not differentiated: what the derivatives of a
    loop loop over would compile for minutes. To be called before JAX is loaded; flags that the user
    has set stand."""
    if "XLA_FLAGS" not in os.environ and _FIRST <= _version() <= _LAST:
        os.environ["XLA_FLAGS"] = _SMALL_LOOPS


def set_by_the_user() -> bool:
    """Has the user set flags of the compiler?"""
    return os.environ.get("XLA_FLAGS", _SMALL_LOOPS) != _SMALL_LOOPS


def _version() -> tuple[int, ...]:
    return tuple(int(x) for x in importlib.metadata.version("jaxlib").split(".")[:2])
