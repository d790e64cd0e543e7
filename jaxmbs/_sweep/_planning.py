"""Preparation before the first case: names, devices, sizes, the layout of the store."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from .. import _settings
from .._errors import ModelError
from .._solution import sentences
from .._system import AbstractSystem, Model, Structure
from .._version import __version__
from ._answers import bytes_of, CASE, CONFIGURATION, RESULT, Variable, variables
from ._cases import Cases
from ._program import Device
from ._stores import Layout
from ._subjects import AbstractSubject, doubled


# A chunk holds at most this many batches, and every device has one. Where cases are kept or counted
# as they come, it holds a sixteenth of them (what a kill may cost).
_BATCHES, _PARTS = 128, 16

# The part of a device's free memory that the arrays of a chunk may take.
_SHARE = 8


def named(subject: AbstractSubject, cases: Cases) -> Cases:
    """The cases under their full names, after a check of their extreme values.

    **Raises:** `ModelError` for names that mean nothing and numbers that cannot be.
    """
    names = [subject.name(name) for name in cases.names]
    twice = doubled(subject, names)
    if twice is not None:
        raise ModelError(f"{twice!r} is varied twice.")
    extremes = {0}
    for column in cases.values:
        entries = column.reshape(len(column), -1)
        extremes |= {int(k) for k in (*entries.argmin(axis=0), *entries.argmax(axis=0))}
    for k in sorted(extremes):
        subject.check({name: x[k] for name, x in zip(names, cases.values, strict=True)})
    return Cases(dict(zip(names, cases.values, strict=True)), origin=cases.origin)


def devices_of(devices: Any) -> tuple[Device, ...]:
    """All the devices, in order.

    **Raises:** `TypeError` for values that are not devices, `ModelError` for none or a repeated
    one.
    """
    given = tuple(devices.devices.flat) if isinstance(devices, Mesh) else devices
    given = jax.devices() if given is None else given
    chosen = _settings.instances(given, jax.Device, "devices", "jax.devices()[0]")
    if len(set(chosen)) < len(chosen):
        raise ModelError("devices names one device twice; name each once.")
    if len(chosen) == 0:
        raise ModelError("devices must name at least one device, got none.")
    return chosen


def chunk_of(
    given: int | None,
    stored: int | None,
    count: int,
    width: int,
    each: int,
    devices: Sequence[Device],
    at_once: bool,
) -> int:
    """Cases in a chunk: whole batches.

    **Arguments:** `given` by the user; `stored` in the store that is continued; `count` of all
    cases; `width` of a batch; `each`: bytes of one case; `at_once`: does nobody look at results
    before all are there?

    **Raises:** `ModelError` if the store has other chunks than requested.
    """
    wanted = None if given is None else -(-given // width) * width
    if stored is not None:
        if wanted not in (None, stored):
            raise ModelError(
                f"the store has chunks of {stored} cases, not {wanted}; leave the chunk out to "
                "continue it."
            )
        return stored
    if wanted is not None:
        return wanted
    # The more cases a chunk has, the less its places wait for each other. (What is left empty of it
    # is not computed: so few lengths serve all numbers of cases, without another program.)
    parts = max(1 if at_once else _PARTS, len(devices))
    wanted = -(-count // (parts * width))
    wanted = 1 << (wanted - 1).bit_length() if parts == 1 else wanted
    fit = _free_memory(devices) // (_SHARE * max(each, 1) * width)
    return width * max(1, min(_BATCHES, wanted, fit))


def _free_memory(devices: Sequence[Device]) -> int:
    """Bytes for each device of this process."""
    own = [d for d in devices if d.process_index == jax.process_index()]
    if not own:
        raise ModelError("every process needs a device of its own among the devices.")
    statistics = own[0].memory_stats() if own[0].platform != "cpu" else None
    if statistics and "bytes_limit" in statistics:
        return statistics["bytes_limit"] - statistics.get("bytes_in_use", 0)
    pages = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return pages // (len(own) * jax.process_count())


def bytes_of_case(cases: Cases, shapes: dict[str, Any]) -> int:
    """Bytes of the values of one case and of what a chunk holds of it."""
    return bytes_of(shapes) + sum(x[0].nbytes for x in cases.values)


def layout_of(
    system: Model | AbstractSystem,
    subject: AbstractSubject,
    cases: Cases,
    structure: Structure,
    shapes: dict[str, Any],
    units: Mapping[str, str],
    chunk: int,
    fingerprint: str,
) -> Layout:
    """The layout of a store. `structure`: names of rows and bodies, the same in all cases."""
    said = sentences()
    words = {
        "flag_values": list(said),
        "flag_meanings": " ".join(word for word, _ in said.values()),
        "messages": {word: text for word, text in said.values() if text},
    }
    taken = [RESULT, CONFIGURATION, *cases.names]
    own = (
        Variable(RESULT, (), np.dtype(shapes["code"].dtype), (), words),
        Variable(
            CONFIGURATION,
            shapes["q"].shape,
            np.dtype(shapes["q"].dtype),
            ("coordinate",),
            {"units": "m, rad or (quaternions) 1"},
        ),
        *(_case_variable(subject, n, x) for n, x in zip(cases.names, cases.values, strict=True)),
        *variables(shapes["answer"], taken, units),
    )
    attributes = {
        "title": system.name if isinstance(system, Model) else type(system).__name__,
        "jaxmbs_version": __version__,
        "cases": cases.origin,
        "varied": list(cases.names),
        "constraints": list(structure.constraint_names),
        "rows": list(structure.row_names),
        "bodies": [body.name for body in structure.bodies],
    }
    along = tuple(v._replace(dimensions=(CASE, *v.dimensions)) for v in own)
    return Layout(len(cases), chunk, along, attributes, fingerprint)


# Systems of cases, with the arrays that their subjects consist of (which cannot change); so many
# are kept. To make one takes as long as to answer some hundred cases.
_systems: dict[Any, tuple[list[jax.Array], AbstractSystem]] = {}
_MOST = 16


def system_of_case(subject: AbstractSubject, cases: Cases, number: int) -> AbstractSystem:
    """The system of one case; of the same case of the same subject it is made once."""
    own = {n: x[number] for n, x in zip(cases.names, cases.values, strict=True)}
    leaves, tree = jax.tree.flatten(subject)
    if not all(isinstance(x, jax.Array) for x in leaves):
        # Numbers of NumPy and what the user's functions hold may change.
        return subject.place(own).system
    said = tuple((name, value.dtype.str, value.tobytes()) for name, value in own.items())
    key = tree, tuple(map(id, leaves)), said
    if key not in _systems:
        while len(_systems) >= _MOST:
            _systems.pop(next(iter(_systems)), None)
        _systems[key] = leaves, subject.place(own).system
    return _systems[key][1]


def middle_system(subject: AbstractSubject, cases: Cases) -> AbstractSystem:
    """The system of a case in the middle of all; of the first one, where that one cannot be."""
    try:
        return system_of_case(subject, cases, _middle_case(cases))
    except ValueError:
        # Not every case has been checked: those that cannot be are told in their results.
        return system_of_case(subject, cases, 0)


def _middle_case(cases: Cases) -> int:
    """The case whose values are nearest to the middles of their ranges, of positive numbers by
    their ratios: so that other masses differ from its masses by the smallest factor."""
    away = np.zeros(len(cases))
    for x in cases.values:
        flat = np.reshape(x, (len(cases), -1)).astype(float)
        with np.errstate(invalid="ignore", divide="ignore"):
            flat = np.where((flat > 0).all(axis=0), np.log(np.abs(flat)), flat)
            low, high = flat.min(axis=0), flat.max(axis=0)
            off = np.abs(flat - (low + high) / 2) / np.maximum(high - low, 1e-300)
        away += np.sum(np.where(np.isfinite(off), off, 1.0) ** 2, axis=1)
    return int(np.argmin(away))


def _case_variable(subject: AbstractSubject, name: str, values: np.ndarray) -> Variable:
    shape = values.shape[1:]
    dimensions = tuple(f"{name}_{k}" for k in range(len(shape)))
    unit = subject.unit(name)
    return Variable(name, shape, values.dtype, dimensions, {"units": unit} if unit else {})
