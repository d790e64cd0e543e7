"""Assembly by leading the drivers: against an oracle in joint angles, and closed forms.

Each structure of a mechanism costs one compiled program, which goes through all values of its
driver.
"""

from typing import Any

import closed_loops
import equinox as eqx
import helpers
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivative_checks import slopes
from representatives import representatives

import jaxmbs as jm
from jaxmbs import assemble, Driver, mechanisms, motions, MultibodySystem
from jaxmbs._kinematics import _search
from jaxmbs._kinematics._continuation import find
from jaxmbs.results import RESULTS


# Two closings to rounding, in linear systems of condition 1e2 to 1e4.
SAME = 1e-9

A = 0.05


@eqx.filter_jit
def assembled(system, times):
    """All of them from the reference configuration, one after the other: a batch takes several
    times as long to compile."""
    return jax.lax.map(lambda t: assemble(system, system.reference_q, t, throw=False), times)


@eqx.filter_jit
def in_a_batch(system, times):
    """The same side by side."""
    return jax.vmap(lambda t: assemble(system, system.reference_q, t, throw=False))(times)


def turned(angles):
    """Between -pi and pi."""
    return (angles + np.pi) % (2 * np.pi) - np.pi


def assert_on_branch(loop, ends):
    """41 values of the driver, each led from the reference at once: where the oracle goes."""
    values = np.round(np.linspace(ends[0], ends[1], 41), 9)
    track = closed_loops.followed(loop, ends[0], 0.01) | closed_loops.followed(loop, ends[1], 0.01)
    found = assembled(closed_loops.system_of(loop), jnp.asarray(values))
    assert np.all(np.asarray(found.result == RESULTS.successful))
    for q, value in zip(np.asarray(found.q), values, strict=True):
        expected = track[value] - loop.angles
        off = turned(closed_loops.joint_angles(loop, q) - expected)
        np.testing.assert_allclose(off, 0.0, atol=SAME)
    return found


def bennett():
    """The angles, lengths and twists of `mechanisms.bennett`."""
    short = np.arcsin(0.75 * np.sin(np.radians(60.0)))
    half = np.radians(162.46987769779088)
    return closed_loops.Loop(
        np.array([np.radians(70.0), -half, -np.radians(70.0), half]),
        np.array([1.0, 0.75, 1.0, 0.75]),
        np.array([np.radians(60.0), short, np.radians(60.0), short]),
        np.zeros(4),
    )


def planar_loop(seed):
    """A random four-bar linkage in space whose first link turns all the way round."""
    rng = np.random.default_rng(seed)
    crank, others = rng.uniform(0.3, 0.4), rng.uniform(0.8, 1.0, 3)
    # Closed where the crank lies on the frame.
    base = others[2] - crank
    corner = np.arccos((base**2 + others[0] ** 2 - others[1] ** 2) / (2 * base * others[0]))
    points = np.array([[0.0, 0.0], [crank, 0.0], [others[2], 0.0], [others[2], 0.0]])
    points[2] = points[1] + others[0] * np.array([np.cos(corner), np.sin(corner)])
    sides = np.diff(np.vstack([points, points[:1]]), axis=0)
    heading = np.arctan2(sides[:, 1], sides[:, 0])
    angles = turned(np.diff(np.append(0.0, heading)))
    angles[0] = turned(heading[0] - heading[-1])
    lengths = np.linalg.norm(sides, axis=1)
    return closed_loops.Loop(angles, lengths, np.zeros(4), np.zeros(4))


class TestBricard:
    @pytest.mark.thorough
    def test_every_value_that_continuation_reaches(self):
        """From the reference at once: a search alone misses 17 of these."""
        found = assert_on_branch(closed_loops.line_symmetric(227), (-0.5, 1.5))
        led = np.asarray(found.continued)
        assert 10 < led.sum() < 41
        assert not np.asarray(found.rank_changed).any()
        np.testing.assert_array_equal(found.reached, 1.0)

    @pytest.mark.parametrize("seed", representatives([139, 206], 139))
    @pytest.mark.thorough
    def test_another_branch_is_not_taken(self, seed):
        assert_on_branch(closed_loops.line_symmetric(seed), (-0.5, 1.5))

    def test_more_than_half_a_turn(self):
        """The other way round its branch ends after 0.9 rad."""
        loop = closed_loops.threefold(-1.2)
        found = assert_on_branch(loop, (-0.8, 3.2))
        # By symmetry every other joint turns as the first.
        for k, value in enumerate(np.linspace(-0.8, 3.2, 41)):
            turns = closed_loops.joint_angles(loop, np.asarray(found.q[k]))
            np.testing.assert_allclose(turned(turns[::2] - value), 0.0, atol=SAME)
        assert bool(found.continued[-1])


class TestLoops:
    @pytest.mark.thorough
    def test_bennett(self):
        assert_on_branch(bennett(), (-1.0, 1.0))

    @pytest.mark.thorough
    @pytest.mark.parametrize("seed", [1, 2])
    def test_planar(self, seed):
        assert_on_branch(planar_loop(seed), (-2.0, 2.0))


class TestSarrus:
    @pytest.mark.thorough
    def test_height_of_its_platform(self):
        """2 l sin of the legs' angle; at zero they lie flat, at a right angle they are stretched,
        where the way ends."""
        model = mechanisms.sarrus()
        drive = Driver("drive", "A1", "rotation", motions.Linear(rate=1.0))
        system = MultibodySystem(model.bodies, model.joints, [drive])
        start, length = np.arctan2(0.3, 0.5), np.hypot(0.3, 0.5)
        values = np.linspace(0.05, 1.5, 41) - start
        found = assembled(system, jnp.asarray(values))
        assert np.all(np.asarray(found.result == RESULTS.successful))
        heights = np.asarray(found.q)[:, -5] - float(system.reference_q[-5]) + 0.6
        np.testing.assert_allclose(heights, 2 * length * np.sin(values + start), atol=SAME)


class TestParallelogram:
    def test_passing_a_right_angle_changes_the_rank(self):
        """Four bars of 1 m that lie in one line at a right angle, where they could become crossed:
        straight on, the coupler stays horizontal."""
        model = mechanisms.four_bar_chain(1)
        drive = Driver("drive", "G0", "rotation", motions.Linear(rate=-1.0))
        system = MultibodySystem(model.bodies, model.joints, [drive])
        values = np.linspace(-1.4, 2.6, 41)
        found = assembled(system, jnp.asarray(values))
        assert np.all(np.asarray(found.result == RESULTS.successful))
        turns = np.asarray(found.q)[:, 2::3] - np.asarray(system.reference_q)[2::3]
        expected = -values[:, None] * [1.0, 1.0, 0.0]
        np.testing.assert_allclose(turns, expected, atol=SAME)
        changed = np.asarray(found.rank_changed)
        np.testing.assert_array_equal(changed, np.asarray(found.continued) & (values > np.pi / 2))
        assert changed.sum() >= 8


class TestRobot:
    @pytest.mark.thorough
    def test_rack(self):
        """Steered by its rack over nearly the whole of its range; the same angles as in steps."""
        ends = [-2 * A, 2 * A]
        system = mechanisms.mobile_robot(rack=motions.Table(times=ends, values=ends)).system()
        values = np.linspace(-1.45 * A, 1.58 * A, 41)
        found = assembled(system, jnp.asarray(values))
        assert np.all(np.asarray(found.result == RESULTS.successful))
        # Of knuckles and rods against the platform: the trolley is free.
        angles = (np.asarray(found.q)[:, 2::3] - np.asarray(found.q)[:, 2:3])[:, 1:5]
        nearest = int(np.argmin(np.abs(values)))
        step = eqx.filter_jit(lambda q, t: assemble(system, q, t, throw=False).q)
        for way in (range(nearest, 41), range(nearest, -1, -1)):
            q = system.reference_q
            for k in way:
                q = step(q, jnp.asarray(values[k]))
                np.testing.assert_allclose(angles[k], q[5:15:3] - q[2], rtol=0, atol=SAME)


def slider_driven():
    """The slider-crank, its slider displaced by t."""
    model = mechanisms.slider_crank()
    drive = Driver("drive", "D", "translation", motions.Linear(rate=1.0))
    return MultibodySystem(model.bodies, model.joints, [drive])


def crank_driven():
    model = mechanisms.slider_crank()
    drive = Driver("drive", "A", "rotation", motions.Linear(rate=1.0))
    return MultibodySystem(model.bodies, model.joints, [drive])


class TestDeadPoint:
    def test_it_is_refused_where_the_branch_ends(self):
        """Crank and rod in one line: sqrt(0.02) + sqrt(0.05) m from the pivot."""
        system, end = slider_driven(), np.sqrt(0.02) + np.sqrt(0.05) - 0.3
        found = assemble(system, system.reference_q, 0.1, throw=False)
        assert found.result == RESULTS.assembly_branch_ended
        np.testing.assert_allclose(0.1 * float(found.reached), end, rtol=0, atol=1e-6)
        said = rf"did not close.*'drive' at {end:.4f}\d* m of 0\.1, a dead point.* 9 to 8\."
        with pytest.raises(RuntimeError, match=said + r" Still open: 'drive' by 0\.03"):
            assemble(system, system.reference_q, 0.1)

    def test_a_batch_says_which_members_ended(self):
        system = slider_driven()
        found = in_a_batch(system, jnp.asarray([0.03, 0.064, 0.066, -0.1]))
        closed = np.asarray(found.result == RESULTS.successful)
        np.testing.assert_array_equal(closed, [True, True, False, True])
        np.testing.assert_array_equal(found.reached == 1, closed)

    @pytest.mark.thorough
    def test_members_that_have_ended_do_not_work_on(self, monkeypatch):
        """While another one is led to its dead point: Newton's steps by conjugate gradients, which
        are what an iteration costs, are as many as those of each member by itself."""
        given, asked = [], _search.saddle_point

        def saddle_point(*arguments, max_steps, **others):
            jax.debug.callback(lambda count: given.append(int(count)), max_steps)
            return asked(*arguments, max_steps=max_steps, **others)

        monkeypatch.setattr(_search, "saddle_point", saddle_point)
        system = slider_driven()

        @jax.jit
        def ended(times):
            q = system.reference_q
            return jax.vmap(lambda t: find(_search.Problem(system, q, t), 100)[2].ended)(times)

        def steps_of(*times):
            given.clear()
            found = ended(jnp.asarray(times))
            jax.effects_barrier()
            return np.asarray(found).tolist(), sum(count > 0 for count in given)

        alone = [steps_of(t, t) for t in (0.03, 0.1)]
        assert [found[0] for found in alone] == [[False, False], [True, True]]
        assert alone[0][1] > 0
        assert steps_of(0.03, 0.1)[1] == (alone[0][1] + alone[1][1]) / 2


def end(problem):
    return assemble(*problem, throw=False).q


class TestDerivatives:
    @pytest.mark.thorough
    def test_at_a_continued_point(self, rng):
        """By the driver's value and along a length, against differences and the closed form."""
        system, t = crank_driven(), jnp.asarray(2.4)
        # As many as in `TestDirect`, whose program it shares.
        assert np.asarray(assembled(system, jnp.full(4, t)).continued).all()
        problem = (system, system.reference_q, t)
        still = jax.tree.map(jnp.zeros_like, eqx.filter(problem, eqx.is_inexact_array))
        direction = eqx.tree_at(lambda p: p[2], still, jnp.asarray(1.0))
        covector = jnp.asarray(rng.normal(size=system.structure.nq))
        _, pushed, pulled = slopes(end, problem, direction, covector)
        assert helpers.dot_product_gap(pushed, pulled, direction, covector) < 1e-12
        angle = np.pi / 4 + 2.4
        across = np.sqrt(0.02) * np.array([np.cos(angle), np.sin(angle)])
        slope = -across[1] - across[1] * across[0] / np.sqrt(0.05 - across[1] ** 2)
        np.testing.assert_allclose(pushed[6], slope, rtol=0, atol=1e-12)
        near = [(system, system.reference_q, t + h) for h in (-1e-4, 1e-4)]
        ends = [np.asarray(slopes(end, other, direction, covector).value) for other in near]
        np.testing.assert_allclose(pushed, (ends[1] - ends[0]) / 2e-4, rtol=0, atol=1e-7)


class TestDirect:
    def test_what_is_near_is_not_led(self):
        found = assembled(crank_driven(), jnp.asarray([0.01, -0.02, 0.03, 0.0]))
        assert not np.asarray(found.continued).any()
        np.testing.assert_array_equal(found.reached, 1.0)


def closest(system, q, v, t):
    del system, v, t
    return q


class TestSweep:
    @pytest.mark.thorough
    def test_no_case_is_lost(self):
        """600 values up to 3.2 rad, on the branch of the reference configuration."""
        loop = closed_loops.threefold(-1.2)
        model = closed_loops.model_of(loop)
        values = np.linspace(-0.5, 3.2, 600)
        swept = jm.sweep(closest, model, jm.Cases.grid({"drive": values}), width=32)
        assert not swept.failures()
        found = np.array([closed_loops.joint_angles(loop, q) for q in swept.configuration])
        np.testing.assert_allclose(turned(found[:, ::2] - values[:, None]), 0.0, atol=1e-8)
        jumps: Any = np.abs(turned(np.diff(found, axis=0)))
        assert np.max(jumps) < 0.05
