"""What the sweep benchmark is measured against says the same."""

import importlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as jm


BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.parametrize("name", ["mobile-robot", "four-bar-chain-spatial:1"])
def test_the_scipy_loop_gives_the_same_verdicts(name, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    methods = importlib.import_module("_sweep_methods")
    system = jm.mechanisms.get(name).system()
    report = jm.analyze(system, system.reference_q)
    loop = methods.ScipyLoop(system)
    q = np.asarray(system.reference_q)
    rank, unique = loop.reactions(q)
    assert rank == int(report.rank)
    np.testing.assert_array_equal(unique, report.reaction_unique)
    ranks, verdicts = loop.singular_values(np.stack([q, q]))
    np.testing.assert_array_equal(ranks, rank)
    np.testing.assert_array_equal(verdicts, [unique, unique])


def test_parts_of_a_batch_are_joined(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    methods = importlib.import_module("_sweep_methods")
    many = methods.batched(lambda factor, x: factor * x, jnp.asarray(2.0), 4)
    values = jnp.arange(12.0)
    np.testing.assert_array_equal(methods.joined(many(values)), 2 * values)
    with pytest.raises(ValueError, match="no whole parts of 4"):
        many(jnp.arange(6.0))
    assert jax.tree.leaves(many(values[:2]))[0].shape == (2,)
