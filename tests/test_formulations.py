"""Formulations against an independent oracle, against each other and against the verdicts."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import oracle_formulations as slow
import pytest
from formulation_cases import (
    answer,
    answers,
    batch,
    case,
    CASES,
    difference,
    ended,
    equations_of,
    expected,
    largest,
    LEAST,
    MEMBERS,
    NAMES,
    padded,
    place,
    ROWS,
    solve_all,
    succeeded,
)
from representatives import representatives

import jaxmbs as jm
from jaxmbs import _formulations as fo
from jaxmbs._formulations._compare import _solve as run


# What is semidefinite is asked below, what is not ideal in `test_non_ideal.py`.
USUAL = tuple(n for n in NAMES if n not in ("udwadia-kalaba, semidefinite", "non-ideal"))
each = pytest.mark.parametrize("member", representatives(NAMES, *USUAL))


def test_every_formulation_is_among_the_members():
    exported = {x for x in vars(fo).values() if isinstance(x, type)}
    exported = {x for x in exported if issubclass(x, fo.AbstractFormulation)}
    # Those of rigid systems that constraints alone move; `test_elastic_resolution.py` and
    # `test_servo_constraints.py` hold the others against dense algebra.
    rigid = exported - {fo.AbstractFormulation, fo.ElasticResolution, fo.ServoControl}
    assert {type(member) for _, member, _ in MEMBERS} == rigid
    words = [x.word for x in exported - {fo.AbstractFormulation}]
    assert len(set(words)) == len(words)


@pytest.mark.parametrize("name", CASES)
@each
def test_accelerations_are_the_oracles(member, name):
    x, (a, _) = case(name), expected(name)
    found, multipliers = answer(member, name)
    tolerance = next(tolerance for other, _, tolerance in MEMBERS if other == member)
    size = max(slow.energy_norm(x.M, a), slow.energy_norm(x.M, slow.free(x.M, x.F)))
    assert slow.energy_norm(x.M, found - a) <= tolerance * size
    # The equations of motion hold with the multipliers that came with them.
    left = np.linalg.solve(x.M, x.F - x.C.T @ multipliers) - found
    assert slow.energy_norm(x.M, left) <= tolerance * size
    assert succeeded(answers(member))[CASES.index(name)]


@pytest.mark.parametrize("name", CASES)
@each
def test_unique_reactions_are_the_same_in_all(member, name):
    x, (_, least) = case(name), expected(name)
    assert len(x.unique) == len(x.rows)
    _, multipliers = answer(member, name)
    for joint, unique in x.unique.items():
        gap = difference(name, joint, multipliers, least)
        assert not unique or gap < 1e-8, (joint, gap)


@pytest.mark.parametrize("name", CASES)
def test_a_reaction_that_is_not_unique_differs_between_formulations(name):
    x, (_, least) = case(name), expected(name)
    _, chosen = answer("elimination", name)
    loose = [joint for joint, unique in x.unique.items() if not unique]
    assert max(difference(name, joint, chosen, least) for joint in loose) > 1e-3
    # As many multipliers as there are redundant rows are zero.
    redundancy = slow.null_spaces(x.M, x.C)[0].shape[1]
    assert np.sum(chosen == 0) >= redundancy


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("member", representatives(LEAST, *(n for n in LEAST if n in USUAL)))
def test_multipliers_of_minimum_norm(member, name):
    x, (_, least) = case(name), expected(name)
    _, multipliers = answer(member, name)
    length = slow.weighted(x.M, x.C)[2]
    # The augmented Lagrangian collects rounding times its penalty in the null space.
    tolerance = 1e-7 if member == "augmented-lagrangian" else 1e-9
    gap = np.linalg.norm(length * (multipliers - least))
    assert gap <= tolerance * np.linalg.norm(length * least)


@each
def test_zero_rows_and_free_coordinates_are_no_trouble(member):
    found = answers(member)
    for i, name in enumerate(CASES):
        rows, columns = case(name).C.shape
        np.testing.assert_array_equal(found.multipliers[i, rows:], 0.0)
        np.testing.assert_allclose(found.acceleration[i, columns:], 1.0, rtol=1e-12)


@each
def test_units_change_nothing(member):
    metres, millimetres = case("mobile-robot"), case("mobile-robot in mm")
    column = np.sqrt(np.diag(metres.M) / np.diag(millimetres.M) * 1e6)
    row = slow.weighted(millimetres.M, millimetres.C)[2] * 1e3
    row = row / slow.weighted(metres.M, metres.C)[2]
    a, multipliers = answer(member, "mobile-robot")
    a_mm, multipliers_mm = answer(member, "mobile-robot in mm")
    np.testing.assert_allclose(a_mm, a * column, atol=1e-9 * np.max(np.abs(a * column)))
    scaled = multipliers * 1e6 / row
    # The same rows were dropped, the same norm was least.
    gap = np.max(np.abs(multipliers_mm - scaled)) / np.max(np.abs(scaled))
    assert gap < (1e-6 if member == "minimum-norm for motion" else 1e-9)


"""Of all accelerations that the constraints allow, the true one minimises
(a - a0)^T M (a - a0)."""


@pytest.mark.parametrize("name", CASES)
@each
def test_principle_of_least_constraint(member, name, rng):
    x = case(name)
    a, _ = answer(member, name)
    a0 = slow.free(x.M, x.F)
    _, allowed = slow.null_spaces(x.M, x.C)
    size = slow.energy_norm(x.M, a - a0)
    # The columns of `allowed` have the norm 1.
    assert np.max(np.abs(allowed.T @ x.M @ (a - a0)), initial=0.0) < 1e-8 * size
    for _ in range(5 if allowed.shape[1] else 0):
        other = a + 1e-3 * size * allowed @ rng.normal(size=allowed.shape[1])
        assert slow.energy_norm(x.M, other - a0) > size


@pytest.mark.parametrize("name", CASES)
def test_adding_null_vectors_changes_exactly_what_is_not_unique(name, rng):
    x = case(name)
    a, multipliers = answer("minimum-norm", name)
    null_space, _ = slow.null_spaces(x.M, x.C)
    added = null_space @ rng.normal(size=null_space.shape[1])
    added *= np.linalg.norm(multipliers) / np.linalg.norm(added)
    same = np.linalg.solve(x.M, x.F - x.C.T @ (multipliers + added)) - a
    assert slow.energy_norm(x.M, same) < 1e-9 * slow.energy_norm(x.M, slow.free(x.M, x.F))
    change = {joint: difference(name, joint, added, 0 * added) for joint in x.unique}
    assert {joint: c < 1e-6 for joint, c in change.items()} == x.unique


def test_weights_choose_the_norm_and_compile_once(rng):
    traces = 0

    @eqx.filter_jit
    def solve(formulation, *arrays):
        nonlocal traces
        traces += 1
        return formulation.solve(equations_of(*arrays))

    def solved(name, weights):
        x = case(name)
        rows, columns = x.C.shape
        found = solve(fo.MinimumNorm(weights), *padded(x))
        return x, np.asarray(found.acceleration)[:columns], np.asarray(found.multipliers)[:rows]

    for name in ("trailer-with-axle", "mobile-robot", "parallelogram"):
        weights = np.exp(rng.uniform(-3, 3, size=ROWS))
        x, found, multipliers = solved(name, weights)
        a, least = expected(name)
        wanted = slow.weighted_multipliers(x.M, x.C, x.F, x.Gamma, weights[: len(x.C)])
        size = np.max(np.abs(wanted))
        np.testing.assert_allclose(multipliers, wanted, atol=1e-7 * size)
        assert np.max(np.abs(wanted - least)) > 1e-3 * size
        gap = slow.energy_norm(x.M, found - a)
        assert gap < 1e-9 * slow.energy_norm(x.M, slow.free(x.M, x.F))
    # With the weights that it has by itself nothing changes.
    own = np.ones(ROWS)
    x, least = case("mobile-robot"), expected("mobile-robot")[1]
    own[: len(x.C)] = slow.weighted(x.M, x.C)[2] ** 2
    _, _, multipliers = solved("mobile-robot", own)
    np.testing.assert_allclose(multipliers, least, atol=1e-9 * np.max(np.abs(least)))
    assert traces == 1


def test_numbers_are_leaves_and_choices_are_not():
    """New weights and penalties do not compile again; other rows and more iterations do."""
    assert len(jax.tree.leaves(fo.MinimumNorm([1.0, 2.0]))) == 1
    assert len(jax.tree.leaves(fo.AugmentedLagrangian(1e6, 5))) == 1
    rest = (fo.MinimumNorm(), fo.Elimination(("A.x",)), fo.UdwadiaKalaba(semidefinite=True))
    assert jax.tree.leaves((*rest, fo.NullSpace(), fo.CoordinatePartitioning())) == []


def test_refusals_of_weights():
    with pytest.raises(ValueError, match="greater than zero"):
        fo.MinimumNorm([1.0, -1.0])
    with pytest.raises(ValueError, match=r"2 weights for 36 rows.*A.x"):
        fo.MinimumNorm([1.0, 1.0]).solve(equations_of(*padded(case("mobile-robot"))))


def test_the_result_is_data():
    """In one program one state fails and the others do not."""
    drop = [largest().row_names[case("mobile-robot").rows[j][0]] for j in ("W3", "W4")]
    good = succeeded(solve_all(fo.Elimination(drop), *batch()))
    assert good[CASES.index("mobile-robot")]
    assert good[CASES.index("mobile-robot in mm")]
    assert not good[CASES.index("parallelogram")]


def test_bounds_of_the_augmented_lagrangian():
    with pytest.raises(ValueError, match="penalty must be greater than zero"):
        fo.AugmentedLagrangian(0.0)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        fo.AugmentedLagrangian(iterations=0)


DENSE = ("elimination", "udwadia-kalaba", "null-space", "coordinate-partitioning")


@each
def test_rows_that_are_nearly_alike(member):
    """Errors grow as rounding over the smallest singular value, 2e-3; over its square where S is
    factored once and nothing is refined."""
    assert ended(member, "alike by 3e-3", jm.results.RESULTS.successful)
    found = answers(member).acceleration[place("alike by 3e-3"), :2]
    once = member == "minimum-norm for motion"
    tolerance = 8 * np.finfo(float).eps / 2e-3**2 if once else 1e-10
    np.testing.assert_allclose(found, [1.0, 0.0], atol=tolerance)


@pytest.mark.parametrize("member", [*DENSE, "minimum-norm for motion"])
def test_rows_that_are_almost_alike(member):
    """The smallest singular value, 7e-5, is still above the root of the regularisation."""
    assert ended(member, "alike by 1e-4", jm.results.RESULTS.successful)
    found = answers(member).acceleration[place("alike by 1e-4"), :2]
    tolerance = 1e-9 if member in DENSE else 1e-6
    np.testing.assert_allclose(found, [1.0, 0.0], atol=tolerance)


def test_close_to_a_singular_state_penalties_do_not_converge():
    """20 iterations shrink the error by 1 / (1 + 1e7 * 1e-8 / 2) each."""
    failed = jm.results.RESULTS.augmented_lagrangian_not_converged
    assert ended("augmented-lagrangian", "alike by 1e-4", failed)


@each
def test_numbers_that_are_not_finite(member):
    assert ended(member, "force not finite", jm.results.RESULTS.acceleration_not_finite)


@pytest.mark.parametrize("member", DENSE)
def test_a_mass_that_is_not_definite(member):
    failed = jm.results.RESULTS.mass_matrix_not_definite
    assert ended(member, "mass not definite", failed)
    assert "semidefinite=True" in jm.results.RESULTS[failed]


def semidefinite_system(mass, force):
    """Two masses in a row; the second's position is written as a sum of two coordinates, so that
    M is singular until a row says what the first of them is (after Udwadia & Phohomsiri 2006)."""
    return jm.GeneralizedSystem(
        ("x1", "gap", "x2"),
        mass_matrix=lambda q: jnp.asarray(mass),
        force=lambda q, v, t: jnp.asarray(force) - 3.0 * q,
        constraints={
            "distance": jm.generalized.VelocityConstraint(
                lambda q, v, t: v[2] - v[0] - v[1] - t, rows=1
            ),
            "twice": jm.generalized.VelocityConstraint(
                lambda q, v, t: 2 * (v[2] - v[0] - v[1] - t), rows=1
            ),
        },
    )


class TestSemidefiniteMass:
    # x1 and x2 have mass, the gap between them none.
    MASS = np.diag([2.0, 0.0, 5.0])
    FORCE = np.array([1.0, -2.0, 4.0])

    def equations(self, mass):
        system = semidefinite_system(mass, self.FORCE)
        q = jnp.array([0.1, 0.2, 0.3])
        return system.equations(q, jnp.array([0.5, 0.25, 0.75]), 0.0)

    def test_mass_need_only_be_definite_where_the_constraints_allow_motion(self):
        equations = self.equations(self.MASS)
        C, Gamma = equations.descriptor.constraint_matrix(), equations.offset
        a = slow.semidefinite(self.MASS, *map(np.asarray, (C, equations.force, Gamma)))
        found = run(fo.UdwadiaKalaba(semidefinite=True), equations)
        assert bool(found.result == jm.results.RESULTS.successful)
        np.testing.assert_allclose(found.acceleration, a, rtol=1e-12)
        left = equations.force - C.T @ found.multipliers
        np.testing.assert_allclose(left, self.MASS @ a, atol=1e-12)

    def test_it_can_be_compared(self):
        chosen = [fo.UdwadiaKalaba(), fo.UdwadiaKalaba(semidefinite=True)]
        system, q = semidefinite_system(self.MASS, self.FORCE), jnp.array([0.1, 0.2, 0.3])
        found = fo.compare(system, q, jnp.array([0.5, 0.25, 0.75]), 0.0, chosen)
        assert found.succeeded() == (False, True)
        assert found.acceleration_difference[1] == 0
        text = str(found)
        assert "udwadia-kalaba: The mass matrix is not positive definite" in text
        assert "udwadia-kalaba, semidefinite" in text

    @pytest.mark.thorough
    def test_otherwise_the_failure_says_so(self):
        # Nothing says how the gap and x2 share what is left.
        undetermined = run(
            fo.UdwadiaKalaba(semidefinite=True), self.equations(np.diag([2.0, 0.0, 0.0]))
        )
        assert bool(undetermined.result == jm.results.RESULTS.acceleration_not_determined)
