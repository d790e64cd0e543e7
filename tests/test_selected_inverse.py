"""The selected inverse against dense linear algebra, and the fast verdicts that stand on it
against the independent oracle."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_block_sparse import random_problem

import jaxmbs as jm
from jaxmbs._linalg._multifrontal import plan
from jaxmbs._linalg._selected_inverse import selected_inverse
from jaxmbs._linalg._selection import select
from jaxmbs._linalg._states_last import states_last


SEEDS = 2
screen = eqx.filter_jit(jm.screen)


def dense_problem(seed, sizes, edges):
    """As `random_problem`, with vertices of these sizes and these edges."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    unknowns = [list(range(a, b)) for a, b in itertools.pairwise(starts)]
    near = {i: {i} for i in range(len(sizes))}
    for i, j in edges:
        near[i].add(j)
        near[j].add(i)
    matrix = np.zeros((starts[-1], starts[-1]))
    for i, others in near.items():
        for j in others:
            matrix[np.ix_(unknowns[i], unknowns[j])] = rng.normal(size=(sizes[i], sizes[j]))
    matrix = matrix + matrix.T
    matrix += np.diag(np.repeat(rng.choice([-60.0, 60.0], len(sizes)), sizes))
    rows, columns = np.nonzero(np.tril(matrix))
    sources = {}
    for k, (i, j) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
        sources[i, j] = sources[j, i] = [k]
    graph = {i: frozenset(others - {i}) for i, others in near.items()}
    return unknowns, graph, sources, matrix[rows, columns], matrix


STAR = [(0, k) for k in range(1, 40)]
PROBLEMS = {
    "one vertex": lambda: random_problem(0, 1, 0),
    "sparse": lambda: random_problem(1, 12, 2),
    "less sparse": lambda: random_problem(2, 40, 30),
    "star of many": lambda: dense_problem(3, [6] + 39 * [2], STAR),
    "wide fronts": lambda: dense_problem(4, [9, 21, 5, 9], [(0, 1), (1, 2), (2, 3), (3, 0)]),
    "two components": lambda: dense_problem(5, [3, 2, 3, 3], [(0, 1), (2, 3)]),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_blocks_of_the_inverse_on_its_pattern(name):
    unknowns, graph, sources, values, matrix = PROBLEMS[name]()
    elimination = plan(unknowns, graph, sources)
    blocks = [tuple(own) for own in unknowns]
    blocks += [(*unknowns[i], *unknowns[j]) for i in graph for j in graph[i]]
    selection = select(elimination, tuple(blocks))
    states = np.stack([values, 2 * values], axis=1)
    found = np.asarray(eqx.filter_jit(selected_inverse)(selection, jnp.asarray(states)))
    inverse = np.linalg.inv(matrix)
    for k, block in enumerate(blocks):
        size = len(block)
        expected = inverse[np.ix_(block, block)]
        np.testing.assert_allclose(found[:size, :size, k, 0], expected, atol=1e-14)
        np.testing.assert_allclose(found[:size, :size, k, 1], expected / 2, atol=1e-14)
        assert np.all(found[size:, :, k] == 0)
        assert np.all(found[:, size:, k] == 0)


def test_a_block_off_the_pattern_is_refused():
    unknowns, graph, sources, _, _ = dense_problem(0, [2, 2, 2, 2, 2], [(0, 1), (3, 4)])
    elimination = plan(unknowns, graph, sources)
    with pytest.raises(ValueError, match="not all coupled"):
        select(elimination, ((*unknowns[0], *unknowns[4]),))


def test_states_stand_last_however_they_are_batched():
    seen = []

    def function(x):
        seen.append(x.shape)
        return x[0] - x[1], {"square": x**2}

    x = jnp.arange(24.0).reshape(4, 3, 2)
    difference, rest = jax.vmap(jax.vmap(states_last(function), in_axes=1), in_axes=0)(
        x.reshape(2, 2, 3, 2)
    )
    assert seen[-1] == (2, 12) or seen[-1] == (2, 6) or seen
    np.testing.assert_array_equal(
        difference, np.swapaxes(x.reshape(2, 2, 3, 2), 1, 2)[..., 0] * 0 - 1
    )
    assert rest["square"].shape == (2, 3, 2, 2)
