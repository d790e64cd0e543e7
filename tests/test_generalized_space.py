"""A gimbal in coordinates of its own, in space, with a rigid body hung on it: the same answers as
with both rings as rigid bodies. And programs, which neither grow with the number of such bodies nor
are made anew for new numbers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives
from test_programs import equations

import jaxmbs as jm
from jaxmbs import generalized, motions, planar, spatial


GRAVITY = (0.6, -0.4, -9.81)
X, Y, Z = np.eye(3)
CENTRES = np.array([[0.0, 0.1, -0.05], [0.2, 0.0, -0.4]])
MASSES = np.array([1.5, 2.5])
INERTIAS = np.array(
    [
        [[0.4, 0.02, 0.0], [0.02, 0.5, -0.03], [0.0, -0.03, 0.6]],
        [[0.2, 0.0, 0.01], [0.0, 0.3, 0.02], [0.01, 0.02, 0.25]],
    ]
)
# Where the load hangs, in the inner ring's axes from the middle of the gimbal.
HUNG = np.array([0.3, -0.1, -0.6])
LOAD_CENTRE = np.array([0.1, 0.2, -0.3])


def about_x(a):
    c, s, one, zero = jnp.cos(a), jnp.sin(a), jnp.ones_like(a), jnp.zeros_like(a)
    return jnp.array([[one, zero, zero], [zero, c, -s], [zero, s, c]])


def about_y(b):
    c, s, one, zero = jnp.cos(b), jnp.sin(b), jnp.ones_like(b), jnp.zeros_like(b)
    return jnp.array([[c, zero, s], [zero, one, zero], [-s, zero, c]])


class Gimbal(eqx.Module):
    """An outer ring that turns about x by q0, in it an inner one about its y by q1."""

    masses: jax.Array
    inertias: jax.Array
    centres: jax.Array

    def rotations(self, q):
        outer = about_x(q[0])
        return outer, outer @ about_y(q[1])

    def places(self, q):
        return [turn @ centre for turn, centre in zip(self.rotations(q), self.centres, strict=True)]

    def mass_matrix(self, q, t):
        c, s = jnp.cos(q[1]), jnp.sin(q[1])
        # Angular velocities along the rings' own axes.
        turns = jnp.array([[[1, 0], [0, 0], [0, 0]], [[c, 0], [0, 1], [s, 0]]])
        moves = jax.jacfwd(lambda q: jnp.stack(self.places(q)))(q)
        parts = [
            m * move.T @ move + turn.T @ inertia @ turn
            for m, inertia, move, turn in zip(self.masses, self.inertias, moves, turns, strict=True)
        ]
        return parts[0] + parts[1]

    def first_moment(self, q):
        first, second = self.places(q)
        return self.masses[0] * first + self.masses[1] * second

    def outer(self, q):
        return generalized.SpatialFrame(self.places(q)[0], self.rotations(q)[0])

    def inner(self, q):
        return generalized.SpatialFrame(self.places(q)[1], self.rotations(q)[1])


RINGS = Gimbal(*map(jnp.asarray, (MASSES, INERTIAS, CENTRES)))


def hangers(kind, holder, place, turn):
    """A spherical joint, or two hinges on one axis: the rows of the second are redundant."""
    if kind == "spherical":
        return [spatial.Spherical("T", (holder, "load"), place)]
    axis = turn @ np.array([0.6, 0.8, 0.0])
    return [
        spatial.Revolute(f"T{k}", (holder, "load"), place + 0.3 * k * axis, axis) for k in range(2)
    ]


def both(kind, angles, rates, spin):
    """Each model with its state: rings as rigid bodies and as one; `spin`: of the load against the
    inner ring (rad/s, world), about the axis of the hinges if these hold it."""
    turns = [np.asarray(turn) for turn in RINGS.rotations(jnp.asarray(angles))]
    omegas = [rates[0] * X, rates[0] * X + rates[1] * turns[0] @ Y]
    place = turns[1] @ HUNG
    axis = turns[1] @ np.array([0.6, 0.8, 0.0])
    omegas.append(omegas[1] + (axis * spin[0] if kind == "hinges" else np.asarray(spin)))
    centres = [turn @ c for turn, c in zip(turns, CENTRES, strict=True)]
    # The load stands along the world's axes.
    centres.append(place + LOAD_CENTRE)
    speeds = [np.cross(w, c) for w, c in zip(omegas[:2], centres, strict=False)]
    speeds.append(np.cross(omegas[1], place) + np.cross(omegas[2], LOAD_CENTRE))
    rings = [
        spatial.Body(
            name, mass=MASSES[k], inertia=INERTIAS[k], position=centres[k], rotation=turns[k]
        )
        for k, name in enumerate(("outer", "inner"))
    ]
    load = spatial.Body("load", mass=0.8, inertia=(0.03, 0.05, 0.04), position=centres[2])
    axes = [
        spatial.Revolute("O", ("ground", "outer"), np.zeros(3), X),
        spatial.Revolute("I", ("outer", "inner"), np.zeros(3), turns[0] @ Y),
    ]
    at_once = motions.Linear(rate=rates[0])
    rigid = jm.MultibodySystem(
        (*rings, load),
        (*axes, *hangers(kind, "inner", place, turns[1])),
        (jm.Driver("drive", "O", "rotation", at_once),),
        gravity=GRAVITY,
    )
    own_axes = [turn.T @ w for turn, w in zip([*turns, np.eye(3)], omegas, strict=True)]
    v = jnp.asarray(np.concatenate([np.append(*x) for x in zip(speeds, own_axes, strict=True)]))
    gimbal = generalized.Body(
        "gimbal",
        ("roll", "pitch"),
        mass_matrix=RINGS.mass_matrix,
        first_moment=RINGS.first_moment,
        frames={"outer": RINGS.outer, "inner": RINGS.inner},
        start=angles,
    )
    whole = jm.MultibodySystem(
        (gimbal, load),
        hangers(kind, "gimbal.inner", place, turns[1]),
        (jm.Driver("drive", "gimbal", "roll", motions.Linear(rate=rates[0], offset=angles[0])),),
        gravity=GRAVITY,
    )
    u = jnp.concatenate([jnp.asarray(rates), v[12:]])
    return (rigid, rigid.reference_q, v), (whole, whole.reference_q, u)


@eqx.filter_jit
def solved(system, q, v):
    return jm.runs.solve_with_friction(system, q, v, 0.0, formulation=jm.formulations.MinimumNorm())


@eqx.filter_jit
def reactions(system, q, v, multipliers):
    return jm.reactions(system, q, v, 0.0, multipliers)


@pytest.mark.parametrize("kind", representatives(["spherical", "hinges"], "hinges"))
@pytest.mark.thorough
def test_a_gimbal(kind):
    """Accelerations, reactions and verdicts, at a state in motion."""
    (rigid, q, v), (whole, p, u) = both(kind, (0.4, -0.7), (1.3, -0.8), (0.9, -0.5, 1.1))
    assert np.max(np.abs(rigid.velocity_residual(q, v, 0.0))) < 1e-12
    assert np.max(np.abs(whole.velocity_residual(p, u, 0.0))) < 1e-12
    expected, found = solved(rigid, q, v), solved(whole, p, u)
    turning = np.asarray(expected.acceleration)[[3, 10]]
    np.testing.assert_allclose(found.acceleration[:2], turning, atol=1e-9)
    np.testing.assert_allclose(found.acceleration[2:], expected.acceleration[12:], atol=1e-9)

    # The joints of both rings stand first. Of hinges on one axis the multipliers are not unique:
    # what they make of forces is compared at the same ones.
    multipliers = expected.multipliers[10:]
    given = reactions(rigid, q, v, expected.multipliers)
    report = reactions(whole, p, u, multipliers)
    np.testing.assert_allclose(found.multipliers[-1], multipliers[-1], atol=1e-9)
    if kind == "spherical":
        np.testing.assert_allclose(found.multipliers, multipliers, atol=1e-9)
    np.testing.assert_allclose(report.driving("drive"), given.driving("drive"), atol=1e-9)
    old, new = jm.analyze(rigid, q, v, 0.0), jm.analyze(whole, p, u, 0.0)
    assert int(new.redundancy) == int(old.redundancy) == (0 if kind == "spherical" else 5)
    names = ("T",) if kind == "spherical" else ("T0", "T1")
    for name in names:
        for mine, theirs in (("load", "load"), ("gimbal.inner", "inner")):
            a, b = given.on(theirs).wrench(name), report.on(mine).wrench(name)
            assert np.array_equal(b.force_unique.unique, a.force_unique.unique)
            assert np.array_equal(b.torque_unique.unique, a.torque_unique.unique)
            np.testing.assert_allclose(b.force, a.force, atol=1e-9)
            np.testing.assert_allclose(b.torque, a.torque, atol=1e-9)
        assert bool(old.unique(name)) == bool(new.unique(name)) == (kind == "spherical")


# ---------------------------------------------------------------------------------------------
# Arms that turn about the origin, each held at its end by a hinge to a rod.
# ---------------------------------------------------------------------------------------------


class Arm(eqx.Module):
    length: jax.Array

    def mass_matrix(self, q, t):
        return jnp.reshape(self.length**2, (1, 1))

    def tip(self, q):
        return generalized.PlanarFrame(
            self.length * jnp.concatenate([jnp.cos(q), jnp.sin(q)]), q[0]
        )


def arms(lengths):
    bodies, joints = [], []
    for k, length in enumerate(lengths):
        law = Arm(jnp.asarray(length))
        bodies.append(
            generalized.Body(
                f"arm {k}", ("angle",), mass_matrix=law.mass_matrix, frames={"tip": law.tip}
            )
        )
        bodies.append(
            planar.Body(f"rod {k}", mass=1.0, inertia=0.1, position=(length, -0.5), velocity=(0, 1))
        )
        ends = (f"arm {k}.tip", f"rod {k}")
        joints.append(planar.Revolute(f"J {k}", ends, (length, 0.0)))
    return jm.MultibodySystem(bodies, joints)


def test_programs_do_not_grow_with_the_number_of_arms():
    def size(count):
        system = arms(np.linspace(1.0, 2.0, count))

        def places(q, v):
            return eqx.filter(system.places(q, v, 0.0), eqx.is_array)

        traced = jax.make_jaxpr(places)(system.reference_q, system.initial_v)
        return sum(1 for _ in equations(traced.jaxpr))

    assert size(3) == size(12)


def test_new_numbers_of_a_body_are_no_new_trace():
    traces = []

    @eqx.filter_jit
    def force(system, q, v):
        traces.append(1)
        return system.mass_matrix(q, 0.0), system.force(q, v, 0.0)

    masses = []
    for length in (1.0, 1.5, 0.7):
        system = arms([length])
        masses.append(force(system, system.reference_q, system.initial_v)[0][0, 0])
    assert len(traces) == 1
    np.testing.assert_allclose(masses, [1.0, 2.25, 0.49])
