"""Mass matrices, inertia forces, weight and applied loads against closed forms."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives
from scipy.spatial.transform import Rotation

import jaxmbs
from jaxmbs import _geometry, forces, planar, spatial
from jaxmbs._bodies import (
    differentiated,
    PlanarMarker,
    PlanarParticle,
    SpatialMarker,
    SpatialParticle,
)
from jaxmbs._geometry import PlanarFrame, SpatialFrame
from jaxmbs.mechanisms._names import PLAIN, SIZED


G2, G3 = np.array([0.3, -9.81]), np.array([0.3, -0.2, -9.81])
INERTIA = np.array([[2.0, 0.1, -0.2], [0.1, 1.5, 0.05], [-0.2, 0.05, 1.8]])
FORCE, TORQUE, POINT = (np.array(x) for x in ((1.0, -2.0, 3.0), (0.4, 0.5, -0.6), (0.2, 0.9, 0.4)))


def planar_system(loads=(), gravity=None):
    bodies = [
        planar.Body("a", mass=2.0, inertia=0.3, position=(0.1, 0.2), angle=0.7),
        PlanarParticle("p", mass=0.5, position=(1.0, -1.0)),
        planar.Body("b", mass=3.0, inertia=0.9, position=(-1.0, 0.4), angle=-2.0),
    ]
    return jaxmbs.MultibodySystem(bodies, forces=loads, gravity=gravity)


def spatial_system(loads=(), gravity=None):
    bodies = [
        SpatialParticle("p", mass=0.5, position=(1.0, -1.0, 0.3)),
        spatial.Body(
            "a", mass=2.0, inertia=INERTIA, position=(0.1, 0.2, 0.3), orientation=(1, 2, -1, 0.5)
        ),
        spatial.Body("b", mass=3.0, inertia=(1.0, 2.0, 3.0), position=(-1.0, 0.4, 0.2)),
    ]
    return jaxmbs.MultibodySystem(bodies, forces=loads, gravity=gravity)


def moved(system, rng):
    """q and v somewhere else."""
    nv = system.structure.nv
    q = eqx.filter_jit(type(system).retract)(
        system, system.reference_q, jnp.asarray(rng.uniform(-1, 1, nv))
    )
    return q, jnp.asarray(rng.normal(size=nv))


def rotation_of(q):
    return Rotation.from_quat(np.array(q), scalar_first=True).as_matrix()


def assert_close(actual, expected, atol=1e-13):
    """Sums of a few products of numbers of order ten."""
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


class TestMassMatrix:
    def test_planar(self, rng):
        q, _ = moved(planar_system(), rng)
        expected = np.diag([2.0, 2.0, 0.3, 0.5, 0.5, 3.0, 3.0, 0.9])
        assert_close(planar_system().mass_matrix(q), expected, 0.0)

    def test_spatial(self, rng):
        q, _ = moved(spatial_system(), rng)
        actual = np.array(spatial_system().mass_matrix(q))
        expected = np.zeros((15, 15))
        expected[:3, :3] = 0.5 * np.eye(3)
        expected[3:6, 3:6], expected[6:9, 6:9] = 2.0 * np.eye(3), INERTIA
        expected[9:12, 9:12], expected[12:, 12:] = 3.0 * np.eye(3), np.diag([1.0, 2.0, 3.0])
        assert_close(actual, expected, 0.0)
        assert np.array_equal(actual, actual.T)
        assert np.all(np.linalg.eigvalsh(actual) > 0.4)

    def test_kinetic_energy_of_the_body_as_points(self, rng):
        """A rigid body's energy is that of the point masses it is made of."""
        masses, points = rng.uniform(0.5, 1.5, 6), rng.normal(size=(6, 3))
        points -= masses @ points / masses.sum()
        squares = np.einsum("k,ki,kj->ij", masses, points, points)
        body = spatial.Body(
            "a",
            mass=masses.sum(),
            inertia=np.trace(squares) * np.eye(3) - squares,
            position=np.zeros(3),
        )
        system = jaxmbs.MultibodySystem([body])
        q, v = moved(system, rng)
        R, w = rotation_of(q[3:]), np.array(v[3:])
        speeds = np.array(v[:3]) + np.cross(w, points) @ R.T
        expected = 0.5 * masses @ np.sum(speeds**2, axis=1)
        assert_close(0.5 * v @ system.mass_matrix(q) @ v, expected)

    @pytest.mark.parametrize(
        "system", representatives([planar_system, spatial_system], spatial_system)
    )
    def test_inverse_of_each_body(self, system, rng):
        system = system()
        q, _ = moved(system, rng)
        for group in system.body_groups:
            own = q[group.indices["q"]]
            mass = jax.vmap(lambda b, x: b.mass_matrix(x, jnp.zeros(())))(group.inertia, own)
            inverse = jax.vmap(lambda b, x: b.inverse_mass_matrix(x, jnp.zeros(())))(
                group.inertia, own
            )
            identity = np.broadcast_to(np.eye(mass.shape[-1]), mass.shape)
            assert_close(mass @ inverse, identity)

    @pytest.mark.parametrize("size", [1e-9, 1.0, 1e12])
    def test_inverse_of_a_thin_rod_that_is_turned(self, size, rng):
        turn = Rotation.random(rng=rng).as_matrix()
        inertia = size * turn @ np.diag([1.0, 1.0, 1e-6]) @ turn.T
        body = spatial.Body(
            "rod", mass=size, inertia=(inertia + inertia.T) / 2, position=(0.0, 0.0, 0.0)
        )
        own = body.inertia_properties()
        inverse = np.asarray(own.inverse_mass_matrix(body.coordinates(), jnp.asarray(0.0)))
        exact = turn @ np.diag([1.0, 1.0, 1e6]) @ turn.T / size
        # Rounding of the matrix, times its condition of 1e6, relative to the largest entry.
        np.testing.assert_allclose(inverse[3:, 3:], exact, rtol=0, atol=1e6 * 1e-9 / size)


MARKER = SpatialMarker(
    SpatialFrame(
        jnp.array([0.3, -1.2, 0.4]),
        jnp.asarray(Rotation.from_rotvec([0.4, -1.0, 0.3]).as_matrix()),
    )
)
PLANAR_MARKER = PlanarMarker(PlanarFrame(jnp.array([0.3, -1.2]), jnp.array(0.7)))


def state_of(marker, rng):
    """Quaternions of any length, as those of the stages of a step."""
    nq, nv = marker.coordinates.nq, marker.coordinates.nv
    return tuple(jnp.asarray(rng.normal(size=n)) for n in (nq, nv))


@eqx.filter_jit
def along(function, marker, state, direction):
    """Of a marker's state, and its derivative along a direction; in one program."""
    return jax.jvp(functools.partial(function, marker), state, direction)


@eqx.filter_jit
def placed(marker, q, step):
    """The coordinates after a step, and the frame there."""
    q = marker.coordinates.retract(q, step)
    return q, marker.frame(q)


class TestKinematicsOfMarkers:
    """The closed form against the frame differentiated, and both against short ways."""

    def test_equals_the_derivatives_of_the_frame(self, rng):
        state = state_of(MARKER, rng)
        found, expected = (
            along(function, MARKER, state, state)[0]
            for function in (SpatialMarker.kinematics, differentiated)
        )
        jax.tree.map(lambda x, y: assert_close(x, y, 1e-12), found, expected)

    def test_derivatives(self, rng):
        q, v = state_of(MARKER, rng)
        direction = state_of(MARKER, rng)
        for at in (q, jnp.asarray(MARKER.coordinates.origin)):
            found, expected = (
                along(function, MARKER, (at, v), direction)[1]
                for function in (SpatialMarker.kinematics, differentiated)
            )
            jax.tree.map(lambda x, y: assert_close(x, y, 1e-12), found, expected)

    @pytest.mark.parametrize("marker", [PLANAR_MARKER, MARKER], ids=["planar", "spatial"])
    def test_turned_by_its_own_twist(self, marker, rng):
        # Along the motion with v held constant, far from any formula: a short way by retraction.
        q, v = state_of(marker, rng)
        q, h = placed(marker, q, 0 * v)[0], 1e-4
        ahead, behind = (placed(marker, q, s * h * v)[1] for s in (1, -1))
        found, _ = along(type(marker).kinematics, marker, (q, v), (q, v))
        change = jax.tree.map(lambda x, y: (x - y) / (2 * h), ahead, behind)
        bend = jax.tree.map(lambda x, y, z: (x - 2 * y + z) / h**2, ahead, found.frame, behind)
        jax.tree.map(lambda x, y: assert_close(x, y, 1e-6), found.rate, change)
        jax.tree.map(lambda x, y: assert_close(x, y, 1e-6), found.acceleration, bend)


class TestInertiaForce:
    def test_gyroscopic_moment(self, rng):
        system = spatial_system()
        q, v = moved(system, rng)
        expected = np.zeros(15)
        for start, inertia in ((6, INERTIA), (12, np.diag([1.0, 2.0, 3.0]))):
            w = np.array(v[start : start + 3])
            expected[start : start + 3] = -np.cross(w, inertia @ w)
        assert_close(system.force(q, v, 0.0), expected)

    def test_planar_bodies_have_none(self, rng):
        q, v = moved(planar_system(), rng)
        assert_close(planar_system().force(q, v, 0.0), 0.0, 0.0)

    def test_angular_momentum_is_kept(self, rng):
        """d/dt (R J w) = 0 for a free body, from M dv/dt = F alone."""
        system = spatial_system()
        q, v = moved(system, rng)

        @jax.jit
        def rate_of_momentum(q, v):
            acceleration = jnp.linalg.solve(system.mass_matrix(q), system.force(q, v, 0.0))

            def momentum(q, v):
                rotation = _geometry.rotation_from_quaternion(q[6:10])
                return rotation @ jnp.asarray(INERTIA) @ v[6:9]

            return jax.jvp(momentum, (q, v), (system.rate(q, v), acceleration))[1]

        assert_close(rate_of_momentum(q, v), 0.0)


class TestWeight:
    def test_planar(self, rng):
        system = planar_system(gravity=G2)
        q, v = moved(system, rng)
        expected = np.concatenate([2 * G2, [0], 0.5 * G2, 3 * G2, [0]])
        assert_close(system.force(q, v, 0.0), expected)

    def test_spatial(self, rng):
        system = spatial_system(gravity=G3)
        q, v = moved(system, rng)
        zero = np.zeros(3)
        expected = np.concatenate([0.5 * G3, 2 * G3, zero, 3 * G3, zero])
        assert_close(system.force(q, 0 * v, 0.0), expected)


class TestLoads:
    """`POINT` is a world point in the reference configuration, off the centre of mass."""

    @pytest.mark.parametrize("kind", [forces.Applied, forces.Following])
    def test_planar(self, kind, rng):
        load = kind("f", "b", force=FORCE[:2], torque=0.7, at=POINT[:2])
        system = planar_system([load])
        q, v = moved(system, rng)
        turn = float(q[7]) + 2.0
        c, s = np.cos(turn), np.sin(turn)
        R = np.array([[c, -s], [s, c]])
        arm = R @ (POINT[:2] - [-1.0, 0.4])
        force = R @ FORCE[:2] if kind is forces.Following else FORCE[:2]
        expected = np.zeros(8)
        expected[5:] = [*force, arm[0] * force[1] - arm[1] * force[0] + 0.7]
        assert_close(system.force(q, v, 0.0), expected)

    @pytest.mark.parametrize("kind", [forces.Applied, forces.Following])
    def test_spatial(self, kind, rng):
        load = kind("f", "a", force=FORCE, torque=TORQUE, at=POINT)
        system = spatial_system([load])
        q, v = moved(system, rng)
        R = rotation_of(q[6:10])
        since = R @ rotation_of([1, 2, -1, 0.5]).T
        arm = since @ (POINT - [0.1, 0.2, 0.3])
        turned = since if kind is forces.Following else np.eye(3)
        moment = np.cross(arm, turned @ FORCE) + turned @ TORQUE
        expected = np.zeros(15)
        expected[3:6], expected[6:9] = turned @ FORCE, R.T @ moment
        assert_close(system.force(q, 0 * v, 0.0), expected)

    def test_power_is_that_of_the_moving_point(self, rng):
        """The generalized force times v against force times the velocity of the material
        point, which is followed by a difference."""
        load = forces.Following("f", "a", force=FORCE, torque=TORQUE, at=POINT)
        system = spatial_system([load])
        q, v = moved(system, rng)

        def point(q):
            since = rotation_of(q[6:10]) @ rotation_of([1, 2, -1, 0.5]).T
            return np.array(q[3:6]) + since @ (POINT - [0.1, 0.2, 0.3]), since

        step = 1e-4
        (before, _), (after, _) = (point(system.retract(q, s * step * v)) for s in (-1, 1))
        _, since = point(q)
        spin = rotation_of(q[6:10]) @ np.array(v[6:9])
        power = (since @ FORCE) @ (after - before) / (2 * step) + (since @ TORQUE) @ spin
        bare = spatial_system().force(q, v, 0.0)
        # The error of the difference is of the order of the squared step.
        assert_close(v @ (system.force(q, v, 0.0) - bare), power, 1e-6)

    def test_without_a_point_it_acts_at_the_centre_of_mass(self, rng):
        system = spatial_system([forces.Applied("f", "b", force=FORCE)])
        q, v = moved(system, rng)
        expected = np.zeros(15)
        expected[9:12] = FORCE
        assert_close(system.force(q, 0 * v, 0.0), expected)

    def test_torque_alone(self, rng):
        system = planar_system([forces.Applied("f", "a", torque=0.7)])
        q, v = moved(system, rng)
        assert_close(system.force(q, v, 0.0), [0, 0, 0.7, 0, 0, 0, 0, 0])

    def test_particles_feel_the_force_alone(self, rng):
        for system, first in (
            (planar_system([forces.Applied("f", "p", force=FORCE[:2], torque=0.7)]), 3),
            (spatial_system([forces.Following("f", "p", force=FORCE, torque=TORQUE)]), 0),
        ):
            q, v = moved(system, rng)
            size = 2 if first else 3
            expected = np.zeros(system.structure.nv)
            expected[first : first + size] = FORCE[:size]
            assert_close(system.force(q, 0 * v, 0.0), expected)

    def test_loads_add_up(self, rng):
        loads = [
            forces.Applied(f"f{k}", body, force=k * FORCE, torque=TORQUE, at=POINT)
            for k, body in enumerate(("a", "b", "a"))
        ]
        q, v = moved(spatial_system(), rng)
        bare = spatial_system().force(q, v, 0.0)
        single = [spatial_system([load]).force(q, v, 0.0) - bare for load in loads]
        together = spatial_system(loads).force(q, v, 0.0)
        assert_close(together - bare, sum(single))


class TestInitialVelocities:
    def test_spin_is_given_in_world_axes_and_kept_in_body_axes(self):
        body = spatial.Body(
            "a",
            mass=1.0,
            inertia=(1.0, 1.0, 1.0),
            position=np.zeros(3),
            orientation=(3.0, 1.0, -2.0, 0.5),
            velocity=(1.0, 2.0, 3.0),
            angular_velocity=(0.1, 0.2, 0.3),
        )
        v = jaxmbs.MultibodySystem([body]).initial_v
        R = rotation_of([3.0, 1.0, -2.0, 0.5])
        assert_close(v, np.concatenate([[1.0, 2.0, 3.0], R.T @ [0.1, 0.2, 0.3]]))

    def test_orientation_is_normalised_or_made_from_a_rotation(self):
        keys = {"mass": 1.0, "inertia": (1.0, 1.0, 1.0), "position": np.zeros(3)}
        given = spatial.Body("a", orientation=(0.0, 3.0, 0.0, 4.0), **keys).coordinates()
        assert_close(given, [0, 0, 0, 0, 0.6, 0, 0.8])
        R = rotation_of([3.0, 1.0, -2.0, 0.5])
        made = spatial.Body("a", rotation=R, **keys).coordinates()
        assert_close(rotation_of(made[3:]), R)


class TestRefusals:
    SPATIAL = (
        ({"mass": 0.0}, r"mass must be greater than zero, got 0\."),
        ({"mass": -1.0}, r"mass must be greater than zero, got -1\."),
        ({"mass": np.inf}, r"mass must be a finite number, got inf\."),
        ({"inertia": [1.0, 2.0]}, r"inertia must be three principal moments or a 3 x 3 matrix"),
        ({"inertia": [1.0, 1.0, -1.0]}, r"inertia must be positive definite; .* -1, 1, 1\."),
        ({"inertia": [1.0, 1.0, 0.0]}, r"inertia must be positive definite; .* 0, 1, 1\."),
        (
            {"inertia": [1.0, 1.0, 2.1]},
            r"inertia breaks the triangle inequality .* moments are 1, 1, 2\.1\.",
        ),
        (
            {"inertia": [[1.0, 0.1, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]]},
            r"inertia must be a symmetric matrix",
        ),
        ({"position": [0.0, 0.0]}, r"position must be a vector of 3 numbers, got"),
        ({"position": [0.0, 0.0, np.nan]}, r"position, entry 3 must be a finite number, got nan\."),
        ({"orientation": [0, 0, 0, 0]}, r"orientation has zero length; give a quaternion"),
        ({"orientation": [1, 0, 0]}, r"orientation must be a vector of 4 numbers"),
        ({"rotation": np.diag([1.0, 1.0, 1.01])}, r"rotation is not orthogonal .* 0\.02, "),
        ({"rotation": np.diag([1.0, 1.0, -1.0])}, r"rotation is a reflection .*determinant is -1"),
        (
            {"rotation": np.eye(3), "orientation": [1, 0, 0, 0]},
            r"give either orientation \(a quaternion\) or rotation \(a matrix\)\.",
        ),
        ({"velocity": 1.0}, r"velocity must be a vector of 3 numbers, got"),
        ({"name": ""}, r"a body needs a name, got ''\."),
        ({"name": "a.b"}, r"the name 'a\.b' holds \.; commas, full stops and quotes are kept"),
        ({"name": " a"}, r"the name ' a' begins or ends with a space"),
    )
    PLANAR = (
        ({"mass": 0}, r"mass must be greater than zero, got 0\."),
        ({"inertia": 0.0}, r"inertia must be greater than zero, got 0\."),
        ({"inertia": [1.0, 1.0, 1.0]}, r"inertia must be a number, got"),
        ({"angle": np.nan}, r"angle must be a finite number, got nan\."),
        ({"position": [[0.0, 0.0]]}, r"position must be a vector of 2 numbers"),
    )

    def test_a_rotation_that_single_precision_has_rounded_is_none_of_them(self):
        with jax.enable_x64(False):
            for name in (*PLAIN, *(f"{sized}:2" for sized in SIZED)):
                assert jaxmbs.mechanisms.get(name).bodies
            with pytest.raises(ValueError, match="not orthogonal"):
                spatial.Body(
                    "b",
                    mass=1,
                    inertia=[1] * 3,
                    position=[0] * 3,
                    rotation=np.eye(3) + [[0, 1e-4, 0]] * 3,
                )

    @pytest.mark.parametrize(("keys", "sentence"), SPATIAL)
    def test_spatial_bodies(self, keys, sentence):
        good = {"name": "a", "mass": 1.0, "inertia": (1.0, 1.0, 1.0), "position": np.zeros(3)}
        with pytest.raises(ValueError, match=sentence):
            spatial.Body(**{**good, **keys})
        with pytest.raises(TypeError, match=r"mass must be a number, got 'heavy'\."):
            spatial.Body(**{**good, "mass": "heavy"})

    @pytest.mark.parametrize(("keys", "sentence"), PLANAR)
    def test_planar_bodies(self, keys, sentence):
        good = {"name": "a", "mass": 1.0, "inertia": 1.0, "position": (0.0, 0.0)}
        with pytest.raises(ValueError, match=sentence):
            planar.Body(**{**good, **keys})

    def test_thin_plates_and_rods_are_bodies(self):
        """Equality in the triangle inequality, rounded, and turned out of the body axes."""
        keys = {"name": "a", "mass": 1.0, "position": np.zeros(3)}
        R = rotation_of([3.0, 1.0, -2.0, 0.5])
        for moments in ((1.0, 2.0, 3.0), (0.1, 0.2, 0.1 + 0.2), (1e-6, 1 / 12, 1 / 12)):
            straight = spatial.Body(inertia=moments, **keys)
            np.testing.assert_array_equal(straight.inertia, np.diag(moments))
            matrix = R @ np.diag(moments) @ R.T
            turned = spatial.Body(inertia=(matrix + matrix.T) / 2, **keys)
            np.testing.assert_allclose(np.linalg.eigvalsh(turned.inertia), moments, atol=1e-12)

    @pytest.mark.parametrize(
        ("keys", "sentence"),
        [
            ({}, r"an applied force needs `force`, `torque` or both\."),
            ({"force": [1.0]}, r"force must be a vector of 3 numbers, got"),
            ({"force": [1.0, 2.0], "torque": [0, 0, 1.0]}, r"torque must be a number"),
            ({"force": [1.0, 2.0], "at": [0, 0, 1.0]}, r"at must be a vector of 2 numbers"),
            ({"force": [1.0, np.inf]}, r"force, entry 2 must be a finite number, got inf\."),
        ],
    )
    @pytest.mark.parametrize("kind", [forces.Applied, forces.Following])
    def test_loads(self, kind, keys, sentence):
        with pytest.raises(ValueError, match=sentence):
            kind("f", "a", **keys)

    @pytest.mark.parametrize(
        ("load", "sentence"),
        [
            (
                forces.Applied("f", "c", force=FORCE[:2]),
                r"force 'f': body 'c' was never declared; there are ground, a, p, b\.",
            ),
            (
                forces.Applied("f", "ground", force=FORCE[:2]),
                r"force 'f': it acts on the ground alone; name a moving body\.",
            ),
            (
                forces.Applied("f", "a", force=FORCE, at=POINT),
                r"force 'f': it is of dimension 3 and the bodies are of dimension 2\.",
            ),
            (
                forces.Applied("f", "a", force=FORCE),
                r"force 'f': it is of dimension 3 and the bodies are of dimension 2\.",
            ),
        ],
    )
    def test_loads_in_a_system(self, load, sentence):
        with pytest.raises(ValueError, match=sentence):
            planar_system([load])
