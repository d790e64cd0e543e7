"""Many cases in one compiled program, with bits that depend on nothing but the case.

A compiler may round the same case differently in arrays of another size. So the cases are always
taken in batches of one width (`vmap`). A loop goes over the batches, whose number is data, since
a loop of one turn would be compiled differently. Where cases are assembled together, each place
of a batch goes through its cases at its own pace first (`_close`). A case has the same index in
its batch however the cases are split up.

Each device runs this program on chunks of its own. One program over all devices (`shard_map`)
passes through the compiler's partitioner when there are several and not when there is one, which
moved configurations by 1e-16; and as the cases are independent, it would gain nothing.
"""

import dataclasses
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, Scalar
from .._kinematics import (
    begin_closing,
    begin_sliding,
    Lane,
    look_at_start,
    Problem,
    Slide,
    Start,
    turn_closing,
    turn_sliding,
)
from .._linalg._many_states import many_states
from .._programs import Compiling, program
from .._solution import code_of, RESULTS
from .._system import AbstractSystem, masses_alike
from ._questions import AbstractIteration, AbstractQuestion, Case
from ._stores import first_failure, undecided_where
from ._subjects import AbstractSubject, Placed


# --------------------------------------------------------------------------------------------------
# Functions and iterations of many cases, in batches of one width within one program.
# --------------------------------------------------------------------------------------------------


def in_batches(function: Any, given: Any, width: int, count: Any) -> Any:
    """A function of one case, for whole batches of cases; the first `count` batches of them."""
    batch = jax.vmap(function)

    def turn(k: Any, filled: Any) -> Any:
        own = jax.tree.map(lambda x: lax.dynamic_slice_in_dim(x, k * width, width), given)
        return jax.tree.map(
            lambda old, new: lax.dynamic_update_slice_in_dim(old, new, k * width, 0),
            filled,
            batch(own),
        )

    size = jax.tree.leaves(given)[0].shape[0]
    shapes = jax.eval_shape(batch, jax.tree.map(lambda x: x[:width], given))
    empty = jax.tree.map(lambda x: jnp.zeros((size, *x.shape[1:]), x.dtype), shapes)
    return lax.fori_loop(0, count, turn, empty)


class Turns(NamedTuple):
    """Iterations of many cases side by side: `begin(values, given)` is a case at its start, which
    `turn(values, given, lane)` takes one turn further until it has `ended`; what turns make of it
    then is not read. `result(lane)`: what is kept of it."""

    begin: Any
    turn: Any
    result: Any

    def of_all(
        self, values: tuple[Any, ...], given: Any, wanted: Any, found: Any, batches: tuple[int, Any]
    ) -> Any:
        """The results of the `wanted` cases, entered into `found`. Each place of a batch goes
        through the cases of its own, the next one as soon as one has ended: none waits for the
        others, and a case is computed at the same place whatever the others are. `batches`: their
        width, and how many of them are cases."""
        width, count = batches
        size, places = wanted.shape[0], np.arange(width)
        # For each place, the next case from each turn on that is wanted.
        waiting = jnp.where(wanted.reshape(-1, width), jnp.arange(size // width)[:, None], count)
        waiting = lax.cummin(waiting, axis=0, reverse=True)
        waiting = jnp.concatenate([waiting, jnp.full((1, width), count)])

        def next_from(numbers: Any) -> Any:
            return jnp.minimum(waiting[jnp.minimum(numbers, size // width), places], count)

        def of(numbers: Any) -> Any:
            index = jnp.minimum(numbers, count - 1) * width + places
            return jax.tree.map(lambda x: x[index], (values, given))

        # Lanes are kept with the cases as the last axis, as a turn takes them.
        begin = jax.vmap(self.begin, out_axes=-1)
        turn = jax.vmap(many_states(self.turn), in_axes=(0, 0, -1), out_axes=-1)

        def ended(numbers: Any, lanes: Any) -> Any:
            return lanes.ended & (numbers < count)

        def until_one_ends(state: Any) -> Any:
            """Advance all lanes until a case ends, store it and load the next one."""
            numbers, lanes, found = state
            own = of(numbers)
            lanes = lax.while_loop(
                lambda x: ~jnp.any(ended(numbers, x)), lambda x: turn(*own, x), lanes
            )
            there = ended(numbers, lanes)
            # Nothing is written for those that are under way or have no case left.
            where = jnp.where(there, numbers * width + places, size)
            results = jax.vmap(self.result, in_axes=-1)(lanes)
            found = jax.tree.map(lambda x, y: x.at[where].set(y, mode="drop"), found, results)
            numbers = jnp.where(there, next_from(numbers + 1), numbers)
            # A lane without a case left keeps the one that has ended.
            fresh, renewed = begin(*of(numbers)), there & (numbers < count)
            lanes = jax.tree.map(lambda new, old: jnp.where(renewed, new, old), fresh, lanes)
            return numbers, lanes, found

        first = next_from(jnp.zeros((width,), int))
        state = first, begin(*of(first)), found
        return lax.while_loop(lambda x: jnp.any(x[0] < count), until_one_ends, state)[2]


# A `jax.Device`, whose class type checkers treat as a variable.
Device: TypeAlias = Any


class Closed(NamedTuple):
    """The configuration of a case, and whether it is sure. `result`: of its assembly, where that
    was not one in turns."""

    q: Float[Array, " nq"]
    sure: BoolScalar
    result: RESULTS | None = None


class Ready(NamedTuple):
    """A case that is assembled, the result of that, whether it is still open, and whether it has
    other masses, and parts that may be too light."""

    case: Case
    result: RESULTS
    still_open: BoolScalar
    strange: BoolScalar


class Campaign(eqx.Module):
    """A question, what is varied, and how.

    `light`: are parts of all cases so light that solves lose them, as those of one in their middle,
    or of none; None: each case is looked at. `masses` (nv,): those of that one, if the cases may
    have others, which lose nothing if they are these up to the factor `alike`.
    """

    question: AbstractQuestion
    subject: AbstractSubject
    names: tuple[str, ...] = eqx.field(static=True)
    assembled: bool = eqx.field(static=True)
    width: int = eqx.field(static=True)
    light: bool | None = eqx.field(static=True)
    masses: Float[Array, " nv"] | None
    alike: Scalar

    def place_parts(self, values: tuple[Any, ...]) -> Placed:
        """One case before it is assembled."""
        placed = self.subject.place(dict(zip(self.names, values, strict=True)))
        return placed.with_light_parts(self.light)

    def closes(self, values: tuple[Any, ...]) -> bool:
        """Are cases such as this one assembled together, as far as `_closing.py` is sure of
        them?"""
        if not self.assembled or not self.question.nearest:
            return False
        return bool(self.problem(values).system.structure.geometric.any())

    def problem(self, values: tuple[Any, ...]) -> Problem:
        """The configuration to which one case is assembled."""
        _, held, q, _, t = self.place_parts(values)
        return Problem(held, q, t)

    def case(self, values: tuple[Any, ...], closed: Closed | None = None) -> Ready:
        """One case in its configuration. `closed`: that; assembled here if it is not given."""
        system, held, q, v, t = self.place_parts(values)
        result, still_open = RESULTS.successful, jnp.asarray(False)
        strange = jnp.asarray(False)
        if self.masses is not None:
            strange = ~masses_alike(system, self.masses, self.alike)
        if closed is not None:
            q, still_open = closed.q, ~closed.sure
            result = result if closed.result is None else closed.result
        elif self.assembled:
            q, result = self.question.assembled(Case(held, q, v, t))
        return Ready(Case(system, q, v, t), result, still_open, strange)

    def assemble(self, values: tuple[Any, ...]) -> Closed:
        """The configuration of one case by the question's own assembly."""
        ready = self.case(values)
        result = jax.tree.map(lambda x: jnp.asarray(x, jnp.result_type(x)), ready.result)
        return Closed(ready.case.q, jnp.asarray(True), result)

    def one(
        self, values: tuple[Any, ...], closed: Closed | None = None, lane: Any = None
    ) -> dict[str, Any]:
        """One case: its answer, its result, the configuration, whether it is still open, whether a
        second evaluation is needed, and whether it has other masses, and parts that may be too
        light. `lane`: the end of its iteration, of a question that is answered by one."""
        case, result, still_open, strange = self.case(values, closed)
        again = jnp.asarray(False)
        iteration = self.question.iteration
        if iteration is None or lane is None:
            answer = self.question(case)
        else:
            answer = iteration.answer(case, lane)
        if self.light is None:
            # Systems in the answer are those of other cases.
            answer = _looked_at(answer)
        answer = undecided_where(result != RESULTS.successful, answer)
        if self.question.second is not None:
            again = (result == RESULTS.successful) & self.question.second.wanted(answer)
        code = _code(result, answer, case.q)
        marks = {"open": still_open, "again": again & ~still_open, "strange": strange & ~still_open}
        return {"answer": answer, "code": code, "q": case.q, **marks}

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
    """The shapes of what a chunk holds of one case, its results among it, and all its values that
    are not arrays."""
    first = tuple(jnp.asarray(x[0]) for x in values)
    if any(map(_is_of_user, jax.tree.leaves((campaign, first)))):
        # Functions may change with what they close over.
        return _traced_shapes(campaign, first)
    return jax.tree.map(_shape_of, _zero_results(campaign, first))


def _is_of_user(leaf: Any) -> bool:
    """Is this a function that is not one of this package?"""
    module = str(getattr(leaf, "__module__", "") or "")
    return callable(leaf) and module.split(".")[0] != __name__.split(".")[0]


def _shape_of(leaf: Any) -> Any:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if eqx.is_array(leaf) else leaf


@program(compiling=Compiling.ONCE)
def _zero_results(campaign: Campaign, values: tuple[Any, ...]) -> dict[str, Any]:
    """Results of one case with all numbers zero. It is a program, so that the store returns it
    without tracing the question."""
    shapes = _traced_shapes(campaign, values)
    return jax.tree.map(
        lambda x: jnp.zeros(x.shape, x.dtype) if isinstance(x, jax.ShapeDtypeStruct) else x, shapes
    )


def _traced_shapes(campaign: Campaign, values: tuple[Any, ...]) -> dict[str, Any]:
    def one(campaign: Campaign, values: tuple[Any, ...]) -> dict[str, Any]:
        # The search that assembles a single case is not part of a batch, and is not traced here.
        together = campaign.closes(values)
        closed = Closed(campaign.problem(values).q, jnp.asarray(True)) if together else None
        if (iteration := campaign.question.iteration) is None:
            return campaign.one(values, closed)
        lane = iteration.begin(campaign.case(values, closed).case)
        # A chunk holds its cases at the start of their turns and at the end.
        return campaign.one(values, closed, lane) | {"lanes": (lane, lane)}

    return eqx.filter_eval_shape(one, campaign, values)


@program
def run_batches(campaign: Campaign, values: tuple[Any, ...], count: Any) -> Any:
    """The arrays of `Campaign.one` for whole batches of cases, the first `count` batches of them;
    on the device that holds the values."""
    together = campaign.closes(tuple(x[0] for x in values))
    closed = _close(campaign, values, count) if together else None
    lanes = None
    if campaign.question.iteration is not None:
        if closed is None:
            closed = in_batches(campaign.assemble, values, campaign.width, count)
        lanes = _iterate(campaign, campaign.question.iteration, (values, closed), count)

    def one(given: tuple[tuple[Any, ...], Closed | None, Any]) -> Any:
        return eqx.filter(campaign.one(*given), eqx.is_array)

    # As the turns (`Turns`): of a run of 0.1 s start and end are half of the work.
    one = one if lanes is None else many_states(one)
    return in_batches(one, (values, closed, lanes), campaign.width, count)


def _iterate(
    campaign: Campaign,
    iteration: AbstractIteration,
    given: tuple[tuple[Any, ...], Closed],
    count: Any,
) -> Any:
    """Whole batches of cases at the end of the iteration that answers the question. Those that will
    be asked anew stay at its start."""
    batches = (campaign.width, count)

    def begin(own: tuple[tuple[Any, ...], Closed]) -> tuple[Any, BoolScalar]:
        ready = campaign.case(*own)
        lane = iteration.begin(ready.case)
        return lane, ~(lane.ended | ready.still_open | ready.strange)

    def turn(own: tuple[tuple[Any, ...], Closed], begun: Any, lane: Any) -> Any:
        del begun
        return iteration.turn(campaign.case(*own).case, lane)

    begun, wanted = in_batches(many_states(begin), given, *batches)
    turns = Turns(lambda own, begun: begun, turn, lambda lane: lane)
    return turns.of_all(given, begun, wanted, begun, batches)


def _close(campaign: Campaign, values: tuple[Any, ...], count: Any) -> Closed:
    """The configurations of whole batches of cases, as far as they are sure."""

    def look(own: tuple[Any, ...]) -> tuple[Any, Start]:
        problem = campaign.problem(own)
        return problem.q, look_at_start(problem)

    def begin(own: tuple[Any, ...], start: Start) -> Lane:
        return begin_closing(campaign.problem(own), start)

    def turn(own: tuple[Any, ...], start: Start, lane: Lane) -> Lane:
        return turn_closing(campaign.problem(own), start, lane)

    def slide_from(own: tuple[Any, ...], q: Any) -> Slide:
        return begin_sliding(campaign.problem(own), q)

    def slide(own: tuple[Any, ...], q: Any, lane: Slide) -> Slide:
        del q
        return turn_sliding(campaign.problem(own), lane)

    q, starts = in_batches(look, values, campaign.width, count)
    # A start that is closed to rounding is its own nearest point.
    found = Closed(q, starts.closed)
    closing = Turns(begin, turn, lambda lane: Closed(lane.answer, lane.reached))
    there = closing.of_all(values, starts, ~starts.closed, found, (campaign.width, count))
    sliding = Turns(slide_from, slide, lambda lane: Closed(lane.answer, lane.sure))
    open_yet = ~starts.closed & there.sure
    unsure = Closed(there.q, there.sure & starts.closed)
    return sliding.of_all(values, there.q, open_yet, unsure, (campaign.width, count))


@program
def _one_batch(campaign: Campaign, values: tuple[Any, ...]) -> Any:
    return jax.vmap(lambda x: eqx.filter(campaign.one(x), eqx.is_array))(values)


def assemble_rest(
    campaign: Campaign, device: Device, values: tuple[np.ndarray, ...], found: dict[str, Any]
) -> None:
    """Assemble the cases that are still open by the search that answers all, and enter what it
    gives into `found`. Arguments as of `second_pass`."""
    for batch, real in _lanes(np.flatnonzero(found["open"]), campaign.width):
        picked = jax.tree.map(lambda x, b=batch: jax.device_put(x[b], device), values)
        new = _one_batch(campaign, picked)
        jax.tree.map(lambda x, y, b=batch, r=real: _enter(x, y, b[r], r), found, new)


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
