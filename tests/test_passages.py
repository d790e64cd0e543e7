"""Singular configurations on the way of a motion are told whatever the times and steps are, with
what is not determined there; motions that come near are not; and a configuration whose neighbours
are itself is not called permanent."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives, representatives_at

import jaxmbs as jm
from jaxmbs import planar, spatial
from jaxmbs._dynamics import _passages
from jaxmbs._dynamics._passages import Passages
from jaxmbs.cli import _kinematics
from jaxmbs.cli._output import show
from jaxmbs.io import load_trajectory, save_trajectory


def crank_at(lengths, angle, rate, *, driven=True, units=1, motion=None, ratio=None):
    """Slider-cranks (as many `units` as wanted, one crank pushing each) of a crank and a rod of
    these lengths. Equal ones have a second way at a right angle, where the slider is at the
    crank's pin: x = 2 l cos(angle), or 0."""
    bodies, joints = [], []
    for k in range(units):
        crank, rod = lengths
        a, b = np.zeros(2), crank * np.array([np.cos(angle), np.sin(angle)])
        c = np.array([b[0] + np.sqrt(max(rod**2 - b[1] ** 2, 0.0)), 0.0])
        at_b = rate * np.array([-b[1], b[0]])
        turning = -at_b[1] / (c - b)[0] if rate else 0.0
        at_c = np.array([at_b[0] + turning * b[1], 0.0])
        moving = (
            (a, b, 0 * at_b, at_b, rate),
            (b, c, at_b, at_c, turning),
            (c, c, at_c, at_c, 0.0),
        )
        names = [f"{word}{k or ''}" for word in ("crank", "rod", "slider")]
        for name, (p, q, at_p, at_q, w) in zip(names, moving, strict=True):
            middle, speed = (p + q) / 2, (at_p + at_q) / 2
            bodies.append(
                planar.Body(
                    name,
                    mass=1.0,
                    inertia=1e-3,
                    position=middle,
                    velocity=speed,
                    angular_velocity=w,
                )
            )
        joints += [
            planar.Revolute(f"A{k}", ("ground", names[0]), a),
            planar.Revolute(f"B{k}", names[:2], b),
            planar.Revolute(f"C{k}", names[1:], c),
            planar.Translational(f"D{k}", ("ground", names[2]), c, (1.0, 0.0)),
        ]
    drivers = [
        jm.Driver(f"motor{k}", f"A{k}", "rotation", motion or jm.motions.Linear(rate=rate))
        for k in range((units if ratio is None else 1) if driven else 0)
    ]
    if ratio is not None:
        joints.append(planar.Gear("gear", ("crank1", "crank"), ratio=ratio))
    model = jm.Model(
        "slider-crank", 2, bodies=bodies, joints=joints, drivers=drivers, gravity=(0.0, -9.81)
    )
    return model.system()


def right_angles(angle, rate, end):
    """Times at which a crank that turns evenly stands across."""
    turns = np.arange(100)
    times = (np.pi / 2 - angle + np.pi * turns) / rate
    return times[(times > 0) & (times < end)]


def four_bar(rise, angle, rate, *, driven, ratio=None):
    """A crank of 1 m and a rocker longer by `rise`, on a frame of 2 m: with none a parallelogram,
    which is flat where the crank lies along the frame."""
    crank = np.array([np.cos(angle), np.sin(angle)])
    ground = np.array([2.0, 0.0])
    # The coupler's end lies on two circles.
    way, rocker, coupler = ground - crank, 1.0 + rise, 2.0
    long = np.linalg.norm(way)
    along = (coupler**2 - rocker**2 + long**2) / (2 * long)
    across = np.sqrt(coupler**2 - along**2)
    normal = np.array([-way[1], way[0]]) / long
    ends = [crank + along * way / long + sign * across * normal for sign in (1, -1)]
    end = min(ends, key=lambda p: np.linalg.norm(p - crank - ground))
    bodies = [
        planar.Body("crank", mass=1.0, inertia=0.1, position=crank / 2),
        planar.Body("coupler", mass=1.0, inertia=0.1, position=(crank + end) / 2),
        planar.Body("rocker", mass=1.0, inertia=0.1, position=(ground + end) / 2),
    ]
    names = ("ground", "crank", "coupler", "rocker", "ground")
    points = (np.zeros(2), crank, end, ground)
    joints: list[Any] = [planar.Revolute(f"J{k}", names[k : k + 2], points[k]) for k in range(4)]
    drivers = [jm.Driver("motor", "J0", "rotation", jm.motions.Linear(rate=rate))] * driven
    if ratio is not None:
        joints.append(planar.Gear("gear", ("rocker", "crank"), ratio=ratio))
    return jm.Model("four-bar", 2, bodies=bodies, joints=joints, drivers=drivers).system()


# Neither a passage itself nor next to it: there the velocities are not determined, which is said.
GRIDS = {"two": 2, "three": 3, "seven": 7, "many": 301}


class TestDrivenMotions:
    @pytest.mark.parametrize("count", representatives(GRIDS, "two", "many"))
    @pytest.mark.parametrize(("angle", "rate"), [(1.0, 1.0), (0.3, 7.0)])
    def test_equal_crank_and_rod(self, count, angle, rate):
        system = crank_at((0.1, 0.1), angle, rate)
        times = np.linspace(0.0, 1.3, GRIDS[count])
        expected = right_angles(angle, rate, 1.3)
        found = jm.kinematics(system, system.reference_q, times)
        np.testing.assert_allclose(found.passages, expected, rtol=0, atol=2e-6 / rate)
        for own in found.passed:
            assert (own.rank, own.nearby) == (8, 9)
            assert own.joints == ("A0", "B0", "C0", "D0", "motor0") or "D0" in own.joints
            assert own.motions
        assert f"passed {len(expected)} singular configuration" in str(found)
        forces = jm.inverse_dynamics(system, system.reference_q, times)
        np.testing.assert_allclose(forces.passages, expected, rtol=0, atol=2e-6 / rate)
        assert forces.passed == found.passed
        assert "next to it" in str(forces)

    @pytest.mark.parametrize(
        ("part", "count"),
        representatives_at(
            [
                (1 + 1e-7, 12),
                (1 + 1e-5, 12),
                (1 + 1e-5, 2001),
                (1 + 1e-3, 12),
                (1 + 1e-3, 301),
                (1.3, 12),
            ],
            *(0, 2, 4, 5),
        ),
    )
    def test_a_longer_rod_only_comes_near(self, part, count):
        """Between few times a motion may change its branch there, which is said."""
        system = crank_at((0.1, 0.1 * part), 0.3, 7.0)
        found = jm.kinematics(system, system.reference_q, np.linspace(0.0, 1.3, count))
        assert not found.passed
        assert "passed" not in str(found)
        # The slider never reaches the crank's pin.
        changed = bool(np.min(np.asarray(found.q)[:, 6]) < 0)
        assert ("different branches" in str(found)) == bool(found.passages_remark) == changed
        assert not changed or part < 1 + 1e-4

    @pytest.mark.parametrize("part", [1e-2, 1e-3, 1e-4])
    @pytest.mark.parametrize("count", [4, 60])
    def test_near_misses_stay_on_their_branch(self, part, count):
        """Whatever the times: against the closed form."""
        system = crank_at((0.1, 0.1 * (1 + part)), 0.3, 7.0)
        times = np.linspace(0.0, 1.3, count)
        found = jm.kinematics(system, system.reference_q, times)
        angle = 0.3 + 7 * times
        way = np.cos(angle) + np.sqrt((1 + part) ** 2 - np.sin(angle) ** 2)
        np.testing.assert_allclose(found.q[:, 6], 0.1 * way, rtol=0, atol=1e-12)
        assert np.asarray(found.regular).all()
        assert not found.passages_remark

    @pytest.mark.thorough
    def test_two_that_pass_at_once_lose_two_ranks(self):
        """The sign of the determinant is what it was."""
        system = crank_at((0.1, 0.1), 1.0, 1.0, units=2)
        found = jm.kinematics(system, system.reference_q, np.linspace(0.0, 1.3, 5))
        (own,) = found.passed
        assert own.time == pytest.approx(np.pi / 2 - 1, abs=1e-3)
        assert (own.rank, own.nearby) == (16, 18)

    @pytest.mark.parametrize("count", [2, 4])
    @pytest.mark.parametrize(("peak", "times"), [(1.5, 2), (1.0, 1), (0.97, 0)])
    def test_back_and_forth_within_an_interval(self, count, peak, times):
        """Both ends of it are one configuration; it passes twice, turns there, or comes near."""
        way = peak * (np.pi / 2 - 1.4)
        motion = jm.motions.Polynomial(coefficients=[0.0, 4 * way, -4 * way])
        system = crank_at((0.1, 0.1), 1.4, 0.0, motion=motion)
        found = jm.kinematics(system, system.reference_q, np.linspace(0.0, 1.0, count))
        root = np.sqrt(max(1 - 1 / peak, 0)) / 2
        expected = [0.5 - root, 0.5 + root][:times]
        # Where it turns the value is that of rounding for a while.
        close = 1e-2 if times == 1 else 1e-4
        np.testing.assert_allclose(found.passages, expected, rtol=0, atol=close)

    @pytest.mark.parametrize("rise", [0.0, 1e-3])
    def test_parallelogram(self, rise):
        """Flat after half a turn; with a longer rocker it cannot pass."""
        system = four_bar(rise, 0.4, 2.0, driven=True)
        end = 2.0 if rise == 0 else 1.0
        found = jm.kinematics(system, system.reference_q, np.linspace(0.0, end, 6))
        expected = [(np.pi - 0.4) / 2] if rise == 0 else []
        np.testing.assert_allclose(found.passages, expected, rtol=0, atol=1e-5)

    def test_bennett_has_none(self):
        model = jm.mechanisms.bennett()
        motor = jm.Driver("motor", "J1", "rotation", jm.motions.Linear(rate=1.0))
        system = jm.MultibodySystem(model.bodies, model.joints, [motor])
        found = jm.kinematics(system, system.reference_q, np.linspace(0.0, 2 * np.pi, 9))
        assert not found.passed


class TestSimulatedMotions:
    @pytest.mark.parametrize("rate", [1.0, 50.0])
    def test_driven_at_default_tolerances(self, rate):
        system = crank_at((0.1, 0.1), 0.3, rate)
        end = 20.0 / rate
        run = jm.simulate(system, system.reference_q, system.initial_v, end)
        found = np.asarray(run.passages)
        expected = right_angles(0.3, rate, end)
        np.testing.assert_allclose(found[np.isfinite(found)], expected, rtol=0, atol=2e-4 / rate)
        assert int(run.passage_count) == len(expected) == len(run.passed)
        assert run.passed[0].nearby - run.passed[0].rank == 1
        assert "D0" in run.passed[0].joints

    def test_what_comes_so_near_that_the_branch_may_change(self):
        """Which the steps do here: the slider cannot be behind the crank's pin."""
        system = crank_at((0.1, 0.1 * (1 + 1e-6)), 0.3, 50.0)
        times = np.linspace(0.0, 0.4, 2001)
        run = jm.simulate(system, system.reference_q, system.initial_v, 0.4, times=times)
        changes = np.sum(np.diff(np.sign(np.asarray(run.q)[:, 6])) != 0)
        assert int(run.passage_count) == changes
        assert not run.passed
        assert bool(changes) == ("could not be confirmed" in str(run))

    @pytest.mark.parametrize("part", [1 + 1e-4, 1.003, 1.3])
    def test_what_only_comes_near(self, part):
        system = crank_at((0.1, 0.1 * part), 0.3, 50.0)
        run = jm.simulate(system, system.reference_q, system.initial_v, 0.4)
        assert int(run.passage_count) == 0
        assert not np.isfinite(np.asarray(run.passages)).any()
        assert not run.passed

    @pytest.mark.parametrize("rtol", [1e-4, 1e-8])
    @pytest.mark.thorough
    def test_free(self, rtol):
        system = crank_at((0.1, 0.1), 0.3, 25.0, driven=False)
        times = np.linspace(0.0, 0.4, 2001)
        run = jm.simulate(
            system, system.reference_q, system.initial_v, 0.4, times=times, rtol=rtol, atol=1e-10
        )
        level = np.cos(np.asarray(run.q)[:, 2] + 0.3)
        across = int(np.sum(level[:-1] * level[1:] < 0))
        assert int(run.passage_count) == across == len(run.passed) > 0
        assert run.passed[0].nearby == 8

    @pytest.mark.thorough
    def test_batches(self):
        """What is seen within the program is what is seen alone."""
        rates = jnp.array([10.0, 20.0, 41.0])
        systems = [crank_at((0.1, 0.1), 0.3, float(rate)) for rate in rates]
        stacked = jax.tree.map(lambda *x: jnp.stack(x), *systems)
        run = jax.vmap(lambda s: jm.simulate(s, s.reference_q, s.initial_v, 0.4, throw=False))(
            stacked
        )
        expected = [len(right_angles(0.3, rate, 0.4)) for rate in np.asarray(rates)]
        assert run.passage_count.tolist() == expected


def five_bar(angles, rates):
    """Two cranks whose ends meet where they stand at 45 and 135 degrees, and two equal bars
    between these ends: where they meet the bars turn together as they like."""
    pins = np.array([[-1.0, 0.0], [1.0, 0.0]])
    ends = pins + np.sqrt(2) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    way = ends[1] - ends[0]
    normal = np.array([-way[1], way[0]]) / np.linalg.norm(way)
    tip = ends.mean(axis=0) + np.sqrt(1.5**2 - way @ way / 4) * normal
    points = [pins[0], ends[0], tip, ends[1], pins[1]]
    names = ["crank", "bar", "other bar", "other crank"]
    bodies = [
        planar.Body(name, mass=1.0, inertia=0.1, position=(points[k] + points[k + 1]) / 2)
        for k, name in enumerate(names)
    ]
    chain = ["ground", *names]
    joints = [planar.Revolute(f"J{k}", chain[k : k + 2], points[k]) for k in range(4)]
    joints.append(planar.Revolute("J4", ("ground", names[-1]), points[4]))
    drivers = [
        jm.Driver(f"motor{k}", joint, "rotation", jm.motions.Linear(rate=rate))
        for k, (joint, rate) in enumerate(zip(("J0", "J4"), rates, strict=True))
    ]
    return jm.Model("five-bar", 2, bodies=bodies, joints=joints, drivers=drivers).system()


class TestOtherMechanisms:
    @pytest.mark.parametrize("rates", [(1.0, -1.0), (1.0, -1.7)])
    def test_five_bar(self, rates):
        """Whose ends of the cranks pass through one another."""
        there, rates = np.pi / 4 * np.array([1, 3]), np.array(rates)
        system = five_bar(there - 0.4 * rates, rates)
        found = jm.kinematics(system, system.reference_q, np.linspace(0.0, 0.9, 4))
        (own,) = found.passed
        assert own.time == pytest.approx(0.4, abs=1e-5)
        assert (own.rank, own.nearby) == (11, 12)
        assert not found.passages_remark

    @pytest.mark.thorough
    def test_platform_whose_legs_take_it_through_a_quarter_turn(self):
        """At yaw 90 deg they do not hold its turning with its rise."""
        system = legs(np.radians(80), rate=0.5)
        times = np.linspace(0.0, 0.6, 4)
        found = jm.kinematics(system, system.reference_q, times)
        (own,) = found.passed
        assert own.time == pytest.approx(np.radians(10) / 0.5, abs=1e-4)
        assert own.nearby - own.rank == 1
        assert not found.passages_remark

    @pytest.mark.parametrize("ratio", [1.0, -2.0])
    @pytest.mark.thorough
    def test_connected_train(self, ratio):
        """Two slider-cranks whose cranks are geared: each passes when its own crank is across."""
        system = crank_at((0.1, 0.1), 1.0, 1.0, units=2, ratio=ratio)
        found = jm.kinematics(system, system.reference_q, np.linspace(0.0, 1.3, 5))
        first = np.pi / 2 - 1
        second = first if ratio == 1 else (1 + np.pi / 2) / 2
        expected = np.unique([first, second])
        np.testing.assert_allclose(found.passages, expected, rtol=0, atol=1e-3)
        assert [own.nearby - own.rank for own in found.passed] == [2] * (ratio == 1) or [1, 1]
        assert not found.passages_remark


class TestWhoIsNotLookedAfter:
    def test_systems_that_are_too_large(self, monkeypatch, tmp_path):
        monkeypatch.setattr(_passages, "_LARGEST", 8)
        system = crank_at((0.1, 0.1), 1.0, 1.0)
        times = np.linspace(0.0, 1.3, 2)
        found = jm.kinematics(system, system.reference_q, times)
        forces = jm.inverse_dynamics(system, system.reference_q, times)
        said = (
            "passages were not looked for: 9 rows, and at most 8 are looked at; ask `singularity`"
        )
        for own in (found, forces):
            assert not own.passed
            assert said in own.passages_remark
            assert "comes near one, just before 1.3 s" in own.passages_remark
            assert own.passages_remark in str(own)
        assert said in forces._repr_html_()
        run = jm.simulate(system, system.reference_q, system.initial_v, 1.0)
        assert int(run.passage_count) == 1
        assert "1 of these could not be confirmed (9 rows, and at most 8 are" in str(run)
        save_trajectory(run, tmp_path / "run.npz")
        assert str(load_trajectory(tmp_path / "run.npz", system)) == str(run)

    def test_search_that_ends(self, monkeypatch):
        monkeypatch.setattr(_passages, "MOST_STATES", 70)
        system = crank_at((0.1, 0.1), 0.3, 7.0)
        found = jm.kinematics(system, system.reference_q, np.linspace(0.0, 1.3, 12))
        assert "ended after 70 states" in str(found)

    def test_confirmations_that_end(self, monkeypatch):
        monkeypatch.setattr(_passages, "_PATIENCE", 9.0**3)
        system = crank_at((0.1, 0.1), 1.0, 1.0)
        run = jm.simulate(system, system.reference_q, system.initial_v, 1.0)
        assert int(run.passage_count) == 1
        assert not run.passed
        assert "could not be confirmed (the search ends after 1 states)" in str(run)

    def test_transformations(self):
        system = crank_at((0.1, 0.1), 1.0, 1.0)
        found = jax.eval_shape(
            lambda q: jm.kinematics(system, q, np.linspace(0.0, 1.3, 2)), system.reference_q
        )
        assert "were not looked for: a transformation" in found.passages_remark

    @pytest.mark.thorough
    def test_runs_that_an_event_ends(self, tmp_path):
        """Are looked at closely too."""
        system, event = crank_at((0.1, 0.1), 0.3, 50.0), jm.runs.StopAtSingular()
        run = jm.simulate(system, system.reference_q, system.initial_v, 0.04, events=(event,))
        assert int(run.passage_count) == len(run.passed) == 1
        assert "motion passed a singular configuration at" in run.message
        save_trajectory(run, tmp_path / "run.npz")
        assert load_trajectory(tmp_path / "run.npz", system).passed == run.passed
        unconfirmed = dataclasses.replace(run, passes=run.passes.unconfirmed)
        assert "or came near one" in event.reason(unconfirmed)
        refuted = dataclasses.replace(run, passes=Passages.none(run.q.dtype))
        assert "does not pass it" in event.reason(refuted)

    def test_passages_are_confirmed_wherever_they_are_asked_for(self):
        """Within a function that is traced, too; of runs that are traced themselves, or stacked,
        they are those that were detected."""
        system = crank_at((0.1, 0.1), 0.3, 3.0, driven=False)

        def run():
            return jm.simulate(system, system.reference_q, system.initial_v, 0.6)

        alone, closed_over = run(), run()
        (time,) = (float(own.time) for own in alone.passed)
        total = jax.jit(lambda x: x * jnp.nansum(closed_over.passages))(1.0)
        assert float(total) == time == float(closed_over.passages[0])

        def of_system(system):
            found = eqx.tree_at(lambda x: x.system, closed_over, system)
            return jnp.nansum(found.passages)

        assert not any(x.any() for x in jax.tree.leaves(eqx.filter_grad(of_system)(system)))
        both = jax.tree.map(lambda *x: jnp.stack(x), alone, run())
        assert both.passage_count.tolist() == [1, 1]
        assert both.passed == ()

    def test_what_lies_behind_the_end_of_a_run(self):
        """Of a run that an event ended within a step."""
        system = crank_at((0.1, 0.1), 0.3, 1.0)
        end = np.pi / 2 - 0.3 - 1e-3
        event = jm.runs.StopWhen(lambda system, q, v, t: jnp.asarray(t - end))
        run = jm.simulate(system, system.reference_q, system.initial_v, 3.0, events=(event,))
        assert float(run.times[-1]) == pytest.approx(end)
        assert int(run.passage_count) == 0
        assert not np.isfinite(np.asarray(run.passages)).any()

    def test_commands(self, monkeypatch, capsys):
        model = jm.mechanisms.bennett()
        motor = jm.Driver("motor", "J1", "rotation", jm.motions.Linear(rate=1.0))
        model = jm.Model("b", 3, bodies=model.bodies, joints=model.joints, drivers=[motor])
        monkeypatch.setattr(_passages, "_LARGEST", 8)
        told = _kinematics.motion_of(model, _kinematics.Request("b.toml", end=0.5, every=0.5))
        remark = told.data()["passages_remark"]
        assert "and at most 8 are looked at; ask `singularity`" in remark
        show(told)
        assert remark in capsys.readouterr().out


def arch(rise):
    """Two bars between fixed pins: straight, and not."""
    points = [(0.0, 0.0), (1.0, rise), (2.0, 0.0)]
    bodies = [
        planar.Body(name, mass=1.0, inertia=0.1, position=np.mean(points[k : k + 2], axis=0))
        for k, name in enumerate("ab")
    ]
    names = ("ground", "a", "b", "ground")
    joints = [planar.Revolute(f"J{k}", names[k : k + 2], points[k]) for k in range(3)]
    return jm.Model("arch", 2, bodies=bodies, joints=joints).system()


def leg_of(angle, rate):
    """A leg between circles of radius 1 and 0.7 that lie 1 apart, as if its angle about their axis
    were this one and grew."""

    def residual(frames, t):
        a, b = (frame.origin for frame in frames)
        squared = 1 + 0.7**2 - 2 * 0.7 * jnp.cos(angle + rate * t) + 1
        return (jnp.sum((a - b) ** 2) - squared)[None] / 2

    return residual


def legs(yaw, rate=0.0):
    """A platform on six legs of fixed length, or of such that it turns at this rate."""
    spots = np.radians([0, 0, 120, 120, 240, 240])
    low, high = (spots + np.radians(w) * np.array([-1, 1] * 3) for w in (20, 40))
    below = np.stack([np.cos(low), np.sin(low), 0 * low], axis=1)
    above = np.stack([0.7 * np.cos(high + yaw), 0.7 * np.sin(high + yaw), 1 + 0 * high], axis=1)
    top = spatial.Body("top", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0.0, 0.0, 1.0))
    joints = [
        spatial.Distance(f"leg {k}", ("ground", "top"), points=(below[k], above[k]))
        for k in range(6)
    ]
    if rate:
        joints = [
            spatial.Geometric(
                f"leg {k}",
                leg_of(float(high[k] - low[k]) + yaw, rate),
                [("ground", below[k]), ("top", above[k])],
            )
            for k in range(6)
        ]
    return jm.Model("platform", 3, bodies=[top], joints=joints).system()


def geared(angle):
    """A four-bar whose rocker is geared to its crank as its speeds are right here."""
    system = four_bar(0.5, angle, 1.0, driven=True)
    speeds = np.asarray(jm.kinematics(system, system.reference_q, [0.0]).v)[0]
    return four_bar(0.5, angle, 0.0, driven=False, ratio=speeds[8] / speeds[2])


# Rank here and nearby, singular, isolated, and a word of what is said.
NEIGHBOURS = {
    "straight arch": (lambda: arch(0.0), 5, 5, True, True, "first order alone"),
    "arch": (lambda: arch(0.3), 6, 6, False, False, "nothing can move"),
    "legs at 90 deg": (lambda: legs(np.pi / 2), 5, 5, True, True, "isolated"),
    "legs at 30 deg": (lambda: legs(np.pi / 6), 6, 6, False, False, "nothing can move"),
    "driven across": (
        lambda: crank_at((0.1, 0.1), np.pi / 2, 0.0),
        8,
        9,
        True,
        False,
        "0 rows are redundant everywhere, 1 more here",
    ),
    "four-bar geared by its ratio": (lambda: geared(np.pi / 2), 8, 8, True, True, "isolated"),
    "driven": (lambda: crank_at((0.1, 0.1), 1.0, 1.0), 9, 9, False, False, "no row is redundant"),
    "door": (lambda: jm.mechanisms.door().system(), 5, 5, False, False, "permanent"),
}


@pytest.mark.parametrize(
    "name",
    representatives(
        NEIGHBOURS,
        "legs at 90 deg",
        "driven across",
        "four-bar geared by its ratio",
        "door",
    ),
)
def test_neighbours(name):
    build, rank, nearby, singular, isolated, word = NEIGHBOURS[name]
    system = build()
    found = jm.singularity(system, system.reference_q, key=jax.random.key(0))
    assert (int(found.rank), int(found.generic_rank)) == (rank, nearby)
    assert (bool(found.singular), bool(found.isolated)) == (singular, isolated)
    assert word in str(found)
    assert ("permanent" in str(found)) == (name == "door")
