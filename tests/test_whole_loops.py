"""Loops that XLA can make one function of, and the arrays that are put together for them."""

import os
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs._linalg import placed


# Of any size: what is asked is whether anything in them keeps XLA from it.
WHOLE_LOOPS = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1000000000"


class TestPlaced:
    @pytest.mark.parametrize(
        ("sizes", "places", "size"),
        [
            ([(2, 3)], [[[2, 0, 1], [3, 5, 4]]], 6),
            ([(3,)], [[0, 1, 2]], 3),
            ([(2,), (2, 2)], [[1, 1], [[0, 1], [4, 4]]], 7),
            ([(0,)], [[]], 4),
            # All on one place of many: no table is made.
            ([(300,)], [[7] * 300], 1000),
        ],
    )
    def test_against_a_loop(self, sizes, places, size, rng):
        parts = [jnp.asarray(rng.normal(size=shape)) for shape in sizes]
        places = [np.array(place, dtype=int) for place in places]
        wanted = np.zeros(size)
        for part, place in zip(parts, places, strict=True):
            for x, k in zip(np.ravel(part), place.ravel(), strict=True):
                wanted[k] += x
        np.testing.assert_allclose(placed(parts, places, size), wanted, rtol=1e-13)
        weights = rng.normal(size=size)
        slopes = jax.grad(lambda x: placed(x, places, size) @ weights)(parts)
        for slope, place in zip(slopes, places, strict=True):
            np.testing.assert_array_equal(slope, weights[place])


PROGRAM = """
import sys
import jax
jax.config.update("jax_enable_x64", True)
import jaxmbs as jm

system = jm.mechanisms.get(sys.argv[1]).system()

def run(q, v):
    return jm.simulate(system, q, v, 0.3, every=0.1).q

compiled = jax.jit(run).lower(system.reference_q, system.initial_v).compile()
text = compiled.as_text()
print("FUNCTIONS", text.count("xla_cpu_small_call"))
print("LOOPS", text[text.index("ENTRY"):].count(" while("))
print("END", *(float(x) for x in compiled(system.reference_q, system.initial_v)[-1]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["four-bar-chain:1", "mobile-robot"])
def test_a_run_is_one_loop(mechanism):
    """Holonomic and not: nothing in a step keeps XLA from making one function of all."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, mechanism],
        env=os.environ | {"XLA_FLAGS": f"{os.environ['XLA_FLAGS']} {WHOLE_LOOPS}"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = dict(re.findall(r"^(\w+) (.*)$", done.stdout, re.MULTILINE))
    assert int(found["FUNCTIONS"]) > 0
    assert int(found["LOOPS"]) == 0
    system = jm.mechanisms.get(mechanism).system()
    apart = jm.simulate(system, system.reference_q, system.initial_v, 0.3, every=0.1)
    end = np.array(found["END"].split(), dtype=float)
    np.testing.assert_allclose(end, apart.q[-1], rtol=1e-7, atol=1e-9)
