"""A sweep from its plan to its end: names, devices, sizes and a fingerprint, then the loop over
chunks.
"""

import functools
import hashlib
import inspect
import os
import threading
import time
import types
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh

from .. import _settings
from .._errors import ModelError, optional
from .._solution import sentences
from .._system import AbstractSystem, Model, Structure
from .._version import __version__
from . import _stores
from ._cases import Cases
from ._program import assemble_rest, Campaign, Device, look_at_masses, run_batches, second_pass
from ._stores import (
    AbstractStore,
    bytes_of,
    CASE,
    CONFIGURATION,
    flatten,
    Layout,
    MemoryStore,
    RESULT,
    Variable,
    variables,
)
from ._subjects import AbstractSubject, doubled


# --------------------------------------------------------------------------------------------------
# A fingerprint of a sweep, by which a store checks that the same sweep is continued.
#
# Equal models, cases and questions have equal fingerprints in every process: arrays count by their
# numbers, functions by what they do (code, constants, what they close over), not by their address.
# --------------------------------------------------------------------------------------------------


def digest(*parts: Any) -> str:
    """The fingerprint of arrays, modules, functions and plain values."""
    hasher = hashlib.sha256()
    _Walk(hasher).add(parts)
    return hasher.hexdigest()


class _Walk:
    """Goes once through everything that is reached."""

    def __init__(self, hasher: Any):
        self._hasher = hasher
        self._seen: dict[int, int] = {}
        # What was met stays alive, so that no other object takes its identity.
        self._met: list[Any] = []

    def word(self, text: str) -> None:
        data = text.encode()
        self._hasher.update(f"{len(data)}:".encode() + data)

    def add(self, x: Any) -> None:
        if id(x) in self._seen:
            self.word(f"again {self._seen[id(x)]}")
            return
        _add(x, self)

    def mark(self, x: Any) -> None:
        """Objects that may hold themselves are met once."""
        self._seen[id(x)] = len(self._seen)
        self._met.append(x)


@functools.singledispatch
def _add(x: Any, walk: _Walk) -> None:
    """The digest of any other object: its class and its attributes."""
    walk.mark(x)
    walk.word(f"{type(x).__module__}.{type(x).__qualname__}")
    inner = getattr(x, "__wrapped__", None)
    if inner is not None:
        # Compiled functions.
        walk.add(inner)
        return
    fields = getattr(x, "__dict__", None)
    if fields is None:
        walk.word(repr(x))
        return
    # Cached properties follow from the rest, and may have been evaluated or not.
    cached = {
        name
        for cls in type(x).__mro__
        for name, own in vars(cls).items()
        if isinstance(own, functools.cached_property)
    }
    # Hashes of text differ between processes.
    for name in sorted(set(fields) - cached - {"_hash"}):
        walk.word(name)
        walk.add(fields[name])


@_add.register(str | bytes | int | float | complex)
def _(x: Any, walk: _Walk) -> None:
    walk.word(f"{type(x).__name__} {x!r}")


@_add.register(types.NoneType)
def _(x: None, walk: _Walk) -> None:
    del x
    walk.word("none")


@_add.register(np.ndarray)
@_add.register(np.generic)
@_add.register(jax.Array)
def _(x: Any, walk: _Walk) -> None:
    array = np.ascontiguousarray(np.asarray(x))
    walk.word(f"array {array.dtype} {np.shape(x)}")
    walk.word(array.tobytes().hex())


@_add.register(tuple)
@_add.register(list)
def _(x: Any, walk: _Walk) -> None:
    walk.word(f"{type(x).__name__} of {len(x)}")
    for entry in x:
        walk.add(entry)


@_add.register(set)
@_add.register(frozenset)
def _(x: Any, walk: _Walk) -> None:
    walk.word(f"set {sorted(map(repr, x))}")


@_add.register(Mapping)
def _(x: Any, walk: _Walk) -> None:
    walk.mark(x)
    walk.word(f"mapping of {len(x)}")
    for key in x:
        walk.add(key)
        walk.add(x[key])


@_add.register(type)
@_add.register(types.ModuleType)
@_add.register(types.BuiltinFunctionType)
def _(x: Any, walk: _Walk) -> None:
    walk.word(f"{getattr(x, '__module__', '')} {x.__name__}")


@_add.register(functools.partial)
def _(x: Any, walk: _Walk) -> None:
    walk.word("partial")
    walk.add((x.func, x.args, x.keywords))


@_add.register(types.MethodType)
def _(x: Any, walk: _Walk) -> None:
    walk.word("method")
    walk.add((x.__func__, x.__self__))


@_add.register(types.CodeType)
def _(x: Any, walk: _Walk) -> None:
    walk.word(f"code {x.co_code.hex()} {x.co_names} {x.co_varnames}")
    walk.add(x.co_consts)


@_add.register(types.FunctionType)
def _(x: Any, walk: _Walk) -> None:
    walk.mark(x)
    walk.word(f"function {x.__module__} {x.__qualname__}")
    if x.__module__.split(".")[0] in _LIBRARIES:
        return
    walk.add(x.__code__)
    walk.add((x.__defaults__, x.__kwdefaults__))
    free = inspect.getclosurevars(x)
    walk.add((dict(sorted(free.nonlocals.items())), dict(sorted(free.globals.items()))))


# Their functions count by their names; the version of this package is part of the fingerprint.
_LIBRARIES = ("jax", "jaxlib", "jaxmbs", "equinox", "diffrax", "lineax", "optimistix", "numpy")


# --------------------------------------------------------------------------------------------------
# Preparation before the first case: names, devices, sizes, the layout of the store.
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# The loop over chunks.
# --------------------------------------------------------------------------------------------------


def open_store(address: str | None, layout: Layout, cases: Cases, fresh: bool) -> AbstractStore:
    """The store, made by the first process if it is not there yet."""
    if address is None:
        store = MemoryStore(layout)
        for name, values in zip(cases.names, cases.values, strict=True):
            store.read(name)[:] = values
        return store
    # All processes have read before one of them writes, and all read once more afterwards.
    barrier("checked")
    if jax.process_index() == 0:
        if fresh:
            known = dict(zip(cases.names, cases.values, strict=True))
            _stores.create(address, layout, known)
        else:
            _stores.remove_remains(address)
    barrier("created")
    store = _stores.ZarrStore(address, layout)
    return store


def barrier(where: str) -> None:
    """Wait for all processes."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(f"jaxmbs sweep: {where}")


def run(
    campaign: Campaign,
    cases: Cases,
    devices: Sequence[Device],
    layout: Layout,
    store: AbstractStore,
    template: Any,
    progress: bool,
) -> tuple[int, float]:
    """Compute what is not done yet; how many cases (of all processes), and in how many seconds
    without the time of compiling.

    Chunks that are left go to the devices in turn. A process runs its own devices, each in a thread
    of its own; none waits for another.
    """
    left, before = np.flatnonzero(~store.done()).tolist(), _finished(layout, store)
    # No process writes before all have read the remaining cases.
    barrier("begun")
    here, stop = jax.process_index(), threading.Event()
    ends: list[tuple[float, int]] = []

    def work(place: int) -> None:
        for chunk in left[place :: len(devices)]:
            if stop.is_set():
                return
            _chunk(campaign, cases, devices[place], layout, store, template, chunk)
            where = layout.cases(chunk)
            ends.append((time.perf_counter(), where.stop - where.start))

    own = [k for k, device in enumerate(devices) if device.process_index == here]
    with (
        _bar(layout, store, progress and here == 0) as bar,
        ThreadPoolExecutor(max(len(own), 1)) as pool,
    ):
        working = [pool.submit(work, place) for place in own]
        try:
            while wait(working, timeout=0.2, return_when=FIRST_EXCEPTION).not_done:
                _advance(bar, layout, store)
                if any(w.done() and w.exception() for w in working):
                    break
        finally:
            stop.set()
        for w in working:
            w.result()
        _advance(bar, layout, store)
    barrier("computed")
    counts = [count for _, count in ends]
    # The time of the first chunk is that of compiling for the most part: as the others took.
    timed = sum(counts[1:])
    seconds = (ends[-1][0] - ends[0][0]) * sum(counts) / timed if timed else 0.0
    return _finished(layout, store) - before, seconds


def _chunk(
    campaign: Campaign,
    cases: Cases,
    device: Device,
    layout: Layout,
    store: AbstractStore,
    template: Any,
    chunk: int,
) -> None:
    """Compute one chunk, and keep it."""
    where = layout.cases(chunk)
    count = where.stop - where.start
    # The last case fills up what is left of the last batch.
    indices = np.minimum(where.start + np.arange(layout.chunk), layout.count - 1)
    values = tuple(x[indices] for x in cases.values)
    batches = np.asarray(-(-count // campaign.width))
    on_device = jax.device_put((values, batches), device)
    # Copies, as later evaluations of some cases write into them.
    found = jax.tree.map(np.array, run_batches(campaign, *on_device))
    for mark in ("open", "again", "strange"):
        found[mark][count:] = False
    assemble_rest(campaign, device, values, found)
    look_at_masses(campaign, device, values, found)
    second_pass(campaign, device, values, found, template)
    names = [v.name for v in variables(template, (RESULT, CONFIGURATION, *cases.names), {})]
    named = dict(zip(names, flatten(found["answer"]), strict=True))
    named |= {RESULT: found["code"], CONFIGURATION: found["q"]}
    store.write(chunk, {name: x[:count] for name, x in named.items()})


def _bar(layout: Layout, store: AbstractStore, shown: bool) -> Any:
    if not shown:
        return _NoBar()
    return optional("tqdm", "sweep").tqdm(
        total=layout.count, initial=_finished(layout, store), unit=" cases", smoothing=0.05
    )


class _NoBar:
    """A bar that is not shown."""

    n = 0

    def __enter__(self) -> "_NoBar":
        return self

    def __exit__(self, *_: Any) -> None:
        """Nothing to close."""

    def update(self, count: int) -> None:
        """Nothing to show."""
        self.n += count


def _advance(bar: Any, layout: Layout, store: AbstractStore) -> None:
    if not isinstance(bar, _NoBar):
        bar.update(_finished(layout, store) - bar.n)


def _finished(layout: Layout, store: AbstractStore) -> int:
    """Cases that are done, by all processes."""
    sizes = [layout.cases(c) for c in np.flatnonzero(store.done()).tolist()]
    return sum(where.stop - where.start for where in sizes)
