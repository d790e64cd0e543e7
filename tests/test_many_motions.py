"""Motions of many cases: each is the one that a run gives, whichever others it is computed with."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_passages import crank_at

import jaxmbs as jm
from jaxmbs import planar


DOOR = jm.mechanisms.get("door").system()
END, COUNT, WIDTH = 0.5, 6, 4
TOLERANCES: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12}
MAX_STEPS = 60
# The slow ones take a few steps, the fast ones ten times as many.
RATES = np.array([0.1, 40.0, 3.0, 80.0, 0.0, 20.0, 90.0, 1.0, 60.0, 0.3, 5.0])


def turning(rates):
    """Velocities of the door, about its hinges."""
    return np.outer(rates, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def many(rates, **given):
    given = {"count": COUNT, "width": WIDTH, "max_steps": MAX_STEPS, **TOLERANCES} | given
    return jm.simulate_many(DOOR, DOOR.reference_q, turning(rates), END, **given)


@pytest.fixture(scope="module")
def runs():
    return many(RATES)


class TestRuns:
    def test_the_door_turns_evenly(self, runs):
        """Its centre of mass is on its hinges: the closed form is a rotation at a constant rate."""
        angles = RATES[:, None] * np.linspace(0.0, END, COUNT)
        np.testing.assert_allclose(runs.q[:, :, 3], np.cos(angles / 2), rtol=0, atol=1e-8)
        np.testing.assert_allclose(runs.q[:, :, 6], np.sin(angles / 2), rtol=0, atol=1e-8)
        np.testing.assert_allclose(runs.v, turning(RATES)[:, None].repeat(COUNT, 1), atol=1e-8)
        assert jnp.all(runs.reached)
        assert jnp.max(runs.position_error) <= 1e-12
        steps = np.asarray(runs.statistics.accepted)
        assert steps.max() > 5 * steps.min()

    def test_each_is_that_of_simulate(self, runs):
        times = np.linspace(0.0, END, COUNT)
        for k in (0, 3, 10):
            start = DOOR, DOOR.reference_q, turning(RATES)[k], END
            wanted = jm.simulate(*start, times=times, **TOLERANCES)
            one = runs.run(k)
            for name in ("times", "q", "v", "acceleration", "multipliers"):
                found, other = getattr(one, name), getattr(wanted, name)
                np.testing.assert_allclose(found, other, rtol=0, atol=1e-8)
            assert str(one.reactions()) == str(wanted.reactions())
            assert str(one).startswith("6 states from 0 s to 0.5 s in ")

    def test_bits_do_not_depend_on_the_others(self, runs):
        fewer = many(RATES[:9])
        other = many(np.append(RATES[:9], 70.0)[[4, 5, 2, 3, 0, 1, 6, 7, 8, 9]])
        for name in ("q", "v", "multipliers"):
            found = np.asarray(getattr(runs, name))
            np.testing.assert_array_equal(getattr(fewer, name), found[:9])
            # At the same place of another batch.
            np.testing.assert_array_equal(np.asarray(getattr(other, name))[[2, 3]], found[[2, 3]])

    @pytest.mark.thorough
    def test_one_run_and_a_state_that_all_share(self):
        one = many(RATES[3:4])
        np.testing.assert_allclose(one.q[0, -1, 3], np.cos(40.0 * END), rtol=0, atol=1e-8)
        q = np.tile(DOOR.reference_q, (2, 1))
        both = jm.simulate_many(DOOR, q, turning([3.0])[0], END, count=COUNT, width=WIDTH)
        np.testing.assert_array_equal(both.q[0], both.q[1])

    def test_what_it_says(self, runs):
        assert str(runs).startswith("11 motions of 6 states each")


class TestRefused:
    def test_a_state_off_the_constraints_by_its_number(self):
        v = turning(RATES)
        v[7, 0] = 0.5
        given = (DOOR, DOOR.reference_q, v, END)
        how = {"count": COUNT, "width": WIDTH, "max_steps": MAX_STEPS, **TOLERANCES}
        with pytest.raises(ValueError, match=r"run 7: .* 'lower' by 0\.5 m/s; consistent=True"):
            jm.simulate_many(*given, **how)
        moved = jm.simulate_many(*given, consistent=True, **how)
        np.testing.assert_allclose(moved.v[:, 0, 0], 0.0, atol=1e-12)

    def test_shapes(self):
        q, v = DOOR.reference_q, turning(RATES)
        for states, words in (
            ((q[:3], v), r"q must be an array of 7 numbers for each run, got shape \[3\]"),
            ((np.tile(q, (3, 1)), v), r"got shapes \[3, 7\] and \[11, 6\]"),
            ((q, v[:0]), r"v must be an array of 6 numbers for each run, got shape \[0, 6\]"),
        ):
            with pytest.raises(ValueError, match=words):
                jm.simulate_many(DOOR, *states, END)
        with pytest.raises(
            TypeError, match="q must be an array of 7 numbers for each run, got 'q'"
        ):
            jm.simulate_many(DOOR, "q", v, END)  # pyright: ignore[reportArgumentType]
        model: Any = jm.mechanisms.get("door")
        with pytest.raises(TypeError, match="system must be a system of equations, such as what"):
            jm.simulate_many(model, q, v, END)

    def test_a_run_that_fails_stops_no_other(self, runs):
        """The fastest one needs more steps than it may take."""
        rates = np.append(RATES, 3000.0)
        with pytest.raises(
            jm.SimulationError, match=r"run 11 \(1 of 12 failed\): .*max_steps"
        ) as e:
            many(rates)
        assert float(e.value.trajectory.times[-1]) < END
        found = many(rates, throw=False)
        failed = np.asarray(found.result != jm.results.RESULTS.successful)
        assert np.flatnonzero(failed).tolist() == [11]
        assert "1 of them failed: The largest number of steps was reached." in str(found)
        assert found.run(11).times.size < COUNT
        np.testing.assert_array_equal(np.asarray(found.q)[:11], runs.q)


def swing(mass=2.0):
    """A boom on two hinges, which hangs half a metre below them."""
    boom = planar.Body("boom", mass=mass, inertia=0.1, position=(0.0, -0.5))
    hinges = [planar.Revolute(x, ("ground", "boom"), (0.0, 0.0)) for x in ("front", "back")]
    return jm.Model("swing", 2, bodies=[boom], joints=hinges, gravity=(0.0, -9.81))


ANGLES = np.array([0.01, 0.02, 0.005, 0.015, 0.012])
LAST = 1.0  # s


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Booms that are let go at rest from a small angle, to which each case is assembled."""
    cases = jm.Cases(
        {
            "joints.front.rotation": ANGLES,
            "bodies.boom.mass": np.array([1.0, 2.0, 5.0, 0.5, 3.0]),
            "time": np.array([0.0, 0.0, 0.5, 0.0, LAST]),
        }
    )
    question = jm.sweeps.Simulation(LAST, count=3, rtol=1e-9, atol=1e-11)
    store = tmp_path_factory.mktemp("sweep") / "runs"
    return jm.sweep(question, swing(), cases, store=store, width=2)


class TestSweep:
    def test_it_swings_as_a_pendulum(self, swept):
        """Of small angles the closed form is a cosine; the inertia is varied by the mass alone."""
        found = swept.answers()
        for k in range(4):
            mass, start = float(swept.cases.values[1][k]), float(swept.cases.values[2][k])
            rate = np.sqrt(mass * 9.81 * 0.5 / (0.1 + mass * 0.25))
            wanted = ANGLES[k] * np.cos(rate * (found.times[k] - start))
            np.testing.assert_allclose(found.times[k], np.linspace(start, LAST, 3))
            np.testing.assert_allclose(found.q[k, :, 2], wanted, rtol=0, atol=2e-6)
        assert swept.dataset()["multipliers"].shape == (5, 3, 4)

    def test_a_case_that_starts_at_the_end_fails(self, swept):
        assert swept.result.tolist()[:4] == [0, 0, 0, 0]
        (text,) = swept.failures()
        assert text.startswith("The end of the motion is not later than its start")

    def test_one_of_the_answers(self, swept):
        found = swept.answers()
        with pytest.raises(ValueError, match="system must be given for answers of a sweep"):
            found.run(0)
        system = swing(1.0).system()
        assert "NOT UNIQUE" in str(found.run(0, system).reactions())
        with pytest.raises(ValueError, match="number must be at least 0 and at most 4, got 5"):
            found.run(5, system)
        with pytest.raises(ValueError, match="got that of one run"):
            found.run(0, system).run(0)


class TestStarts:
    @pytest.mark.parametrize(
        "how",
        [
            {},
            pytest.param(
                {"stabilisation": jm.runs.Baumgarte(5.0, 5.0)}, marks=pytest.mark.thorough
            ),
        ],
    )
    def test_states_are_made_consistent(self, how):
        """As `simulate` makes them: also far from the constraints, and of a long run."""
        q, v = np.array(DOOR.reference_q), turning([1.0])[0]
        q[1] += 1e-3
        v[0] += 0.5
        given = {"consistent": True, **TOLERANCES, **how}
        one = jm.simulate(DOOR, jnp.asarray(q), jnp.asarray(v), 10.0, **given)
        both = jm.simulate_many(DOOR, np.stack([q, q]), v, 10.0, **given)
        np.testing.assert_allclose(both.q[1], one.q, rtol=0, atol=1e-7)
        np.testing.assert_allclose(both.v[0], one.v, rtol=0, atol=1e-7)

    def test_invalid_states(self):
        q, v = np.tile(DOOR.reference_q, (3, 1)), turning([1.0, 2.0, 3.0])
        v[1, 2], q[2, 3] = np.nan, 1.5
        with pytest.raises(ValueError, match=r"run 1: v must .* finite"):
            jm.simulate_many(DOOR, q, v, END, consistent=True)
        with pytest.raises(ValueError, match=r"run 2: .* quaternion"):
            jm.simulate_many(DOOR, q, turning([1.0, 2.0, 3.0]), END, consistent=True)

    def test_too_many_states(self):
        with pytest.raises(ValueError, match="11 runs of 1,000,000 states are more than"):
            many(RATES, count=1_000_000)


class Halving(NamedTuple):
    value: Any
    count: Any
    ended: Any


class HalvingSteps(jm.sweeps.AbstractIteration):
    """Halves the time of a case until it is below 1."""

    def begin(self, case):
        return Halving(case.t, jnp.asarray(0), case.t < 1.0)

    def turn(self, case, lane):
        del case
        value = lane.value / 2
        more = Halving(value, lane.count + 1, value < 1.0)
        return jax.tree.map(lambda new, old: jnp.where(lane.ended, old, new), more, lane)

    def answer(self, case, lane):
        del case
        return {"count": lane.count}


class Halvings(jm.sweeps.AbstractQuestion):
    """How often? Negative times have no configuration."""

    @property
    def second(self):
        return None

    @property
    def iteration(self):
        return HalvingSteps()

    def assembled(self, start):
        failed = jm.results.RESULTS.assembly_did_not_close
        return start.q, jm.results.RESULTS.where(start.t < 0, failed, jm.results.RESULTS.successful)

    def __call__(self, case):
        return {"count": jnp.ceil(jnp.log2(case.t)).astype(int)}


class TestIterations:
    def test_each_case_makes_turns_of_its_own(self):
        times = np.array([100.0, 0.5, 3.0, -1.0, 1e6, 7.0, 2.5])
        model = jm.mechanisms.get("door")
        swept = jm.sweep(Halvings(), model, jm.Cases({"time": times}), width=2)
        wanted = [7, 0, 2, 0, 20, 3, 2]
        assert swept.answers()["count"].tolist() == wanted
        assert np.flatnonzero(swept.result).tolist() == [3]
        (text,) = swept.failures()
        assert text.startswith("The mechanism did not close")


class TestDerivatives:
    @pytest.mark.thorough
    def test_inside_of_a_transformation(self):
        def end(rates):
            v = jnp.outer(rates, jnp.eye(6)[5])
            return jm.simulate_many(DOOR, DOOR.reference_q, v, END).q[:, -1, 6]

        rates = jnp.array([1.0, 3.0])
        wanted = np.diag(END / 2 * np.cos(rates * END / 2))
        np.testing.assert_allclose(jax.jacrev(end)(rates), wanted, rtol=0, atol=1e-7)

    def test_shapes_inside_of_one(self):
        v = jnp.asarray(turning(RATES))
        found = eqx.filter_eval_shape(
            lambda v: jm.simulate_many(DOOR, DOOR.reference_q, v, END, count=COUNT), v
        )
        assert found.q.shape == (11, COUNT, 7)


@pytest.mark.thorough
def test_passages_are_those_of_single_runs():
    """Cranks with rods of their length stand at a right angle after some time, or do not."""
    system = crank_at((0.1, 0.1), 0.3, 20.0, driven=False)
    v = np.outer([1.0, 0.5, 0.05], system.initial_v)
    runs = jm.simulate_many(system, system.reference_q, v, 0.3, width=2)
    counts = []
    for k in range(3):
        one = jm.simulate(system, system.reference_q, v[k], 0.3)
        counts.append(int(one.passage_count))
        assert int(runs.passage_count[k]) == counts[-1]
        np.testing.assert_allclose(runs.run(k).q[-1], one.q[-1], rtol=0, atol=1e-8)
    assert counts[0] != counts[2]
    assert np.isnan(np.asarray(runs.passages)[2]).all()
