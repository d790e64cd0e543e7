"""The usual reverse mode of a run, from what is written down of its steps: against differences, and
against that which makes the steps again (Diffrax's checkpoints).

A beam on three parallel links of one length, of which two would do, and a tail on it that a driver
turns between two knots.
"""

import functools

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivative_checks import difference, NODES
from test_motion_derivatives import parallel_links

import jaxmbs as jm
from jaxmbs import motions, planar
from jaxmbs._dynamics import _integrate, _run
from jaxmbs._dynamics._choices import Integration


NAMES = "weight", "place of links", "first knot", "rise", "speed", "end", "time"
POINT = np.array([2.0, 0.4, 0.031, 0.07, 0.3, 0.2, 0.047])


def braced(x):
    """By a weight, the place of the upper ends of all links, and when the driver acts."""
    weight, across, begin, rise = x[:4]

    bodies = [
        planar.Body("beam", mass=2.0, inertia=0.3, position=(0.6, 0.5)),
        planar.Body("tail", mass=0.5, inertia=0.02, position=(1.4, 0.5)),
    ]
    turn = motions.Step(times=jnp.stack([begin, begin + rise]), values=jnp.array([0.0, 0.3]))
    return jm.MultibodySystem(
        bodies,
        [*parallel_links(across), planar.Revolute("T", ("beam", "tail"), (1.2, 0.5))],
        [jm.Driver("motor", "T", "rotation", turn)],
        gravity=jnp.array([0.0, -4.9]) * weight,
    )


WEIGHTS = np.random.default_rng(0).normal(size=(3, 6))


def objective(x, adjoint=None, **settings):
    """A number of states, accelerations and times, of a start that is projected; the `result`."""
    system = braced(x)
    run = jm.simulate(
        system,
        system.reference_q,
        system.initial_v + x[4] * jnp.arange(6.0),
        x[5],
        times=jnp.stack([jnp.zeros(()), x[6], 1.002 * x[6], x[5]]),
        consistent=True,
        adjoint=adjoint,
        throw=False,
        **settings,
    )
    q, v, acceleration = jnp.asarray(WEIGHTS)
    rows = run.q @ q + run.v @ v + 0.01 * run.acceleration @ acceleration
    value = jnp.sum(rows * jnp.array([0.3, 1.0, -0.8, 1.1])) + run.times[-1]
    return value, (run.result, run.statistics.accepted)


def few(monkeypatch, *, room, most=2**16):
    """A tape with room for so many steps at a time, and so many in all."""
    monkeypatch.setattr(_integrate, "_BYTES", 1)
    monkeypatch.setattr(_integrate, "_LEAST_STEPS", room)
    monkeypatch.setattr(_integrate, "MOST_STEPS", most)


@pytest.fixture(scope="module")
def short():
    """Value and derivative by a tape of three steps at a time, of sixty at most."""
    with pytest.MonkeyPatch.context() as patch:
        few(patch, room=3, most=60)
        function = functools.partial(objective, rtol=1e-11, atol=1e-13, monitor=False)
        slope = jax.value_and_grad(function, has_aux=True)
        return jax.jit(slope).lower(jnp.asarray(POINT)).compile()


def by_differences(short, point, which, step=5e-4):
    move = step * np.eye(len(point))[which]
    return difference([short(point + n * move)[0][0] for n in NODES], step)


def test_against_differences(short):
    """Of a redundant mechanism; most of its steps are made again."""
    (_, (result, accepted)), slope = short(POINT)
    assert result == jm.results.RESULTS.successful
    assert accepted > 9
    for k, name in enumerate(NAMES):
        expected = by_differences(short, POINT, k)
        np.testing.assert_allclose(slope[k], expected, rtol=1e-6, atol=1e-6, err_msg=name)


def test_a_run_without_length(short):
    """All of its states are the start."""
    there = POINT.copy()
    there[5:] = 0.0
    (_, (result, accepted)), slope = short(there)
    assert result == jm.results.RESULTS.successful
    assert accepted == 0
    for k in (0, 1, 4):
        expected = by_differences(short, there, k)
        np.testing.assert_allclose(slope[k], expected, rtol=0, atol=1e-7)


def test_a_run_that_ends_early(short):
    """Sixty steps are not enough, which is said; the state in which it ends has a derivative. (Its
    weight draws the beam away from where the links lie flat.)"""
    there = POINT.copy()
    there[0], there[5] = -2.0, 9.0
    (_, (result, accepted)), slope = short(there)
    assert result == jm.results.RESULTS.too_many_steps
    assert accepted == 60
    assert np.isfinite(slope).all()
    assert "RecursiveCheckpointAdjoint" in jm.results.RESULTS[result]


def test_an_invalid_start(short):
    """It has no derivative, and says why."""
    there = POINT.copy()
    there[4] = np.nan
    (_, (result, _)), slope = short(there)
    assert result == jm.results.RESULTS.state_not_valid
    assert np.isnan(slope).any()


@pytest.mark.thorough
@pytest.mark.parametrize("settings", [{}, {"stabilisation": jm.runs.Baumgarte(20.0, 20.0)}])
def test_against_checkpoints(settings, monkeypatch):
    """What is kept of steps does not matter; checkpoints differentiate the lengths of steps."""
    slopes = []
    for room, adjoint in ((2**16, None), (2, None), (0, dfx.RecursiveCheckpointAdjoint())):
        few(monkeypatch, room=room)
        exact = {"rtol": 1e-11, "atol": 1e-13, "max_steps": 300}
        function = functools.partial(objective, adjoint=adjoint, **exact, **settings)
        slopes.append(jax.jit(jax.grad(lambda x, f=function: f(x)[0]))(jnp.asarray(POINT)))
    np.testing.assert_allclose(slopes[1], slopes[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(slopes[2], slopes[0], rtol=1e-6, atol=1e-6)


FORMULATIONS = [
    jm.formulations.UdwadiaKalaba(),
    jm.formulations.Elimination(),
    jm.formulations.NullSpace(),
    jm.formulations.MinimumNorm(weights=np.linspace(1.0, 2.0, 4)),
]


@pytest.mark.thorough
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=lambda f: type(f).__name__)
def test_other_formulations(formulation, monkeypatch):
    """Of a pendulum on two pins in one place; reactions too."""
    few(monkeypatch, room=2)

    def function(x, adjoint):
        rod = planar.Body("rod", mass=2.0, inertia=x[0], position=(0.5, 0.0))
        pins = [planar.Revolute(name, ("ground", "rod"), (0.0, 0.0)) for name in ("pin", "twin")]
        system = jm.MultibodySystem([rod], pins, gravity=jnp.stack([0.0 * x[1], -x[1]]))
        run = jm.simulate(
            system,
            system.reference_q,
            system.initial_v,
            0.3,
            times=jnp.array([0.0, 0.11, 0.3]),
            formulation=formulation,
            adjoint=adjoint,
            throw=False,
            max_steps=100,
        )
        weights = jnp.asarray(np.random.default_rng(1).normal(size=run.multipliers.shape))
        return jnp.sum(run.q) + jnp.sum(weights * run.multipliers)

    found, expected = (
        jax.jit(jax.grad(lambda x, a=adjoint: function(x, a)))(jnp.array([0.2, 9.81]))
        for adjoint in (None, dfx.RecursiveCheckpointAdjoint())
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.thorough
def test_many_at_once(monkeypatch):
    """Lanes whose runs have other numbers of steps, some of which are made again."""
    few(monkeypatch, room=4)
    slope = jax.grad(lambda x: objective(x, max_steps=200, monitor=False)[0])
    points = POINT * np.array([[1.0], [1.0], [1.0]])
    points[1, 5], points[2, 4] = 0.06, 1.5
    many = jax.jit(jax.vmap(slope))(jnp.asarray(points))
    one = jax.jit(slope)
    for own, point in zip(many, points, strict=True):
        np.testing.assert_allclose(own, one(jnp.asarray(point)), rtol=1e-8, atol=1e-8)


def test_second_derivatives_are_refused():
    """The forward mode of this reverse mode would take states of steps for constants."""
    slope = jax.grad(lambda x: objective(x, monitor=False)[0])
    with pytest.raises(RuntimeError, match="take forward mode twice"):
        jax.eval_shape(lambda x: jax.jvp(slope, (x,), (x,)), jnp.asarray(POINT))


@pytest.mark.thorough
def test_without_projection_off_the_constraints():
    """Rows contradict each other there: accelerations are a least square. (Saved ones are those of
    the equations without what stabilises them.)"""
    links = [
        planar.Distance(f"D{k}", ("ground", "beam"), points=[(0.5 * k, 0.0), (0.5 * k + 0.4, 0.5)])
        for k in range(3)
    ]
    beam = planar.Body("beam", mass=2.0, inertia=0.3, position=(0.6, 0.5))
    system = jm.MultibodySystem([beam], links, gravity=(0.0, -9.81))

    def function(x, adjoint):
        run = jm.simulate(
            system,
            system.reference_q + 1e-3 * x * jnp.array([0.3, 0.1, 0.4]),
            x * jnp.array([0.3, 0.2, 0.5]),
            0.01,
            stabilisation=jm.runs.Baumgarte(10.0, 10.0),
            adjoint=adjoint,
            monitor=False,
            throw=False,
            max_steps=100,
        )
        return run.acceleration[0]

    x = jnp.asarray(1.0)
    found = jax.jit(jax.jacrev(lambda x: function(x, None)))(x)
    expected = jax.jit(jax.jacfwd(lambda x: function(x, dfx.ForwardMode())))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


class Ends(eqx.Module):
    """A force that is none after some time."""

    until: jax.Array

    def __call__(self, frames, twists, t):
        del frames, twists
        return [(jnp.stack([jnp.where(t > self.until, jnp.nan, 1.0), jnp.zeros(())]), 0.0)]


@pytest.mark.thorough
def test_a_run_that_fails_after_a_full_segment(monkeypatch):
    """Its last attempts are no steps, and leave what is kept of the others alone."""

    def function(x):
        rod = planar.Body("rod", mass=2.0, inertia=0.2, position=(0.5, 0.0))
        system = jm.MultibodySystem(
            [rod],
            [planar.Revolute("pin", ("ground", "rod"), (0.0, 0.0))],
            forces=[jm.forces.UserForce("ends", Ends(jnp.asarray(0.2)), [("rod", (1.0, 0.0))])],
            gravity=jnp.stack([0.0 * x, -x]),
        )
        v = system.initial_v
        run = jm.simulate(
            system, system.reference_q, v, 0.3, monitor=False, throw=False, max_steps=400
        )
        return jnp.sum(run.q[-1]), run.statistics

    def slope(room):
        few(monkeypatch, room=room)
        return jax.jit(jax.grad(function, has_aux=True))(jnp.asarray(9.81))

    whole, statistics = slope(400)
    assert statistics.rejected > 0
    for room in (int(statistics.accepted), 2):
        np.testing.assert_allclose(slope(room)[0], whole, rtol=1e-10)


class TestWhere:
    """Which runs have a tape."""

    def sizes(self, system=None, **settings):
        system = braced(POINT) if system is None else system
        usual = {"solver": dfx.Dopri8(), "controller": None, "events": (), "max_steps": 10**6}
        others = {
            "formulation": jm.formulations.MinimumNorm(),
            "stabilisation": jm.runs.Projection(),
            "tolerances": (jnp.asarray(1e-8), jnp.asarray(1e-10)),
            "adjoint": None,
            "progress": None,
            "first_step": None,
            "monitored": False,
        }
        integration = Integration(**(others | usual | settings))
        return _run.tape_sizes(integration, system, None)

    def test_long_runs_are_bounded(self):
        found = self.sizes()
        assert found is not None
        assert found.steps == _integrate.MOST_STEPS
        assert found.room * found.segments >= found.steps

    def test_short_runs_are_kept_as_a_whole(self):
        assert self.sizes(max_steps=16) == (16, 16, 1)

    @pytest.mark.parametrize(
        "settings",
        [
            {"solver": dfx.Kvaerno5()},
            {"controller": dfx.StepTo(jnp.array([0.0, 1.0]))},
            {"events": (jm.runs.StopWhen(lambda system, q, v, t: jnp.asarray(t) - 0.5),)},
        ],
    )
    def test_others_have_checkpoints(self, settings):
        assert self.sizes(**settings) is None

    def test_functions_of_users_have_checkpoints(self):
        """They may hold numbers that a rule does not see."""
        size = jnp.array(2.0)
        system = jm.GeneralizedSystem(
            ["x"], mass_matrix=lambda q: size * jnp.eye(1), constraints={}
        )
        assert self.sizes(system) is None
