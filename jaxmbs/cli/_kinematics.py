"""`jaxmbs kinematics`: the motion that drivers prescribe, and the forces that it takes."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._dynamics import inverse_dynamics, Kinematics, kinematics, KinematicsError, Trajectory
from .._errors import AnalysisError, ModelError
from .._printing import Description
from .._system import Model
from ..io._trajectory import body_motions
from . import _load
from ._given_state import (
    body_tables,
    check_out,
    configuration_at,
    of_model,
    save,
    singular,
    times_of,
)
from ._output import write_figure
from ._requests import Kinematics as Request


def answer(request: Request) -> Description:
    """Follow the drivers, and write the motion where it is wanted, with its forces if these are.

    **Raises:** `ModelError` for bad input, a mobility that no driver moves among it;
    `AnalysisError` where the mechanism cannot follow its drivers; the motion until then is
    written all the same.
    """
    return motion_of(_load.load(request.model), request)


def motion_of(model: Model, request: Request) -> Description:
    """The motion of that model."""
    out, plot = request.out, request.plot
    forces = request.reactions or plot is not None
    times = times_of(model, 0.0, request.end, request.every)
    check_out(out)
    system = model.system()
    # The first time, which the file's configuration belongs to, must be closed, or is closed.
    q = configuration_at(system, assembled=request.assemble)
    try:
        found = (inverse_dynamics if forces else kinematics)(system, q, times)
    except ValueError as error:
        raise ModelError(str(error)) from None
    except KinematicsError as error:
        kept = save(error.kinematics, out, request.units)
        raise AnalysisError(f"{error}{kept}") from None
    save(found, out, request.units)
    told = _described(found)
    if isinstance(found, Trajectory):
        told = _with_forces(told, model, found, plot)
    return of_model(model, told, out)


def _with_forces(
    told: Description, model: Model, found: Trajectory, plot: Path | None
) -> Description:
    """The motion with the largest forces of each joint and driver, which are drawn over the
    coordinates of the drivers if that is wanted."""

    def figure() -> Any:
        from ..plot import draw_driving

        return draw_driving(found, model.drivers)

    write_figure(figure, plot)
    reactions = found.reactions().described()
    return Description(
        told.head,
        [*told.tables, *reactions.tables],
        [*told.notes, *reactions.notes, "" if plot is None else f"wrote {plot}"],
        lambda: {
            **told.data(),
            "reactions": reactions.data(),
            **({} if plot is None else {"plot": str(plot)}),
        },
    )


def _described(found: Kinematics | Trajectory) -> Description:
    """The largest speeds and accelerations of each body, and when they occur."""
    times = np.asarray(found.times)
    arrays = (np.asarray(x) for x in (found.q, found.v, found.acceleration))
    motions = body_motions(found.system.structure, *arrays)
    bodies = {name: own.states | own.accelerations for name, own in motions.items()}
    units = {
        "velocity": "m/s",
        "angular_velocity": "rad/s",
        "acceleration": "m/s^2",
        "angular_acceleration": "rad/s^2",
    }
    others = {"rate": (".rate", ""), "acceleration": (".acceleration", "")}
    return Description(
        [f"{len(times)} times from {times[0]:g} s to {times[-1]:g} s; largest values"],
        body_tables(bodies, units, others, lambda values: _largest(values, times)),
        found.passage_lines(),
        partial(_data, found, bodies),
    )


def _data(
    found: Kinematics | Trajectory, bodies: Mapping[str, Mapping[str, np.ndarray]]
) -> dict[str, Any]:
    return {
        "times": np.asarray(found.times).tolist(),
        "bodies": {
            name: {word: x.tolist() for word, x in known.items()} for name, known in bodies.items()
        },
        "passages": [own.time for own in found.passed],
        "singular": singular(found.passed),
        "passages_remark": found.passages_remark,
    }


def _largest(values: np.ndarray, times: np.ndarray) -> str:
    sizes = np.linalg.norm(values.reshape(len(times), -1), axis=1)
    k = int(np.argmax(sizes))
    return f"{sizes[k]:.6g} at {times[k]:g} s"
