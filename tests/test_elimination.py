"""Elimination of named rows, and all formulations side by side."""

import functools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import oracle_formulations as slow
import pytest
from formulation_cases import (
    admissible,
    robot,
    ROBOT_DROPPED,
    ROBOT_UNIQUE,
    state_of,
)

import jaxmbs as jm
from jaxmbs import _formulations as fo
from jaxmbs._formulations._compare import _solve as run
from jaxmbs._formulations._independent_coordinates import singular_between


@functools.cache
def steered():
    """The robot with its rack at +0.3a, turned in the plane: heading -> equations of motion."""
    system, q, t = robot(0.015, 1.0)
    poses = np.asarray(q).reshape(-1, 3)

    def turned(heading):
        angle = heading - poses[0, 2]
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        turned = np.column_stack([poses[:, :2] @ turn.T, poses[:, 2] + angle])
        placed = jnp.asarray(turned.ravel())
        still, _, _ = state_of(system, placed, jnp.zeros(21), t)
        allowed = np.linalg.svd(still.descriptor.constraint_matrix())[2][20:]
        assert len(allowed) == 1
        moving = allowed[0] / allowed[0, 2]
        return state_of(system, placed, jnp.asarray(moving), t)[0]

    return turned


def exact(equations):
    descriptor = equations.descriptor
    arrays = (descriptor.mass_matrix(), descriptor.constraint_matrix())
    return slow.solve(*map(np.asarray, (*arrays, equations.force, equations.offset)))


@eqx.filter_jit
def passed(elimination, earlier, later):
    """Was the elimination singular between two states?"""
    numbered = elimination.numbered(earlier.structure)
    return singular_between(numbered.dependence(earlier), numbered.dependence(later))


def test_names_are_checked():
    _, equations = admissible(*robot(), np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"drops 'C', 'Q.x'.*the rows are A.x, A.y, B.x"):
        fo.Elimination(("C", "W4", "Q.x")).solve(equations)
    with pytest.raises(ValueError, match="names W4 twice"):
        fo.Elimination(("W4", "W4"))
    assert fo.Elimination("W4").drop == ("W4",)


def test_rows_that_do_not_follow_from_the_others_are_missed():
    _, equations = admissible(*robot(), np.random.default_rng(0))
    lost = run(fo.Elimination(("A.x", "W4")), equations).result
    assert bool(lost == jm.results.RESULTS.elimination_singular)
    assert "MinimumNorm()" in jm.results.RESULTS[lost]


def test_dependent_rows_that_are_kept_are_reported():
    _, equations = admissible(*robot(), np.random.default_rng(0))
    found = run(fo.Elimination(("W4",)), equations)
    assert bool(found.result == jm.results.RESULTS.elimination_incomplete)
    # The motion is determined all the same.
    a, _ = exact(equations)
    np.testing.assert_allclose(found.acceleration, a, atol=1e-9 * np.max(np.abs(a)))


def test_it_becomes_singular_on_the_way():
    """MECHANISMS.md: {C.y, W4} at rack +0.3a and heading -104.244 deg."""
    elimination, turned = fo.Elimination(("C.y", "W4")), steered()
    start = turned(0.0)
    low, high = np.deg2rad(-110.0), np.deg2rad(-100.0)
    assert passed(elimination, start, turned(low))
    assert not passed(elimination, start, turned(high))
    for _ in range(40):
        middle = (low + high) / 2
        beyond = passed(elimination, start, turned(middle))
        low, high = (middle, high) if beyond else (low, middle)
    assert np.rad2deg(high) == pytest.approx(-104.244, abs=1e-3)
    assert bool(run(elimination, turned(high)).result == jm.results.RESULTS.elimination_singular)
    # Close to it the motion is right, though the multipliers have lost most digits.
    near = turned(high + 1e-5)
    found, (a, least) = run(elimination, near), exact(near)
    assert bool(found.result == jm.results.RESULTS.successful)
    np.testing.assert_allclose(found.acceleration, a, atol=1e-9 * np.max(np.abs(a)))
    assert np.max(np.abs(found.multipliers)) > 1e3 * np.max(np.abs(least))


def test_the_published_eliminations_differ_where_reactions_are_not_unique():
    system, q, t = robot()
    v, _ = admissible(system, q, t, np.random.default_rng(0))
    chosen = [fo.Elimination(drop) for drop in ROBOT_DROPPED]
    found = fo.compare(system, q, v, t, chosen)
    assert found.succeeded() == (True, True, True)
    assert found.contradictions() == ()
    assert np.max(found.acceleration_difference) < 1e-9
    names = system.structure.constraint_names
    gaps = dict(zip(names, found.between_runs.reactions, strict=True))
    assert all(gaps[name] < 1e-8 for name in ROBOT_UNIQUE)
    # W4 is dropped in all three.
    assert all(gaps[name] > 1e-2 for name in set(names) - ROBOT_UNIQUE - {"W4"})
    for drop, one in zip(ROBOT_DROPPED, found.runs, strict=True):
        zero = np.flatnonzero(np.asarray(one.multipliers) == 0)
        assert {system.structure.row_names[i] for i in zero} == set(drop)
    text = str(found)
    assert "elimination of C.y, W4" in text
    lines = {line.split()[0]: line for line in text.splitlines() if line}
    assert "not unique" in lines["W1"]
    assert lines["W1"].count("differs") == 2
    assert lines["A"].count("same") == 2


@pytest.mark.thorough
def test_one_of_each_is_the_default():
    system, q, t = robot()
    v, equations = admissible(system, q, t, np.random.default_rng(0))
    found = fo.compare(system, q, v, t, seed=3)
    words = [formulation.word for formulation in found.formulations]
    assert words == [
        "minimum-norm",
        "elimination",
        "udwadia-kalaba",
        "null-space",
        "coordinate-partitioning",
        "augmented-lagrangian",
    ]
    assert all(found.succeeded())
    assert found.contradictions() == ()
    changed = found.under_shaking.reactions > 1e-6
    np.testing.assert_array_equal(changed, ~np.asarray(found.solvability.reaction_unique))
    # The shaken multipliers satisfy the same equations.
    descriptor = equations.descriptor
    added = descriptor.apply_CT(found.shaken - found.runs[0].multipliers)
    size = np.max(np.abs(descriptor.apply_CT(found.runs[0].multipliers)))
    assert np.max(np.abs(added)) < 1e-12 * size


def test_a_failure_is_named_and_left_out():
    system, q, t = robot()
    v, _ = admissible(system, q, t, np.random.default_rng(0))
    found = fo.compare(system, q, v, t, [fo.MinimumNorm(), fo.Elimination(("A.x", "W4"))])
    assert found.succeeded() == (True, False)
    assert found.contradictions() == ()
    assert np.isnan(found.acceleration_difference[1])
    assert "elimination of A.x, W4: This elimination has become singular" in str(found)


def test_rounding_is_no_difference_where_nothing_accelerates():
    system, _, _ = robot()
    chosen = [fo.MinimumNorm(), fo.AugmentedLagrangian(), fo.Elimination(ROBOT_DROPPED[0])]
    found = fo.compare(system, system.reference_q, system.initial_v, 0.0, chosen)
    assert all(found.succeeded())
    assert found.contradictions() == ()
    assert np.max(found.acceleration_difference) < 1e-12


@pytest.mark.thorough
def test_nothing_to_compare():
    system, q, t = robot()
    with pytest.raises(ValueError, match="at least one formulation"):
        fo.compare(system, q, jnp.zeros(21), t, [])
