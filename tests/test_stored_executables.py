"""Executables as they are stored: without operations that only the compiler reads."""

import pickle
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import serialize_executable

from jaxmbs._programs import _options, _store, Compiling
from jaxmbs._programs._options import compiler_options
from jaxmbs._programs._store import Identity, Program, Store, without_fused_operations


X = np.linspace(0.0, 1.0, 1600).reshape(40, 40)


def function(x: jax.Array) -> jax.Array:
    """Fused operations, a product of matrices that a library computes, and a loop that writes
    into its arrays in place."""
    rows = lax.fori_loop(0, 40, lambda k, rows: rows.at[k].set(jnp.cos(rows[k - 1])), x)
    return jnp.sum(jnp.sin(x) * rows) + jnp.tanh(x @ x)


@pytest.fixture(scope="module")
def compiled() -> jax.stages.Compiled:
    return _options.compiled(jax.jit(function).lower(X), compiler_options(Compiling.QUICK))


def test_the_same_numbers(compiled: jax.stages.Compiled):
    payload, given, found = serialize_executable.serialize(compiled)
    smaller = without_fused_operations(payload)
    loaded = serialize_executable.deserialize_and_load(smaller, given, found)
    before, after = str(compiled.as_text()), str(loaded.as_text())
    assert {"kind=kLoop", "kind=kCustom", "sine("} <= set(re.findall(r"kind=\w+|sine\(", before))
    assert "sine(" not in after
    assert len(smaller) < len(payload)
    assert np.array_equal(loaded(X), compiled(X))
    assert without_fused_operations(smaller) == smaller


@pytest.mark.parametrize("own", [b"", b"text" * 100, bytes(400), bytes(range(1, 256)) * 2])
def test_other_formats_are_left_as_they_are(own: bytes):
    payload = pickle.dumps((own, "more"), protocol=4)
    assert pickle.loads(without_fused_operations(payload)) == (own, "more")


def test_so_are_executables_without_a_list_of_calls(
    compiled: jax.stages.Compiled, monkeypatch: pytest.MonkeyPatch
):
    payload, _, _ = serialize_executable.serialize(compiled)
    monkeypatch.setattr(_store, "_THUNK_SEQUENCE", 1000)
    assert without_fused_operations(payload) == payload


def test_what_cannot_be_loaded_is_written_as_a_whole(
    compiled: jax.stages.Compiled, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    tmp_path.chmod(0o700)
    store, identity = Store(tmp_path, 10_000_000), Identity()
    program = Program(compiled, 1, 1, ())
    path = tmp_path / "one.program"
    store.save("one", program, identity)
    assert store.load("one", identity) is not None
    smaller = path.stat().st_size
    # A version of XLA that asks for more than is left.
    monkeypatch.setattr(_store, "_never_run", lambda operation: b"")
    store.save("one", program, identity)
    assert store.load("one", identity) is None
    store.save("one", program, identity)
    found = store.load("one", identity)
    assert found is not None
    assert np.array_equal(found.compiled(X)[0], compiled(X))
    assert path.stat().st_size > smaller


def test_lapack_is_there_without_the_package_around_it():
    """In a process of its own, where nobody has loaded it; SciPy is as ever afterwards."""
    code = """
import sys
import jax, numpy as np
from jaxmbs._programs._store import load_lapack

load_lapack()
assert "scipy.linalg.cython_lapack" in sys.modules
assert not {"scipy.linalg", "scipy.linalg.lapack", "numpy.f2py"} & set(sys.modules)
values = jax.numpy.linalg.eigh(jax.numpy.diag(jax.numpy.arange(3.0)))[0]
assert np.allclose(values, [0, 1, 2])
import scipy.linalg

load_lapack()
assert np.allclose(scipy.linalg.eigh(np.diag([2.0, 1.0]))[0], [1, 2])
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
