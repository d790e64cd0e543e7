"""Programs that ask nothing of Python while they run, so that JAX keeps them in its compilation
cache and exports them for accelerators; and motions whose inputs Diffrax does not check."""

from collections.abc import Callable, Iterator
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.extend import core
from representatives import representatives, representatives_at

import jaxmbs as jm
from jaxmbs._dynamics._integrate import integrate
from jaxmbs._dynamics._step_size import starting


def pendulum(*drivers: jm.Driver) -> jm.MultibodySystem:
    arm = jm.planar.Body("arm", mass=2.0, inertia=0.1, position=(0.5, 0.0))
    pin = jm.planar.Revolute("pin", ("ground", "arm"), (0.0, 0.0))
    return jm.MultibodySystem([arm], [pin], drivers, gravity=(0.0, -9.81))


def sleigh() -> jm.MultibodySystem:
    sledge = jm.planar.Body(
        "sledge", mass=2.0, inertia=0.1, position=(0.0, 0.0), velocity=(1.0, 0.0)
    )
    edge = jm.planar.KnifeEdge("edge", ("sledge",), (-0.3, 0.0), (1.0, 0.0))
    return jm.MultibodySystem([sledge], [edge])


FREE = pendulum()
DRIVEN = pendulum(jm.Driver("motor", "pin", "rotation", jm.motions.Linear(rate=6.28)))


def coin() -> jm.MultibodySystem:
    """It rolls upright: x, y, heading, roll."""

    def rows(q: Any, v: Any, t: Any) -> Any:
        return v[:2] - jnp.stack([jnp.cos(q[2]), jnp.sin(q[2])]) * v[3]

    return jm.GeneralizedSystem(
        ["x", "y", "heading", "roll"],
        mass_matrix=lambda q: jnp.eye(4),
        force=lambda q, v, t: jnp.zeros(4),
        constraints={"rolling": jm.generalized.VelocityConstraint(rows, 2)},
    )


def two(t: Any) -> Any:
    return jnp.stack([t, t + 1.0])


QUESTIONS: dict[str, tuple[Callable[..., Any], jm.MultibodySystem]] = {
    "analyze": (jm.analyze, FREE),
    "screen": (jm.screen, FREE),
    "singularity": (lambda s, q, v, t: jm.singularity(s, q, v, t, key=jax.random.key(0)), FREE),
    "certify": (jm.certify, FREE),
    "assemble": (lambda s, q, v, t: jm.assemble(s, q, t, throw=False), DRIVEN),
    "consistent_state": (jm.consistent_state, DRIVEN),
    "equilibrium": (lambda s, q, v, t: jm.equilibrium(s, q, t, throw=False), FREE),
    "kinematics": (lambda s, q, v, t: jm.kinematics(s, q, two(t), throw=False), DRIVEN),
    "holonomy": (lambda s, q, v, t: jm.holonomy(s, q, t, key=jax.random.key(0)), coin()),
    "inverse_dynamics": (
        lambda s, q, v, t: jm.inverse_dynamics(s, q, two(t), throw=False),
        DRIVEN,
    ),
    "simulate": (lambda s, q, v, t: jm.simulate(s, q, v, t, throw=False), FREE),
    "simulate, redundant, in space": (
        lambda s, q, v, t: jm.simulate(
            s, q, v, t, times=t * jnp.linspace(0.0, 1.0, 4), throw=False
        ),
        jm.mechanisms.door().system(),
    ),
    "simulate, knife edge": (lambda s, q, v, t: jm.simulate(s, q, v, t, throw=False), sleigh()),
}


# Programs that are in one of the others.
HELD = {"kinematics", "simulate", "simulate, knife edge"}


def equations(jaxpr: Any) -> Iterator[core.JaxprEqn]:
    """Of a program and of all that is in it."""
    kinds = (core.Jaxpr, core.ClosedJaxpr)
    for equation in jaxpr.eqns:
        yield equation
        for inner in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda x: isinstance(x, kinds)
        ):
            if isinstance(inner, kinds):
                yield from equations(getattr(inner, "jaxpr", inner))


def primitives(jaxpr: Any) -> Iterator[str]:
    return (equation.primitive.name for equation in equations(jaxpr))


class TestCallbacks:
    @pytest.mark.parametrize("name", representatives(QUESTIONS, *set(QUESTIONS) - HELD))
    def test_every_question_is_exported_for_accelerators_and_calls_nothing(self, name):
        question, system = QUESTIONS[name]
        state = (system, system.reference_q, system.initial_v, jnp.asarray(0.1))
        numbers, rest = eqx.partition(state, eqx.is_array)
        program = jax.jit(lambda x: eqx.filter(question(*eqx.combine(x, rest)), eqx.is_array))
        found = set(primitives(program.trace(numbers).jaxpr.jaxpr))
        assert {"jit", "pjit"} & found
        assert not {x for x in found if "callback" in x}
        # Some primitives show what is in them only here.
        exported = export.export(program, platforms=("cuda", "tpu"))(numbers)
        assert "callback" not in exported.mlir_module()

    def test_nor_do_derivatives(self):
        """Those of the multipliers of a redundant mechanism."""
        system = jm.mechanisms.door().system()

        def loads(q: Any) -> Any:
            equations = system.equations(q, system.initial_v, 0.0)
            return jm.formulations.MinimumNorm().solve(equations).multipliers

        for slope in (jax.jacfwd, jax.jacrev):
            program = jax.jit(slope(loads))
            exported = export.export(program, platforms=("cuda", "tpu"))(system.reference_q)
            assert "callback" not in exported.mlir_module()

    def test_a_callback_would_be_seen(self):
        def function(x: Any) -> Any:
            return eqx.error_if(x, x < 0, "negative")

        found = set(primitives(jax.make_jaxpr(function)(1.0).jaxpr))
        assert {x for x in found if "callback" in x}
        with pytest.raises(ValueError, match="platform"):
            export.export(jax.jit(function), platforms=("cuda",))(1.0)


class TestCopies:
    """Each copy of the equations and their factor is compiled again, and takes the longest there;
    a program holds few, whatever it asks for."""

    @pytest.mark.parametrize(
        ("name", "most"),
        representatives_at([("assemble", 1), ("kinematics", 2), ("simulate", 3)], 0, 2),
    )
    def test_of_the_factor(self, name, most):
        question = QUESTIONS["simulate, redundant, in space" if name == "simulate" else name][0]
        system = jm.mechanisms.driven_slider_crank().system()
        numbers, rest = eqx.partition((system, system.reference_q, system.initial_v), eqx.is_array)

        def asked(x: Any) -> Any:
            return eqx.filter(question(*eqx.combine(x, rest), jnp.asarray(0.1)), eqx.is_array)

        found = [x.params.get("name") for x in equations(jax.make_jaxpr(asked)(numbers).jaxpr)]
        assert 1 <= found.count("factor") <= most


def slope(t: Any, y: Any, rate: Any) -> Any:
    return -rate * y * jnp.cos(t)


TIMES = jnp.asarray([0.0, 0.3, 0.3, 1.1])
ADAPTIVE = dfx.PIDController(rtol=1e-6, atol=1e-8)


def method(controller: Any) -> Any:
    """A small one where steps have no error to look at."""
    return dfx.Euler() if isinstance(controller, dfx.ConstantStepSize) else dfx.Tsit5()


def ours(times: Any, rate: Any, step: Any, controller: Any, adjoint: Any, **options: Any) -> Any:
    return integrate(
        dfx.ODETerm(slope),
        method(controller),
        times,
        jnp.ones(2),
        rate,
        saveat=dfx.SaveAt(t1=True),
        adjoint=adjoint,
        stepsize_controller=starting(controller, step),
        max_steps=64,
        throw=False,
        **options,
    )


def diffrax_own(times: Any, rate: Any, step: Any, controller: Any, adjoint: Any) -> Any:
    return dfx.diffeqsolve(
        dfx.ODETerm(slope),
        method(controller),
        times[0],
        times[-1],
        step,
        jnp.ones(2),
        rate,
        saveat=dfx.SaveAt(ts=times, t1=True),
        adjoint=adjoint,
        stepsize_controller=controller,
        max_steps=64,
        throw=False,
    )


class TestIntegration:
    """Beside `diffrax.diffeqsolve` itself: the same to the last bit."""

    @pytest.mark.parametrize("times", [TIMES, -TIMES, TIMES[::-1]])
    @pytest.mark.parametrize(
        ("controller", "step"),
        representatives_at(
            [
                (ADAPTIVE, 0.01),
                (ADAPTIVE, None),
                (dfx.ConstantStepSize(), 0.05),
                (dfx.ClipStepSizeController(ADAPTIVE, [0.004]), 0.01),
            ],
            *(0, 1, 3),
        ),
        ids=["PID", "PID's own", "constant", "clipped"],
    )
    def test_states_times_and_steps(self, controller, step, times):
        # A first step has no sign here.
        signed = None if step is None else step * float(jnp.sign(times[-1] - times[0]))
        plan = controller
        if isinstance(controller, dfx.ClipStepSizeController) and times[0] > times[-1]:
            plan = dfx.ClipStepSizeController(ADAPTIVE, [float(times[0]) - 0.004])
        adjoint = dfx.RecursiveCheckpointAdjoint()
        given = None if step is None else jnp.asarray(step)
        found = ours(times, 2.0, given, plan, adjoint)
        exact = diffrax_own(times, 2.0, signed, plan, adjoint)
        np.testing.assert_array_equal(found.ys, exact.ys)
        np.testing.assert_array_equal(found.ts, exact.ts)
        assert int(found.stats["num_steps"]) == int(exact.stats["num_steps"])

    @pytest.mark.parametrize(
        "adjoint",
        representatives_at(
            [dfx.RecursiveCheckpointAdjoint(), dfx.ForwardMode(), dfx.BacksolveAdjoint()], 1, 2
        ),
        ids=lambda x: type(x).__name__,
    )
    def test_derivatives(self, adjoint):
        def derivative(solve: Any) -> Any:
            def last(rate: Any) -> Any:
                steps = dfx.ConstantStepSize()
                found = solve(TIMES, rate, jnp.asarray(0.05), steps, adjoint)
                return jnp.sum(found.ys[1:] ** 2)

            forward = isinstance(adjoint, dfx.ForwardMode)
            return jax.jit((jax.jacfwd if forward else jax.jacrev)(last))(2.0)

        np.testing.assert_array_equal(derivative(ours), derivative(diffrax_own))

    def test_in_a_batch_each_run_has_its_own_times(self):
        def alone(end: Any) -> Any:
            found = ours(end * TIMES, 2.0, 0.01 * end, ADAPTIVE, dfx.ForwardMode())
            return found.ys, found.ts

        ends = jnp.asarray([0.3, 0.8])
        for batch, single in zip(jax.vmap(alone)(ends), alone(ends[1]), strict=True):
            np.testing.assert_allclose(batch[1], single, rtol=1e-14)

    def test_what_an_early_end_leaves_out_is_infinite(self):
        stop = dfx.Event(lambda t, y, args, **_: t > 0.5)
        found = ours(TIMES, 2.0, jnp.asarray(0.01), ADAPTIVE, dfx.ForwardMode(), event=stop)
        np.testing.assert_array_equal(np.isfinite(found.ts), [True, True, True, True, False])
        assert 0.5 < float(found.ts[3]) < 1.1

    @pytest.mark.parametrize("controller", [ADAPTIVE, dfx.ClipStepSizeController(ADAPTIVE, [0.1])])
    def test_implicit_methods_find_the_tolerances(self, controller):
        given: Any = starting(controller, jnp.asarray(0.1))
        assert isinstance(given, dfx.AbstractAdaptiveStepSizeController)
        assert (given.rtol, given.atol, given.norm) == (1e-6, 1e-8, ADAPTIVE.norm)

    def test_and_none_where_there_are_none(self):
        given = starting(dfx.ConstantStepSize(), jnp.asarray(0.1))
        assert not isinstance(given, dfx.AbstractAdaptiveStepSizeController)


@pytest.fixture(scope="module")
def run() -> Callable[..., jm.results.Trajectory]:
    """Motions of the pendulum at traced times, in one program."""
    q, v = FREE.reference_q, FREE.initial_v

    @jax.jit
    def motion(times: Any) -> jm.results.Trajectory:
        own = {"stabilisation": jm.runs.Baumgarte(), "monitor": False, "rtol": 1e-10}
        return jm.simulate(FREE, q, v, times[-1], start=times[0], times=times, **own)

    return lambda times: motion(jnp.asarray(times))


class TestTracedTimes:
    def test_times_may_stand_still(self, run):
        found = run([0.0, 0.4, 0.4, 1.0])
        assert bool(found.result == jm.results.RESULTS.successful)
        np.testing.assert_array_equal(found.times, [0.0, 0.4, 0.4, 1.0])
        np.testing.assert_array_equal(found.q[1], found.q[2])

    @pytest.mark.parametrize(
        "times",
        [
            [0.0, 1.0, 0.5, 2.0],
            [0.0, -0.5, 0.2, 1.0],
            [0.0, 2.0, 1.0, -1.0],
            [0.0, -0.4, -0.4, -1.0],
            [0.0, 1.0, np.nan, 2],
        ],
    )
    def test_times_that_go_back_are_told_by_the_result(self, run, times):
        found = run(times)
        assert bool(found.result == jm.results.RESULTS.times_not_in_order)
        assert not np.any(np.isfinite(found.q))
