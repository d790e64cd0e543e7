"""Equilibrium and small motions of systems whose forces have states: against polynomials, matrices
written by hand, and SciPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from representatives import representatives
from scipy.integrate import solve_ivp

import jaxmbs as jm
from jaxmbs import forces, generalized, planar


G = 9.81


def polynomial_roots(*coefficients):
    return np.sort_complex(np.roots(coefficients))


def sorted_values(found):
    return np.sort_complex(np.asarray(found.eigenvalues))


# ---------------------------------------------------------------------------------------------
# A motor under PI control of its speed: J w' = kp (W - w) + ki s, s' = W - w.
# ---------------------------------------------------------------------------------------------

INERTIA, WANTED, KP, KI = 0.4, 3.0, 1.5, 4.0


class Speed(eqx.Module):
    """PI control of a speed; `unit`: of what the integral is counted in."""

    proportional: jax.Array
    integral: jax.Array
    unit: float = eqx.field(static=True)

    def torque(self, frames, twists, states, t):
        error = WANTED - twists[0].angular
        return [(jnp.zeros(2), self.proportional * error + self.integral * self.unit * states[0])]

    def rate(self, frames, twists, states, t):
        return (WANTED - twists[0].angular) / self.unit


def motor(proportional=KP, integral=KI, unit=1.0):
    law = Speed(jnp.asarray(proportional), jnp.asarray(integral), unit)
    force = forces.StatefulForce(
        "motor",
        law.torque,
        law.rate,
        [("disk", (0.0, 0.0))],
        states=["integral"],
        quantities={"integral": generalized.Quantity("angle", "rad", 1 / unit)},
    )
    disk = planar.Body(
        "disk", mass=1.0, inertia=INERTIA, position=(0.0, 0.0), angular_velocity=WANTED
    )
    # One hinge too many: redundant rows.
    hinges = [planar.Revolute(f"hinge {k}", ("ground", "disk"), (0.0, 0.0)) for k in range(2)]
    return jm.MultibodySystem((disk,), hinges, forces=(force,))


class TestMotor:
    @pytest.mark.parametrize("unit", representatives([1.0, 1e-6], 1.0))
    def test_eigenvalues(self, unit):
        """J l^3 + kp l^2 + ki l, whatever the integral is counted in; the angle may be any."""
        system = motor(unit=unit)
        found = jm.linearise(system, system.reference_q, system.initial_v)
        np.testing.assert_allclose(
            sorted_values(found), polynomial_roots(INERTIA, KP, KI, 0.0), atol=1e-12
        )
        assert 0.0 in np.asarray(found.eigenvalues)
        # (angle, integral, speed), angle and speed times the root of J.
        root = np.sqrt(INERTIA) * float(jnp.sign(found.basis[2, 0]))
        expected = [
            [0, 0, 1],
            [0, 0, -1 / root / unit],
            [0, KI * unit / root, -KP / INERTIA],
        ]
        np.testing.assert_allclose(found.state_matrix, expected, atol=1e-12, rtol=1e-12)
        np.testing.assert_allclose(found.damping, [[KP / INERTIA]], rtol=1e-12)
        np.testing.assert_allclose(found.stiffness, [[0.0]], atol=1e-12)
        assert [(x.name, x.quantity.unit) for x in found.states] == [("motor.integral", "rad")]
        assert "beside displacements: motor.integral (rad)" in str(found)
        assert found.modes.shape == (4, 3)

    @pytest.mark.thorough
    def test_multipliers_of_a_period(self):
        """Of a motion that is steady: exp(l P), whatever the period."""
        system = motor()
        found = jm.floquet(system, system.reference_q, system.initial_v, 0.7)
        small = jm.linearise(system, system.reference_q, system.initial_v)
        np.testing.assert_allclose(
            found.monodromy, scipy.linalg.expm(0.7 * np.asarray(small.state_matrix)), atol=1e-9
        )

    def test_an_integral_that_is_wound_up(self):
        system = motor()
        q = system.reference_q.at[3].set(0.2)
        with pytest.raises(ValueError, match=r"not steady: 'disk' \(turning\) accelerates"):
            jm.linearise(system, q, system.initial_v)
        with pytest.raises(ValueError, match="does not repeat itself"):
            jm.floquet(system, q, system.initial_v, 0.7)

    def test_speeds_at_which_the_integral_goes_on(self):
        """A disk that spins freely, beside an integral that nothing depends on."""
        system = motor(proportional=0.0, integral=0.0)
        with pytest.raises(
            ValueError,
            match=r"not steady: the state 'motor\.integral' of a force still changes, by -1 rad/s",
        ):
            jm.linearise(system, system.reference_q, system.initial_v * 4 / 3)
        with pytest.raises(ValueError, match=r"'motor\.integral' of a force is -0\.7 rad"):
            jm.floquet(system, system.reference_q, system.initial_v * 4 / 3, 0.7)
        found = jm.linearise(system, system.reference_q, system.initial_v)
        assert not np.any(np.asarray(found.eigenvalues))

    @pytest.mark.thorough
    def test_no_equilibrium(self):
        """What is wanted is a speed, so that the integral goes on at rest."""
        system = motor()
        with pytest.raises(
            RuntimeError,
            match=r"the state 'motor\.integral' of a force still changes, by 3 rad/s\. There",
        ):
            jm.equilibrium(system, system.reference_q, max_steps=20)
        quiet = jm.equilibrium(system, system.reference_q, max_steps=20, throw=False)
        assert bool(quiet.result == jm.results.RESULTS.too_many_steps)


# ---------------------------------------------------------------------------------------------
# A mass on a spring that follows it late: m x'' + c x' + k y = 0, tau y' = x - y.
# ---------------------------------------------------------------------------------------------

MASS, DAMPING, STIFFNESS, DELAY = 2.0, 1.3, 50.0, 0.05


class LateSpring(eqx.Module):
    """Along x; its stiffness may pulsate, per rad/s 2."""

    stiffness: jax.Array
    pulsation: jax.Array
    damping: jax.Array
    delay: jax.Array

    def force(self, frames, twists, states, t):
        stiffness = self.stiffness + self.pulsation * jnp.cos(2 * t)
        pull = -stiffness * states[0] - self.damping * twists[0].linear[0]
        return [(jnp.stack([pull, 0.0]), 0.0)]

    def rate(self, frames, twists, states, t):
        return (frames[0].origin[0] - states[0]) / self.delay


def late_spring(mass=MASS, pulsation=0.0, gravity=(0.0, 0.0), scale=None):
    numbers = (STIFFNESS, pulsation, DAMPING, DELAY)
    law = LateSpring(*map(jnp.asarray, numbers))
    spring = forces.StatefulForce(
        "spring",
        law.force,
        law.rate,
        [("mass", (0.0, 0.0))],
        states=["way"],
        quantities={"way": generalized.Quantity("length", "m", scale)},
    )
    body = planar.Body("mass", mass=mass, inertia=1.0, position=(0.0, 0.0))
    rail = planar.Translational("rail", ("ground", "mass"), (0.0, 0.0), (1.0, 0.0))
    return jm.MultibodySystem((body,), (rail,), forces=(spring,), gravity=gravity)


class TestLateSpring:
    def test_eigenvalues_and_modes(self):
        """m tau l^3 + (m + c tau) l^2 + c l + k; y = x / (1 + tau l)."""
        system = late_spring(scale=0.1)
        found = jm.linearise(system, system.reference_q)
        expected = polynomial_roots(MASS * DELAY, MASS + DAMPING * DELAY, DAMPING, STIFFNESS)
        np.testing.assert_allclose(sorted_values(found), expected, rtol=1e-12)
        values, modes = np.asarray(found.eigenvalues), np.asarray(found.modes)
        np.testing.assert_allclose(modes[3], modes[0] / (1 + DELAY * values), rtol=1e-10)
        np.testing.assert_allclose(modes[1:3], 0.0, atol=1e-12)
        # What counts as one of a state is of length 1, as is a kilogram's metre.
        lengths = MASS * np.abs(modes[0]) ** 2 + np.abs(modes[3] / 0.1) ** 2
        np.testing.assert_allclose(lengths, 1.0, rtol=1e-12)

    @pytest.mark.thorough
    def test_where_it_hangs(self):
        """On a slope: k y = m g, and the way of the spring is that of the mass."""
        system = late_spring(gravity=(2.0, -G))
        found = jm.equilibrium(system, system.reference_q)
        way = MASS * 2.0 / STIFFNESS
        np.testing.assert_allclose(found.q, [way, 0.0, 0.0, way], atol=1e-12)
        np.testing.assert_allclose(
            found.reactions().wrench("rail").force, [0.0, MASS * G], atol=1e-12
        )
        with pytest.raises(ValueError, match=r"'mass' \(moving along x\) would move off"):
            jm.linearise(system, system.reference_q)

    @pytest.mark.thorough
    def test_a_state_that_lags(self):
        """In balance, but not for long."""
        system = late_spring()
        with pytest.raises(
            ValueError,
            match=r"no equilibrium: the state 'spring\.way' of a force still changes, by 20 m/s",
        ):
            jm.linearise(system, system.reference_q.at[0].set(1.0))

    @pytest.mark.thorough
    def test_a_stiffness_that_pulsates(self):
        """The monodromy matrix in (x, y, x') by SciPy."""

        def slope(t, y):
            pull = -(STIFFNESS + 20.0 * np.cos(2 * t)) * y[1] - DAMPING * y[2]
            return [y[2], (y[0] - y[1]) / DELAY, pull]

        system = late_spring(mass=1.0, pulsation=20.0)
        found = jm.floquet(system, system.reference_q, system.initial_v, np.pi)
        keys = {"rtol": 1e-12, "atol": 1e-14, "method": "DOP853"}
        ends = [solve_ivp(slope, (0, np.pi), start, **keys).y[:, -1] for start in np.eye(3)]
        matrix = np.stack(ends, axis=1)
        sign = np.diag([float(found.position_basis[0, 0]), 1.0, float(found.basis[0, 0])])
        np.testing.assert_allclose(
            sign @ np.asarray(found.monodromy) @ sign, matrix, atol=1e-8 * np.max(np.abs(matrix))
        )


# ---------------------------------------------------------------------------------------------
# An arm that PI control holds at an angle a: I a'' = kp (W - a) + ki s - kd a' - m g l cos a,
# s' = W - a.
# ---------------------------------------------------------------------------------------------

HELD, WEIGHT, ARM_INERTIA, KD = 0.7, 1.5 * G * 0.4, 0.06 + 1.5 * 0.16, 2.0


class Holding(eqx.Module):
    gains: jax.Array

    def torque(self, frames, twists, states, t):
        kp, ki, kd = self.gains
        error = HELD - frames[0].angle
        return [(jnp.zeros(2), kp * error + ki * states[0] - kd * twists[0].angular)]

    def rate(self, frames, twists, states, t):
        return HELD - frames[0].angle


def held_arm(gains=(30.0, 12.0, KD)):
    law = Holding(jnp.asarray(gains))
    controller = forces.StatefulForce(
        "controller", law.torque, law.rate, [("arm", (0.0, 0.0))], states=["integral"]
    )
    arm = planar.Body("arm", mass=1.5, inertia=0.06, position=(0.4, 0.0))
    hinge = planar.Revolute("hinge", ("ground", "arm"), (0.0, 0.0))
    return jm.MultibodySystem((arm,), (hinge,), forces=(controller,), gravity=(0.0, -G))


def small_motions(gain):
    """Of the arm by its polynomial I l^3 + kd l^2 + (kp - m g l sin a) l + ki = 0: eigenvalues, and
    modes (angle, integral) with l s = -a, of which that is real which is larger in the metric."""
    spring = 30.0 - WEIGHT * np.sin(HELD)
    values = np.sort_complex(np.roots([ARM_INERTIA, KD, spring, gain]))
    modes = np.stack([np.ones(3), -1 / values])
    weights = np.array([np.sqrt(ARM_INERTIA), 1.0])[:, None]
    largest = np.argmax(np.abs(weights * modes), axis=0)
    modes = modes / np.linalg.norm(weights * modes, axis=0)
    return values, modes * np.exp(-1j * np.angle(modes[largest, range(3)]))


class TestHeldArm:
    @pytest.mark.thorough
    def test_equilibrium_and_eigenvalues(self):
        system = held_arm()
        found = jm.equilibrium(system, system.reference_q)
        np.testing.assert_allclose(found.q[2], HELD, rtol=1e-12)
        np.testing.assert_allclose(found.q[3], WEIGHT * np.cos(HELD) / 12.0, rtol=1e-12)
        np.testing.assert_allclose(found.residual, 0.0, atol=1e-10)
        small = jm.linearise(system, found.q)
        spring = 30.0 - WEIGHT * np.sin(HELD)
        by_hand = np.array([[0, 0, 1], [-1, 0, 0], [-spring, 12.0, -KD]])
        by_hand[2] /= ARM_INERTIA
        expected = np.sort_complex(np.linalg.eigvals(by_hand))
        np.testing.assert_allclose(sorted_values(small), expected, rtol=1e-9)

    @pytest.mark.parametrize("gain", [1e-6, 1e6])
    def test_large_and_small_integrals(self, gain):
        """They carry the weight alone, whatever that takes."""
        system = held_arm((0.0, gain, KD))
        found = jm.equilibrium(system, system.reference_q)
        np.testing.assert_allclose(found.q[2], HELD, rtol=1e-9)
        np.testing.assert_allclose(found.q[3], WEIGHT * np.cos(HELD) / gain, rtol=1e-9)

    @pytest.mark.thorough
    def test_derivatives_of_the_equilibrium(self):
        """Forward and reverse: the integral is m g l cos a / ki."""

        def answer(gain):
            system = held_arm(jnp.stack([30.0, gain, KD]))
            return jm.equilibrium(system, system.reference_q).q[2:]

        gain = jnp.asarray(12.0)
        expected = [0.0, -WEIGHT * np.cos(HELD) / 144]
        np.testing.assert_allclose(jax.jacfwd(answer)(gain), expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(jax.jacrev(answer)(gain), expected, rtol=1e-9, atol=1e-12)

    @pytest.mark.thorough
    def test_derivatives_of_small_motions(self):
        """Of eigenvalues and modes by a gain, forward and reverse."""

        def answer(gain):
            system = held_arm(jnp.stack([30.0, gain, KD]))
            place = [0.4 * np.cos(HELD), 0.4 * np.sin(HELD), HELD]
            q = jnp.concatenate([jnp.array(place), WEIGHT * jnp.cos(HELD) / gain[None]])
            small = jm.linearise(system, q)
            found = jnp.concatenate([small.eigenvalues[None], small.modes[2:]])
            return jnp.stack([jnp.real(found), jnp.imag(found)])

        value, push = jax.linearize(answer, jnp.asarray(12.0))
        order = np.argsort(np.asarray(value[0, 0] + 1j * value[1, 0]))
        ends = [np.concatenate([x[None], y]) for x, y in map(small_motions, (11.999, 12.001))]
        expected = (ends[1] - ends[0]) / 0.002
        found = np.asarray(push(jnp.ones(())))
        pushed = (found[0] + 1j * found[1])[:, order]
        np.testing.assert_allclose(pushed, expected, rtol=1e-6, atol=1e-8)
        values, _ = small_motions(12.0)
        spring = 30.0 - WEIGHT * np.sin(HELD)
        slopes = -1 / (3 * ARM_INERTIA * values**2 + 2 * KD * values + spring)
        np.testing.assert_allclose(pushed[0], slopes, rtol=1e-9)
        weights = jnp.asarray(np.random.default_rng(3).normal(size=value.shape))
        (pulled,) = jax.linear_transpose(push, jnp.ones(()))(weights)
        np.testing.assert_allclose(pulled, np.sum(weights * found), rtol=1e-9)

    def test_a_gain_of_zero_says_nothing_of_the_integral(self):
        system = held_arm((30.0, 0.0, KD))
        with pytest.raises(
            RuntimeError,
            match=r"'controller\.integral' of a force still changes, by .*, and no force and no",
        ):
            jm.equilibrium(system, system.reference_q)
        quiet = jax.jit(lambda q: jm.equilibrium(system, q, throw=False).result)(system.reference_q)
        assert bool(quiet == jm.results.RESULTS.states_not_determined)

    @pytest.mark.thorough
    def test_a_batch_of_gains(self):
        def integral(gain):
            system = held_arm(jnp.stack([30.0, gain, KD]))
            return jm.equilibrium(system, system.reference_q, throw=False).q[3]

        gains = jnp.array([3.0, 12.0, 40.0])
        np.testing.assert_allclose(
            jax.jit(jax.vmap(integral))(gains), WEIGHT * np.cos(HELD) / gains, rtol=1e-10
        )


class TestSaturation:
    """A cart on a spring, pushed by tanh s, with s' = 0.2 - tanh s: 0.2 N at rest."""

    @staticmethod
    def system(rest=0.2, gain=1.0):
        def push(frames, twists, states, t):
            return [(jnp.stack([jnp.tanh(states[0]) - 4.0 * frames[0].origin[0], 0.0]), 0.0)]

        def rate(frames, twists, states, t):
            return rest - gain * jnp.tanh(states[0])

        force = forces.StatefulForce("c", push, rate, [("cart", (0.0, 0.0))], states=["a"])
        cart = planar.Body("cart", mass=1.0, inertia=1.0, position=(0.0, 0.0))
        rail = planar.Translational("rail", ("ground", "cart"), (0.0, 0.0), (1.0, 0.0))
        return jm.MultibodySystem([cart], [rail], forces=(force,))

    @pytest.mark.parametrize("start", representatives([0.0, 1.5, 3.0, -4.0], 3.0, -4.0))
    def test_equilibrium_from_afar(self, start):
        system = self.system()
        found = jm.equilibrium(system, system.reference_q.at[3].set(start))
        np.testing.assert_allclose(found.q[np.array([0, 3])], [0.05, np.arctanh(0.2)], rtol=1e-9)

    def test_a_rate_that_nothing_changes(self):
        system = self.system(rest=1.0, gain=0.0)
        with pytest.raises(RuntimeError, match=r"the state 'c\.a' of a force still changes, by 1"):
            jm.equilibrium(system, system.reference_q)
