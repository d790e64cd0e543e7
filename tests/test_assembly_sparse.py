"""Assembly by the sparse core: against dense Newton steps, on long chains, without any matrix."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from given_matrices import kkt_matrices
from jax.extend.core import jaxprs_in_params
from scipy.linalg import null_space
from test_assembly import along_markers, along_masses, along_start, assert_differentiable, perturbed

from jaxmbs import _geometry, assemble, mechanisms
from jaxmbs._linalg import KKTSystem, ProximalCholesky, saddle_point
from jaxmbs.results import RESULTS


# Newton's steps of both end at rounding, after linear solves of condition 1e2 to 1e4.
NEAREST = 1e-11

# Singular values of dPhi/dd below this are those of redundant rows, once it is closed.
RANK = 1e-6


@eqx.filter_jit
def dense(system, start, d, multipliers):
    """Phi, its derivative along the retraction coordinates at the start, the second derivative
    of lambda^T Phi, and M at the start."""

    def closure(d):
        return system.position_residual(system.retract(start, d), 0.0)

    def curvature(d):
        return jax.vjp(closure, d)[1](multipliers)[0]

    return closure(d), jax.jacfwd(closure)(d), jax.jacfwd(curvature)(d), system.mass_matrix(start)


def nearest_by_dense_newton(system, start, d):
    """Newton's method on M d + J^T lambda = 0, Phi = 0, by pseudoinverses and a null space, from
    retraction coordinates d close to the solution."""
    multipliers = np.zeros(len(system.structure.geometric_rows))
    step = np.full_like(d, np.inf)
    for _ in range(20):
        given = dense(system, start, jnp.asarray(d), jnp.asarray(multipliers))
        phi, jacobian, bent, mass = (np.array(x) for x in given)
        free = null_space(jacobian, rcond=RANK)
        normal = -np.linalg.pinv(jacobian, rcond=RANK) @ phi
        hessian = mass + bent
        slope = free.T @ (mass @ d + hessian @ normal)
        step = normal - free @ np.linalg.solve(free.T @ hessian @ free, slope)
        d = d + step
        left = mass @ d + bent @ step
        multipliers = -np.linalg.pinv(jacobian.T, rcond=RANK) @ left
    assert np.linalg.norm(step) < NEAREST
    return d


class TestDenseNewton:
    def test_the_same_point(self, rng):
        system, start = perturbed(mechanisms.bennett(), 0.1, rng)
        found = assemble(system, start)
        d = system.difference(start, found.q)
        away = 1e-3 * rng.normal(size=d.size)
        expected = nearest_by_dense_newton(system, start, np.array(d) + away)
        np.testing.assert_allclose(d, expected, rtol=0, atol=NEAREST)
        np.testing.assert_allclose(system.retract(start, d), found.q, rtol=0, atol=1e-15)


class TestDerivatives:
    @pytest.mark.thorough
    def test_redundant_and_far_from_closure(self, rng):
        """Quaternions, an overconstrained loop, 0.15 rad and 0.15 m apart. It stays one when all
        of its points move away from the bodies' centres in proportion, with the bodies."""
        problem = (*perturbed(mechanisms.bennett(), 0.15, rng), jnp.asarray(0.0))
        markers: Any = [m for g in problem[0].constraint_groups for m in g.markers]
        grown = [[0.3 * marker.offset.origin for marker in markers]]
        directions = [
            along_start(problem, rng),
            along_masses(problem, rng),
            along_markers(problem, grown),
        ]
        assert_differentiable(problem, directions, rng)


def sizes(jaxpr):
    """Numbers of elements of everything that is computed, inner programs included."""
    for equation in jaxpr.eqns:
        for variable in equation.outvars:
            yield variable.aval.size
        for inner in jaxprs_in_params(equation.params):
            yield from sizes(inner)


class TestChain:
    @pytest.mark.thorough
    def test_a_hundred_windows(self, rng):
        system, start = perturbed(mechanisms.four_bar_chain_spatial(100), 0.02, rng)
        found = assemble(system, start)
        assert found.result == RESULTS.successful
        np.testing.assert_allclose(found.residual, 0.0, atol=1e-12)
        assert float(found.distance) > 0.01

    def test_no_matrix_is_formed(self):
        system = mechanisms.four_bar_chain(40).system()
        arrays, rest = eqx.partition(system, eqx.is_inexact_array)

        def end(arrays, q):
            return assemble(eqx.combine(arrays, rest), q, throw=False).q

        def derivative(arrays, q):
            return jax.vjp(end, arrays, q)[1](q)

        rows, nv = len(system.structure.rows), system.structure.nv
        for function in (end, derivative):
            program = jax.make_jaxpr(function)(arrays, system.reference_q)
            largest = max(sizes(program.jaxpr))
            assert nv <= largest < rows * nv / 4


class TestSaddlePoint:
    """Dense, with a doubled row, against a null space and a pseudoinverse."""

    def solve(self, rng, lowest, *, consistent=True):
        rows = rng.normal(size=(4, 9))
        rows[3] = 2 * rows[0]
        root = rng.normal(size=(9, 9))
        mass = root @ root.T + 9 * np.eye(9)
        free = null_space(rows)
        hessian = mass + 0.3 * np.diag(rng.normal(size=9))
        # One direction in the null space, of the lowest curvature relative to M.
        one = mass @ free[:, 0]
        hessian = hessian + (lowest - 1) * np.outer(one, one) / (free[:, 0] @ one)
        force, gap = rng.normal(size=9), rows @ rng.normal(size=9)
        descriptor = kkt_matrices(jnp.asarray(mass), jnp.asarray(rows))
        solver = ProximalCholesky(regularisation=1e-9, clean=False)
        found = saddle_point(
            KKTSystem(descriptor, solver),
            lambda u: jnp.asarray(hessian) @ u,
            (jnp.asarray(force), jnp.asarray(gap)),
            rtol=1e-13,
            max_steps=40,
        )
        return found, rows, free, hessian, force, gap

    def test_solution(self, rng):
        found, rows, free, hessian, force, gap = self.solve(rng, 1.0)
        normal = np.linalg.pinv(rows) @ gap
        slope = free.T @ (force - hessian @ normal)
        expected = normal + free @ np.linalg.solve(free.T @ hessian @ free, slope)
        np.testing.assert_allclose(found.u, expected, rtol=0, atol=1e-10)
        left = hessian @ np.array(found.u) + rows.T @ np.array(found.multipliers)
        np.testing.assert_allclose(left, force, rtol=0, atol=1e-9)
        assert bool(found.convex)
        assert bool(found.converged)

    def test_negative_curvature_is_met(self, rng):
        found = self.solve(rng, -0.5)[0]
        assert not bool(found.convex)


class TestDifference:
    def test_it_undoes_the_retraction(self, rng):
        """Up to a full turn, from a quaternion of any length, and next to nothing."""
        for size in (3.0, 1e-3, 1e-6, 0.0):
            q = rng.normal(size=7)
            step = np.concatenate([rng.normal(size=3), size * rng.uniform(-1, 1, 3)])
            end = _geometry.SpatialPose().retract(jnp.asarray(q), jnp.asarray(step))
            back = _geometry.SpatialPose().difference(jnp.asarray(q), end)
            np.testing.assert_allclose(back, step, rtol=0, atol=1e-14)

    def test_derivative_at_nothing(self, rng):
        """It is 1 there, and the second derivative exists."""
        q = jnp.asarray(rng.normal(size=7))

        def back(step):
            end = _geometry.SpatialPose().retract(q, step)
            return _geometry.SpatialPose().difference(q, end)

        rest = jnp.zeros(6)
        np.testing.assert_allclose(jax.jit(jax.jacfwd(back))(rest), np.eye(6), rtol=0, atol=1e-14)
        second = jax.jit(jax.jacfwd(jax.jacrev(back)))(rest)
        np.testing.assert_allclose(second, 0.0, rtol=0, atol=1e-14)
