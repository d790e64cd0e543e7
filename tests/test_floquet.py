"""Floquet multipliers, against closed forms, other integrators and the steady case."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import dot_product_gap
from scipy.integrate import solve_ivp
from scipy.special import ellipe, ellipk

import jaxmbs as jm
from jaxmbs import forces, planar, spatial


class Parametric(eqx.Module):
    """A pendulum whose stiffness changes, with damping: per unit of inertia."""

    stiffness: jax.Array
    swing: jax.Array
    damping: jax.Array

    def __call__(self, q, v, t):
        return -(self.stiffness + self.swing * jnp.cos(2 * t)) * jnp.sin(q) - self.damping * v


def unit(q):
    return jnp.eye(1, dtype=q.dtype)


def parametric(numbers):
    force = Parametric(*numbers)
    return jm.GeneralizedSystem(["x"], mass_matrix=unit, force=force, constraints={})


def integrated(numbers):
    """The monodromy matrix of Mathieu's equation by SciPy."""
    stiffness, swing, damping = numbers

    def slope(t, y):
        return [y[1], -(stiffness + swing * np.cos(2 * t)) * y[0] - damping * y[1]]

    keys = {"rtol": 1e-12, "atol": 1e-14, "method": "DOP853"}
    ends = [solve_ivp(slope, (0, np.pi), start, **keys).y[:, -1] for start in np.eye(2)]
    return np.stack(ends, axis=1)


class TestOneCoordinate:
    # Stable, unstable with a real pair, and without parametric excitation.
    @pytest.mark.parametrize("numbers", [(1.3, 0.6, 0.05), (1.0, 0.8, 0.0), (0.5, 0.0, 0.3)])
    def test_mathieu(self, numbers):
        system = parametric(jnp.array(numbers))
        found = jm.floquet(system, jnp.zeros(1), jnp.zeros(1), np.pi)
        matrix = integrated(numbers)
        np.testing.assert_allclose(found.monodromy, matrix, atol=1e-9)
        expected = np.sort_complex(np.linalg.eigvals(matrix).astype(complex))
        np.testing.assert_allclose(np.sort_complex(found.multipliers), expected, atol=1e-9)
        # Liouville: the product is exp of the trace of A over the period.
        product = np.prod(np.asarray(found.multipliers))
        np.testing.assert_allclose(product, np.exp(-np.pi * numbers[2]), atol=1e-9)
        assert np.all(np.diff(np.abs(found.multipliers)) <= 1e-9)
        if not numbers[1]:
            steady = jm.linearise(system, jnp.zeros(1)).eigenvalues
            np.testing.assert_allclose(np.sort_complex(found.exponents), np.sort_complex(steady))

    def test_pendulum_in_swing(self):
        """From rest at the angle a: Phi = [[1, 0], [T'(a) sin a, 1]], T = 4 K(sin^2(a / 2))."""
        angle = 1.1
        modulus = np.sin(angle / 2) ** 2
        period = 4 * ellipk(modulus)
        found = jm.floquet(
            parametric(jnp.array([1.0, 0.0, 0.0])), jnp.array([angle]), jnp.zeros(1), period
        )
        slope = (ellipe(modulus) - (1 - modulus) * ellipk(modulus)) / (2 * modulus * (1 - modulus))
        longer = 4 * slope * np.sin(angle / 2) * np.cos(angle / 2)
        expected = np.array([[1.0, 0.0], [longer * np.sin(angle), 1.0]])
        np.testing.assert_allclose(found.monodromy, expected, atol=1e-8)
        # Double: known to the root of the tolerance.
        np.testing.assert_allclose(np.asarray(found.multipliers), 1.0, atol=1e-4)

    @pytest.mark.thorough
    def test_derivatives(self):
        """Of the multipliers, forward against differences and reverse."""
        numbers = jnp.array([0.5, 0.3, 0.05])

        def answer(numbers):
            system = parametric(numbers)
            found = jm.floquet(system, jnp.zeros(1), jnp.zeros(1), np.pi).exponents
            return jnp.concatenate([jnp.real(found), jnp.imag(found)])

        _, push = jax.linearize(answer, numbers)
        weight = jnp.array([0.3, -1.0, 2.0, 0.7])
        pulled = jax.linear_transpose(push, numbers)(weight)[0]
        for direction in jnp.eye(3):
            own = push(direction)
            assert dot_product_gap(own, pulled, direction, weight) < 1e-9

            def exponents(s, direction=direction):
                values = np.linalg.eigvals(integrated(numbers + s * direction)).astype(complex)
                values = np.log(values[np.argsort(np.imag(values))]) / np.pi
                return np.concatenate([np.real(values), np.imag(values)])

            step = 1e-3
            near, far = (exponents(k * step) - exponents(-k * step) for k in (1, 2))
            slope = (8 * near - far) / (12 * step)
            np.testing.assert_allclose(own, slope, atol=1e-6)

    def test_refused(self):
        system = parametric(jnp.array([1.3, 0.6, 0.05]))
        start = jnp.zeros(1), jnp.zeros(1)
        with pytest.raises(ValueError, match=r"does not repeat itself after 2 s: .* small motions"):
            jm.floquet(system, *start, 2.0)
        with pytest.raises(ValueError, match=r"does not repeat itself after 3 s: .* another"):
            jm.floquet(system, jnp.array([0.4]), jnp.zeros(1), 3.0)
        with pytest.raises(
            ValueError, match=r"turn must be .0, 0, angle. in the plane and zero in"
        ):
            jm.floquet(system, *start, np.pi, turn=(0.0, 0.0, 1.0))
        with pytest.raises(ValueError, match="period must be greater than zero"):
            jm.floquet(system, *start, -1.0)
        with pytest.raises(ValueError, match="floquet decides ranks"):
            jax.jit(lambda x: jm.floquet(system, x, start[1], np.pi).multipliers)(start[0])


def sorted_numbers(values):
    values = np.asarray(values)
    return values[np.lexsort((np.imag(values).round(6), np.real(values).round(6)))]


class TestRotor:
    """Free of torque, without symmetry, about its largest principal axis: s^2 = -n^2 (C - A)
    (C - B) / (A B) in its own axes."""

    SPIN = 4.0
    ROOT = SPIN * np.sqrt(1.0 * 1.5 / 3.0)

    def found(self, period, turn=(0.0, 0.0, 0.0)):
        body = spatial.Body("rotor", mass=1.0, inertia=(2.0, 1.5, 3.0), position=(0, 0, 0))
        pin = spatial.Spherical("pin", ("ground", "rotor"), (0.0, 0.0, 0.0))
        system = jm.MultibodySystem([body], [pin])
        v = jnp.array([0.0, 0.0, 0.0, 0.0, 0.0, self.SPIN])
        return system, jm.floquet(system, system.reference_q, v, period, turn=turn)

    @pytest.mark.thorough
    def test_periods_in_fixed_axes_and_any_time_in_its_own(self):
        turns = np.array([1j * self.ROOT, -1j * self.ROOT, 4j, -4j, 0.0, 0.0])
        whole = 2 * np.pi / self.SPIN
        _, found = self.found(whole)
        multipliers = sorted_numbers(found.multipliers)
        # 1 is fourfold, in pairs.
        np.testing.assert_allclose(multipliers, sorted_numbers(np.exp(turns * whole)), atol=1e-4)
        # Half a turn does as well, with half of the turns' displacements pointing back.
        _, half = self.found(whole / 2)
        np.testing.assert_allclose(half.monodromy @ half.monodromy, found.monodromy, atol=1e-8)
        system, any_time = self.found(0.3, turn=(0.0, 0.0, 0.3 * self.SPIN))
        steady = jm.linearise(system, system.reference_q, jnp.array([0.0] * 5 + [self.SPIN]))
        expected = sorted_numbers(np.exp(0.3 * np.asarray(steady.eigenvalues)))
        np.testing.assert_allclose(sorted_numbers(any_time.multipliers), expected, atol=1e-4)
        with pytest.raises(
            ValueError, match=r"does not repeat itself after 0.3 s: .* small motions"
        ):
            self.found(0.3)


def orbiting(numbers):
    """A particle that circles on a spring; and its state."""
    mass, stiffness, length, radius = numbers
    zero = 0.0 * mass
    body = planar.Particle("mass", mass=mass, position=(1.0, 0.0))
    spring = forces.SpringDamper(
        "spring",
        ("ground", "mass"),
        points=[(0.0, 0.0), (1.0, 0.0)],
        stiffness=stiffness,
        damping=0.0,
        length=length,
    )
    system = jm.MultibodySystem([body], forces=[spring])
    rate = jnp.sqrt(stiffness * (radius - length) / (mass * radius))
    return system, jnp.stack([radius, zero]), jnp.stack([zero, rate * radius]), rate


class TestOrbit:
    NUMBERS = jnp.array([2.0, 30.0, 0.4, 0.7])

    def test_linearise_and_floquet(self):
        """Small motions about the circle have the frequency (3 O^2 + k / m)^(1/2)."""
        system, q, v, rate = orbiting(self.NUMBERS)
        small = jm.linearise(system, q, v)
        swing = float(np.sqrt(3 * rate**2 + 15.0))
        expected = [0.0, 0.0, swing, swing]
        np.testing.assert_allclose(np.abs(small.eigenvalues), expected, rtol=1e-12)
        np.testing.assert_allclose(small.turning, [0.0, 0.0, float(rate)], rtol=1e-12)
        period = 2 * np.pi / float(rate)
        found = jm.floquet(system, q, v, period)
        expected = np.array([1.0, 1.0, np.exp(1j * swing * period), np.exp(-1j * swing * period)])
        np.testing.assert_allclose(
            sorted_numbers(found.multipliers), sorted_numbers(expected), atol=1e-4
        )
        np.testing.assert_allclose(np.linalg.det(found.monodromy), 1.0, atol=1e-8)
        part = jm.floquet(system, q, v, 0.2, turn=(0.0, 0.0, 0.2 * float(rate)))
        np.testing.assert_allclose(
            np.sort(np.angle(part.multipliers))[[0, -1]], [-0.2 * swing, 0.2 * swing], atol=1e-8
        )

    @pytest.mark.thorough
    def test_derivatives_of_the_turning_axes(self):
        def answer(numbers):
            small = jm.linearise(*orbiting(numbers)[:3])
            values = jnp.concatenate([small.eigenvalues.real, small.eigenvalues.imag])
            return jnp.append(values, small.turning[2])

        def expected(numbers):
            mass, stiffness, length, radius = numbers
            square = stiffness * (radius - length) / (mass * radius)
            swing = jnp.sqrt(3 * square + stiffness / mass)
            zero = jnp.zeros(6)
            return jnp.concatenate([zero, jnp.stack([-swing, swing, jnp.sqrt(square)])])

        value, push = jax.linearize(answer, self.NUMBERS)
        np.testing.assert_allclose(value, expected(self.NUMBERS), atol=1e-9)
        slopes = jax.jacfwd(expected)(self.NUMBERS)
        weight = jnp.asarray(np.random.default_rng(0).normal(size=9))
        pulled = jax.linear_transpose(push, self.NUMBERS)(weight)[0]
        for k, direction in enumerate(jnp.eye(4)):
            own = push(direction)
            np.testing.assert_allclose(own, slopes[:, k], atol=1e-7)
            assert dot_product_gap(own, pulled, direction, weight) < 1e-9
