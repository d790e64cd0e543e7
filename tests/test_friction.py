"""Coulomb friction: its law in each joint, the fixed point with the reactions, certificates."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import dot_product_gap, forward_and_reverse, move, random_direction
from representatives import representatives
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

from jaxmbs import forces, mechanisms, MultibodySystem, planar, spatial
from jaxmbs._dynamics import certify, simulate, SimulationError, solve_with_friction
from jaxmbs._dynamics._friction import solve_stage
from jaxmbs._formulations import Elimination, MinimumNorm
from jaxmbs._solvability import dependent_sets
from jaxmbs.results import RESULTS


solve = eqx.filter_jit(solve_with_friction)
G = 9.81


def rub(joint, coefficient=0.3, radius: float | None = 0.05, velocity=1e-3):
    return forces.CoulombFriction(
        f"rub {joint}", joint, coefficient=coefficient, radius=radius, velocity=velocity
    )


def assert_close(actual, expected, atol=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


def mechanism(name, rubs=(), gravity=None):
    model = mechanisms.get(name)
    return MultibodySystem(model.bodies, model.joints, model.drivers, rubs, gravity=gravity)


# ---------------------------------------------------------------------------------------------
# The law
# ---------------------------------------------------------------------------------------------

AT2, AXIS2 = np.array([0.4, -0.2]), np.array([1.0, 2.0])
AT3, AXIS3 = np.array([0.4, -0.2, 0.3]), np.array([1.0, -2.0, 0.5])
BODIES = ("a", "b")
JOINTS = {
    "revolute 2": planar.Revolute("J", BODIES, AT2),
    "translational 2": planar.Translational("J", BODIES, AT2, AXIS2),
    "revolute 3": spatial.Revolute("J", BODIES, AT3, AXIS3),
    "translational 3": spatial.Translational("J", BODIES, AT3, AXIS3),
    "cylindrical 3": spatial.Cylindrical("J", BODIES, AT3, AXIS3),
    "spherical 3": spatial.Spherical("J", BODIES, AT3),
}


def pair_with(joint, load):
    if joint.at.shape[1] == 2:
        a = planar.Body("a", mass=2.0, inertia=0.3, position=(0.1, 0.2), angle=0.7)
        b = planar.Body("b", mass=3.0, inertia=0.9, position=(-0.5, 0.4), angle=-2.0)
    else:
        keys = {"inertia": (0.4, 0.5, 0.6)}
        a = spatial.Body("a", mass=2.0, position=(0.1, 0.2, 0.3), orientation=(1, 2, -1, 0), **keys)
        b = spatial.Body("b", mass=3.0, position=(-0.5, 0.4, 0.2), orientation=(2, 0, 1, 1), **keys)
    return MultibodySystem([a, b], [joint], forces=[load])


def vector3(x):
    """A vector of the plane, or an angular velocity normal to it, in space."""
    return np.pad(x, (0, 1)) if np.size(x) == 2 else np.array([0.0, 0.0, np.ravel(x)[0]])


def by_hand(name, system, v, multipliers):
    """Friction on the second body, force and torque at the joint's point, in space, in the
    reference configuration: from the reaction F - M dv/dt and the relative velocity there."""
    flat = name.endswith("2")
    q, v = np.array(system.reference_q), np.array(v)
    reaction = -np.array(system.constraint_matrix(q, v, 0.0)).T @ multipliers
    if flat:
        at, axis, turning = vector3(AT2), vector3(AXIS2), np.array([0.0, 0.0, 1.0])
        linear = [vector3(v[3 * k : 3 * k + 2]) for k in range(2)]
        angular = [vector3(v[3 * k + 2]) for k in range(2)]
        centres = [vector3(q[3 * k : 3 * k + 2]) for k in range(2)]
        force = vector3(reaction[3:5])
    else:
        at, axis, turning = AT3, AXIS3, AXIS3 / np.linalg.norm(AXIS3)
        turns = [Rotation.from_quat(q[7 * k + 3 : 7 * k + 7], scalar_first=True) for k in range(2)]
        linear = [v[6 * k : 6 * k + 3] for k in range(2)]
        angular = [turns[k].apply(v[6 * k + 3 : 6 * k + 6]) for k in range(2)]
        centres = [q[7 * k : 7 * k + 3] for k in range(2)]
        force = reaction[6:9]
    axis = axis / np.linalg.norm(axis)
    points = [x + np.cross(w, at - c) for x, w, c in zip(linear, angular, centres, strict=True)]
    slide, turn = points[1] - points[0], angular[1] - angular[0]
    kind = name.split()[0]
    if kind != "spherical" and name != "revolute 2":
        force = force - (force @ axis) * axis
    slide = axis * (axis @ slide) if kind in ("translational", "cylindrical") else 0 * slide
    turn = {"spherical": turn, "translational": 0 * turn}.get(kind, turning * (turning @ turn))
    speed = np.hypot(np.linalg.norm(slide), 0.05 * np.linalg.norm(turn))
    size = 0.3 * np.linalg.norm(force) * np.tanh(speed / 0.02) / speed
    return at, -size * slide, -size * 0.05**2 * turn, centres, size * speed**2


@pytest.mark.parametrize(
    "name", representatives(JOINTS, "revolute 2", "translational 2", "revolute 3", "spherical 3")
)
def test_the_law(name, rng):
    system = pair_with(JOINTS[name], rub("J", velocity=0.02))
    nv = system.structure.nv
    v = jnp.asarray(rng.normal(size=nv) * 0.3)
    multipliers = rng.normal(size=len(system.structure.rows)) * 50
    friction = np.array(system.friction(system.reference_q, v, 0.0, jnp.asarray(multipliers)))
    at, force, torque, centres, lost = by_hand(name, system, v, multipliers)
    expected = []
    for k, sign in ((0, -1), (1, 1)):
        moment = torque + np.cross(at - centres[k], force)
        if nv == 6:
            expected += [*(sign * force[:2]), sign * moment[2]]
        else:
            quaternion = np.array(system.reference_q[7 * k + 3 : 7 * k + 7])
            turned = Rotation.from_quat(quaternion, scalar_first=True)
            expected += [*(sign * force), *(sign * turned.inv().apply(moment))]
    assert np.max(np.abs(expected)) > 0.1
    assert_close(friction, expected)
    # Its power is lost: coefficient N |u| tanh(|u| / velocity).
    assert_close(v @ friction, -lost)


def test_nothing_moves_and_nothing_presses():
    """Values and derivatives at zero velocity, zero reaction, and both."""
    system = pair_with(JOINTS["cylindrical 3"], rub("J"))
    q = system.reference_q

    @jax.jit
    def friction(v, multipliers):
        both = (0, 1)
        value = system.friction(q, v, 0.0, multipliers)
        forward = jax.jacfwd(lambda *x: system.friction(q, x[0], 0.0, x[1]), both)(v, multipliers)
        reverse = jax.jacrev(lambda *x: system.friction(q, x[0], 0.0, x[1]), both)(v, multipliers)
        return value, forward, reverse

    moving, pressed = jnp.linspace(-1.0, 1.0, 12), jnp.linspace(1.0, 2.0, 4)
    for v, multipliers in ((0, 1), (1, 0), (0, 0)):
        value, forward, reverse = friction(v * moving, multipliers * pressed)
        # With |F| smoothed by 1e-12 N there is as little friction without a reaction.
        assert_close(value, 0.0, 1e-11)
        for one, other in zip(forward, reverse, strict=True):
            assert np.all(np.isfinite(one))
            assert_close(one, other)
    # At rest friction is a damper of the constant coefficient N / velocity.
    _, (resistance, _), _ = friction(0 * moving, pressed)
    damped = -moving @ resistance @ moving
    assert_close(damped, 1e6 * by_hand_power(system, 1e-3 * moving, pressed), 1e-3 * float(damped))


def by_hand_power(system, v, multipliers):
    slow = jnp.asarray(v) * 1e-3
    return -1e6 * float(slow @ system.friction(system.reference_q, slow, 0.0, multipliers))


# ---------------------------------------------------------------------------------------------
# The fixed point
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("speed", [2.0, -2.0])
def test_block_on_a_slope(speed):
    """Planar slider: acceleration g (sin - mu cos) along the slope, mu against the motion."""
    slope, mu = 0.4, 0.25
    along = np.array([np.cos(slope), np.sin(slope)])
    block = planar.Body("block", mass=2.0, inertia=0.1, position=(0.0, 0.0), velocity=speed * along)
    system = MultibodySystem(
        [block],
        [planar.Translational("J", ("ground", "block"), (0.0, 0.0), along)],
        forces=[rub("J", mu, radius=None)],
        gravity=(0.0, -G),
    )
    found = solve(system, system.reference_q, system.initial_v, 0.0, formulation=MinimumNorm())
    expected = -G * (np.sin(slope) + np.sign(speed) * mu * np.cos(slope)) * along
    assert_close(found.acceleration, [*expected, 0.0])
    # Reaction on the block: m g cos along the normal, at the centre of mass.
    assert_close(np.abs(found.multipliers), [2.0 * G * np.cos(slope), 0.0])
    assert bool(found.result == RESULTS.successful)


class Pendulum:
    """A physical pendulum in a bearing with friction, and its acceleration by a root."""

    ANGLE, RATE, MASS, INERTIA, LENGTH = 0.6, 1.3, 2.0, 0.4, 0.7

    @classmethod
    def system(cls, coefficient=0.3, radius=0.05, velocity=1e-3, mass=2.0):
        s, c = np.sin(cls.ANGLE), np.cos(cls.ANGLE)
        rate, length = cls.RATE, cls.LENGTH
        body = planar.Body(
            "bob",
            mass=mass,
            inertia=cls.INERTIA,
            position=(length * s, -length * c),
            velocity=(rate * length * c, rate * length * s),
            angular_velocity=rate,
        )
        return MultibodySystem(
            [body],
            [planar.Revolute("A", ("ground", "bob"), (0.0, 0.0))],
            forces=[rub("A", coefficient, radius, velocity)],
            gravity=(0.0, -G),
        )

    @classmethod
    def acceleration(cls, coefficient=0.3, radius=0.05, velocity=1e-3, mass=2.0):
        """Angular acceleration and the force in the bearing."""
        s, c = np.sin(cls.ANGLE), np.cos(cls.ANGLE)
        rate, length = cls.RATE, cls.LENGTH

        def motion(torque):
            angular = (torque - mass * G * length * s) / (cls.INERTIA + mass * length**2)
            centre = length * np.array([angular * c - rate**2 * s, angular * s + rate**2 * c])
            return angular, mass * (centre + np.array([0.0, G]))

        def gap(torque):
            normal = np.linalg.norm(motion(torque)[1])
            return torque + coefficient * radius * normal * np.tanh(rate * radius / velocity)

        return motion(brentq(gap, -100.0, 100.0, xtol=1e-14))


@pytest.mark.parametrize("coefficient", [0.0, 0.3, 4.0])
def test_pendulum_in_a_bearing(coefficient):
    system = Pendulum.system(coefficient)
    found = solve(system, system.reference_q, system.initial_v, 0.0, formulation=MinimumNorm())
    angular, force = Pendulum.acceleration(coefficient)
    assert_close(found.acceleration[2], angular)
    assert_close(np.linalg.norm(found.multipliers), np.linalg.norm(force), 1e-11)
    assert bool(found.result == RESULTS.successful)


def test_the_old_order_of_arguments():
    system = Pendulum.system(velocity=0.05)
    state = (system.reference_q, system.initial_v, 0.0)
    now = solve_with_friction(system, *state, formulation=MinimumNorm())
    old: Any = solve_with_friction
    for formulation in (MinimumNorm(), None):
        with pytest.warns(
            DeprecationWarning, match=r"\(system, q, v, t, formulation=formulation\) now"
        ):
            before = old(system, formulation, *state)
        assert_close(before.acceleration, now.acceleration)


def test_several_states_at_once():
    system = Pendulum.system(velocity=0.05)
    speeds = jnp.linspace(-1.0, 1.0, 5)[:, None] * system.initial_v[None]

    def minimum_norm(v: Any) -> Any:
        return solve(system, system.reference_q, v, 0.0, formulation=MinimumNorm())

    found = eqx.filter_vmap(minimum_norm)(speeds)
    for v, acceleration in zip(speeds, found.acceleration, strict=True):
        one = solve(system, system.reference_q, v, 0.0, formulation=MinimumNorm())
        assert_close(acceleration, one.acceleration)


def test_derivatives_of_the_pendulum():
    """In the parameters of the friction, the mass and the velocity: differences of the root; the
    pushed and the pulled derivative."""
    keys = {"coefficient": 0.3, "radius": 0.05, "velocity": 0.1, "mass": 2.0}
    system = Pendulum.system(**keys)

    def angular(system):
        found = solve_with_friction(
            system, system.reference_q, system.initial_v, 0.0, formulation=MinimumNorm()
        )
        return found.acceleration[2]

    direction = jax.tree.map(jnp.ones_like, eqx.filter(system, eqx.is_inexact_array))
    pushed, slope = forward_and_reverse(angular, system, direction, jnp.asarray(1.0))
    law = slope.friction_groups[0].law
    found = {"coefficient": law.coefficient, "radius": law.radius, "velocity": law.sign.velocity}
    found["mass"] = slope.body_groups[0].inertia.mass
    for key, value in keys.items():
        step = 1e-5 * value
        ends = [Pendulum.acceleration(**keys | {key: value + sign * step})[0] for sign in (-1, 1)]
        # The error of the difference is of the order of the squared step.
        assert_close(found[key][0], (ends[1] - ends[0]) / (2 * step), 1e-7)
    pulled = sum(jnp.sum(x) for x in jax.tree.leaves(slope))
    assert_close(pushed, pulled, 1e-9)


def driven_crank(coefficient=0.2, rubs="ABCD"):
    """Slider-crank with friction in its joints, in motion."""
    system = mechanism("slider-crank", [rub(j, coefficient) for j in rubs], gravity=(0.0, -G))
    q = system.reference_q
    matrix = np.array(system.constraint_matrix(q, system.initial_v, 0.0))
    motion = np.linalg.svd(matrix)[2][-1]
    return system, q, jnp.asarray(2.0 * motion / motion[2])


@pytest.mark.thorough
def test_formulations_agree_where_reactions_are_unique():
    system, q, v = driven_crank()
    first = solve(system, q, v, 0.0, formulation=MinimumNorm())
    second = solve(system, q, v, 0.0, formulation=Elimination())
    assert_close(first.acceleration, second.acceleration, 1e-9)
    assert_close(first.multipliers, second.multipliers, 1e-9)
    # The equations of motion, with the friction of these very multipliers.
    friction = system.friction(q, v, 0.0, first.multipliers)
    force = system.force(q, v, 0.0) + friction
    matrix = np.array(system.constraint_matrix(q, v, 0.0))
    left = system.mass_matrix(q) @ first.acceleration + matrix.T @ first.multipliers
    assert_close(left, force, 1e-10)
    assert_close(matrix @ first.acceleration, system.acceleration_offset(q, v, 0.0), 1e-10)
    assert float(v @ friction) < -0.1


@pytest.mark.thorough
def test_derivatives_of_a_mechanism(rng):
    """Along a random direction of the state, by central differences along the retraction."""
    system, q, v = driven_crank()

    def accelerated(x):
        step, v = x
        found = solve(system, system.retract(q, step), v, 0.0, formulation=MinimumNorm())
        return jnp.concatenate([found.acceleration, found.multipliers])

    x = (jnp.zeros_like(v), v)
    d, w = random_direction(x, rng), jnp.asarray(rng.normal(size=v.shape[0] + 8))
    pushed, pulled = forward_and_reverse(accelerated, x, d, w)
    step = 1e-5
    ends = [np.array(accelerated(move(x, d, sign * step))) for sign in (-1, 1)]
    expected = (ends[1] - ends[0]) / (2 * step)
    assert_close(pushed, expected, 1e-6 * np.max(np.abs(expected)))
    assert dot_product_gap(pushed, pulled, d, w) < 1e-9


def test_friction_in_the_slider_alone():
    """N = |a + mu b N|, with a and b from the dense equations: one solution up to mu |b| = 1, and
    then two as a and b have unlike signs."""
    system, q, v = driven_crank(rubs="D")
    mass, matrix = (np.array(x) for x in (system.mass_matrix(q), system.constraint_matrix(q, v, 0)))
    rows = matrix.shape[0]
    whole = np.block([[mass, matrix.T], [matrix, np.zeros((rows, rows))]])
    offset = system.acceleration_offset(q, v, 0.0)
    row = system.structure.row_names.index("D.n")
    pull = np.zeros(9)
    pull[6] = -np.tanh(float(v[6]) / 1e-3)
    a, b = (
        np.linalg.solve(whole, right)[9 + row]
        for right in (
            np.concatenate([system.force(q, v, 0.0), offset]),
            np.concatenate([pull, np.zeros(rows)]),
        )
    )
    # As it slides, friction may press more or less: turn the motion so that it presses less.
    if a * b > 0:
        v, b = -v, -b
    for size, count in ((0.5, 1), (0.9, 1), (1.5, 2)):
        coefficient = size / abs(b)
        rubbing = driven_crank(coefficient, rubs="D")[0]
        found = solve(rubbing, q, v, 0.0, formulation=MinimumNorm())
        assert bool(found.result == RESULTS.successful)
        assert found.solutions is not None
        assert int(found.solutions) == count
        assert_close(abs(float(found.multipliers[row])), abs(a) / (1 + size), 1e-9)


def test_without_friction_not_one_operation_is_added():
    system, q, v = driven_crank(rubs="")
    t = jnp.zeros(())

    def bare(q, v):
        found = MinimumNorm().solve(system.equations(q, v, t))
        return found.acceleration, found.multipliers

    def rubbed(q, v):
        found = solve_stage(system, MinimumNorm(), q, v, t)
        return found.acceleration, found.multipliers

    assert str(jax.make_jaxpr(rubbed)(q, v)) == str(jax.make_jaxpr(bare)(q, v))
    assert not np.any(system.friction(q, v, 0.0, jnp.ones(8)))


def test_new_numbers_are_no_new_trace():
    traces = []

    @eqx.filter_jit
    def accelerated(system, v):
        traces.append(1)
        return solve_with_friction(
            system, system.reference_q, v, 0.0, formulation=MinimumNorm()
        ).acceleration

    for coefficient in (0.1, 0.2, 0.3):
        system = Pendulum.system(coefficient)
        angular = Pendulum.acceleration(coefficient)[0]
        assert_close(accelerated(system, system.initial_v)[2], angular)
    assert len(traces) == 1


# ---------------------------------------------------------------------------------------------
# Certificates and refusals
# ---------------------------------------------------------------------------------------------


class TestCertificates:
    def test_the_reactions_of_a_slider_crank_are_unique(self):
        system, q, v = driven_crank()
        certificate = certify(system, q, v)
        assert certificate.joints == ("A", "B", "C", "D")
        assert bool(certificate.certified)
        assert str(certificate).startswith("certified unique: the reaction of every joint")

    def test_a_door_on_two_hinges_is_not_certified(self):
        system = mechanism("door", [rub("upper"), rub("lower")])
        certificate = certify(system, system.reference_q)
        assert not bool(certificate.certified)
        assert certificate.uncertain_joints() == ("lower", "upper")
        text = str(certificate)
        assert text.startswith("not certified: the reactions of lower, upper are not unique")
        assert text.endswith(
            "The condition is sufficient, not necessary. What helps: take the redundant rows from "
            "lower, upper (`releases` lists ways), or put a bushing in the place of one of them."
        )

    @pytest.mark.thorough
    def test_one_of_two(self):
        """The robot's frame: joint A's reaction is unique, B's is not."""
        system = mechanism("mobile-robot", [rub("A"), rub("B")])
        certificate = certify(system, system.reference_q)
        assert certificate.unique.tolist() == [True, False]
        text = str(certificate)
        assert "the reaction of B is not unique" in text
        # All that share a dependent set with B, as the full search finds them.
        sets = dependent_sets(certificate.solvability).sets
        sharing = {name for members in sets if "B" in members for name in members}
        order = certificate.solvability.structure.constraint_names
        assert f"rows from {', '.join(n for n in order if n in sharing)} (`releases`" in text
        assert text.endswith("friction only where the reaction is unique (A, D, E, F, G).")

    def test_no_friction(self):
        system = mechanism("door")
        certificate = certify(system, system.reference_q)
        assert bool(certificate.certified)
        assert str(certificate) == (
            "certified unique: no joint has friction that depends on its reaction."
        )


def table_on_rails(coefficient, rubbing=("left", "right")):
    """A block on two rails of one direction, whose normal forces are not unique."""
    body = planar.Body("block", mass=2.0, inertia=0.1, position=(0.0, 0.1))
    rails = [
        planar.Translational(name, ("ground", "block"), at, (1.0, 0.0))
        for name, at in (("left", (-0.2, 0.0)), ("right", (0.2, 0.0)))
    ]
    loads = [rub(name, coefficient, radius=None) for name in rubbing]
    return MultibodySystem([body], rails, forces=loads, gravity=(0.0, -G))


@pytest.mark.thorough
def test_a_run_with_friction_in_reactions_that_are_not_unique():
    """Whatever each rail carries, together they carry the weight: the block brakes by 0.3 G."""
    system = table_on_rails(0.3)
    v = jnp.array([1.0, 0.0, 0.0])
    run = simulate(system, system.reference_q, v, 0.3, monitor=False)
    assert abs(float(run.v[-1, 0]) - (1 - 0.3 * 0.3 * G)) < 1e-5
    certificate = run.certificate()
    assert certificate.uncertain_joints() == ("left", "right")
    assert str(certificate) == str(certify(system, system.reference_q, v))
    assert f"friction at the start: {certificate}" in str(run).splitlines()
    # A run without friction has nothing to say of it.
    assert "friction" not in str(dataclasses.replace(run, system=table_on_rails(0.3, ())))


@pytest.mark.thorough
def test_a_run_in_which_friction_does_not_converge():
    """Pins so rough that friction grows with itself: no finite force is in balance."""
    system, q, v = driven_crank(50.0, "ABC")
    with pytest.raises(SimulationError, match="riction"):
        simulate(system, q, v, 0.3, monitor=False)


@pytest.mark.parametrize(
    ("load", "sentence"),
    [
        (rub("K"), r"force 'rub K': joint 'K' was never declared; there are J, F\."),
        (rub("F"), r"force 'rub F': friction in joint 'F' \(fixed\) is not known; it is in rev"),
        (rub("J", radius=None), r"joint 'J' \(revolute\) turns, so its friction needs `radius`"),
    ],
)
def test_friction_that_is_not_known_is_refused(load, sentence):
    body = planar.Body("a", mass=1.0, inertia=1.0, position=(0.0, 0.0))
    joints = [
        planar.Revolute("J", ("ground", "a"), (0.0, 0.0)),
        planar.Fixed("F", ("ground", "a"), (0.0, 0.0)),
    ]
    with pytest.raises(ValueError, match=sentence):
        MultibodySystem([body], joints, forces=[load])


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"coefficient": -0.1}, r"coefficient must be at least 0, got -0\.1\."),
        ({"radius": 0.0}, r"radius must be greater than zero, got 0\."),
        ({"velocity": 0.0}, r"velocity must be greater than zero, got 0\."),
    ],
)
def test_numbers_that_mean_nothing_are_refused(keys, sentence):
    with pytest.raises(ValueError, match=sentence):
        rub("J", **keys)
