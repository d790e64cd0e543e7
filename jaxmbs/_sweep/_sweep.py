"""Many cases of one question: in batches, over devices and processes, into a store."""

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int

from .. import _checks, _settings
from .._custom_types import RealScalarLike, Setting
from .._errors import ModelError, optional
from .._printing import AbstractAnswer, Column, Description, Table
from .._solution import count_failures
from .._system import AbstractSystem, alike, diagonal_masses, Model
from .._version import __version__
from ._cases import Cases
from ._program import Campaign, Device, shapes_of
from ._questions import AbstractQuestion, as_question, Function
from ._running import (
    barrier,
    bytes_of_case,
    chunk_of,
    devices_of,
    digest,
    layout_of,
    middle_system,
    named,
    open_store,
    run,
    system_of_case,
)
from ._stores import (
    AbstractStore,
    CONFIGURATION,
    existing_chunk,
    Layout,
    RESULT,
    unflatten,
    variables,
)
from ._subjects import may_change_masses, only_scales_masses, subject_of


# Cases in a batch. Cores work best on a few dozen states at a time, accelerators on thousands.
_WIDTH, _WIDTH_ACCELERATOR = 32, 4096


class Sweep(AbstractAnswer):
    """The outcome of `sweep`.

    `cases`; `computed`: how many of them this call computed (with all processes), in `seconds`
    without the time of compiling.
    """

    cases: Cases
    computed: int = eqx.field(static=True)
    seconds: float = eqx.field(static=True)
    layout: Layout = eqx.field(static=True)
    store: AbstractStore = eqx.field(static=True)
    template: Any = eqx.field(static=True)
    address: str | None = eqx.field(static=True)

    @property
    def result(self) -> Int[np.ndarray, " cases"]:
        """Outcome of each case: the number of its `RESULTS` member, 0 for success."""
        return self.store.read(RESULT)

    @property
    def configuration(self) -> Float[np.ndarray, "cases nq"]:
        """The assembled coordinates of each case (of a case that failed: the last ones met)."""
        return self.store.read(CONFIGURATION)

    def answers(self) -> Any:
        """Answers to the question, with the cases as a leading axis of every array. The numbers of
        a failed case have no meaning."""
        taken = (RESULT, CONFIGURATION, *self.cases.names)
        names = [v.name for v in variables(self.template, taken, {})]
        return unflatten(self.template, [self.store.read(name) for name in names])

    def failures(self) -> dict[str, int]:
        """Number of failed cases by message."""
        return {text: count for count, text in count_failures(self.result.tolist())}

    def dataset(self) -> Any:
        """The store as an `xarray.Dataset` (extra `sweep`)."""
        xarray = optional("xarray", "sweep")
        if self.address is not None:
            return xarray.open_zarr(self.address, consolidated=False)
        arrays = {
            v.name: xarray.Variable(v.dimensions, self.store.read(v.name), v.attributes)
            for v in self.layout.variables
        }
        return xarray.Dataset(arrays, attrs=self.layout.attributes)

    def described(self) -> Description:
        rate = f", {self.computed / self.seconds:.4g} a second" if self.seconds > 0 else ""
        values = np.asarray(self.cases.values)
        failed = [f"{count} failed: {text}" for text, count in self.failures().items()]
        head = f"{len(self.cases)} cases ({self.cases.origin}); {self.computed} computed{rate}"
        columns = [
            Column("varied", self.cases.names),
            Column("from", [f"{np.min(x):.6g}" for x in values]),
            Column("to", [f"{np.max(x):.6g}" for x in values]),
        ]
        return Description((), [Table(columns, title=head)], failed or ["none failed"])


def sweep(
    question: Setting[AbstractQuestion | Function],
    system: Setting[Model | AbstractSystem],
    cases: Setting[Cases],
    *,
    q: Setting[Float[Array, " nq"] | None] = None,
    v: Setting[Float[Array, " nv"] | None] = None,
    t: Setting[RealScalarLike] = 0.0,
    assemble: Setting[bool] = True,
    store: Setting[str | os.PathLike[str] | None] = None,
    chunk: Setting[int | None] = None,
    devices: Setting[Mesh | Sequence[Device] | None] = None,
    width: Setting[int | None] = None,
    units: Setting[Mapping[str, str] | None] = None,
    progress: Setting[bool] = False,
) -> Sweep:
    """Evaluate many cases of a system: other numbers, other configurations.

    Every case is assembled (the closed configuration nearest to where it starts, with its drivers
    and held coordinates at the values of the case), and evaluated. Cases are taken in batches of
    `width`, chunk by chunk, on all devices; what a case gives depends, bit for bit, on nothing but
    the case, the width and the platform: not on chunks, devices or processes. A case that fails
    (does not assemble, is in doubt, is not a number) is recorded with its `RESULTS` message and
    stops nothing.

    With a `store` the results go chunk by chunk to a Zarr store. A sweep that was killed goes on
    where it stopped when it is called again with the same arguments, and ends with the same bits.

    Several processes that called `jax.distributed.initialize` before (the same script on each)
    share the cases; the store must then be one that all can reach.

    **Arguments:**

    - `question`: a function (system, q, v, t) to arrays in any pytree, which works under `vmap`
      (`screen`, `analyze`, a lambda around `simulate`, ...), or a question with a second
      evaluation, such as `Certification()`.
    - `system`: a `Model`, whose parts are varied by their names, or a system, whose arrays are.
    - `cases`: names and values.
    - `q` (nq,), `v` (nv,), `t` (s): where every case starts, unless its own names give another;
      default the model's reference configuration and velocities (a system has to be given q).
      v is passed to the question unchanged; `consistent_state` makes it consistent.
    - `assemble`: False takes q as it is.
    - `store`: a folder or an fsspec address; default none: results stay in memory.
    - `chunk`: cases for each device at a time, rounded up to whole batches; default what an
      eighth of the device's free memory holds (inputs and outputs of the cases; what a batch
      needs besides does not grow with the chunk), but at most 128 batches, and a
      sixteenth of the cases where a store or a bar shows how far it is. A store keeps its own.
    - `devices`: a mesh, or devices; default all, of all processes.
    - `width`: cases in a batch; default 32 on a CPU, 4096 elsewhere.
    - `units`: of the answer's arrays, by their names, for the store.
    - `progress`: show a bar with rate and time left.

    **Returns:** a `Sweep`.

    **Raises:** `ModelError` (a `ValueError`) for names, values or a store that cannot be,
    `ValueError` or `TypeError` for another setting that cannot be; then nothing has been written.
    """
    began = time.time()
    question = as_question(question)
    cases = _settings.instance(cases, Cases, "cases", 'Cases, such as Cases.grid({"motor": [0.0]})')
    assemble, progress = _settings.flag(assemble, "assemble"), _settings.flag(progress, "progress")
    address = None if store is None else os.fspath(_settings.path(store, "store"))
    chunk = None if chunk is None else _settings.whole_number(chunk, "chunk", least=1)
    width = None if width is None else _settings.whole_number(width, "width", least=1)
    units = _units(units)
    chosen = devices_of(devices)
    subject = subject_of(system, q, v, t)
    cases = named(subject, cases)
    if address is None and jax.process_count() > 1:
        raise ModelError("several processes need a store that all of them can reach.")
    platform = chosen[0].platform
    batch = width or default_width(platform)
    # Cases with other masses are looked at by what is known of one in their middle.
    varied = may_change_masses(cases.names)
    known = middle_system(subject, cases) if varied else system_of_case(subject, cases, 0)
    light, masses, factor = known.structure.light, None, 1.0
    if varied and not light:
        masses = diagonal_masses(known)
        factor = alike(known, only_scales_masses(cases.names))
    near = _checks.known_array(np.asarray(factor))
    campaign = Campaign(question, subject, cases.names, assemble, batch, light, masses, near)
    shapes = shapes_of(campaign, cases.values)
    fingerprint, stored = "", None
    if address is not None:
        fingerprint = digest(campaign, cases.values, __version__, platform)
        stored = existing_chunk(address, fingerprint)
    each = bytes_of_case(cases, shapes)
    at_once = address is None and not progress
    size = chunk_of(chunk, stored, len(cases), batch, each, chosen, at_once)
    layout = layout_of(system, subject, cases, known.structure, shapes, units, size, fingerprint)
    opened = open_store(address, layout, cases, fresh=stored is None)
    template = shapes["answer"]
    computed, seconds = run(campaign, cases, chosen, layout, opened, template, progress)
    if jax.process_index() == 0 and computed:
        opened.close({"times": {"started": began, "finished": time.time(), "seconds": seconds}})
    barrier("finished")
    return Sweep(cases, computed, seconds, layout, opened, template, address)


def default_width(platform: str | None = None) -> int:
    """Cases in a batch on this platform, by default that of the first device."""
    return _WIDTH if (platform or jax.devices()[0].platform) == "cpu" else _WIDTH_ACCELERATOR


def _units(units: Any) -> Mapping[str, str]:
    given = {} if units is None else units
    such_as = '{"force": "N"}'
    _settings.mapping(given, "units", such_as)
    # A number without a unit may have an empty text.
    if not all(isinstance(unit, str) for unit in given.values()):
        raise TypeError(f"units must be texts such as {such_as}, got {_checks.shown(given)}.")
    return given
