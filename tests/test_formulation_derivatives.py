"""Derivatives of accelerations and multipliers at redundant states, forward and reverse."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import oracle_formulations as slow
import pytest
from formulation_cases import admissible, equations_of, STRUCTURES
from helpers import dot_product_gap
from representatives import representatives_at

import jaxmbs as jm
from jaxmbs import _formulations as fo
from jaxmbs._formulations._minimum_norm import Truncated
from jaxmbs.io import model_from_tables


SLIDER_CRANK = jm.mechanisms.get("slider-crank").system().structure


@eqx.filter_jit
def derivatives(function, x, d, w):
    """f(x), J d and J^T w."""
    value, push = jax.linearize(function, x)
    return value, push(d), jax.linear_transpose(push, x)(w)[0]


def central_difference(function, h):
    """Of fourth order, at 0."""
    ends = [function(k * h) for k in (-2, -1, 1, 2)]
    return (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h)


def least_solution(M, C, F, Gamma, multipliers):
    del multipliers
    return np.concatenate(slow.solve(M, C, F, Gamma))


def weighted_solution(M, C, F, Gamma, multipliers):
    del multipliers
    a, _ = slow.solve(M, C, F, Gamma)
    return np.concatenate([a, slow.weighted_multipliers(M, C, F, Gamma, WEIGHTS)])


def kept_solution(M, C, F, Gamma, multipliers):
    """With the rows dropped that have no multiplier."""
    a, kept = slow.solve(
        M, np.where(multipliers[:, None] == 0, 0.0, C), F, Gamma * (multipliers != 0)
    )
    return np.concatenate([a, kept])


WEIGHTS = np.arange(1.0, 9.0)
DIFFERENTIATED = (
    (fo.MinimumNorm(), least_solution, 1e-7),
    (fo.MinimumNorm(WEIGHTS), weighted_solution, 1e-7),
    (fo.Elimination(), kept_solution, 1e-7),
    (fo.UdwadiaKalaba(), least_solution, 1e-7),
    (fo.NullSpace(), least_solution, 1e-7),
    (fo.CoordinatePartitioning(), least_solution, 1e-7),
    # Rounding times the penalty in the null space, as it says.
    (fo.AugmentedLagrangian(1e4), least_solution, 1e-6),
)


def masses_of(system: Any):
    return [group.inertia.mass for group in system.body_groups]


def unequal(rng, rows=8, columns=9, rank=5):
    """M^1/2 and C."""
    spread = np.exp(rng.uniform(-1, 1, size=(rows, 1)))
    C = spread * rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, columns))
    return rng.normal(size=(columns, columns)), C


def equal(rng):
    """Two sets of four rows along the same four axes, of a body that is as heavy along all: every
    singular value is the same, and so is every pivot."""
    del rng
    return np.eye(9), np.tile(np.eye(4, 9), (2, 1))


class Curve(eqx.Module):
    """M, C, F and Gamma at a point of five arrays. What it keeps is data: one program serves all
    that are drawn."""

    C: jax.Array
    # What is added to Gamma: outside of the range of C where it is not zero.
    across: jax.Array

    def __call__(self, point):
        rows, columns = self.C.shape
        root, A, B, force, a = point
        constraints = (np.eye(rows) + A) @ self.C @ (np.eye(columns) + B)
        offset = constraints @ a + self.across
        return root @ root.T + np.eye(columns), constraints, force, offset


class Answer(eqx.Module):
    """Accelerations and multipliers of one formulation along a curve."""

    member: fo.AbstractFormulation
    curve: Curve

    def __call__(self, point):
        found = self.member.solve(equations_of(*self.curve(point), structure=SLIDER_CRANK))
        return jnp.concatenate([found.acceleration, found.multipliers])


def drawn(rng, make=unequal):
    """A curve of random numbers, a point of it and a direction."""
    start, C = make(rng)
    rows, columns = C.shape
    shapes = ((columns, columns), (rows, rows), (columns, columns), (columns,), (columns,))
    point = [jnp.asarray(rng.normal(size=shape)) for shape in shapes]
    point[:3] = [jnp.asarray(start), *(0 * x for x in point[1:3])]
    direction = [0.3 * jnp.asarray(rng.normal(size=shape)) for shape in shapes]
    return Curve(jnp.asarray(C), jnp.zeros(rows)), point, direction


class TestDerivatives:
    """At a redundant point, along directions that keep the rank: C (s) = (1 + s A) C (1 + s B)
    and Gamma in its range."""

    @pytest.mark.parametrize("make", [unequal, equal])
    @pytest.mark.parametrize(
        ("member", "exact", "tolerance"),
        # All but the weighted one.
        representatives_at(DIFFERENTIATED, 0, 2, 3, 4, 5, 6),
        ids=lambda m: getattr(m, "word", ""),
    )
    def test_forward_and_reverse_are_the_central_difference(self, member, exact, tolerance, make):
        rng = np.random.default_rng(5)
        arrays, point, direction = drawn(rng, make)
        rows, columns = arrays.C.shape
        function = Answer(member, arrays)
        weights = jnp.asarray(rng.normal(size=rows + columns))
        value, pushed, pulled = derivatives(function, point, direction, weights)
        assert dot_product_gap(pushed, pulled, direction, weights) < 1e-10
        multipliers = np.asarray(value[columns:])

        def at(s):
            moved = [x + s * d for x, d in zip(point, direction, strict=True)]
            return exact(*map(np.asarray, arrays(moved)), multipliers)

        assert np.max(np.abs(value - at(0.0))) < 1e-7 * np.max(np.abs(value))
        slope = central_difference(at, 1e-4)
        for part in (slice(0, columns), slice(columns, None)):
            error = np.max(np.abs(slope[part] - pushed[part])) / np.max(np.abs(pushed[part]))
            assert error < tolerance

    def test_by_forces_where_singular_values_are_equal(self):
        """Of the nearest matrix of a known rank, which is held."""
        rng = np.random.default_rng(8)
        arrays, point, _ = drawn(rng, equal)
        M, C, *loads = arrays(point)

        def function(loads):
            equations = equations_of(M, C, *loads, structure=SLIDER_CRANK)
            found = Truncated(4).solve(equations)
            return jnp.concatenate([found.acceleration, found.multipliers])

        direction = [jnp.asarray(rng.normal(size=9)), C @ jnp.asarray(rng.normal(size=9))]
        weights = jnp.asarray(rng.normal(size=17))
        value, pushed, pulled = derivatives(function, loads, direction, weights)
        assert dot_product_gap(pushed, pulled, direction, weights) < 1e-12
        # Both are linear.
        exact = np.concatenate(slow.solve(*map(np.asarray, (M, C, *loads))))
        slope = np.concatenate(slow.solve(*map(np.asarray, (M, C, *direction))))
        np.testing.assert_allclose(value, exact, rtol=0, atol=1e-12 * np.max(np.abs(exact)))
        np.testing.assert_allclose(pushed, slope, rtol=0, atol=1e-12 * np.max(np.abs(slope)))

    @pytest.mark.parametrize("clean", [False, True])
    def test_where_equations_contradict_each_other(self, clean):
        """As they do off the constraints, where the stages of a Runge-Kutta method lie."""
        rng = np.random.default_rng(6)
        arrays, point, direction = drawn(rng)
        across = 1e-3 * jnp.asarray(rng.normal(size=8))
        function = Answer(fo.MinimumNorm(clean=clean), Curve(arrays.C, across))
        # Of accelerations alone: no multipliers fit.
        weights = jnp.asarray(rng.normal(size=9))
        everything = jnp.concatenate([weights, jnp.zeros(8)])
        _, pushed, pulled = derivatives(function, point, direction, everything)
        pushed = pushed[:9]
        assert dot_product_gap(pushed, pulled, direction, weights) < 1e-10

        def at(s):
            moved = [x + s * d for x, d in zip(point, direction, strict=True)]
            return derivatives(function, moved, direction, everything)[0][:9]

        slope = central_difference(at, 1e-3)
        assert np.max(np.abs(slope - pushed)) < 1e-6 * np.max(np.abs(pushed))

    def test_what_is_unique_of_multipliers_that_were_not_cleaned(self):
        """x . C^T lambda is unique for every x, and no other combination is."""
        rng = np.random.default_rng(7)
        arrays, point, direction = drawn(rng)
        constraints = np.asarray(arrays(point)[1])

        def of(clean):
            function = Answer(fo.MinimumNorm(clean=clean), arrays)
            everything = jnp.concatenate([jnp.zeros(9), jnp.asarray(weights)])
            value, pushed, pulled = derivatives(function, point, direction, everything)
            return value[9:], pushed[9:], pulled

        weights = constraints @ rng.normal(size=constraints.shape[1])
        (_, cleaned, by_cleaned), (_, rounded, by_rounded) = of(clean=True), of(clean=False)
        error = np.abs(constraints.T @ (rounded - cleaned))
        assert np.max(error) < 1e-8 * np.max(np.abs(constraints.T @ cleaned))
        for one, other in zip(by_cleaned, by_rounded, strict=True):
            assert np.max(np.abs(one - other)) < 1e-8 * np.max(np.abs(one))
        assert np.max(np.abs(rounded - cleaned)) > 1e-3 * np.max(np.abs(cleaned))

    @pytest.mark.thorough
    def test_a_systems_motion_by_masses_forces_and_speed(self):
        model = STRUCTURES["trailer-with-axle"](np.random.default_rng(0))
        system = model_from_tables(model).system()
        rng = np.random.default_rng(1)
        q, t = system.reference_q, jnp.asarray(0.0)
        v, equations = admissible(system, q, t, rng)
        descriptor = equations.descriptor
        matrices = map(np.asarray, (descriptor.mass_matrix(), descriptor.constraint_matrix()))
        allowed = jnp.asarray(slow.null_spaces(*matrices)[1][:, 0])
        arrays, static = eqx.partition(system, eqx.is_inexact_array)
        point = (masses_of(system), jnp.zeros_like(v), jnp.asarray(0.0))

        def function(point):
            masses, force, speed = point
            changed = eqx.tree_at(masses_of, eqx.combine(arrays, static), masses)
            equations = changed.equations(q, v + speed * allowed, t)
            equations = eqx.tree_at(lambda e: e.force, equations, equations.force + force)
            return fo.MinimumNorm(clean=False).solve(equations).acceleration

        direction = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), point)
        weights = jnp.asarray(rng.normal(size=v.shape))
        _, pushed, pulled = derivatives(function, point, direction, weights)
        assert dot_product_gap(pushed, pulled, direction, weights) < 1e-10

        def at(s):
            moved = jax.tree.map(lambda x, d: x + s * d, point, direction)
            return derivatives(function, moved, direction, weights)[0]

        slope = central_difference(at, 1e-3)
        np.testing.assert_allclose(pushed, slope, atol=1e-8 * np.max(np.abs(slope)))
