"""Assembly of many cases side by side, as sweeps do it: against an oracle in joint angles, closed
forms, and the search that answers every case."""

import functools

import closed_loops
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs import mechanisms
from jaxmbs._kinematics import (
    begin_closing,
    begin_sliding,
    look_at_start,
    Problem,
    turn_closing,
    turn_sliding,
)
from jaxmbs._sweep import _running
from jaxmbs.results import RESULTS


# Two closings to rounding, in linear systems of condition 1e2 to 1e4.
SAME = 1e-9


def nothing(system, q, v, t):
    """A question that takes no time to compile."""
    return t


@pytest.fixture
def left(monkeypatch):
    """How many cases of each chunk were left to the search that answers all."""
    counts = []
    own = _running.assemble_rest

    def counting(campaign, device, values, found):
        counts.append(int(np.sum(found["open"])))
        own(campaign, device, values, found)

    monkeypatch.setattr(_running, "assemble_rest", counting)
    return counts


def turned(angles):
    """Between -pi and pi."""
    return (angles + np.pi) % (2 * np.pi) - np.pi


def swept(model, name, values, **settings):
    return jm.sweep(nothing, model, jm.Cases({name: values}), width=8, chunk=48, **settings)


def assert_on_branch(loop, ends, left):
    """41 values of the driver, each from the reference at once: where the oracle goes."""
    values = np.round(np.linspace(ends[0], ends[1], 41), 9)
    track = closed_loops.followed(loop, ends[0], 0.01) | closed_loops.followed(loop, ends[1], 0.01)
    found = swept(closed_loops.model_of(loop), "time", values)
    assert np.all(found.result == 0)
    for q, value in zip(found.configuration, values, strict=True):
        off = turned(closed_loops.joint_angles(loop, q) - (track[value] - loop.angles))
        np.testing.assert_allclose(off, 0.0, atol=SAME)
    assert left == [0]


class TestBricard:
    """One program for all of them, which are of one structure."""

    @pytest.mark.parametrize("seed", [227, 139, 206])
    def test_every_case_is_on_its_branch(self, seed, left):
        assert_on_branch(closed_loops.line_symmetric(seed), (-0.5, 1.5), left)

    @pytest.mark.thorough
    def test_more_than_half_a_turn_and_the_end_of_the_branch(self, left):
        """The other way round it ends after 0.9 rad: these cases are left to the other search,
        which says so."""
        loop = closed_loops.threefold(-1.2)
        values = np.concatenate([np.linspace(-0.8, 3.2, 31), np.linspace(-1.4, -1.0, 10)])
        found = swept(closed_loops.model_of(loop), "time", values)
        for q, value in zip(found.configuration[:31], values[:31], strict=True):
            # By symmetry every other joint turns as the first.
            turns = closed_loops.joint_angles(loop, q)
            np.testing.assert_allclose(turned(turns[::2] - value), 0.0, atol=SAME)
        codes = np.asarray(found.result)
        assert np.all(codes[:31] == 0)
        ended = np.asarray(RESULTS.assembly_branch_ended._value)
        np.testing.assert_array_equal(codes[31:], ended)
        assert left == [10]

    def test_a_case_does_not_depend_on_the_others(self):
        """Bit for bit: each place of a batch goes through cases of its own."""
        model = closed_loops.model_of(closed_loops.line_symmetric(227))
        values = np.random.default_rng(0).uniform(-0.5, 1.5, 48)
        every = swept(model, "time", values).configuration
        few = swept(model, "time", values[:24]).configuration
        np.testing.assert_array_equal(every[:24], few)
        # Other cases before and after it, at the same place of their batches.
        others = values.copy()
        others[:16] = -0.4
        others[40:] = 1.4
        moved = swept(model, "time", others).configuration
        np.testing.assert_array_equal(every[16:40], moved[16:40])


def four_bars():
    model = mechanisms.four_bar_chain(1)
    drive = jm.Driver("drive", "G0", "rotation", jm.motions.Linear(rate=-1.0))
    return eqx.tree_at(lambda m: m.drivers, model, (drive,), is_leaf=lambda x: x is None)


@pytest.mark.thorough
def test_crossing_branches_are_passed_straight_on(left):
    """Four bars of 1 m that lie in one line at a right angle, where they could become crossed."""
    model = four_bars()
    values = np.linspace(-1.4, 2.6, 40)
    found = swept(model, "time", values)
    assert np.all(found.result == 0)
    turns = found.configuration[:, 2::3] - np.asarray(model.system().reference_q)[2::3]
    np.testing.assert_allclose(turns, -values[:, None] * [1.0, 1.0, 0.0], atol=SAME)
    assert left == [0]


def test_without_geometric_constraints():
    """There is nothing to close: unit quaternions are all."""
    body = jm.spatial.Body("body", mass=1.0, inertia=(1.0, 1.0, 1.0), position=(0.0, 0.0, 0.0))
    model = jm.Model("free", 3, bodies=[body])
    found = swept(model, "q.0", np.linspace(-1.0, 1.0, 8))
    assert np.all(found.result == 0)
    np.testing.assert_array_equal(found.configuration[:, 0], np.linspace(-1.0, 1.0, 8))


@pytest.mark.thorough
def test_open_joints_of_a_driven_start(left):
    """Its joints are closed first, with the drivers where they are."""
    model = four_bars()
    reference = np.asarray(model.system().reference_q)
    starts = np.repeat(reference[None], 8, axis=0)
    starts[:, 3] += np.linspace(0.01, 0.2, 8)
    cases = jm.Cases({"q": starts, "time": np.full(8, 1.2)})
    found = jm.sweep(nothing, model, cases, width=8)
    assert np.all(found.result == 0)
    expected = [jm.assemble(model.system(), jnp.asarray(q), 1.2).q for q in starts[[0, 7]]]
    np.testing.assert_allclose(found.configuration[[0, 7]], expected, atol=SAME)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "over"),
    [
        ("mobile-robot", {"steering": (-0.06, 0.06), "joints.A.rotation": (-2.5, 2.5)}),
        ("bennett", {"joints.J1.rotation": (-1.5, 1.5)}),
        ("sarrus", {"joints.A1.rotation": (-0.5, 1.0)}),
        ("three-crank-parallelogram", {"time": (0.0, 1.0)}),
    ],
)
def test_as_the_search_that_answers_all(name, over, left):
    model = mechanisms.get(name)
    cases = jm.Cases.uniform(over, 64, seed=3)
    together = jm.sweep(nothing, model, cases)
    assert sum(left) == 0

    class Alone(jm.sweeps.AbstractQuestion):
        """The same, each case by itself."""

        @property
        def second(self):
            return None

        def assembled(self, start):
            found = jm.assemble(start.system, start.q, start.t, throw=False)
            return found.q, found.result

        def __call__(self, case):
            return case.t

    apart = jm.sweep(Alone(), model, cases)
    np.testing.assert_array_equal(together.result, apart.result)
    np.testing.assert_allclose(together.configuration, apart.configuration, atol=SAME)


@functools.cache
def circle():
    """A particle in the plane, 1 m from the origin, in coordinates of its own."""
    return jm.GeneralizedSystem(
        ["x", "y"],
        mass_matrix=np.eye(2),
        constraints={
            "circle": jm.generalized.PositionConstraint(
                lambda q, t: jnp.array([q @ q - 1.0]), ["m2"]
            )
        },
        start=[1.0, 0.0],
        lengths=["x", "y"],
    )


def on_circle(x):
    return Problem(circle(), jnp.array([x, 0.0]), jnp.zeros(()))


@eqx.filter_jit
def nearest_from(problem, q):
    """The end of the turns from a closed configuration."""
    return jax.lax.while_loop(
        lambda lane: ~lane.ended,
        lambda lane: turn_sliding(problem, lane),
        begin_sliding(problem, q),
    )


@eqx.filter_jit
def closed(problem):
    """The end of the turns that close."""
    start = look_at_start(problem)
    return jax.lax.while_loop(
        lambda lane: ~lane.ended,
        lambda lane: turn_closing(problem, start, lane),
        begin_closing(problem, start),
    )


class TestManyDirections:
    """A particle in a space of many dimensions, next to a surface x = h(y): at the answer the
    curvatures are known."""

    @staticmethod
    def ended(curvatures):
        """Weighing of the answer at the origin, from a start at x = 1 above it: there the second
        derivatives of the distance along the surface are 1 - c for h = c y^2 / 2."""
        curvatures = jnp.asarray(curvatures)
        names = ["x", *(f"y{k}" for k in range(len(curvatures)))]

        def surface(q, t):
            return q[0] - 0.5 * jnp.sum(curvatures * q[1:] ** 2)

        system = jm.GeneralizedSystem(
            names,
            mass_matrix=np.eye(len(names)),
            constraints={"surface": jm.generalized.PositionConstraint(surface)},
            lengths=names,
        )
        origin = jnp.zeros(len(names))
        problem = Problem(system, origin.at[0].set(1.0), jnp.zeros(()))
        return nearest_from(problem, origin)

    @pytest.mark.thorough
    def test_slightly_negative_curvature_is_found(self):
        """Whatever part of the motion that is weighed lies along it."""
        for k in range(6):
            curvatures = np.zeros(6)
            curvatures[k] = 1.05
            assert not bool(self.ended(curvatures).sure)

    def test_positive_curvature_is(self):
        assert bool(self.ended([0.0, 0.4, -0.5, 0.3, 0.5, -0.2]).sure)


class TestOnACircle:
    """The nearest point and the farthest one satisfy the same equations."""

    @pytest.mark.parametrize("x", [0.5, 1.0, -1.4])
    def test_the_nearest_point(self, x):
        there = closed(on_circle(x))
        assert bool(there.reached)
        found = nearest_from(on_circle(x), there.answer)
        assert bool(found.sure)
        np.testing.assert_allclose(found.answer, [np.sign(x), 0.0], atol=1e-12)

    def test_the_farthest_point_is_not_sure(self):
        assert not bool(nearest_from(on_circle(0.5), jnp.array([-1.0, 0.0])).sure)

    @pytest.mark.parametrize("x", [0.01, -3.0])
    def test_what_curvature_decides_is_left_to_the_other_search(self, x):
        """Next to the centre all points are as near, and far outside steps along the circle, which
        know nothing of it, are too long: the motion that is weighed does not come back."""
        assert not bool(nearest_from(on_circle(x), closed(on_circle(x)).answer).sure)

    def test_a_start_that_is_not_valid_ends_at_once(self):
        there = closed(on_circle(np.nan))
        assert int(there.turns) == 0
        assert not bool(there.reached)
