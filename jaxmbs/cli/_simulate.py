"""`jaxmbs simulate`: forward dynamics."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from .._checks import as_numpy, known_array, listed, shown
from .._dynamics import (
    Certificate,
    certify,
    simulate,
    SimulationError,
    SimulationInterrupted,
    stop_contacts,
    Trajectory,
)
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
from .._printing import Description, Table
from .._reactions import Reactions
from .._reactions._report import vector
from .._settings import step_tolerances
from .._system import Model, MultibodySystem
from ..io._trajectory import body_motions
from . import _load
from ._computing import advance, say
from ._given_state import (
    body_tables,
    check_out,
    increases,
    initial_state,
    of_model,
    save,
    singular,
    times_of,
)
from ._interrupt import keeping, Stopped
from ._output import show
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


class Run(NamedTuple):
    """A motion, and what there is to tell besides."""

    model: Model
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


def answer(request: Request) -> Description:
    """The motion from the state of the model file. After Ctrl-C what was computed is written, and
    the last state printed.

    **Raises:** as `run`; `Stopped` after Ctrl-C.
    """
    with keeping():
        try:
            return _described(run(_load.load(request.model), request))
        except Interrupted as stopped:
            raise Stopped(_keep(stopped, request)) from None


def run(model: Model, request: Request) -> Run:
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
    q, v = initial_state(_at_start(system, request), request.time, request.assemble)
    certificate = certify(system, q, v, request.time) if system.frictional_joints else None
    ends = np.asarray(grid)[[0, -1]]
    short = known_array(ends[0] + _DEGENERATE * (ends - ends[0]))
    if not increases(short):
        # Late times lie further apart in double precision.
        short = known_array(ends)

    def tell(time: float) -> None:
        part = (time - request.time) / (request.end - request.time)
        advance(f"simulate: at {time:.4g} of {request.end:g} s", part)

    def motion(times: Float[Array, " times"], throw: bool) -> tuple[Trajectory, float]:
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
            limits=request.limits,
        )
        jax.block_until_ready(found.q)
        return found, time.perf_counter() - began

    # The same program and next to no motion: what this takes is compilation.
    say("simulate: preparing")
    try:
        _, compiling = motion(short, False)
    except ValueError as error:
        # A start from which no run goes on.
        raise ModelError(str(error)) from None
    say(f"simulate: integrating to {request.end:g} s")
    try:
        trajectory, running = motion(grid, True)
    except SimulationInterrupted as error:
        raise Interrupted(model, error.trajectory) from None
    except SimulationError as error:
        kept = save(error.trajectory, request.out, request.units)
        raise AnalysisError(f"{error}{kept}") from None
    save(trajectory, request.out, request.units)
    last = trajectory.at(slice(-1, None))
    return Run(
        model=model,
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


def _at_start(system: MultibodySystem, request: Request) -> MultibodySystem:
    """The system that the state of the model must fit: rigid limits may be open in it."""
    if request.limits is None or not (system.stops or system.structure.opening_rows):
        return system
    found = system.with_limits_as_rows()
    return found.with_active_limits(known_array(np.zeros(len(found.structure.opening_rows))))


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


def _data(run: Run) -> dict[str, Any]:
    trajectory = run.trajectory
    data: dict[str, Any] = {
        "time": float(np.asarray(trajectory.times)[-1]),
        "formulation": run.formulation,
        "steps": int(trajectory.statistics.accepted),
        "rejected_steps": int(trajectory.statistics.rejected),
        "compile_seconds": run.compile_seconds,
        "run_seconds": run.run_seconds,
        "bodies": _bodies(trajectory),
        "reactions": run.reactions.described().data(),
        "energy": {"initial": run.energy[0], "final": run.energy[1]},
        "constraint_error": {
            "position": float(np.max(np.asarray(trajectory.position_error))),
            "velocity": float(np.max(np.asarray(trajectory.velocity_error))),
        },
        "passages": trajectory.known_passages(),
        "singular": singular(trajectory.passed),
        "passages_remark": trajectory.passages_remark,
    }
    servo = _servo_error(trajectory)
    if servo is not None:
        data["servo_error"] = {"initial": servo[0], "final": servo[1]}
    if trajectory.limits is not None:
        data["limits"] = trajectory.limits.described().data()
    if trajectory.system.stops:
        data["stops"] = stop_contacts(trajectory).described().data()
    if run.certificate is not None:
        data["certificate"] = run.certificate.described().data()
    return data


def _bodies(trajectory: Trajectory) -> dict[str, dict[str, Any]]:
    last = slice(-1, None)
    arrays = map(np.asarray, (trajectory.q, trajectory.v, trajectory.acceleration))
    motions = body_motions(trajectory.system.structure, *(x[last] for x in arrays))
    return {
        name: {word: values[0].tolist() for word, values in motion.states.items()}
        for name, motion in motions.items()
    }


def _servo_error(trajectory: Trajectory) -> tuple[float, float] | None:
    """The largest error of a servo constraint at the start and at the end; None without such."""
    if not trajectory.system.structure.servo.any():
        return None
    states = ((trajectory.q[k], trajectory.v[k], trajectory.times[k]) for k in (0, -1))
    errors = (trajectory.system.servo_error(*state) for state in states)
    first, last = (float(np.max(np.abs(error))) for error in errors)
    return first, last


# --------------------------------------------------------------------------------------------------
# What a person reads.
# --------------------------------------------------------------------------------------------------


def _described(run: Run) -> Description:
    """The final state and its reactions."""
    trajectory, reactions = run.trajectory, run.reactions.described()
    steps, (first, last) = trajectory.statistics, np.asarray(trajectory.times)[[0, -1]]
    initial, final = run.energy
    (table,) = reactions.tables
    told = Description(
        [
            f"from {first:g} s to {last:g} s by {run.formulation}: {int(steps.accepted)} steps "
            f"({int(steps.rejected)} rejected) in {run.run_seconds:.3g} s, after "
            f"{run.compile_seconds:.3g} s of compiling"
        ],
        [
            *_state_tables(run.model, trajectory),
            table._replace(title=f"{table.title}; at the end"),
        ],
        [
            f"energy (kinetic, gravity, springs): {initial:.9g} J at the start, {final:.9g} J at "
            "the end",
            *trajectory.remarks(),
            _unused_compliances(trajectory),
            _servo_words(trajectory),
            *reactions.notes,
            trajectory.message,
            "" if run.certificate is None else f"friction at the start: {run.certificate}",
        ],
        partial(_data, run),
    )
    return of_model(run.model, told, run.out)


def _unused_compliances(trajectory: Trajectory) -> str:
    names = ", ".join(own.name for own in trajectory.system.structure.compliances)
    if not names or trajectory.elastic:
        return ""
    return (
        f"compliances {names} are not used: reactions are those of rigid bodies "
        f"(--formulation {ElasticResolution.word} uses them)"
    )


def _servo_words(trajectory: Trajectory) -> str:
    servo = _servo_error(trajectory)
    if servo is None:
        return ""
    return f"servo error: {servo[0]:.3g} at the start, {servo[1]:.3g} at the end"


def _keep(stopped: Interrupted, request: Request) -> str:
    """Write what a run has computed until Ctrl-C where it is wanted, and print the state in which
    it was stopped. Returns a sentence.

    **Raises:** `ModelError` if it cannot be written.
    """
    trajectory = stopped.trajectory
    last = float(np.asarray(trajectory.times)[-1])
    kept = save(trajectory, request.out, request.units)
    if not request.json:
        head = f"state at {last:.9g} s, where the run was stopped"
        tables = _state_tables(stopped.model, trajectory)
        show(Description([head], tables, title=stopped.model.name))
    return f"stopped at {last:.9g} s, before the end at {request.end:g} s.{kept}"


def _state_tables(model: Model, trajectory: Trajectory) -> list[Table]:
    """The last state."""
    turned = {"angle": "rad"} if model.dimension == 2 else {"orientation": "w, x, y, z"}
    units = {"position": "m", **turned, "velocity": "m/s", "angular_velocity": "rad/s"}
    others = {"value": ("", "m, rad"), "rate": (".rate", "")}
    return body_tables(_bodies(trajectory), units, others, lambda values: vector(values, 1.0))
