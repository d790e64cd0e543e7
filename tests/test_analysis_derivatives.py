"""Derivatives of small motions, equilibria and kinematics, forward and reverse."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivative_checks import assert_slopes, check, difference, NODES
from helpers import dot_product_gap

import jaxmbs as jm
from jaxmbs import design, spatial
from jaxmbs._design._objective import slope_and_curvature
from jaxmbs._dynamics._small_motions import (
    changes_of_modes,
    normalised,
    SmallMotions,
    sorted_eigenvalues,
)
from jaxmbs.design import Study


def flap(numbers):
    """A door that lies on its side, on two hinges (five redundant rows), held by a spring."""
    mass, inertia, arm, stiffness, damping, gravity = numbers
    body = spatial.Body(
        "flap", mass=mass, inertia=inertia * jnp.array([1.0, 1.2, 1.1]), position=(0, 0, -0.7)
    )
    hinges = [
        spatial.Revolute(name, ("ground", "flap"), (x, 0.0, 0.0), (1.0, 0.0, 0.0))
        for name, x in (("left", -1.0), ("right", 1.0))
    ]
    spring = jm.forces.SpringDamper(
        "spring",
        ("ground", "flap"),
        points=jnp.stack([jnp.array([0.2, 1.0, -0.3]), jnp.stack([0 * arm, 0 * arm, -arm])]),
        stiffness=stiffness,
        damping=damping,
        length=0.9,
    )
    down = jnp.stack([0 * gravity, 0 * gravity, -gravity])
    return jm.MultibodySystem([body], hinges, forces=[spring], gravity=down)


def flat_flap(numbers):
    """The same in the plane, on two pins in one place (two redundant rows)."""
    mass, inertia, arm, stiffness, damping, gravity = numbers
    body = jm.planar.Body("flap", mass=mass, inertia=inertia, position=(0, -0.7))
    pins = [jm.planar.Revolute(name, ("ground", "flap"), (0.0, 0.0)) for name in ("left", "right")]
    spring = jm.forces.SpringDamper(
        "spring",
        ("ground", "flap"),
        points=jnp.stack([jnp.array([1.0, -0.3]), jnp.stack([0 * arm, -arm])]),
        stiffness=stiffness,
        damping=damping,
        length=0.9,
    )
    down = jnp.stack([0 * gravity, -gravity])
    return jm.MultibodySystem([body], pins, forces=[spring], gravity=down)


FLAP = jnp.array([3.0, 0.4, 0.8, 60.0, 4.0, 9.81])


def small_motions(flap, numbers):
    """Where it hangs and how it swings; it is redundant, and at rest."""
    system = flap(numbers)
    rest = jm.equilibrium(system, system.reference_q)
    found = jm.linearise(system, rest.q)
    modes = found.modes.ravel()
    return jnp.concatenate(
        [
            rest.q,
            jnp.real(found.eigenvalues),
            jnp.imag(found.eigenvalues),
            jnp.real(modes),
            jnp.imag(modes),
            found.stiffness.ravel(),
            found.damping.ravel(),
        ]
    )


class TestSmallMotions:
    @pytest.mark.thorough
    @pytest.mark.parametrize("flap", [flap, flat_flap])
    def test_by_the_numbers_of_the_system_through_its_equilibrium(self, flap):
        rng = np.random.default_rng(0)
        value, push = jax.linearize(functools.partial(small_motions, flap), FLAP)
        directions = jnp.diag(FLAP)
        weight = jnp.asarray(rng.normal(size=value.shape))

        @jax.jit
        def both(directions, weight):
            return jax.lax.map(push, directions), jax.linear_transpose(push, FLAP)(weight)[0]

        pushed, pulled = both(directions, weight)
        differences = []
        for direction in directions:
            ends = [small_motions(flap, FLAP + n * 1e-3 * direction) for n in NODES]
            differences.append(np.asarray(difference(ends, 1e-3)))
        assert_slopes(np.asarray(pushed), np.array(differences), 1e-3)
        for own, direction in zip(pushed, directions, strict=True):
            assert dot_product_gap(own, pulled, direction, weight) < 1e-10
        # It is damped.
        real = value[flap(FLAP).structure.nq :][:2]
        assert jnp.max(jnp.abs(real)) > 0.1

    @pytest.mark.thorough
    def test_a_pendulum_by_gravity_alone(self):
        """Which neither the constraints nor the masses depend on. It hangs on two pins in one
        place."""

        def frequency(g):
            gravity = jnp.stack([0 * g, -g])
            bob = jm.planar.Body("bob", mass=2.0, inertia=0.3, position=(0.0, -0.5))
            pins = [jm.planar.Revolute(name, ("ground", "bob"), (0.0, 0.0)) for name in "AB"]
            system = jm.MultibodySystem([bob], pins, gravity=gravity)
            return jnp.imag(jm.linearise(system, system.reference_q).eigenvalues[1])

        value, push = jax.linearize(frequency, jnp.asarray(9.81))
        one = jnp.ones(())
        pushed, pulled = jax.jit(lambda: (push(one), *jax.linear_transpose(push, one)(one)))()
        expected = np.sqrt(2.0 * 9.81 * 0.5 / 0.8)
        slope = expected / (2 * 9.81)
        np.testing.assert_allclose([value, pushed, pulled], [expected, slope, slope], rtol=1e-9)

    def test_once_and_outside_of_jit(self):
        system = flap(FLAP)
        with pytest.raises(ValueError, match="outside of jit and vmap"):
            jax.jit(lambda x: jm.linearise(flap(x), system.reference_q).eigenvalues)(FLAP)

    @pytest.mark.parametrize("own", [np.diag([2.0, 2.0]), np.array([[0.0, 1.0], [0.0, 0.0]])])
    def test_equal_eigenvalues_have_the_derivative_of_their_mean(self, own):
        """Where they stay together, and where a change parts them."""
        rng = np.random.default_rng(1)
        size = 5
        basis, turn = np.eye(size) + 0.3 * rng.normal(size=(2, size, size))
        changed = rng.normal(size=(size, size))
        mass = np.diag([1.0, 2.0, 3.0, 4.0])
        position = rng.normal(size=(4, 3))
        moved = [rng.normal(size=x.shape) for x in (position, mass)]
        inner = np.zeros((size, size))
        inner[:2, :2], inner[2:, 2:] = own, [[-1.0, 3.0, 0.0], [-3.0, -1.0, 0.0], [0.0, 0.0, 5.0]]

        def at(s):
            frame = basis @ (np.eye(size) + s * turn)
            state = frame @ (inner + s * changed) @ np.linalg.inv(frame)
            return position + s * moved[0], state, mass + s * (moved[1] + moved[1].T)

        def apart(values):
            return np.abs(values - own[0, 0]) > 0.5

        def answer(s):
            there, state, heavy = at(s)
            values, shapes = sorted_eigenvalues(state, np.ones(3))
            other = apart(values)
            modes = normalised(there @ shapes[:3], heavy)[:, other]
            return np.concatenate([[np.mean(values[~other])], values[other], modes.ravel()])

        ends = zip(*(at(n * 1e-4) for n in NODES), strict=True)
        change = [jnp.asarray(difference(x, 1e-4)) for x in ends]
        here = SmallMotions(*map(jnp.asarray, at(0.0)))
        slopes, modes = map(np.asarray, changes_of_modes(here, SmallMotions(*change), np.ones(3)))
        other = apart(sorted_eigenvalues(at(0.0)[1], np.ones(3))[0])
        assert np.sum(other) == 3
        assert np.isfinite(modes).all()
        np.testing.assert_array_equal(slopes[~other][0], slopes[~other][1])
        found = np.concatenate([slopes[~other][:1], slopes[other], modes[:, other].ravel()])
        expected = difference([answer(n * 1e-4) for n in NODES], 1e-4)
        np.testing.assert_allclose(found, expected, atol=1e-6 * np.max(np.abs(expected)))


class Motion(eqx.Module):
    """Everything that kinematics and inverse dynamics say."""

    study: Study

    def __call__(self, x):
        found = self.study.respond(x)
        parts = (found.q, found.v, found.acceleration, found.multipliers)
        return jnp.concatenate([part.ravel() for part in parts])


@pytest.mark.thorough
def test_kinematics_and_the_forces_behind_it():
    crank = jm.mechanisms.get("slider-crank")
    model = jm.Model(
        "driven",
        2,
        bodies=crank.bodies,
        joints=crank.joints,
        drivers=[jm.Driver("motor", "A", "rotation", jm.motions.Linear(rate=6.0))],
        gravity=(0.0, -9.81),
    )
    names = ("joints.B.at.x", "joints.C.at.x", "bodies.rod.mass", "bodies.crank.inertia")
    names += ("drivers.motor.motion.rate", "gravity.y")
    study = Study(model, names, run=design.Driven([0.0, 0.1, 0.3]))
    design.guard(study).require("joints.B.at.x")
    sizes = np.maximum(np.abs(study.design), 0.1)
    check(Motion(study), study.design, np.diag(sizes))


def mean_square(response):
    return jnp.mean(response.multipliers**2)


def assert_curvatures(study, sizes, objective=mean_square):
    """The Hessian times every direction against differences of gradients; it is symmetric."""
    pushed, differences = [], []
    for direction in jnp.asarray(np.diag(sizes)):
        both = functools.partial(slope_and_curvature, study, objective, direction=direction)
        _, own = both(study.design)
        ends = [both(study.design + n * 1e-3 * direction)[0] for n in NODES]
        pushed.append(np.asarray(own) * sizes)
        differences.append(np.asarray(difference(ends, 1e-3)) * sizes)
    largest = np.max(np.abs(pushed))
    assert_slopes(np.array(pushed), np.array(differences), largest)
    assert np.max(np.abs(np.array(pushed) - np.array(pushed).T)) < 1e-9 * largest


def pendulum():
    return jm.Model(
        "pendulum",
        2,
        bodies=[jm.planar.Body("bob", mass=2.0, inertia=0.3, position=(0.4, 0.0))],
        joints=[jm.planar.Revolute("pivot", ("ground", "bob"), (0.0, 0.0))],
        gravity=(0.0, -9.81),
    )


def braced():
    """A beam on three parallel links, of which two would do, and a tail whose pin has what is
    unique."""
    bodies = [
        jm.planar.Body("beam", mass=2.0, inertia=0.3, position=(0.6, 0.5)),
        jm.planar.Body("tail", mass=0.5, inertia=0.02, position=(1.4, 0.4)),
    ]
    links = [
        jm.planar.Distance(f"D{k}", ("ground", "beam"), points=[(x, 0.0), (x + 0.4, 0.5)])
        for k, x in enumerate((0.0, 0.5, 1.0))
    ]
    pin = jm.planar.Revolute("T", ("beam", "tail"), (1.2, 0.5))
    return jm.Model("braced", 2, bodies=bodies, joints=[*links, pin], gravity=(0.0, -9.81))


def on_the_pin(response):
    return jnp.mean(response.multipliers[0, 3:] ** 2)


class TestSecondDerivatives:
    NAMES = ("bodies.bob.mass", "bodies.bob.inertia", "joints.pivot.at.x", "v.2")

    @pytest.mark.thorough
    def test_at_a_state_forward_over_reverse(self):
        study = Study(pendulum(), self.NAMES, v=jnp.array([0.0, 0.4, 1.0]))
        assert_curvatures(study, np.array([2.0, 0.3, 0.1, 1.0]))
        own = design.hessian_vector(study, mean_square, {"v.2": 2.0})
        direction = jnp.asarray(study.direction({"v.2": 2.0}))
        expected = slope_and_curvature(study, mean_square, study.design, direction)[1]
        assert np.array_equal(own, expected)

    @pytest.mark.thorough
    def test_at_a_redundant_state(self):
        names = ("bodies.beam.mass", "bodies.tail.inertia", "joints.T.at.y", "q.0", "v.1", "v.5")
        study = Study(braced(), names, v=jnp.array([0.5, -0.4, 0.0, 0.5, -0.4, 1.0]))
        system = braced().system()
        assert jm.analyze(system, system.reference_q).rank == 4
        assert system.structure.row_names[3:] == ("T.x", "T.y")
        assert_curvatures(study, np.array([2.0, 0.02, 0.1, 0.2, 0.5, 1.0]), on_the_pin)
        own = design.hessian_vector(study, on_the_pin, {"v.5": 1.0})
        direction = jnp.asarray(study.direction({"v.5": 1.0}))
        expected = slope_and_curvature(study, on_the_pin, study.design, direction)[1]
        assert np.array_equal(own, expected)

    @pytest.mark.thorough
    def test_along_a_motion_forward_over_forward(self):
        run = design.Motion(0.3, count=3, rtol=1e-10, atol=1e-12, monitor=False)
        study = Study(pendulum(), self.NAMES, run=run, v=jnp.array([0.0, 0.4, 1.0]))
        assert_curvatures(study, np.array([2.0, 0.3, 0.1, 1.0]))
