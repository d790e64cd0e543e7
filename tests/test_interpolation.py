"""States within a step of Dormand and Prince's method of eighth order."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import oracle_order_conditions as conditions
import pytest
from scipy.interpolate import CubicSpline

import jaxmbs as jm
from jaxmbs import forces, motions, planar
from jaxmbs._dynamics._runge_kutta import (
    DOPRI8_NODES,
    DOPRI8_QUARTICS,
    DOPRI8_USED,
    Inside,
    inside_stages,
    StepInterpolation,
    tableau_of,
)


def stages_of(solver):
    found = inside_stages(solver)
    assert found is not None
    return found


SOLVER = diffrax.Dopri8()
STAGES = stages_of(SOLVER)
TABLEAU = tableau_of(SOLVER, STAGES)
ORDER = 6


def step(slope, y0, h):
    """Ends of a step and h times the slopes of its used stages, for y' = slope(t, y)."""
    slopes, y = np.zeros((len(TABLEAU.nodes), len(y0))), y0
    for k, (weights, node) in enumerate(zip(TABLEAU.weights, TABLEAU.nodes, strict=True)):
        y = y0 + h * weights @ slopes
        slopes[k] = slope(node * h, y)
    return {"y0": jnp.asarray(y0), "y1": jnp.asarray(y), "k": jnp.asarray(h * slopes[STAGES.used])}


class TestStages:
    def test_those_of_the_order_conditions(self):
        weights, quartics = conditions.inside_stages(
            *conditions.dopri8(), conditions.DOPRI8_NODES, conditions.DOPRI8_USED
        )
        np.testing.assert_array_equal(DOPRI8_NODES, conditions.DOPRI8_NODES)
        np.testing.assert_allclose(STAGES.weights[:, :-1], weights, rtol=0, atol=1e-9)
        np.testing.assert_allclose(DOPRI8_QUARTICS, quartics[DOPRI8_USED], rtol=0, atol=1e-7)

    def test_the_method_is_as_it_was(self):
        own = tableau_of(SOLVER)
        kept = np.delete(np.arange(len(TABLEAU.nodes)), [13, 14, 15])
        np.testing.assert_array_equal(TABLEAU.weights[np.ix_(kept, kept)], own.weights)
        np.testing.assert_array_equal(TABLEAU.nodes[kept], own.nodes)
        np.testing.assert_array_equal(TABLEAU.error[kept], own.error)
        assert np.all(TABLEAU.weights[-1, 13:] == 0)
        assert np.all(TABLEAU.error[13:16] == 0)

    @pytest.mark.parametrize("x", [0.1, 0.4, 0.5, 0.83, 1.0])
    def test_order_conditions(self, x):
        """By interpolating the unit vectors: the weights of the slopes at x."""
        count = len(DOPRI8_USED)
        given = {"y0": jnp.zeros(count), "k": jnp.eye(count), "t0": 0.0, "t1": 1.0}
        end = jnp.asarray(TABLEAU.weights[-1, DOPRI8_USED])
        weights = np.zeros(len(TABLEAU.nodes))
        weights[DOPRI8_USED] = StepInterpolation(y1=end, **given).evaluate(x)
        rest = conditions.elementary(TABLEAU.weights) @ weights - conditions.exact([x])[:, 0]
        assert np.max(np.abs(rest[conditions.SIZES <= ORDER])) < 1e-13
        of_seventh = np.abs(rest / conditions.SYMMETRIES)[conditions.SIZES == ORDER + 1]
        assert np.max(of_seventh) < 2e-7

    @pytest.mark.parametrize("solver", [diffrax.Tsit5(), diffrax.Dopri5(), diffrax.Kvaerno5()])
    def test_other_methods_have_none(self, solver):
        assert inside_stages(solver) is None


class TestInterpolation:
    @pytest.mark.parametrize("power", range(1, 9))
    def test_powers_of_time(self, power):
        """Those of up to the sixth exactly; the conditions of quadrature beyond are almost
        fulfilled."""
        h, y0 = 0.8, np.zeros(1)
        given = step(lambda t, y: np.array([power * t ** (power - 1)]), y0, h)
        x = np.linspace(0.0, 1.0, 21)
        evaluate = StepInterpolation(t0=0.0, t1=h, **given).evaluate
        found = jax.vmap(evaluate)(jnp.asarray(h * x))[:, 0]
        near = 1e-15 if power <= ORDER else 2e-4
        np.testing.assert_allclose(found, (h * x) ** power, rtol=0, atol=near)

    def test_ends_and_their_slopes(self, rng):
        """Whatever the slopes are: also of an end that a projection has moved."""
        y0, y1, k = (jnp.asarray(rng.normal(size=x)) for x in ((4,), (4,), (13, 4)))
        path = StepInterpolation(t0=2.0, t1=2.5, y0=y0, y1=y1, k=0.5 * k)
        for t, state, slope in ((2.0, y0, k[0]), (2.5, y1, k[-1])):
            found, rate = jax.jvp(path.evaluate, (t,), (1.0,))
            np.testing.assert_allclose(found, state, rtol=0, atol=1e-15)
            np.testing.assert_allclose(rate, slope, rtol=0, atol=1e-13)
        np.testing.assert_allclose(path.evaluate(2.0, 2.5), y1 - y0, rtol=0, atol=1e-15)

    def test_measured_order(self):
        """Of a pendulum, against steps of a sixteenth: the error of one step falls with the seventh
        power of its length."""

        def slope(t, y):
            del t
            return np.array([y[1], -10 * np.sin(y[0])])

        x, errors, lengths = (0.15, 0.35, 0.55, 0.75, 0.9), [], (0.2, 0.1)
        for h in lengths:
            y0 = np.array([1.0, 2.0])
            path = StepInterpolation(t0=0.0, t1=h, **step(slope, y0, h))
            worst = 0.0
            for part in x:
                y = y0
                for _ in range(16):
                    y = np.asarray(step(slope, y, part * h / 16)["y1"])
                worst = max(worst, np.max(np.abs(path.evaluate(part * h) - y)))
            errors.append(worst)
        assert errors[1] > 1e-13
        assert np.log2(errors[0] / errors[1]) > 6.7

    def test_a_run_of_no_length(self):
        """A number, and a derivative."""
        y = jnp.array([1.0, 2.0])

        def state(t):
            return StepInterpolation(t0=t, t1=t, y0=y, y1=y, k=jnp.zeros((13, 2))).evaluate(t)

        found, rate = jax.jvp(state, (1.0,), (1.0,))
        np.testing.assert_array_equal(found, y)
        assert np.all(np.isfinite(rate))


@pytest.mark.parametrize(
    ("t0", "t1", "within"), [(0.1, 0.2, False), (0.1, 0.21, True), (0.25, 0.3, False)]
)
def test_what_is_asked_within_a_step(t0, t1, within):
    """Times at its ends are not within it."""
    times = jnp.array([0.0, 0.1, 0.2, 0.22, 1.0])
    t0, t1 = jnp.asarray(t0), jnp.asarray(t1)
    assert bool(Inside(times, False).wanted(t0, t1)) == within
    assert bool(Inside(times, True).wanted(t0, t1))


KNOT, STIFFNESS = 0.4, 60.0
KNOTS, VALUES = [0.0, KNOT, 0.8, 1.2], [0.0, 0.0, 0.3, 0.3]
BEHIND = np.concatenate([[0.0], KNOT + np.array([1e-4, 1e-3, 0.003, 0.01, 0.03]), [0.5]])


def both_blocks(t):
    """Place and velocity of the driven one, s(t), and of the free one, x'' = w^2 (s + 1 - x): on
    every piece of the spline x = 1 + s - s'' / w^2 + a cos + b sin."""
    table = CubicSpline(KNOTS, VALUES, bc_type="not-a-knot")
    w, x, rate = np.sqrt(STIFFNESS), 1.0, 0.0
    starts = [start for start in KNOTS if start < t] or [0.0]
    for start, end in zip(starts, [*starts[1:], t], strict=True):
        bend = table.c[0, KNOTS.index(start)] * 6
        a = x - 1 - table(start) + table(start, 2) / w**2
        b = (rate - table(start, 1) + bend / w**2) / w
        c, s = np.cos(w * (end - start)), np.sin(w * (end - start))
        inside = table(start, 2) + bend * (end - start)
        x = 1 + table(end) - inside / w**2 + a * c + b * s
        rate = table(end, 1) - bend / w**2 + w * (b * c - a * s)
    return (table(t), table(t, 1)), (x, rate)


@pytest.fixture(scope="module")
def system():
    """A block that a spring ties to one that a driver moves."""
    bodies = [
        planar.Body(name, mass=1.0, inertia=0.1, position=(x, 0.0))
        for name, x in (("driven", 0.0), ("free", 1.0))
    ]
    slides = [
        planar.Translational(f"slide {body.name}", ("ground", body.name), (0.0, 0.0), (1.0, 0.0))
        for body in bodies
    ]
    motion = motions.Table(times=KNOTS, values=VALUES)
    spring = forces.SpringDamper(
        "spring", ("driven", "free"), points=[(0.0, 0.0), (1.0, 0.0)], stiffness=STIFFNESS
    )
    return jm.MultibodySystem(
        bodies,
        slides,
        [jm.Driver("motor", "slide driven", "translation", motion)],
        forces=[spring],
        gravity=(0.0, 0.0),
    )


class TestRuns:
    def run(self, system, times, v=None, **options):
        v = system.initial_v if v is None else v
        options = {"solver": SOLVER, "times": times, "consistent": True, **options}
        options |= {"monitor": False}
        return jm.simulate(system, system.reference_q, v, times[-1], **options)

    @pytest.mark.thorough
    def test_behind_a_knot(self, system):
        """There the third derivative of the motion jumps, and the step has no past. Against the
        closed form."""
        found = self.run(system, BEHIND, rtol=1e-9, atol=1e-10)
        expected = [both_blocks(t) for t in BEHIND]
        for slide in (0, 1):
            exact = np.array([own[slide] for own in expected])
            np.testing.assert_allclose(found.q[:, 3 * slide], exact[:, 0], rtol=0, atol=1e-9)
            np.testing.assert_allclose(found.v[:, 3 * slide], exact[:, 1], rtol=0, atol=1e-8)
        still = np.array([1, 2, 4, 5])
        np.testing.assert_allclose(found.q[:, still], 0.0, atol=1e-9)
        np.testing.assert_allclose(found.v[:, still], 0.0, atol=1e-8)

    @pytest.mark.thorough
    def test_behind_a_knot_as_with_steps_that_end_there(self, system):
        """At all times that are asked for."""
        controller = diffrax.ClipStepSizeController(
            diffrax.PIDController(rtol=1e-12, atol=1e-13),
            step_ts=jnp.sort(jnp.append(system.knots(), jnp.asarray(BEHIND[1:]))),
        )
        exact = self.run(system, BEHIND, controller=controller)
        found = self.run(system, BEHIND, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(found.q, exact.q, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.v, exact.v, rtol=0, atol=1e-8)

    @pytest.mark.thorough
    def test_in_a_batch(self, system):
        """Some of whose runs ask for states within a step where others do not."""
        # As many as above, whose program the single runs share.
        times = np.linspace(0.0, 0.6, 7)
        free = jnp.asarray([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
        starts = jnp.stack([k * free for k in (0.0, 1.0, 20.0)])
        many = jax.vmap(lambda v: self.run(system, times, v))(starts)
        for k, v in enumerate(starts):
            alone = self.run(system, times, v)
            np.testing.assert_allclose(many.q[k], alone.q, rtol=0, atol=1e-12)
            np.testing.assert_allclose(many.v[k], alone.v, rtol=0, atol=1e-11)

    @pytest.mark.thorough
    def test_the_end_does_not_depend_on_what_is_asked_for(self, system):
        """With stages of the interpolant and without. (Steps of one length, as those of a
        controller begin with errors that are rounding.)"""
        steps = {"controller": diffrax.ConstantStepSize(), "first_step": 0.03}
        few, many = (self.run(system, np.linspace(0.0, 1.0, n), **steps) for n in (2, 41))
        np.testing.assert_allclose(few.q[-1], many.q[-1], rtol=0, atol=1e-14)
        np.testing.assert_allclose(few.v[-1], many.v[-1], rtol=0, atol=1e-13)
