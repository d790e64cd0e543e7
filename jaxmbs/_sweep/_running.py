"""The loop over chunks."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from .._extras import optional
from . import _zarr_store
from ._answers import CONFIGURATION, flatten, RESULT, variables
from ._cases import Cases
from ._program import (
    assemble_rest,
    Campaign,
    Device,
    look_at_masses,
    run_batches,
    second_pass,
)
from ._stores import AbstractStore, Layout, MemoryStore


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
            _zarr_store.create(address, layout, known)
        else:
            _zarr_store.remove_remains(address)
    barrier("created")
    store = _zarr_store.ZarrStore(address, layout)
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
