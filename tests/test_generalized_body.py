"""Bodies in coordinates of their own among rigid ones: the same answers as in absolute
coordinates, closed forms, and what is refused."""

import copy
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives_at
from scipy.integrate import solve_ivp

import jaxmbs as jm
from jaxmbs import forces, generalized, motions, planar


G = 9.81
# Lengths, distances of the centres of mass, masses, inertias of three links.
LENGTH, CENTRE = (1.0, 0.8, 0.7), (0.45, 0.35, 0.4)
MASS, INERTIA = (2.0, 1.1, 0.6), (0.2, 0.08, 0.05)
SWEEP = motions.Sine(amplitude=0.4, frequency=0.7, offset=0.3)


def down(angle):
    """From a link's upper end to its lower one, hanging at angle 0."""
    return jnp.stack([jnp.sin(angle), -jnp.cos(angle)])


class Links(eqx.Module):
    """M, first moment and frames of the two upper links, in their absolute angles."""

    mass: jax.Array
    inertia: jax.Array

    def centres(self, q):
        return CENTRE[0] * down(q[0]), LENGTH[0] * down(q[0]) + CENTRE[1] * down(q[1])

    def mass_matrix(self, q, t):
        del t
        m, i = self.mass, self.inertia
        across = m[1] * LENGTH[0] * CENTRE[1] * jnp.cos(q[0] - q[1])
        first = i[0] + m[0] * CENTRE[0] ** 2 + m[1] * LENGTH[0] ** 2
        second = i[1] + m[1] * CENTRE[1] ** 2
        return jnp.stack([jnp.stack([first, across]), jnp.stack([across, second])])

    def first_moment(self, q):
        upper, lower = self.centres(q)
        return self.mass[0] * upper + self.mass[1] * lower

    def upper(self, q):
        return generalized.PlanarFrame(self.centres(q)[0], q[0])

    def lower(self, q):
        return generalized.PlanarFrame(self.centres(q)[1], q[1])


LINKS = Links(jnp.asarray(MASS[:2]), jnp.asarray(INERTIA[:2]))
ANGLES = (0.3, -0.2, 0.5)
TIP = np.asarray(LENGTH[0] * down(ANGLES[0]) + LENGTH[1] * down(ANGLES[1]))
ELBOW = np.asarray(LENGTH[0] * down(ANGLES[0]))


def link(k, name, top, mass=None):
    return planar.Body(
        name,
        mass=MASS[k] if mass is None else mass,
        inertia=INERTIA[k],
        position=top + CENTRE[k] * np.array([np.sin(ANGLES[k]), -np.cos(ANGLES[k])]),
        angle=ANGLES[k],
    )


ROD = link(2, "rod", TIP)


def last_parts(joint, coordinate, arm):
    """The rod, its hinge with friction on the link of that name, and the drive of the arm."""
    joints = (planar.Revolute("T", (arm, "rod"), TIP),)
    drivers = (jm.Driver("drive", joint, coordinate, SWEEP),)
    friction = (
        forces.CoulombFriction("rubbing", "T", coefficient=0.3, radius=0.05, velocity=0.01),
    )
    return (ROD,), joints, drivers, friction


def absolute(mass=None, rubbing=True):
    bodies, joints, drivers, friction = last_parts("O", "rotation", "b")
    return jm.MultibodySystem(
        (link(0, "a", np.zeros(2)), link(1, "b", ELBOW, mass), *bodies),
        (
            planar.Revolute("O", ("ground", "a"), (0.0, 0.0)),
            planar.Revolute("E", ("a", "b"), ELBOW),
            *joints,
        ),
        drivers,
        friction if rubbing else (),
        gravity=(0.0, -G),
    )


def arm(links=LINKS, **keys):
    return generalized.Body(
        "arm",
        ("shoulder", "elbow"),
        mass_matrix=links.mass_matrix,
        first_moment=links.first_moment,
        frames={"upper": links.upper, "lower": links.lower},
        start=ANGLES[:2],
        **keys,
    )


def mixed(links=LINKS, friction=True):
    bodies, joints, drivers, rubbing = last_parts("arm", "shoulder", "arm.lower")
    return jm.MultibodySystem(
        (arm(links), *bodies), joints, drivers, rubbing if friction else (), gravity=(0.0, -G)
    )


def states(angles, rates):
    """q and v of both models."""
    tops, top, speed = [], np.zeros(2), np.zeros(2)
    for k in range(3):
        turned = np.asarray(down(angles[k]))
        side = rates[k] * np.array([np.cos(angles[k]), np.sin(angles[k])])
        place, velocity = top + CENTRE[k] * turned, speed + CENTRE[k] * side
        tops.append((np.append(place, angles[k]), np.append(velocity, rates[k])))
        top, speed = top + LENGTH[k] * turned, speed + LENGTH[k] * side
    whole = tuple(jnp.asarray(np.concatenate(x)) for x in zip(*tops, strict=True))
    q, v = tops[2]
    own = (jnp.asarray([*angles[:2], *q]), jnp.asarray([*rates[:2], *v]))
    return whole, own


@functools.cache
def solved():
    """Accelerations, multipliers and reactions of both models at some states."""

    @eqx.filter_jit
    def at(system, q, v, t):
        found = jm.runs.solve_with_friction(
            system, q, v, t, formulation=jm.formulations.MinimumNorm()
        )
        return found, jm.reactions(system, q, v, t, found.multipliers)

    return at


STATES = (((0.3, -0.2, 0.5), (0.0, 0.0, 0.0)), ((0.9, 2.0, -1.4), (1.2, -0.7, 2.5)))


class TestDoublePendulum:
    @pytest.mark.parametrize("k", range(len(STATES)))
    def test_accelerations_and_reactions(self, k):
        angles, rates = STATES[k]
        (whole_q, whole_v), (q, v) = states(angles, rates)
        expected, given = solved()(absolute(), whole_q, whole_v, 0.4)
        found, report = solved()(mixed(), q, v, 0.4)
        np.testing.assert_allclose(found.acceleration[2:], expected.acceleration[6:], atol=1e-9)
        angles = np.asarray(expected.acceleration)[[2, 5]]
        np.testing.assert_allclose(found.acceleration[:2], angles, atol=1e-9)
        for name in ("T", "drive"):
            np.testing.assert_allclose(
                report.driving(name) if name == "drive" else report.wrench(name).force,
                given.driving(name) if name == "drive" else given.wrench(name).force,
                atol=1e-9,
            )
        on_arm, on_link = report.on("arm.lower").wrench("T"), given.on("b").wrench("T")
        np.testing.assert_allclose(on_arm.force, on_link.force, atol=1e-9)
        np.testing.assert_allclose(on_arm.point, on_link.point, atol=1e-12)
        assert np.all(report.reaction_unique.unique)
        assert np.all(report.torque_unique.unique)
        assert "coordinates" in str(report)

    def test_energy(self):
        whole, own = states(*STATES[1])
        np.testing.assert_allclose(
            mixed().energy(*own, 0.0), absolute().energy(*whole, 0.0), rtol=1e-13
        )

    @pytest.mark.thorough
    def test_derivatives_by_a_mass(self):
        """Of the accelerations and of the reaction at the hinge, by the mass of the second link,
        which is an array of the user's function."""
        whole, own = states(*STATES[1])

        def answers(system_of, state, columns):
            q, v = state

            def at(mass):
                system = system_of(mass)
                found = jm.runs.solve_with_friction(
                    system, q, v, 0.4, formulation=jm.formulations.MinimumNorm()
                )
                hinge = found.multipliers[np.array(system.structure.rows_of("T"))]
                return jnp.concatenate([found.acceleration[columns], hinge])

            return at

        @eqx.filter_jit
        def forward_alone(system_of, state, columns):
            mass = jnp.asarray(MASS[1])
            return jax.jvp(answers(system_of, state, columns), (mass,), (jnp.ones(()),))[1]

        @eqx.filter_jit
        def derivatives(system_of, state, columns):
            """Forward and reverse."""
            value, push = jax.linearize(answers(system_of, state, columns), jnp.asarray(MASS[1]))
            pull = jax.linear_transpose(push, jnp.asarray(MASS[1]))
            return push(jnp.ones(())), jax.lax.map(pull, jnp.eye(len(value)))[0]

        def of_arm(mass):
            masses = jnp.stack([jnp.asarray(MASS[0]), mass])
            return mixed(eqx.tree_at(lambda x: x.mass, LINKS, masses), friction=False)

        def of_bodies(mass):
            return absolute(mass, rubbing=False)

        expected = forward_alone(of_bodies, whole, np.array([2, 5, 6, 7, 8]))
        forward, reverse = derivatives(of_arm, own, np.arange(5))
        assert np.max(np.abs(expected)) > 0.1
        np.testing.assert_allclose(forward, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(reverse, expected, rtol=1e-9, atol=1e-9)

    @pytest.mark.thorough
    def test_motion(self):
        """Against three links in their angles, the first one driven (SciPy)."""

        def slope(t, y):
            angle, rate, change = (np.asarray(x) for x in drive(t))
            q, v = np.array([angle, *y[:2]]), np.array([rate, *y[2:]])
            carried = np.array([sum(MASS[j + 1 :]) for j in range(3)])
            m, h = np.zeros((3, 3)), np.zeros(3)
            for i in range(3):
                m[i, i] = INERTIA[i] + MASS[i] * CENTRE[i] ** 2 + carried[i] * LENGTH[i] ** 2
                h[i] -= G * np.sin(q[i]) * (MASS[i] * CENTRE[i] + carried[i] * LENGTH[i])
                for j in range(i + 1, 3):
                    c = LENGTH[i] * (MASS[j] * CENTRE[j] + carried[j] * LENGTH[j])
                    m[i, j] = m[j, i] = c * np.cos(q[i] - q[j])
                    h[i] -= c * np.sin(q[i] - q[j]) * v[j] ** 2
                    h[j] += c * np.sin(q[i] - q[j]) * v[i] ** 2
            free = np.linalg.solve(m[1:, 1:], h[1:] - m[1:, 0] * change)
            return np.concatenate([v[1:], free])

        def value(t):
            return SWEEP(t)

        @jax.jit
        def drive(t):
            rate = jax.grad(value)
            return value(t), rate(t), jax.grad(rate)(t)

        angle, rate, _ = (float(x) for x in drive(0.0))
        _, own = states((angle, *ANGLES[1:]), (rate, 0.0, 0.0))
        times = np.linspace(0.0, 1.0, 5)
        found = jm.simulate(
            mixed(friction=False),
            *own,
            1.0,
            times=jnp.asarray(times),
            rtol=1e-11,
            atol=1e-11,
            monitor=False,
        )
        expected = solve_ivp(
            slope, (0, 1), (*ANGLES[1:], 0.0, 0.0), "DOP853", times, rtol=1e-12, atol=1e-12
        )
        np.testing.assert_allclose(found.q[:, 1], expected.y[0], atol=1e-9)
        np.testing.assert_allclose(found.q[:, 4], expected.y[1], atol=1e-9)
        reactions = found.reactions()
        assert np.all(reactions.reaction_unique.unique)


def rewritten(model, name):
    """The model with one of its rigid bodies given by functions of (x, y, angle)."""
    body = next(b for b in model.bodies if b.name == name)

    def mass_matrix(q, t):
        del q, t
        return jnp.diag(jnp.stack([body.mass, body.mass, body.inertia]))

    given = generalized.Body(
        name,
        ("x", "y", "angle"),
        mass_matrix=mass_matrix,
        first_moment=lambda q: body.mass * q[:2],
        frames={"own": lambda q: generalized.PlanarFrame(q[:2], q[2])},
        start=body.coordinates(),
        velocity=body.velocities(),
        lengths=("x", "y"),
    )

    def on_frame(joint):
        held = copy.copy(joint)
        names = tuple(f"{name}.own" if own == name else own for own in joint.bodies)
        object.__setattr__(held, "bodies", names)
        return held

    return jm.Model(
        model.name,
        2,
        bodies=[given if b.name == name else b for b in model.bodies],
        joints=[on_frame(joint) for joint in model.joints],
        drivers=model.drivers,
        forces=(),
        gravity=model.gravity,
    )


class TestVerdicts:
    @pytest.mark.parametrize(
        ("mechanism", "body"),
        representatives_at(
            [("mobile-robot", "platform"), ("four-bar-chain:2", None), ("mobile-robot", "rack")], 0
        ),
    )
    @pytest.mark.thorough
    def test_redundant_mechanisms_with_a_body_rewritten(self, mechanism, body):
        model = jm.mechanisms.get(mechanism)
        model = eqx.tree_at(lambda m: m.forces, model, ()) if model.forces else model
        name = body or model.bodies[1].name
        system, other = model.system(), rewritten(model, name).system()
        q, v = system.reference_q, system.initial_v
        # The same coordinates in the same order.
        expected, found = (jm.analyze(s, q, v, 0.0) for s in (system, other))
        assert int(found.rank) == int(expected.rank)
        assert int(found.redundancy) == int(expected.redundancy)
        assert np.array_equal(found.reaction_unique.unique, expected.reaction_unique.unique)
        multipliers = jnp.asarray(np.random.default_rng(1).normal(size=len(system.structure.rows)))
        old, new = (jm.reactions(s, q, v, 0.0, multipliers) for s in (system, other))
        for joint in old.names:
            a, b = old.wrench(joint), new.wrench(joint)
            np.testing.assert_allclose(b.force, a.force, atol=1e-12)
            np.testing.assert_allclose(b.torque, a.torque, atol=1e-12)
            assert np.array_equal(b.force_unique.unique, a.force_unique.unique)
            assert np.array_equal(b.torque_unique.unique, a.torque_unique.unique)

    @pytest.mark.parametrize(
        "bodies",
        [
            ("ground", "arm.upper"),
            pytest.param(("arm.upper", "ground"), marks=pytest.mark.thorough),
        ],
    )
    def test_a_pin_where_the_coordinates_hold_already(self, bodies):
        """The reaction of a hinge at the shoulder works on no coordinate: its generalized reaction
        is zero and unique, what presses on the frame and on the ground is not. Nothing but rounding
        is left of its rows, which hold nothing."""
        joints = (planar.Revolute("O", bodies, (0.0, 0.0)),)
        system = jm.MultibodySystem((arm(),), joints, gravity=(0.0, -G))
        free = jm.MultibodySystem((arm(),), gravity=(0.0, -G))
        q, v = system.reference_q + 0.1234, system.initial_v + 0.7
        assert int(jm.analyze(system, q, v, 0.0).rank) == 0
        moved, expected = (
            jm.runs.solve_with_friction(
                s, q, v, 0.0, formulation=jm.formulations.MinimumNorm()
            ).acceleration
            for s in (system, free)
        )
        np.testing.assert_allclose(moved, expected, rtol=1e-12)
        report = jm.reactions(system, q, v, 0.0, jnp.asarray([1.0, 2.0]))
        assert bool(report.unique("O").unique)
        np.testing.assert_allclose(report.generalized("O"), 0.0, atol=1e-15)
        wrench = report.wrench("O")
        np.testing.assert_allclose(np.abs(wrench.force), [1.0, 2.0], atol=1e-15)
        assert not np.any(wrench.force_unique.unique)
        assert "NOT UNIQUE" in str(report)
        for place in bodies:
            assert not np.any(report.on(place).wrench("O").force_unique.unique)

    @pytest.mark.thorough
    def test_a_joint_between_two_frames_of_one_body(self):
        """The elbow, which the coordinates hold already, and a rod between both links that they do
        not; `screen` sees both frames of a joint as one body."""
        joints = (
            planar.Revolute("E", ("arm.upper", "arm.lower"), ELBOW),
            planar.Distance("brace", ("arm.upper", "arm.lower"), points=((0.1, -0.3), TIP)),
        )
        system = jm.MultibodySystem((arm(),), joints, gravity=(0.0, -G))
        q, v = system.reference_q, system.initial_v
        report, screened = jm.analyze(system, q, v, 0.0), jm.screen(system, q, v, 0.0)
        assert (int(report.rank), int(report.redundancy)) == (1, 2)
        assert report.reaction_unique.unique.tolist() == [True, True]
        assert screened.reaction_unique.unique.tolist() == [True, True]
        descriptor = system.descriptor(q, v, 0.0)
        mass, rows = descriptor.mass_matrix(), descriptor.constraint_matrix()
        np.testing.assert_allclose(rows, system.constraint_matrix(q, v, 0.0), atol=1e-15)
        schur = np.diag(rows @ np.linalg.solve(mass, rows.T))
        size = np.sqrt(np.where(schur > 0, schur, 1.0))
        np.testing.assert_allclose(descriptor.row_scale(), size, rtol=1e-12)


def test_built_under_a_transformation():
    """Without gravity, of which nothing is known there."""

    @jax.jit
    def force(mass):
        body = generalized.Body("b", ["x"], mass_matrix=lambda q, t: mass * jnp.eye(1))
        system = jm.MultibodySystem((body,))
        return system.mass_matrix(system.reference_q, 0.0)

    np.testing.assert_allclose(force(jnp.asarray(3.0)), [[3.0]])


class TestTime:
    def test_a_mass_that_grows(self):
        """What joins is at rest: m v = (momentum of the start) + weight so far."""

        def mass(q, t):
            del q
            return jnp.reshape(1.0 + 0.5 * t, (1, 1))

        body = generalized.Body(
            "drop",
            ("height",),
            mass_matrix=mass,
            force=lambda q, v, t: jnp.reshape(-G * (1.0 + 0.5 * t), (1,)),
            lengths=("height",),
            velocity=(3.0,),
        )
        system = jm.MultibodySystem((body,))
        t = 2.0
        found = jm.simulate(system, system.reference_q, system.initial_v, t, rtol=1e-11, atol=1e-11)
        expected = (3.0 - G * (t + 0.25 * t**2)) / (1 + 0.5 * t)
        np.testing.assert_allclose(found.v[-1], expected, rtol=1e-9)
        with pytest.raises(ValueError, match="depends on time: give t"):
            system.mass_matrix(system.reference_q)

    def test_a_rope_that_is_paid_out(self):
        """A load on a heavy rope of the length l(t) that stays straight: with M = m l^2 + rho l^3/3
        the moment of momentum M v changes by the moment of the weights (SciPy)."""
        rate, load, density = 0.3, 2.0, 0.4

        def length(t):
            return 1.0 + rate * t

        def mass(q, t):
            del q
            return jnp.reshape(load * length(t) ** 2 + density * length(t) ** 3 / 3, (1, 1))

        def force(q, v, t):
            del v
            return -G * (load * length(t) + density * length(t) ** 2 / 2) * jnp.sin(q)

        rope = generalized.Body(
            "rope", ("angle",), mass_matrix=mass, force=force, start=(0.8,), velocity=(0.2,)
        )
        system = jm.MultibodySystem((rope,))
        found = jm.simulate(
            system, system.reference_q, system.initial_v, 2.0, rtol=1e-11, atol=1e-11
        )

        def slope(t, y):
            angle, momentum = y
            m = load * length(t) ** 2 + density * length(t) ** 3 / 3
            moment = -G * (load * length(t) + density * length(t) ** 2 / 2) * np.sin(angle)
            return momentum / m, moment

        start = (0.8, 0.2 * (load + density / 3))
        expected = solve_ivp(slope, (0, 2), start, "DOP853", rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found.q[-1, 0], expected.y[0, -1], atol=1e-9)


class TestConditions:
    def test_rows_on_coordinates_and_a_force(self, rng):
        """Two bodies geared by a condition, one turned by a spring of its own: M dv + C^T l = F."""

        def constant(size):
            return lambda q, t: size * jnp.eye(2)

        bodies = [
            generalized.Body(n, ("a", "b"), mass_matrix=constant(m), lengths=("b",))
            for n, m in (("one", 2.0), ("two", 3.0))
        ]
        gear = generalized.Condition("gear", ("one", "two"), lambda q, t: q[0][0] - 2 * q[1][0])
        slip = generalized.RateCondition("slip", "two", lambda q, v, t: v[1] - q[0] * v[0] - t)
        spring = generalized.Force(
            "spring", "one", lambda q, v, t: -7.0 * q, potential=lambda q: 3.5 * q @ q
        )
        system = jm.MultibodySystem(bodies, (gear, slip), forces=(spring,))
        q, v = jnp.asarray(rng.normal(size=4)), jnp.asarray(rng.normal(size=4))
        np.testing.assert_allclose(
            system.constraint_matrix(q, v, 0.3),
            np.array([[1, 0, -2, 0], [0, 0, -float(q[2]), 1]]),
            atol=1e-15,
        )
        np.testing.assert_allclose(
            system.acceleration_offset(q, v, 0.3), [0.0, float(v[2]) ** 2 + 1], atol=1e-14
        )
        np.testing.assert_allclose(
            system.force(q, v, 0.3), jnp.concatenate([-7 * q[:2], jnp.zeros(2)]), atol=1e-14
        )
        np.testing.assert_allclose(system.energy(q, v, 0.3)[1], 3.5 * q[:2] @ q[:2], rtol=1e-14)
        assert system.structure.row_names == ("gear", "slip")
        report = jm.reactions(system, q, v, 0.3, jnp.asarray([1.0, 2.0]))
        with pytest.raises(ValueError, match=r"ask for generalized\(name\)"):
            report.wrench("gear")
        np.testing.assert_allclose(report.generalized("gear"), [1, 0, -2, 0], atol=1e-15)

    def test_verdicts_do_not_depend_on_the_unit_of_any_coordinate(self):
        """Charge in coulombs or in microcoulombs, with the scale said in the same unit."""

        def verdicts(unit):
            charge = generalized.Quantity("charge", "C", 1e-6 / unit)
            body = generalized.Body(
                "circuit",
                ("x", "charge"),
                mass_matrix=lambda q, t: jnp.diag(jnp.array([1.0, unit**2])),
                lengths=("x",),
                quantities={"charge": charge},
            )
            joints = [
                generalized.Condition(f"c{k}", "circuit", lambda q, t, s=s: q[0] - s * unit * q[1])
                for k, s in enumerate((1e5, 2e5, 1e5))
            ]
            system = jm.MultibodySystem((body,), joints)
            report = jm.analyze(system, system.reference_q, system.initial_v, 0.0)
            return report

        coarse, fine = verdicts(1.0), verdicts(1e-6)
        assert int(coarse.rank) == int(fine.rank) == 2
        np.testing.assert_allclose(fine.pivots, coarse.pivots, rtol=1e-9)


REFUSED = {
    "a frame it has not": (
        lambda: jm.MultibodySystem(
            (arm(),), (planar.Revolute("J", ("ground", "arm.tip"), (0.0, 0.0)),)
        ),
        r"joint 'J': body 'arm\.tip' was never declared; there are .*arm\.upper",
    ),
    "held by its own name": (
        lambda: jm.MultibodySystem(
            (arm(),), (planar.Revolute("J", ("ground", "arm"), (0.0, 0.0)),)
        ),
        r"joint 'J': body 'arm' has no frame .*'arm\.upper', 'arm\.lower'",
    ),
    "a condition on a frame": (
        lambda: jm.MultibodySystem(
            (arm(),), (generalized.Condition("c", "arm.upper", lambda q, t: q),)
        ),
        r"joint 'c': 'arm\.upper' has no coordinates of its own; name a moving body",
    ),
    "a coordinate it has not": (
        lambda: jm.MultibodySystem((arm(),), drivers=(jm.Driver("d", "arm", "wrist", SWEEP),)),
        r"driver 'd': body 'arm' has no coordinate 'wrist'; it has 'shoulder'",
    ),
    "gravity unknown": (
        lambda: jm.MultibodySystem(
            (generalized.Body("b", ("x",), mass_matrix=lambda q, t: jnp.eye(1)),),
            gravity=(0.0, 0.0, -G),
        ),
        r"body 'b' does not say how gravity acts on it; give first_moment",
    ),
    "coordinates of one name": (
        lambda: generalized.Body("b", ("x", "x"), mass_matrix=lambda q, t: jnp.eye(2)),
        "coordinates must have different names",
    ),
    "a mass of the wrong shape": (
        lambda: jm.MultibodySystem(
            (generalized.Body("b", ("x",), mass_matrix=lambda q, t: jnp.eye(2)),)
        ).mass_matrix(jnp.zeros(1), 0.0),
        r"mass_matrix must return an array of shape \[1, 1\], got \[2, 2\]",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    make, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        make()
