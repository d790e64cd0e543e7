"""A motion as an `xarray.Dataset`: dimensions with names, units as attributes.

It holds everything that the motion's class does, and in addition what a person or another program
needs: the motion of each body and what each joint exerts, along world axes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._dynamics import Trajectory
from .._extras import optional
from .._system import AbstractSystem, MultibodySystem
from ._body_motion import body_motions, has_bodies
from ._record import names_of, quantity_words, Record, TEXTS, trajectory_of


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
