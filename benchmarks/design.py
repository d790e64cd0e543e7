"""What derivatives cost: gradients of a slider-crank and of motions of one second.

The gradient of the largest bearing force of a turn, and the time to the optimum of example 13,
whose slider-crank this is, against finite differences of the same library and of a slider-crank
written by hand in NumPy, both with SciPy's SLSQP. Many starts at once of a linkage whose coupler
point is to follow a line, that of example 15, against SciPy's minimisers in a loop over the starts,
with the same values and gradients. Then the reverse gradient of a motion of one
second against the run itself, and of short motions; how its memory grows with checkpoints and
steps, and 1,024 gradients at once against one after the other.

    taskset -c 0 python benchmarks/design.py               # prints a table, writes results
    python benchmarks/design.py --part gradient            # one part; keeps the others' results
"""

import os


# One thread in each decomposition, for all sides; to be said before the libraries are loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import functools
import json
import time
from collections.abc import Callable
from typing import Any

import _crank_peer as peer
import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize as so
from _hardware import hardware, renew, result_path
from _timing import best, best_in_turn

import jaxmbs as jm
from jaxmbs import design
from jaxmbs._design._objective import value_and_slope
from jaxmbs._programs import forget_programs


jax.config.update("jax_enable_x64", True)

# States of a turn at which the force is looked at.
STATES = 65
BATCH, CHUNKS = 1024, (4, 64)
SIDE_BY_SIDE = 32
CHECKPOINTS = (16, 128, 1024)
DURATIONS = (0.5, 4.0)
STARTS, STEPS = (1, 16, 64, 256), 100

# SciPy needs a value of designs that fail: they are as bad as one that is a metre off.
_FAILED = 1.0


def slider_crank() -> jm.Model:
    """The library's model of the peer's mechanism: that of example 13."""
    crank, rod, pin, slider = peer.START
    inertia = {"crank": peer.CRANK_INERTIA, "rod": peer.ROD_INERTIA, "piston": 1e-3}
    masses = {"crank": peer.CRANK_MASS, "rod": peer.ROD_MASS, "piston": peer.PISTON_MASS}
    places = {"crank": crank, "rod": rod, "piston": slider}
    joints = [
        jm.planar.Revolute("A", ("ground", "crank"), (0.0, 0.0)),
        jm.planar.Revolute("B", ("crank", "rod"), (pin, 0.0)),
        jm.planar.Revolute("C", ("rod", "piston"), (slider, 0.0)),
        jm.planar.Translational("D", ("ground", "piston"), (slider, 0.0), (1.0, 0.0)),
    ]
    motor = jm.Driver("motor", "A", "rotation", jm.motions.Linear(rate=peer.RATE))
    return jm.Model(
        "driven slider-crank",
        2,
        bodies=[
            jm.planar.Body(name, mass=mass, inertia=inertia[name], position=(places[name], 0.0))
            for name, mass in masses.items()
        ],
        joints=joints,
        drivers=[motor],
        gravity=(0.0, -peer.GRAVITY),
    )


def crank_study() -> tuple[design.Study, design.Peak]:
    """The largest force in bearing A over a turn."""
    run = design.Driven(peer.turn(STATES))
    study = design.Study(slider_crank(), list(peer.PARAMETERS), run=run)
    return study, design.Peak(design.Force("A"), peer.EXPONENT)


@eqx.filter_jit
def value(study: design.Study, objective: Any, x: jax.Array) -> jax.Array:
    """The objective alone."""
    return objective(study.respond(x))


def compiled(function: Callable[[], Any]) -> float:
    """Seconds of the first call."""
    start = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - start


def gradients() -> dict[str, Any]:
    """One gradient, three ways, and how far they are from the library's own."""
    study, objective = crank_study()
    x, times = study.design, peer.turn(STATES)
    own = functools.partial(value_and_slope, study, objective)
    first = compiled(lambda: own(x))
    exact = np.asarray(own(x)[1])
    size = np.linalg.norm(exact)

    def library(point: np.ndarray) -> float:
        return float(value(study, objective, jnp.asarray(point)))

    def by_hand(point: np.ndarray) -> float:
        return peer.largest(point, times)

    start = np.asarray(x)
    found = {"compile_s": first, "gradient_s": best(lambda: jax.block_until_ready(own(x)), 20)}
    for name, function in (("library", library), ("numpy", by_hand)):
        differences = so.approx_fprime(start, function, 1e-7)
        found[f"differences_{name}_s"] = best(
            functools.partial(so.approx_fprime, start, function, 1e-7), 20
        )
        found[f"differences_{name}_error"] = float(np.linalg.norm(differences - exact) / size)
    return found


def stroke(response: jm.results.Trajectory) -> jax.Array:
    """Of the piston (m)."""
    return jnp.max(response.q[:, 6]) - jnp.min(response.q[:, 6])


def optima() -> dict[str, Any]:
    """The time to the optimum of example 13: `design.minimise`, and SciPy's SLSQP, as the study
    uses, with finite differences of the library and of the peer."""
    study, objective = crank_study()
    times, pin = peer.turn(STATES), design.Peak(design.Force("B"))
    pressed = float(pin(design.responded(study, study.design)))
    limits = [
        design.AtMost(lambda response: -stroke(response), -peer.STROKE),
        design.AtMost(pin, pressed),
    ]
    first = compiled(lambda: study_optimum(study, objective, limits).response.q)
    own = study_optimum(study, objective, limits)
    found: dict[str, Any] = {
        "study": {
            "compile_s": first,
            "seconds": best(lambda: study_optimum(study, objective, limits), 5),
            "least_force": own.value,
            "design": [own.design[name] for name in peer.PARAMETERS],
        }
    }

    @eqx.filter_jit
    def numbers(study: design.Study, objective: Any, x: jax.Array) -> jax.Array:
        response = study.respond(x)
        room = [stroke(response) - peer.STROKE, pressed - pin(response)]
        return jnp.stack([objective(response), *room])

    def library(x: np.ndarray) -> np.ndarray:
        return np.asarray(numbers(study, objective, jnp.asarray(x)))

    def by_hand(x: np.ndarray) -> np.ndarray:
        room = [peer.stroke(x, times) - peer.STROKE, pressed - np.max(peer.forces(x, times)[1])]
        return np.array([peer.largest(x, times), *room])

    for name, function in (("differences", library), ("numpy", by_hand)):
        search = functools.partial(differenced_optimum, function)
        end, x = search()
        found[name] = {
            "seconds": best(search, 5),
            "iterations": int(end.nit),
            "evaluations": int(end.nfev),
            "least_force": float(end.fun),
            "design": x.tolist(),
        }
    return found | {"start_force": peer.largest(peer.START, times)}


def study_optimum(study: design.Study, objective: Any, limits: Any) -> design.Optimum:
    """As example 13 finds it."""
    return design.minimise(objective, study, peer.PARAMETERS, constraints=limits)


def differenced_optimum(function: Callable[[np.ndarray], np.ndarray]) -> tuple[Any, np.ndarray]:
    """By SciPy's SLSQP in shares of the bounds, from an objective and what must not be negative,
    which are computed together once for each design."""
    low, high = np.array(list(peer.PARAMETERS.values())).T
    begin = (peer.START - low) / (high - low)
    known: dict[bytes, np.ndarray] = {}

    def at(u: np.ndarray) -> np.ndarray:
        if (key := u.tobytes()) not in known:
            known[key] = function(low + (high - low) * u)
        return known[key]

    end = so.minimize(
        lambda u: at(u)[0],
        begin,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(low),
        constraints={"type": "ineq", "fun": lambda u: at(u)[1:]},
        options={"maxiter": 100, "ftol": 1e-9 * at(begin)[0]},
    )
    return end, low + (high - low) * end.x


def path_study() -> tuple[design.Study, Callable[[Any], jax.Array], dict[str, Any]]:
    """The linkage of example 15, the mean square of the distances from its line (m^2), and the
    bounds."""
    pivots = {"A": (0.0, 0.0), "B": (-0.14, 0.14), "C": (0.2, 0.5), "D": (0.4, 0.0)}
    places = {"crank": (-0.07, 0.07), "coupler": (0.6, 0.8), "rocker": (0.3, 0.25)}
    pairs = {"A": ("ground", "crank"), "B": ("crank", "coupler")}
    pairs |= {"C": ("coupler", "rocker"), "D": ("ground", "rocker")}
    model = jm.Model(
        "four-bar",
        2,
        bodies=[
            jm.planar.Body(name, mass=1.0, inertia=0.1, position=at) for name, at in places.items()
        ],
        joints=[jm.planar.Revolute(name, pairs[name], at) for name, at in pivots.items()],
        drivers=[jm.Driver("motor", "A", "rotation", jm.motions.Linear(rate=np.pi / 2))],
    )
    varied = {f"joints.{name}.at": at for name, at in pivots.items()}
    varied["bodies.coupler.position"] = places["coupler"]
    bounds = {
        f"{name}.{axis}": (x - 0.12, x + 0.12)
        for name, at in varied.items()
        for axis, x in zip("xy", at, strict=True)
    }
    times = np.linspace(0.0, 1.0, 6)
    line = np.stack([np.linspace(0.65, 0.15, times.size), np.full(times.size, 0.9)], axis=1)

    def distance(response: Any) -> jax.Array:
        return jnp.mean(jnp.sum((response.q[:, 3:5] - line) ** 2, axis=1))

    return design.Study(model, list(bounds), run=design.Driven(times)), distance, bounds


def starts() -> dict[str, Any]:
    """CPU seconds of `multistart`, first and again, by the number of starts; and of SciPy's
    minimisers, one start after the other, with as many iterations at most."""
    study, distance, bounds = path_study()
    optimiser = design.Descent(steps=STEPS, rate=0.06)
    found: dict[str, Any] = {"steps": STEPS}
    for count in STARTS:
        cases = jm.Cases.uniform(bounds, count, seed=0)

        def call(cases: jm.Cases = cases) -> design.Starts:
            return design.multistart(distance, study, bounds, cases, optimiser=optimiser)

        forget_programs()
        jax.clear_caches()
        first, many = cpu_seconds(call)
        seconds = min(cpu_seconds(call)[0] for _ in range(2))
        good = many.values[many.codes == 0]
        found[f"{count} starts"] = {
            "first_s": first,
            "seconds": seconds,
            "seconds_per_start_and_step": seconds / (count * STEPS),
            **outcome(good, count),
        }
    return found | scipy_starts(study, distance, bounds)


def scipy_starts(study: design.Study, distance: Any, bounds: dict[str, Any]) -> dict[str, Any]:
    """SciPy's minimisers, in shares of the bounds."""
    low, high = np.array(list(bounds.values())).T

    @eqx.filter_jit
    def evaluated(x: jax.Array) -> Any:
        def value(x: jax.Array) -> Any:
            response = study.respond(x)
            return distance(response), response.result == jm.results.RESULTS.successful

        return jax.value_and_grad(value, has_aux=True)(x)

    count = 0

    def at(u: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal count
        count += 1
        (value, fine), slope = jax.device_get(evaluated(jnp.asarray(low + (high - low) * u)))
        return (float(value), slope * (high - low)) if fine else (_FAILED, np.zeros(len(low)))

    first = compiled(lambda: evaluated(study.design))
    designs = np.stack(jm.Cases.uniform(bounds, STARTS[-2], seed=0).values, axis=1)
    begins = [u for u in (designs - low) / (high - low) if at(u)[0] < _FAILED]
    rows: dict[str, Any] = {}
    for method in ("SLSQP", "L-BFGS-B"):
        count, began = 0, time.process_time()
        options = {"maxiter": STEPS, "ftol": 1e-12}
        ends = [
            so.minimize(at, u, jac=True, method=method, bounds=[(0, 1)] * len(u), options=options)
            for u in begins
        ]
        seconds = time.process_time() - began
        values = np.array([end.fun for end in ends])
        rows[f"{STARTS[-2]} starts, {method}"] = {
            "compile_s": first,
            "seconds": seconds,
            "evaluations": count,
            "seconds_per_evaluation": seconds / count,
            **outcome(values, STARTS[-2]),
        }
    return rows


def outcome(values: np.ndarray, count: int) -> dict[str, Any]:
    """The least and the middle value of those of `count` starts that did not fail, and how many
    did."""
    return {
        "least": float(values.min()),
        "median": float(np.median(values)),
        "failed": count - len(values),
    }


def cpu_seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of a call, and its answer."""
    start = time.process_time()
    answer = call()
    return time.process_time() - start, answer


def moving(name: str) -> tuple[design.Study, Callable[[Any], Any]]:
    """One second of a mechanism, from a functional of multipliers that are unique."""
    if name == "mobile-robot":
        model = jm.mechanisms.mobile_robot(jm.motions.Polynomial(coefficients=[0.0, 0.02]))
        parameters, rows = ["bodies.trolley.mass", "joints.A.at.x", "v.0"], ("A.x", "W5")
    else:
        model = jm.mechanisms.parallelogram(0.3)
        parameters, rows = ["bodies.platform.mass", "gravity.z"], ("K.x", "M.z")
    study = design.Study(model, parameters, run=design.Motion(1.0, count=11))
    names = model.system().structure.row_names
    places = np.array([names.index(row) for row in rows])
    return study, lambda response: jnp.mean(response.multipliers[:, places] ** 2)


def short_motion(name: str) -> dict[str, float]:
    """A motion of 0.1 s and its gradient by every number of the system and by its initial state:
    CPU seconds of the first call of `jm.jit` (to trace, lower, compile and run), and to run.
    `at_once`: gradients a CPU second of `SIDE_BY_SIDE` motions, which differ by gravity."""
    system = jm.mechanisms.get(name).system()
    q, v = system.reference_q, system.initial_v
    numbers, rest = eqx.partition(system, eqx.is_inexact_array)

    def run(numbers: Any, q: jax.Array, v: jax.Array) -> jax.Array:
        found = jm.simulate(eqx.combine(numbers, rest), q, v, 0.1)
        return jnp.sum(found.q[-1] ** 2) + jnp.sum(found.v[-1] ** 2)

    def lane(factor: jax.Array) -> jax.Array:
        changed = eqx.tree_at(lambda s: s.gravity, system, factor * system.gravity)
        return run(eqx.filter(changed, eqx.is_inexact_array), q, v)

    row: dict[str, float] = {}
    gradient = jax.value_and_grad(run, argnums=(0, 1, 2))
    many = jax.vmap(jax.value_and_grad(lane))
    factors = jnp.linspace(0.8, 1.2, SIDE_BY_SIDE)
    state = (numbers, q, v)
    for key, function, given in (
        ("run", run, state),
        ("gradient", gradient, state),
        ("at_once", many, (factors,)),
    ):
        jax.clear_caches()
        start = time.process_time()
        program = jm.jit(function)
        jax.block_until_ready(program(*given))
        row[f"{key}_compile_s"] = time.process_time() - start
        row[f"{key}_s"] = least_cpu(lambda p=program, x=given: jax.block_until_ready(p(*x)))
    row["gradient_ratio"] = row["gradient_s"] / row["run_s"]
    row["at_once_per_second"] = SIDE_BY_SIDE / row["at_once_s"]
    return row


def least_cpu(call: Callable[[], Any], repeats: int = 8) -> float:
    """Least CPU seconds of a call, after one that is not counted."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


@eqx.filter_jit
def in_reverse(study: design.Study, objective: Any, x: jax.Array) -> Any:
    """Value and gradient in reverse mode, also where a study would go forward."""
    return jax.value_and_grad(lambda y: objective(study.respond(y)))(x)


def motion_gradient(name: str) -> dict[str, Any]:
    """A motion of one second, its gradient in reverse mode, and as a study takes it (forward, for
    few parameters)."""
    study, objective = moving(name)
    x = study.design
    ways = {"run": value, "reverse": in_reverse, "gradient": value_and_slope}
    row: dict[str, Any] = {"parameters": len(study.names)}

    def call(function: Callable[..., Any]) -> Any:
        return jax.block_until_ready(function(study, objective, x))

    calls = {way: functools.partial(call, function) for way, function in ways.items()}
    row |= {f"{way}_compile_s": compiled(one) for way, one in calls.items()}
    row |= {f"{way}_s": seconds for way, seconds in best_in_turn(calls).items()}
    row["reverse_ratio"] = row["reverse_s"] / row["run_s"]
    row["gradient_ratio"] = row["gradient_s"] / row["run_s"]
    row["steps"] = int(eqx.filter_jit(study.respond)(x).statistics.steps)
    return row


def swing(
    system: jm.MultibodySystem, force: jax.Array, end: jax.Array, adjoint: dfx.AbstractAdjoint
) -> tuple[jax.Array, jax.Array]:
    """The derivative of where a falling slider-crank ends by gravity, and its steps."""

    def last(gravity: jax.Array) -> tuple[jax.Array, jax.Array]:
        changed = eqx.tree_at(lambda s: s.gravity, system, gravity)
        rest = jnp.zeros(system.structure.nv)
        found = jm.simulate(changed, system.reference_q, rest, end, adjoint=adjoint, throw=False)
        return jnp.sum(found.q[-1]), found.statistics.steps

    return jax.grad(last, has_aux=True)(force)


def memory() -> dict[str, Any]:
    """Bytes that a reverse gradient needs beside its arguments, by checkpoints; the same for
    every number of steps."""
    model = jm.mechanisms.get("slider-crank")
    system = jm.Model(
        "falling", 2, bodies=model.bodies, joints=model.joints, gravity=(0.0, -9.81)
    ).system()
    force = jnp.array([0.0, -9.81])
    found: dict[str, Any] = {}
    gradient: Any = eqx.filter_jit(swing)
    for count in CHECKPOINTS:
        adjoint = dfx.RecursiveCheckpointAdjoint(checkpoints=count)
        program = gradient.lower(system, force, jnp.asarray(1.0), adjoint).compile()
        row: dict[str, Any] = {"bytes": temporary_bytes(program)}
        for end in DURATIONS:
            call = functools.partial(program, system, force, jnp.asarray(end), adjoint)
            row[f"{end:g} s"] = {
                "steps": int(call()[1]),
                "seconds": best(lambda c=call: jax.block_until_ready(c()), 2),
            }
        found[str(count)] = row
    return found


def temporary_bytes(program: Any) -> int:
    """Of a compiled program."""
    return int(program.compiled.memory_analysis().temp_size_in_bytes)


def batches() -> dict[str, Any]:
    """Gradients of many designs at once, in chunks, and one after the other: of a turn of the
    slider-crank, and of one state of the mobile robot."""
    low, high = np.array(list(peer.PARAMETERS.values())).T
    part = np.random.default_rng(0).uniform(0.2, 0.8, size=(BATCH, len(low)))
    turn, force = crank_study()
    state = pushed_robot()
    wheel = design.Combination("W5")
    near = np.asarray(state.design) * (0.9 + 0.2 * part[:, :3])
    return {
        "turn": batch(turn, force, low + (high - low) * part),
        "state": batch(state, lambda response: jnp.sum(wheel(response) ** 2), near),
    }


def pushed_robot() -> design.Study:
    """At rest, so that its wheels carry what pushes the trolley."""
    model = jm.mechanisms.mobile_robot()
    push = jm.forces.Applied("push", "trolley", force=(3.0, 2.0), torque=0.4)
    pushed = jm.Model(
        model.name,
        model.dimension,
        bodies=model.bodies,
        joints=model.joints,
        drivers=model.drivers,
        forces=[push],
    )
    return design.Study(pushed, ["bodies.trolley.mass", "joints.A.at.x", "joints.W5.at.x"])


def batch(study: design.Study, objective: Any, designs: np.ndarray) -> dict[str, Any]:
    """Times of one study, by the size of the chunks."""
    points = jnp.asarray(designs)

    @eqx.filter_jit
    def together(xs: jax.Array, size: int) -> Any:
        return jax.lax.map(lambda x: value_and_slope(study, objective, x), xs, batch_size=size)

    def one_by_one() -> Any:
        return [jax.block_until_ready(value_and_slope(study, objective, x)) for x in points]

    slopes = np.stack([np.asarray(slope) for _, slope in one_by_one()])
    single = best(one_by_one, 2)
    row: dict[str, Any] = {"gradients": len(designs), "one_by_one_s": single}
    for size in CHUNKS:
        call = functools.partial(together, points, size)
        seconds = compiled(call)
        many = best(lambda c=call: jax.block_until_ready(c()), 3)
        gap = np.max(np.abs(np.asarray(call()[1]) - slopes)) / np.max(np.abs(slopes))
        row[f"chunks of {size}"] = {
            "compile_s": seconds,
            "together_s": many,
            "ratio": many / single,
            "largest_difference": float(gap),
        }
    return row


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "gradient": gradients,
    "optimum": optima,
    "starts": starts,
    "mobile-robot": functools.partial(motion_gradient, "mobile-robot"),
    "parallelogram": functools.partial(motion_gradient, "parallelogram"),
    **{
        f"short {name}": functools.partial(short_motion, name)
        for name in ("door", "mobile-robot", "parallelogram")
    },
    "memory": memory,
    "batch": batches,
}


def main() -> None:
    """Measure, print, and write the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", action="append", choices=list(PARTS), help="this alone")
    chosen = parser.parse_args().part or list(PARTS)
    found = hardware(("equinox", "diffrax")) | {"cores_used": len(os.sched_getaffinity(0))}
    path = result_path("design", found)
    for name in chosen:
        result = PARTS[name]()
        print(name, json.dumps(result, indent=1), flush=True)
        renew(path, {"hardware": found, name: result})


if __name__ == "__main__":
    main()
