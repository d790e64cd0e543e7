"""The motions of the papers' mechanisms, and of chains that pass through singular configurations,
against exact laws, closed forms, and each other by every formulation and elimination."""

import diffrax as dfx
import jax.numpy as jnp
import numpy as np
import oracle_reactions as newton
import pytest
from exact_motions import angle_of_chain
from helpers import configuration_of
from reaction_park import table_of, wrenches_of
from representatives import representatives, representatives_at
from scipy.integrate import solve_ivp

import jaxmbs as jm
from jaxmbs import motions


# First turning point of the parallelogram (s), of its exact law.
TURN = 0.239682187
# Times close to it, for a polynomial.
NEAR = TURN + 0.004 * np.cos(np.pi * (np.arange(9) + 0.5) / 9)[::-1]

# The second straight part of the robot's manoeuvre (s): its length is chosen so that it ends
# parallel to x.
STRAIGHT = 0.37121615
END = 4.4 + STRAIGHT
STEERED = np.array([0.5, 1.0, 1.4, 1.9, 2.9, 3.4, 3.4 + STRAIGHT, 3.9 + STRAIGHT])
# Rack displacements (m) of +0.3 a and back.
RACK = 0.015 * np.array([0.0, 1.0, 1.0, 0.0, 0.0, -1.0, -1.0, 0.0])
# Not back: in this longer turn an elimination of C.y and W4 becomes singular.
TO_ONE_SIDE = 0.015 * np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])


def largest(x, y):
    return float(jnp.max(jnp.abs(x - y)))


@pytest.fixture(scope="module")
def parallelogram():
    return swing(jm.formulations.MinimumNorm())


def swing(formulation):
    system = jm.mechanisms.get("parallelogram").system()
    return jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        0.5,
        times=np.unique(np.concatenate([np.linspace(0.0, 0.5, 11), NEAR])),
        rtol=1e-10,
        atol=1e-11,
        formulation=formulation,
        solver=dfx.Dopri8(),
        # Nothing looks at passages; to watch for them is a third of what is compiled.
        monitor=False,
    )


class TestParallelogram:
    def test_platform_follows_its_exact_law(self, parallelogram):
        run = parallelogram
        exact, rate = solve_ivp(
            lambda _, y: [y[1], (1000 * np.cos(y[0]) - 1500 * np.sin(y[0])) / 10.0455],
            (0.0, 0.5),
            [0.0, 0.0],
            method="DOP853",
            rtol=1e-13,
            atol=1e-14,
            t_eval=np.asarray(run.times),
        ).y
        path = [0.25 + 0.5 * np.sin(exact), 0.25 + 0.5 * np.cos(exact), 0.5 + 0 * exact]
        centres = np.asarray(run.q)[:, -7:-4]
        np.testing.assert_allclose(centres, np.stack(path, axis=1), atol=2e-9)
        # It does not turn, and moves along its path.
        turned = np.asarray(run.q)[:, -4:] - np.asarray(run.q)[:1, -4:]
        np.testing.assert_allclose(turned, 0.0, atol=1e-12)
        across = 0.5 * np.stack([np.cos(exact), -np.sin(exact), 0 * exact], axis=1) * rate[:, None]
        np.testing.assert_allclose(np.asarray(run.v)[:, -6:-3], across, atol=1e-8)
        np.testing.assert_allclose(np.asarray(run.v)[:, -3:], 0.0, atol=1e-12)
        assert float(jnp.max(run.position_error)) < 1e-12
        assert float(jnp.max(run.velocity_error)) < 1e-12

    def test_platform_turns_back_at_the_published_time(self, parallelogram):
        speeds = np.asarray(parallelogram.v)[np.searchsorted(parallelogram.times, NEAR), -6]
        window = [NEAR[0], NEAR[-1]]
        roots = np.polynomial.Chebyshev.fit(NEAR, speeds, 6, domain=window).roots()
        real = roots[np.isreal(roots)].real
        turns = real[(real > NEAR[0]) & (real < NEAR[-1])]
        np.testing.assert_allclose(turns, [TURN], atol=2e-9)

    def test_forces_of_the_upper_links_at_the_start(self, parallelogram):
        run = parallelogram
        names = run.system.structure.row_names
        published = {
            "K": (-1.34388532, 401.85095, -400.18325),
            "M": (-1.34388532, -598.14905, 599.81675),
        }
        for joint, force in published.items():
            rows = jnp.array([names.index(f"{joint}.{axis}") for axis in "xyz"])
            np.testing.assert_allclose(run.multipliers[0, rows], force, atol=1e-7)

    @pytest.mark.thorough
    def test_eliminations_move_alike_and_differ_where_not_unique(self, parallelogram):
        run = parallelogram
        dropped = [swing(jm.formulations.Elimination((row,))) for row in ("B.z", "F.z")]
        names = run.system.structure.row_names
        upper = jnp.array([i for i, name in enumerate(names) if name[0] in "KLMN"])
        lower = jnp.array([i for i, name in enumerate(names) if name[0] in "ABCDEFGH"])
        for other in dropped:
            assert largest(other.q, run.q) < 1e-9
            assert largest(other.multipliers[:, upper], run.multipliers[:, upper]) < 1e-5
            assert largest(other.multipliers[:, lower], run.multipliers[:, lower]) > 100.0


def rover(displacements):
    motion = motions.Step(times=STEERED, values=displacements)
    return jm.mechanisms.mobile_robot(motion)


def drive(system, formulation, times=None, *, monitor=True):
    return jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        END,
        times=_saved() if times is None else times,
        rtol=1e-11,
        atol=1e-12,
        formulation=formulation,
        solver=dfx.Dopri8(),
        monitor=monitor,
    )


def _saved():
    return np.unique(np.concatenate([np.arange(0.0, END, 0.25), _steering_nodes().ravel(), [END]]))


def _steering_nodes():
    """Gauss nodes (4, 12) of the intervals in which the rack moves."""
    nodes, _ = np.polynomial.legendre.leggauss(12)
    first, last = STEERED[::2, None], STEERED[1::2, None]
    return (first + last) / 2 + (last - first) / 2 * nodes[None]


@pytest.fixture(scope="module")
def robot():
    system = rover(RACK).system()
    # Both are watched, as in the longer turn: there is one program for all three.
    dropped = [
        drive(system, jm.formulations.Elimination(rows)) for rows in (("C.y", "W4"), ("W2", "W4"))
    ]
    return drive(system, jm.formulations.MinimumNorm()), dropped


@pytest.fixture(scope="module")
def turn():
    return drive(rover(TO_ONE_SIDE).system(), jm.formulations.MinimumNorm())


class TestRobot:
    def test_ends_parallel_to_x_and_stays_on_its_constraints(self, robot):
        run, dropped = robot
        for one in (run, *dropped):
            assert abs(float(one.q[-1, 2])) < 1e-8
            assert float(jnp.max(one.position_error)) < 1e-12
            assert float(jnp.max(one.velocity_error)) < 1e-12

    def test_eliminations_move_alike_and_differ_where_not_unique(self, robot):
        run, dropped = robot
        names = run.system.structure.row_names
        joints = [name.split(".")[0] for name in names]
        alike = {*"ADEFGH", "W5", "steering"}
        same = jnp.array([i for i, joint in enumerate(joints) if joint in alike])
        differ = [i for i, joint in enumerate(joints) if joint in {*"BC", "W1", "W2", "W3", "W4"}]
        scale = float(jnp.max(jnp.abs(run.multipliers)))
        apart = jnp.zeros(len(names))
        for other in dropped:
            assert largest(other.q, run.q) < 1e-9
            # Other steps, and velocities are less accurate than places.
            assert largest(other.v, run.v) < 1e-8
            assert largest(other.acceleration, run.acceleration) < 1e-7
            assert largest(other.multipliers[:, same], run.multipliers[:, same]) < 1e-8 * scale
            change = jnp.max(jnp.abs(other.multipliers - run.multipliers), axis=0)
            apart = jnp.maximum(apart, change)
        for joint in {joints[i] for i in differ}:
            rows = jnp.array([i for i in differ if joints[i] == joint])
            assert float(jnp.max(apart[rows])) > 0.01 * scale
        # From each other too; but for W4, which both leave out.
        first, second = dropped
        assert largest(first.q, second.q) < 1e-9
        change = jnp.max(jnp.abs(first.multipliers - second.multipliers), axis=0)
        assert float(jnp.max(change[jnp.array(differ)])) > 0.01 * scale

    def test_kinetic_energy_is_the_work_of_the_driver(self, robot):
        run, _ = robot
        times, system = np.asarray(run.times), run.system
        forces = np.asarray(run.multipliers)[:, system.structure.row_names.index("steering")]
        _, weights = np.polynomial.legendre.leggauss(12)
        work = 0.0
        for k, nodes in enumerate(_steering_nodes()):
            first, last = STEERED[2 * k : 2 * k + 2]
            part = (nodes - first) / (last - first)
            # The quintic step has the rate 30 s^2 (1 - s)^2 of its displacement.
            rate = 30 * (part * (1 - part)) ** 2 * (RACK[2 * k + 1] - RACK[2 * k]) / (last - first)
            force = forces[np.searchsorted(times, nodes - 1e-12)]
            work += (last - first) / 2 * float(weights @ (force * rate))
            after = min(int(np.searchsorted(times, last + 1e-12)), len(times) - 1)
            kinetic = [float(system.energy(run.q[i], run.v[i], times[i])[0]) for i in (0, after)]
            # The multiplier is the force of f = F - M dv/dt: it acts against the rack.
            assert abs(kinetic[1] - kinetic[0] + work) < 1e-8

    def test_longer_turn_stops_where_the_elimination_is_singular(self, turn):
        with pytest.raises(jm.SimulationError, match="has become singular") as caught:
            drive(turn.system, jm.formulations.Elimination(("C.y", "W4")))
        heading = float(np.degrees(caught.value.trajectory.q[-1, 2]))
        assert abs(heading + 104.244) < 1e-3
        assert float(turn.times[-1]) == END
        assert float(np.degrees(turn.q[-1, 2])) < -105.0

    @pytest.mark.thorough
    @pytest.mark.parametrize(
        "formulation",
        representatives_at(
            [jm.formulations.CoordinatePartitioning(), jm.formulations.Elimination()], 1
        ),
        ids=lambda x: x.word,
    )
    def test_those_that_choose_anew_go_through_the_longer_turn(self, turn, formulation):
        times = [*np.arange(0.0, END, 0.5), END]
        through = at_times(turn, times)
        found = drive(turn.system, formulation, times, monitor=False)
        assert float(np.degrees(found.q[-1, 2])) < -105.0
        np.testing.assert_allclose(found.q, through.q, atol=1e-9)
        np.testing.assert_allclose(found.v, through.v, atol=1e-9)
        assert float(jnp.max(found.position_error)) < 1e-12
        assert float(jnp.max(found.velocity_error)) < 1e-12


def at_times(run, times):
    """Of the saved states those at these times."""
    places = np.searchsorted(run.times, np.asarray(times) - 1e-12)
    np.testing.assert_allclose(run.times[places], times, rtol=0, atol=1e-12)
    return run.at(places)


@pytest.fixture(scope="module")
def some_states(request):
    """A table, and states along the motion of its mechanism."""
    if request.param == "robot":
        run, _ = request.getfixturevalue("robot")
        return table_of(rover(RACK)), run.at(np.arange(0, len(run.times), 4))
    model = jm.mechanisms.get("four-bar-chain-spatial:1")
    # Saved as often as in the test of chains below, with which it shares its program.
    run = follow_chain(model.system(), 4.0, rtol=1e-11)
    return table_of(model), at_times(run, np.linspace(0.0, 4.0, 11))


def of_motions(*kept):
    motions = representatives(["robot", "spatial chain"], *kept)
    return pytest.mark.parametrize("some_states", motions, indirect=True)


class TestStates:
    # One of which some components are unique.
    @of_motions("robot")
    def test_formulations_agree_and_never_contradict_the_verdicts(self, some_states):
        table, run = some_states
        assert len(run.times) > 9
        for q, v, t in zip(run.q, run.v, run.times, strict=True):
            found = jm.compare(run.system, q, v, t)
            assert all(found.succeeded())
            words = [one.word for one in found.formulations]
            by_word = dict(zip(words, found.acceleration_difference, strict=True))
            assert by_word.pop(jm.formulations.AugmentedLagrangian.word) < 1e-7
            assert max(by_word.values()) < 1e-9
            assert found.contradictions() == ()
            unique = np.asarray(found.solvability.reaction_unique)
            # Every joint of the chain has a component that is not unique.
            assert unique.any() == (table["name"] != "four-bar-chain-spatial")
            assert not unique.all()
            # Closer to each other than what counts as different.
            assert np.max(found.between_runs.reactions[unique], initial=0.0) < 1e-8

    @pytest.mark.thorough
    @of_motions("spatial chain")
    def test_newton_and_euler(self, some_states):
        table, run = some_states
        report = run.reactions()
        for k in range(len(run.times)):
            acting = wrenches_of(report, k).values()
            poses = configuration_of(table, np.asarray(run.q[k]))
            v, a = np.asarray(run.v[k]), np.asarray(run.acceleration[k])
            assert max(newton.newton_euler_gap(table, poses, v, a, [*acting])) < 1e-10


def follow_chain(system, end, rtol):
    """Saved at 21 times."""
    return jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        end,
        times=np.linspace(0.0, end, 21),
        rtol=rtol,
        atol=1e-2 * rtol,
        solver=dfx.Dopri8(),
    )


def angle_errors(run, windows, exact):
    """Of each vertical bar at each saved time (rad)."""
    bars = np.asarray(run.q).reshape(len(run.times), -1, run.q.shape[1] // (2 * windows + 1))
    angles = -bars[:, : windows + 1, 2]
    if bars.shape[2] == 7:
        angles = -2 * np.arctan2(bars[:, : windows + 1, 6], bars[:, : windows + 1, 3])
    turned = (np.unwrap(angles, axis=0, period=4 * np.pi) - exact[:, None]) / (4 * np.pi)
    return (turned - np.round(turned)) * 4 * np.pi


@pytest.mark.thorough
def test_the_error_of_a_chain_follows_the_tolerance():
    """Though the motion passes through singular configurations, where no method is as exact as
    elsewhere: one step across decided the error, up to 130 times the tolerance."""
    system = jm.mechanisms.get("four-bar-chain:40").system()
    exact = angle_of_chain(40, np.linspace(0.0, 10.0, 21))
    for rtol in np.geomspace(1e-9, 1e-8, 4):
        run = follow_chain(system, 10.0, rtol)
        assert np.max(np.abs(angle_errors(run, 40, exact))) < 40 * rtol


@pytest.mark.parametrize(
    ("name", "windows", "rtol"),
    # (A chain of two windows in the plane is in `test_simulate.py`.)
    representatives(
        [
            ("four-bar-chain", 1, 3e-9),
            ("four-bar-chain", 40, 3e-9),
            # Next to a passage less than what rounding leaves of velocities.
            ("four-bar-chain", 40, 1e-10),
            # Of so long a chain it depends on where steps happen to end how well the times of its
            # passages are known, and with smaller tolerances whether it passes at all.
            ("four-bar-chain", 160, 5e-9),
            ("four-bar-chain-spatial", 1, 3e-9),
            ("four-bar-chain-spatial", 16, 3e-9),
        ],
        ("four-bar-chain-spatial", 1, 3e-9),
    ),
)
@pytest.mark.thorough
def test_chain_stays_on_its_branch(name, windows, rtol):
    system = jm.mechanisms.get(f"{name}:{windows}").system()
    run = follow_chain(system, 10.0, rtol)
    fine = np.linspace(0.0, 10.0, 20001)
    exact = angle_of_chain(windows, fine)
    np.testing.assert_allclose(angle_errors(run, windows, exact[::1000]), 0.0, atol=1e-6)
    assert float(jnp.max(run.position_error)) < 1e-12
    # Noise next to the passages does not decide the steps.
    assert int(run.statistics.accepted) < (200 if rtol > 1e-9 else 300)
    # The bars lie flat where the cosine changes its sign.
    level = np.cos(exact)
    before = np.flatnonzero(level[:-1] * level[1:] < 0)
    share = level[before] / (level[before] - level[before + 1])
    flat = fine[before] + share * fine[1]
    passages = np.asarray(run.passages)
    np.testing.assert_allclose(passages[np.isfinite(passages)], flat, rtol=0, atol=1e-4)
