"""`jaxmbs simulate`: forward dynamics, as a JSON document (`io/REFERENCE.md`) and as tables."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from .._checks import as_numpy, known_array, listed, shown
from .._dynamics import (
    Certificate,
    certify,
    simulate,
    SimulationError,
    SimulationInterrupted,
    Trajectory,
)
from .._dynamics._passages import passed_lines
from .._errors import AnalysisError, ModelError
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
from .._reactions._report import largest, vector, verdict, verdict_of_states
from .._settings import step_tolerances
from .._system import Model, MultibodySystem
from ..io._trajectory import body_motions
from ._computing import advance, say
from ._given_state import (
    check_out,
    coordinates_of,
    increases,
    initial_state,
    passages,
    save,
    singular,
    times_of,
)
from ._output import make_console
from ._requests import Simulate as Request


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

    **Raises:** `ModelError` for bad input, `AnalysisError` when the run fails; what was computed
    until then is written all the same. `Interrupted` after Ctrl-C.
    """
    system = model.system()
    formulation = _formulation(system, request)
    grid = times_of(model, request.time, request.end, request.every)
    try:
        step_tolerances(request.rtol, request.atol)
    except ValueError as error:
        raise ModelError(f"--{error}") from None
    check_out(request.out)
    q, v = initial_state(system, request.time, request.assemble)
    certificate = certify(system, q, v, request.time) if system.frictional_joints else None
    ends = np.asarray(grid)[[0, -1]]
    short = known_array(ends[0] + _DEGENERATE * (ends - ends[0]))
    if not increases(short):
        # Late times lie further apart in double precision.
        short = known_array(ends)

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
        raise AnalysisError(f"{error}{kept}") from None
    save(trajectory, request.out)
    last = trajectory.at(slice(-1, None))
    return Answer(
        model=model,
        system=system,
        formulation=formulation.word,
        trajectory=trajectory,
        # As NumPy arrays: what is only printed needs no programs.
        reactions=as_numpy(last.reactions().state(0)),
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


def _energy(trajectory: Trajectory, index: int) -> float:
    state = (np.asarray(x)[index] for x in (trajectory.q, trajectory.v, trajectory.times))
    system: Any = trajectory.system
    kinetic, potential = system.energy(*state)
    return float(kinetic) + float(potential)


def document(answer: Answer) -> dict[str, Any]:
    """The JSON document."""
    trajectory = answer.trajectory
    result: dict[str, Any] = {
        "model": answer.model.name,
        "time": float(np.asarray(trajectory.times)[-1]),
        "formulation": answer.formulation,
        "steps": int(trajectory.statistics.accepted),
        "rejected_steps": int(trajectory.statistics.rejected),
        "compile_seconds": answer.compile_seconds,
        "run_seconds": answer.run_seconds,
        "bodies": _bodies(trajectory),
        "reactions": {name: _reaction(answer.reactions, name) for name in answer.reactions.names},
        "energy": {"initial": answer.energy[0], "final": answer.energy[1]},
        "constraint_error": {
            "position": float(np.max(np.asarray(trajectory.position_error))),
            "velocity": float(np.max(np.asarray(trajectory.velocity_error))),
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


def _bodies(trajectory: Trajectory) -> dict[str, dict[str, Any]]:
    last = slice(-1, None)
    arrays = map(np.asarray, (trajectory.q, trajectory.v, trajectory.acceleration))
    motions = body_motions(trajectory.system.structure, *(x[last] for x in arrays))
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
    first, last = (float(np.max(np.abs(error))) for error in errors)
    return first, last


# What a person reads.


def show(answer: Answer, console: Console | None = None) -> None:
    """Print the final state and its reactions."""
    console = console or make_console()
    trajectory = answer.trajectory
    console.print(f"[bold]{escape(answer.model.name)}[/bold]")
    steps, (first, last) = trajectory.statistics, np.asarray(trajectory.times)[[0, -1]]
    console.print(
        f"from {first:g} s to {last:g} s by "
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
    last = float(np.asarray(trajectory.times)[-1])
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
    errors = (trajectory.position_error, trajectory.velocity_error)
    opened, drifting = (float(np.max(np.asarray(error))) for error in errors)
    notes = [
        f"energy (kinetic, gravity, springs): {initial:.9g} J at the start, {final:.9g} J at "
        "the end",
        f"constraints: closed within {opened:.1e}, velocities within {drifting:.1e}",
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
