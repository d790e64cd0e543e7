"""`jaxmbs simulate`: forward dynamics, as a JSON document (`io/REFERENCE.md`) and as tables."""

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from .._checks import listed, shown
from .._dynamics import (
    Certificate,
    certify,
    consistent_state,
    Kinematics,
    simulate,
    SimulationError,
    SimulationInterrupted,
    Trajectory,
)
from .._dynamics._initial import check_state
from .._dynamics._passages import Passage, passed_lines
from .._dynamics._saved_times import saved_times
from .._errors import ModelError
from .._files import check_folder
from .._formulations import (
    AbstractFormulation,
    AugmentedLagrangian,
    chosen_formulation,
    CoordinatePartitioning,
    ElasticResolution,
    Elimination,
    MinimumNorm,
    NullSpace,
    UdwadiaKalaba,
)
from .._reactions import Reactions
from .._reactions._text import vector, verdict, verdict_of_states
from .._reactions._wrench import largest
from .._settings import step_tolerances
from .._system import LARGEST, Model, MultibodySystem
from ..io import save_trajectory
from ..io._body_motion import body_motions
from ..io._trajectory import check_path
from ._analyze import AnalysisFailed, configuration_at, make_console, Request as _Where
from ._progress import advance, say


FORMULATIONS: Mapping[str, Callable[[], AbstractFormulation]] = MappingProxyType(
    {
        Elimination.word: Elimination,
        MinimumNorm.word: MinimumNorm,
        UdwadiaKalaba.word: UdwadiaKalaba,
        NullSpace.word: NullSpace,
        CoordinatePartitioning.word: CoordinatePartitioning,
        AugmentedLagrangian.word: AugmentedLagrangian,
        ElasticResolution.word: ElasticResolution,
    }
)

# The run that compiles lasts this part of the duration.
_DEGENERATE = 1e-6


class Request(NamedTuple):
    """Options of the command line."""

    end: float
    every: float | None = None
    rtol: float = 1e-8
    atol: float = 1e-10
    formulation: str | None = None
    drop: tuple[str, ...] = ()
    out: Path | None = None
    assemble: bool = False
    time: float = 0.0


class Answer(NamedTuple):
    """The printed results."""

    model: Model
    system: MultibodySystem
    formulation: str
    trajectory: Trajectory
    reactions: Reactions
    energy: tuple[float, float]
    compile_seconds: float
    run_seconds: float
    certificate: Certificate | None
    out: Path | None


class Interrupted(KeyboardInterrupt):
    """A run of this model that Ctrl-C has stopped, and its trajectory until then."""

    model: Model
    trajectory: Trajectory

    def __init__(self, model: Model, trajectory: Trajectory):
        self.model, self.trajectory = model, trajectory


def answer(model: Model, request: Request) -> Answer:
    """Simulate, and write the trajectory where it is wanted.

    **Raises:** `ModelError` for bad input, `AnalysisFailed` when the run fails; what was computed
    until then is written all the same. `Interrupted` after Ctrl-C.
    """
    system = model.system()
    formulation = _formulation(system, request)
    grid = times_of(model, request.time, request.end, request.every)
    _check_tolerances(request)
    check_out(request.out)
    q, v = initial_state(system, request.time, request.assemble)
    certificate = certify(system, q, v, request.time) if system.frictional_joints else None
    ends = np.asarray(grid)[[0, -1]]
    short = jnp.asarray(ends[0] + _DEGENERATE * (ends - ends[0]))
    if not _increases(short):
        # Late times lie further apart in double precision.
        short = jnp.asarray(ends)

    def tell(time: float) -> None:
        part = (time - request.time) / (request.end - request.time)
        advance(f"simulate: at {time:.4g} of {request.end:g} s", part)

    def run(times: Float[Array, " times"], throw: bool) -> tuple[Trajectory, float]:
        began = time.perf_counter()
        first, *_, last = np.asarray(times).tolist()
        found = simulate(
            system,
            q,
            v,
            last,
            start=first,
            times=times,
            formulation=formulation,
            rtol=request.rtol,
            atol=request.atol,
            progress=tell if throw else None,
            throw=throw,
        )
        jax.block_until_ready(found.q)
        return found, time.perf_counter() - began

    # The same program and next to no motion: what this takes is compilation.
    say("simulate: preparing")
    try:
        _, compiling = run(short, False)
    except ValueError as error:
        # A start from which no run goes on.
        raise ModelError(str(error)) from None
    say(f"simulate: integrating to {request.end:g} s")
    try:
        trajectory, running = run(grid, True)
    except SimulationInterrupted as error:
        raise Interrupted(model, error.trajectory) from None
    except SimulationError as error:
        kept = save(error.trajectory, request.out)
        raise AnalysisFailed(f"{error}{kept}") from None
    save(trajectory, request.out)
    last = trajectory.at(slice(-1, None))
    return Answer(
        model=model,
        system=system,
        formulation=formulation.word,
        trajectory=trajectory,
        reactions=last.reactions().state(0),
        energy=(_energy(trajectory, 0), _energy(trajectory, -1)),
        compile_seconds=compiling,
        run_seconds=running,
        certificate=certificate,
        out=request.out,
    )


def _formulation(system: MultibodySystem, request: Request) -> AbstractFormulation:
    if not request.formulation and not request.drop:
        return chosen_formulation(None, system.structure)
    word = request.formulation or Elimination.word
    if word not in FORMULATIONS:
        raise ModelError(
            f"--formulation {shown(word)} is unknown; the formulations are "
            f"{', '.join(FORMULATIONS)}."
        )
    if word == ElasticResolution.word and not system.structure.compliances:
        raise ModelError(
            f"--formulation {word} needs something that gives way; add [[compliance]] tables to "
            "the model, or leave the option out."
        )
    if system.structure.semidefinite:
        if word == UdwadiaKalaba.word and not request.drop:
            return UdwadiaKalaba(semidefinite=True)
        raise ModelError(
            f"{word} needs a mass for every body, and some have none; leave --formulation and "
            f"--drop out, or use --formulation {UdwadiaKalaba.word}."
        )
    if not request.drop:
        return FORMULATIONS[word]()
    if word != Elimination.word:
        raise ModelError(
            f"--drop names rows for {Elimination.word}; leave out --formulation {word}, or --drop."
        )
    rows = system.structure.row_names
    for name in request.drop:
        if name not in rows:
            raise ModelError(f"--drop {shown(name)} is no row; the rows are {listed(rows)}.")
    try:
        return Elimination(request.drop)
    except ValueError as error:
        raise ModelError(f"--{error}") from None


def times_of(model: Model, start: float, end: float, every: float | None) -> Float[Array, " times"]:
    """The saved times: start, start + every, ... and end.

    **Raises:** `ModelError`.
    """
    if not (abs(start) <= LARGEST and abs(end) <= LARGEST and end > start):
        raise ModelError(
            f"--end must be a time (s) later than the start and at most {LARGEST:g}, got {end:g} "
            f"with a start at {start:g}."
        )
    if every is not None and not (math.isfinite(every) and every > 0):
        raise ModelError(f"--every must be a time (s) greater than zero, got {every:g}.")
    for driver in model.drivers:
        domain = driver.motion.domain()
        if domain is not None and not (float(domain[0]) <= start and end <= float(domain[1])):
            raise ModelError(
                f"driver {shown(driver.name)}: its table runs from {float(domain[0]):g} s to "
                f"{float(domain[1]):g} s and does not hold all times from {start:g} s to "
                f"{end:g} s; choose --time and --end within it or extend the table."
            )
    try:
        times = saved_times(start, end, every, None, np.dtype(float))
    except ValueError as error:
        raise ModelError(f"--{error}") from None
    if not _increases(times):
        raise ModelError(
            f"--end {end:g} is too close to the start at {start:g} s, or --every too small, for "
            "double precision; choose a later end, or fewer times."
        )
    return times


def _increases(times: Float[Array, " times"]) -> bool:
    return bool(jnp.all(jnp.diff(times) > 0))


def _check_tolerances(request: Request) -> None:
    for word, value in (("--rtol", request.rtol), ("--atol", request.atol)):
        if not (math.isfinite(value) and value > 0):
            raise ModelError(f"{word} must be greater than zero, got {value:g}.")
    try:
        step_tolerances(request.rtol, request.atol)
    except ValueError as error:
        raise ModelError(f"--{error}") from None


def check_out(out: Path | None) -> None:
    """Refuse before the run what could not be written after it.

    **Raises:** `ModelError`.
    """
    if out is None:
        return
    check_path(out)
    check_folder(out)


def initial_state(
    system: MultibodySystem, start: float, assemble: bool
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """The state of the model file, or the nearest one that the constraints allow.

    **Raises:** `ModelError` for one that they do not allow, `AnalysisFailed` if none is found.
    """
    q = configuration_at(system, _Where(time=start, assemble=assemble))
    v = system.initial_v
    if assemble:
        try:
            return consistent_state(system, q, v, start)
        except ValueError as error:
            raise AnalysisFailed(str(error)) from None
    try:
        check_state(system, q, v, jnp.asarray(start, q.dtype))
    except ValueError as error:
        # What follows the semicolon is advice for Python.
        what = str(error).rsplit(";", 1)[0]
        raise ModelError(
            f"{what}; correct them, or let --assemble move to the nearest that the constraints "
            "allow."
        ) from None
    return q, v


def save(motion: Trajectory | Kinematics, out: Path | None) -> str:
    """Write it where it is wanted; returns a sentence to add to a message.

    **Raises:** `ModelError` if it cannot be written.
    """
    if out is None:
        return ""
    try:
        save_trajectory(motion, out)
    except OSError as error:
        raise ModelError(f"cannot write {str(out)!r}: {error.strerror}.") from None
    return f" What was computed until then is in {str(out)!r}."


def _energy(trajectory: Trajectory, index: int) -> float:
    state = trajectory.q[index], trajectory.v[index], trajectory.times[index]
    system: Any = trajectory.system
    kinetic, potential = system.energy(*state)
    return float(kinetic) + float(potential)


def document(answer: Answer) -> dict[str, Any]:
    """The JSON document."""
    trajectory = answer.trajectory
    result: dict[str, Any] = {
        "model": answer.model.name,
        "time": float(trajectory.times[-1]),
        "formulation": answer.formulation,
        "steps": int(trajectory.statistics.accepted),
        "rejected_steps": int(trajectory.statistics.rejected),
        "compile_seconds": answer.compile_seconds,
        "run_seconds": answer.run_seconds,
        "bodies": _bodies(trajectory),
        "reactions": {name: _reaction(answer.reactions, name) for name in answer.reactions.names},
        "energy": {"initial": answer.energy[0], "final": answer.energy[1]},
        "constraint_error": {
            "position": float(jnp.max(trajectory.position_error)),
            "velocity": float(jnp.max(trajectory.velocity_error)),
        },
        "passages": passages(trajectory),
        "singular": singular(trajectory.passed),
        "passages_remark": trajectory.passages_remark,
    }
    servo = _servo_error(answer)
    if servo is not None:
        result["servo_error"] = {"initial": servo[0], "final": servo[1]}
    if answer.certificate is not None:
        result["certificate"] = {
            "certified": bool(answer.certificate.certified),
            "joints": list(answer.certificate.joints),
            "uncertain": list(answer.certificate.uncertain_joints()),
            "solvable": bool(answer.certificate.solvable),
            "critical_coefficients": {
                name: limit if np.isfinite(limit) else None
                for name, limit in answer.certificate.critical_coefficients().items()
            },
        }
    if answer.model.remark:
        result["remark"] = answer.model.remark
    return result


def passages(trajectory: Trajectory) -> list[float]:
    """Times at which the motion passed singular configurations."""
    found = np.asarray(trajectory.passages)
    return found[np.isfinite(found)].tolist()


def singular(passed: tuple[Passage, ...]) -> list[dict[str, Any]]:
    """Undetermined motions and reactions in the singular configurations of a motion."""
    return [
        {
            "time": own.time,
            "rank": own.rank,
            "generic_rank": own.nearby,
            "not_unique": list(own.joints),
            "free": list(own.motions),
        }
        for own in passed
    ]


def _bodies(trajectory: Trajectory) -> dict[str, dict[str, Any]]:
    last = slice(-1, None)
    arrays = (trajectory.q[last], trajectory.v[last], trajectory.acceleration[last])
    motions = body_motions(trajectory.system.structure, *map(np.asarray, arrays))
    return {
        name: {word: values[0].tolist() for word, values in motion.states.items()}
        for name, motion in motions.items()
    }


def _reaction(reactions: Reactions, name: str) -> dict[str, Any]:
    if not reactions.has_wrench(name):
        return {
            "generalized": dict(_on_coordinates(reactions, name)),
            "unique": bool(reactions.unique(name)),
        }
    wrench = reactions.wrench(name)
    return {
        "force": np.asarray(wrench.force).tolist(),
        "torque": np.asarray(wrench.torque).tolist(),
        "unique": bool(wrench.unique),
        "force_unique": np.asarray(wrench.force_unique).tolist(),
        "torque_unique": np.asarray(wrench.torque_unique).tolist(),
    }


def _on_coordinates(reactions: Reactions, name: str) -> list[tuple[str, float]]:
    """C_X^T lambda_X of a constraint that acts at no point, by the names of the velocities."""
    values, structure = np.asarray(reactions.generalized(name)), reactions.structure
    columns = structure.constraint(name).columns
    return [(structure.velocities[k].name, float(values[k])) for k in columns]


def _servo_error(answer: Answer) -> tuple[float, float] | None:
    """The largest error of a servo constraint at the start and at the end; None without such."""
    trajectory = answer.trajectory
    if not trajectory.system.structure.servo.any():
        return None
    states = ((trajectory.q[k], trajectory.v[k], trajectory.times[k]) for k in (0, -1))
    errors = (trajectory.system.servo_error(*state) for state in states)
    first, last = (float(jnp.max(jnp.abs(error))) for error in errors)
    return first, last


# What a person reads.


def show(answer: Answer, console: Console | None = None) -> None:
    """Print the final state and its reactions."""
    console = console or make_console()
    trajectory = answer.trajectory
    console.print(f"[bold]{escape(answer.model.name)}[/bold]")
    steps = trajectory.statistics
    console.print(
        f"from {float(trajectory.times[0]):g} s to {float(trajectory.times[-1]):g} s by "
        f"{answer.formulation}: {int(steps.accepted)} steps ({int(steps.rejected)} rejected) in "
        f"{answer.run_seconds:.3g} s, after {answer.compile_seconds:.3g} s of compiling"
    )
    _show_states(answer.model, trajectory, console)
    console.print(
        "reactions on the second body of each joint (its only one), world axes, at the end"
    )
    if not all(map(answer.reactions.has_wrench, answer.reactions.names)):
        console.print("on coordinates: C_X^T lambda_X of M dv/dt + C^T lambda = F")
    console.print(_reaction_table(answer))
    for line in _notes(answer):
        console.print(Text(line))


def keep(stopped: Interrupted, request: Request, *, silent: bool) -> str:
    """Write what a run has computed until Ctrl-C where it is wanted, and print the state in which
    it was stopped unless `silent`. Returns a sentence.

    **Raises:** `ModelError` if it cannot be written.
    """
    trajectory = stopped.trajectory
    last = float(trajectory.times[-1])
    kept = save(trajectory, request.out)
    if not silent:
        console = make_console()
        console.print(f"[bold]{escape(stopped.model.name)}[/bold]")
        console.print(f"state at {last:.9g} s, where the run was stopped")
        _show_states(stopped.model, trajectory, console)
    return f"stopped at {last:.9g} s, before the end at {request.end:g} s.{kept}"


def _show_states(model: Model, trajectory: Trajectory, console: Console) -> None:
    """Print the last state."""
    states = _bodies(trajectory)
    posed = {name: state for name, state in states.items() if "position" in state}
    if posed:
        console.print(_body_table(model, posed))
    others = coordinates_of(states)
    if others:
        console.print(_coordinate_table(others))


def coordinates_of(
    states: Mapping[str, Mapping[str, Any]],
) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Bodies' coordinates of their own: body, name, and the data of that body by name."""
    return [
        (body, word.removesuffix(".rate"), known)
        for body, known in states.items()
        for word in known
        if word.endswith(".rate")
    ]


def _body_table(model: Model, posed: Mapping[str, Mapping[str, Any]]) -> Table:
    table = Table(pad_edge=False)
    planar = model.dimension == 2
    turn = "angle (rad)" if planar else "orientation (w, x, y, z)"
    for column in ("body", "position (m)", turn, "velocity (m/s)", "angular velocity (rad/s)"):
        table.add_column(column)
    for name, state in posed.items():
        turned = state.get("angle", state.get("orientation"))
        words = (state["position"], turned, state["velocity"], state.get("angular_velocity"))
        table.add_row(name, *("" if x is None else vector(x, 1.0) for x in words))
    return table


def _coordinate_table(others: list[tuple[str, str, Mapping[str, Any]]]) -> Table:
    table = Table(pad_edge=False)
    for column in ("body", "coordinate", "value (m, rad)", "rate"):
        table.add_column(column)
    for body, word, known in others:
        numbers = (vector(known[name], 1.0) for name in (word, f"{word}.rate"))
        table.add_row(*map(Text, (body, word, *numbers)))
    return table


def _reaction_table(answer: Answer) -> Table:
    table = Table(pad_edge=False)
    for column in ("joint", "type", "on", "force (N)", "torque (N m)", "verdict"):
        table.add_column(column)
    found = answer.reactions
    wrenches = {name: found.wrench(name) for name in found.names if found.has_wrench(name)}
    force, torque = largest(list(wrenches.values()))
    for name in found.names:
        if name in wrenches:
            w = wrenches[name]
            on, numbers = w.body, (vector(w.force, force), vector(w.torque, torque))
            said = verdict(w.unique, w.force_unique, w.torque_unique)
        else:
            values = np.array([value for _, value in _on_coordinates(found, name)])
            on, numbers = "coordinates", (f"generalized: {vector(values)}", "")
            said = verdict_of_states(found.unique(name))
        words = (name, found.structure.constraint(name).kind, on, *numbers, said)
        table.add_row(*map(Text, words), style="" if said == "unique" else "bold")
    return table


def _notes(answer: Answer) -> list[str]:
    trajectory = answer.trajectory
    initial, final = answer.energy
    notes = [
        f"energy (kinetic, gravity, springs): {initial:.9g} J at the start, {final:.9g} J at "
        "the end",
        f"constraints: closed within {float(jnp.max(trajectory.position_error)):.1e}, velocities "
        f"within {float(jnp.max(trajectory.velocity_error)):.1e}",
    ]
    unused = answer.system.structure.compliances
    if unused and not trajectory.elastic:
        names = ", ".join(own.name for own in unused)
        notes.append(
            f"compliances {names} are not used: reactions are those of rigid bodies "
            f"(--formulation {ElasticResolution.word} uses them)"
        )
    servo = _servo_error(answer)
    if servo is not None:
        notes.append(f"servo error: {servo[0]:.3g} at the start, {servo[1]:.3g} at the end")
    count = int(trajectory.passage_count)
    notes += passed_lines(
        count, passages(trajectory), trajectory.passed, trajectory.passages_remark
    )
    if bool(answer.reactions.doubtful):
        notes.append("doubtful: a rank was decided by a hair; analyze says how")
    if trajectory.message:
        notes.append(trajectory.message)
    if answer.certificate is not None:
        notes.append(f"friction at the start: {answer.certificate}")
    if answer.out is not None:
        notes.append(f"wrote {answer.out}")
    if answer.model.remark:
        notes.append(answer.model.remark)
    return notes
