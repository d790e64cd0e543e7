"""Trajectories as files: `.npz` holds everything, `.csv` what other programs ask for."""

import csv
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._dynamics import Statistics, Trajectory
from .._errors import ModelError
from .._solution import RESULTS
from .._system import AbstractSystem, Structure
from ._body_motion import (
    body_motions,
    coordinate_slices,
    lettered,
    must_have_bodies,
    Numbers,
    rotation,
)


_ARRAYS = (
    "times",
    "q",
    "v",
    "acceleration",
    "multipliers",
    "position_error",
    "velocity_error",
    "reached",
    "passages",
    "passage_count",
    "stopped",
)
_COUNTS = ("steps", "accepted", "rejected")


def check_ending(path: str | Path) -> str:
    """The ending of a file for trajectories.

    **Raises:** `ModelError` for one that is not written.
    """
    ending = Path(path).suffix.lower()
    if ending in (".nc", ".zarr"):
        raise ModelError(
            f"{str(path)!r}: NetCDF and Zarr files are not written yet; choose .npz or .csv."
        )
    if ending not in (".npz", ".csv"):
        raise ModelError(f"{str(path)!r}: a trajectory is a .npz or a .csv file, by its ending.")
    return ending


def save_trajectory(trajectory: Trajectory, path: str | Path) -> None:
    """Write a trajectory, as its ending says.

    `.npz` is lossless: every array of the `Trajectory`, with the names of rows and bodies. `.csv`
    has one line for each saved time: time, the state of each body, force and torque of each
    joint and driver on its second body with its verdict (`.unique`, 1 or 0), residuals, then
    accelerations of bodies and multipliers of rows. All along world axes, in SI units.

    **Arguments:** `trajectory`: one, not a batch. `path`.

    **Raises:** `ModelError` for another ending, a batch, and, in a `.csv`, a system without
    bodies. `OSError` if it cannot be written.
    """
    ending = check_ending(path)
    if trajectory.times.ndim > 1:
        raise ModelError("a file holds one trajectory; index the batch and save one by one.")
    if ending == ".npz":
        np.savez_compressed(path, allow_pickle=False, **_everything(trajectory))
    else:
        write_csv(_columns(trajectory), path)


def load_trajectory(path: str | Path, system: AbstractSystem) -> Trajectory:
    """Read what `save_trajectory` wrote.

    A `.csv` knows nothing of steps, passages and the result: they come back as none and
    successful.

    **Arguments:** `path`; `system`: whose motion it is.

    **Returns:** a `Trajectory`.

    **Raises:** `ModelError` for another ending, a file of another system, and one that is none.
    `OSError` if it cannot be read.
    """
    if check_ending(path) == ".csv":
        return _from_columns(read_csv(path), system)
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except (ValueError, TypeError, zipfile.BadZipFile):
        raise ModelError(f"{str(path)!r} is no .npz file.") from None
    return _from_arrays(arrays, system, str(path))


# .npz: everything


def _names(structure: Structure) -> dict[str, np.ndarray]:
    return {
        "row_names": np.array(structure.row_names, dtype=str),
        "body_names": np.array([body.name for body in structure.bodies], dtype=str),
        "quantities": np.array(structure.quantities, dtype=str),
    }


def _everything(trajectory: Trajectory) -> dict[str, np.ndarray]:
    arrays = {name: np.asarray(getattr(trajectory, name)) for name in _ARRAYS}
    counts = {name: np.asarray(getattr(trajectory.statistics, name)) for name in _COUNTS}
    # Texts outlive the numbers of an enumeration that grows.
    text = RESULTS[trajectory.result]
    result = {"result": np.array(text), "message": np.array(trajectory.message)}
    return {
        "format": np.array(1),
        **arrays,
        **counts,
        **result,
        **_names(trajectory.system.structure),
    }


def _texts() -> list[str]:
    return [RESULTS[_result(k)] for k in range(len(RESULTS))]


def _result(number: Any) -> RESULTS:
    return jax.tree.unflatten(
        jax.tree.structure(RESULTS.successful), [jnp.asarray(number, jnp.int32)]
    )


def _from_arrays(file: Mapping[str, np.ndarray], system: AbstractSystem, path: str) -> Trajectory:
    expected = {"format", "result", "message", *_ARRAYS, *_COUNTS, *_names(system.structure)}
    missing = sorted(expected - set(file))
    if missing:
        raise ModelError(f"{path!r} is no file of a trajectory: it has no {', '.join(missing)}.")
    for name, wanted in _names(system.structure).items():
        if file[name].tolist() != wanted.tolist():
            word = name.replace("_", " ")
            raise ModelError(f"{path!r} belongs to another system: its {word} differ.")
    texts, text = _texts(), str(file["result"])
    # A text that this version does not know still is a failure; `message` keeps what it said.
    known = text in texts
    result = _result(texts.index(text)) if known else RESULTS.integrator_failed
    arrays = {name: jnp.asarray(file[name]) for name in _ARRAYS}
    return Trajectory(
        **arrays,
        statistics=Statistics(*(jnp.asarray(file[name]) for name in _COUNTS)),
        result=result,
        system=system,
        message=str(file["message"]),
    )


# .csv: a table


def _columns(trajectory: Trajectory) -> dict[str, Numbers]:
    structure = trajectory.system.structure
    must_have_bodies(structure)
    q, v = np.asarray(trajectory.q), np.asarray(trajectory.v)
    motions = body_motions(structure, q, v, np.asarray(trajectory.acceleration))
    columns = {"time": np.asarray(trajectory.times)}
    for name, motion in motions.items():
        for word, values in motion.columns().items():
            columns |= lettered(f"{name}.{word}", values)
    found = trajectory.reactions()
    for name in found.names:
        wrench = found.wrench(name)
        columns |= lettered(f"{name}.force", np.asarray(wrench.force))
        columns |= lettered(f"{name}.torque", np.asarray(wrench.torque))
        columns[f"{name}.unique"] = np.asarray(wrench.unique).astype(int)
    columns["error.position"] = np.asarray(trajectory.position_error)
    columns["error.velocity"] = np.asarray(trajectory.velocity_error)
    for name, motion in motions.items():
        for word, values in motion.rates().items():
            columns |= lettered(f"{name}.{word}", values)
    multipliers = np.asarray(trajectory.multipliers)
    named = {f"{row}.multiplier": multipliers[:, k] for k, row in enumerate(structure.row_names)}
    return columns | named


def write_csv(columns: Mapping[str, Numbers], path: str | Path) -> None:
    """A header of names and a line for each entry; numbers keep all their digits."""
    lines = zip(*(values.tolist() for values in columns.values()), strict=True)
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(lines)


def read_csv(path: str | Path) -> dict[str, Numbers]:
    """Columns by name.

    **Raises:** `ModelError` for what is no table of numbers.
    """
    with Path(path).open(newline="", encoding="utf-8") as file:
        header, *lines = list(csv.reader(file)) or [[]]
    try:
        table = np.array([[float(x) for x in line] for line in lines]).reshape(-1, len(header))
    except ValueError:
        raise ModelError(f"{str(path)!r} is no table of numbers with a line of names.") from None
    return {name: table[:, k] for k, name in enumerate(header)}


def _from_columns(columns: Mapping[str, Numbers], system: AbstractSystem) -> Trajectory:
    structure = system.structure
    must_have_bodies(structure)

    def take(*names: str) -> np.ndarray:
        missing = [name for name in names if name not in columns]
        if missing:
            raise ModelError(
                f"the table has no column {missing[0]!r}: it belongs to another system."
            )
        return np.stack([columns[name] for name in names], axis=1)

    times = take("time")[:, 0]
    q, v = np.zeros((len(times), structure.nq)), np.zeros((len(times), structure.nv))
    acceleration = np.zeros_like(v)
    for body, part in coordinate_slices(structure):
        letters, name = "xyz"[: len(body.force)], body.name
        turning = len(body.torque)
        words = {0: [], 1: ["angle"], 3: [f"orientation.{c}" for c in "wxyz"]}[turning]
        words = [*(f"position.{c}" for c in letters), *words]
        q[:, part] = take(*(f"{name}.{word}" for word in words))
        back = np.swapaxes(rotation(q[:, part][:, 3:]), 1, 2) if turning == 3 else None
        for into, prefix in ((v, "velocity"), (acceleration, "acceleration")):
            into[:, list(body.force)] = take(*(f"{name}.{prefix}.{c}" for c in letters))
            if back is not None:
                world = take(*(f"{name}.angular_{prefix}.{c}" for c in "xyz"))
                into[:, list(body.torque)] = np.einsum("nij,nj->ni", back, world)
            elif turning:
                into[:, list(body.torque)] = take(f"{name}.angular_{prefix}")
    rows = [f"{row}.multiplier" for row in structure.row_names]
    multipliers = take(*rows) if rows else np.zeros((len(times), 0))
    none = jnp.asarray(0)
    return Trajectory(
        times=jnp.asarray(times),
        q=jnp.asarray(q),
        v=jnp.asarray(v),
        acceleration=jnp.asarray(acceleration),
        multipliers=jnp.asarray(multipliers),
        position_error=jnp.asarray(take("error.position")[:, 0]),
        velocity_error=jnp.asarray(take("error.velocity")[:, 0]),
        reached=jnp.ones(len(times), bool),
        passages=jnp.zeros(0),
        passage_count=none,
        stopped=jnp.asarray(False),
        statistics=Statistics(none, none, none),
        result=RESULTS.successful,
        system=system,
    )
