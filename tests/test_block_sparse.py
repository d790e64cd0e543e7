"""The block-sparse factor and solver against dense linear algebra."""

import functools

import equinox as eqx
import helpers
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import pytest
from jelly import Jelly
from representatives import representatives, representatives_at

import jaxmbs as jm
from jaxmbs import planar, spatial
from jaxmbs._linalg import layout_of, motion_solver, ProximalCholesky, SchurOperator
from jaxmbs._linalg._multifrontal import eliminate, factor, fronts, plan, solve


def random_problem(seed: int, vertices: int, edges: int):
    """A symmetric quasi-definite matrix on a random connected graph."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, vertices)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    near: dict[int, set[int]] = {i: set() for i in range(vertices)}
    pairs = [(i, int(rng.integers(max(0, i - 3), i))) for i in range(1, vertices)]
    pairs += [tuple(rng.integers(0, vertices, 2)) for _ in range(edges)]
    for i, j in pairs:
        if i != j:
            near[int(i)].add(int(j))
            near[int(j)].add(int(i))
    matrix = np.zeros((starts[-1], starts[-1]))
    for i in range(vertices):
        for j in {i, *near[i]}:
            block = rng.normal(size=(sizes[i], sizes[j]))
            matrix[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] = block
    matrix = matrix + matrix.T
    sign = np.repeat(rng.choice([-1.0, 1.0], vertices), sizes)
    matrix += np.diag(sign * 30.0)
    values, sources = [], {}
    for i, j in zip(*np.nonzero(np.tril(matrix)), strict=True):
        sources[int(i), int(j)] = sources[int(j), int(i)] = [len(values)]
        values.append(matrix[i, j])
    unknowns = [list(range(starts[i], starts[i + 1])) for i in range(vertices)]
    graph = {i: frozenset(n) for i, n in near.items()}
    return unknowns, graph, sources, np.array(values), matrix


@pytest.mark.parametrize(
    ("seed", "vertices", "edges"), representatives_at([(0, 1, 0), (1, 12, 2), (2, 30, 6)], 0, 1)
)
def test_solution_of_a_random_sparse_system(seed, vertices, edges):
    unknowns, graph, sources, values, matrix = random_problem(seed, vertices, edges)
    elimination = plan(unknowns, graph, sources)
    right = np.random.default_rng(9).normal(size=matrix.shape[0])
    found = jax.jit(lambda x, y: solve(elimination, factor(elimination, x), y))(values, right)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=1e-11, atol=1e-12)


@functools.partial(jax.jit, static_argnames="own")
def eliminated(lanes, own):
    return eliminate(lanes[:own], lanes[own:, own:])


@pytest.mark.parametrize("own", representatives([1, 2, 3, 4, 7, 16, 17], 1, 2, 16, 17))
@pytest.mark.parametrize("shift", [1.0, 1e-9])
def test_a_front_of_any_size(own, shift, rng):
    """The factor of its own part, of half the rank but for the shift, and what is left of three
    more; two matrices at once."""
    boundary = 3
    columns = rng.normal(size=(2, own + boundary, own // 2 + 1))
    matrices = columns @ np.swapaxes(columns, 1, 2) + shift * np.eye(own + boundary)
    lanes = jnp.asarray(np.moveaxis(matrices, 0, -1))
    found, rest = eliminated(lanes, own)
    for k, matrix in enumerate(matrices):
        inverse, below = np.asarray(found.inverse[..., k]), np.asarray(found.below[..., k])
        pivots, lower = np.asarray(found.pivots[..., k]), np.linalg.inv(inverse)
        assert not np.triu(inverse, 1).any()
        np.testing.assert_allclose((lower * pivots) @ lower.T, matrix[:own, :own], atol=1e-12)
        np.testing.assert_allclose(below * pivots @ lower.T, matrix[own:, :own], atol=1e-12)
        left = matrix[own:, own:] - below * pivots @ below.T
        np.testing.assert_allclose(rest[..., k], left, atol=1e-12)


def test_a_chain_is_eliminated_in_logarithmic_height():
    count = 512
    graph = {i: frozenset(j for j in (i - 1, i + 1) if 0 <= j < count) for i in range(count)}
    found = fronts(graph, [1] * count, leaf=4, root=8)
    assert max(front.height for front in found) <= 7
    assert max(len(front.own) + len(front.boundary) for front in found) <= 8
    eliminated = [v for front in found for v in front.own]
    assert sorted(eliminated) == list(range(count))


def star(arms: int, dimension: int = 2) -> jm.MultibodySystem:
    """A hub that carries many arms, and legs that hold it more often than it needs."""
    rng = np.random.default_rng(3)
    assert dimension == 2
    bodies = [planar.Body("hub", mass=3.0, inertia=2.0, position=(0.0, 0.0))]
    joints: list = []
    for k in range(arms):
        angle = 2 * np.pi * k / arms
        tip = np.array([np.cos(angle), np.sin(angle)])
        inertia = rng.uniform(0.1, 1)
        bodies.append(planar.Body(f"b{k}", mass=1.0, inertia=inertia, position=1.5 * tip))
        joints.append(planar.Revolute(f"j{k}", ("hub", f"b{k}"), tip))
        if k % 4 == 0:
            joints.append(planar.Revolute(f"g{k}", ("ground", "hub"), 0.5 * tip))
    return jm.MultibodySystem(bodies, joints, gravity=(0.0, -9.81))


def unlike_sizes(arms: int) -> jm.MultibodySystem:
    """Bodies of three sizes and joints of one to six rows; with many arms the largest is a hub."""
    rng = np.random.default_rng(5)

    def at(k: int) -> np.ndarray:
        return np.array([1.0 + 0.1 * k, 0.3 * (-1) ** k, 0.2 * k])

    points = rng.uniform(-0.9, 0.9, (60, 3))
    bodies: list = [
        Jelly("big", np.ones(60), points, modes=20, position=np.zeros(3), stiffness=9.0)
    ]
    joints: list = [spatial.Spherical("base", ("ground", "big"), np.zeros(3))]
    for k in range(arms):
        inertia = rng.uniform(0.2, 0.3, 3)
        bodies.append(spatial.Body(f"b{k}", mass=1.0, inertia=inertia, position=at(k) + 0.4))
        joints.append(spatial.Revolute(f"j{k}", ("big", f"b{k}"), at(k), axis=(0.0, 0.0, 1.0)))
    bodies.append(spatial.Particle("p", mass=0.3, position=at(0) + 1.0))
    bodies.append(spatial.Body("free", mass=2.0, inertia=(0.1, 0.1, 0.1), position=at(0) - 1.0))
    joints += [
        spatial.Distance("rod", ("b0", "p"), points=(at(0) + 0.4, at(0) + 1.0)),
        spatial.Spherical("once more", ("ground", "big"), np.zeros(3)),
        spatial.Fixed("weld", ("b1", "b0"), at(0)),
    ]
    return jm.MultibodySystem(bodies, joints, gravity=(0.0, 0.0, -9.81))


@eqx.filter_jit
def solved(system, q, v, t, solver):
    equations = system.equations(q, v, t)
    d = equations.descriptor
    right = d.apply_C(d.inverse_mass(equations.force)) - equations.offset
    found = lx.linear_solve(SchurOperator(d), right, solver).value
    dense = (d.mass_matrix(), d.constraint_matrix())
    products = (d.mass(v), d.apply_C(v), d.apply_CT(found), d.inverse_mass(equations.force))
    return found, right, dense, products, equations.force


def pseudoinverse(mass, rows, right):
    """Minimum of lambda^T diag(S) lambda among the solutions of S lambda = right."""
    schur = rows @ np.linalg.solve(mass, rows.T)
    size = np.sqrt(np.where(np.diag(schur) > 0, np.diag(schur), 1.0))
    scaled = schur / size[:, None] / size[None]
    return np.linalg.pinv(scaled, rcond=1e-9, hermitian=True) @ (right / size) / size


SYSTEMS = {
    "star of 200 joints": lambda: star(160),
    "parallelogram": lambda: jm.mechanisms.get("parallelogram").system(),
    "bennett": lambda: jm.mechanisms.get("bennett").system(),
    "spatial chain": lambda: jm.mechanisms.get("four-bar-chain-spatial:3").system(),
    "robot": lambda: jm.mechanisms.get("mobile-robot").system(),
    "unlike sizes": lambda: unlike_sizes(3),
    "unlike sizes at a hub": lambda: unlike_sizes(9),
}


@pytest.mark.parametrize(
    "name", representatives(SYSTEMS, "star of 200 joints", "parallelogram", "robot")
)
def test_multipliers_equal_the_dense_pseudoinverse(name):
    system = SYSTEMS[name]()
    q = system.reference_q
    v = jax.random.normal(jax.random.PRNGKey(1), (system.structure.nv,))
    # A velocity off the constraints, and any right-hand side in the range of S.
    found, right, (mass, rows), products, force = solved(system, q, v, 0.3, ProximalCholesky())
    np.testing.assert_allclose(rows, system.constraint_matrix(q, v, 0.3), atol=1e-13)
    np.testing.assert_allclose(mass, system.mass_matrix(q), atol=1e-13)
    np.testing.assert_allclose(products[0], mass @ v, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(products[1], rows @ v, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(products[2], rows.T @ found, rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(products[3], np.linalg.solve(mass, force), rtol=1e-11, atol=1e-11)
    expected = pseudoinverse(np.asarray(mass), np.asarray(rows), np.asarray(right))
    np.testing.assert_allclose(
        rows.T @ found, rows.T @ expected, atol=1e-7 * np.max(np.abs(rows.T @ expected))
    )
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.max(np.abs(expected)))


def test_a_hub_stays_a_vertex_of_its_own():
    layout = layout_of(star(100).pattern)
    assert [b["place"].tolist() for b in layout.hub_bodies] == [[0]]
    widest = max(level.own + level.boundary for level in layout.elimination.levels)
    assert widest < 20


def test_motion_solver_leaves_the_same_forces():
    system = jm.mechanisms.get("parallelogram").system()
    q, v = system.reference_q, system.initial_v
    clean = solved(system, q, v, 0.0, ProximalCholesky())
    quick = solved(system, q, v, 0.0, motion_solver())
    np.testing.assert_allclose(quick[3][2], clean[3][2], rtol=1e-9, atol=1e-7)


def test_rows_left_out_have_no_multiplier():
    system = jm.mechanisms.get("mobile-robot").system()
    q, v = system.reference_q, system.initial_v

    @jax.jit
    def solved_for_some(q, v):
        descriptor = system.descriptor(q, v, 0.0)
        kept = descriptor.mask_rows(system.structure.geometric)
        right = jnp.where(system.structure.geometric, descriptor.apply_C(jnp.ones(21)), 0.0)
        found = lx.linear_solve(SchurOperator(kept), right, ProximalCholesky()).value
        return found, right, SchurOperator(kept).mv(found)

    found, right, product = solved_for_some(q, v)
    np.testing.assert_array_equal(found[~system.structure.geometric], 0.0)
    np.testing.assert_allclose(product, right, atol=1e-9)


def doubled_hinge(length, mass):
    body = spatial.Body("b", mass=mass, inertia=(1.0, 1.2, 1.1), position=(length, 0.0, 0.5))
    joints = [
        spatial.Revolute("lower", ("ground", "b"), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
        spatial.Revolute("upper", ("ground", "b"), (0.0, 0.0, 1.0), (0.0, 0.0, 1.0)),
    ]
    return jm.MultibodySystem([body], joints, gravity=(0.0, -9.81, 0.0))


@pytest.mark.thorough
def test_derivative_at_constant_rank():
    """Redundant all along: length and mass keep the rank."""

    def multipliers(x):
        system = doubled_hinge(x[0], x[1])
        v = jnp.array([0.0, x[0] * x[2], 0.0, 0.0, 0.0, x[2]])
        equations = system.equations(system.reference_q, v, 0.0)
        return jm.formulations.MinimumNorm().solve(equations).multipliers

    x = jnp.array([0.7, 2.0, 0.4])
    direction = jnp.array([0.3, -0.5, 0.8])
    value = jax.jit(multipliers)
    step = 1e-5
    central = (value(x + step * direction) - value(x - step * direction)) / (2 * step)
    weight = jnp.arange(10.0) - 4.0
    forward, back = helpers.forward_and_reverse(value, x, direction, weight)
    np.testing.assert_allclose(forward, central, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(back @ direction, weight @ forward, rtol=1e-10)
