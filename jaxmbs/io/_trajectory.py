"""Motions as files: `.npz`, `.nc` and `.zarr` hold everything, `.csv` what other programs need;
and as an `xarray.Dataset`.
"""

import abc
import csv
import functools
import json
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .. import _settings
from .._custom_types import Setting
from .._dynamics import Kinematics, LimitHistory, Statistics, Trajectory
from .._dynamics._passages import Passage, Passages
from .._errors import ModelError, optional
from .._files import replacing
from .._reactions import Reactions
from .._solution import RESULTS
from .._system import AbstractSystem, BodyInfo, MultibodySystem, Structure


# --------------------------------------------------------------------------------------------------
# Motions of bodies, in the terms of model files: world axes, angles and quaternions.
# --------------------------------------------------------------------------------------------------


Numbers = Float[np.ndarray, "..."]


class BodyMotion(NamedTuple):
    """One body at n times, by the words of model files and along world axes: of its frame
    (`position`, the centre of mass of a rigid body, `angle` or `orientation`, `velocity`,
    `angular_velocity`), and of each other coordinate of its own and its rate."""

    states: dict[str, Numbers]
    accelerations: dict[str, Numbers]


def has_bodies(system: AbstractSystem) -> bool:
    """Is each coordinate of the system, save states of forces, called by a body? Those of a system
    in generalized coordinates are not, even where it names bodies."""
    structure = system.structure
    called = [
        place
        for body in structure.bodies
        for place in body.coordinates
        if word_of(body, structure.coordinates[place].name) != structure.coordinates[place].name
    ]
    every = np.all(structure.is_internal | np.isin(np.arange(structure.nq), called))
    return isinstance(system, MultibodySystem) and bool(every)


def body_motions(
    structure: Structure,
    q: Float[np.ndarray, "n nq"],
    v: Float[np.ndarray, "n nv"],
    acceleration: Float[np.ndarray, "n nv"],
) -> dict[str, BodyMotion]:
    """The motion of each body at n states."""
    found = {}
    for body in structure.bodies:
        states, rates = _of_frame(body, q, v, acceleration) if body.posed else ({}, {})
        held = len(body.coordinates) - len(body.others)
        for place, column in zip(body.coordinates[held:], body.others, strict=True):
            name = word_of(body, structure.coordinates[place].name)
            states |= {name: q[:, place], f"{name}.rate": v[:, column]}
            rates[f"{name}.acceleration"] = acceleration[:, column]
        found[body.name] = BodyMotion(states, rates)
    return found


def word_of(body: BodyInfo, name: str) -> str:
    """The name of a coordinate within its body."""
    return name.removeprefix(f"{body.name}.")


def _of_frame(
    body: BodyInfo,
    q: Float[np.ndarray, "n nq"],
    v: Float[np.ndarray, "n nv"],
    acceleration: Float[np.ndarray, "n nv"],
) -> tuple[dict[str, Numbers], dict[str, Numbers]]:
    """States and accelerations of a body's own frame."""
    own, dim = q[:, list(body.coordinates)], len(body.force)
    force, torque = list(body.force), list(body.torque)
    states: dict[str, Numbers] = {"position": own[:, :dim]}
    rates: dict[str, Numbers] = {"acceleration": acceleration[:, force]}
    velocity = {"velocity": v[:, force]}
    if len(torque) == 1:
        states["angle"] = own[:, dim]
        velocity["angular_velocity"] = v[:, torque[0]]
        rates["angular_acceleration"] = acceleration[:, torque[0]]
    elif torque:
        states["orientation"] = own[:, dim : dim + 4]
        axes = rotation(states["orientation"])
        # The rate of R w is R dw/dt, since w x w = 0.
        velocity["angular_velocity"] = np.einsum("nij,nj->ni", axes, v[:, torque])
        turning = np.einsum("nij,nj->ni", axes, acceleration[:, torque])
        rates["angular_acceleration"] = turning
    return states | velocity, rates


def rotation(orientation: Float[np.ndarray, "n 4"]) -> Float[np.ndarray, "n 3 3"]:
    """Matrices whose columns are the body axes of unit quaternions, scalar first."""
    w, x, y, z = orientation.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)


def lettered(name: str, values: Numbers) -> dict[str, Numbers]:
    """Columns of a table: `name` for numbers (n,), `name.x` ... for vectors, `name.w` ... for
    quaternions."""
    if values.ndim == 1:
        return {name: values}
    letters = "wxyz" if values.shape[1] == 4 else "xyz"
    return {f"{name}.{c}": values[:, k] for k, c in enumerate(letters[: values.shape[1]])}


# --------------------------------------------------------------------------------------------------
# The content of a motion file, independent of the format, and its conversion back.
# --------------------------------------------------------------------------------------------------


_STATES = ("times", "q", "v", "acceleration", "position_error", "velocity_error", "reached")
_OWN = (*_STATES, "multipliers", "stopped")
_ARRAYS = (*_OWN, "passages", "passage_count")
_COUNTS = ("steps", "accepted", "rejected")
TEXTS = ("result", "message", "elastic", "passed", "passages_remark", "limits")

# Events of rigid limits, and which were active; in files with `limit_` before each.
_EVENTS = ("times", "limit", "kind", "before", "after", "impulse", "loss")
_OF_LIMITS = tuple(f"limit_{name}" for name in (*_EVENTS, "active"))


class Record(NamedTuple):
    """A motion as it is written.

    `arrays`: those of its class, by their names; `texts`: likewise; `error_unit`: that of
    its residuals of lengths; `reactions`: finds those of all joints, None if the motion has none;
    `system`: whose it is. `units`: do the names of columns end with them?
    """

    arrays: dict[str, np.ndarray]
    texts: dict[str, str]
    error_unit: str
    reactions: Callable[[], Reactions] | None
    system: AbstractSystem
    units: bool = False


@functools.singledispatch
def record_of(motion: Any) -> Record:
    """The record of a motion: a `Trajectory` or a `Kinematics`."""
    raise TypeError(f"only motions are written, got {type(motion).__name__}.")


@record_of.register
def _(motion: Trajectory) -> Record:
    arrays = {name: np.asarray(getattr(motion, name)) for name in _ARRAYS}
    counts = {name: np.asarray(getattr(motion.statistics, name)) for name in _COUNTS}
    texts = _texts_of(motion) | {"elastic": "yes" if motion.elastic else "no"}
    limits = motion.limits
    if limits is not None:
        own = (np.asarray(getattr(limits, name)) for name in (*_EVENTS, "active"))
        arrays |= dict(zip(_OF_LIMITS, own, strict=True))
        texts["limits"] = json.dumps(limits.names)
    return Record(arrays | counts, texts, "m", motion.reactions, motion.system)


@record_of.register
def _(motion: Kinematics) -> Record:
    arrays = {name: np.asarray(getattr(motion, name)) for name in (*_STATES, "regular")}
    return Record(arrays, _texts_of(motion), "1", None, motion.system)


def _texts_of(motion: Trajectory | Kinematics) -> dict[str, str]:
    # Texts outlive the numbers of an enumeration that grows.
    return {
        "result": RESULTS[motion.result],
        "message": motion.message,
        "passed": json.dumps([own._asdict() for own in motion.passed]),
        "passages_remark": motion.passages_remark,
    }


def _passed(text: str) -> tuple[Passage, ...]:
    found = (Passage(**own) for own in json.loads(text))
    return tuple(x._replace(joints=tuple(x.joints), motions=tuple(x.motions)) for x in found)


def names_of(structure: Structure) -> dict[str, tuple[str, ...]]:
    """Names by which a file identifies its system."""
    return {
        "row_names": structure.row_names,
        "body_names": tuple(body.name for body in structure.bodies),
        "quantities": quantity_words(structure),
    }


def quantity_words(structure: Structure) -> tuple[str, ...]:
    """The quantity whose rate each velocity is."""
    return tuple(info.quantity.name for info in structure.velocities)


def trajectory_of(
    arrays: Mapping[str, np.ndarray],
    texts: Mapping[str, str],
    names: Mapping[str, tuple[str, ...]],
    system: AbstractSystem,
    path: str,
) -> Trajectory:
    """The trajectory that a file holds.

    **Raises:** `ModelError` for what is missing, and for a file of another system.
    """
    if "limits" in texts:
        system = system.with_limits_as_rows()
    wanted = names_of(system.structure)
    there = {*arrays, *texts, *names}
    missing = sorted({"result", "message", *_ARRAYS, *_COUNTS, *wanted} - there)
    if missing:
        raise ModelError(f"{path!r} is no file of a trajectory: it has no {', '.join(missing)}.")
    for name, expected in wanted.items():
        if names[name] != expected:
            word = name.replace("_", " ")
            raise ModelError(f"{path!r} belongs to another system: its {word} differ.")
    own: dict[str, Any] = {name: jnp.asarray(arrays[name]) for name in _OWN}
    passes = Passages(
        jnp.asarray(arrays["passages"]),
        jnp.asarray(arrays["passage_count"]),
        # Files of earlier versions have times alone.
        passed=_passed(texts.get("passed", "[]")),
        remark=texts.get("passages_remark", ""),
    )
    return Trajectory(
        **own,
        passes=passes,
        statistics=Statistics(*(jnp.asarray(arrays[name]) for name in _COUNTS)),
        result=_result(texts["result"]),
        system=system,
        message=texts["message"],
        elastic=texts.get("elastic") == "yes",
        limits=_limits(arrays, system) if "limits" in texts else None,
    )


def _limits(arrays: Mapping[str, np.ndarray], system: AbstractSystem) -> LimitHistory:
    """Events of rigid limits; what has no entry may have been left out."""
    infos = [system.structure.rows[k] for k in system.structure.opening_rows]
    none = np.zeros(0)
    events = [np.asarray(arrays.get(f"limit_{name}", none)) for name in _EVENTS]
    times, limit, kind, *others = events
    return LimitHistory(
        jnp.asarray(times),
        jnp.asarray(limit.astype(int)),
        jnp.asarray(kind.astype(int)),
        *map(jnp.asarray, others),
        active=jnp.asarray(arrays["limit_active"]),
        names=tuple(info.name for info in infos),
        quantities=tuple(info.quantity for info in infos),
    )


def _result(text: str) -> RESULTS:
    """The member with that text. One unknown to this version is still a failure;
    `message` keeps its text."""
    for number in range(len(RESULTS)):
        leaf = jnp.asarray(number, jnp.int32)
        member = jax.tree.unflatten(jax.tree.structure(RESULTS.successful), [leaf])
        if RESULTS[member] == text:
            return member
    return RESULTS.integrator_failed


# --------------------------------------------------------------------------------------------------
# A motion as an `xarray.Dataset`: dimensions with names, units as attributes.
#
# It holds everything that the motion's class does, and in addition what a person or another program
# needs: the motion of each body and what each joint exerts, along world axes.
# --------------------------------------------------------------------------------------------------


# Attribute by which a file is known.
_MARK = "jaxmbs_motion"

# Arrays that are called otherwise here: `time` is a dimension too, and bodies have accelerations.
_CALLED = {"times": "time", "acceleration": "dv_dt"}

# Units of what bodies do, by the words of model files.
_UNITS = {
    "position": "m",
    "angle": "rad",
    "orientation": "1",
    "velocity": "m/s",
    "angular_velocity": "rad/s",
    "acceleration": "m/s^2",
    "angular_acceleration": "rad/s^2",
}


def dataset_of(record: Record) -> Any:
    """All data of a motion, and the derived results for bodies and joints.

    Arrays without an entry are left out: netCDF takes a dimension of length zero for one that
    grows.
    """
    xarray = optional("xarray", "sweep")
    structure = record.system.structure
    found = _own(record)
    if has_bodies(record.system):
        found |= _bodies(record)
        if record.reactions is not None and structure.constraints:
            found |= _joints(record)
    found = {name: x for name, x in found.items() if x[1].size}
    used = {dimension for dimensions, *_ in found.values() for dimension in dimensions}
    # By its bodies a system is known, also one whose bodies have no frames.
    used |= {"body"} if structure.bodies else set()
    labels = {x: _variable(x, own) for x, own in _labels(record.system).items() if x in used}
    units = _units(record.system)
    labels |= {f"{x}_unit": _variable(x, own) for x, own in units.items() if x in used}
    if "speed" in used:
        labels["speed_quantity"] = _variable("speed", quantity_words(structure))
    return xarray.Dataset(found, coords=labels, attrs={_MARK: 1, **record.texts})


def is_motion(dataset: Any) -> bool:
    """Was it written by `dataset_of`?"""
    return _MARK in dataset.attrs


def trajectory_in(dataset: Any, system: AbstractSystem, path: str) -> Trajectory:
    """The trajectory from which `dataset_of` made this.

    **Raises:** `ModelError`.
    """
    structure = system.structure
    arrays = {str(name): np.asarray(x.values) for name, x in dataset.variables.items()}
    count = len(arrays.get("time", ()))
    # What has no entry was left out.
    shapes = {
        "q": (count, structure.nq),
        "v": (count, structure.nv),
        "acceleration": (count, structure.nv),
        "multipliers": (count, len(structure.rows)),
        "passages": (0,),
    }
    empty = {name: np.zeros(shape) for name, shape in shapes.items() if shape[-1] == 0}
    # In netCDF no integer has more than 32 bits.
    arrays = {name: x.astype(int) if x.dtype.kind == "i" else x for name, x in arrays.items()}
    own = {name: arrays[called] for name, called in _CALLED.items() if called in arrays}
    others = {name: x for name, x in arrays.items() if name not in _CALLED}
    arrays = empty | others | own
    texts = {name: str(x) for name, x in dataset.attrs.items() if name in TEXTS}
    # Files of earlier versions have units alone.
    words = dict(zip(_units(system)["speed"], quantity_words(structure), strict=True))
    units = tuple(words.get(unit, unit) for unit in _texts(arrays, "speed_unit"))
    names = {
        "row_names": _texts(arrays, "row"),
        "body_names": _texts(arrays, "body"),
        "quantities": _texts(arrays, "speed_quantity") or units,
    }
    return trajectory_of(arrays, texts, names if is_motion(dataset) else {}, system, path)


def _texts(arrays: dict[str, np.ndarray], name: str) -> tuple[str, ...]:
    return tuple(map(str, arrays[name].tolist())) if name in arrays else ()


def _variable(
    dimensions: str, values: Any, unit: str = "", words: str = ""
) -> tuple[tuple[str, ...], np.ndarray, dict[str, str]]:
    """An array as xarray takes it."""
    attributes = {"units": unit, "long_name": words}
    said = {name: text for name, text in attributes.items() if text}
    return tuple(dimensions.split()), np.asarray(values), said


def _own(record: Record) -> dict[str, tuple]:
    """The arrays of the motion's class."""
    units = {name: ", ".join(dict.fromkeys(own)) for name, own in _units(record.system).items()}
    rates = ", ".join(f"{unit}^2" for unit in units["speed"].split(", "))
    error = record.error_unit
    about = {
        "times": ("time", "s", "time"),
        "q": ("time coordinate", units["coordinate"], "coordinates"),
        "v": ("time speed", units["speed"], "velocities, angular ones in space in body axes"),
        "acceleration": ("time speed", rates, "rates of the velocities"),
        "multipliers": ("time row", units["row"], "multipliers of the rows"),
        "position_error": ("time", f"{error}, rad", "largest geometric residual"),
        "velocity_error": ("time", f"{error}/s, rad/s", "largest residual of velocities"),
        "reached": ("time", "", "was this time reached"),
        "regular": ("time", "", "has the rank been kept since the time before"),
        "passages": ("passage", "s", "times at which singular configurations were passed"),
        "limit_times": ("event", "s", "times of events of rigid limits"),
        "limit_limit": ("event", "", "number of the limit"),
        "limit_kind": ("event", "", "0 impact, 1 rest, 2 release"),
        "limit_before": ("event", "m/s, rad/s", "rate of the gap before"),
        "limit_after": ("event", "m/s, rad/s", "rate of the gap after"),
        "limit_impulse": ("event", "N s, N m s", "impulse"),
        "limit_loss": ("event", "J", "energy lost in the impact"),
        "limit_active": ("time limit", "", "was this limit active"),
    }
    found = {}
    for name, values in record.arrays.items():
        dimensions, *words = about.get(name, ("",))
        found[_CALLED.get(name, name)] = _variable(dimensions, values, *words)
    return found


def _bodies(record: Record) -> dict[str, tuple]:
    """The motion of each body, along world axes. What a particle does not have is NaN."""
    arrays = (record.arrays[name] for name in ("q", "v", "acceleration"))
    motions = body_motions(record.system.structure, *arrays)
    posed = {body.name for body in record.system.structure.bodies if body.posed}
    each = [
        motion.states | motion.accelerations if name in posed else {}
        for name, motion in motions.items()
    ]
    found = {}
    for word, unit in _UNITS.items():
        known = [own[word] for own in each if word in own]
        if known:
            none = np.full(known[0].shape, np.nan)
            values = np.stack([own.get(word, none) for own in each], axis=1)
            last = "quaternion" if word == "orientation" else "axis"
            dimensions = f"time body {last}" if values.ndim == 3 else "time body"
            words = f"{word.replace('_', ' ')} of each body, world axes"
            found[word] = _variable(dimensions, values, unit, words)
    return found


def _joints(record: Record) -> dict[str, tuple]:
    """Force and torque of each joint and driver on its second body, and whether they are unique."""
    assert record.reactions is not None
    reactions = record.reactions()
    wrenches = {n: reactions.wrench(n) for n in reactions.names if reactions.has_wrench(n)}
    if not wrenches:
        return {}
    found = {}
    for word, unit in (("force", "N"), ("torque", "N m")):
        known = {name: np.asarray(getattr(w, word)) for name, w in wrenches.items()}
        # What acts on coordinates has none.
        none = np.full(next(iter(known.values())).shape, np.nan)
        values = np.stack([known.get(name, none) for name in reactions.names], axis=1)
        dimensions = "time joint axis" if values.ndim == 3 else "time joint"
        words = f"{word} of each joint on its second body, world axes"
        found[word] = _variable(dimensions, values, unit, words)
    unique = np.stack([reactions.unique(n).numbers() for n in reactions.names], axis=1)
    words = "is the reaction of this joint unique"
    return found | {"unique": _variable("time joint", unique, words=words)}


def _labels(system: AbstractSystem) -> dict[str, Sequence[str]]:
    """The names of the entries along each dimension."""
    structure = system.structure
    names = names_of(structure)
    labels: dict[str, Sequence[str]] = {
        "row": names["row_names"],
        "body": names["body_names"],
        "joint": structure.constraint_names,
        "coordinate": [info.name for info in structure.coordinates],
        "speed": [info.name for info in structure.velocities],
    }
    if not has_bodies(system):
        return labels
    assert isinstance(system, MultibodySystem)
    spatial = system.gravity.shape[0] == 3
    return labels | {
        "axis": tuple("xyz" if spatial else "xy"),
        "quaternion": tuple("wxyz"),
    }


def _units(system: AbstractSystem) -> dict[str, list[str]]:
    """The unit of each entry along the dimensions whose entries have different ones."""
    structure = system.structure
    return {
        "row": [row.quantity.force_unit for row in structure.rows],
        "coordinate": [info.quantity.unit or "1" for info in structure.coordinates],
        "speed": [f"{info.quantity.unit or '1'}/s" for info in structure.velocities],
    }


class AbstractFormat(abc.ABC):
    """A way to write motions."""

    @abc.abstractmethod
    def check(self, path: Path) -> None:
        """Refuse, before a motion is computed, what could not be written after it.

        **Raises:** `ModelError` for a missing extra, or an existing file of another kind.
        """

    @abc.abstractmethod
    def save(self, record: Record, path: Path) -> None:
        """Write it to this path, where nothing is yet.

        **Raises:** `ModelError` for a motion that the format cannot hold, `OSError`.
        """

    @abc.abstractmethod
    def load(self, path: Path, system: AbstractSystem) -> Trajectory:
        """Read a trajectory.

        **Raises:** `ModelError` for a file that is none, or of another system; `OSError`.
        """


class Csv(AbstractFormat):
    """A table: a line of names, and a line for each time. It does not contain steps, passages and
    the result, which are read as none and successful."""

    def check(self, path: Path) -> None:
        del path

    def save(self, record: Record, path: Path) -> None:
        columns, names = _columns(record), None
        if record.units:
            structure = record.system.structure
            names = [_with_unit(name, structure) for name in columns]
        lines = zip(*(values.tolist() for values in columns.values()), strict=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(names or columns)
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
        if header[0] == "time (s)":
            header = [re.sub(r" \([^()]+\)$", "", name) for name in header]
        return _trajectory({name: table[:, k] for k, name in enumerate(header)}, system)


def _with_unit(name: str, structure: Structure) -> str:
    """The name of a column with its unit, if it has one."""
    owned = {row.name: row.quantity.force_unit for row in structure.rows}
    own = {info.name: info.quantity.unit or "1" for info in structure.coordinates}
    known = {f"{row}.multiplier": unit for row, unit in owned.items()}
    for ending, per in (("", ""), (".rate", "/s"), (".acceleration", "/s^2")):
        known |= {f"{coordinate}{ending}": f"{unit}{per}" for coordinate, unit in own.items()}
    words = [word for word in name.split(".") if word not in tuple("wxyz")]
    units = _UNITS | {"time": "s", "force": "N", "torque": "N m"}
    # (By the last of its words that is no letter of an axis.)
    unit = known.get(name) or units.get(words[-1], "1")
    # Residuals are relative to a length, or of several units.
    plain = unit == "1" or name in ("error.position", "error.velocity")
    return name if plain else f"{name} ({unit})"


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
    others = [name for name in columns if name.endswith(".multiplier") and name not in rows]
    if others:
        raise ModelError(
            f"the table has a column {others[0]!r} and the system no such row: it belongs to "
            "another system, or to a motion with rigid limits, which .npz files hold."
        )
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
        passes=Passages.none(q.dtype),
        stopped=jnp.asarray(False),
        statistics=Statistics(none, none, none),
        result=RESULTS.successful,
        system=system,
    )


class NetCdf(AbstractFormat):
    """Labelled arrays in one file, as netCDF 3: SciPy writes it, and everything reads it."""

    def check(self, path: Path) -> None:
        del path
        optional("scipy.io", "sweep")
        optional("xarray", "sweep")

    def save(self, record: Record, path: Path) -> None:
        dataset_of(record).to_netcdf(path, engine="scipy", format="NETCDF3_64BIT")

    def load(self, path: Path, system: AbstractSystem) -> Trajectory:
        xarray = optional("xarray", "sweep")
        try:
            with xarray.open_dataset(path) as opened:
                found = opened.load()
        except (ValueError, TypeError, KeyError):
            raise ModelError(f"{str(path)!r} is no netCDF file.") from None
        return trajectory_in(found, system, str(path))


class Npz(AbstractFormat):
    """Arrays of NumPy in one file, with the names of rows and bodies."""

    def check(self, path: Path) -> None:
        del path

    def save(self, record: Record, path: Path) -> None:
        texts = {name: np.array(text) for name, text in record.texts.items()}
        names = names_of(record.system.structure)
        labels = {name: np.array(own, dtype=str) for name, own in names.items()}
        # To an open file, as NumPy adds its ending to names.
        with path.open("wb") as file:
            np.savez_compressed(
                file, allow_pickle=False, format=np.array(1), **record.arrays, **texts, **labels
            )

    def load(self, path: Path, system: AbstractSystem) -> Trajectory:
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = dict(file)
        except (ValueError, TypeError, zipfile.BadZipFile):
            raise ModelError(f"{str(path)!r} is no .npz file.") from None
        texts = {name: str(x) for name, x in arrays.items() if name in TEXTS}
        wanted = names_of(system.structure)
        names = {name: tuple(x.tolist()) for name, x in arrays.items() if name in wanted}
        return trajectory_of(arrays, texts, names, system, str(path))


class Zarr(AbstractFormat):
    """Labelled arrays in a folder. In Zarr's second format, since the third has no texts yet and
    names are texts."""

    def check(self, path: Path) -> None:
        optional("zarr", "sweep")
        optional("xarray", "sweep")
        # A file or an empty folder holds nothing that replacing it would lose unseen.
        occupied = path.is_dir() and any(path.iterdir())
        if occupied and not _holds_motion(path):
            raise ModelError(
                f"{str(path)!r} exists and is no store of a motion; choose another place for it."
            )

    def save(self, record: Record, path: Path) -> None:
        dataset_of(record).to_zarr(path, zarr_format=2, mode="w", consolidated=True)

    def load(self, path: Path, system: AbstractSystem) -> Trajectory:
        if not path.exists():
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return trajectory_in(_opened(path), system, str(path))


def _opened(path: Path) -> Any:
    xarray = optional("xarray", "sweep")
    try:
        with xarray.open_zarr(path, consolidated=False) as opened:
            return opened.load()
    except (OSError, ValueError, TypeError, KeyError):
        raise ModelError(f"{str(path)!r} is no Zarr store.") from None


def _holds_motion(path: Path) -> bool:
    try:
        return is_motion(_opened(path))
    except ModelError:
        return False


# --------------------------------------------------------------------------------------------------
# Motions as files: `.npz`, `.nc` and `.zarr` hold everything, `.csv` what other programs need.
# --------------------------------------------------------------------------------------------------


FORMATS: Mapping[str, AbstractFormat] = MappingProxyType(
    {".npz": Npz(), ".csv": Csv(), ".nc": NetCdf(), ".zarr": Zarr()}
)


def check_path(path: Setting[str | Path]) -> None:
    """Refuse, before a motion is computed, what could not be written after it.

    **Raises:** `ModelError` for another ending, a missing extra, and a folder of something else.
    """
    _format(path).check(Path(path))


def _format(path: Setting[str | Path]) -> AbstractFormat:
    ending = Path(_settings.path(path, "path")).suffix.lower()
    if ending not in FORMATS:
        *most, last = FORMATS
        raise ModelError(
            f"{str(path)!r}: a motion is a file that ends in {', '.join(most)} or {last}."
        )
    return FORMATS[ending]


def save_trajectory(
    trajectory: Trajectory | Kinematics,
    path: Setting[str | Path],
    *,
    units: Setting[bool] = False,
) -> None:
    """Write a motion, in the format of the file's ending. A file that is there is replaced, as a
    whole or not at all.

    - `.npz` is lossless: every array of the `Trajectory`, with the names of rows and bodies, and
      the events of rigid limits.
    - `.csv` has one line for each saved time: time, the state of each body, force and torque of
      each joint and driver on its second body with its verdict (`.unique`, 1 or 0), residuals,
      then accelerations of bodies and multipliers of rows.
    - `.nc` (netCDF) and `.zarr` (extra `sweep`) are lossless too, for xarray: arrays along `time`,
      `body`, `joint`, `row`, `coordinate` ... by name, with units; in addition to the arrays of the
      `Trajectory`, the motion of each body and the wrench of each joint.

    All along world axes, in SI units.

    **Arguments:** `trajectory`: one, not a batch; a `Kinematics` has no reactions. `path`. `units`:
    names of the columns of a `.csv` with their units, "crank.position.x (m)"; other formats have
    them always.

    **Raises:** `ModelError` for another ending, a batch, a missing extra, a folder of something
    else, and, in a `.csv`, a system without bodies. `OSError` if it cannot be written.
    """
    units = _settings.flag(units, "units")
    check_path(path)
    path = Path(path)
    if trajectory.times.ndim > 1:
        raise ModelError("a file holds one trajectory; index the batch and save one by one.")
    with replacing(path) as new:
        _format(path).save(record_of(trajectory)._replace(units=units), new)


def load_trajectory(path: Setting[str | Path], system: AbstractSystem) -> Trajectory:
    """Read what `save_trajectory` wrote of a `Trajectory`.

    A `.csv` does not contain steps, passages, the result, the formulation and events of rigid
    limits: they are read as none, successful and rigid (verdicts with compliances are in the file,
    and not computed again). Of a motion with rigid limits the system is that with its limits as
    rows, whose coefficients of restitution are those of the model.

    **Arguments:** `path`; `system`: whose motion it is.

    **Returns:** a `Trajectory`.

    **Raises:** `ModelError` for another ending, a missing extra, a file of another system, and one
    that is none. `OSError` if it cannot be read.
    """
    return _format(path).load(Path(path), system)
