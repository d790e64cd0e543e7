"""Reactions of small systems: units, derivatives, compilation, text and refusals."""

import copy
import dataclasses
import functools

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
    TOLERANCE,
    tree_allclose,
)
from reaction_park import mechanism
from representatives import representatives_at

import jaxmbs as jm
from jaxmbs import planar, reactions
from jaxmbs._verdict import Verdict
from jaxmbs.io import model_from_tables
from jaxmbs.results import Reactions


@functools.cache
def door():
    """Two hinges, of which nothing is unique, and random multipliers."""
    system = jm.mechanisms.get("door").system()
    return system, jnp.asarray(np.random.default_rng(0).normal(size=10))


@functools.cache
def truck(size=1.0):
    """Two axles with two knife edges each on one frame, in another unit of length."""
    table = copy.deepcopy(mechanism(2, "truck-with-two-axles"))
    for entry in (*table["body"], *table["joint"]):
        for key in {"position", "at"} & set(entry):
            entry[key] = (size * np.array(entry[key])).tolist()
    system = model_from_tables(table).system()
    multipliers = np.random.default_rng(1).normal(size=len(system.structure.rows))
    return system, jnp.asarray(multipliers)


def at_rest(system, multipliers, **options):
    v = jnp.zeros(system.structure.nv)
    return reactions(system, system.reference_q, v, 0.0, multipliers, **options)


@functools.cache
def of_door():
    return at_rest(*door())


@functools.cache
def of_truck():
    return at_rest(*truck())


@functools.cache
def many():
    """Three states of the truck: as it is, with twice the multipliers, and turned."""
    system, multipliers = truck()
    turn = jnp.asarray(np.where(system.structure.length_columns, 0.0, 0.3))
    q = jnp.stack([system.reference_q, system.reference_q, system.reference_q + turn])
    v, factor = jnp.zeros(q.shape), jnp.asarray([1.0, 2.0, 1.0])

    @eqx.filter_jit
    def mapped(system, q, v, multipliers):
        return jax.vmap(lambda q, v, m: reactions(system, q, v, 0.0, m))(q, v, multipliers)

    return mapped(system, q, v, factor[:, None] * multipliers[None])


VERDICTS = ("force_unique", "torque_unique", "reaction_unique")


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_unit_of_length_does_not_change_a_verdict(size):
    expected, found = of_truck(), at_rest(*truck(size))
    assert not bool(expected.force_unique.all())
    for field in VERDICTS:
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))
    np.testing.assert_allclose(found.point, size * expected.point, rtol=1e-12)


def test_a_batch_is_its_states():
    batch = many()
    assert tree_allclose(batch.state(0), of_truck(), rtol=1e-12, atol=1e-14)
    for name in batch.names:
        w = batch.wrench(name)
        np.testing.assert_allclose(w.force[1], 2 * w.force[0], rtol=1e-13)
        np.testing.assert_allclose(batch.state(2).wrench(name).force, w.force[2], rtol=0)
        np.testing.assert_allclose(
            batch.generalized(name)[1], 2 * of_truck().generalized(name), rtol=1e-13
        )
    assert batch.state(slice(1, 3)).on(batch.layout.bodies[0]).names


@functools.cache
def twins():
    """Two bodies, and two pins in one place between them."""
    bodies = [
        planar.Body("a", mass=1.0, inertia=1.0, position=(0.1, 0.2), angle=0.3),
        planar.Body("b", mass=1.0, inertia=1.0, position=(0.8, -0.3)),
    ]
    joints = [planar.Revolute(x, ("a", "b"), (0.5, 0.1)) for x in ("one", "two")]
    return jm.MultibodySystem(bodies, joints)


@eqx.filter_jit
def numbers(x):
    """Everything of the reactions that is a number, of (system, step, multipliers)."""
    system, step, multipliers = x
    q = system.retract(system.reference_q, step)
    report = reactions(system, q, step, 0.0, multipliers)
    parts = (report.force, report.torque, report.generalized_reactions, report.point)
    return jnp.concatenate([x.ravel() for x in (*parts, report.reaction_measure)])


def test_derivatives_at_constant_rank(rng):
    """Along the retraction, the multipliers and every number of the system; of verdicts none."""
    step, multipliers = (jnp.asarray(0.3 * rng.normal(size=n)) for n in (6, 4))
    x = (twins(), step, multipliers)
    d = random_direction(x, rng)
    value = numbers(x)
    assert jnp.all(value[-2:] > 0.1)
    w = jnp.asarray(rng.normal(size=value.shape))
    pushed, pulled = forward_and_reverse(numbers, x, d, w)
    expected = first_difference(lambda s: numbers(move(x, d, s)))
    scale = float(jnp.max(jnp.abs(expected)))
    np.testing.assert_allclose(pushed[:-2], expected[:-2], atol=TOLERANCE * scale, rtol=0)
    assert jnp.all(pushed[-2:] == 0)
    assert dot_product_gap(pushed, pulled, d, w) < 1e-12


def test_new_numbers_are_no_new_trace(rng):
    traces = []

    @eqx.filter_jit
    def traced(system, q, v, t, multipliers, criterion):
        traces.append(1)
        return reactions(system, q, v, t, multipliers, criterion=criterion)

    for k in range(3):
        system = move(twins(), random_direction(twins(), rng), 0.01)
        q, v, t = system.reference_q, jnp.asarray(rng.normal(size=6)), jnp.asarray(0.1 * k)
        multipliers = jnp.asarray(rng.normal(size=4))
        found = traced(system, q, v, t, multipliers, jm.criteria.QR(tolerance=10.0 ** (-9 - k)))
        np.testing.assert_allclose(found.wrench("two").force, multipliers[2:], rtol=1e-14)
    assert len(traces) == 1


@pytest.mark.thorough
def test_single_precision_is_warned_of():
    with jax.enable_x64(False):
        system = jm.mechanisms.door().system()
        q, v = system.reference_q, system.initial_v
        with pytest.warns(UserWarning, match="single precision"):
            report = eqx.filter_eval_shape(reactions, system, q, v, 0.0, jnp.ones(10))
    assert report.force.shape == (3, 4, 3)


@pytest.mark.parametrize(
    "criterion",
    representatives_at([jm.criteria.SVD(), jm.criteria.RankComparison()], 0),
    ids=lambda c: c.word,
)
def test_other_criteria_agree(criterion):
    found = at_rest(*truck(), criterion=criterion)
    for field in VERDICTS:
        np.testing.assert_array_equal(getattr(found, field), getattr(of_truck(), field))


class TestText:
    def test_one_state(self):
        report, (_, multipliers) = of_door(), door()
        head, _, columns, _, lower, upper = str(report).splitlines()
        assert "world axes" in head
        assert "torque about the joint's point" in head
        assert columns.split()[:3] == ["joint", "type", "on"]
        assert "force (N)" in columns
        assert "torque (N m)" in columns
        found = "NOT UNIQUE (one of many): force x y z, torque x y"
        for name, line in (("lower", lower), ("upper", upper)):
            assert line.startswith(name)
            assert line.endswith(found)
            assert str(report.wrench(name)).endswith(found)
            force = report.wrench(name).force
            assert f"({force[0]:.6g}, {force[1]:.6g}, {force[2]:.6g})" in line
        # Numbers never come without their verdict.
        assert f"{abs(float(multipliers[0])):.3f}" not in repr(report) + repr(
            report.wrench("upper")
        )
        assert str(report.on("ground")).startswith("Reactions on ground, world axes")
        assert "marker axes" in str(report.in_marker_axes())

    def test_partly_unique(self):
        report = of_truck()
        lines = str(report).splitlines()[4:]
        assert len(lines) == len(report.names)
        partly = []
        for line, name in zip(lines, report.names, strict=True):
            w = report.wrench(name)
            many = [x for x, flag in zip("xy", w.force_unique, strict=True) if not flag]
            wanted = f"NOT UNIQUE (one of many): force {' '.join(many)}" if many else "unique"
            assert line.endswith(f"  {wanted}")
            partly += many
        assert 0 < len(partly) < 2 * len(lines)

    def test_many_states(self):
        report = many()
        lines = str(report).splitlines()
        assert "largest magnitudes over 3 states" in lines[0]
        for line, name in zip(lines[4:], report.names, strict=True):
            w = report.wrench(name)
            good = [bool(x) for x in w.determined]
            count = good.count(False)
            wanted = {0: "  unique", 3: "  NOT UNIQUE (one of many)"}
            assert line.endswith(wanted.get(count, f"  NOT UNIQUE in {count} of 3 states"))
            largest = np.max(np.linalg.norm(w.force, axis=1))
            assert f"{largest:.6g}" in line
            assert str(w).endswith(wanted.get(count, f"NOT UNIQUE in {count} of 3 states").strip())
        some = report.reaction_unique.unique.at[1].set(False).at[0].set(True)
        changed = dataclasses.replace(
            report,
            reaction_unique=Verdict.where(True, some),
            force_unique=Verdict.where(True, jnp.ones(report.force_unique.shape, bool)),
        )
        assert "NOT UNIQUE in " in str(changed)

    def test_unique_on_this_body_alone(self):
        """A row on several bodies may be determined on one of them."""
        every = Verdict.where(True, jnp.ones((3, 4, 3), bool))
        report = dataclasses.replace(of_door(), force_unique=every, torque_unique=every)
        assert str(report.wrench("upper")).endswith("unique on this body; as a whole NOT UNIQUE")

    def test_doubt(self):
        assert "Doubtful" not in str(of_door())
        doubtful = eqx.tree_at(lambda r: r.doubtful, of_door(), jnp.asarray(True))
        assert str(doubtful).splitlines()[-1].startswith("Doubtful")


# ---------------------------------------------------------------------------------------------
# Other bodies, other systems, refusals
# ---------------------------------------------------------------------------------------------


class Spread(eqx.Module):
    """The sum of the distances of two points of one body from a point of another."""

    def __call__(self, frames, t):
        first, second, third = (frame.origin for frame in frames)
        return jnp.linalg.norm(first - third) + jnp.linalg.norm(second - third) - 1.0 - t


def test_particles_and_bodies_that_are_seen_twice(rng):
    """A particle feels no torque; two markers on one body make one wrench on it."""
    points = rng.normal(size=(5, 2))
    bodies = [
        planar.Particle("p", mass=0.5, position=points[0]),
        planar.Body("a", mass=1.0, inertia=1.0, position=points[1]),
        planar.Body("b", mass=2.0, inertia=1.0, position=points[2]),
    ]
    markers = [("a", points[3]), ("a", points[4]), ("b", points[0])]
    joints = [
        planar.Fixed("weld", ("p", "a"), points[0]),
        planar.Geometric("spread", Spread(), markers),
    ]
    system = jm.MultibodySystem(bodies, joints)
    q = system.reference_q + jnp.asarray(rng.normal(size=8))
    v, multipliers = jnp.zeros(8), jnp.asarray(rng.normal(size=4))
    report = reactions(system, q, v, 0.0, multipliers)
    particle = report.on("p").wrench("weld")
    np.testing.assert_allclose(particle.force, -multipliers[:2], atol=1e-14)
    assert float(particle.torque) == 0.0
    np.testing.assert_array_equal(
        report.on("p").in_body_axes().wrench("weld").force, particle.force
    )
    assert float(report.on("a").wrench("weld").torque) == pytest.approx(float(multipliers[2]))
    assert report.on("a").names == ("weld", "spread")
    assert report.wrench("spread").body == "a"
    w, row = report.wrench("spread"), np.asarray(system.constraint_matrix(q, v, 0.0))[3]
    expected = -row[2:5] * float(multipliers[3])
    np.testing.assert_allclose(w.force, expected[:2], atol=1e-13)
    arm = w.point - q[2:4]
    turning = w.torque + arm[0] * w.force[1] - arm[1] * w.force[0]
    assert float(turning) == pytest.approx(expected[2], abs=1e-13)
    c, s = np.cos(q[4]), np.sin(q[4])
    first = q[2:4] + np.array([[c, -s], [s, c]]) @ (points[3] - points[1])
    np.testing.assert_allclose(w.point, first, atol=1e-13)


def test_generalized_coordinates():
    """Two strings of a pendulum, one of them twice: reactions without points."""

    def rod(q, t):
        return q @ q - 1.0

    system = jm.GeneralizedSystem(
        ["x", "y"],
        mass_matrix=lambda q: jnp.eye(2),
        force=lambda q, v, t: jnp.stack([0.0 * t, -9.81]),
        constraints={
            "rod": jm.generalized.PositionConstraint(rod),
            "again": jm.generalized.PositionConstraint(lambda q, t: 2 * rod(q, t)),
            "guide": jm.generalized.PositionConstraint(lambda q, t: q[1] + 0.8),
        },
        lengths=["x", "y"],
    )
    q, v = jnp.asarray([0.6, -0.8]), jnp.zeros(2)
    report = reactions(system, q, v, 0.0, jnp.asarray([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(report.generalized("rod"), [1.2, -1.6], atol=1e-14)
    np.testing.assert_allclose(report.generalized("again"), [4.8, -6.4], atol=1e-14)
    np.testing.assert_allclose(report.generalized("guide"), [0.0, 3.0], atol=1e-14)
    assert [bool(report.unique(n)) for n in report.names] == [False, False, True]
    lines = [line for line in str(report).splitlines() if line.startswith(("rod", "again"))]
    assert len(lines) == 2
    assert all(line.endswith("NOT UNIQUE (one of many)") for line in lines)
    assert str(report).splitlines()[-1].endswith("  unique")
    many = jax.tree.map(lambda x: jnp.stack([x, x]), report)
    assert str(many).count("NOT UNIQUE (one of many)") == 2
    for ask in (
        lambda: report.wrench("rod"),
        lambda: report.on("rod"),
        report.in_body_axes,
        report.in_marker_axes,
    ):
        with pytest.raises(ValueError, match=r"generalized\(name\)"):
            ask()
    with pytest.raises(ValueError, match="the drivers are none"):
        report.driving("rod")


def test_system_without_constraints():
    bodies = [planar.Body("a", mass=1.0, inertia=1.0, position=(0.0, 0.0))]
    system = jm.MultibodySystem(bodies)
    report = reactions(system, system.reference_q, jnp.zeros(3), 0.0, jnp.zeros(0))
    assert isinstance(report, Reactions)
    assert report.names == ()
    assert len(str(report).splitlines()) == 4
    with pytest.raises(ValueError, match="no joint acts on a body 'a'"):
        report.on("a")


def test_refusals():
    report = of_door()
    with pytest.raises(ValueError, match="no joint or driver 'hinge'"):
        report.wrench("hinge")
    with pytest.raises(ValueError, match="no joint acts on a body 'gate'; there are ground, door"):
        report.on("gate")
    other = of_truck()
    body = next(b for b in other.layout.bodies if b not in other.on(other.layout.bodies[0]).names)
    absent = next(n for n in other.names if n not in other.on(body).names)
    with pytest.raises(ValueError, match=f"'{absent}' does not act on '{body}'; it acts on "):
        other.on(body).wrench(absent)
    with pytest.raises(ValueError, match="'upper' is no driver; the drivers are none"):
        report.driving("upper")
    system, multipliers = door()
    with pytest.raises(ValueError, match=r"array of shape \[10\].*got shape \[9\]"):
        at_rest(system, multipliers[:9])
