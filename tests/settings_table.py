"""The table of settings: what every public function and class refuses."""

from collections.abc import Callable, Iterator
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import optax
import optimistix
from settings_elastic import ELASTIC, ELASTICITY
from settings_pages import PAGES
from settings_ranges import of_ranges, RANGES
from settings_values import (
    INF,
    NAN,
    NO_COUNT,
    NO_FLAG,
    NO_NAMES,
    NO_NUMBER,
    NO_OBJECT,
    NO_PATH,
    NO_TABLE,
    NO_TEXT,
    NO_TIMES,
    NO_VECTOR,
    with_defaults,
)

import jaxmbs as jm
import jaxmbs.io
import jaxmbs.plot
from jaxmbs import design, elastic


# ---------------------------------------------------------------------------------------------
# What is wrong everywhere
# ---------------------------------------------------------------------------------------------


def blank(cls: type) -> Any:
    """An object of a class that nothing will look into."""
    return object.__new__(cls)


MODEL = jm.mechanisms.slider_crank()
SYSTEM = MODEL.system()
Q, V = SYSTEM.reference_q, SYSTEM.initial_v
KEY = jax.random.key(0)
MASS = f"bodies.{MODEL.bodies[0].name}.mass"
STUDY = design.Study(MODEL, [MASS])
BOUNDS = {MASS: (0.1, 10.0)}
CASES = jm.Cases({MASS: [1.0, 2.0]})
FORCE = design.Force(MODEL.joints[0].name)
PEAK = design.Peak(FORCE)
GUARD = blank(design.Guard)
object.__setattr__(GUARD, "names", (MASS,))
object.__setattr__(GUARD, "study", STUDY)


# A motion of a servo, in which there are controls.
SERVED = jm.simulate(
    jm.GeneralizedSystem(
        ("x",),
        mass_matrix=[[1.0]],
        constraints={
            "s": jm.generalized.ServoConstraint(jm.generalized.PfaffianConstraint([1.0]), 1.0)
        },
    ),
    jnp.zeros(1),
    jnp.zeros(1),
    0.1,
)


def at_state(called: Callable[..., Any], /, **defaults: Any) -> Callable[..., Any]:
    return with_defaults(called, system=SYSTEM, q=Q, **defaults)


def of_study(called: Callable[..., Any], /, **defaults: Any) -> Callable[..., Any]:
    return with_defaults(called, study=STUDY, objective=PEAK, **defaults)


# ---------------------------------------------------------------------------------------------
# The table: a public name, how it is called, and what each of its settings refuses
# ---------------------------------------------------------------------------------------------

_TOLERANCE = (*NO_NUMBER, None, -1.0, 0.0, 1e-17, 1.0, 2.0)
_CRITERION = (*NO_OBJECT, jm.criteria.SVD, jm.formulations.NullSpace())
_FORMULATION = (*NO_OBJECT, jm.formulations.NullSpace, jm.criteria.QR())
_OBJECTIVE = (*NO_OBJECT, None, design.Peak, FORCE.joints)
_COUNT = (*NO_COUNT, None, 0)
_DESIGN = ("abc", 3.0, True, [NAN], [1.0, 2.0], ["a"], {MASS: NAN}, {MASS: "a"}, {3: 1.0})
_OPEN = (*NO_NUMBER, None, 0.0, 1.0, -1e-9, 2.0)
_PAIRS = {MASS: (2.0, 1.0)}, {MASS: (1.0, NAN)}, {MASS: 1.0}, {MASS: (1.0,)}, {MASS: ("a", "b")}

SOLVABILITY: dict[str, tuple[Callable[..., Any], dict[str, tuple[Any, ...]]]] = {
    "QR": (
        jm.criteria.QR,
        {"tolerance": _TOLERANCE, "method": (*NO_OBJECT, jm.criteria.LapackQR, jm.criteria.QR())},
    ),
    "SVD": (jm.criteria.SVD, {"tolerance": _TOLERANCE}),
    "RankComparison": (jm.criteria.RankComparison, {"tolerance": _TOLERANCE}),
    "analyze": (
        at_state(jm.analyze),
        {
            "elastic": NO_FLAG,
            "criterion": _CRITERION,
            "subsets": ("A", 3, None, ["A"], [3], [["A", 3]], True),
            "combinations": (*(x for x in NO_NAMES if x != ["A", ""]), None),
        },
    ),
    "Misfit": (with_defaults(jm.sweeps.Misfit, system=MODEL), {"elastic": NO_FLAG}),
    "verdicts": (at_state(jm.verdicts), {"criterion": _CRITERION}),
    "certify": (at_state(jm.certify), {"criterion": _CRITERION}),
    "floquet": (
        at_state(jm.floquet, v=V, period=1.0),
        {
            "period": (*NO_NUMBER, None, 0.0, -1.0),
            "turn": (*NO_VECTOR, None, [0.0, 0.0]),
            "rtol": (*NO_NUMBER, None, -1.0, 1.0),
            "atol": (*NO_NUMBER, None, -1.0, 0.0),
        },
    ),
    "reactions": (
        at_state(jm.reactions, v=V, t=0.0),
        {
            "criterion": _CRITERION,
            "elastic": tuple(x for x in NO_FLAG if x is not None),
            "formulation": _FORMULATION,
        },
    ),
    "singularity": (
        at_state(jm.singularity, key=KEY),
        {
            "key": (0, None, "a", True, 1.5, jnp.zeros(2), jnp.arange(2), jax.random.split(KEY, 2)),
            "samples": _COUNT,
            "spread": (*NO_NUMBER, None, 0.0, -0.1, 1e-4, 1.1),
            "criterion": _CRITERION,
        },
    ),
    "holonomy": (
        at_state(jm.holonomy, key=KEY),
        {
            "key": (0, None, "a", True, 1.5, jnp.zeros(2), jnp.arange(2), jax.random.split(KEY, 2)),
            "samples": _COUNT,
            "spread": (*NO_NUMBER, None, 0.0, -0.1, 1e-4, 1.1),
            "tolerance": _TOLERANCE,
        },
    ),
    "mobility": (
        at_state(jm.mobility),
        {
            "order": (*NO_COUNT, None, 1, 13),
            "spread": (*NO_NUMBER, None, 0.0, -0.1, 1e-4, 0.6),
            "tolerance": _TOLERANCE,
        },
    ),
    "dependent_sets": (
        with_defaults(jm.dependent_sets, report=blank(jm.results.Solvability)),
        {"work": (*NO_NUMBER, None, 0.0, -1.0)},
    ),
    "releases": (at_state(jm.releases, report=blank(jm.results.Solvability)), {"most": _COUNT}),
}

FORMULATIONS: dict[str, tuple[Callable[..., Any], dict[str, tuple[Any, ...]]]] = {
    "MinimumNorm": (
        jm.formulations.MinimumNorm,
        {"weights": (*NO_VECTOR, [1.0, 0.0], [1.0, -1.0]), "clean": NO_FLAG},
    ),
    "Elimination": (jm.formulations.Elimination, {"drop": (*NO_NAMES[1:], "", None, ["A", "A"])}),
    "UdwadiaKalaba": (jm.formulations.UdwadiaKalaba, {"semidefinite": NO_FLAG}),
    "NonIdeal": (
        with_defaults(
            jm.formulations.NonIdeal, formulation=jm.formulations.NullSpace(), work_force=[0.0]
        ),
        {
            "formulation": (*_FORMULATION, None),
            "work_force": (*NO_VECTOR, None),
        },
    ),
    "ServoControl": (
        with_defaults(jm.formulations.ServoControl, actuators=["b"]),
        {
            "actuators": (3, True, None, 1.5, [], [1.0, 2.0], [["a"]], [3, "a"], ["a", ""], NAN),
            "limits": (*NO_NUMBER[:4], 0.0, -1.0, [[1.0]], [1.0, 0.0], [NAN], ["a"]),
            "formulation": (*_FORMULATION, jm.formulations.ElasticResolution()),
        },
    ),
    "controls": (with_defaults(jm.controls, trajectory=SERVED), {"formulation": _FORMULATION}),
    "AugmentedLagrangian": (
        jm.formulations.AugmentedLagrangian,
        {"penalty": (*NO_NUMBER, None, 0.0, -1.0, 1e16), "iterations": _COUNT},
    ),
    "compare": (
        at_state(jm.compare, v=V),
        {
            "formulations": (
                *_FORMULATION,
                jm.formulations.NullSpace(),
                [jm.formulations.NullSpace],
                ["null-space"],
            ),
            "seed": (*NO_COUNT, None, 2**32),
        },
    ),
}

MOTION: dict[str, tuple[Callable[..., Any], dict[str, tuple[Any, ...]]]] = {
    "simulate": (
        at_state(jm.simulate, v=V, end=1.0),
        {
            "end": (*NO_NUMBER, None, 0.0, -1.0),
            "start": (*NO_NUMBER, None, 1.0, 2.0),
            "every": (*NO_NUMBER, 0.0, -0.1, 1e-9),
            "times": (*NO_TIMES, [0.0], [0.0, 2.0], [0.5, 1.0]),
            "formulation": _FORMULATION,
            "solver": (*NO_OBJECT, diffrax.Tsit5, diffrax.ForwardMode()),
            "stabilisation": (*NO_OBJECT, jm.runs.Projection, jm.runs.Baumgarte, "projection"),
            "rtol": (*NO_NUMBER, None, -1e-6, -0.5, 1.0),
            "atol": (*NO_NUMBER, None, -1e-6, 0.0),
            "controller": (*NO_OBJECT, diffrax.PIDController, diffrax.Tsit5()),
            "first_step": (*NO_NUMBER, 0.0, -1e-3),
            "max_steps": _COUNT,
            "adjoint": (*NO_OBJECT, diffrax.ForwardMode, diffrax.Tsit5()),
            "events": (
                3,
                "a",
                jm.runs.StopAtSingular(),
                jm.runs.StopAtSingular,
                [jm.runs.StopAtSingular],
                [max],
            ),
            "progress": (*NO_OBJECT, diffrax.TextProgressMeter, lambda: None),
            "consistent": NO_FLAG,
            "monitor": NO_FLAG,
            "throw": NO_FLAG,
            "limits": (*NO_OBJECT, "soft", jm.runs.RigidLimits),
        },
    ),
    "simulate_many": (
        with_defaults(jm.simulate_many, system=SYSTEM, q=[Q], v=[V], end=1.0),
        {
            "end": (*NO_NUMBER, None, 0.0, -1.0),
            "start": (*NO_NUMBER, None, 1.0, 2.0),
            "count": (*_COUNT, 1),
            "formulation": _FORMULATION,
            "solver": (*NO_OBJECT, diffrax.Tsit5, diffrax.ForwardMode()),
            "stabilisation": (*NO_OBJECT, jm.runs.Projection, jm.runs.Baumgarte, "projection"),
            "rtol": (*NO_NUMBER, None, -1e-6, -0.5, 1.0),
            "atol": (*NO_NUMBER, None, -1e-6, 0.0),
            "max_steps": _COUNT,
            "consistent": NO_FLAG,
            "monitor": NO_FLAG,
            "width": (*NO_COUNT, 0),
            "throw": NO_FLAG,
        },
    ),
    "Simulation": (
        with_defaults(jm.sweeps.Simulation, end=1.0),
        {
            "end": (*NO_NUMBER, None),
            "count": (*_COUNT, 1),
            "formulation": _FORMULATION,
            "solver": (*NO_OBJECT, diffrax.Tsit5, diffrax.ForwardMode()),
            "stabilisation": (*NO_OBJECT, jm.runs.Projection, jm.runs.Baumgarte, "projection"),
            "rtol": (*NO_NUMBER, None, -1e-6, 1.0),
            "atol": (*NO_NUMBER, None, -1e-6, 0.0),
            "max_steps": _COUNT,
            "monitor": NO_FLAG,
        },
    ),
    "resume": (
        with_defaults(jm.resume, trajectory=SERVED),
        {
            "trajectory": (*NO_OBJECT, None, SERVED),
            "progress": (*NO_OBJECT, diffrax.TextProgressMeter(), lambda: None),
            "throw": NO_FLAG,
        },
    ),
    "GeneralizedAlpha": (
        jm.runs.GeneralizedAlpha,
        {
            "spectral_radius": (*NO_NUMBER, None, -0.1, 1.1),
            "step": (*NO_NUMBER, 0.0, -1e-3),
            "rtol": (*NO_NUMBER, None, 0.0, -1e-6, 1e-17, 1.0),
            "max_iterations": (*NO_COUNT, None, 0, 1),
        },
    ),
    "Baumgarte": (
        jm.runs.Baumgarte,
        {name: (*NO_NUMBER, None, 0.0, -1.0, 1e13) for name in ("alpha", "beta")},
    ),
    "RigidLimits": (
        jm.runs.RigidLimits,
        {
            "restitution": (*NO_TABLE, {"a": -0.1}, {"a": 1.1}, {"a": NAN}, {"a": "b"}, {1: 0.5}),
            "rest_height": (*NO_NUMBER, None, 0.0, 1.0),
            "together": NO_FLAG,
            "most_events": _COUNT,
            "most_pieces": _COUNT,
        },
    ),
    "StopAtLimit": (jm.runs.StopAtLimit, {"stops": (*NO_NAMES,)}),
    "stop_contacts": (jm.runs.stop_contacts, {"trajectory": (*NO_OBJECT, None)}),
    "StopWhen": (jm.runs.StopWhen, {"function": (*NO_OBJECT, None, jm.runs.StopWhen)}),
    "assemble": (at_state(jm.assemble), {"max_steps": _COUNT, "throw": NO_FLAG}),
    "undetermined_accelerations": (
        at_state(jm.formulations.undetermined_accelerations, v=V),
        {"tolerance": _OPEN},
    ),
    "equilibrium": (at_state(jm.equilibrium), {"max_steps": _COUNT, "throw": NO_FLAG}),
    "kinematics": (
        at_state(jm.kinematics, times=[0.0, 1.0]),
        {"times": (*NO_TIMES, None), "throw": NO_FLAG},
    ),
    "inverse_dynamics": (
        at_state(jm.inverse_dynamics, times=[0.0, 1.0]),
        {"times": (*NO_TIMES, None), "formulation": _FORMULATION, "throw": NO_FLAG},
    ),
    "solve_with_friction": (
        at_state(
            jm.runs.solve_with_friction, formulation=jm.formulations.MinimumNorm(), v=V, t=0.0
        ),
        {
            "formulation": _FORMULATION,
            "offset": (*NO_VECTOR, [1.0]),
            "rtol": _OPEN,
            "max_steps": _COUNT,
        },
    ),
}

_SEED = (*NO_COUNT[:-1], None)
_RANGES = (*NO_TABLE, None, *_PAIRS, {MASS: (True, False)})

SWEEPS: dict[str, tuple[Callable[..., Any], dict[str, tuple[Any, ...]]]] = {
    "Cases": (
        with_defaults(jm.Cases, table={MASS: [1.0]}),
        {
            "table": (*NO_TABLE, None, {}, {MASS: ["1"]}, {MASS: [True]}, {MASS: [NAN]}, {MASS: 1}),
            "origin": NO_TEXT,
        },
    ),
    "Cases.grid": (
        jm.Cases.grid,
        {"axes": (*NO_TABLE, None, {}, {MASS: []}, {MASS: "12"}, {MASS: [1.0, INF]}, {"": [1.0]})},
    ),
    **{
        f"Cases.{name}": (
            with_defaults(getattr(jm.Cases, name), ranges=BOUNDS, count=4, seed=0),
            {"ranges": _RANGES, "count": _COUNT, "seed": _SEED},
        )
        for name in ("uniform", "sobol", "latin_hypercube")
    },
    "tolerances": (
        with_defaults(jm.sweeps.tolerances, model=MODEL, widths=1e-3, count=4, seed=0),
        {
            "widths": (*NO_NUMBER[:-1], None, -1.0, {MASS: -1.0}, {MASS: "a"}, {MASS: NAN}, {3: 1}),
            "count": _COUNT,
            "seed": _SEED,
            "uniform": NO_FLAG,
        },
    ),
    "Certification": (jm.sweeps.Certification, {"criterion": _CRITERION, "every": NO_FLAG}),
    "sweep": (
        with_defaults(jm.sweep, question=jm.screen, system=MODEL, cases=CASES),
        {
            "question": (*NO_OBJECT, None, jm.sweeps.Certification),
            "cases": (*NO_OBJECT, None, jm.Cases, {MASS: [1.0]}),
            "assemble": NO_FLAG,
            "store": NO_PATH,
            "chunk": (*NO_COUNT, 0),
            "devices": (0, 2, "cpu", True, [], ["cpu"], [0], jax.devices()[0], jax.devices() * 2),
            "width": (*NO_COUNT, 0),
            "units": (3, "N", ["N"], {3: "N"}, {"force": 3}, True),
            "progress": NO_FLAG,
        },
    ),
    "spread": (jm.sweeps.spread, {"found": (*NO_OBJECT, None, jm.results.Sweep)}),
}

DESIGN: dict[str, tuple[Callable[..., Any], dict[str, tuple[Any, ...]]]] = {
    "design.AtMost": (
        with_defaults(design.AtMost, function=PEAK, bound=1.0),
        {"function": _OBJECTIVE, "bound": (*NO_NUMBER, None)},
    ),
    "design.BFGS": (
        design.BFGS,
        {
            "steps": _COUNT,
            "tolerance": _OPEN,
            "method": (*NO_OBJECT, optimistix.BFGS, optimistix.NelderMead(1e-3, 1e-3)),
        },
    ),
    "design.Descent": (
        design.Descent,
        {
            "steps": _COUNT,
            "every": _COUNT,
            "rate": (*NO_NUMBER, None, 0.0, -0.1, 1.5),
            "method": (*NO_OBJECT, optax.adam, optax.GradientTransformation),
        },
    ),
    "design.SLSQP": (design.SLSQP, {"steps": _COUNT, "tolerance": _OPEN}),
    "design.TrustRegion": (design.TrustRegion, {"steps": _COUNT, "tolerance": _OPEN}),
    "design.Combination": (design.Combination, {"expression": (*NO_TEXT, None)}),
    "design.Force": (
        with_defaults(design.Force, joints="A"),
        {"joints": (*NO_NAMES[1:], "", None, []), "body": NO_TEXT},
    ),
    "design.Torque": (
        with_defaults(design.Torque, joints="A"),
        {"joints": (*NO_NAMES[1:], "", None, []), "body": NO_TEXT},
    ),
    "design.Peak": (
        with_defaults(design.Peak, quantity=FORCE),
        {
            "quantity": (*NO_OBJECT, None, design.Force, PEAK),
            "exponent": (*NO_NUMBER, 0.0, -2.0, 0.5),
        },
    ),
    "design.Final": (design.Final, {"quantity": (*NO_OBJECT, None, design.Force)}),
    "design.MeanSquare": (design.MeanSquare, {"quantity": (*NO_OBJECT, None, design.Force)}),
    "design.AtState": (design.AtState, {"formulation": _FORMULATION}),
    "design.Driven": (
        with_defaults(design.Driven, times=[0.0, 1.0]),
        {"times": (*NO_TIMES, None), "formulation": _FORMULATION},
    ),
    "design.Motion": (
        with_defaults(design.Motion, end=1.0),
        {
            "end": (*NO_NUMBER, None),
            "count": (*_COUNT, 1),
            "rtol": (*NO_NUMBER, None, -1e-6, 1.0),
            "atol": (*NO_NUMBER, None, -1e-6, 0.0),
            "formulation": _FORMULATION,
            "monitor": NO_FLAG,
        },
    ),
    "design.Study": (
        with_defaults(design.Study, system=MODEL, parameters=[MASS]),
        {
            "parameters": (*NO_NAMES, None, []),
            "run": (*NO_OBJECT, design.AtState, design.Motion, jm.criteria.QR()),
        },
    ),
    "design.Study.values": (STUDY.values, {"design": (*_DESIGN, None)}),
    "design.Study.direction": (
        STUDY.direction,
        {"direction": (*NO_TABLE, None, {MASS: NAN}, {MASS: True})},
    ),
    "design.Study.respond": (
        with_defaults(STUDY.respond, design=STUDY.design),
        {"design": _DESIGN[:6], "forward": NO_FLAG},
    ),
    "design.Guard.project": (
        with_defaults(GUARD.project, gradient=[1.0]),
        {
            "gradient": (*NO_VECTOR, None, [1.0, 2.0]),
            "scale": (*NO_TABLE, {MASS: 0.0}, {MASS: -1.0}, {MASS: NAN}),
        },
    ),
    **{
        f"design.Guard.{name}": (
            getattr(GUARD, name),
            {"direction": (3, True, None, [1.0], {3: 1.0}, {MASS: NAN}, {MASS: "a"})},
        )
        for name in ("keeps", "broken", "require")
    },
    "design.evaluate": (
        of_study(design.evaluate, design=STUDY.design),
        {"objective": _OBJECTIVE, "design": _DESIGN[:6], "forward": NO_FLAG},
    ),
    "design.gradient": (
        of_study(design.gradient),
        {"objective": _OBJECTIVE, "design": _DESIGN, "project": NO_FLAG},
    ),
    "design.require_gradient": (
        of_study(design.require_gradient),
        {"objective": _OBJECTIVE, "design": _DESIGN},
    ),
    "design.hessian_vector": (
        of_study(design.hessian_vector, direction={MASS: 1.0}),
        {
            "objective": _OBJECTIVE,
            "direction": (*NO_TABLE, None, {}, {MASS: 0.0}, {MASS: NAN}),
            "design": _DESIGN,
        },
    ),
    "design.guard": (with_defaults(design.guard, study=STUDY), {"design": _DESIGN}),
    "design.sensitivity": (
        with_defaults(design.sensitivity, study=STUDY),
        {"reactions": (*NO_TABLE, {"A": 3}, {"A": design.Peak}), "design": _DESIGN},
    ),
    "design.rank_changes": (
        with_defaults(design.rank_changes, study=STUDY, start={MASS: 1.0}, end={MASS: 2.0}),
        {"start": (*_DESIGN, None), "end": (*_DESIGN, None), "count": (*_COUNT, 1, 2)},
    ),
    "design.minimise": (
        of_study(design.minimise, bounds=BOUNDS),
        {
            "objective": _OBJECTIVE,
            "bounds": (*_RANGES, {}, {MASS: (1.0, 1.0)}),
            "constraints": (3, "a", None, [3], [PEAK], [(PEAK, 1.0)], [design.AtMost], {}),
            "start": (*NO_TABLE, {MASS: NAN}, {MASS: 20.0}, {MASS: "a"}),
            "optimiser": (*NO_OBJECT, design.SLSQP, optax.adam(0.1)),
            "store": NO_PATH,
            "progress": (3, True, "a", design.Visit),
        },
    ),
    "design.multistart": (
        of_study(design.multistart, bounds=BOUNDS, starts=CASES),
        {
            "objective": _OBJECTIVE,
            "bounds": (*_RANGES, {}),
            "starts": (*NO_OBJECT, None, jm.Cases, jm.Cases({MASS: [20.0]})),
            "optimiser": (*NO_OBJECT, design.Descent, design.SLSQP()),
            "store": NO_PATH,
            "progress": (3, True, "a", design.Visit),
        },
    ),
}

WRENCH = blank(jm.results.Wrench)
object.__setattr__(WRENCH, "force", jnp.zeros((2, 2)))
object.__setattr__(WRENCH, "force_unique", jm.Verdict.where(True, jnp.ones((2, 2), bool)))
AXES = plt.figure().subplots()
_CURVE = {"axes": AXES, "times": [0.0, 1.0], "label": "A"}

EDGES: dict[str, tuple[Callable[..., Any], dict[str, tuple[Any, ...]]]] = {
    "keep_programs": (jm.keep_programs, {"folder": NO_PATH, "megabytes": (*NO_COUNT, 0)}),
    "plot.draw_curve": (
        with_defaults(jaxmbs.plot.draw_curve, values=[0.0, 1.0], **_CURVE),
        {"place": (*NO_COUNT, None)},
    ),
    "plot.draw_force": (
        with_defaults(jaxmbs.plot.draw_force, wrench=WRENCH, **_CURVE),
        {"place": (*NO_COUNT, None), "component": (*NO_COUNT, 2)},
    ),
    "plot.draw_flexibility": (
        with_defaults(jaxmbs.plot.draw_flexibility, found=blank(elastic.Flexibility)),
        {"parts": NO_NAMES},
    ),
    "plot.draw_spread": (
        with_defaults(jaxmbs.plot.draw_spread, found=blank(jm.results.Sweep)),
        {"bins": _COUNT, "joints": NO_NAMES},
    ),
    "io.save_trajectory": (
        with_defaults(
            jaxmbs.io.save_trajectory, trajectory=blank(jm.results.Trajectory), path="motion.csv"
        ),
        {"path": (*NO_PATH, None), "units": NO_FLAG},
    ),
    "io.load_trajectory": (
        with_defaults(jaxmbs.io.load_trajectory, system=SYSTEM),
        {"path": (*NO_PATH, None)},
    ),
    "io.import_model": (
        with_defaults(jaxmbs.io.import_model, path="robot.xml"),
        {
            "path": (*NO_PATH, None),
            "keyframe": NO_TEXT,
            "controls": NO_TABLE,
            "floating": NO_FLAG,
            "outside": NO_FLAG,
            "balance": NO_FLAG,
            "precision": (-1.0, 0.5, "few"),
            "stops": NO_FLAG,
            "stop_stiffness": (0.0, -1.0, "few", float("nan")),
            "ground": NO_NAMES,
            "keep": NO_NAMES,
            "drop": NO_NAMES,
            "close": NO_NAMES,
        },
    ),
    "io.omission_lines": (
        with_defaults(jaxmbs.io.omission_lines, omissions=()),
        {"names": NO_FLAG},
    ),
    "io.read_model": (jaxmbs.io.read_model, {"path": (*NO_PATH, None)}),
    "io.model_from_tables": (
        with_defaults(jaxmbs.io.model_from_tables, content={}),
        {"content": (*NO_TABLE, None), "default_name": (*NO_TEXT, None)},
    ),
    "mechanisms.four_bar_chain": (jm.mechanisms.four_bar_chain, {"windows": _COUNT}),
    "mechanisms.four_bar_chain_spatial": (
        jm.mechanisms.four_bar_chain_spatial,
        {"windows": _COUNT},
    ),
    "mechanisms.get": (jm.mechanisms.get, {"name": (*NO_TEXT, None)}),
    "mechanisms.modal_parallelogram": (
        with_defaults(
            jm.mechanisms.modal_parallelogram,
            link=blank(jm.spatial.ReducedBody),
            platform=blank(jm.spatial.ReducedBody),
        ),
        {
            "link": (*NO_OBJECT, None, jm.spatial.ReducedBody),
            "platform": (*NO_OBJECT, None, jm.spatial.ReducedBody),
            "theta": (*NO_NUMBER, None),
        },
    ),
    "mechanisms.parallelogram": (jm.mechanisms.parallelogram, {"theta": (*NO_NUMBER, None)}),
    "mechanisms.elastic_parallelogram": (
        jm.mechanisms.elastic_parallelogram,
        {"theta": (*NO_NUMBER, None), "stiffness": (*NO_NUMBER, None, 0.0, -1.0)},
    ),
    "mechanisms.flexible_joint_manipulator": (
        jm.mechanisms.flexible_joint_manipulator,
        {"time_constant": (*NO_NUMBER, 0.0)}
        | {
            name: (*NO_NUMBER, None, 0.0, (1.0, -1.0))
            for name in ("stiffness", "masses", "centres", "inertias", "motor_inertias")
        }
        | {"length": (*NO_NUMBER, None, 0.0)},
    ),
    "mechanisms.planetary_set": (
        with_defaults(jm.mechanisms.planetary_set, name="P", sun=24, planet=18, ring=60, arm=0.084),
        {name: _COUNT for name in ("sun", "planet", "ring", "planets")}
        | {name: (*NO_NUMBER, None, 0.0) for name in ("arm", "width", "density")}
        | {"ring_turns": NO_FLAG},
    ),
    "mechanisms.spiral": (
        jm.mechanisms.spiral,
        {
            "growth": (*NO_NUMBER, None),
            "speed": (*NO_NUMBER, None),
            "mass": (*NO_NUMBER, None, 0.0),
            "acceleration_level": NO_FLAG,
        },
    ),
    "mechanisms.swarm": (
        jm.mechanisms.swarm,
        {
            "time_constant": (*NO_NUMBER, 0.0),
            "mass": (*NO_NUMBER, None, 0.0),
            "attraction": (*NO_NUMBER, None),
            "repulsion": (*NO_NUMBER, None),
        },
    ),
    "mechanisms.mobile_robot": (
        jm.mechanisms.mobile_robot,
        {"rack": (*NO_OBJECT, jm.motions.Linear)},
    ),
}

TABLE = SOLVABILITY | FORMULATIONS | MOTION | SWEEPS | DESIGN | ELASTIC | ELASTICITY | EDGES
TABLE = {**TABLE, **RANGES, **of_ranges(MODEL, SYSTEM, Q), **PAGES}

# What a message may name in the place of a setting: one of its entries.
ENTRIES = (MASS, "name of Cases")


def outcome(make: Callable[..., Any], setting: str, value: Any) -> str:
    """What is wrong with how a value is refused; empty for nothing."""
    try:
        make(**{setting: value})
    except (TypeError, ValueError) as error:
        text = str(error)
        head = text.partition(", got ")[0]
        if type(error).__name__ == "TypeCheckError":
            return f"{value!r} is refused by an annotation"
        if not any(word in head for word in (setting, *ENTRIES)):
            return f"{value!r} is refused without a name: {text}"
        if "\n" in text or not text.endswith("."):
            return f"{value!r} is refused in no sentence: {text}"
        return ""
    except Exception as error:
        return f"{value!r} raises {type(error).__name__}: {error}"
    return f"{value!r} is accepted"


def wrong() -> Iterator[str]:
    """What the whole table says; without pytest."""
    for name, (make, settings) in TABLE.items():
        for setting, values in settings.items():
            for value in values:
                found = outcome(make, setting, value)
                if found:
                    yield f"{name}, {setting}: {found}"
