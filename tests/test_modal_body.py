"""Elastic bodies in a floating frame of reference, against sums over point masses, closed forms and
a rotating beam whose equations are written here."""

import functools
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivative_checks import check
from modal_bodies import (
    BENDING,
    body_of,
    cantilever,
    first_difference,
    GRAVITY,
    LENGTH,
    LINE,
    ORIGIN,
    random_cloud,
    turned,
)
from scipy.integrate import solve_ivp

import jaxmbs as jm
from jaxmbs import forces, motions, spatial
from jaxmbs._bodies import differentiated, lagrangian_inertia_force
from jaxmbs._geometry import SpatialFrame
from jaxmbs.io import load_trajectory, save_trajectory


CLOUD = random_cloud()


def state_of(modes, rng, size=0.2):
    """Anywhere, turned by anything, deformed and moving."""
    orientation = rng.normal(size=4)
    orientation /= np.linalg.norm(orientation)
    q = np.concatenate([rng.normal(size=3), orientation, size * rng.normal(size=modes)])
    return q, rng.normal(size=6 + modes)


# ---------------------------------------------------------------------------------------------
# Mass, forces and energies of one body
# ---------------------------------------------------------------------------------------------


@eqx.filter_jit
def terms(inertia, q, v, gravity):
    t = jnp.zeros(())
    return {
        "mass": inertia.mass_matrix(q, t),
        "inverse": inertia.inverse_mass_matrix(q, t),
        "inertia force": inertia.inertia_force(q, v, t),
        "by differentiation": lagrangian_inertia_force(inertia, q, v, t),
        "internal force": inertia.internal_force(q, v, t),
        "stored": inertia.stored_energy(q),
        "weight": inertia.weight(q, gravity),
        "potential": inertia.potential(q, gravity),
    }


class TestInertia:
    """Integrals over the mass are sums over point masses here, which NumPy moves one by one."""

    def test_terms_are_those_of_the_moved_masses(self, rng):
        inertia = body_of(CLOUD).inertia_properties()
        q, v = state_of(4, rng)
        found = terms(inertia, jnp.asarray(q), jnp.asarray(v), jnp.asarray(GRAVITY))
        masses, moves = CLOUD.masses, CLOUD.moves(q)
        mass = np.einsum("n,nai,naj->ij", masses, moves, moves)
        np.testing.assert_allclose(found["mass"], mass, rtol=0, atol=1e-10)
        np.testing.assert_allclose(found["inverse"] @ mass, np.eye(10), rtol=0, atol=1e-8)
        bias = -np.einsum("n,na,nai->i", masses, CLOUD.accelerations(q, v), moves)
        np.testing.assert_allclose(found["inertia force"], bias, rtol=0, atol=1e-7)
        weight = np.einsum("n,a,nai->i", masses, GRAVITY, moves)
        np.testing.assert_allclose(found["weight"], weight, rtol=0, atol=1e-9)
        height = -masses @ CLOUD.places(q) @ GRAVITY
        np.testing.assert_allclose(found["potential"], height, rtol=1e-13)

    def test_closed_form_is_what_the_kinetic_energy_says(self, rng):
        inertia = body_of(CLOUD).inertia_properties()
        q, v = state_of(4, rng)
        found = terms(inertia, jnp.asarray(q), jnp.asarray(v), jnp.asarray(GRAVITY))
        np.testing.assert_allclose(
            found["inertia force"], found["by differentiation"], rtol=0, atol=1e-12
        )

    def test_elastic_force_and_damping(self, rng):
        damped = random_cloud(damping=0.03)
        inertia = body_of(damped).inertia_properties()
        q, v = state_of(4, rng)
        found = terms(inertia, jnp.asarray(q), jnp.asarray(v), jnp.asarray(GRAVITY))
        scale = damped.scale()
        eta, rates = q[7:] / scale, v[6:] / scale
        force = -(damped.stiffness @ eta + damped.damping @ rates) / scale
        np.testing.assert_allclose(found["internal force"][6:], force, rtol=1e-12)
        assert np.all(found["internal force"][:6] == 0)
        stored = 0.5 * eta @ damped.stiffness @ eta
        np.testing.assert_allclose(found["stored"], stored, rtol=1e-12)

    def test_no_number_depends_on_the_scale_of_modes(self):
        """Modes a thousand times as large are the same body."""
        one, other = (body_of(CLOUD, scale=s).inertia_properties() for s in (1.0, 1000.0))
        for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(body_of(CLOUD).modal_scale, CLOUD.scale(), rtol=1e-14)


# ---------------------------------------------------------------------------------------------
# Markers
# ---------------------------------------------------------------------------------------------


@eqx.filter_jit
def marked(marker, q, v):
    return marker.kinematics(q, v), differentiated(marker, q, v), marker.frame(q)


class TestMarkers:
    AWAY = SpatialFrame(jnp.array([1.0, 2.0, 3.0]), jnp.eye(3)[:, jnp.array([1, 2, 0])])

    def test_closed_form_is_the_derivative_of_the_frame(self, rng):
        q, v = (jnp.asarray(x) for x in state_of(4, rng))
        marker = body_of(CLOUD).sites()["link.B"].marker(self.AWAY)
        found, expected, frame = marked(marker, q, v)
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-12)
        np.testing.assert_allclose(frame.rotation.T @ frame.rotation, np.eye(3), atol=1e-14)

    def test_it_lies_where_it_was_put_in_the_reference_configuration(self):
        body = body_of(
            CLOUD,
            position=(0.3, 0.1, -0.2),
            orientation=(1.0, 0.3, -0.2, 0.5),
            modal_coordinates=(0.1, -0.2, 0.1, 0.3),
        )
        marker = body.sites()["link.A"].marker(self.AWAY)
        q = body.coordinates()
        _, _, frame = marked(marker, q, jnp.zeros(10))
        np.testing.assert_allclose(frame.origin, self.AWAY.origin, rtol=0, atol=1e-14)
        np.testing.assert_allclose(frame.rotation, self.AWAY.rotation, rtol=0, atol=1e-14)

    def test_node_moves_and_turns_as_the_modes_say(self, rng):
        """Place exactly; rotation of the first order, its error of the third (of the exponential,
        written out to the second order): an eighth at half the deformation."""
        q, _ = state_of(4, rng)
        body = body_of(CLOUD)
        site = body.sites()["link.B"]
        point, shapes, turns = CLOUD.nodes["B"]
        errors = []
        for part in (0.1, 0.05):
            eta = part * q[7:] / CLOUD.scale()
            at = jnp.asarray(np.concatenate([q[:7], part * q[7:]]))
            _, _, frame = marked(site.marker(site.reference), at, jnp.zeros(10))
            place = q[:3] + turned(q, (point + shapes @ eta)[None])[0]
            np.testing.assert_allclose(frame.origin, place, rtol=0, atol=1e-14)
            axes = np.eye(3)
            once = np.cross(turns @ eta, axes)
            exponential = turned(q, axes + once + 0.5 * np.cross(turns @ eta, once))
            errors.append(np.max(np.abs(frame.rotation.T - exponential)))
        assert 0 < errors[0] < 1e-2
        np.testing.assert_allclose(errors[0] / errors[1], 8.0, rtol=0.1)

    def test_nearest_node_by_the_name_of_the_body(self):
        body = body_of(CLOUD, position=(0.3, 0.1, -0.2))
        sites = body.sites()
        placement = sites["link.B"].reference
        found, named = (sites[name].marker(placement) for name in ("link", "link.B"))
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(named), strict=True):
            np.testing.assert_array_equal(x, y)

    def test_refuses_a_point_at_which_no_node_lies(self):
        joint = spatial.Spherical("J", ("ground", "link"), (5.0, 0.0, 0.0))
        with pytest.raises(
            ValueError, match=r"joint 'J': no node of body 'link' .*'B' \(.* m away"
        ):
            jm.MultibodySystem([body_of(CLOUD)], [joint])
        named = spatial.Spherical("J", ("ground", "link.A"), (5.0, 0.0, 0.0))
        assert jm.MultibodySystem([body_of(CLOUD)], [named]).structure.nv == 10

    def test_traced_numbers_choose_the_node_as_data(self):
        points = np.stack([CLOUD.nodes[name][0] for name in "AB"])

        reduced = CLOUD.reduced()

        @jax.jit
        def chosen(at):
            body = spatial.ModalBody("link", reduced, position=ORIGIN)
            marker: Any = body.sites()["link"].marker(SpatialFrame(at, jnp.eye(3)))
            return marker.point

        for point in points:
            np.testing.assert_array_equal(chosen(jnp.asarray(point) + 0.01), point)


class TestDerivatives:
    @pytest.mark.thorough
    def test_accelerations_mass_and_a_marker(self, rng):
        """Along numbers of the body (density, stiffness, shapes), the place of a marker, and the
        configuration and velocity, forward and reverse."""
        base, size = cantilever(damping=0.01).reduced(), 4 + 2 * 12
        state, speed = state_of(6, rng, 0.05)

        def function(x):
            dense = (
                *("mass", "first_moment", "inertia"),
                *("mode_first_moment", "mode_second_moment", "mode_products"),
            )
            factors = dict.fromkeys(dense, 1 + x[0])
            factors |= {"stiffness": 1 + x[1], "translations": 1 + x[2]}
            reduced = eqx.tree_at(
                lambda r: [getattr(r, word) for word in factors],
                base,
                [factor * getattr(base, word) for word, factor in factors.items()],
            )
            body = spatial.ModalBody("link", reduced, position=ORIGIN)
            inertia = body.inertia_properties()
            q = inertia.coordinates.retract(jnp.asarray(state), x[4:16])
            v, t = jnp.asarray(speed) + x[16:], jnp.zeros(())
            force = inertia.inertia_force(q, v, t) + inertia.internal_force(q, v, t)
            force = force + inertia.weight(q, jnp.asarray(GRAVITY))
            acceleration = inertia.inverse_mass_matrix(q, t) @ force
            at = SpatialFrame(jnp.stack([LENGTH + x[3], 0.1 * x[3], x[3]]), jnp.eye(3))
            rate = body.sites()["link"].marker(at).kinematics(q, v).rate
            found = (acceleration, inertia.mass_matrix(q, t), rate.origin, rate.rotation)
            return jnp.concatenate([x.ravel() for x in found])

        directions = np.concatenate([np.eye(4, size), 0.1 * rng.normal(size=(2, size))])
        check(function, np.zeros(size), directions, tolerance=1e-6, transposed=1e-9)


class TestRefusals:
    @pytest.mark.parametrize(
        ("word", "value", "message"),
        [
            ("stiffness", np.eye(4) + np.eye(4, k=1), "reduced.stiffness must be a symmetric"),
            ("damping", np.eye(3), "reduced.damping must be an array of shape"),
            ("mass", 0.0, "reduced.mass must be greater than zero"),
            ("inertia", np.zeros((3, 3)), "positive definite"),
            ("mode_products", np.zeros((3, 3, 4, 4)), "mode 1 of reduced moves no mass"),
        ],
    )
    def test_no_body(self, word, value, message):
        reduced = eqx.tree_at(lambda r: getattr(r, word), CLOUD.reduced(), jnp.asarray(value))
        with pytest.raises(ValueError, match=message):
            spatial.ModalBody("link", reduced, position=ORIGIN)

    def test_nodes_of_one_name(self):
        given: Any = vars(CLOUD.reduced()) | {"nodes": ("A", "A")}
        reduced = spatial.ReducedBody(**given)
        with pytest.raises(ValueError, match=r"reduced\.nodes must be different names"):
            spatial.ModalBody("link", reduced, position=ORIGIN)

    def test_modes_that_move_a_rigid_body(self):
        """A shift along x as a mode leaves the motion undecided."""
        rigid = random_cloud()
        rigid.shapes = rigid.shapes.copy()
        rigid.shapes[:, :, 0] = [1.0, 0.0, 0.0]
        with pytest.raises(ValueError, match="leave out modes that depend on each other"):
            body_of(rigid)

    def test_what_is_no_reduced_body(self):
        wrong: Any = 3.0
        with pytest.raises(TypeError, match="reduced must be a ReducedBody"):
            spatial.ModalBody("link", wrong, position=ORIGIN)
        with pytest.raises(ValueError, match="modal_coordinates must be a vector of 4"):
            body_of(CLOUD, modal_coordinates=(1.0, 2.0))


# ---------------------------------------------------------------------------------------------
# Questions of the package
# ---------------------------------------------------------------------------------------------


class TestRigid:
    """A body without modes is a rigid one, wherever its frame lies in it."""

    @pytest.mark.thorough
    def test_same_reactions_and_accelerations(self, rng):
        modes = random_cloud(modes=0)
        first = modes.masses @ modes.points
        centre = first / modes.masses.sum()
        apart = modes.points - centre
        second = np.einsum("n,na,nb->ab", modes.masses, apart, apart)
        inertia = np.trace(second) * np.eye(3) - second
        w, velocity = rng.normal(size=3), rng.normal(size=3)
        elastic = body_of(modes, velocity=velocity, angular_velocity=w)
        rigid = spatial.Body(
            "link",
            mass=modes.masses.sum(),
            inertia=inertia,
            position=centre,
            velocity=velocity + np.cross(w, centre),
            angular_velocity=w,
        )
        joint = spatial.Universal("J", ("ground", "link"), modes.nodes["A"][0], axes=np.eye(3)[:2])
        spring = forces.SpringDamper(
            "S",
            ("ground", "link"),
            points=((1.0, 1.0, 1.0), modes.nodes["B"][0]),
            stiffness=30.0,
            damping=2.0,
            length=0.4,
        )

        @eqx.filter_jit
        def solved(system):
            q, v = system.reference_q, system.initial_v
            found = jm.runs.solve_with_friction(
                system, q, v, 0.0, formulation=jm.formulations.MinimumNorm()
            )
            return found.multipliers, found.acceleration[3:6]

        one, other = (
            solved(jm.MultibodySystem([body], [joint], (), [spring], gravity=GRAVITY))
            for body in (elastic, rigid)
        )
        for x, y in zip(one, other, strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-10 * np.max(np.abs(y)))


@functools.cache
def flying():
    """The cloud, free, thrown and shaken; its motion for two seconds."""
    rng = np.random.default_rng(1)
    body = body_of(
        CLOUD,
        orientation=rng.normal(size=4),
        velocity=(0.3, -0.2, 0.5),
        angular_velocity=(0.5, 0.7, -0.4),
        modal_coordinates=0.02 * rng.normal(size=4),
        modal_velocities=0.2 * rng.normal(size=4),
    )
    system = jm.MultibodySystem([body])
    motion = jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        2.0,
        times=np.linspace(0.0, 2.0, 5),
        solver=diffrax.Dopri8(),
        rtol=1e-11,
        atol=1e-12,
        monitor=False,
    )
    return system, motion


class TestFreeMotion:
    @pytest.mark.thorough
    def test_energy_and_momenta_of_the_masses_stay(self):
        """Of the point masses, moved and differentiated by NumPy: relative 1e-8."""
        _, motion = flying()
        scale = CLOUD.scale()
        found = []
        for q, v in zip(np.asarray(motion.q), np.asarray(motion.v), strict=True):
            places, speeds = CLOUD.places(q), first_difference(CLOUD.places, q, v)
            eta = q[7:] / scale
            kinetic = 0.5 * CLOUD.masses @ np.sum(speeds**2, axis=1)
            stored = 0.5 * eta @ CLOUD.stiffness @ eta
            turning = CLOUD.masses @ np.cross(places, speeds)
            found.append([kinetic + stored, *(CLOUD.masses @ speeds), *turning])
        found = np.array(found)
        assert np.ptp(np.asarray(motion.q)[:, 7:], axis=0).min() > 0.01
        sizes = [found[0, 0], *2 * [np.linalg.norm(found[0, k : k + 3]) for k in (1, 4)]]
        sizes = np.array([sizes[0], *3 * [sizes[1]], *3 * [sizes[2]]])
        np.testing.assert_allclose(found / sizes, np.tile(found[0] / sizes, (5, 1)), atol=1e-8)

    @pytest.mark.thorough
    def test_energy_of_the_system(self):
        system, motion = flying()
        total = [sum(system.energy(q, v, 0.0)) for q, v in zip(motion.q, motion.v, strict=True)]
        np.testing.assert_allclose(total, total[0], rtol=1e-8)

    def test_files(self, tmp_path):
        """A motion comes back, its modes by their names."""
        system, motion = flying()
        for ending in ("csv", "nc"):
            save_trajectory(motion, tmp_path / f"motion.{ending}")
            back = load_trajectory(tmp_path / f"motion.{ending}", system)
            np.testing.assert_allclose(back.q, motion.q, rtol=1e-14, atol=1e-300)
        assert "link.mode.1.rate" in (tmp_path / "motion.csv").read_text()


# ---------------------------------------------------------------------------------------------
# A beam on a driven hub
# ---------------------------------------------------------------------------------------------

# Angle of the hub (rad): t^3, so that it turns with 3 rad/s after a second. The beam bends along y
# with 7.8 rad/s at rest.
SPIN = (0.0, 0.0, 0.0, 1.0)
START = np.array([0.01, 0.0, 0.0, 0.02, 0.0, 0.0])


def hub(line=1.0, **keys):
    """The cantilever on a driven hinge about z, bent at the start."""
    beam = cantilever()
    beam.masses = line * beam.masses
    body = body_of(beam, modal_coordinates=START, **keys)
    hinge = spatial.Revolute("hinge", ("ground", "link"), ORIGIN, axis=(0.0, 0.0, 1.0))
    motor = jm.Driver("motor", "hinge", "rotation", motions.Polynomial(coefficients=SPIN))
    return jm.MultibodySystem([body], [hinge], [motor])


class Rotating(NamedTuple):
    """Amplitudes along y and z (times, 6), their first and second derivatives, the torque of the
    motor (times,) and its work (times,)."""

    amplitudes: np.ndarray
    rates: np.ndarray
    accelerations: np.ndarray
    torque: np.ndarray
    work: np.ndarray


def rotating_beam(times, start):
    """An Euler-Bernoulli beam on a hub with the angle t^3, in the hub's axes: deflections y and z
    are sums of (x / l)^2, (x / l)^3 and (x / l)^4. Along y

        M a'' + (K - Omega^2 M) a = -Omega' b,   b the integral of m x phi,

    and along z without Omega. The motor gives T = (J + a M a) Omega' + b a'' + 2 Omega a M a'.
    """
    n = np.arange(2, 5)
    both = n[:, None] + n[None]
    mass = LINE * LENGTH / (both + 1)
    bent = np.outer(n * (n - 1), n * (n - 1)) / (both - 3) / LENGTH**3
    first = LINE * LENGTH**2 / (n + 2)
    turning = LINE * LENGTH**3 / 3

    def accelerations(t, a, rates):
        omega, change = 3 * t**2, 6 * t
        y = np.linalg.solve(
            mass, -change * first - BENDING[0] * bent @ a[:3] + omega**2 * mass @ a[:3]
        )
        z = np.linalg.solve(mass, -BENDING[1] * bent @ a[3:])
        own = turning + a[:3] @ mass @ a[:3]
        torque = own * change + first @ y + 2 * omega * a[:3] @ mass @ rates[:3]
        return np.concatenate([y, z]), torque

    def slope(t, state):
        a, rates = state[:6], state[6:12]
        found, torque = accelerations(t, a, rates)
        return np.concatenate([rates, found, [torque * 3 * t**2]])

    begin = np.concatenate([start, np.zeros(7)])
    found = solve_ivp(
        slope, (times[0], times[-1]), begin, "DOP853", t_eval=times, rtol=1e-11, atol=1e-13
    )
    pairs = zip(times, found.y.T, strict=True)
    accelerated, torques = zip(*(accelerations(t, x[:6], x[6:12]) for t, x in pairs), strict=True)
    amplitudes, rates = found.y[:6].T, found.y[6:12].T
    return Rotating(amplitudes, rates, np.array(accelerated), np.array(torques), found.y[12])


TIMES = np.linspace(0.0, 1.0, 6)


@functools.cache
def by_hand():
    return rotating_beam(TIMES, START / cantilever().scale())


@functools.cache
def spun():
    system = hub()
    motion = jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        1.0,
        times=TIMES,
        rtol=1e-9,
        atol=1e-10,
        monitor=False,
    )
    return system, motion


class TestSpinningBeam:
    """Spun up below its first frequency, against equations written out for the rotating beam."""

    def test_accelerations_and_torque_along_the_motion(self):
        system, expected, scale = hub(), by_hand(), cantilever().scale()
        angle, speed, none = TIMES**3, 3 * TIMES**2, np.zeros((6, 3))
        turned = [np.cos(angle / 2), 0 * angle, 0 * angle, np.sin(angle / 2)]
        spin = [0 * speed, 0 * speed, speed]
        q = np.concatenate([none, np.stack(turned, 1), scale * expected.amplitudes], axis=1)
        v = np.concatenate([none, np.stack(spin, 1), scale * expected.rates], axis=1)

        @eqx.filter_jit
        def solved(system, *states):
            def one(state):
                found = jm.runs.solve_with_friction(
                    system, *state, formulation=jm.formulations.MinimumNorm()
                )
                return found.acceleration[6:], found.multipliers[5]

            return jax.lax.map(one, states)

        accelerations, multipliers = solved(system, *map(jnp.asarray, (q, v, TIMES)))
        for found, wanted in (
            (np.asarray(accelerations) / scale, expected.accelerations),
            (-np.asarray(multipliers), expected.torque),
        ):
            size = np.max(np.abs(wanted))
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 * size)

    @pytest.mark.thorough
    def test_deflections(self):
        _, motion = spun()
        expected = by_hand().amplitudes
        found = np.asarray(motion.q)[:, 7:] / cantilever().scale()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * np.max(np.abs(expected)))

    @pytest.mark.thorough
    def test_torque_of_the_motor(self):
        _, motion = spun()
        expected = by_hand().torque
        np.testing.assert_allclose(
            -np.asarray(motion.multipliers)[:, 5], expected, rtol=0, atol=1e-6 * expected.max()
        )

    @pytest.mark.thorough
    def test_energy_grows_by_the_work_of_the_motor(self):
        (system, motion), work = spun(), by_hand().work
        total = [
            sum(system.energy(q, v, t))
            for q, v, t in zip(motion.q, motion.v, motion.times, strict=True)
        ]
        np.testing.assert_allclose(np.array(total) - total[0], work, rtol=0, atol=1e-6 * work[-1])


class TestPrograms:
    def test_new_numbers_do_not_compile_again(self):
        traces = []

        @eqx.filter_jit
        def masses(system):
            traces.append(1)
            return system.mass_matrix(system.reference_q)

        for system in (hub(), hub(2.0), hub(velocity=(0.0, 0.1, 0.0))):
            masses(system)
        assert len(traces) == 1

    def test_bodies_of_as_many_modes_and_nodes_are_one_group(self):
        bodies = [body_of(cantilever(), "a"), body_of(cantilever(), "b", position=(LENGTH, 0, 0))]
        joints = [
            spatial.Fixed("J", ("ground", "a"), ORIGIN),
            spatial.Spherical("K", ("a", "b"), (LENGTH, 0.0, 0.0)),
            spatial.Spherical("L", ("a.A", "b.B"), (LENGTH, 0.1, 0.0)),
        ]
        system = jm.MultibodySystem(bodies, joints)
        assert len(system.body_groups) == 1
        assert len(system.constraint_groups) == 2
