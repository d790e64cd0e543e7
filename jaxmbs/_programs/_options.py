"""Compiler options of programs that are called with known numbers.

Each of them runs once or a few times in its process, so that compiling takes longer than what is
compiled. Three options of XLA for CPUs shorten it:

- Of its two ways to write kernels the older one takes half of the time; what it writes runs 0.9 to
  1.2 times as long.
- Its parts are compiled one after the other, which takes a tenth less than in threads.
- Without optimisation a program for a single state compiles in a tenth of the time. CPU seconds,
  AMD EPYC: `analyze` of the parallelogram 1.56 by default, 0.84 with the older kernels, 0.03
  without optimisation, and 1.2, 0.9 and 1.2 ms to run; `reactions` 5.5, 2.7, 0.45, and 3.1, 1.9,
  2.3 ms; of eighty bodies 4.2, 2.5, 0.1, and 51, 53, 211 ms. What loops over steps runs twice as
  long without it (a second of the parallelogram 36, 40 and 91 ms, in 14.9, 9.8 and 2.5 s), and is
  compiled with it. Searches for a design are not: they ask some tens of times for values and slopes
  (of that second 84 and 33 s to compile, 0.55 and 1.0 s to run; of a driven mechanism 25 and 9 s,
  15 ms both).

A fourth lets each program run in one thread. On two cores those that share the work of a kernel
waited for each other for ever in one of some ten sweeps of masses (jaxlib 0.10.2), and nothing of
what is computed here is so large that it gains by more of them; devices and processes are what
sweeps are spread over.

They belong to a program, not to the process: what users compile themselves, with these functions
inside or not, is compiled as they say, and so is everything where they have set the flags of the
compiler.
"""

import enum
from typing import Any

import jax

from .._compiler_flags import set_by_the_user


class Compiling(enum.Enum):
    """The use that a program is compiled for: many steps in loops, or few evaluations."""

    QUICK = "quick"
    ONCE = "once"


_QUICK: dict[str, Any] = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
    "xla_cpu_multi_thread_eigen": False,
}
_OPTIONS: dict[Compiling, dict[str, Any]] = {
    Compiling.QUICK: _QUICK,
    Compiling.ONCE: _QUICK | {"xla_backend_optimization_level": "0"},
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


# Those of them that this version of the compiler has refused.
_unknown: list[dict[str, Any]] = []


def compiler_options(compiling: Compiling) -> dict[str, Any]:
    """Options of the compiler for a program; none on other platforms than CPUs, and none where the
    user has set flags."""
    if set_by_the_user() or jax.default_backend() != "cpu":
        return {}
    return _OPTIONS[compiling]


def compiled(lowered: Any, options: dict[str, Any]) -> Any:
    """The program compiled with these options, as far as this version knows them."""
    if options and options not in _unknown:
        try:
            return lowered.compile(compiler_options=options)
        except jax.errors.JaxRuntimeError as error:
            if "option" not in str(error):
                raise
            _unknown.append(options)
    return lowered.compile()


def default_device() -> Any:
    """The device of this process on which JAX places arrays by default."""
    settings: Any = jax.config
    given = settings.jax_default_device
    if given is None or isinstance(given, str):
        return jax.local_devices(backend=given)[0]
    return given


def settings_in_force() -> tuple[Any, ...]:
    """Those settings of JAX that programs depend on."""
    return tuple(getattr(jax.config, name, None) for name in _SETTINGS)
