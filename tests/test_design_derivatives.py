"""Gradients of studies of both papers' mechanisms, forward and reverse, against differences."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import helpers
import jax.numpy as jnp
import numpy as np
import pytest
from derivative_checks import check
from jax import lax
from representatives import representatives, representatives_at

import jaxmbs as jm
from jaxmbs import design, planar
from jaxmbs._dynamics._monitor import rank_increases_off_manifold
from jaxmbs._dynamics._projection import project, project_unchecked, project_velocity
from jaxmbs._linalg import motion_solver
from jaxmbs.design import Study


# The rack aside, where the rank is 20 as it is in the middle.
RACK = 0.025


def robot(rack=RACK):
    model = jm.mechanisms.mobile_robot(jm.motions.Polynomial(coefficients=[rack, 0.02]))
    load = jm.forces.Applied("push", "trolley", force=(3.0, 2.0), torque=0.4)
    return jm.Model(
        model.name,
        2,
        bodies=model.bodies,
        joints=model.joints,
        drivers=model.drivers,
        forces=[load],
    )


def parallelogram():
    return jm.mechanisms.parallelogram(0.3)


class Case(NamedTuple):
    """A mechanism, rows whose multipliers are unique, parameters that keep rank and closure by
    themselves, and some that do so together, along a straight line (see `design.guard`)."""

    make: Callable[[], jm.Model]
    rows: tuple[str, ...]
    alone: tuple[str, ...]
    together: dict[str, float]


CASES = {
    "robot": Case(
        robot,
        ("A.x", "A.y", "D.x", "D.y", "F.x", "G.y", "H.n", "H.r", "W5", "steering"),
        (
            "bodies.trolley.mass",
            "bodies.platform.inertia",
            "bodies.trolley.position.x",
            "forces.push.force.y",
            "joints.A.at.x",
            "joints.W5.at.x",
            "joints.W5.direction.y",
            "joints.W3.at.y",
            "drivers.steering.motion.coefficients.1",
            "q.0",
            "v.1",
        ),
        {"joints.W3.at.x": 1.0, "joints.W3.direction.y": -1.5296720728},
    ),
    "parallelogram": Case(
        parallelogram,
        tuple(f"{joint}.{axis}" for joint in "KLMN" for axis in "xyz"),
        (
            "bodies.platform.mass",
            "bodies.platform.inertia.xy",
            "bodies.link KL.mass",
            "forces.load.force.1",
            "gravity.z",
            "q.42",
            "v.37",
        ),
        {"joints.A.at.x": 1.0, "joints.B.at.x": 1.0},
    ),
}


def places(model, rows):
    names = model.system().structure.row_names
    return np.array([names.index(row) for row in rows])


class Answer(eqx.Module):
    """What has a derivative at a state: q, v, dv/dt and the multipliers that are unique."""

    study: Study
    rows: np.ndarray

    def __call__(self, x):
        return self.of(self.study.respond(x))

    def of(self, found):
        loads = found.multipliers[0, self.rows]
        return jnp.concatenate([found.q[0], found.v[0], found.acceleration[0], loads])


def functionals(found):
    """What is unique of the robot's reactions that are not, with the rack in the middle: the
    resultant of B and W1 on the front knuckle, W1 - W2, and the sum of all wheels across."""
    structure = found.system.structure
    state = found.q[0], found.v[0], found.times[0]
    at = structure.row_names.index
    one, two, three, four = (found.multipliers[0, at(f"W{k}")] for k in (1, 2, 3, 4))
    steered = jnp.cos(found.q[0, KNUCKLE + 2] - found.q[0, 2])
    rows = np.array([at("B.x"), at("B.y"), at("W1")])
    columns = slice(KNUCKLE, KNUCKLE + 3)
    matrix = found.system.constraint_matrix(*state)[rows][:, columns]
    resultant = matrix.T @ found.multipliers[0, rows]
    return jnp.append(resultant, jnp.stack([one - two, (one + two) * steered + three + four]))


FUNCTIONALS = slice(-5, None)


class Robot(Answer):
    """And the functionals: one program for both places of the rack, of which each test looks at
    what is unique there."""

    def of(self, found):
        return jnp.append(super().of(found), functionals(found))


# First coordinate of the front knuckle.
KNUCKLE = 3

# What keeps the wheels opposite of each other, without which W1 - W2 is not unique.
LONGER = {
    f"joints.{name}.at.x": s for name, s in (("B", 1.0), ("W1", 1.0), ("C", -1.0), ("W2", -1.0))
}


def robot_study(rack, alone):
    return Study(robot(rack), (*alone, *CASES["robot"].together, *LONGER))


# (Where masses are traced, programs are ready for parts that are light beside others, and larger.)
KNOWN_MASSES = tuple(
    name for name in CASES["robot"].alone if not name.endswith(("mass", "inertia"))
)


def directions_of(study, alone, together):
    """Parameters by themselves, and some together."""
    sizes = np.where(np.abs(study.design) > 0.1, np.abs(study.design), 0.1)
    last = 0.1 * study.direction(together)
    return np.concatenate([np.diag(sizes)[: len(alone)], last[None]])


CHOSEN = [("robot", KNOWN_MASSES), *((name, case.alone) for name, case in CASES.items())]


@pytest.mark.parametrize(("name", "alone"), representatives_at(CHOSEN, 0))
def test_reactions_at_a_state(name, alone):
    """Assembled and projected anew at every point, from an open start in motion."""
    case = CASES[name]
    if name == "robot":
        study, kind, part = robot_study(RACK, alone), Robot, slice(0, FUNCTIONALS.start)
    else:
        study, kind = Study(case.make(), (*alone, *case.together)), Answer
        part = slice(None)
    directions = directions_of(study, alone, case.together)
    check(kind(study, places(case.make(), case.rows)), study.design, directions, part=part)


def test_unique_functionals_of_reactions_that_are_not():
    case = CASES["robot"]
    study = robot_study(0.0, KNOWN_MASSES)
    directions = directions_of(study, KNOWN_MASSES, LONGER)
    function = Robot(study, places(case.make(), case.rows))
    slopes = check(function, study.design, directions, part=FUNCTIONALS)
    # No functional is constant.
    assert np.all(np.max(np.abs(slopes), axis=0) > 0)


@pytest.mark.thorough
def test_the_guard_of_what_is_not_unique():
    """It keeps these directions, and the wheels alone are not unique at all."""
    study = robot_study(0.0, CASES["robot"].alone)
    found = design.guard(study)
    assert all(found.keeps(name) for name in (*CASES["robot"].alone, LONGER))
    for word in ("W1", "W3", "W1 + W2"):
        with pytest.raises(design.DesignError, match="not unique"):
            design.require_gradient(study, design.Final(design.Combination(word)))


class Allowed(eqx.Module):
    """Velocities next to the given ones, where the constraints are met anyway."""

    system: jm.MultibodySystem
    q: jnp.ndarray

    def __call__(self, v):
        return project_velocity(self.system, self.q, v, 0.3).v


def pursuit():
    function = helpers.Pursuit(jnp.asarray(0.7))
    markers = [("a", (0.0, 0.0)), ("b", (1.0, 0.5))]
    joint = planar.Velocity("V", function, markers, rows=("speed", "approach"))
    bodies = [
        planar.Body(name, mass=2.0, inertia=0.3, position=place)
        for name, place in (("a", (0.0, 0.0)), ("b", (1.0, 0.5)))
    ]
    return jm.Model("pursuit", 2, bodies=bodies, joints=[joint])


def cart():
    """Two wheels on one axle, which are redundant, and a trailer with one."""
    bodies = [
        planar.Body(name, mass=mass, inertia=0.3, position=(x, 0.0), velocity=(0.8, 0.0))
        for name, mass, x in (("cart", 3.0, 0.1), ("trailer", 1.5, -1.0))
    ]
    wheels = (("left", "cart", (0.0, 0.3)), ("right", "cart", (0.0, -0.3)))
    edges = [
        planar.KnifeEdge(name, (body,), at, (1.0, 0.0))
        for name, body, at in (*wheels, ("back", "trailer", (-1.1, 0.0)))
    ]
    joints = [*edges, planar.Revolute("hitch", ("cart", "trailer"), (-0.4, 0.0))]
    push = jm.forces.Applied("push", "cart", force=(1.0, 2.0), torque=0.4)
    return jm.Model("cart", 2, bodies=bodies, joints=joints, forces=[push])


@pytest.mark.parametrize("make", representatives([parallelogram, cart, pursuit], cart, pursuit))
def test_velocities_from_afar_where_the_mechanism_is_closed(make, rng):
    """Redundant rows, and rows that are not linear in the velocities."""
    system = make().system()
    far = jnp.asarray(1.0 + rng.uniform(size=system.structure.nv))
    q = jm.consistent_state(system, system.reference_q, far, 0.3).q
    found = eqx.filter_jit(project_velocity)(system, q, far, 0.3)
    assert bool(found.met)
    both = jm.consistent_state(system, q, far, 0.3)
    np.testing.assert_allclose(found.v, both.v, rtol=0, atol=1e-9)
    if make is not pursuit:
        # (The way to rows that are not linear is found by steps, of which the last counts.)
        check(Allowed(system, q), far, rng.normal(size=(3, system.structure.nv)))


class History(eqx.Module):
    """Where a motion of one second ends, and mean squares of multipliers that are unique.

    The slopes and projections of `simulate` in classical Runge-Kutta steps of one length: to choose
    a step has no derivative, and the loops of Diffrax take minutes to compile for these mechanisms
    in both modes. (`benchmarks/design.py` goes through them.)
    """

    study: Study
    rows: np.ndarray
    closing: bool = eqx.field(static=True)

    def __call__(self, x):
        system, _, q, v, _ = self.study.place_parts(x)
        formulation = jm.formulations.MinimumNorm().motion_only(system)
        start = project(system, q, v, 0.0, motion_solver())

        def slope(t, q, v):
            # Rows that become independent off the constraints are taken on them.
            q, v = project_unchecked(system, q, v, t) if self.closing else (q, v)
            found = formulation.solve(system.equations(q, v, t))
            return system.rate(q, v), found.acceleration

        def step(state, t):
            q, v = state

            def stage(last, tableau):
                (change, rate), (q_sum, v_sum) = last
                part, weight = tableau
                there = slope(t + part * STEP, q + part * STEP * change, v + part * STEP * rate)
                return (there, (q_sum + weight * there[0], v_sum + weight * there[1])), None

            nothing = (jnp.zeros_like(q), jnp.zeros_like(v))
            (_, (q_sum, v_sum)), _ = lax.scan(stage, (nothing, nothing), TABLEAU)
            end = project(system, q + STEP * q_sum, v + STEP * v_sum, t + STEP)
            loads = jm.formulations.MinimumNorm().solve(system.equations(end.q, end.v, t + STEP))
            return (end.q, end.v), loads.multipliers[self.rows]

        times = STEP * np.arange(round(1 / STEP))
        (q, _), loads = lax.scan(step, (start.q, start.v), times)
        return jnp.concatenate([q, jnp.mean(loads**2, axis=0)])


# Whatever it is, the motion is a smooth function of the numbers.
STEP = 1 / 128
TABLEAU = (np.array([0.0, 0.5, 0.5, 1.0]), np.array([1.0, 2.0, 2.0, 1.0]) / 6)


# Rows whose multipliers are unique, and parameters for whose every number the mechanism is closed
# at the start: nothing is assembled.
MOTIONS = {
    "cart": (
        cart(),
        ("back", "hitch.x", "hitch.y"),
        # (Masses are in the others: light parts as data take three times as long to compile.)
        ("forces.push.force.y", "joints.back.at.x", "forces.push.torque", "v.0"),
    ),
    "robot": (
        robot(rack=0.0),
        CASES["robot"].rows,
        ("bodies.trolley.mass", "joints.A.at.x", "joints.W5.at.x", "v.0"),
    ),
    "parallelogram": (
        parallelogram(),
        CASES["parallelogram"].rows,
        ("bodies.platform.mass", "forces.load.force.1", "gravity.z", "v.36"),
    ),
}


@pytest.mark.parametrize("name", representatives(MOTIONS, "cart"))
@pytest.mark.thorough
def test_motions_of_one_second(name):
    model, rows, parameters = MOTIONS[name]
    study = Study(model, parameters)
    sizes = np.maximum(np.abs(study.design), 0.1)
    system = model.system()
    closing = bool(rank_increases_off_manifold(system, system.reference_q, 0.0))
    check(History(study, places(model, rows), closing), study.design, np.diag(sizes))
