"""`jaxmbs report`: a page that one can send."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from .._checks import shown
from .._dynamics import simulate, SimulationError, Trajectory
from .._errors import AnalysisError, ModelError
from .._formulations import elastic_formulation
from .._printing import Description
from .._ranges import AbstractBound
from .._system import Model, MultibodySystem
from ..io import load_trajectory
from ..report._contents import check_bounds, contents_of, prepare_contents
from ..report._states import SAVED, still, thinned
from ..report._write import check_path, write_page
from . import _load
from ._given_state import check_time, initial_state, times_of
from ._requests import Report as Request


def answer(request: Request) -> Description:
    """Compute what is shown, and write it.

    **Raises:** `ModelError` for bad input; `AnalysisError` when the run fails; the results until
    then are written nevertheless.
    """
    check_path(request.out)
    model = _load.load(request.model)
    system = model.system()
    bounds = _bounds(system, request)
    notes = _notes(model, request)
    failed = ""
    with ThreadPoolExecutor(1) as beside:
        try:
            trajectory = _trajectory(model, system, request, beside)
        except SimulationError as error:
            trajectory, failed = error.trajectory, str(error)
    contents = contents_of(trajectory, bounds, visuals=model.visuals)
    try:
        written = write_page(contents, request.out, model.name, notes)
    except OSError as error:
        raise ModelError(f"cannot write {str(request.out)!r}: {error.strerror}.") from None
    if failed:
        kept = f"What was computed until then is in {str(request.out)!r}."
        raise AnalysisError(f"{failed} {kept}")
    data = {
        "model": model.name,
        "file": str(written.path),
        "bytes": written.size,
        "states": written.states,
    }
    return Description([f"wrote {written}"], data=lambda: data)


def _bounds(system: MultibodySystem, request: Request) -> tuple[AbstractBound, ...]:
    """
    **Raises:** `ModelError` for a bound that means nothing in this system.
    """
    try:
        return check_bounds(system, request.bound)
    except ModelError as error:
        raise ModelError(f"--{str(error).replace('bounds', 'bound', 1)}") from None


def _trajectory(
    model: Model, system: MultibodySystem, request: Request, beside: ThreadPoolExecutor
) -> Trajectory:
    """The requested motion, or one state. The program that evaluates it is compiled in parallel
    (`beside`)."""
    if request.trajectory is not None:
        try:
            return thinned(load_trajectory(request.trajectory, system), request.frames)
        except OSError as error:
            where = shown(str(request.trajectory))
            raise ModelError(f"cannot read {where}: {error.strerror}.") from None
    start = request.time
    if request.end is None:
        check_time(model, start)
        q, v = initial_state(system, start, request.assemble)
        return still(system, q, v, start)
    grid = times_of(model, start, request.end, request.every)
    if request.every is None:
        grid = np.linspace(start, request.end, request.frames or SAVED)
    q, v = initial_state(system, start, request.assemble)
    # Compiling is most of the work, and a second core has nothing else to do.
    formulation = elastic_formulation(system.structure)
    prepared = beside.submit(prepare_contents, system, q, v, len(grid), formulation.elastic)
    trajectory = simulate(
        system, q, v, request.end, start=start, times=grid, formulation=formulation
    )
    # What went wrong there is told.
    prepared.result()
    return thinned(trajectory, request.frames)


def _notes(model: Model, request: Request) -> dict[str, str]:
    """Notes on the origin of the numbers."""
    source = _load.source(request.model)
    found = {"model": f"built-in mechanism {model.name}"}
    if source is not None:
        digest = hashlib.sha256(source.read_bytes()).hexdigest()
        found = {"model file": f"{source.name}, SHA-256 {digest}"}
    if request.trajectory is not None:
        digest = _digest(request.trajectory)
        found["motion"] = request.trajectory.name + (f", SHA-256 {digest}" if digest else "")
    elif request.end is not None:
        found["integration"] = "relative tolerance 1e-8, absolute tolerance 1e-10"
    return found | {"bounds": "; ".join(request.bound), "remark": model.remark}


def _digest(path: Path) -> str:
    """Digest of a file; a folder, such as a Zarr store, has none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
