"""Motions of drivers against SciPy's splines, closed forms and their own continuity."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from jaxmbs import motions


def derivatives(motion, times):
    """Values, first and second derivatives (3, times)."""
    return np.array(_derivatives(motion, jnp.asarray(times)))


@eqx.filter_jit
def _derivatives(motion, times):
    first = jax.grad(motion)
    second = jax.grad(first)
    return jnp.stack([jax.vmap(f)(times) for f in (motion, first, second)])


@eqx.filter_jit
def values_of(motion, times):
    return jax.vmap(motion)(times)


class TestTable:
    @pytest.mark.parametrize("count", [2, 3, 4, 10])
    def test_is_the_not_a_knot_spline(self, count, rng):
        times = -2.0 + np.cumsum(rng.uniform(0.3, 2.0, count))
        values = rng.normal(size=count)
        # Off the knots, where the third derivative may jump.
        t = times[0] + (times[-1] - times[0]) * np.sort(rng.uniform(size=40))
        spline = CubicSpline(times, values, bc_type="not-a-knot")
        actual = derivatives(motions.Table(times=times, values=values), t)
        expected = np.array([spline(t, k) for k in range(3)])
        # The slopes solve a linear system of a condition number below 1e3; divided differences
        # over intervals of 0.3 s gain another factor of ten for each derivative.
        scale = np.max(np.abs(expected), axis=1, initial=1.0)[:, None]
        np.testing.assert_allclose(actual / scale, expected / scale, rtol=0, atol=1e-12)

    def test_meets_its_values_and_its_ends_are_inside(self, rng):
        times, values = np.array([0.1, 0.7, 0.9, 2.3]), rng.normal(size=4)
        motion = motions.Table(times=times, values=values)
        np.testing.assert_allclose(values_of(motion, jnp.asarray(times)), values, atol=1e-14)
        domain: Any = motion.domain()
        assert np.allclose(domain, (0.1, 2.3), rtol=1e-15)

    def test_is_not_a_number_outside(self):
        motion = motions.Table(times=[0.0, 1.0, 3.0], values=[0.0, 1.0, 0.0])
        times = jnp.asarray([-1e-12, 3.0 + 1e-12, -5.0, 7.0])
        assert np.all(np.isnan(values_of(motion, times)))
        assert np.all(np.isfinite(values_of(motion, jnp.asarray([0.0, 3.0, 0.0, 3.0]))))

    def test_is_linear_in_its_values(self, rng):
        times = np.array([0.0, 0.5, 1.5, 2.0, 3.0])
        values = rng.normal(size=5)

        @jax.jit
        def value(values):
            return motions.Table(times=times, values=values)(jnp.asarray(1.1))

        slope = jax.grad(value)(jnp.asarray(values))
        expected = [CubicSpline(times, unit, bc_type="not-a-knot")(1.1) for unit in np.eye(5)]
        np.testing.assert_allclose(slope, expected, rtol=0, atol=1e-14)

    def test_derivative_in_its_times(self):
        """Through the motion built from traced times, against central differences."""
        times, values = np.array([0.0, 0.5, 1.5, 2.0]), jnp.asarray([0.0, 1.0, -1.0, 0.5])

        @jax.jit
        def value(times):
            return motions.Table(times=times, values=values)(jnp.asarray(1.1))

        step = 1e-5 * np.array([0.3, -1.0, 0.7, 0.4])
        slope = jax.jit(jax.jacfwd(value))(times) @ step
        difference = (value(times + step) - value(times - step)) / 2
        # Truncation is about the square of the step.
        np.testing.assert_allclose(slope / 1e-5, difference / 1e-5, rtol=0, atol=1e-8)


class TestStep:
    TIMES = np.array([0.2, 1.0, 1.4, 3.0])
    VALUES = np.array([0.5, -1.0, -1.0, 2.0])

    def test_is_a_quintic_between_neighbours(self):
        motion = motions.Step(times=self.TIMES, values=self.VALUES)
        s = np.array([0.1, 0.5, 0.8])
        for k in range(3):
            width = self.TIMES[k + 1] - self.TIMES[k]
            rise = self.VALUES[k + 1] - self.VALUES[k]
            expected = [
                self.VALUES[k] + rise * (10 * s**3 - 15 * s**4 + 6 * s**5),
                rise / width * (30 * s**2 - 60 * s**3 + 30 * s**4),
                rise / width**2 * (60 * s - 180 * s**2 + 120 * s**3),
            ]
            actual = derivatives(motion, self.TIMES[k] + width * s)
            # Division by the width squared (0.16) amplifies rounding.
            np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)

    def test_rests_at_its_knots_from_both_sides(self):
        motion = motions.Step(times=self.TIMES, values=self.VALUES)
        for side in (-1e-9, 0.0, 1e-9):
            actual = derivatives(motion, self.TIMES + side)
            np.testing.assert_allclose(actual[0], self.VALUES, rtol=0, atol=1e-14)
            np.testing.assert_allclose(actual[1], 0.0, atol=1e-14)
            # The third derivative is up to 60 * 3 / 1.6^3 and 60 * 1.5 / 0.8^3 = 176.
            np.testing.assert_allclose(actual[2], 0.0, atol=2e-7)

    def test_is_constant_outside(self):
        motion = motions.Step(times=self.TIMES, values=self.VALUES)
        actual = derivatives(motion, np.array([-100.0, 0.1, 3.1, 100.0]))
        np.testing.assert_allclose(actual[0], self.VALUES[[0, 0, -1, -1]], rtol=0, atol=1e-15)
        np.testing.assert_array_equal(actual[1:], 0.0)
        assert motion.domain() is None


class TestClosedForms:
    T = np.array([-1.3, 0.0, 0.7, 2.9])

    def check(self, motion, *expected):
        actual = derivatives(motion, self.T)
        np.testing.assert_allclose(actual, np.broadcast_arrays(*expected), rtol=1e-14, atol=1e-14)
        assert motion.domain() is None

    def test_linear(self):
        t = self.T
        self.check(motions.Linear(offset=0.3, rate=-2.0), 0.3 - 2 * t, -2.0 + 0 * t, 0 * t)

    def test_polynomial(self):
        t = self.T
        motion = motions.Polynomial(coefficients=[1.0, -2.0, 0.5, 3.0])
        first = -2 + t + 9 * t**2
        self.check(motion, 1 - 2 * t + 0.5 * t**2 + 3 * t**3, first, 1 + 18 * t)

    def test_constant_polynomial(self):
        self.check(motions.Polynomial(coefficients=np.array([0.4])), 0.4 + 0 * self.T, 0, 0)

    def test_sine(self):
        w = 2 * np.pi * 0.7
        angle = w * self.T + 0.3
        motion = motions.Sine(offset=0.1, amplitude=2.0, frequency=0.7, phase=0.3)
        expected = 2 * np.sin(angle), 2 * w * np.cos(angle), -2 * w**2 * np.sin(angle)
        # The angle is about 13 rad, and its rounding is multiplied by w^2.
        actual = derivatives(motion, self.T)
        actual[0] -= 0.1
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


class TestRefusals:
    @pytest.mark.parametrize("kind", [motions.Table, motions.Step])
    @pytest.mark.parametrize(
        ("times", "values", "sentence"),
        [
            (
                [0.0, 1.0, 1.0],
                [0.0, 0.0, 0.0],
                r"times must increase; entry 3 \(1\) does not exceed the one before it \(1\)\.",
            ),
            (
                [0.0, 2.0, 1.5, 3.0],
                [0.0] * 4,
                r"times must increase; entry 3 \(1\.5\) does not exceed the one before it \(2\)\.",
            ),
            ([0.0, 1.0], [0.0], r"times and values must be equally long .*, got 2 and 1\."),
            ([0.0], [0.0], r"hold at least two entries, got 1 and 1\."),
            ([0.0, 1.0], [0.0, np.nan], r"values, entry 2 must be a finite number, got nan\."),
        ],
    )
    def test_tables_that_are_no_functions_of_time(self, kind, times, values, sentence):
        with pytest.raises(ValueError, match=sentence):
            kind(times=times, values=values)

    def test_numbers(self):
        with pytest.raises(ValueError, match=r"coefficients must be a list of at least one number"):
            motions.Polynomial(coefficients=[])
        with pytest.raises(ValueError, match=r"rate must be a finite number, got inf\."):
            motions.Linear(rate=np.inf)
        with pytest.raises(ValueError, match=r"amplitude must be a number, got"):
            motions.Sine(amplitude=[1.0, 2.0], frequency=1.0)
