"""Settings of the whole test run, and the one source of random numbers.

Importing the package changes no setting, so the tests choose theirs here, before anything
imports it: double precision, no silent rank promotion, and annotations that are checked.
"""

import os
import zlib


# Threads inside one small decomposition only wait for each other; to be said before the library
# is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import jaxtyping
import numpy as np
import pytest


jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")

# Shapes and types in annotations are checked at every call, while tracing and outside of it.
jaxtyping.install_import_hook("jaxmbs", "beartype.beartype")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=0, help="base seed of all random numbers")


def pytest_configure(config: pytest.Config) -> None:
    # Compiling dominates the run, so what was compiled is kept. Workers that share a folder
    # read each other's unfinished files, hence one folder each.
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    folder = config.cache.mkdir(f"jax-{worker}") if config.cache else None
    if folder is not None:
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


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
