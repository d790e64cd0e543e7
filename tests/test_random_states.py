"""Random mechanisms and random bad input: never a finite answer.

One lane draws the same examples in every run; the other one explores with a fresh seed, and prints
how to repeat what it finds (`@reproduce_failure`, and the arguments themselves).
"""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from random_mechanisms import STRUCTURES as DRAWN
from representatives import representatives
from test_states import FUNCTIONS, METHODS

import jaxmbs as jm
from jaxmbs.io import model_from_tables
from jaxmbs.results import RESULTS


STRUCTURES = {structure.name: structure for structure in DRAWN}
SEEDS = 2
EXAMPLES = 100

# Drawn with numbers of their own, so that one program serves all of a structure.
CHOSEN = tuple(sorted(STRUCTURES))[::6]
TRACED = ("cart-with-three-wheels", "lead-screw")


@functools.cache
def mechanism(name: str, seed: int) -> jm.MultibodySystem:
    return model_from_tables(STRUCTURES[name](np.random.default_rng(seed))).system()


@pytest.fixture(scope="module", autouse=True)
def _drawn() -> None:
    """Hypothesis wants no other random numbers inside of its own."""
    for name in {*CHOSEN, *TRACED}:
        for seed in range(SEEDS):
            mechanism(name, seed)


# A number that is none, or that double precision cannot carry.
BROKEN = st.sampled_from([np.nan, np.inf, -np.inf, 1e101, -1e300])


@st.composite
def broken_vector(draw: Any, good: np.ndarray, quaternions: np.ndarray) -> Any:
    """What is no vector of a state, made of a good one."""
    ways = ["entries", "length", "batch", "type", "nothing"] + ["rotation"] * (len(quaternions) > 0)
    way = draw(st.sampled_from(ways))
    if way == "entries":
        places = draw(st.sets(st.integers(0, good.size - 1), min_size=1))
        return np.where(np.isin(np.arange(good.size), list(places)), draw(BROKEN), good)
    if way == "length":
        size = draw(st.integers(0, 3 * good.size).filter(lambda n: n != good.size))
        return np.resize(good, size)
    if way == "batch":
        return np.tile(good, (draw(st.integers(1, 4)), 1))
    if way == "type":
        return good.astype(draw(st.sampled_from([np.float32, np.float16, int, complex, bool, str])))
    if way == "rotation":
        own = quaternions[draw(st.integers(0, len(quaternions) - 1))]
        length = draw(st.floats(0.0, 1e3).filter(lambda x: abs(x - 1) > 1e-5))
        return np.where(np.isin(np.arange(good.size), own), length * good, good)
    return draw(st.sampled_from([None, "q", good.tolist(), {}, 1.0]))


BAD_TIMES = st.one_of(BROKEN, st.sampled_from([None, "0", [0.0], np.zeros(2), True]))

# What takes all three of a state.
NAMES = sorted(
    {"acceleration_offset", "analyze", "certify", "compare", "constraint_matrix", "descriptor"}
    | {"force", "linearise", "reactions", "release_options", "screen", "simulate", "singularity"}
    | {"solve_with_friction", "velocity_residual", "verdicts", "workspace"}
)


@st.composite
def bad_call(draw: Any) -> tuple[str, str, int, tuple[Any, Any, Any]]:
    """A function, a mechanism, and a state of which at least one part is bad."""
    name, seed = draw(st.sampled_from(CHOSEN)), draw(st.integers(0, SEEDS - 1))
    system = mechanism(name, seed)
    q, v, t = np.asarray(system.reference_q), np.asarray(system.initial_v), 0.0
    bad = draw(st.sets(st.sampled_from("qvt"), min_size=1))
    if "q" in bad:
        q = draw(broken_vector(q, system.structure.quaternions))
    if "v" in bad:
        v = draw(broken_vector(v, np.zeros((0, 4), int)).filter(lambda x: x is not None))
    if "t" in bad:
        t = draw(BAD_TIMES)
    return draw(st.sampled_from(NAMES)), name, seed, (q, v, t)


def check_refused(call: tuple[str, str, int, tuple[Any, Any, Any]]) -> None:
    function, name, seed, state = call
    with pytest.raises((TypeError, ValueError)) as told:
        {**FUNCTIONS, **METHODS}[function](mechanism(name, seed), *state)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 300


@settings(max_examples=EXAMPLES, derandomize=True, deadline=None)
@given(bad_call())
def test_bad_input_is_refused(call):
    check_refused(call)


@settings(max_examples=EXAMPLES, database=None, deadline=None, print_blob=True)
@given(bad_call())
def test_bad_input_is_refused_with_fresh_seeds(call):
    check_refused(call)


@functools.cache
def asked(name: str) -> Any:
    """One program for all mechanisms of a structure, and all lanes."""

    def verdicts(system: Any, q: Any, v: Any, t: Any) -> Any:
        return jm.analyze(system, q, v, t), jm.screen(system, q, v, t)

    return eqx.filter_jit(jax.vmap(verdicts, in_axes=(None, 0, 0, 0)))


@st.composite
def broken_numbers(draw: Any, good: np.ndarray, quaternions: np.ndarray) -> np.ndarray:
    """Of the right shape and type."""
    if len(quaternions) and draw(st.booleans()):
        own = quaternions[draw(st.integers(0, len(quaternions) - 1))]
        length = draw(st.floats(0.0, 1e3).filter(lambda x: abs(x - 1) > 1e-5))
        return np.where(np.isin(np.arange(good.size), own), length * good, good)
    places = draw(st.sets(st.integers(0, good.size - 1), min_size=1))
    return np.where(np.isin(np.arange(good.size), list(places)), draw(BROKEN), good)


@pytest.mark.parametrize("name", representatives(TRACED, "lead-screw"))
@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.data())
def test_a_bad_lane_decides_nothing_and_spoils_no_other(name, data):
    system = mechanism(name, data.draw(st.integers(0, SEEDS - 1)))
    q, v = np.asarray(system.reference_q), np.asarray(system.initial_v)
    lane = data.draw(st.sampled_from("qvt"))
    bad = {
        "q": q if lane != "q" else data.draw(broken_numbers(q, system.structure.quaternions)),
        "v": v if lane != "v" else data.draw(broken_numbers(v, np.zeros((0, 4), int))),
        "t": 0.0 if lane != "t" else data.draw(BROKEN),
    }
    batch = [
        jnp.asarray(np.stack([a, b])) for a, b in ((q, bad["q"]), (v, bad["v"]), (0.0, bad["t"]))
    ]
    for found in asked(name)(system, *batch):
        one, none = (jax.tree.map(lambda x, k=k: x[k], found) for k in range(2))
        assert none.result == RESULTS.state_not_valid
        assert not np.any(none.reaction_unique.decided)
        assert np.isnan(none.reaction_measure).all()
        assert int(none.redundancy) == -1
        assert bool(none.doubtful)
        assert one.result == RESULTS.successful
        assert np.all(one.reaction_unique.decided)
        assert np.isfinite(one.reaction_measure).all()
