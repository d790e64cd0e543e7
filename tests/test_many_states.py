"""A function of one state at many of them: the same as `jax.vmap`, with the states behind."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxmbs._linalg import gather
from jaxmbs._linalg._arrays import kept
from jaxmbs._linalg._many_states import any_state, many_states


_STATES = 5


def _loop_of_each(x, n):
    """As many turns as the state's own number."""
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, 0.5 * c[1] + x), (0, x))


def _long_loop_of_each(x, n):
    """Carries so much that what has ended is put aside."""
    start = jnp.broadcast_to(x, (200, *x.shape))

    def turn(carry):
        k, rows = carry
        row = lax.dynamic_index_in_dim(rows, k, keepdims=False)
        return k + 1, lax.dynamic_update_index_in_dim(rows, jnp.sin(row) + k, k, 0)

    return lax.while_loop(lambda c: c[0] < n, turn, (0, start))


def _counting(x, n):
    """From the state's own number to its own end."""
    return lax.fori_loop(n - 2, n + 1, lambda k, y: y.at[k].add(x[k] * k), x)


def _batched_within(x, n):
    """Loops that JAX has batched, with a number of turns for each part of the batch."""
    ends = n + jnp.arange(3)
    return (
        jax.vmap(lambda end: _loop_of_each(x, end))(ends),
        jax.vmap(lambda end: lax.fori_loop(0, end, lambda k, y: y.at[k].add(k), x))(ends),
        lax.map(lambda end: _long_loop_of_each(x, end)[1].sum(axis=0), ends),
    )


def _nested(x, n):
    def turn(carry):
        k, y = carry
        return k + 1, lax.fori_loop(0, k, lambda j, z: z + jnp.cos(z) * j, y)

    return lax.while_loop(lambda c: c[0] < n, turn, (0, x))


def _scanned(x, n):
    """Carries one, and gives one for each turn."""
    return lax.scan(lambda c, y: (c * y + n, c - y), jnp.ones(()), x)


def _mapped(x, n):
    return lax.map(lambda row: kept(row * n) @ x[: len(row)], jnp.outer(x, x))


def _chosen(x, n):
    one = lax.switch(n, [lambda: x, lambda: -x, lambda: x**2])
    return one, lax.cond(any_state(n > 2), lambda: jnp.sin(x), lambda: x)


def _indexed(x, n):
    table = jnp.outer(x, x)
    return (
        table[n],
        table[:, n],
        x[jnp.argsort(x)],
        x[jnp.argmax(x)],
        x.at[n].set(7.0),
        table.at[n].add(x),
        x.at[jnp.where(n > 2, len(x), n)].set(0.0, mode="drop"),
        lax.dynamic_slice(table, (n, 1), (2, 3)),
        gather(x, np.array([[2, 0], [1, 1]])),
        gather(table, np.array([3, 1])),
    )


def _sums(x, n):
    table = jnp.outer(x, jnp.arange(40.0)) + n
    return (
        table.sum(),
        table.max(axis=0),
        jnp.prod(x),
        jnp.all(table > 0, axis=1),
        jnp.any(table > 3),
        table.argmin(axis=0),
        jnp.argmax(x.at[1].set(jnp.nan)),
        jnp.cumsum(x),
    )


def _products(x, n):
    square, wide = jnp.outer(x, x) + jnp.eye(len(x)), jnp.outer(x, jnp.arange(40.0)) + n
    known = jnp.asarray(np.random.default_rng(0).normal(size=(40, 40)))
    return (
        square @ x,
        x @ square,
        square @ square.T,
        wide @ wide.T,
        wide @ known,
        known @ wide.T,
        jnp.einsum("ij,kj,kl->il", square, square, wide),
        jnp.einsum("bij,bjk->bik", jnp.stack([square, square.T]), jnp.stack([square, wide[:, :6]])),
    )


def _moved(x, n):
    parts = jnp.split(jnp.outer(x, x), 3)
    return (
        jnp.concatenate([*parts, jnp.ones((1, len(x)))]).T[::-1, ::2],
        jnp.stack([x, jnp.ones_like(x)]).reshape(3, -1),
        jnp.pad(x, 2, constant_values=1.5),
        jnp.tile(x, (2, 2)),
        jnp.where(n > 1, x, jnp.full_like(x, n)),
        jnp.clip(x, 0.2, 0.5),
        jnp.linalg.solve(jnp.outer(x, x) + 3 * jnp.eye(len(x)), x),
    )


@pytest.mark.parametrize(
    "function",
    [
        _loop_of_each,
        _long_loop_of_each,
        _counting,
        _batched_within,
        _nested,
        _scanned,
        _mapped,
        _chosen,
        _indexed,
        _sums,
        _products,
        _moved,
    ],
)
def test_many_states_are_those_of_vmap(function):
    x = jnp.asarray(np.random.default_rng(1).uniform(0.1, 1.0, (_STATES, 6)))
    n = jnp.asarray([3, 2, 4, 2, 0 if function not in (_counting,) else 3])
    found = jax.jit(jax.vmap(many_states(function)))(x, n)
    wanted = jax.vmap(function)(x, n)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-14)
    # The same number for all, and batches of batches.
    found = jax.vmap(many_states(function), (0, None))(x, jnp.asarray(2))
    wanted = jax.vmap(function, (0, None))(x, jnp.asarray(2))
    twice = jax.vmap(jax.vmap(many_states(function), (0, None)), (None, 0))(x, n[:2])
    for one, other, both in zip(*map(jax.tree.leaves, (found, wanted, twice)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-14)
        assert both.shape == (2, *one.shape)
    one = many_states(function)(x[0], n[0])
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(function(x[0], n[0])), strict=True):
        np.testing.assert_array_equal(a, b)


def test_loops_do_not_turn_for_states_that_have_ended():
    """A state that would never leave the inner loop has left the outer one."""

    @many_states
    def function(x, n):
        def turn(carry):
            k, y = carry
            # After the last turn of a state its y would never fall.
            y = lax.while_loop(lambda z: z > 0.5, lambda z: jnp.where(k < n, z / 2, z), y + 1)
            return k + 1, y

        return lax.while_loop(lambda c: c[0] < n, turn, (0, x))[1]

    found = jax.jit(jax.vmap(function))(jnp.ones(3), jnp.asarray([1, 4, 2]))
    assert jnp.all((found > 0.25) & (found <= 0.5))
