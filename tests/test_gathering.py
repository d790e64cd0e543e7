"""Entries taken at places that are known beforehand, and what is left of that in a program."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbs._linalg import gather


def places_of(shape, axes, start=2):
    """Neighbours, read off with the first of `axes` changing slowest."""
    block = start + np.arange(np.prod(shape, dtype=int)).reshape([shape[k] for k in axes])
    return np.transpose(block, np.argsort(axes)) if axes else np.asarray(start)


BLOCKS = [
    places_of(shape, axes)
    for shape in ((), (1,), (5,), (2, 3), (3, 1, 2), (2, 3, 4))
    for axes in itertools.permutations(range(len(shape)))
]
OTHERS = [
    np.array(x)
    for x in ([0, 2, 4], [3, 2, 1], [0, 0, 1], [[0, 1], [1, 2]], [[0, 1], [3, 4]], [[0, 3], [1, 2]])
]


def is_gathered(places, x):
    program = jax.jit(lambda x: gather(x, places)).lower(x).as_text()
    return "stablehlo.gather" in program


@pytest.mark.parametrize("places", BLOCKS + OTHERS, ids=lambda p: f"{p.shape}: {p.ravel()[:4]}")
def test_takes_what_numpy_takes_with_its_derivatives(places, rng):
    x, dx = (jnp.asarray(rng.normal(size=(2, 30))) for _ in range(2))
    expected = np.asarray(x)[..., places]
    np.testing.assert_array_equal(gather(x, places), expected)
    np.testing.assert_array_equal(jax.jit(lambda x: gather(x, places))(x), expected)
    along = jax.vmap(lambda x: gather(x, places), in_axes=1, out_axes=-1)(x.T)
    np.testing.assert_array_equal(jnp.moveaxis(along, -1, 0), expected)
    _, change = jax.jvp(lambda x: gather(x, places), (x,), (dx,))
    np.testing.assert_array_equal(change, np.asarray(dx)[..., places])
    pull = jax.vjp(lambda x: gather(x, places), x)[1](change)[0]
    counts = np.bincount(places.ravel(), minlength=30)
    np.testing.assert_allclose(pull, np.asarray(dx) * counts[None], rtol=1e-15)


def test_neighbours_are_no_gather(rng):
    x = jnp.asarray(rng.normal(size=30))
    assert not any(is_gathered(places, x) for places in BLOCKS)
    assert all(is_gathered(places, x) for places in OTHERS)


def test_no_places_and_places_that_are_not_there():
    x = jnp.arange(4.0)
    assert gather(x, np.zeros((0, 3), dtype=np.int32)).shape == (0, 3)
    with pytest.raises(IndexError, match="places 0 to 3"):
        gather(x, np.array([1, 4]))
