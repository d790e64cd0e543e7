"""Force laws against closed forms, energy, balance and derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import (
    dot_product_gap,
    first_difference,
    forward_and_reverse,
    move,
    random_direction,
)
from representatives import representatives, representatives_at
from scipy.spatial.transform import Rotation

from jaxmbs import forces, GeneralizedSystem, MultibodySystem, planar, spatial


# Two bodies, turned in the reference configuration, with isotropic inertia: no gyroscopic terms.
PLANAR = {
    "a": {"mass": 2.0, "inertia": 0.3, "position": (0.1, 0.2), "angle": 0.7},
    "b": {"mass": 3.0, "inertia": 0.9, "position": (-0.5, 0.4), "angle": -2.0},
}
SPATIAL = {
    name: {"mass": mass, "inertia": (size,) * 3, "position": position, "orientation": orientation}
    for name, mass, size, position, orientation in (
        ("a", 2.0, 0.4, (0.1, 0.2, 0.3), (1.0, 2.0, -1.0, 0.5)),
        ("b", 3.0, 0.9, (-0.5, 0.4, 0.2), (2.0, 0.0, 1.0, 1.0)),
    )
}
POINTS = np.array([[0.3, 0.5, -0.2], [-0.9, 0.1, 0.4]])
# Seven-point central differences.
NODES = np.arange(-3.0, 4.0)
WEIGHTS = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60
AXIS = np.array([1.0, -2.0, 0.5])
MATRIX = np.array([[9.0, 1.0, 0.5], [1.0, 7.0, -0.4], [0.5, -0.4, 5.0]])


def bodies_of(dimension):
    tables = PLANAR if dimension == 2 else SPATIAL
    make = planar.Body if dimension == 2 else spatial.Body
    return [make(name, **table) for name, table in tables.items()]


def stiff(dimension, scale=1.0):
    """A full symmetric matrix."""
    if dimension == 2:
        return scale * MATRIX
    return scale * np.block([[10 * MATRIX, 0.3 * MATRIX], [0.3 * MATRIX, MATRIX]])


def spring(dimension, **keys):
    points = POINTS[:, :dimension]
    keys = {"stiffness": 40.0, "damping": 3.0, "length": 0.4} | keys
    return forces.SpringDamper("f", ("a", "b"), points=points, **keys)


def bushing(dimension):
    keys = {"stiffness": stiff(dimension), "damping": stiff(dimension, 0.2)}
    return forces.Bushing("f", ("a", "b"), at=POINTS[:, :dimension], **keys)


def torsion(joint="J"):
    return forces.TorsionSpring("f", joint, stiffness=7.0, damping=0.6, rest=0.3)


def stretch(frames, twists, t):
    """The law of `spring`, by hand, growing with time."""
    between = frames[1].origin - frames[0].origin
    along = between / jnp.linalg.norm(between)
    rate = along @ (twists[1].linear - twists[0].linear)
    tension = (1 + t) * (40.0 * (jnp.linalg.norm(between) - 0.4) + 3.0 * rate)
    none = jnp.zeros_like(twists[0].angular)
    return (tension * along, none), (-tension * along, none)


def stretched(frames):
    between = frames[1].origin - frames[0].origin
    return 20.0 * (jnp.linalg.norm(between) - 0.4) ** 2


def user(dimension):
    markers = list(zip(("a", "b"), POINTS[:, :dimension], strict=True))
    return forces.UserForce("f", stretch, markers, potential=stretched)


def system_with(dimension, force, joints=(), **keys):
    return MultibodySystem(bodies_of(dimension), joints, forces=[force], **keys)


def hinge(dimension, bodies=("a", "b")):
    if dimension == 2:
        return planar.Revolute("J", bodies, POINTS[0, :2])
    return spatial.Revolute("J", bodies, POINTS[0], AXIS)


# Every elastic force, between two moving bodies.
CASES = {
    "spring 2": system_with(2, spring(2)),
    "spring 3": system_with(3, spring(3)),
    "bushing 2": system_with(2, bushing(2)),
    "bushing 3": system_with(3, bushing(3)),
    "torsion 2": system_with(2, torsion(), [hinge(2)]),
    "torsion 3": system_with(3, torsion(), [hinge(3)]),
    "torsion 3, cylindrical": system_with(
        3, torsion(), [spatial.Cylindrical("J", ("a", "b"), POINTS[0], AXIS)]
    ),
    "user 3": system_with(3, user(3)),
}
over_cases = pytest.mark.parametrize("system", CASES.values(), ids=CASES)


def states(system, rng, turn=0.6):
    nv = system.structure.nv
    step = jnp.asarray(rng.uniform(-turn, turn, nv))
    q = system.retract(system.reference_q, step)
    return q, jnp.asarray(rng.normal(size=nv))


@eqx.filter_jit
def forced(system, q, v, t=0.0):
    """F, F at rest and the potential energy."""
    rest = jnp.zeros_like(v)
    return system.force(q, v, t), system.force(q, rest, t), system.energy(q, v, t)[1]


@eqx.filter_jit
def slopes(system, q):
    """Differences of the potential energy along all columns of the retraction."""
    nv = system.structure.nv

    def potential(step):
        return system.energy(system.retract(q, step), jnp.zeros(nv), 0.0)[1]

    return jax.lax.map(lambda d: first_difference(lambda s: potential(s * d)), jnp.eye(nv))


def assert_close(actual, expected, atol=1e-12):
    """Sums of a few products of numbers of order ten."""
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


class Pose:
    """A body's pose and twist in the world, by NumPy."""

    def __init__(self, system, q, v, k):
        self.planar = system.reference_q.shape[0] == 6
        width, columns = (3, 3) if self.planar else (7, 6)
        own = [np.array(x[width * k : width * (k + 1)]) for x in (system.reference_q, q)]
        self.columns = slice(columns * k, columns * (k + 1))
        speed = np.array(v[self.columns])
        dim = 2 if self.planar else 3
        self.position, self.linear = own[1][:dim], speed[:dim]
        before, self.rotation = (self.turned(x) for x in own)
        self.since = self.rotation @ before.T
        self.start = own[0][:dim]
        self.angle = own[1][2] - own[0][2]
        self.angular = speed[2] if self.planar else self.rotation @ speed[3:]

    def turned(self, own):
        if self.planar:
            c, s = np.cos(own[2]), np.sin(own[2])
            return np.array([[c, -s], [s, c]])
        return Rotation.from_quat(own[3:], scalar_first=True).as_matrix()

    def arm(self, at):
        """From the centre of mass to the body's point that was at `at` in the reference."""
        return self.since @ (at - self.start)

    def velocity(self, at):
        return self.linear + cross(self.angular, self.arm(at))

    def feels(self, at, force, torque=0.0):
        """Generalized force of a force and torque at the point."""
        moment = torque + cross(self.arm(at), force)
        return np.append(force, moment if self.planar else self.rotation.T @ moment)


def cross(a, b):
    """Cross product; in the plane of an angular velocity or of two vectors."""
    if np.ndim(a) == 0:
        return a * np.array([-b[1], b[0]])
    return a[0] * b[1] - a[1] * b[0] if len(a) == 2 else np.cross(a, b)


def poses(system, q, v):
    return [Pose(system, q, v, k) for k in range(2)]


def as_pair(first, second, points, force, torque=0.0):
    """The generalized force of a wrench on the second body and its opposite on the first."""
    return np.concatenate(
        [first.feels(points[0], -force, -torque), second.feels(points[1], force, torque)]
    )


class TestEveryElasticForce:
    @pytest.mark.parametrize(
        "system",
        representatives_at(
            CASES.values(),
            *(list(CASES).index(name) for name in ("spring 3", "bushing 2", "torsion 3", "user 3")),
        ),
        ids=CASES,
    )
    def test_at_rest_it_is_minus_the_slope_of_the_potential(self, system, rng):
        q, v = states(system, rng)
        _, still, potential = forced(system, q, v)
        assert float(potential) > 0.01
        # The error of seven-point differences of functions of size ten.
        assert_close(still, -slopes(system, q), 1e-9)

    @over_cases
    def test_forces_and_moments_balance(self, system, rng):
        q, v = states(system, rng)
        force, *_ = forced(system, q, v)
        total = sum(
            np.append(f := np.array(force[p.columns])[: len(p.position)],
                      cross(p.position, f) + turned(p, np.array(force[p.columns])[len(f) :]))
            for p in poses(system, q, v)
        )  # fmt: skip
        assert np.max(np.abs(force)) > 0.1
        assert_close(total, 0.0, 1e-12)

    @over_cases
    def test_dampers_take_energy(self, system, rng):
        """Power of what depends on the velocity: negative, quadratic."""
        q, v = states(system, rng)
        force, still, *_ = forced(system, q, v)
        twice, *_ = forced(system, q, 2 * v)
        power = float(v @ (force - still))
        assert power < -1e-3
        assert_close(2 * v @ (twice - still), 4 * power, 1e-11)


@pytest.mark.parametrize("dimension", representatives([2, 3], 3))
def test_derivatives(dimension, rng):
    """Of F of all laws in the state and in every number of the system, forward and reverse."""
    names = [f"spring {dimension}", f"bushing {dimension}", f"torsion {dimension}"]
    loads = [CASES[name].force_groups[0] for name in names]
    bare = MultibodySystem(bodies_of(dimension))
    system = eqx.tree_at(lambda s: s.force_groups, bare, tuple(loads))
    q, v = states(system, rng)
    nv = system.structure.nv

    def function(x):
        system, step, v = x
        return system.force(system.retract(q, step), v, 0.1)

    x = (system, jnp.zeros(nv), v)
    d = random_direction(x, rng)
    w = jnp.asarray(rng.normal(size=nv))
    pushed, pulled = forward_and_reverse(function, x, d, w)
    # Parameters as large as ten, and lengths of a metre, are moved by some thousandths.
    evaluate = eqx.filter_jit(function)
    values = [evaluate(move(x, d, s)) for s in 1e-3 * NODES]
    assert_close(pushed, WEIGHTS @ np.stack(values) / 1e-3, 1e-8 * np.max(np.abs(pushed)))
    assert dot_product_gap(pushed, pulled, d, w) < 1e-12


def turned(pose, torque):
    return torque[0] if pose.planar else pose.rotation @ torque


class TestSpringDamper:
    @pytest.mark.parametrize("dimension", [2, 3])
    def test_tension(self, dimension, rng):
        system = CASES[f"spring {dimension}"]
        q, v = states(system, rng)
        first, second = poses(system, q, v)
        points = POINTS[:, :dimension]
        arms = [p.position + p.arm(x) for p, x in zip((first, second), points, strict=True)]
        speeds = [p.velocity(x) for p, x in zip((first, second), points, strict=True)]
        between = arms[1] - arms[0]
        length = np.linalg.norm(between)
        along = between / length
        tension = 40.0 * (length - 0.4) + 3.0 * along @ (speeds[1] - speeds[0])
        force, _, potential = forced(system, q, v)
        assert_close(force, as_pair(first, second, points, -tension * along))
        assert_close(potential, 20.0 * (length - 0.4) ** 2)

    def test_natural_length_is_the_reference_distance(self):
        system = system_with(3, spring(3, length=None))
        rest = jnp.zeros(system.structure.nv)
        assert_close(system.force(system.reference_q, rest, 0.0), 0.0)
        length = spring(3, length=None).load().length
        assert_close(length, np.linalg.norm(POINTS[1] - POINTS[0]), 1e-15)

    @pytest.mark.parametrize("length", [0.0, 0.3, None])
    def test_points_that_meet(self, length):
        """Two particles at one place: finite values and derivatives."""
        pair = [spatial.Particle(n, mass=1.0, position=(0.5, 0.2, 0.1)) for n in "ab"]
        points = [[0.5, 0.2, 0.1], [0.5, 0.2, 0.1 + (length or 0.0)]]
        force = forces.SpringDamper(
            "f", ("a", "b"), points=points, stiffness=40.0, damping=3.0, length=length
        )
        system = MultibodySystem(pair, forces=[force])
        q = system.reference_q
        _, value, forward, reverse, slope = at_one_place(system, q)
        assert_close(value, 0.0)
        # What is left is a spring without natural length.
        expected = 40.0 * np.kron([[-1.0, 1.0], [1.0, -1.0]], np.eye(3))
        assert_close(forward[0], expected)
        assert_close(reverse[0], expected)
        assert_close(np.stack([forward[1], reverse[1]]), 0.0)
        assert_close(slope, 0.0)

    def test_no_natural_length_from_coinciding_points_has_a_derivative(self):
        def length(points):
            force = forces.SpringDamper("f", ("a", "b"), points=points, stiffness=1.0)
            return force.load().length

        assert_close(jax.grad(length)(jnp.ones((2, 3))), 0.0)


@eqx.filter_jit
def at_one_place(system, q):
    """Potential, force, its derivatives forward and reverse, and the potential's."""
    v = jnp.zeros_like(q)

    def force(q, v):
        return system.force(q, v, 0.0)

    def potential(q):
        return system.energy(q, v, 0.0)[1]

    both = (0, 1)
    forward, reverse = jax.jacfwd(force, both)(q, v), jax.jacrev(force, both)(q, v)
    return potential(q), force(q, v), forward, reverse, jax.grad(potential)(q)


class TestTorsionSpring:
    """stiffness 7, damping 0.6, rest 0.3; the body turns about the axis."""

    MOTOR = forces.TorsionSpring("f", "J", stiffness=7.0, damping=0.6, rest=0.3, torque=1.5)

    @pytest.mark.parametrize("angle", [0.3, 2.0, -9.0])
    @pytest.mark.parametrize(("bodies", "sign"), [(("ground", "a"), 1), (("a", "ground"), -1)])
    def test_planar_angles_count_turns(self, bodies, sign, angle):
        system = system_with(2, self.MOTOR, [hinge(2, bodies)])
        q = system.reference_q.at[2].add(angle)
        force, *_ = forced(system, q, jnp.zeros(6).at[2].set(0.8))
        moment = -7.0 * (sign * angle - 0.3) - 0.6 * sign * 0.8 + 1.5
        assert_close(force, [0, 0, sign * moment, 0, 0, 0])

    @pytest.mark.parametrize("angle", [0.3, 2.0, -2.5, 5.0, -9.0])
    @pytest.mark.parametrize(
        ("bodies", "sign"), representatives_at([(("ground", "a"), 1), (("a", "ground"), -1)], 1)
    )
    def test_spatial_angles_are_known_up_to_a_turn(self, bodies, sign, angle):
        system = system_with(3, self.MOTOR, [hinge(3, bodies)])
        axis = AXIS / np.linalg.norm(AXIS)
        pose = Pose(system, system.reference_q, jnp.zeros(12), 0)
        in_body = pose.rotation.T @ axis
        q = system.retract(system.reference_q, jnp.zeros(12).at[3:6].set(in_body * angle))
        force, _, potential = forced(system, q, jnp.zeros(12).at[3:6].set(0.8 * in_body))
        off = sign * angle - 0.3
        off -= 2 * np.pi * np.round(off / (2 * np.pi))
        moment = -7.0 * off - 0.6 * sign * 0.8 + 1.5
        assert_close(force[:6], [0, 0, 0, *(sign * moment * in_body)])
        assert_close(potential, 3.5 * off**2)


class TestBushing:
    def test_planar_law(self, rng):
        system = CASES["bushing 2"]
        q, v = states(system, rng)
        first, second = poses(system, q, v)
        points = POINTS[:, :2]
        ends = [p.position + p.arm(x) for p, x in zip((first, second), points, strict=True)]
        speeds = [p.velocity(x) for p, x in zip((first, second), points, strict=True)]
        axes = second.since.T
        shift = axes @ (ends[1] - ends[0])
        x = np.append(shift, second.angle - first.angle)
        rate = axes @ (speeds[1] - speeds[0]) - cross(second.angular, shift)
        rate = np.append(rate, second.angular - first.angular)
        stress = MATRIX @ x + 0.2 * MATRIX @ rate
        on_second = second.feels(
            points[1], -axes.T @ stress[:2], cross(shift, stress[:2]) - stress[2]
        )
        on_first = first.feels(points[0], axes.T @ stress[:2], stress[2])
        force, _, potential = forced(system, q, v)
        assert_close(force, np.concatenate([on_first, on_second]))
        assert_close(potential, 0.5 * x @ MATRIX @ x)

    @pytest.mark.parametrize("k", range(3))
    def test_a_rotation_is_twice_the_rodrigues_vector(self, k):
        """Body axes along the world's: about each axis 2 tan(angle / 2), and its slope."""
        body = spatial.Body("a", mass=1.0, inertia=(1.0, 1.0, 1.0), position=np.zeros(3))
        law = forces.Bushing("f", ("ground", "a"), at=np.zeros(3), stiffness=[1, 2, 3, 4, 5, 6.0])
        system = MultibodySystem([body], forces=[law])
        angle, stiffness = 0.8, 4.0 + k
        q = system.retract(system.reference_q, jnp.zeros(6).at[3 + k].set(angle))
        half = np.tan(angle / 2)
        expected = np.zeros(6)
        expected[3 + k] = -stiffness * 2 * half * (1 + half**2)
        assert_close(system.force(q, jnp.zeros(6), 0.0), expected)
        moved = system.reference_q.at[k].set(0.1)
        assert_close(system.force(moved, jnp.zeros(6), 0.0)[k], -0.1 * (1 + k))

    def test_the_diagonal_alone(self):
        for size in (3, 6):
            at = np.zeros(2 if size == 3 else 3)
            given = np.arange(1.0, size + 1)
            whole = forces.Bushing("f", ("a", "b"), at=at, stiffness=np.diag(given))
            assert eqx.tree_equal(forces.Bushing("f", ("a", "b"), at=at, stiffness=given), whole)
            assert not np.any(whole.damping)


class TestUserForce:
    def test_it_is_what_the_function_says(self, rng):
        system, sprung = CASES["user 3"], CASES["spring 3"]
        q, v = states(system, rng)
        force, _, potential = forced(system, q, v, 0.5)
        expected, _, energy = forced(sprung, q, v, 0.5)
        assert_close(force, 1.5 * expected)
        assert_close(potential, energy)

    @pytest.mark.parametrize(
        ("result", "sentence"),
        [
            ((((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),), r"returned 1 pair.* for 2 marker"),
            ((((0.0, 0.0), (0.0, 0.0, 0.0)),) * 2, r"shape \[2\].*return shapes \[3\] and \[3\]"),
            ((((0.0, 0.0, 0.0), 0.0),) * 2, r"torque of shape \[\]"),
        ],
    )
    def test_wrong_results_are_refused(self, result, sentence):
        markers = [("a", POINTS[0]), ("b", POINTS[1])]
        system = system_with(3, forces.UserForce("f", lambda *_: result, markers))
        with pytest.raises(ValueError, match=sentence):
            system.force(system.reference_q, system.initial_v, 0.0)


class TestEnergy:
    def test_gravity_far_from_the_origin(self):
        """1000 km away: the weight is the same, and the potential counts from the origin."""
        far = 1e6
        body = spatial.Body("a", mass=2.0, inertia=(1.0, 1.0, 1.0), position=(far, far, far))
        point = spatial.Particle("p", mass=0.5, position=(-far, 0.0, far))
        system = MultibodySystem([body, point], gravity=(0.0, 0.0, -9.81))
        q, v = system.reference_q, jnp.zeros(9)
        assert_close(system.force(q, v, 0.0), [0, 0, -19.62, 0, 0, 0, 0, 0, -4.905], 0.0)
        kinetic, potential = system.energy(q, v, 0.0)
        higher = system.energy(q.at[2].add(1.0).at[9].add(1.0), v, 0.0)[1]
        assert float(kinetic) == 0.0
        np.testing.assert_allclose(potential, 2.5 * 9.81 * far, rtol=1e-15)
        # Rounding of numbers of 2e7.
        assert_close(higher - potential, 2.5 * 9.81, 1e-8)

    def test_kinetic(self, rng):
        system = MultibodySystem(bodies_of(3))
        q, v = states(system, rng)
        w = np.array(v)
        expected = w[:3] @ w[:3] + 0.2 * w[3:6] @ w[3:6]
        expected += 1.5 * w[6:9] @ w[6:9] + 0.45 * w[9:] @ w[9:]
        assert_close(system.energy(q, v, 0.0)[0], expected)
        assert_close(system.kinetic_energy(q, v), expected)

    def test_of_generalized_coordinates(self):
        system = GeneralizedSystem(
            ["r", "phi"],
            mass_matrix=lambda q: jnp.diag(jnp.stack([1.0 + 0 * q[0], q[0] ** 2])),
            force=lambda q, v, t: 0 * v,
            constraints={},
        )
        energy = system.kinetic_energy(jnp.array([2.0, 0.3]), jnp.array([3.0, 0.5]))
        assert_close(energy, 0.5 * 9.0 + 0.5 * 4.0 * 0.25)

    def test_without_damping_the_sum_is_kept(self, rng):
        """d/dt (kinetic + potential) = 0 along dv/dt = M^-1 F: springs, gravity, and gyroscopic
        terms (principal moments all different)."""
        a, b = bodies_of(3)
        a = spatial.Body("a", **(SPATIAL["a"] | {"inertia": (0.3, 0.4, 0.6)}))
        held = forces.Bushing("g", ("ground", "b"), at=POINTS[1], stiffness=stiff(3))
        system = MultibodySystem(
            [a, b], forces=[spring(3, damping=0.0), held], gravity=(0.3, -0.2, -9.81)
        )

        @jax.jit
        def rates(q, v):
            acceleration = jnp.linalg.solve(system.mass_matrix(q), system.force(q, v, 0.0))
            tangent = (system.rate(q, v), acceleration)
            return jax.jvp(lambda q, v: system.energy(q, v, 0.0), (q, v), tangent)[1]

        kinetic, potential = rates(*states(system, rng))
        assert abs(float(kinetic)) > 1.0
        assert_close(kinetic + potential, 0.0)


def test_new_numbers_are_no_new_trace(rng):
    traces = []

    @eqx.filter_jit
    def force(system, q, v):
        traces.append(1)
        return system.force(q, v, 0.0), system.energy(q, v, 0.0)

    def made(scale):
        joints = [hinge(2)]
        rub = forces.CoulombFriction("c", "J", coefficient=scale, radius=scale, velocity=scale)
        push = forces.Applied("p", "a", force=(scale, 1.0), torque=scale, at=(scale, 0.0))
        held = forces.Bushing("g", ("ground", "b"), at=(scale, 0.0), stiffness=[scale, 1.0, 1.0])
        turn = forces.TorsionSpring("t", "J", stiffness=scale, rest=scale, torque=1.0)
        pull = spring(2, stiffness=scale, length=scale)
        loads = [pull, rub, push, held, turn]
        return MultibodySystem(bodies_of(2), joints, forces=loads, gravity=(scale, 0.0))

    results = []
    for scale in (0.5, 0.7, 1.1):
        system = made(scale)
        q, v = states(system, rng)
        results.append(force(system, q, v))
    assert len(traces) == 1
    assert not np.allclose(results[0][0], results[1][0])


_ENDS = {"points": [[0.0, 0.0], [1.0, 0.0]], "stiffness": 1.0}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: forces.SpringDamper("f", ("a", "a"), **_ENDS),
            r"bodies joins 'a' with itself",
        ),
        (
            lambda: forces.SpringDamper("f", ("a", "b"), **_ENDS, length=-1),
            r"length must be at least 0, got -1\.",
        ),
        (
            lambda: forces.SpringDamper(
                "f", ("a", "b"), **_ENDS | {"points": [[1, 1.0]] * 2}, length=1
            ),
            r"the two points coincide, so a spring of natural length 1 has no direction",
        ),
        (
            lambda: forces.Bushing("f", ("a", "b"), at=(0.0, 0.0), stiffness=[1.0] * 6),
            r"stiffness must be the 3 numbers on the diagonal of a matrix, or a 3 x 3 matrix",
        ),
        (
            lambda: forces.Bushing(
                "f", ("a", "b"), at=(0.0, 0.0), stiffness=[1.0] * 3, damping=np.triu(MATRIX)
            ),
            r"damping must be a symmetric matrix",
        ),
        (
            lambda: forces.UserForce("f", stretch, []),
            r"markers must be a list of pairs \(body, world point\), at least one",
        ),
        (lambda: forces.TorsionSpring("f.", "J"), r"the name 'f\.' holds \."),
    ],
)
def test_forces_that_mean_nothing_are_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize(
    ("force", "sentence"),
    [
        (
            forces.TorsionSpring("f", "K"),
            r"force 'f': joint 'K' was never declared; there are J, S\.",
        ),
        (
            forces.TorsionSpring("f", "S"),
            r"force 'f': joint 'S' \(translational\) has no rotation; a torsion spring acts",
        ),
        (
            forces.SpringDamper("f", ("a", "c"), **_ENDS),
            r"force 'f': body 'c' was never declared; there are ground, a, b\.",
        ),
        (
            forces.Bushing("f", ("a", "b"), at=np.zeros(3), stiffness=[1.0] * 6),
            r"force 'f': it is of dimension 3 and the bodies are of dimension 2\.",
        ),
        (
            forces.Applied("f", "a", torque=(0.0, 0.0, 1.0)),
            r"force 'f': it is of dimension 3 and the bodies are of dimension 2\.",
        ),
    ],
)
def test_forces_that_do_not_belong_to_a_system_are_refused(force, sentence):
    joints = [hinge(2), planar.Translational("S", ("ground", "a"), (0.0, 0.0), (1.0, 0.0))]
    with pytest.raises(ValueError, match=sentence):
        system_with(2, force, joints)
