"""The normal law of contacts: against decimal arithmetic of many digits and impacts integrated by
SciPy.
"""

import decimal
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

from jaxmbs._forces._contact_law import normal_force, restitution_damping, stored_energy


STIFFNESS, EXPONENT, DAMPING = 300.0, 1.5, 0.8


def exact_damping(restitution: float) -> float:
    """The positive zero of (1 + e) x = ln((1 + x) / (1 - e x)) to 60 digits, by bisection in
    u = -ln(1 - e x)."""
    with decimal.localcontext() as context:
        context.prec = 60
        e, one = decimal.Decimal(restitution), decimal.Decimal(1)

        def excess(u: decimal.Decimal) -> decimal.Decimal:
            x = (one - (-u).exp()) / e
            return (one + x).ln() + u - (one + e) * x

        # The left side is negative between zero and its positive zero.
        low, high = decimal.Decimal(1) / 2**40, one + one / e
        for _ in range(190):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) < 0 else (low, middle)
        return float((one - (-low).exp()) / e)


def rebound(mass: float, exponent: float, damping: float, speed: float) -> float:
    """The speed after an impact, by SciPy."""

    def rates(t, y):
        depth, speed = y
        force = STIFFNESS * max(depth, 0.0) ** exponent * (1 + damping * speed)
        return [speed, -force / mass]

    def left(t, y):
        return y[0] if t > 0 else 1.0

    left.terminal, left.direction = True, -1  # pyright: ignore[reportFunctionMemberAccess]
    found = scipy.integrate.solve_ivp(
        rates, (0.0, 100.0), [0.0, speed], "DOP853", rtol=1e-12, atol=1e-14, events=left
    )
    return -found.y_events[0][0][1]


class TestRestitution:
    @pytest.mark.parametrize(
        "restitution",
        [1e-3, 0.02, 0.1, 0.3, 0.5, 0.7, 0.85, 0.9 - 1e-9, 0.9 + 1e-9, 0.95, 0.999, 1 - 1e-7],
    )
    def test_relation_is_solved_to_rounding(self, restitution: float):
        found = float(restitution_damping(jnp.asarray(restitution)))
        assert found == pytest.approx(exact_damping(restitution), rel=3e-14)

    def test_extremes(self):
        """No damping at e = 1, and 1/e where almost nothing comes back."""
        assert float(restitution_damping(jnp.asarray(1.0))) == 0.0
        assert float(restitution_damping(jnp.asarray(1e-6))) == pytest.approx(1e6, rel=1e-15)

    def test_limit_of_lankarani_and_nikravesh(self):
        """3 (1 - e^2) / 4 next to e = 1, and too little damping elsewhere."""
        e = np.array([0.99999, 0.8, 0.5, 0.2])
        ratio = np.asarray(restitution_damping(jnp.asarray(e))) / (0.75 * (1 - e**2))
        assert ratio[0] == pytest.approx(1, abs=2e-5)
        assert np.all(np.diff(ratio) > 0)
        assert ratio[2] > 1.5

    @pytest.mark.parametrize(
        ("restitution", "mass", "exponent", "speed"),
        [(0.05, 2.0, 1.5, 0.7), (0.5, 0.3, 1.0, 3.0), (0.9, 5.0, 2.2, 0.1)],
    )
    def test_impact_has_it(self, restitution: float, mass: float, exponent: float, speed: float):
        damping = float(restitution_damping(jnp.asarray(restitution))) / speed
        assert rebound(mass, exponent, damping, speed) == pytest.approx(
            restitution * speed, rel=1e-9
        )

    def test_traced_as_known(self):
        e = jnp.asarray([1e-4, 0.3, 0.89, 0.91, 0.9999, 1.0])
        np.testing.assert_allclose(
            jax.jit(jax.vmap(restitution_damping))(e), restitution_damping(e), rtol=1e-14
        )

    def test_derivatives(self):
        """First and second against differences of the decimal arithmetic; -3/2 and 3 at e = 1."""
        first = jax.jit(jax.vmap(jax.grad(restitution_damping)))
        second = jax.jit(jax.vmap(jax.jacfwd(jax.grad(restitution_damping))))
        e, h = np.array([0.05, 0.4, 0.899, 0.901, 0.98]), 1e-5
        low, here, high = (np.array([exact_damping(x + s) for x in e]) for s in (-h, 0, h))
        np.testing.assert_allclose(first(e), (high - low) / (2 * h), rtol=1e-6)
        np.testing.assert_allclose(second(e), (high - 2 * here + low) / h**2, rtol=1e-4)
        assert float(first(np.ones(1))[0]) == pytest.approx(-1.5)
        assert float(second(np.ones(1))[0]) == pytest.approx(3.0)


def force(
    depth: Any,
    speed: Any,
    stiffness: Any = STIFFNESS,
    exponent: Any = EXPONENT,
    damping: Any = DAMPING,
) -> Any:
    given = depth, speed, stiffness, exponent, damping
    return normal_force(*map(jnp.asarray, given))


class TestForce:
    def test_values(self):
        assert float(force(jnp.asarray(0.04), jnp.asarray(0.5))) == pytest.approx(
            300 * 0.008 * 1.4, rel=1e-14
        )

    def test_zero_outside_and_never_pulling(self):
        depth = jnp.asarray([-0.1, 0.0, 0.1, 0.1])
        speed = jnp.asarray([1.0, 1.0, -1.25, -50.0])
        np.testing.assert_array_equal(force(depth, speed), np.zeros(4))

    @pytest.mark.parametrize("depth", [-0.1, 0.0, 0.04])
    @pytest.mark.parametrize("speed", [0.0, 0.5, -1 / DAMPING, -3.0])
    @pytest.mark.parametrize("exponent", [1.0, 1.5])
    def test_derivatives_are_finite_and_agree(self, depth: float, speed: float, exponent: float):
        at = tuple(map(jnp.asarray, (depth, speed, STIFFNESS, exponent, DAMPING)))
        places = tuple(range(5))
        forward = jax.jacfwd(normal_force, places)(*at)
        reverse = jax.jacrev(normal_force, places)(*at)
        assert np.all(np.isfinite(forward))
        np.testing.assert_allclose(forward, reverse, rtol=1e-14)
        if depth <= 0:
            np.testing.assert_array_equal(forward, np.zeros(5))
        elif speed >= 0:
            h = 1e-6
            for k, own in enumerate(at):
                low, high = (
                    float(force(*(x + s * h * own if j == k else x for j, x in enumerate(at))))
                    for s in (-1, 1)
                )
                size = 2 * h * float(own)
                if size:
                    assert float(forward[k]) == pytest.approx((high - low) / size, rel=1e-8)

    def test_energy(self):
        """Its derivative is the force at rest; the damping dissipates the rest of an impact."""
        depth = jnp.asarray([-0.1, 0.0, 0.04])
        numbers = jnp.asarray(STIFFNESS), jnp.asarray(EXPONENT)
        slope = jax.vmap(jax.grad(lambda x: stored_energy(x, *numbers)))(depth)
        np.testing.assert_allclose(slope, force(depth, 0.0), rtol=1e-14)
        work, _ = scipy.integrate.quad(lambda x: float(force(jnp.asarray(x), 0.0)), 0, 0.04)
        assert float(stored_energy(depth[2], *numbers)) == pytest.approx(work, rel=1e-9)
