"""Whole motions by every formulation, and what holds at every saved time of the longest ones."""

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import oracle_reactions as newton
import pytest
from helpers import configuration_of
from reaction_park import table_of, wrenches_of

import jaxmbs as jm
from jaxmbs import forces, motions, planar
from jaxmbs._dynamics import solve_with_friction


FORMULATIONS = {
    "udwadia-kalaba": (jm.UdwadiaKalaba(), 1e-9),
    "null-space": (jm.NullSpace(), 1e-9),
    "partitioning": (jm.CoordinatePartitioning(), 1e-9),
    "elimination": (jm.Elimination(), 1e-9),
    # Its accelerations differ by up to 1e-7.
    "augmented-lagrangian": (jm.AugmentedLagrangian(), 1e-6),
}
each_formulation = pytest.mark.parametrize("word", FORMULATIONS)

# The rack moves by +0.3 a and back, a straight part, the same to the other side.
STRAIGHT = 0.37121615
END = 4.4 + STRAIGHT
STEERED = np.array([0.5, 1.0, 1.4, 1.9, 2.9, 3.4, 3.4 + STRAIGHT, 3.9 + STRAIGHT])
RACK = 0.015
TO_BOTH_SIDES = RACK * np.array([0.0, 1.0, 1.0, 0.0, 0.0, -1.0, -1.0, 0.0])
TO_ONE_SIDE = RACK * np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])


def moved(system, formulation, end, every, **more):
    return jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        end,
        every=every,
        rtol=1e-11,
        atol=1e-12,
        formulation=formulation,
        solver=diffrax.Dopri8(),
        **more,
    )


def robot(displacements):
    motion = motions.Step(times=STEERED, values=displacements)
    return jm.mechanisms.mobile_robot(motion)


@pytest.fixture(scope="module")
def turn():
    """The longer turn, in which an elimination of C.y and W4 becomes singular."""
    system = robot(TO_ONE_SIDE).system()
    return moved(system, jm.MinimumNorm(), END, 0.5)


@each_formulation
def test_every_formulation_goes_through_the_longer_turn(turn, word):
    formulation, tolerance = FORMULATIONS[word]
    found = moved(turn.system, formulation, END, 0.5)
    assert float(np.degrees(found.q[-1, 2])) < -105.0
    np.testing.assert_allclose(found.q, turn.q, atol=tolerance)
    np.testing.assert_allclose(found.v, turn.v, atol=tolerance)
    assert float(jnp.max(found.position_error)) < 1e-12
    assert float(jnp.max(found.velocity_error)) < 1e-12


MECHANISMS = {
    "robot": lambda: (robot(TO_BOTH_SIDES), END, 0.3),
    "parallelogram": lambda: (jm.mechanisms.get("parallelogram"), 0.5, 0.05),
    "spatial chain": lambda: (jm.mechanisms.get("four-bar-chain-spatial:1"), 4.0, 0.4),
}


@pytest.fixture(scope="module", params=MECHANISMS)
def published(request):
    """A table, and the motion of its mechanism."""
    model, end, every = MECHANISMS[request.param]()
    return table_of(model), moved(model.system(), jm.MinimumNorm(), end, every)


class TestPublishedMotions:
    def test_formulations_agree_and_never_contradict_the_verdicts(self, published):
        table, run = published
        assert len(run.times) > 9
        for q, v, t in zip(run.q, run.v, run.times, strict=True):
            found = jm.compare(run.system, q, v, t)
            assert all(found.succeeded())
            words = [one.word for one in found.formulations]
            by_word = dict(zip(words, found.acceleration_difference, strict=True))
            assert by_word.pop(jm.AugmentedLagrangian.word) < 1e-7
            assert max(by_word.values()) < 1e-9
            assert found.contradictions() == ()
            unique = np.asarray(found.solvability.reaction_unique)
            # Every joint of the chain has a component that is not unique.
            assert unique.any() == (table["name"] != "four-bar-chain-spatial")
            assert not unique.all()
            # Closer to each other than what counts as different.
            assert np.max(found.between_runs.reactions[unique], initial=0.0) < 1e-8

    def test_newton_and_euler(self, published):
        table, run = published
        report = run.reactions()
        for k in range(len(run.times)):
            acting = wrenches_of(report, k).values()
            poses = configuration_of(table, np.asarray(run.q[k]))
            v, a = np.asarray(run.v[k]), np.asarray(run.acceleration[k])
            assert max(newton.newton_euler_gap(table, poses, v, a, [*acting])) < 1e-10


# ---------------------------------------------------------------------------------------------
# A redundant mechanism with friction in a joint whose reaction is unique
# ---------------------------------------------------------------------------------------------


def sledge_and_rod():
    """A block rubs on a slope and carries a rod on two coincident pins."""
    along = np.array([np.cos(0.4), np.sin(0.4)])
    block = planar.Body("block", mass=2.0, inertia=0.1, position=(0.0, 0.0), velocity=-along)
    rod = planar.Body("rod", mass=1.0, inertia=0.1, position=(0.5, 0.0), velocity=-along)
    pins = [planar.Revolute(name, ("block", "rod"), (0.0, 0.0)) for name in ("pin", "twin")]
    slide = planar.Translational("slide", ("ground", "block"), (0.0, 0.0), along)
    rub = forces.CoulombFriction("rub", "slide", coefficient=0.25, radius=None, velocity=0.05)
    return jm.MultibodySystem([block, rod], [slide, *pins], forces=[rub], gravity=(0.0, -9.81))


@pytest.fixture(scope="module")
def sledge():
    system = sledge_and_rod()
    return moved(system, jm.MinimumNorm(), 0.5, 0.1)


@pytest.fixture(scope="module")
def others(sledge):
    """By the other formulations, its accelerations and reactions at the last state."""
    return {
        word: solved(sledge.system, formulation, sledge.q[-1], sledge.v[-1], 0.5)
        for word, (formulation, _) in FORMULATIONS.items()
    }


solved = eqx.filter_jit(solve_with_friction)


class TestCertifiedFriction:
    def test_its_motion_is_certified(self, sledge):
        system = sledge.system
        certificate = jm.certify(system, system.reference_q, system.initial_v)
        assert "unique" in str(certificate)
        assert "not certified" not in str(certificate).lower()

    @each_formulation
    def test_all_formulations_agree(self, sledge, others, word):
        found = others[word]
        size = float(jnp.max(jnp.abs(sledge.acceleration[-1])))
        tolerance = size * (1e-7 if word == "augmented-lagrangian" else 1e-9)
        np.testing.assert_allclose(found.acceleration, sledge.acceleration[-1], atol=tolerance)
        assert int(found.result == jm.RESULTS.successful)

    def test_another_formulation_moves_alike(self, sledge):
        found = moved(sledge.system, jm.Elimination(), 0.5, 0.1)
        np.testing.assert_allclose(found.q, sledge.q, atol=1e-9)
        np.testing.assert_allclose(found.v, sledge.v, atol=1e-9)
        apart = np.abs(found.multipliers - sledge.multipliers)
        names = sledge.system.structure.row_names
        rows = np.array([name.split(".")[0] in ("pin", "twin") for name in names])
        assert np.max(apart[:, ~rows]) < 1e-8
        assert np.min(np.max(apart[:, rows], axis=1)) > 1.0
        # Friction takes energy away.
        energy = [sum(sledge.system.energy(found.q[k], found.v[k], 0.1 * k)) for k in (0, -1)]
        assert float(energy[1] - energy[0]) < -1.0


def test_new_states_names_and_numbers_compile_nothing():
    """Of a rod on two coincident pins: gravity, start, end, tolerances, rows that are dropped."""
    traces = 0

    def watch(system, q, v, t):
        nonlocal traces
        traces += 1
        return q[2] + 100.0

    event = jm.StopWhen(watch)
    counts, ends = [], []
    for gravity, turned, spin, end, rtol, pin in (
        (9.81, 0.0, 0.0, 1.0, 1e-6, "pin"),
        (5.0, 0.3, 2.0, 0.7, 1e-7, "pin"),
        (0.0, -1.0, -3.0, 2.0, 1e-8, "twin"),
    ):
        place = (0.5 * np.cos(turned), 0.5 * np.sin(turned))
        body = planar.Body("rod", mass=2.0, inertia=0.1, position=place, angle=turned)
        pins = [planar.Revolute(name, ("ground", "rod"), (0.0, 0.0)) for name in ("pin", "twin")]
        system = jm.MultibodySystem([body], pins, gravity=(0.0, -gravity))
        v = spin * jnp.array([-place[1], place[0], 1.0])
        run = jm.simulate(
            system,
            system.reference_q,
            v,
            end,
            rtol=rtol,
            events=[event],
            formulation=jm.Elimination((f"{pin}.x", f"{pin}.y")),
        )
        counts.append(traces)
        ends.append(float(run.q[-1, 2]))
    assert counts[0] > 0
    assert counts == counts[:1] * 3
    np.testing.assert_allclose(ends[2], -1.0 - 3.0 * 2.0, atol=1e-6)
    assert len(set(ends)) == 3
