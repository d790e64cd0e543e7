"""How programs are compiled that are called with known numbers.

Each of them runs once or a few times in its process, so that compiling takes longer than what is
compiled. Two options of XLA for CPUs shorten it:

- Of its two ways to write kernels the older one takes half of the time; what it writes runs 0.9 to
  1.2 times as long.
- Without optimisation a small program, such as one for a single state, compiles in half of that
  again, and runs up to four times as long: microseconds.

They belong to a program, not to the process: what users compile themselves, with these functions
inside or not, is compiled as they say, and so is everything where they have set the flags of the
compiler.
"""

import enum
import functools
import os
from typing import Any

import jax


class Compiling(enum.Enum):
    """What a program is compiled for: many steps in loops, or a single evaluation."""

    QUICK = "quick"
    ONCE = "once"


_OPTIONS: dict[Compiling, dict[str, Any]] = {
    Compiling.QUICK: {"xla_cpu_use_fusion_emitters": False},
    Compiling.ONCE: {
        "xla_cpu_use_fusion_emitters": False,
        "xla_backend_optimization_level": "0",
        "xla_cpu_parallel_codegen_split_count": 1,
    },
}

# What JAX is told that programs depend on.
_SETTINGS = (
    "jax_enable_x64",
    "jax_default_device",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_softmax_custom_jvp",
    "jax_threefry_partitionable",
)


def compiler_options(compiling: Compiling) -> dict[str, Any]:
    """Options of the compiler for a program; none on other platforms than CPUs, none where the user
    has set flags, and none that this version does not know."""
    if "XLA_FLAGS" in os.environ or jax.default_backend() != "cpu":
        return {}
    return _known(compiling)


@functools.cache
def _known(compiling: Compiling) -> dict[str, Any]:
    own = _OPTIONS[compiling]
    trial = jax.jit(lambda: 0).lower()
    try:
        trial.compile(compiler_options=own)
    except jax.errors.JaxRuntimeError:
        return {}
    return own


def settings_in_force() -> tuple[Any, ...]:
    """Those settings of JAX that programs depend on."""
    return tuple(getattr(jax.config, name, None) for name in _SETTINGS)
