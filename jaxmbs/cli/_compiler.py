"""How the command line has its programs compiled: each of them runs once or a few times, so that
compiling takes longer than what is compiled."""

import importlib.metadata
import os


# Of the compiler's two ways to write kernels the older one takes two thirds of the time; what it
# writes runs 0.9 to 1.2 times as long.
_QUICKLY = "--xla_cpu_use_fusion_emitters=false"

# In bytes; XLA's own is 1024.
_SMALL_LOOPS = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=300000"

# Without the compiler's optimisation a report of the parallelogram takes 19 CPU seconds in place of
# 32, its motion of a second included; long motions would lose more than that.
_ONCE = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"

# The versions of jaxlib known to accept these flags: one that does not ends the process.
_FIRST, _LAST = (0, 6), (0, 10)


def compile_quickly(*, small_loops: bool = False, once: bool = False) -> None:
    """Have programs compiled for a single use, unless the user has set the compiler's flags. To be
    called before the first program is compiled.

    `small_loops`: each loop over small arrays as one function, which takes two thirds of the time
    to run. For motions that are not differentiated: what their derivatives loop over would compile
    for minutes. `once`: programs that run for less than a second or so.
    """
    if "XLA_FLAGS" in os.environ or not _FIRST <= _version() <= _LAST:
        return
    flags = [_QUICKLY, *([_SMALL_LOOPS] if small_loops else []), *([_ONCE] if once else [])]
    os.environ["XLA_FLAGS"] = " ".join(flags)


def _version() -> tuple[int, ...]:
    return tuple(int(x) for x in importlib.metadata.version("jaxlib").split(".")[:2])
