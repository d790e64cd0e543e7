"""The selected inverse against dense linear algebra, and the fast verdicts that stand on it
against the independent oracle."""

import functools
import itertools
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
import random_mechanisms
from reaction_park import renamed
from representatives import representatives
from test_block_sparse import random_problem, star, unlike_sizes
from test_solvability import nearly_coaxial_hinges, stacked

import jaxmbs as jm
from jaxmbs import planar, spatial
from jaxmbs._linalg import layout_of
from jaxmbs._linalg._arrays import states_last
from jaxmbs._linalg._multifrontal import in_order, plan, select, selected_inverse
from jaxmbs._solvability import _screening
from jaxmbs._solvability._analyze import scaled_constraint_matrix
from jaxmbs.io import model_from_tables


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
    "less sparse": lambda: random_problem(2, 20, 10),
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

    @jax.jit
    def inverse_blocks(values):
        return in_order(selection, selected_inverse(selection, values), 2)

    found = np.asarray(inverse_blocks(jnp.asarray(states)))
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
    """Also where two axes are added, and under `jit`."""
    shapes = []

    def function(x):
        shapes.append(x.shape)
        return x[0] - x[1], {"square": x**2}

    x = jnp.arange(24.0).reshape(3, 2, 4)
    both = jax.vmap(jax.vmap(states_last(function)), in_axes=2)
    difference, rest = jax.jit(both)(x)
    np.testing.assert_array_equal(difference, (x[:, 0] - x[:, 1]).T)
    np.testing.assert_array_equal(rest["square"], jnp.moveaxis(x, 2, 0) ** 2)
    assert shapes[-1] == (2, 12)


def union(dimension, seed):
    """Mechanisms side by side in one system, since compiling is all that they cost."""
    tables = {
        made.name: made(np.random.default_rng(seed))
        for made in random_mechanisms.STRUCTURES
        if made.name in NAMES[dimension]
    }
    parts = [renamed(table, name) for name, table in tables.items()]
    joined = {key: [x for part in parts for x in part[key]] for key in ("body", "joint", "driver")}
    head = {"schema": 1, "name": "all", "dimension": dimension, "gravity": [0.0] * dimension}
    return tables, model_from_tables({**head, **joined}).system()


# A choice, since each kind of joint and each size of front is compiled; some are doubtful at
# times.
NAMES = {
    2: (
        "four-bar-driven",
        "four-bar-overdriven",
        "four-crank-parallelogram",
        "carriage-on-two-guides",
        "truck-with-two-axles",
        "skate-on-line",
        "plate-on-four-lines",
        "planetary-with-two-planets",
        "plate-with-doubled-link",
        "pfaffian-echo",
        "doubled-weld",
    ),
    3: (
        "three-cranks-in-space",
        "seven-rods",
        "table",
        "bennett",
        "cart-with-three-wheels",
        "spatial-six-bar",
    ),
}


@pytest.mark.parametrize("dimension", representatives(NAMES, 3))
def test_verdicts_equal_those_of_the_oracle(dimension):
    drawn = [union(dimension, seed) for seed in range(SEEDS)]
    batch = eqx.filter_vmap(lambda s: screen(s, s.reference_q))(stacked([s for _, s in drawn]))
    certain = []
    for k, (tables, system) in enumerate(drawn):
        constraints, redundancy = system.structure.constraint_names, 0
        length = float(system.characteristic_length())
        for name, table in tables.items():
            expected = oracle.solvability(table, dependent_sets=False)
            redundancy += expected.redundancy
            squares = squared_measures(table, length, expected.rank)
            for joint, unique in expected.unique.items():
                place = constraints.index(f"{name} {joint}")
                measure = float(batch.reaction_measure[k, place])
                sure = bool(batch.certain[k, place])
                assert not sure or bool(batch.reaction_unique[k, place]) == unique, (name, joint)
                # Rounding of about 1e-16 / 1e-9; a doubtful measure has a bias as well.
                assert measure == pytest.approx(squares[joint], abs=1e-6 if sure else 1e-3)
                certain.append(sure)
        assert int(batch.redundancy[k]) == redundancy
        assert float(batch.trace[k]) == pytest.approx(redundancy, abs=1e-4)
    assert np.mean(certain) > 0.97


def squared_measures(table, length, rank):
    """tr(B_X^T B_X) of every joint and driver by definition."""
    C, names, _ = oracle.constraint_matrix(table)
    C = oracle.scaled_matrix(C, table["dimension"], length)
    null = np.linalg.svd(C)[0][:, rank:]
    squares = {}
    for joint in oracle.joint_bodies(table):
        rows = [i for i, name in enumerate(names) if name == joint or name.startswith(f"{joint}.")]
        squares[joint] = float(np.sum((C[rows].T @ null[rows]) ** 2))
    return squares


def projector_of(system):
    """A compiled function of (system, q, mu), and the rows of all constraints."""
    v = jnp.zeros(system.structure.nv)
    length = system.characteristic_length()
    columns = jnp.where(system.structure.length_columns, length, 1.0)
    sets = tuple(tuple(range(c.start, c.stop)) for c in system.structure.constraints)

    @eqx.filter_jit
    def projector(system, q, mu):
        return system.descriptor(q, v, 0.0).null_projector(columns, sets, jnp.asarray(mu))

    return projector, sets


CASES = {
    "star of 200 joints": lambda: star(160),
    "unlike sizes": lambda: unlike_sizes(3),
    "unlike sizes at a star's hub": lambda: unlike_sizes(9),
    "two coordinates": lambda: pendulum_of(
        jm.generalized.PositionConstraint(lambda q, t: q * q[0], rows=2)
    ),
}


def pendulum_of(condition):
    return jm.GeneralizedSystem(
        ["x", "y"],
        mass_matrix=lambda q: jnp.eye(2),
        force=lambda q, v, t: jnp.zeros(2),
        constraints={
            "both": condition,
            "again": jm.generalized.PositionConstraint(lambda q, t: q[0]),
        },
    )


@pytest.mark.parametrize("name", representatives(CASES, "two coordinates"))
def test_blocks_of_the_projector(name):
    system = CASES[name]()
    q = jnp.array([0.7, 0.4]) if "coordinates" in name else system.reference_q
    v, mu = jnp.zeros(system.structure.nv), 1e-7
    matrix = np.asarray(scaled_constraint_matrix(system, q, v, 0.0)[0])
    values, vectors = np.linalg.eigh(matrix @ matrix.T)
    projector, sets = projector_of(system)
    found = projector(system, q, mu)
    for half, m in enumerate((mu, mu / 2)):
        exact = vectors * (m / (values + m)) @ vectors.T
        for k, rows in enumerate(sets):
            size, block = len(rows), np.asarray(found.projector[half, :, :, k])
            # Rounding of 1e-16 in C C^T, over mu.
            np.testing.assert_allclose(block[:size, :size], exact[np.ix_(rows, rows)], atol=1e-7)
            assert not np.any(block[size:])
            assert not np.any(block[:, size:])
    for k, rows in enumerate(sets):
        gram = (matrix @ matrix.T)[np.ix_(rows, rows)]
        np.testing.assert_allclose(found.gram[: len(rows), : len(rows), k], gram, atol=1e-13)
    if "star" in name:
        assert sum(b["place"].size for b in layout_of(system.pattern).hub_bodies) == 1


@pytest.mark.thorough
def test_bias_of_a_long_chain_is_extrapolated_away():
    """Its smallest singular value falls with its length. None of its rows is redundant."""
    system = jm.mechanisms.get("four-bar-chain:160").system()
    projector, sets = projector_of(system)
    coarse, fine = traces(projector(system, system.reference_q, 1e-7))
    assert coarse > 1e-3
    assert abs(2 * fine - coarse) < 1e-4
    # What a screening looks at.
    blocks = projector(system, system.reference_q, 1e-9)
    coarse, fine = traces(blocks)
    assert abs(2 * fine - coarse) < 1e-8
    measure = jnp.sum(blocks.gram[None] * blocks.projector, axis=(1, 2))
    assert measure.shape == (2, len(sets))
    assert float(jnp.max(2 * measure[1] - measure[0])) < 1e-10


def traces(found):
    return np.asarray(jnp.sum(jnp.trace(found.projector, axis1=1, axis2=2), axis=1))


TILTS = (0.3, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 0.0)


def test_near_a_singular_model_verdicts_are_doubtful_and_never_wrong():
    """Two hinges are redundant by 5 if they are coaxial, and by 4 if not quite."""
    systems = [nearly_coaxial_hinges(tilt) for tilt in TILTS]
    batch = eqx.filter_vmap(lambda s: screen(s, s.reference_q))(stacked(systems))
    doubtful = [bool(x) for x in batch.doubtful]
    # A tilt above is clear, and one below takes no part in C C^T.
    assert doubtful == [tilt in (1e-3, 1e-4, 1e-5, 1e-6) for tilt in TILTS]
    for k, system in enumerate(systems):
        if not doubtful[k]:
            exact = jm.analyze(system, system.reference_q, criterion=jm.criteria.QR(1e-7))
            np.testing.assert_array_equal(batch.reaction_unique[k], exact.reaction_unique)
            assert int(batch.redundancy[k]) == int(exact.redundancy)
    system = systems[TILTS.index(1e-4)]
    settled = jm.verdicts(system, system.reference_q)
    assert int(settled.redundancy) == 4
    assert bool(jnp.all(settled.certain))


def test_analysis_is_asked_only_in_doubt(monkeypatch):
    calls = []

    def counted(*arguments, **options):
        calls.append(arguments)
        return jm.analyze(*arguments, **options)

    monkeypatch.setattr(_screening, "analyze", counted)
    clear, near = nearly_coaxial_hinges(0.3), nearly_coaxial_hinges(1e-4)
    assert bool(jnp.all(jm.verdicts(clear, clear.reference_q).certain))
    assert calls == []
    report = jm.verdicts(near, near.reference_q)
    assert len(calls) == 1
    expected = jm.analyze(near, near.reference_q)
    np.testing.assert_array_equal(report.reaction_unique, expected.reaction_unique)


@functools.cache
def trailer():
    """A trailer at four states: two wheels on one axle are redundant at each."""
    (made,) = [s for s in random_mechanisms.STRUCTURES if s.name == "trailer-with-axle"]
    system = model_from_tables(made(np.random.default_rng(0))).system()
    steps = np.random.default_rng(1).normal(size=(4, system.structure.nv))
    return system, jax.vmap(lambda step: system.retract(system.reference_q, step))(steps)


def test_alone_mapped_and_in_chunks():
    system, states = trailer()
    alone = [jm.screen(system, q) for q in states]
    # Each with the arithmetic in another order.
    many = [
        jax.vmap(lambda q: screen(system, q))(states),
        jax.lax.map(lambda q: screen(system, q), states, batch_size=2),
    ]
    for batch in many:
        for k, one in enumerate(alone):
            np.testing.assert_array_equal(batch.reaction_unique[k], one.reaction_unique)
            np.testing.assert_array_equal(batch.certain[k], one.certain)
            np.testing.assert_allclose(batch.reaction_measure[k], one.reaction_measure, atol=1e-6)
            np.testing.assert_allclose(batch.trace[k], one.trace, atol=1e-6)
        np.testing.assert_array_equal(batch.redundancy, np.ones(4))
        np.testing.assert_array_equal(batch.doubtful, np.zeros(4, bool))
    assert "4" in str(many[0])
    lines = str(alone[0]).splitlines()
    assert lines[0].startswith("redundancy p = 1 ")
    names = system.structure.constraint_names
    for name, line in zip(names, lines[4 : 4 + len(names)], strict=True):
        assert line.startswith(name)
        assert ("not unique" in line) != bool(alone[0].unique(name))


def test_verdicts_have_no_derivative():
    system, states = trailer()
    gradient = jax.vmap(jax.grad(lambda q: jnp.sum(screen(system, q).reaction_measure)))(states)
    np.testing.assert_array_equal(gradient, np.zeros_like(states))


def test_single_precision_is_warned_of_and_never_certain():
    """In a process of its own: what is compiled for one precision is not for the other."""
    script = """
import warnings
import jax.numpy as jnp
import jaxmbs as jm
system = jm.mechanisms.door().system()
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    report = jm.screen(system, system.reference_q)
print(report.reaction_measure.dtype, bool(jnp.any(report.certain)), len(told), told[0].message)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("float32 False 1 A rank is being decided in single precision")


def test_without_constraints_there_is_nothing_to_determine():
    body = planar.Body("b", mass=1.0, inertia=1.0, position=(0.0, 0.0))
    system = jm.MultibodySystem([body])
    report = jm.screen(system, system.reference_q)
    assert (int(report.redundancy), report.certain.shape) == (0, (0,))
    assert not bool(report.doubtful)


def test_zero_row_counts_and_has_a_unique_reaction():
    body = spatial.Body("b", mass=1.0, inertia=(1.0, 1.0, 1.0), position=(0.0, 0.0, 0.0))
    nothing = spatial.Pfaffian("nothing", ("b",), coefficients=[0.0] * 6)
    hinge = spatial.Revolute("hinge", ("ground", "b"), (0.1, 0.0, 0.0), (0.0, 0.0, 1.0))
    system = jm.MultibodySystem([body], [nothing, hinge])
    report = jm.screen(system, system.reference_q)
    assert int(report.redundancy) == 1
    assert bool(jnp.all(report.reaction_unique.unique & report.certain))
