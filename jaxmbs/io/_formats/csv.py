import csv
from collections.abc import Mapping
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from ..._dynamics import Statistics, Trajectory
from ..._errors import ModelError
from ..._solution import RESULTS
from ..._system import AbstractSystem
from .._body_motion import (
    body_motions,
    has_bodies,
    lettered,
    Numbers,
    rotation,
)
from .._record import Record
from .base import AbstractFormat


class Csv(AbstractFormat):
    """A table: a line of names, and a line for each time. It does not contain steps, passages and
    the result, which are read as none and successful."""

    def check(self, path: Path) -> None:
        del path

    def save(self, record: Record, path: Path) -> None:
        columns = _columns(record)
        lines = zip(*(values.tolist() for values in columns.values()), strict=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            # Numbers keep all their digits.
            writer.writerows(lines)

    def load(self, path: Path, system: AbstractSystem) -> Trajectory:
        with path.open(newline="", encoding="utf-8") as file:
            header, *lines = list(csv.reader(file)) or [[]]
        try:
            table = np.array([[float(x) for x in line] for line in lines]).reshape(-1, len(header))
        except ValueError:
            raise ModelError(
                f"{str(path)!r} is no table of numbers with a line of names."
            ) from None
        return _trajectory({name: table[:, k] for k, name in enumerate(header)}, system)


def _columns(record: Record) -> dict[str, Numbers]:
    _must_have_bodies(record.system)
    arrays, structure = record.arrays, record.system.structure
    motions = body_motions(structure, arrays["q"], arrays["v"], arrays["acceleration"])
    columns = {"time": arrays["times"]}
    for name, motion in motions.items():
        for word, values in motion.states.items():
            columns |= lettered(f"{name}.{word}", values)
    if record.reactions is not None:
        found = record.reactions()
        for name in found.names:
            if found.has_wrench(name):
                wrench = found.wrench(name)
                columns |= lettered(f"{name}.force", np.asarray(wrench.force))
                columns |= lettered(f"{name}.torque", np.asarray(wrench.torque))
            columns[f"{name}.unique"] = found.unique(name).numbers()
    for place in structure.internal:
        columns[structure.coordinates[place].name] = arrays["q"][:, place]
    columns["error.position"] = arrays["position_error"]
    columns["error.velocity"] = arrays["velocity_error"]
    for name, motion in motions.items():
        for word, values in motion.accelerations.items():
            columns |= lettered(f"{name}.{word}", values)
    if "multipliers" in arrays:
        named = enumerate(structure.row_names)
        columns |= {f"{row}.multiplier": arrays["multipliers"][:, k] for k, row in named}
    return columns


def _must_have_bodies(system: AbstractSystem) -> None:
    if not has_bodies(system):
        raise ModelError(
            "a system in generalized coordinates has no bodies to name in a .csv; save it as .npz."
        )


def _trajectory(columns: Mapping[str, Numbers], system: AbstractSystem) -> Trajectory:
    structure = system.structure
    _must_have_bodies(system)

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
    for body in structure.bodies:
        letters, name = "xyz"[: len(body.force)], body.name
        turning, part, others = len(body.torque), list(body.coordinates), list(body.others)
        q[:, part] = take(*(structure.coordinates[k].name for k in part))
        if others:
            own = part[len(part) - len(others) :]
            words = [structure.coordinates[k].name for k in own]
            v[:, others] = take(*(f"{word}.rate" for word in words))
            acceleration[:, others] = take(*(f"{word}.acceleration" for word in words))
        if not body.posed:
            continue
        back = np.swapaxes(rotation(q[:, part][:, 3:7]), 1, 2) if turning == 3 else None
        for into, prefix in ((v, "velocity"), (acceleration, "acceleration")):
            into[:, list(body.force)] = take(*(f"{name}.{prefix}.{c}" for c in letters))
            if back is not None:
                world = take(*(f"{name}.angular_{prefix}.{c}" for c in "xyz"))
                into[:, list(body.torque)] = np.einsum("nij,nj->ni", back, world)
            elif turning:
                into[:, list(body.torque)] = take(f"{name}.angular_{prefix}")
    internal = structure.internal.tolist()
    if internal:
        q[:, internal] = take(*(structure.coordinates[k].name for k in internal))
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
