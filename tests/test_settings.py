"""Every setting of every public function and class has its range, and what is out of it is refused
in one sentence before anything is computed. The table is in `settings_table.py`."""

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import optimistix
import pytest
from helpers import everything_public
from settings_table import FORCE, MASS, MODEL, outcome, Q, STUDY, SYSTEM, TABLE, V
from settings_values import with_defaults

import jaxmbs as jm
import jaxmbs.io
import jaxmbs.plot
import jaxmbs.report
import jaxmbs.view
from jaxmbs import design, elastic, finite_elements
from jaxmbs._dynamics._choices import chosen_controller, chosen_events
from jaxmbs._dynamics._trajectory import saved_times
from jaxmbs._limits import ATOL, NumberRange, RANK, RTOL


# Type checkers know most of what is refused here, and not all that is accepted.
ANY: Any = jm


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "setting"),
        [(name, setting) for name, (_, settings) in TABLE.items() for setting in settings],
    )
    def test_a_value_that_cannot_be_is_refused_in_a_sentence(self, name, setting):
        make, settings = TABLE[name]
        found = [outcome(make, setting, value) for value in settings[setting]]
        assert [text for text in found if text] == []

    @pytest.mark.thorough
    def test_also_where_no_annotation_is_checked(self):
        """As users call it: the tests check annotations at run time, which nobody else does."""
        script = (
            "import jax; jax.config.update('jax_enable_x64', True)\n"
            "import settings_table\n"
            "print(*settings_table.wrong(), sep='\\n')"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr

    def test_the_table_finds_what_is_accepted(self):
        """And what is refused without a name, or by an annotation."""

        def anything(setting: Any) -> None:
            del setting

        def nameless(setting: Any) -> None:
            raise ValueError(f"cannot be, got {setting!r}.")

        assert outcome(anything, "setting", 3) == "3 is accepted"
        assert "without a name" in outcome(nameless, "setting", "setting")

    @pytest.mark.parametrize(
        ("make", "says"),
        [
            (
                lambda: ANY.analyze(SYSTEM, Q, criterion=jm.criteria.SVD),
                "brackets behind it: SVD(...)",
            ),
            (lambda: ANY.analyze(SYSTEM, Q, criterion="svd"), "must be QR(), SVD() or Rank"),
            (lambda: jm.criteria.QR(3), "less than 1, got 3; 1e-9 is usual."),
            (lambda: ANY.design.Descent(steps=3.0), "got 3.0; write it without a decimal point."),
            (lambda: design.Motion(1.0, count=1), "at least 2 (the start and the end), got 1."),
            (lambda: simulated(rtol=0.0, atol=1e-16), "not both be less than 2.2e-14, which is"),
            (lambda: simulated(rtol=1e-15, atol=1e-15), "got 1e-15 and 1e-15; rtol=1e-8 and"),
            (lambda: design.Motion(1.0, rtol=0.0, atol=1e-15), "rtol and atol must not both"),
            (lambda: simulated(end=0.0), "end must lie behind start, got end 0 s and start 0 s."),
            (lambda: simulated(every=0.1, times=[0.0, 1.0]), "`every` or `times`, not both."),
            (lambda: simulated(every=1e-8), "saves 1e+08 states, more than 10,000,000; make it"),
            (lambda: simulated(times=[0.5, 1.0]), "from start to end, 0 s to 1 s, got times from"),
            (lambda: simulated(controller=diffrax.ConstantStepSize()), "first_step must be given"),
            (
                lambda: simulated(events=[jm.runs.StopAtSingular()], monitor=False),
                "leave monitor=True",
            ),
            (
                lambda: jm.formulations.Elimination(("A.x", "A.x")),
                "drop names A.x twice; name each row once.",
            ),
            (lambda: jm.compare(SYSTEM, Q, V, formulations=[]), "at least one formulation"),
            (
                lambda: design.Study(MODEL, [MASS], run=design.Motion(1.0), t=1.0),
                "end of the run must lie behind the start t, got end 1 s and t 1 s.",
            ),
        ],
    )
    def test_the_fix_is_said(self, make, says):
        with pytest.raises((TypeError, ValueError)) as caught:
            make()
        assert says in str(caught.value)


def simulated(**given: Any) -> jm.results.Trajectory:
    return ANY.simulate(SYSTEM, Q, V, **({"end": 1.0} | given))


# ---------------------------------------------------------------------------------------------
# What is good
# ---------------------------------------------------------------------------------------------

EPS = float(np.finfo(np.float64).eps)

GOOD: tuple[Callable[[], Any], ...] = (
    *(
        with_defaults(criterion, tolerance=x)
        for criterion in (jm.criteria.QR, jm.criteria.SVD, jm.criteria.RankComparison)
        for x in (EPS, 1e-12, 0.999, np.float32(1e-6), np.array(1e-9), jnp.asarray(1e-9))
    ),
    lambda: jm.criteria.QR(method=jm.criteria.BatchedQR()),
    lambda: jm.formulations.MinimumNorm([1e-300, 1.0], clean=False),
    lambda: ANY.formulations.MinimumNorm(np.ones(3, int), clean=np.True_),
    lambda: jm.formulations.Elimination("A.x"),
    lambda: jm.formulations.Elimination(["A.x", "A.y"]),
    lambda: jm.formulations.UdwadiaKalaba(True),
    lambda: jm.formulations.AugmentedLagrangian(1e15, 1),
    lambda: ANY.formulations.AugmentedLagrangian(1e-12, np.int64(2**31 - 1)),
    lambda: jm.runs.Baumgarte(1e-9, 1e12),
    lambda: jm.runs.StopWhen(lambda system, q, v, t: q[0]),
    lambda: jm.Cases({MASS: np.array([1, 2])}, origin="mine"),
    lambda: jm.Cases({"q": jnp.zeros((1, 9)), MASS: [1]}),
    lambda: jm.Cases.uniform({MASS: (1.0, 1.0)}, 1, seed=2**127),
    lambda: ANY.Cases.sobol({"q": (np.zeros(9), np.ones(9))}, np.int32(3), seed=np.uint64(0)),
    lambda: jm.sweeps.tolerances(MODEL, 0.0, 1, seed=0, uniform=True),
    lambda: ANY.sweeps.tolerances(MODEL, {MASS: np.float32(0.1)}, 2, seed=0),
    lambda: jm.sweeps.Certification(jm.criteria.SVD(), every=True),
    lambda: design.BFGS(steps=1, tolerance=0.9, method=optimistix.NonlinearCG(1e-3, 1e-3)),
    lambda: design.Descent(steps=1, rate=1.0, every=1, method=optax.sgd(1e-2)),
    lambda: design.SLSQP(1, 1e-16),
    lambda: design.TrustRegion(1, 0.999),
    lambda: design.Peak(FORCE, 1),
    lambda: design.Peak(FORCE, exponent=1e6),
    lambda: design.Force(("A", "B"), "crank"),
    lambda: design.AtMost(lambda response: response.q[0, 0], -1),
    lambda: design.Driven([0.0]),
    lambda: design.Motion(1, count=2, rtol=0.0, atol=100 * EPS, monitor=False),
    lambda: design.Motion(
        -1.0, rtol=100 * EPS, atol=1e-300, formulation=jm.formulations.NullSpace()
    ),
    lambda: design.Study(MODEL, (MASS,), run=design.Driven([0.0, 1.0])),
    lambda: STUDY.values({MASS: 2}),
    lambda: STUDY.values(np.array([2])),
    lambda: STUDY.values({MASS: jnp.asarray(2.0)}),
    lambda: saved_times(0.0, 1.0, 1e-6, None, np.dtype(float)),
    lambda: saved_times(1, 2, None, [1.0, 2.0], np.dtype(float)),
    lambda: chosen_controller(diffrax.ConstantStepSize(), 1e-3),
    lambda: chosen_events((), monitor=False),
    lambda: ANY.mechanisms.four_bar_chain(np.int64(1)),
    lambda: NumberRange(least=0).refusal(10**400, "seed") or "accepted",
)


class TestWhatIsGood:
    def test_the_extremes_of_each_range_are_accepted(self):
        assert all(make() is not None for make in GOOD)

    def test_traced_numbers_pass_and_their_shape_is_checked(self):
        def made(x: Any) -> list[Any]:
            peak = design.Peak(FORCE, exponent=x)
            motion = design.Motion(x, rtol=x, atol=x)
            times = design.Driven(x * jnp.arange(3.0)).times
            return [
                *(
                    c(x).tolerance
                    for c in (jm.criteria.QR, jm.criteria.SVD, jm.criteria.RankComparison)
                ),
                jm.formulations.AugmentedLagrangian(x).penalty,
                jm.runs.Baumgarte(x, x).beta,
                jm.formulations.MinimumNorm([x, 1.0]).weights,
                design.Descent(rate=x).rate,
                peak.exponent,
                *(motion.end, motion.rtol, motion.atol, times),
            ]

        # No range is known of what is traced: 7 is none of these tolerances.
        number = jax.ShapeDtypeStruct((), float)
        shapes = [found.shape for found in jax.eval_shape(made, number)]
        assert shapes == [(), (), (), (), (), (2,), (), (), (), (), (), (3,)]
        pair = jax.ShapeDtypeStruct((2,), float)
        for cls in (
            jm.criteria.QR,
            jm.criteria.SVD,
            jm.criteria.RankComparison,
            jm.formulations.AugmentedLagrangian,
            jm.runs.Baumgarte,
        ):
            with pytest.raises(ValueError, match=r"must be a number.*, got shape \[2\]"):
                jax.eval_shape(cls, pair)
        with pytest.raises(TypeError, match="iterations must be known while tracing"):
            jax.eval_shape(
                lambda n: jm.formulations.AugmentedLagrangian(1.0, n), jax.ShapeDtypeStruct((), int)
            )

    def test_known_numbers_are_checked_inside_of_a_transformation(self):
        with pytest.raises(ValueError, match="tolerance must be at least"):
            jax.eval_shape(
                lambda x: x * jm.criteria.QR(2.0).tolerance, jax.ShapeDtypeStruct((), float)
            )
        with pytest.raises(ValueError, match="end must lie behind start"):
            jax.eval_shape(lambda q: jm.simulate(SYSTEM, q, V, 0.0).q, Q)

    def test_new_numbers_are_no_new_program(self):
        traces = []

        @eqx.filter_jit
        def program(options: Any) -> Any:
            traces.append(None)
            return jax.tree.map(lambda x: 2 * x, eqx.filter(options, eqx.is_array))

        for k in range(1, 4):
            program(
                (
                    jm.criteria.QR(10.0**-k),
                    jm.criteria.SVD(10.0**-k),
                    jm.formulations.AugmentedLagrangian(10.0**k),
                    jm.runs.Baumgarte(k, 2 * k),
                    jm.formulations.MinimumNorm([k, 1.0]),
                    design.Motion(k, rtol=10.0**-k),
                    design.Descent(rate=10.0**-k),
                    design.Peak(FORCE, exponent=k),
                )
            )
        assert len(traces) == 1


# ---------------------------------------------------------------------------------------------
# Is anything missing?
# ---------------------------------------------------------------------------------------------

STATE = "a state, or the multipliers there"
PART = "a number of a model's part, which the part itself checks"
RESULT = "of an outcome, which the package makes"

# Settings with a number, a boolean or None as default that are not in the table, and why.
LEFT_OUT: Mapping[str, str] = {
    "Accelerations.solutions": "what an answer holds",
    "Trajectory.run.system": "a system",
    "finite_elements.ReducedBody.second_order": PART,
    "AccelerationConstraint.offset": PART,
    "AccelerationConstraint.rows": PART,
    "Driver.limit": PART,
    "Driver.time_constant": PART,
    "GeneralizedSystem.energy": PART,
    "GeneralizedSystem.force": PART,
    "GeneralizedSystem.kinetic_energy": PART,
    "GeneralizedSystem.lagrangian": PART,
    "GeneralizedSystem.length": PART,
    "GeneralizedSystem.mass_matrix": PART,
    "GeneralizedSystem.quantities": PART,
    "GeneralizedSystem.start": PART,
    "GeneralizedSystem.velocity": PART,
    "PfaffianConstraint.offset": PART,
    "PfaffianConstraint.rows": PART,
    "Servo.limit": PART,
    "Servo.time_constant": PART,
    "ServoConstraint.limit": PART,
    "ServoConstraint.time_constant": PART,
    "GeneralizedSystem.bodies": PART,
    "GeneralizedSystem.semidefinite": PART,
    "Model.gravity": PART,
    "Model.parameters": "made by the reader of model files",
    "Model.precision": PART,
    "MultibodySystem.precision": PART,
    "MultibodySystem.gravity": PART,
    "MultibodySystem.length": PART,
    "PositionConstraint.rows": PART,
    "elastic.Rod.misfit": PART,
    "elastic.JointCompliance.compliance": PART,
    "elastic.JointCompliance.misfit": PART,
    "elastic.JointCompliance.tilt_compliance": PART,
    "elastic.JointCompliance.tilt_misfit": PART,
    "Trajectory.elastic": RESULT,
    "Trajectory.unfinished": RESULT,
    "Trajectory.limits": RESULT,
    "VelocityConstraint.rows": PART,
    "Reactions.axes": RESULT,
    "Reactions.body": RESULT,
    "Reactions.redundant_at_precision": RESULT,
    "Solvability.possible_precision": RESULT,
    "Solvability.precision": RESULT,
    "Solvability.rank_as_written": RESULT,
    "Solvability.reaction_as_written": RESULT,
    "io.Imported.moved": RESULT,
    "Verdict.all.axis": "an axis of an array, which JAX checks",
    "Verdict.any.axis": "an axis of an array, which JAX checks",
    "plot.draw_curve.unique": "verdicts, as the package makes them",
    "reactions.multipliers": "part of a state; test_states asks for it",
    "plot.draw_reactions.names": "names, which the reactions look up",
    "plot.draw_reactions.compared": "reactions by any label",
}
STATES = ("q", "v", "t")

NAMESPACES = {
    "": jm,
    "design.": design,
    "bounds.": jm.bounds,
    "elastic.": elastic,
    "io.": jaxmbs.io,
    "plot.": jaxmbs.plot,
    "report.": jaxmbs.report,
    "view.": jaxmbs.view,
    "mechanisms.": jm.mechanisms,
    "finite_elements.": finite_elements,
}


def public_callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    for prefix, module in NAMESPACES.items():
        own = {name: getattr(module, name) for name in dir(module)}
        for name, found in (own if prefix else everything_public()).items():
            if name.startswith("_") or not (inspect.isclass(found) or inspect.isfunction(found)):
                continue
            yield f"{prefix}{name}", found
            if inspect.isclass(found):
                for own, method in vars(found).items():
                    plain = isinstance(method, classmethod | staticmethod)
                    if not own.startswith("_") and (plain or inspect.isfunction(method)):
                        yield f"{prefix}{name}.{own}", getattr(found, own)


def settings_of(function: Callable[..., Any]) -> Iterator[str]:
    """Arguments whose default is a number, a boolean or None."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        # An exception's own.
        return
    for name, parameter in parameters.items():
        if parameter.default is None or isinstance(parameter.default, bool | int | float):
            yield name


class TestCompleteness:
    def test_every_setting_is_in_the_table_or_left_out_for_a_reason(self):
        public = {name: list(settings_of(f)) for name, f in public_callables()}
        assert {"simulate", "design.Motion", "Cases.uniform", "plot.draw_map"} <= public.keys()
        asked = {f"{name}.{x}" for name, settings in public.items() for x in settings}
        states = {x for x in asked if x.rpartition(".")[2] in STATES}
        known = {f"{name}.{x}" for name, (_, settings) in TABLE.items() for x in settings}
        assert sorted(asked - states - known - LEFT_OUT.keys()) == []
        assert sorted(LEFT_OUT.keys() - asked) == []
        assert sorted(LEFT_OUT.keys() & known) == []

    def test_the_table_names_what_there_is(self):
        public = dict(public_callables())
        for name, (_, settings) in TABLE.items():
            assert set(settings) <= set(inspect.signature(public[name]).parameters), name

    def test_defaults_are_the_usual_values(self):
        """Of settings that many functions have; the command line has them from these ranges."""
        usual = {"rtol": RTOL.usual, "atol": ATOL.usual}
        own = {"GeneralizedAlpha.rtol", "solve_with_friction.rtol", "floquet.rtol", "floquet.atol"}
        found = {
            f"{name}.{setting}": inspect.signature(called).parameters[setting].default
            for name, called in public_callables()
            for setting in settings_of(called)
            if setting in usual and f"{name}.{setting}" not in own
        }
        assert len(found) == 8
        assert {name: x for name, x in found.items() if x != usual[name[-4:]]} == {}
        for called in (jm.criteria.QR, jm.criteria.SVD, jm.holonomy, jm.mobility):
            assert inspect.signature(called).parameters["tolerance"].default == RANK.usual

    def test_bad_values_are_many(self):
        assert sum(len(v) for _, s in TABLE.values() for v in s.values()) > 1000
