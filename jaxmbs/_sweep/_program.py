"""Many cases in one compiled program, with bits that depend on nothing but the case.

A compiler may round the same case differently in arrays of another size. So the cases are always
taken in batches of one width (`vmap`), and a loop goes over the batches; the number of its turns is
data, since a loop of one turn would be compiled differently. A case has the same index in its batch
however the cases are split up.

Each device runs this program on chunks of its own. One program over all devices (`shard_map`)
passes through the compiler's partitioner when there are several and not when there is one, which
moved configurations by 1e-16; and as the cases are independent, it would gain nothing.
"""

import dataclasses
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._programs import program
from .._solution import RESULTS
from .._system import AbstractSystem, masses_alike
from ._answers import code_of, first_failure, undecided_where
from ._questions import AbstractQuestion, Case
from ._subjects import AbstractSubject, Placed


# A `jax.Device`, whose class type checkers treat as a variable.
Device: TypeAlias = Any


class Campaign(eqx.Module):
    """A question, what is varied, and how.

    `light`: are parts of all cases so light that solves lose them, as those of the first one, or of
    none; None: each case is looked at. `masses` (nv,): those of the first one, if the cases may
    have others.
    """

    question: AbstractQuestion
    subject: AbstractSubject
    names: tuple[str, ...] = eqx.field(static=True)
    assembled: bool = eqx.field(static=True)
    width: int = eqx.field(static=True)
    light: bool | None = eqx.field(static=True)
    masses: Float[Array, " nv"] | None

    def place_parts(self, values: tuple[Any, ...]) -> Placed:
        """One case before it is assembled."""
        placed = self.subject.place(dict(zip(self.names, values, strict=True)))
        return placed.with_light_parts(self.light)

    def one(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """One case: its answer, its result, the configuration, whether a second evaluation is
        needed, and whether it has other masses, and parts that may be too light."""
        system, held, q, v, t = self.place_parts(values)
        strange = jnp.asarray(False)
        if self.masses is not None:
            strange = ~masses_alike(system, self.masses)
        result, again = RESULTS.successful, jnp.asarray(False)
        if self.assembled:
            q, result = self.question.assembled(Case(held, q, v, t))
        answer = self.question(Case(system, q, v, t))
        if self.light is None:
            # Systems in the answer are those of other cases.
            answer = _looked_at(answer)
        answer = undecided_where(result != RESULTS.successful, answer)
        if self.question.second is not None:
            again = (result == RESULTS.successful) & self.question.second.wanted(answer)
        code = _code(result, answer, q)
        return {"answer": answer, "code": code, "q": q, "again": again, "strange": strange}

    def again(self, values: tuple[Any, ...], answer: Any, q: Any) -> dict[str, Any]:
        """The second evaluation of one case."""
        system, _, _, v, t = self.place_parts(values)
        if self.question.second is not None:
            answer = self.question.second(Case(system, q, v, t), answer)
        return {"answer": answer, "code": _code(RESULTS.successful, answer, q)}


def _looked_at(answer: Any) -> Any:
    def is_system(x: Any) -> bool:
        return isinstance(x, AbstractSystem)

    return jax.tree.map(
        lambda x: x.with_light_parts(False) if is_system(x) else x, answer, is_leaf=is_system
    )


def _code(result: RESULTS, answer: Any, q: Any) -> Any:
    """Result code of a case whose assembly ended with `result`."""
    return code_of(first_failure(result, answer, q))


def shapes_of(campaign: Campaign, values: tuple[np.ndarray, ...]) -> dict[str, Any]:
    """The shapes of the results of one case, and all its values that are not arrays."""
    return eqx.filter_eval_shape(lambda c, x: c.one(x), campaign, tuple(x[0] for x in values))


@program
def run_batches(campaign: Campaign, values: tuple[Any, ...], count: Any) -> Any:
    """The arrays of `Campaign.one` for whole batches of cases, the first `count` batches of them;
    on the device that holds the values."""
    width = campaign.width
    batch = jax.vmap(lambda x: eqx.filter(campaign.one(x), eqx.is_array))

    def part(k: Any) -> tuple[Any, ...]:
        return tuple(lax.dynamic_slice_in_dim(x, k * width, width) for x in values)

    def turn(k: Any, filled: Any) -> Any:
        return jax.tree.map(
            lambda old, new: lax.dynamic_update_slice_in_dim(old, new, k * width, 0),
            filled,
            batch(part(k)),
        )

    shapes = jax.eval_shape(batch, part(0))
    size = values[0].shape[0]
    empty = jax.tree.map(lambda x: jnp.zeros((size, *x.shape[1:]), x.dtype), shapes)
    return lax.fori_loop(0, count, turn, empty)


@program
def _one_batch(campaign: Campaign, values: tuple[Any, ...]) -> Any:
    return jax.vmap(lambda x: eqx.filter(campaign.one(x), eqx.is_array))(values)


def look_at_masses(
    campaign: Campaign, device: Device, values: tuple[np.ndarray, ...], found: dict[str, Any]
) -> None:
    """Ask anew the cases whose parts may be too light, in a program that looks at each, and enter
    what it gives into `found`. Arguments as of `second_pass`."""
    looking = dataclasses.replace(campaign, light=None, masses=None)
    for batch, real in _lanes(np.flatnonzero(found["strange"]), campaign.width):
        picked = jax.tree.map(lambda x, b=batch: jax.device_put(x[b], device), values)
        new = _one_batch(looking, picked)
        jax.tree.map(lambda x, y, b=batch, r=real: _enter(x, y, b[r], r), found, new)


@program
def _second_look(campaign: Campaign, values: tuple[Any, ...], answer: Any, q: Any) -> Any:
    return jax.vmap(lambda x, a, y: eqx.filter(campaign.again(x, a, y), eqx.is_array))(
        values, answer, q
    )


def second_pass(
    campaign: Campaign,
    device: Device,
    values: tuple[np.ndarray, ...],
    found: dict[str, Any],
    template: Any,
) -> None:
    """Evaluate the cases a second time that need it, and enter the results into `found`.

    **Arguments:** `values`, `found`: of whole batches, on the host. `template`: the rest of the
    answer.
    """
    width, wanted = campaign.width, np.flatnonzero(found["again"])
    rest = eqx.filter(template, lambda x: not isinstance(x, jax.ShapeDtypeStruct))
    for batch, real in _lanes(wanted, width):
        arrays = (values, found["answer"], found["q"])
        picked = jax.tree.map(lambda x, b=batch: jax.device_put(x[b], device), arrays)
        new = _second_look(campaign, picked[0], eqx.combine(picked[1], rest), picked[2])
        for name in new:
            jax.tree.map(
                lambda x, y, b=batch, r=real: _enter(x, y, b[r], r), found[name], new[name]
            )


def _enter(old: np.ndarray, new: Any, where: np.ndarray, real: np.ndarray) -> None:
    old[where] = np.asarray(new)[real]


def _lanes(wanted: np.ndarray, width: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Batches that hold each of the wanted cases once, at the place that it has in its own
    batch; other places are filled with cases of the first batch. And which places are wanted."""
    lanes = wanted % width
    # The number of earlier ones at the same place.
    order = np.argsort(lanes, kind="stable")
    first = np.searchsorted(lanes[order], lanes[order])
    turn = np.empty_like(lanes)
    turn[order] = np.arange(len(lanes)) - first
    batches = []
    for k in range(turn.max(initial=-1) + 1):
        batch, real = np.arange(width), np.zeros(width, dtype=bool)
        batch[lanes[turn == k]] = wanted[turn == k]
        real[lanes[turn == k]] = True
        batches.append((batch, real))
    return batches
