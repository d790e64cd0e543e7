"""Loops that XLA can make one function of, and the arrays that are put together for them."""

import os
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from representatives import representatives, representatives_at

import jaxmbs as jm
from jaxmbs._linalg import gather, scatter_add


# Of any size: what is asked is whether anything in them keeps XLA from it.
WHOLE_LOOPS = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1000000000"


PLACES = [
    np.array(places, dtype=int)
    for places in ([0, 1, 2, 3, 4], [4, 2, 0, 1, 3], [[1, 1, 3], [1, 0, 3]], [2], [], [3] * 40)
]


class TestPlaced:
    @pytest.mark.parametrize(
        ("sizes", "places", "size"),
        [
            ([(2, 3)], [[[2, 0, 1], [3, 5, 4]]], 6),
            ([(3,)], [[0, 1, 2]], 3),
            ([(2,), (2, 2)], [[1, 1], [[0, 1], [4, 4]]], 7),
            ([(0,)], [[]], 4),
            # Much on one place of many is summed apart; on two, no table is made.
            ([(300,)], [[7] * 300], 1000),
            ([(600,)], [[7] * 300 + [9] * 300], 1000),
        ],
    )
    def test_against_a_loop(self, sizes, places, size, rng):
        parts = [jnp.asarray(rng.normal(size=shape)) for shape in sizes]
        places = [np.array(place, dtype=int) for place in places]
        wanted = np.zeros(size)
        for part, place in zip(parts, places, strict=True):
            for x, k in zip(np.ravel(part), place.ravel(), strict=True):
                wanted[k] += x
        weights = rng.normal(size=size)

        @jax.jit
        def found_and_slopes(parts):
            found, back = jax.vjp(lambda x: scatter_add(x, places, size), parts)
            return found, back(jnp.asarray(weights))[0]

        found, slopes = found_and_slopes(parts)
        np.testing.assert_allclose(found, wanted, rtol=1e-13)
        for slope, place in zip(slopes, places, strict=True):
            np.testing.assert_array_equal(slope, weights[place])


SHAPES = [pytest.param(shape) for shape in ((5,), (2, 5), (3, 2, 5))]


class TestTaken:
    @pytest.mark.parametrize(
        "shape", representatives_at(map(pytest.param, [(5,), (2, 5), (3, 2, 5)]), 1)
    )
    def test_values_and_derivatives(self, shape, rng):
        """Each entry goes nowhere, once or often. All places in one program: compiling it and its
        derivatives is all that they cost."""
        x = jnp.asarray(rng.normal(size=shape))
        weights = [jnp.asarray(rng.normal(size=(*shape[:-1], *places.shape))) for places in PLACES]
        values = jax.jit(lambda x: [gather(x, places) for places in PLACES])
        for found, places in zip(values(x), PLACES, strict=True):
            np.testing.assert_array_equal(found, np.asarray(x)[..., places])

        @jax.jit
        def scalars(x):
            pairs = zip(weights, values(x), strict=True)
            return jnp.stack([jnp.sum(own * jnp.sin(found) ** 2) for own, found in pairs])

        check_grads(scalars, (x,), order=3, modes=["fwd", "rev"])

    @pytest.mark.parametrize("place", [-1, 5])
    def test_a_place_that_is_not_there(self, place):
        with pytest.raises(IndexError, match="places 0 to 4 can be taken"):
            gather(jnp.arange(5.0), np.array([0, place]))

    def test_in_batches_along_any_axis(self, rng):
        x, places = jnp.asarray(rng.normal(size=(3, 4, 5))), np.array([[2, 0], [1, 2]])
        for axis in range(2):
            found = jax.vmap(lambda y: gather(y, places), in_axes=axis)(x)
            np.testing.assert_array_equal(found, np.moveaxis(np.asarray(x), axis, 0)[..., places])
        found = jax.vmap(lambda y: gather(y, np.array([1, 1, 0])), in_axes=2, out_axes=2)(x)
        np.testing.assert_array_equal(found, np.asarray(x)[:, [1, 1, 0]])
        many = jax.jit(jax.vmap(jax.grad(lambda y: jnp.sum(gather(y, places) ** 2))))(x)
        wanted = 2 * np.asarray(x) * np.array([1, 1, 2, 0, 0])
        np.testing.assert_allclose(many, wanted, rtol=1e-15)


@pytest.mark.parametrize(
    "mechanism",
    representatives(["four-bar-chain:1", "mobile-robot", "parallelogram"], "parallelogram"),
)
def test_derivatives_hold_no_scatter(mechanism, rng):
    """Of all that a slope is made of, and of its solve."""
    system = jm.mechanisms.get(mechanism).system()
    v = jnp.asarray(rng.normal(size=system.structure.nv))
    multipliers = jnp.asarray(rng.normal(size=len(system.structure.rows)))

    def everything(q, v):
        descriptor = system.descriptor(q, v, 0.5)
        found = [
            system.position_residual(q, 0.5),
            system.velocity_residual(q, v, 0.5),
            system.acceleration_offset(q, v, 0.5),
            system.force(q, v, 0.5),
            system.rate(q, v),
            system.retract(q, v),
            system.difference(q, system.reference_q),
            descriptor.mass(v),
            descriptor.inverse_mass(v),
            descriptor.apply_C(v),
            descriptor.apply_CT(multipliers),
            jm.runs.solve_with_friction(
                system, q, v, 0.5, formulation=jm.formulations.MinimumNorm()
            ).acceleration,
        ]
        return sum(jnp.sum(jnp.sin(x)) for x in found)

    lowered = jax.jit(jax.grad(everything, argnums=(0, 1))).lower(system.reference_q, v)
    assert "gather" in lowered.as_text()
    assert "scatter" not in lowered.as_text()


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


@pytest.mark.parametrize(
    "mechanism", representatives(["four-bar-chain:1", "mobile-robot"], "four-bar-chain:1")
)
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
