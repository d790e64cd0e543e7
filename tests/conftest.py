"""Settings of the whole test run, and the one source of random numbers.

Importing the package changes no setting, so the tests choose theirs here, before anything
imports it: double precision, no silent rank promotion, and annotations that are checked.
"""

import fcntl
import functools
import gc
import importlib
import importlib.util
import inspect
import itertools
import os
import pkgutil
import subprocess
import sys
import types
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


# Threads inside one small decomposition only wait for each other; to be said before the library
# is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The command line keeps compiled programs in the user's home; tests write there nothing.
os.environ["JAXMBS_NO_CACHE"] = "1"

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import typechecker
import typer.main


# Each program runs a few times, on something small: to compile it well takes longer than it
# saves, by three. (Users compile with the defaults, and so do the demos of `.ci/run`.)
_QUICK = (
    "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0 "
    "--xla_cpu_parallel_codegen_split_count=1 --xla_cpu_multi_thread_eigen=false "
    # A tenth of the time to compile went to loops, which run a few times here, and another one to
    # the compiler's checks of its own work.
    "--xla_disable_hlo_passes=while-loop-invariant-code-motion,simplify-while-loops,"
    "tuple-simplifier,hlo-verifier"
)


def _known(flags: str) -> bool:
    """A compiler that does not know a flag ends the process."""
    program = [sys.executable, "-c", "from jaxlib import xla_client as x; x.make_cpu_client()"]
    environment = os.environ | {"XLA_FLAGS": flags}
    return not subprocess.run(program, env=environment, capture_output=True, check=False).returncode


# Read when the first program is compiled; workers inherit it.
if "XLA_FLAGS" not in os.environ:
    os.environ["XLA_FLAGS"] = _QUICK if _known(_QUICK) else ""

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
# The call stack of each operation, kept in every program: a tenth of the time to compile. (Messages
# of errors keep theirs.)
jax.config.update("jax_traceback_in_locations_limit", 0)

# Shapes and types in annotations are checked, while tracing and outside of it. What
# reads, writes and prints makes many small calls without arrays, which took thrice as long.
_UNCHECKED = {
    *("_checks", "_fields", "_printing", "_settings", "cli", "io", "plot", "report", "view"),
}


def _checked_modules() -> list[str]:
    package = importlib.util.find_spec("jaxmbs")
    assert package is not None
    folders = package.submodule_search_locations or []
    names = {found.name for found in pkgutil.iter_modules(folders)}
    return [f"jaxmbs.{name}" for name in sorted(names - _UNCHECKED)]


typechecker.install(_checked_modules())


_SHORTENED = "t1_clip_floor = eqxi.prevbefore(t1_clip_floor)"


@jax.custom_jvp
def _hundred_before(x: jax.Array) -> jax.Array:
    """The number a hundred units in the last place before x."""
    bits = jax.lax.bitcast_convert_type(x, jnp.int64 if x.dtype == jnp.float64 else jnp.int32)
    # Zero counts as the least number that is not denormal, as in `equinox.internal.prevbefore`.
    least = -jnp.finfo(x.dtype).tiny
    from_zero = jax.lax.bitcast_convert_type(least.astype(x.dtype), bits.dtype) + 99
    moved = jnp.where(x > 0, bits - 100, jnp.where(x < 0, bits + 100, from_zero))
    return jax.lax.bitcast_convert_type(moved, x.dtype)


_hundred_before.defjvp(lambda primals, tangents: (_hundred_before(*primals), tangents[0]))


def _shorten_programs_of_motions() -> None:
    """Diffrax goes back from the end of a run by a hundred units in the last place, one after the
    other, in every program: an eighth of what a small one costs to compile. The same number is a
    few operations away."""
    # Not imported above, as it may compile something.
    here: Any = importlib.import_module("diffrax._integrate")
    if _SHORTENED not in inspect.getsource(here.loop):
        return
    here.range = lambda count: range(count // 100)
    here.eqxi = types.SimpleNamespace(**vars(here.eqxi) | {"prevbefore": _hundred_before})


_shorten_programs_of_motions()


class _SharedContext:
    """JAX prepares a context for each program that it writes down: three milliseconds, a third of
    what a small program costs. Here those of one file share theirs."""

    def __init__(self) -> None:
        # Not imported above: what belongs to JAX alone may be elsewhere one day.
        lowering: Any = importlib.import_module("jax._src.interpreters.mlir")
        self._shared = None
        if hasattr(lowering, "make_ir_context") and hasattr(lowering, "ir"):
            self._type = lowering.ir.Context
            self._make = lowering.make_ir_context
            lowering.make_ir_context = self

    def __call__(self) -> Any:
        # Written while another program is being written, this one would become a part of it.
        if self._type.current is not None:
            return self._make()
        if self._shared is None:
            self._shared = self._make()
        return self._shared

    def renew(self) -> None:
        """What was written there takes memory as long as the context lasts."""
        self._shared = None


_CONTEXT = _SharedContext()


# The command line is put together at every call that a test makes of it; once is enough, as in the
# process of a user. (Before `typer.testing` is imported, which takes it from here.)
typer.main.get_command = functools.cache(typer.main.get_command)


# Tracing makes many objects that live on: at the usual thresholds a tenth of its time goes to
# looking through them.
gc.set_threshold(100_000, 20, 20)


def pytest_collection_finish() -> None:
    # What is imported by now stays, and is more than half of all objects: when programs are
    # forgotten below, only the others are looked through.
    gc.freeze()


def pytest_sessionfinish() -> None:
    # pytest looks through all that is left once more, as the process ends.
    gc.freeze()


def _most_mappings() -> int:
    """How many of a process its compiled programs may hold, of the 65530 that Linux allows by
    default; a file makes up to 8000. What they belong to takes memory too: 57,000 went with 5.9
    gigabytes of the process. (Without the small ones the next file begins some seconds late.)"""
    limit = Path("/sys/fs/cgroup/memory.max")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        memory = min(memory, int(text))
    own = memory / int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return 48_000 if own > 1e10 else 20_000


# The files that take longest, longest first: so the workers end together. (What stands after them
# is short, and its order does not matter.)
_LONG = (
    "test_readme",
    "test_passages",
    "test_udwadia_kalaba_examples",
    "test_chunks",
    "test_design_studies",
    "test_motion_commands",
    "test_mobility",
    "test_design_guard",
    "test_examples",
    "test_elastic_limits",
    "test_robot_starts",
    "test_servo_constraints",
    "test_vanishing_rows",
    "test_small_motions_with_states",
    "test_design_derivatives",
    "test_light_parts_as_data",
    "test_simulate",
    "test_explanations",
    "test_generalized_body",
    "test_geometric_stiffening",
    "test_sites",
    "test_solvability",
    "test_motion_derivatives",
    "test_motion_questions",
    "test_zero_objectives",
    "test_parts",
    "test_split_rods",
    "test_published_motions",
    "test_elastic_resolution",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: k for k, name in enumerate(_LONG)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=0, help="base seed of all random numbers")


def pytest_configure(config: pytest.Config) -> None:
    # Compiling dominates the run, so what was compiled is kept for the next one.
    if getattr(config, "cache", None) is not None:
        jax.config.update("jax_compilation_cache_dir", str(_own_folder(config)))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def _own_folder(config: pytest.Config) -> Path:
    """A folder that no other running process uses: a compiled program that another one is
    still writing crashes its reader. Each worker has one, also of a second run at a time."""
    assert config.cache is not None
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    for k in itertools.count():
        name = f"jax-{worker}-{k}"
        lock = (config.cache.mkdir("jax-locks") / name).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            continue
        # The lock lasts as long as its file stays open.
        config.add_cleanup(lock.close)
        return config.cache.mkdir(name)
    raise AssertionError


@pytest.fixture(scope="module", autouse=True)
def _forget_compiled_programs() -> Iterator[None]:
    """Each program holds several memory mappings: kept all, they exceed what the operating system
    allows to one process, which then crashes. Below a fraction of that they are kept: many of the
    small ones are the same in every module."""
    yield
    _CONTEXT.renew()
    forget_many_programs()


@pytest.fixture
def forgets_programs() -> Iterator[None]:
    """Of tests of which each makes very many programs."""
    yield
    forget_many_programs()


def forget_many_programs() -> None:
    """Forget compiled programs if they hold many mappings: those of the package, which are large,
    and the others if that is not enough."""
    most = _most_mappings()
    if _mappings() <= most:
        return
    # Not imported above: what is imported under annotations that are checked comes later.
    importlib.import_module("jaxmbs._programs").forget_programs()
    gc.collect()
    if _mappings() > most / 2:
        jax.clear_caches()
        gc.collect()


def _mappings() -> int:
    """Of this process; where it does not say, more than are kept."""
    own = Path("/proc/self/maps")
    return own.read_bytes().count(b"\n") if own.exists() else sys.maxsize


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A seed of the test's own; pytest shows what is printed here when the test fails."""
    own = zlib.crc32(request.node.nodeid.split("::", 1)[-1].encode())
    value = own + int(request.config.getoption("--seed") or 0)
    print(f"random seed: {value} (change it with --seed)")
    return value


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    """Random numbers of the test's own."""
    return np.random.default_rng(seed)


@pytest.fixture(autouse=True)
def _check_annotations_anew() -> None:
    typechecker.begin_test()
