"""The loop over chunks."""

import time
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh

from . import _zarr_store
from ._answers import CONFIGURATION, flatten, RESULT, variables
from ._cases import Cases
from ._extras import extra
from ._program import Campaign, on_mesh, run_chunks, settle
from ._stores import AbstractStore, Layout, MemoryStore


def open_store(address: str | None, layout: Layout, cases: Cases, fresh: bool) -> AbstractStore:
    """The store, made by the first process if it is not there yet."""
    if address is None:
        store = MemoryStore(layout)
        for name, values in zip(cases.names, cases.values, strict=True):
            store.read(name)[:] = values
        return store
    # All processes have looked before one of them writes, and all have looked once more after.
    meet("checked")
    if jax.process_index() == 0:
        if fresh:
            known = dict(zip(cases.names, cases.values, strict=True))
            _zarr_store.create(address, layout, known)
        else:
            _zarr_store.remove_remains(address)
    meet("created")
    store = _zarr_store.ZarrStore(address, layout)
    return store


def meet(where: str) -> None:
    """Wait for all processes."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(f"jaxmbs sweep: {where}")


def run(
    campaign: Campaign,
    cases: Cases,
    mesh: Mesh,
    layout: Layout,
    store: AbstractStore,
    template: Any,
    progress: bool,
) -> tuple[int, float]:
    """Compute what is not done yet; how many cases, and in how many seconds (without the first
    round, which compiles).

    Chunks that are left go round the devices in turn. A process looks after its own devices, and
    waits for no other one: no case knows of any other.
    """
    left = np.flatnonzero(~store.done())
    # Nobody writes before everybody knows what is left.
    meet("begun")
    size, here = mesh.devices.size, jax.process_index()
    places = [k for k, d in enumerate(mesh.devices.flat) if d.process_index == here]
    own = Mesh(mesh.devices.flat[np.array(places)] if size > 1 else mesh.devices, mesh.axis_names)
    rounds = [left[k : k + size] for k in range(0, len(left), size)]
    computed = timed = 0
    seconds = 0.0
    with _bar(layout, store, progress and here == 0) as bar:
        for number, chunks in enumerate(rounds):
            mine = [int(chunks[k]) for k in places if k < len(chunks)]
            if not mine:
                continue
            began = time.perf_counter()
            count = _round(campaign, cases, own, layout, store, template, mine)
            if number:
                timed, seconds = timed + count, seconds + time.perf_counter() - began
            computed += count
            _advance(bar, layout, store)
    # What the first round took is compilation for the most part.
    return computed, seconds * computed / timed if timed else 0.0


def _round(
    campaign: Campaign,
    cases: Cases,
    mesh: Mesh,
    layout: Layout,
    store: AbstractStore,
    template: Any,
    chunks: list[int],
) -> int:
    """One chunk for each device of this process; those without one repeat the first for nothing."""
    width, devices = campaign.width, mesh.devices.size
    # The last case fills up what is left of the last batch.
    indices = np.minimum(
        np.concatenate([c * layout.chunk + np.arange(layout.chunk) for c in chunks]), layout.count - 1
    )
    lengths = [layout.cases(c).stop - layout.cases(c).start for c in chunks]
    counts = np.array([-(-n // width) for n in lengths] + [0] * (devices - len(chunks)))
    idle = np.zeros((devices - len(chunks)) * layout.chunk, dtype=int)
    everywhere = np.concatenate([indices, idle])
    values = tuple(x[everywhere] for x in cases.values)
    sharded = tuple(on_mesh(mesh, x) for x in values)
    found = run_chunks(campaign, sharded, on_mesh(mesh, counts), mesh)
    # Copies, as the second look writes into them.
    arrays = jax.tree.map(lambda x: np.array(x), found)
    real = np.concatenate(
        [np.arange(layout.chunk) < n for n in (*lengths, *[0] * (devices - len(chunks)))]
    )
    arrays["again"] &= real
    settle(campaign, values, arrays, template)
    names = [v.name for v in variables(template, (RESULT, CONFIGURATION, *cases.names), {})]
    named = dict(zip(names, flatten(arrays["answer"]), strict=True))
    named |= {RESULT: arrays["code"], CONFIGURATION: arrays["q"]}
    for k, (chunk, n) in enumerate(zip(chunks, lengths, strict=True)):
        start = k * layout.chunk
        store.write(chunk, {name: x[start : start + n] for name, x in named.items()})
    return sum(lengths)


def _bar(layout: Layout, store: AbstractStore, shown: bool) -> Any:
    if not shown:
        return _NoBar()
    return extra("tqdm").tqdm(
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
