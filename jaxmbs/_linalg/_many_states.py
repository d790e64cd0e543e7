"""A function of one state, evaluated at many of them with the states as the last axis.

`jax.vmap` puts the states in front of all other axes. There a solve with a sparse factor gathers
number by number, and the arithmetic on small blocks does not run along the states
(`_arrays.py`). A step of a motion is one function of hundreds of lines, loops within loops
among them, and its program for one state is to stay as it is. So the program of one state is what
is given a batch: each of its operations has a rule here that leaves the states where they are, the
last axis of all arrays. What has none is batched by JAX.

A loop ends when no state meets its condition any more, as under `jax.vmap`. One that counts does so
once for all states: what it reads at its counter is then a row, and not an entry of each state.
"""

import collections
import functools
import operator
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray, Tracer
from jax.extend.core import ClosedJaxpr, Jaxpr, jaxpr_as_fun, JaxprEqn, Literal, Primitive
from jax.interpreters import batching, mlir
from jaxtyping import Array

from .._custom_types import BoolScalar
from ._arrays import apart, axes_of_block, rows_at


# Sums of at most this many entries are written out (`_sums.sum_along`), and selections among them.
_WRITTEN_OUT = 16

# What takes at most so many operations is computed by each of its readers, that is spread by a
# broadcast; and what takes at most so many and has several readers.
_CHEAP, _FOR_SOME = 3, 24

# Loops that carry nothing are computed at once up to so many turns.
_AT_ONCE = 8

# What a loop carries of each state is kept by selections up to so many numbers.
_FEW = 512


def many_states(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, whose batches (`jax.vmap`) have the states as the last axis.

    Its arguments and its result are trees of arrays and of what is static. It has no derivative.
    For one state it computes what `function` computes, and on other platforms than CPUs batches are
    `jax.vmap`'s.
    """

    def evaluate(*args: Any) -> Any:
        arrays, static = eqx.partition(args, eqx.is_array)
        leaves, tree = jax.tree.flatten(arrays)
        outside: list[Any] = []

        def flat(*leaves: Array) -> list[Array]:
            found = function(*eqx.combine(jax.tree.unflatten(tree, leaves), static))
            found, rest = eqx.partition(found, eqx.is_array)
            outside.append((jax.tree.structure(found), rest))
            return jax.tree.leaves(found)

        program = jax.make_jaxpr(flat)(*leaves)
        structure, rest = outside[-1]
        if any(isinstance(x, Tracer) for x in program.consts):
            # A user's function may hold traced numbers.
            held, inner = list(program.consts), program.jaxpr

            def with_held(*given: Array) -> list[Array]:
                consts, own = given[: len(held)], given[len(held) :]
                return jaxpr_as_fun(ClosedJaxpr(inner, consts))(*own)

            program, leaves = jax.make_jaxpr(with_held)(*held, *leaves), [*held, *leaves]
        results = _many_states.bind(*leaves, program=program)
        return eqx.combine(jax.tree.unflatten(structure, results), rest)

    return evaluate


def any_state(condition: BoolScalar) -> BoolScalar:
    """The condition; in a batch, whether any of the states meets it, which is one for all: so
    `lax.cond` stays a choice, and does not become a selection between both."""
    return _any_state.bind(condition)


def unless_alone(condition: BoolScalar) -> BoolScalar:
    """The condition in a batch; true for one state alone: in the body of a loop that turns as long
    as it is met, what is selected by it is then simply the new value."""
    return _unless_alone.bind(condition)


_unless_alone = Primitive("unless_alone")
_unless_alone.def_impl(jnp.ones_like)
_unless_alone.def_abstract_eval(lambda condition: ShapedArray(condition.shape, condition.dtype))
mlir.register_lowering(_unless_alone, mlir.lower_fun(jnp.ones_like, multiple_results=False))
batching.primitive_batchers[_unless_alone] = lambda arrays, axes: (arrays[0], axes[0])


_any_state = Primitive("any_state")
_any_state.def_impl(lambda condition: condition)
_any_state.def_abstract_eval(lambda condition: ShapedArray(condition.shape, condition.dtype))
mlir.register_lowering(
    _any_state, mlir.lower_fun(lambda condition: condition, multiple_results=False)
)


def _any_of_batch(arrays: Any, axes: Any) -> Any:
    return _any_state.bind(jnp.any(arrays[0], axis=axes[0])), None


batching.primitive_batchers[_any_state] = _any_of_batch


_many_states = Primitive("many_states")
_many_states.multiple_results = True


@_many_states.def_impl
def _at_one(*arrays: Any, program: ClosedJaxpr) -> list[Any]:
    return jaxpr_as_fun(program)(*arrays)


@_many_states.def_abstract_eval
def _shapes(*arrays: Any, program: ClosedJaxpr) -> list[Any]:
    del arrays
    return [ShapedArray(x.shape, x.dtype, weak_type=x.weak_type) for x in program.out_avals]


def _batched(arrays: Any, axes: Any, *, program: ClosedJaxpr) -> Any:
    count = next(x.shape[k] for x, k in zip(arrays, axes, strict=True) if k is not None)
    if jax.default_backend() != "cpu":
        # Measured on CPUs: elsewhere a loop within a loop is a wait for the device.
        found = jax.vmap(jaxpr_as_fun(program), axes, axis_size=count)(*arrays)
        return found, [0] * len(found)
    given = [
        _Lanes(x if k is None else jnp.moveaxis(x, k, -1), k is not None)
        for x, k in zip(arrays, axes, strict=True)
    ]
    found = _evaluate(program, given, _Among(count, None))
    return [x.value for x in found], [x.value.ndim - 1 if x.each else None for x in found]


mlir.register_lowering(_many_states, mlir.lower_fun(_at_one, multiple_results=True))
batching.primitive_batchers[_many_states] = _batched


def _aval_of(variable: Any) -> ShapedArray:
    return variable.aval


def _shape_of(variable: Any) -> tuple[int, ...]:
    """The shape at one state."""
    return _aval_of(variable).shape


class _Among(NamedTuple):
    """The number of states, and which of them are wanted: loops do not turn for the others, of
    which anything may become. None: all are."""

    count: int
    wanted: Any

    def only(self, some: Array) -> "_Among":
        """Some of these."""
        return _Among(self.count, some if self.wanted is None else some & self.wanted)

    def some(self, condition: Array) -> Array:
        """The condition, where a state is wanted."""
        return condition if self.wanted is None else condition & self.wanted


class _Lanes(NamedTuple):
    """An array of the program: one for `each` of the states, which are its last axis, or the same
    one for all of them. `work`: about so many operations make an entry from what is in memory."""

    value: Any
    each: bool
    work: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape at one state."""
        return self.value.shape[:-1] if self.each else jnp.shape(self.value)

    @property
    def computed_once(self) -> "_Lanes":
        """The same, which whatever reads it does not compute anew, if that is much."""
        cheap = not self.each or self.work <= _CHEAP
        return self if cheap else _Lanes(apart(self.value), True)


def _evaluate(program: ClosedJaxpr, given: Sequence[_Lanes], among: _Among) -> list[_Lanes]:
    """Results of the program."""
    jaxpr = program.jaxpr
    known: dict[Any, _Lanes] = {}
    constants = (_Lanes(x, False) for x in program.consts)
    known.update(zip(jaxpr.constvars, constants, strict=True))
    known.update(zip(jaxpr.invars, given, strict=True))

    def read(variable: Any) -> _Lanes:
        return _Lanes(variable.val, False) if type(variable) is Literal else known[variable]

    readers = collections.Counter(v for e in jaxpr.eqns for v in e.invars if type(v) is not Literal)
    last_use = {v: k for k, e in enumerate(jaxpr.eqns) for v in e.invars if type(v) is not Literal}
    needed = {v for v in jaxpr.outvars if type(v) is not Literal}
    for k, equation in enumerate(jaxpr.eqns):
        given = [read(v) for v in equation.invars]
        name = equation.primitive.name
        found = _RULES.get(name, _of_each_alike)(equation, given, among)
        if (own := _WORK.get(name)) is not None:
            work = own(equation) + sum(x.work for x in given if x.each)
            found = [x._replace(work=work) for x in found]
            if work > _FOR_SOME and readers[equation.outvars[0]] > 1:
                found = [x.computed_once for x in found]
        known.update(zip(equation.outvars, found, strict=True))
        for v in equation.invars:
            if type(v) is not Literal and last_use[v] == k and v not in needed:
                known.pop(v, None)
    return [read(v) for v in jaxpr.outvars]


def _bound(equation: JaxprEqn, values: Sequence[Any], **changed: Any) -> list[Any]:
    """The operation, one that contains no program, with other parameters."""
    found = equation.primitive.bind(*values, **{**equation.params, **changed})
    return list(found) if equation.primitive.multiple_results else [found]


def _by_itself(equation: JaxprEqn, values: Sequence[Any]) -> list[Any]:
    """The operation, whatever it contains, for one state."""
    params: Any = equation.primitive.get_bind_params(equation.params)
    # Until JAX 0.10 functions within it were arguments of their own.
    functions, params = params if isinstance(params, tuple) else ((), params)
    found = equation.primitive.bind(*functions, *values, **params)
    return list(found) if equation.primitive.multiple_results else [found]


def _all(values: Sequence[Any]) -> list[_Lanes]:
    return [_Lanes(x, True) for x in values]


def _of_each_alike(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> list[_Lanes]:
    """An operation without a rule here, by JAX's own batching."""
    values = [x.value for x in given]
    if not any(x.each for x in given):
        return [_Lanes(x, False) for x in _by_itself(equation, values)]
    axes = [x.value.ndim - 1 if x.each else None for x in given]
    batched = jax.vmap(functools.partial(_by_itself, equation), (axes,), -1, axis_size=among.count)
    return _all(batched(values))


def _spread(x: _Lanes, shape: Sequence[int], among: _Among) -> Array:
    """The array, broadcast to this shape at one state, at each of them. It is a number, or has as
    many axes."""
    axes = range(len(x.shape))
    if not x.each:
        return lax.broadcast_in_dim(jnp.asarray(x.value), (*shape, among.count), tuple(axes))
    if x.shape == tuple(shape):
        return x.value
    return lax.broadcast_in_dim(x.value, (*shape, among.count), (*axes, len(shape)))


_Rule = Callable[[JaxprEqn, Sequence[_Lanes], _Among], list[_Lanes]]


def _if_batched(rule: Callable[[JaxprEqn, Sequence[_Lanes], _Among], Sequence[Any]]) -> _Rule:
    """A rule for an operation of which something is there at each state, and so all results are."""

    @functools.wraps(rule)
    def apply(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> list[_Lanes]:
        if not any(x.each for x in given):
            return _of_each_alike(equation, given, among)
        found = rule(equation, given, among)
        if found is NotImplemented:
            return _of_each_alike(equation, given, among)
        return _all(found)

    return apply


@_if_batched
def _elementwise(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> list[Any]:
    shape = _shape_of(equation.outvars[0])
    given = [x if x.shape == tuple(shape) else x.computed_once for x in given]
    return _bound(equation, [_spread(x, shape, among) for x in given])


@_if_batched
def _select(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> list[Any]:
    shape = _shape_of(equation.outvars[0])
    which, *cases = given
    if which.shape != tuple(shape):
        which = which.computed_once
    spread = _spread(which, shape, among) if which.each or which.shape else which.value
    return _bound(equation, [spread, *(_spread(x, shape, among) for x in cases)])


@_if_batched
def _of_parts(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> list[Any]:
    """Each array at each state; axes are counted from the front."""
    return _bound(equation, [_spread(x, x.shape, among) for x in given])


def _of_any(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> list[_Lanes]:
    del equation
    (x,) = given
    if not x.each:
        return [x]
    return [_Lanes(_any_state.bind(jnp.any(among.some(x.value), axis=-1)), False)]


def _as_it_is(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> list[_Lanes]:
    del equation, among
    return list(given)


def _kept_apart(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> list[_Lanes]:
    del equation, among
    (x,) = given
    return [_Lanes(apart(x.value), True) if x.each and x.work else x]


@_if_batched
def _broadcast(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> Any:
    shape, axes = equation.params["shape"], equation.params["broadcast_dimensions"]
    x = given[0]
    if len(given) > 1:
        return NotImplemented
    if np.prod(shape) > np.prod(x.shape):
        x = x.computed_once
    return [lax.broadcast_in_dim(x.value, (*shape, among.count), (*axes, len(shape)))]


def _with_sizes(**sizes: Callable[[Any, int], Any]) -> _Rule:
    """A rule for an operation on one array, which changes some of the parameters."""

    @_if_batched
    def apply(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> Any:
        if any(x.each for x in given[1:]) or not given[0].each:
            return NotImplemented
        changed = {key: change(equation, among.count) for key, change in sizes.items()}
        return _bound(equation, [x.value for x in given], **changed)

    return apply


def _own_rank(equation: JaxprEqn) -> int:
    return len(_shape_of(equation.invars[0]))


def _strides(equation: JaxprEqn, _: int) -> Any:
    strides = equation.params["strides"]
    return None if strides is None else (*strides, 1)


@_if_batched
def _reshaped(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> Any:
    if len(given) > 1 or equation.params.get("dimensions") is not None:
        return NotImplemented
    return [lax.reshape(given[0].value, (*equation.params["new_sizes"], among.count))]


def _reduced(join: Callable[[Array, Array], Array]) -> _Rule:
    """A rule for a reduction, written out."""

    @_if_batched
    def apply(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> Any:
        axes, (x,) = equation.params["axes"], given
        size = int(np.prod([x.shape[k] for k in axes]))
        if not size:
            return NotImplemented
        others = tuple(k for k in range(len(x.shape)) if k not in axes)
        value = lax.transpose(x.value, (*axes, *others, len(x.shape)))
        value = value.reshape(size, *(x.shape[k] for k in others), among.count)
        return [_joined(join, value)]

    return apply


def _joined(join: Callable[[Array, Array], Array], value: Array) -> Array:
    """The rows, at least one, joined: a few parts of equal size, and their rows again."""
    while (size := value.shape[0]) > _WRITTEN_OUT:
        part = size // _WRITTEN_OUT
        parts = lax.split(value[: part * _WRITTEN_OUT], (part,) * _WRITTEN_OUT)
        together = functools.reduce(join, parts)
        value = jnp.concatenate([together, value[part * _WRITTEN_OUT :]])
    return functools.reduce(join, lax.split(value, (1,) * size))[0]


def _extreme(beyond: Callable[[Array, Array], Array]) -> _Rule:
    """A rule for the index of an extreme value: the first of equal ones, or the first NaN."""

    @_if_batched
    def apply(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> Any:
        del among
        (axis,), (x,) = equation.params["axes"], given
        size = x.shape[axis]
        if not 0 < size <= _WRITTEN_OUT:
            return NotImplemented
        parts = [lax.index_in_dim(x.value, k, axis, keepdims=False) for k in range(size)]
        best, place = parts[0], jnp.zeros(parts[0].shape, equation.params["index_dtype"])
        for k, part in enumerate(parts[1:], 1):
            better = beyond(part, best)
            if jnp.issubdtype(part.dtype, jnp.inexact):
                better = (better | jnp.isnan(part)) & ~jnp.isnan(best)
            best = jnp.where(better, part, best)
            place = jnp.where(better, jnp.asarray(k, place.dtype), place)
        return [place]

    return apply


@_if_batched
def _padded(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> Any:
    x, around = given
    if around.each:
        return NotImplemented
    config = (*equation.params["padding_config"], (0, 0, 0))
    return _bound(equation, [_spread(x, x.shape, among), around.value], padding_config=config)


@_if_batched
def _concatenated(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> list[Any]:
    return [lax.concatenate([_spread(x, x.shape, among) for x in given], **equation.params)]


@_if_batched
def _gathered(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> list[Any]:
    """`_gathering.gather`, which takes along the last axis."""
    del among
    (x,), where = given, equation.params["places"]["places"]
    *batch, size = x.shape
    if (axes := axes_of_block(where)) is not None:
        start, number = int(where.flat[0]), len(batch)
        block = lax.slice_in_dim(x.value, start, start + where.size, axis=number)
        block = block.reshape(*batch, *(where.shape[k] for k in axes), -1)
        order = (*range(number), *(number + k for k in np.argsort(axes)), number + len(axes))
        return [jnp.transpose(block, order)]
    if not where.size:
        return [jnp.zeros((*batch, *where.shape, x.value.shape[-1]), x.value.dtype)]
    rows = np.arange(int(np.prod(batch))).reshape(*batch, *(1,) * where.ndim) * size + where
    return [rows_at(x.value.reshape(-1, x.value.shape[-1]), rows)]


def _indices_of(places: Sequence[_Lanes]) -> list[Array]:
    """Places of a slice that are the same at all states, with the first of these."""
    indices = [jnp.asarray(p.value) for p in places]
    return [*indices, jnp.zeros_like(indices[0])]


@_if_batched
def _read_at_index(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> Any:
    """A dynamic slice."""
    x, *places = given
    sizes, shape = equation.params["slice_sizes"], x.shape
    if len(places) != len(shape):
        return NotImplemented
    if not any(p.each for p in places):
        found = lax.dynamic_slice(x.value, [*_indices_of(places)], (*sizes, x.value.shape[-1]))
        return [found]
    axis = _only_moving(sizes, shape)
    few = x.value.size <= _FEW * among.count
    if axis is None or (few and shape[axis] > _WRITTEN_OUT):
        return NotImplemented
    place = jnp.clip(places[axis].value, 0, shape[axis] - 1)
    return [jnp.expand_dims(_taken(x, axis, place, among), axis)]


def _only_moving(sizes: Any, shape: Any) -> int | None:
    """The only axis along which one entry is meant and not all; none if it is another case."""
    axes = [k for k, (size, full) in enumerate(zip(sizes, shape, strict=True)) if size != full]
    return axes[0] if len(axes) == 1 and sizes[axes[0]] == 1 else None


def _taken(x: _Lanes, axis: int, place: Array, among: _Among) -> Array:
    """The entry of each state along an axis, at its place (*more, states): (*shape, states), `more`
    standing where the axis stood."""
    value, more = _spread(x, x.shape, among), place.ndim - 1
    if not more and value.size > _FEW * among.count:

        def read(here: Array, at: Array, found: Array) -> Array:
            return _selected(here, lax.dynamic_index_in_dim(value, at, axis, False), found)

        shape = *x.shape[:axis], *x.shape[axis + 1 :], among.count
        return _place_by_place(read, place, jnp.zeros(shape, value.dtype), among)
    found = None
    for k in range(x.shape[axis]):
        part = lax.index_in_dim(value, k, axis, keepdims=False)
        part = jnp.expand_dims(part, tuple(range(axis, axis + more)))
        here = (place == k).reshape(
            *(1,) * axis, *place.shape[:-1], *(1,) * (part.ndim - axis - more - 1), among.count
        )
        found = jnp.where(here, part, jnp.zeros_like(part) if found is None else found)
    assert found is not None
    return found


def _place_by_place(
    function: Callable[[Array, Array, Array], Array], place: Array, value: Array, among: _Among
) -> Array:
    """The value after the function of (the states at a place, this place, the value) of one place
    after another at which a state is: of one, mostly."""
    last = jnp.iinfo(place.dtype).max

    def turn(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        pending, value = carry
        at = jnp.min(jnp.where(pending, place, last))
        here = pending & (place == at)
        return pending & ~here, function(here, at, value)

    pending = among.some(jnp.ones(place.shape, bool))
    return lax.while_loop(lambda carry: jnp.any(carry[0]), turn, (pending, value))[1]


@_if_batched
def _written_at_index(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> Any:
    """A dynamic update of a slice."""
    x, new, *places = given
    value, update = (_spread(a, a.shape, among) for a in (x, new))
    if not any(p.each for p in places):
        return _bound(equation, [value, update, *_indices_of(places)])
    axes = [k for k, (a, b) in enumerate(zip(new.shape, x.shape, strict=True)) if a != b]
    if len(axes) != 1 or new.shape[axes[0]] != 1:
        return NotImplemented
    place = jnp.clip(places[axes[0]].value, 0, x.shape[axes[0]] - 1)
    if value.size > _FEW * among.count:
        update = apart(update)

        def write(here: Array, at: Array, value: Array) -> Array:
            old = lax.dynamic_slice_in_dim(value, at, 1, axes[0])
            new = _selected(here, update, old)
            return lax.dynamic_update_slice_in_dim(value, new, at, axes[0])

        return [_place_by_place(write, place, value, among)]
    return [jnp.where(_at_place(x.shape, axes[0], place), apart(update), value)]


def _at_place(shape: Sequence[int], axis: int, place: Array) -> Array:
    """The entries of an array of a shape that stand at the place along an axis, at each state."""
    ahead, behind = (1,) * axis, (1,) * (len(shape) - axis - 1)
    index = np.arange(shape[axis]).reshape(*ahead, -1, *behind, 1)
    at = apart(place) if place.ndim else place[None]
    return at.reshape(*ahead, 1, *behind, -1) == index


@_if_batched
def _gathered_at_index(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> Any:
    x, where = given
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    in_batch = getattr(numbers, "operand_batching_dims", ())
    if in_batch:
        return NotImplemented
    if not where.each:
        rank = len(_shape_of(equation.outvars[0]))
        numbers = numbers._replace(offset_dims=(*numbers.offset_dims, rank))
        return _bound(
            equation,
            [x.value, where.value],
            dimension_numbers=numbers,
            slice_sizes=(*sizes, x.value.shape[-1]),
        )
    axis = int(numbers.start_index_map[0]) if len(numbers.start_index_map) == 1 else -1
    others = [k for k in range(len(x.shape)) if k != axis]
    more = where.shape[:-1]
    along = tuple(k for k in range(len(more) + len(others)) if k not in numbers.offset_dims)
    simple = (
        axis >= 0
        and numbers.collapsed_slice_dims == (axis,)
        and all(sizes[k] == x.shape[k] for k in others)
        and along == tuple(range(axis, axis + len(more)))
        and equation.params["mode"] != lax.GatherScatterMode.FILL_OR_DROP
        and x.shape[axis] <= _WRITTEN_OUT
    )
    if not simple:
        return NotImplemented
    place = jnp.clip(where.value[..., 0, :], 0, x.shape[axis] - 1)
    return [_taken(x, axis, place, among)]


def _scattered(join: Callable[[Array, Array], Array]) -> _Rule:
    """A rule for a scatter to one place along one axis; places that are not there get nothing."""

    @_if_batched
    def apply(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> Any:
        x, where, new = given
        numbers = equation.params["dimension_numbers"]
        shape, rank = x.shape, len(new.shape)
        simple = (
            where.shape == (1,)
            and not getattr(numbers, "operand_batching_dims", ())
            and len(numbers.scatter_dims_to_operand_dims) == 1
            and numbers.inserted_window_dims == numbers.scatter_dims_to_operand_dims
            and numbers.update_window_dims == tuple(range(rank))
            and equation.params["mode"] != lax.GatherScatterMode.CLIP
        )
        if not simple:
            return NotImplemented
        axis = int(numbers.scatter_dims_to_operand_dims[0])
        if new.shape != (*shape[:axis], *shape[axis + 1 :]):
            return NotImplemented
        value, update = (_spread(a, a.shape, among) for a in (x, new))
        update = apart(jnp.expand_dims(update, axis))
        here = _at_place(shape, axis, where.value[0])
        return [jnp.where(here, join(value, update), value)]

    return apply


@_if_batched
def _contracted(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> Any:
    """A product of matrices: sums over a few entries are written out, and what is the same for all
    states is multiplied by all of them at once."""
    (contracted, batch), (one, other) = equation.params["dimension_numbers"], given
    length = int(np.prod([one.shape[k] for k in contracted[0]]))
    free = [
        [k for k in range(len(x.shape)) if k not in (*along, *ofbatch)]
        for x, along, ofbatch in zip(given, contracted, batch, strict=True)
    ]
    dtype = _aval_of(equation.outvars[0]).dtype
    if any(x.value.dtype != dtype for x in given):
        return NotImplemented
    if not 0 < length <= _WRITTEN_OUT:
        if one.each == other.each:
            return NotImplemented
        found = _bound(equation, [one.value, other.value])[0]
        # The states are the last of the free axes of that factor.
        place = len(batch[0]) + len(free[0]) if one.each else found.ndim - 1
        return [jnp.moveaxis(found, place, -1)]

    def arranged(x: _Lanes, k: int) -> Array:
        """(contracted, batch, free, states), the free axes of the other factor left out."""
        axes = (*contracted[k], *batch[k], *free[k])
        shape = (length, *(x.shape[i] for i in (*batch[k], *free[k])))
        value = lax.transpose(jnp.asarray(x.value), (*axes, *((len(axes),) if x.each else ())))
        value = value.reshape(*shape, *value.shape[len(axes) :])
        return value if x.each else value[..., None]

    first, second = arranged(one, 0), arranged(other, 1)
    front = 1 + len(batch[0])
    first = jnp.expand_dims(first, tuple(front + len(free[0]) + k for k in range(len(free[1]))))
    second = jnp.expand_dims(second, tuple(front + k for k in range(len(free[0]))))
    terms = [first[k] * second[k] for k in range(length)]
    return [_spread_last(functools.reduce(operator.add, terms), among)]


def _spread_last(x: Array, among: _Among) -> Array:
    return jnp.broadcast_to(x, (*x.shape[:-1], among.count))


def _called(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> list[_Lanes]:
    """A function within the program."""
    if not any(x.each for x in given):
        return _of_each_alike(equation, given, among)
    inner = next(equation.params[k] for k in ("jaxpr", "call_jaxpr") if k in equation.params)
    return _evaluate(_closed(inner), given, among)


def _closed(program: Any) -> ClosedJaxpr:
    return program if type(program) is ClosedJaxpr else ClosedJaxpr(program, ())


# Which results of a program may differ from state to state, by which arguments do.
_known_differences: weakref.WeakKeyDictionary[Jaxpr, dict[tuple[bool, ...], list[bool]]] = (
    weakref.WeakKeyDictionary()
)


def _differs(jaxpr: Jaxpr, given: Sequence[bool]) -> list[bool]:
    """Results that may differ from state to state, for arguments that do. Too many do no harm."""
    known, key = _known_differences.setdefault(jaxpr, {}), tuple(given)
    if key not in known:
        known[key] = _find_differs(jaxpr, given)
    return known[key]


def _find_differs(jaxpr: Jaxpr, given: Sequence[bool]) -> list[bool]:
    known = dict.fromkeys(jaxpr.constvars, False)
    known.update(zip(jaxpr.invars, given, strict=True))

    def read(variable: Any) -> bool:
        return type(variable) is not Literal and known[variable]

    for equation in jaxpr.eqns:
        flags = [read(v) for v in equation.invars]
        name, params = equation.primitive.name, equation.params
        if not any(flags) or name == "any_state":
            found = [False] * len(equation.outvars)
        elif name == "while":
            found = _while_differs(params, flags)
        elif name == "scan":
            found = _scan_differs(params, flags)
        elif name == "cond" and not flags[0]:
            found = _cond_differs(params, flags)
        elif _RULES.get(name) is _called:
            inner = next(params[k] for k in ("jaxpr", "call_jaxpr") if k in params)
            found = _differs(_closed(inner).jaxpr, flags)
        else:
            found = [True] * len(equation.outvars)
        known.update(zip(equation.outvars, found, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _cond_differs(params: Any, flags: Sequence[bool]) -> list[bool]:
    by_branch = [_differs(branch.jaxpr, flags[1:]) for branch in params["branches"]]
    return [any(some) for some in zip(*by_branch, strict=True)]


def _until_settled(
    carried: Sequence[bool], following: Callable[[list[bool]], Sequence[bool]]
) -> list[bool]:
    """Parts of the carry of a loop that differ between states in some turn."""
    now = list(carried)
    while True:
        new = [a or b for a, b in zip(now, following(now), strict=True)]
        if new == now:
            return now
        now = new


def _scan_differs(params: Any, flags: Sequence[bool]) -> list[bool]:
    first, carries = params["num_consts"], params["num_carry"]
    constants, carried, along = np.split(np.asarray(flags), (first, first + carries))

    def turn(now: Sequence[bool]) -> list[bool]:
        return _differs(params["jaxpr"].jaxpr, [*map(bool, constants), *now, *map(bool, along)])

    settled = _until_settled([*map(bool, carried)], lambda now: turn(now)[:carries])
    return [*settled, *turn(settled)[carries:]]


class _While(NamedTuple):
    """The parts of a loop: constants of the condition and of the body, and what is carried."""

    condition: Sequence[Any]
    body: Sequence[Any]
    carried: Sequence[Any]


def _parts_of_while(params: Any, given: Sequence[Any]) -> _While:
    first = params["cond_nconsts"]
    second = first + params["body_nconsts"]
    return _While(given[:first], given[first:second], given[second:])


def _while_differs(params: Any, flags: Sequence[bool]) -> list[bool]:
    parts = _parts_of_while(params, flags)

    def turn(now: list[bool]) -> Sequence[bool]:
        (decided,) = _differs(params["cond_jaxpr"].jaxpr, [*parts.condition, *now])
        return (
            [True] * len(now)
            if decided
            else _differs(params["body_jaxpr"].jaxpr, [*parts.body, *now])
        )

    return _until_settled(parts.carried, turn)


def _at_each(values: Sequence[_Lanes], flags: Sequence[bool], among: _Among) -> list[Array]:
    """The arrays, those that differ from state to state at each of them."""
    return [
        _spread(x, x.shape, among) if each else jnp.asarray(x.value)
        for x, each in zip(values, flags, strict=True)
    ]


def _lanes(values: Sequence[Any], flags: Sequence[bool]) -> list[_Lanes]:
    return [_Lanes(x, each) for x, each in zip(values, flags, strict=True)]


def _looped(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> list[_Lanes]:
    """A loop until no state meets the condition; those that do not meet it keep their values."""
    if not any(x.each for x in given):
        return _of_each_alike(equation, given, among)
    params = equation.params
    if params["cond_jaxpr"].out_avals[0].shape:
        params, given = _with_one_condition(params, given)
    parts = _parts_of_while(params, given)
    flags = _while_differs(params, [x.each for x in given])
    condition, body = params["cond_jaxpr"], params["body_jaxpr"]
    (decided,) = _differs(condition.jaxpr, [*(x.each for x in parts.condition), *flags])
    if decided and _counts(params):
        return _counted(params, parts, among)
    start = _at_each(parts.carried, flags, among)

    def going(now: Sequence[Any]) -> Any:
        return _evaluate(condition, [*parts.condition, *_lanes(now, flags)], among)[0].value

    def turn(now: Sequence[Any], among: _Among) -> list[Array]:
        found = _evaluate(body, [*parts.body, *_lanes(now, flags)], among)
        return _at_each(found, flags, among)

    if not decided:
        return _lanes(lax.while_loop(going, lambda now: turn(now, among), start), flags)
    some = among.some(going(start))
    if sum(x.size for x in start) <= _FEW * among.count:

        def turn_of_some(carry: Any) -> Any:
            some, now = carry
            new = [_selected(some, *x) for x in zip(turn(now, among.only(some)), now, strict=True)]
            return going(new) & some, new

        found = lax.while_loop(lambda carry: jnp.any(carry[0]), turn_of_some, (some, start))[1]
        return _lanes(found, flags)

    # What has ended is put aside when it ends, and not kept by a selection at each turn: of a step
    # that would be a third of the time.
    def turn_of_all(carry: Any) -> Any:
        some, now, ended = carry
        new = turn(now, among.only(some))
        still = going(new) & some
        ends = some & ~still

        def put_aside(carry: Any) -> Any:
            _, ended = carry
            return jnp.asarray(False), [_selected(ends, *x) for x in zip(new, ended, strict=True)]

        ended = lax.while_loop(lambda carry: carry[0], put_aside, (jnp.any(ends), ended))[1]
        return still, new, ended

    found = lax.while_loop(lambda carry: jnp.any(carry[0]), turn_of_all, (some, start, start))[2]
    return _lanes(found, flags)


def _with_one_condition(
    params: dict[str, Any], given: Sequence[_Lanes]
) -> tuple[dict[str, Any], Sequence[_Lanes]]:
    """A loop that JAX has batched (`jax.vmap` within the program), and its arguments. Its condition
    is one of each part of the batch: it turns as long as one of these goes on, and leaves the
    others as they are."""
    parts = _parts_of_while(params, given)
    asked, fixed = len(parts.condition), len(parts.body)
    condition, body = (jaxpr_as_fun(params[name]) for name in ("cond_jaxpr", "body_jaxpr"))

    def any_goes_on(*args: Array) -> list[Array]:
        return [jnp.any(condition(*args)[0])]

    def turn(*args: Array) -> list[Array]:
        now = args[asked + fixed :]
        (going,) = condition(*args[:asked], *now)
        new = body(*args[asked : asked + fixed], *now)
        some = [lax.broadcast_in_dim(going, x.shape, tuple(range(going.ndim))) for x in now]
        return [lax.select(*x) for x in zip(some, new, now, strict=True)]

    asks, ins = params["cond_jaxpr"].in_avals, params["body_jaxpr"].in_avals
    changed = {
        "cond_jaxpr": jax.make_jaxpr(any_goes_on)(*asks),
        "body_jaxpr": jax.make_jaxpr(turn)(*asks[:asked], *ins),
        "body_nconsts": asked + fixed,
    }
    return params | changed, [*parts.condition, *parts.condition, *parts.body, *parts.carried]


def _selected(some: Array, new: Array, old: Array) -> Array:
    """The new values of some of the states."""
    if new is old:
        return old
    return lax.select(jnp.broadcast_to(apart(some), new.shape), new, old)


def _counts(params: Any) -> bool:
    """Is it a loop of `lax.fori_loop`, from the first number to the second one?"""
    condition, body = params["cond_jaxpr"].jaxpr, params["body_jaxpr"].jaxpr
    if params["cond_nconsts"] or len(condition.eqns) != 1 or len(condition.invars) < 2:
        return False
    first, second = body.invars[params["body_nconsts"] :][:2]
    (compared,) = condition.eqns
    counted = [e for e in body.eqns if any(v is body.outvars[0] for v in e.outvars)]
    return bool(
        compared.primitive.name == "lt"
        and list(compared.invars) == list(condition.invars[:2])
        and body.outvars[1] is second
        and len(counted) == 1
        and counted[0].primitive.name == "add"
        and counted[0].invars[0] is first
        and type(counted[0].invars[1]) is Literal
        and counted[0].invars[1].val == 1
    )


def _counted(params: Any, parts: _While, among: _Among) -> list[_Lanes]:
    """A loop that counts, once for all states, from the least of their numbers to the largest."""
    first, end, *rest = parts.carried
    body = params["body_jaxpr"]
    low, high = (_spread(x, (), among) for x in (first, end))
    nothing = low >= high if among.wanted is None else (low >= high) | ~among.wanted
    start = jnp.min(jnp.where(nothing, jnp.iinfo(low.dtype).max, low))
    stop = jnp.max(jnp.where(nothing, jnp.iinfo(low.dtype).min, high))
    each = [True] * len(rest)

    def turn(k: Any, now: Sequence[Array]) -> list[Array]:
        given = [_Lanes(k, False), _Lanes(high, True), *_lanes(now, each)]
        some = (low <= k) & (k < high)
        found = _evaluate(body, [*parts.body, *given], among.only(some))[2:]
        return [
            _selected(some, a, b) for a, b in zip(_at_each(found, each, among), now, strict=True)
        ]

    found = lax.fori_loop(start, stop, turn, _at_each(rest, each, among))
    return _all([jnp.maximum(low, high), high, *found])


def _scanned(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> list[_Lanes]:
    if not any(x.each for x in given):
        return _of_each_alike(equation, given, among)
    params = equation.params
    first, carries = params["num_consts"], params["num_carry"]
    constants, carried, along = (
        given[:first],
        given[first : first + carries],
        given[first + carries :],
    )
    if not carries and 0 < params["length"] <= _AT_ONCE:
        return _evaluate(_at_once(params), given, among)
    flags = _scan_differs(params, [x.each for x in given])
    settled, results = flags[:carries], flags[carries:]
    each = [x.each for x in along]

    def turn(now: Sequence[Array], some: Sequence[Array]) -> Any:
        inside = [*constants, *_lanes(now, settled), *_lanes(some, each)]
        found = _evaluate(params["jaxpr"], inside, among)
        new = _at_each(found[:carries], settled, among)
        return new, _at_each(found[carries:], results, among)

    end, rows = lax.scan(
        turn,
        _at_each(carried, settled, among),
        [jnp.asarray(x.value) for x in along],
        length=params["length"],
        reverse=params["reverse"],
        unroll=params["unroll"],
    )
    return _lanes([*end, *rows], flags)


def _at_once(params: Any) -> ClosedJaxpr:
    """The program of a loop (`lax.map`) that carries nothing, for all of its turns together: side
    by side for one state they take longer than one after another, for many they do not."""
    body, length = params["jaxpr"], params["length"]
    shapes = [
        jax.ShapeDtypeStruct((length, *x.shape) if k >= params["num_consts"] else x.shape, x.dtype)
        for k, x in enumerate(body.in_avals)
    ]
    axes = tuple(0 if k >= params["num_consts"] else None for k in range(len(shapes)))
    return jax.make_jaxpr(jax.vmap(jaxpr_as_fun(body), axes, axis_size=length))(*shapes)


def _chosen(equation: JaxprEqn, given: Sequence[_Lanes], among: _Among) -> list[_Lanes]:
    """A choice for all states, or for each."""
    if not any(x.each for x in given):
        return _of_each_alike(equation, given, among)
    which, *rest = given
    branches = equation.params["branches"]
    if not which.each:
        flags = _cond_differs(equation.params, [x.each for x in given])

        def branch(program: ClosedJaxpr) -> Callable[..., Any]:
            return lambda: _at_each(_evaluate(program, rest, among), flags, among)

        return _lanes(lax.switch(which.value, [branch(b) for b in branches]), flags)
    place = jnp.clip(which.value, 0, len(branches) - 1)
    cases = [_evaluate(b, rest, among) for b in branches]
    found = cases[0]
    for k, case in enumerate(cases[1:], 1):
        found = [
            _Lanes(_selected(place == k, *(_spread(x, x.shape, among) for x in (new, old))), True)
            for new, old in zip(case, found, strict=True)
        ]
    return found


_ELEMENTWISE = (
    "neg sign floor ceil round is_finite exp exp2 log expm1 log1p tanh sin cos tan asin acos atan "
    "sinh cosh asinh acosh atanh sqrt rsqrt cbrt logistic erf erfc erf_inv lgamma digamma real "
    "imag conj abs square integer_pow not convert_element_type reduce_precision copy add sub mul "
    "div rem max min pow atan2 nextafter and or xor eq ne lt le gt ge add_any stop_gradient"
)
_FROM_THE_FRONT = "rev sort cumsum cumprod cummax cummin cumlogsumexp split stack squeeze"

_REARRANGING = (
    *("reshape", "squeeze", "transpose", "slice", "split", "rev", "broadcast_in_dim"),
    *("concatenate", "stack", "stop_gradient", "static_gather", "copy", "pad"),
)


def _entries_of_sum(equation: JaxprEqn) -> int:
    shape = _shape_of(equation.invars[0])
    return int(np.prod([shape[k] for k in equation.params["axes"]]))


def _length_of_product(equation: JaxprEqn) -> int:
    (along, _), _ = equation.params["dimension_numbers"]
    return 2 * int(np.prod([_shape_of(equation.invars[0])[k] for k in along]))


def _of_number(work: int) -> Callable[[JaxprEqn], int]:
    return lambda _: work


# Operations that an entry of a result takes, where it is not stored.
_WORK: dict[str, Callable[[JaxprEqn], int]] = {
    **dict.fromkeys((*_ELEMENTWISE.split(), "select_n"), _of_number(1)),
    **dict.fromkeys(_REARRANGING, _of_number(0)),
    **dict.fromkeys(["div", "sqrt", "rsqrt", "rem"], _of_number(5)),
    **dict.fromkeys(
        ["exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "pow", "tanh"],
        _of_number(20),
    ),
    **dict.fromkeys(("dynamic_slice", "gather", "argmax", "argmin"), _of_number(8)),
    **{f"reduce_{name}": _entries_of_sum for name in ("sum", "prod", "max", "min", "and", "or")},
    "dot_general": _length_of_product,
}

_RULES: dict[str, _Rule] = {
    **dict.fromkeys(_ELEMENTWISE.split(), _elementwise),
    **dict.fromkeys(_FROM_THE_FRONT.split(), _of_parts),
    **dict.fromkeys(
        ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "checkpoint", "remat2"),
        _called,
    ),
    "select_n": _select,
    "kept": _kept_apart,
    "any_state": _of_any,
    "unless_alone": _as_it_is,
    "optimization_barrier": _of_parts,
    "static_gather": _gathered,
    "concatenate": _concatenated,
    "reshape": _reshaped,
    "pad": _padded,
    "broadcast_in_dim": _broadcast,
    "transpose": _with_sizes(permutation=lambda e, _: (*e.params["permutation"], _own_rank(e))),
    "tile": _with_sizes(reps=lambda e, _: (*e.params["reps"], 1)),
    "slice": _with_sizes(
        start_indices=lambda e, _: (*e.params["start_indices"], 0),
        limit_indices=lambda e, n: (*e.params["limit_indices"], n),
        strides=_strides,
    ),
    "reduce_sum": _reduced(operator.add),
    "reduce_prod": _reduced(operator.mul),
    "reduce_max": _reduced(jnp.maximum),
    "reduce_min": _reduced(jnp.minimum),
    "reduce_and": _reduced(operator.and_),
    "reduce_or": _reduced(operator.or_),
    "argmax": _extreme(operator.gt),
    "argmin": _extreme(operator.lt),
    "dynamic_slice": _read_at_index,
    "dynamic_update_slice": _written_at_index,
    "gather": _gathered_at_index,
    "scatter": _scattered(lambda old, new: jnp.broadcast_to(new, old.shape)),
    "scatter-add": _scattered(operator.add),
    "scatter_add": _scattered(operator.add),
    "dot_general": _contracted,
    "while": _looped,
    "scan": _scanned,
    "cond": _chosen,
}
