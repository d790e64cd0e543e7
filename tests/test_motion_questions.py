"""Kinematic analysis, inverse dynamics, static equilibrium and linearisation, against closed
forms."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import dot_product_gap, forward_and_reverse, random_direction

from jaxmbs import Driver, forces, mechanisms, motions, MultibodySystem, planar, spatial
from jaxmbs._dynamics._equilibrium import equilibrium
from jaxmbs._dynamics._kinematics import inverse_dynamics, kinematics, KinematicsError
from jaxmbs._dynamics._linearise import linearise
from jaxmbs.results import RESULTS


G = 9.81
Z = np.array([0.0, 0.0, 1.0])


def assert_close(actual, expected, atol=1e-10):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


# ---------------------------------------------------------------------------------------------
# Slider-crank, its crank driven: theta = c0 + c1 t + c2 t^2
# ---------------------------------------------------------------------------------------------

ANGLE = (0.3, 9.0, 3.0)
TIMES = np.linspace(0.0, 1.0, 9)
MASS, INERTIA = (2.0, 3.0, 5.0), (0.2, 0.4, 0.1)


def slider_crank(crank=0.5, rod=1.2, angle=ANGLE, driven=True):
    """In its configuration at time 0; driver coordinates are zero there."""
    b = crank * np.array([np.cos(angle[0]), np.sin(angle[0])])
    c = np.array([b[0] + np.sqrt(rod**2 - b[1] ** 2), 0.0])
    places = (b / 2, (b + c) / 2, c)
    names = ("crank", "rod", "slider")
    bodies = [
        planar.Body(name, mass=m, inertia=j, position=at)
        for name, m, j, at in zip(names, MASS, INERTIA, places, strict=True)
    ]
    joints = [
        planar.Revolute("A", ("ground", "crank"), np.zeros(2)),
        planar.Revolute("B", ("crank", "rod"), b),
        planar.Revolute("C", ("rod", "slider"), c),
        planar.Translational("D", ("ground", "slider"), c, (1.0, 0.0)),
    ]
    turn = motions.Polynomial(coefficients=np.array([0.0, *angle[1:]]))
    drivers = [Driver("motor", "A", "rotation", turn)] if driven else []
    return MultibodySystem(bodies, joints, drivers, gravity=(0.0, -G))


def by_hand(times, crank=0.5, rod=1.2, angle=ANGLE):
    """q, v, dv/dt (n, 9) of the slider-crank, angles from the configuration at time 0."""
    c0, c1, c2 = angle
    theta, speed = c0 + c1 * times + c2 * times**2, c1 + 2 * c2 * times
    gain = 2 * c2 + 0 * times
    tilt = np.arcsin(-crank / rod * np.sin(theta))
    lean = -crank / rod * np.cos(theta) * speed / np.cos(tilt)
    rate = -crank / rod * (np.cos(theta) * gain - np.sin(theta) * speed**2)
    rate = (rate + np.sin(tilt) * lean**2) / np.cos(tilt)

    def arm(length, x, u, a):
        """A vector of this length at angle x, and its two derivatives."""
        along = length * np.stack([np.cos(x), np.sin(x)])
        across = length * np.stack([-np.sin(x), np.cos(x)])
        return np.stack([along, across * u, across * a - along * u**2])

    first, second = arm(crank, theta, speed, gain), arm(rod, tilt, lean, rate)
    parts = []
    start = np.arcsin(-crank / rod * np.sin(c0))
    for k in range(3):
        one = (theta - c0, speed, gain)[k]
        two = (tilt - start, lean, rate)[k]
        rows = [*first[k] / 2, one, *(first[k] + second[k] / 2), two]
        parts.append(np.stack([*rows, *(first[k] + second[k]), 0 * one], axis=1))
    return parts


def torque_by_hand(v, a):
    """From the power of inertia and weight."""
    masses = np.ravel([[m, m, j] for m, j in zip(MASS, INERTIA, strict=True)])
    weight = np.ravel([[0.0, -G * m, 0.0] for m in MASS])
    return np.sum((masses * a - weight) * v, axis=1) / v[:, 2]


class TestKinematics:
    def test_slider_crank(self):
        """Nearly two turns, with steps of more than a quarter of one."""
        system = slider_crank()
        found = kinematics(system, system.reference_q, TIMES)
        q, v, a = by_hand(TIMES)
        assert_close(found.q, q)
        assert_close(found.v, v, 1e-9)
        assert_close(found.acceleration, a, 1e-7)
        assert float(jnp.max(found.position_error)) < 1e-12
        assert float(jnp.max(found.velocity_error)) < 1e-11
        assert found.message == ""

    @pytest.mark.thorough
    def test_redundant_mechanism_in_space(self):
        """The platform of three parallel cranks moves along a circle."""
        model = mechanisms.get("three-crank-parallelogram")
        first = next(j for j in model.joints if "ground" in j.bodies)
        sign = 1.0 if first.bodies[0] == "ground" else -1.0
        driver = Driver("motor", first.name, "rotation", motions.Linear(rate=sign * 2.0))
        system = MultibodySystem(model.bodies, model.joints, [driver])
        times = np.array([0.0, 0.2, 0.5])
        found = kinematics(system, system.reference_q, times)
        speeds = np.linalg.norm(np.array(found.v).reshape(3, -1, 6)[:, :, 3:], axis=-1)
        turning = speeds[0] > 1e-6
        assert turning.tolist().count(True) == 3
        assert turning.size == 4
        assert_close(speeds[:, turning], 2.0)
        assert_close(speeds[:, ~turning], 0.0)
        platform = int(np.argmin(turning))
        speed = np.array(found.v).reshape(3, -1, 6)[:, platform, :3]
        acceleration = np.array(found.acceleration).reshape(3, -1, 6)[:, platform, :3]
        # Of uniform motion on a circle: as large as 2 times the speed, and normal to it.
        assert np.linalg.norm(speed[0]) > 0.1
        assert_close(np.linalg.norm(speed, axis=1), np.linalg.norm(speed[0]))
        assert_close(np.linalg.norm(acceleration, axis=1), 2 * np.linalg.norm(speed, axis=1))
        assert_close(np.sum(speed * acceleration, axis=1), 0.0)

    def test_undriven_mobilities_are_counted_and_named(self):
        system = slider_crank(driven=False)
        with pytest.raises(ValueError, match=r"^1 mobility is not driven: '(crank|rod|slider)' "):
            kinematics(system, system.reference_q, TIMES)
        bodies = [planar.Body(n, mass=1.0, inertia=1.0, position=(0, 1)) for n in ("up", "low")]
        joint = planar.Revolute("A", ("ground", "up"), (0.0, 0.0))
        system = MultibodySystem(bodies, [joint])
        with pytest.raises(ValueError, match=r"^4 mobilities are not driven: ") as caught:
            kinematics(system, system.reference_q, TIMES)
        names = str(caught.value)
        assert names.count("'low'") == 3
        assert names.count("'up'") == 1
        assert all(f"'low' ({how})" in names for how in ("turning", "moving along x"))

    def test_velocity_constraints_determine_no_positions(self):
        body = planar.Body("a", mass=1.0, inertia=1.0, position=(0, 0))
        joint = planar.Pfaffian("P", ("a",), coefficients=np.eye(3))
        system = MultibodySystem([body], [joint])
        with pytest.raises(ValueError, match=r"velocity constraints determine 3 .* use simulate"):
            kinematics(system, system.reference_q, TIMES)

    def test_a_driver_beyond_reach(self):
        """A crank longer than its rod stops where the rod stands across: sin theta = l / r."""
        sizes = {"crank": 1.2, "rod": 0.9, "angle": (0.3, 1.0, 0.0)}
        system = slider_crank(**sizes)
        end = np.arcsin(0.9 / 1.2) - 0.3
        with pytest.raises(KinematicsError) as caught:
            kinematics(system, system.reference_q, TIMES)
        kept = caught.value.kinematics
        assert_close(kept.times, TIMES[end > TIMES])
        assert len(kept.times) == 5
        assert_close(kept.q, by_hand(np.array(kept.times), **sizes)[0])
        assert RESULTS[kept.result] == RESULTS[RESULTS.step_too_small]
        message = str(caught.value)
        assert message.startswith("At 0.625 s no configuration")
        for part in ("motor", "stays open by", "known until 0.5 s"):
            assert part in message
        quiet = kinematics(system, system.reference_q, TIMES, throw=False)
        assert quiet.message == message

    def test_a_start_that_does_not_close(self):
        system = slider_crank(0.5, 1.2, (0.3, 1.0, 0.0))
        system = eqx.tree_at(lambda s: s.constraint_groups, system, slider_crank(
            2.5, 1.2, (0.3, 1.0, 0.0)
        ).constraint_groups)  # fmt: skip
        turned = system.reference_q + 0.9
        with pytest.raises(KinematicsError, match=r"At 1.5 s no configuration .* start closer"):
            kinematics(system, turned, 1.5 + TIMES)

    def test_a_singular_configuration(self):
        """Crank and rod of one length, both upright: the rod is free to swing there."""
        system = slider_crank(1.0, 1.0, (np.pi / 2 - 0.5, 1.0, 0.0))
        with pytest.raises(KinematicsError, match=r"At 0.5 s the configuration is singular") as e:
            kinematics(system, system.reference_q, TIMES)
        assert "can move freely" in str(e.value)
        assert_close(e.value.kinematics.times, TIMES[:4])

    def test_times(self):
        system = slider_crank()
        for bad in ([0.0, 0.0], [1.0, 0.5], [0.0, np.nan], [], 1.0):
            with pytest.raises(ValueError, match=r"times(, entry 2)? must be"):
                kinematics(system, system.reference_q, bad)


class TestInverseDynamics:
    @pytest.mark.thorough
    def test_driven_pendulum(self):
        """torque = (I + m a^2) alpha + m g a cos(theta), and the force in the hinge."""
        body = planar.Body("rod", mass=2.0, inertia=0.3, position=(0.5, 0.0))
        joint = planar.Revolute("A", ("ground", "rod"), np.zeros(2))
        turn = motions.Polynomial(coefficients=[0.0, 1.0, 2.0])
        driver = Driver("motor", "A", "rotation", turn)
        system = MultibodySystem([body], [joint], [driver], gravity=(0.0, -G))
        found = inverse_dynamics(system, system.reference_q, TIMES)
        theta, speed = TIMES + 2 * TIMES**2, 1 + 4 * TIMES
        answer = found.reactions()
        expected = (0.3 + 2 * 0.25) * 4 + 2 * G * 0.5 * np.cos(theta)
        assert_close(answer.driving("motor"), expected)
        along = np.stack([np.cos(theta), np.sin(theta)], axis=1)
        across = np.stack([-np.sin(theta), np.cos(theta)], axis=1)
        acceleration = 0.5 * (4 * across - speed[:, None] ** 2 * along)
        assert_close(answer.wrench("A").force, 2 * (acceleration + G * np.array([0.0, 1.0])))

    def test_slider_crank_and_its_derivatives(self, rng):
        system = slider_crank()
        times = jnp.asarray(TIMES)

        def answer(system):
            found = inverse_dynamics(system, system.reference_q, times)
            return jnp.concatenate([found.q[:, 6], -found.multipliers[:, -1]])

        _, v, a = by_hand(TIMES)
        assert_close(answer(system)[9:], torque_by_hand(v, a), 1e-8)

        # More speed shifts the slider by dx/dtheta t; more gravity adds its power.
        direction = jax.tree.map(jnp.zeros_like, eqx.filter(system, eqx.is_inexact_array))
        group = next(k for k, g in enumerate(system.constraint_groups) if "motor" in g.names)

        leaves = jax.tree.leaves(direction.constraint_groups[group])
        place = [x.shape for x in leaves].index((1, 3))

        def coefficients(s):
            return jax.tree.leaves(s.constraint_groups[group])[place]

        inexact = eqx.filter(system, eqx.is_inexact_array)
        assert_close(coefficients(inexact)[0], [0.0, *ANGLE[1:]])
        along_speed = eqx.tree_at(coefficients, direction, jnp.asarray([[0.0, 1.0, 0.0]]))
        along_gravity = eqx.tree_at(lambda s: s.gravity, direction, jnp.asarray([0.0, 1.0]))
        weights = jnp.asarray(rng.normal(size=18))
        faster, pulled = forward_and_reverse(answer, system, along_speed, weights)
        assert_close(faster[:9], v[:, 6] / v[:, 2] * TIMES, 1e-8)
        assert dot_product_gap(faster, pulled, along_speed, weights) < 1e-10
        heavier, _ = forward_and_reverse(answer, system, along_gravity, weights)
        assert_close(heavier[:9], 0.0)
        power = sum(m * v[:, 3 * k + 1] for k, m in enumerate(MASS))
        assert_close(heavier[9:], -power / v[:, 2], 1e-9)
        every = random_direction(system, rng)
        pushed, pulled = forward_and_reverse(answer, system, every, weights)
        assert dot_product_gap(pushed, pulled, every, weights) < 1e-10


# ---------------------------------------------------------------------------------------------
# A pendulum, and beside it a mass in a vertical guide on a spring and a damper
# ---------------------------------------------------------------------------------------------

K, DAMPING = 80.0, 3.0


def pendulum_and_mass(angle=0.2, stiffness=K):
    """The pendulum (2 kg, 0.3 kg m^2, arm 0.5 m) at this angle from the x axis."""
    at = 0.5 * np.array([np.cos(angle), np.sin(angle)])
    bodies = [
        planar.Body("rod", mass=2.0, inertia=0.3, position=at, angle=angle),
        planar.Body("mass", mass=4.0, inertia=1.0, position=(3.0, 0.0)),
    ]
    joints = [
        planar.Revolute("A", ("ground", "rod"), np.zeros(2)),
        planar.Translational("B", ("ground", "mass"), (3.0, 0.0), (0.0, 1.0)),
    ]
    points = [(3.0, 2.0), (3.0, 0.0)]
    keys = {"points": points, "stiffness": stiffness, "damping": DAMPING, "length": 1.5}
    spring = forces.SpringDamper("spring", ("ground", "mass"), **keys)
    return MultibodySystem(bodies, joints, forces=[spring], gravity=(0.0, -G))


def hanging(angle=-np.pi / 2):
    """The equilibrium (and, at +pi/2, the one that is unstable)."""
    length = 1.5 + 4.0 * G / K
    return [0.5 * np.cos(angle), 0.5 * np.sin(angle), angle, 3.0, 2.0 - length, 0.0]


def beam_on_cranks():
    """Three parallel cranks carry a beam, on which a pendulum hangs; and what pulls a kilogram."""
    pivots, crank = np.array([[0.0, 0.0], [1.0, 0.0], [2.2, 0.0]]), np.array([0.3, -0.4])
    bodies = [
        planar.Body(f"crank {k}", mass=1.0, inertia=0.02, position=pivot + crank / 2)
        for k, pivot in enumerate(pivots)
    ]
    bodies += [
        planar.Body("beam", mass=4.0, inertia=1.6, position=pivots.mean(axis=0) + crank),
        planar.Body("pendulum", mass=2.0, inertia=0.02, position=(1.5, -0.7)),
    ]
    joints = [planar.Revolute("P", ("beam", "pendulum"), (1.5, -0.4))]
    for k, pivot in enumerate(pivots):
        joints.append(planar.Revolute(f"G{k}", ("ground", f"crank {k}"), pivot))
        joints.append(planar.Revolute(f"B{k}", (f"crank {k}", "beam"), pivot + crank))
    pull = np.array([2.0, -G])
    return MultibodySystem(bodies, joints, gravity=pull), pull


class TestEquilibrium:
    # From the upright pendulum, nearly, and with the angle at which it has no stiffness.
    @pytest.mark.parametrize("angle", [0.2, 0.0, np.pi / 2 - 0.01])
    def test_it_hangs(self, angle):
        system = pendulum_and_mass(angle)
        found = equilibrium(system, system.reference_q)
        assert_close(found.q, hanging())
        assert_close(found.residual, 0.0, 1e-8)
        wrench = found.reactions().wrench("A")
        assert_close(wrench.force, [0.0, 2.0 * G], 1e-8)
        assert bool(wrench.unique)

    def test_reactions_balance_every_body_and_carry_their_verdicts(self):
        """A beam on three parallel cranks, one too many, hangs from a slanted ceiling."""
        system, pull = beam_on_cranks()
        found = equilibrium(system, system.reference_q, 0.5)
        assert float(found.time) == 0.5
        crank = np.array(found.q)[:2] / np.linalg.norm(found.q[:2])
        assert_close(crank, pull / np.linalg.norm(pull), 1e-9)
        loads = found.reactions()
        for k, body in enumerate(system.structure.bodies):
            acting = loads.on(body.name)
            wrenches = [acting.wrench(name) for name in acting.names]
            mass = float(system.mass_matrix(found.q)[3 * k, 3 * k])
            assert_close(sum(w.force for w in wrenches), -mass * pull, 1e-8)
            arms = [w.point - found.q[3 * k : 3 * k + 2] for w in wrenches]
            turns = [
                a[0] * w.force[1] - a[1] * w.force[0] + w.torque
                for a, w in zip(arms, wrenches, strict=True)
            ]
            assert_close(sum(turns), 0.0, 1e-8)
        assert not any(bool(loads.unique(name)) for name in loads.names if name != "P")
        assert bool(loads.unique("P"))

    def test_derivatives(self, rng):
        """tan(angle) = g_y / g_x; the spring gives way by m g / k."""
        system = pendulum_and_mass(-1.4)

        def answer(system):
            found = equilibrium(system, system.reference_q)
            return jnp.concatenate([found.q, found.multipliers])

        direction = jax.tree.map(jnp.zeros_like, eqx.filter(system, eqx.is_inexact_array))
        direction = eqx.tree_at(lambda s: s.gravity, direction, jnp.asarray([0.3, -2.0]))
        weights = jnp.asarray(rng.normal(size=10))
        pushed, pulled = forward_and_reverse(answer, system, direction, weights)
        turn = 0.3 / G
        assert_close(pushed[:6], [0.5 * turn, 0.0, turn, 0.0, -2.0 * 4.0 / K, 0.0], 1e-8)
        # C^T lambda = F: the hinge carries the weight.
        assert_close(jnp.abs(pushed[6:8]), [2.0 * 0.3, 2.0 * 2.0], 1e-7)
        assert dot_product_gap(pushed, pulled, direction, weights) < 1e-10

    def test_there_is_none(self):
        system = pendulum_and_mass(stiffness=0.0)
        with pytest.raises(RuntimeError, match=r"No equilibrium .* 'mass' \(moving along y\)"):
            equilibrium(system, system.reference_q)
        quiet = equilibrium(system, system.reference_q, throw=False)
        assert RESULTS[quiet.result] == RESULTS[RESULTS.too_many_steps]

    def test_numbers_that_are_not_finite(self):
        system = pendulum_and_mass()
        system = eqx.tree_at(lambda s: s.gravity, system, jnp.full(2, jnp.nan))
        with pytest.raises(RuntimeError, match="The state is not finite"):
            equilibrium(system, system.reference_q)


class TestLinearise:
    def test_pendulum_and_mass(self):
        system = pendulum_and_mass()
        found = linearise(system, jnp.asarray(hanging()))
        swing = np.sqrt(2.0 * G * 0.5 / (0.3 + 2.0 * 0.25))
        bounce = np.roots([4.0, DAMPING, K])
        expected = sorted([1j * swing, -1j * swing, *bounce], key=lambda s: s.imag)
        actual = sorted(np.array(found.eigenvalues), key=lambda s: s.imag)
        assert_close(actual, expected, 1e-9)
        assert_close(found.frequencies[:2], swing / (2 * np.pi))
        # Of length 1 in the mass metric: the rod's turn of the one, the mass's way of the other.
        mode = np.array(found.modes)
        turn = 1 / np.sqrt(0.3 + 2.0 * 0.25)
        assert_close(np.abs(mode[:, 0]), [0.5 * turn, 0, turn, 0, 0, 0], 1e-9)
        assert_close(np.abs(mode[:, 2]), [0, 0, 0, 0, 0.5, 0], 1e-9)
        assert_close(np.sort(np.linalg.eigvals(found.stiffness)), [swing**2, K / 4], 1e-9)
        assert_close(np.sort(np.linalg.eigvals(found.damping)), [0.0, DAMPING / 4], 1e-9)
        assert len(found.described().tables[0].rows) == 4
        assert f"{swing / (2 * np.pi):.6g}" in str(found)

    def test_an_unstable_equilibrium(self):
        found = linearise(pendulum_and_mass(), jnp.asarray(hanging(np.pi / 2)))
        fall = np.sqrt(2.0 * G * 0.5 / (0.3 + 2.0 * 0.25))
        real = np.sort(np.real(np.array(found.eigenvalues)))
        assert_close(real[[0, -1]], [-fall, fall], 1e-9)

    def test_no_equilibrium_is_refused(self):
        system = pendulum_and_mass()
        with pytest.raises(ValueError, match=r"no equilibrium: '(rod|mass)' .* would move off"):
            linearise(system, system.reference_q)
        with pytest.raises(ValueError, match="'A' is open by"):
            linearise(system, system.reference_q.at[0].add(0.1))
        with pytest.raises(ValueError, match="outside of jit"):
            jax.jit(lambda q: linearise(system, q).eigenvalues)(system.reference_q)

    @pytest.mark.thorough
    def test_two_hinges_in_space(self):
        """A flap on two hinges: redundant, and a pendulum all the same."""
        body = spatial.Body("flap", mass=3.0, inertia=(0.4, 0.5, 0.6), position=(0, 0, -0.7))
        axis = np.array([1.0, 0.0, 0.0])
        joints = [
            spatial.Revolute(name, ("ground", "flap"), x * axis, axis)
            for name, x in (("left", -1.0), ("right", 1.0))
        ]
        system = MultibodySystem([body], joints, gravity=(0.0, 0.0, -G))
        found = linearise(system, system.reference_q)
        swing = np.sqrt(3.0 * G * 0.7 / (0.4 + 3.0 * 0.49))
        assert_close(np.sort(found.eigenvalues.imag), [-swing, swing], 1e-9)
        assert_close(found.eigenvalues.real, 0.0, 1e-9)

    @pytest.mark.thorough
    def test_a_spinning_top(self):
        """Free of torque: along axes that do not turn the axis nods with C / A times the spin, and
        may be tilted, turned and moved for good."""
        body = spatial.Body("top", mass=1.0, inertia=(2.0, 2.0, 3.0), position=(0, 0, 0))
        system = MultibodySystem([body], [])
        v = jnp.asarray([0.0, 0.0, 0.0, 0.0, 0.0, 4.0])
        found = linearise(system, system.reference_q, v)
        assert_close(np.abs(found.eigenvalues.imag), np.array([0.0] * 10 + [6.0, 6.0]))
        assert_close(found.eigenvalues.real, 0.0)
