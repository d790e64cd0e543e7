"""Checks of states, the same for every public function and method that takes one."""

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._checks import known_array
from .._custom_types import BoolScalar, RealScalarLike
from .._limits import EXACT
from .._programs import Compiling, program
from ._structure import Structure


# --------------------------------------------------------------------------------------------------
# Check of states, the same for every public function and method that takes one.
#
# Concrete arguments are refused by name before anything is computed: not a system, not an array,
# another length or precision, a batch where one state is meant, a number that is not finite, a
# quaternion that is not a rotation. Of values that are being traced only shapes and types are
# known; `is_state` is the check of the numbers in compiled programs.
# --------------------------------------------------------------------------------------------------


P = ParamSpec("P")
T = TypeVar("T")

# The largest coordinate, velocity or time: squares of lengths and velocities, products of those
# with masses, and their sums over many bodies stay far from what double precision ends with.
LARGEST = 1e100


def state_method(**arguments: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator for methods of a system: checks `q`, `v` and `t`, and those named in
    `arguments`, as a `q`, `v`, `t` or vector of `rows`.

    Arrays of NumPy become arrays of JAX. An argument whose default is None may be None.

    **Raises:** `TypeError` or `ValueError`, one sentence of what was given and what is wanted.
    """
    return functools.partial(with_checks, lambda system: system, arguments)


def with_checks(
    admitted: Callable[[Any], Any],
    arguments: Mapping[str, str],
    function: Callable[P, T],
) -> Callable[P, T]:
    """The function, whose first argument has the structure, with checks of the others. `admitted`:
    what the function gets in place of the first."""
    parameters = inspect.signature(function).parameters
    kinds = {"q": "q", "v": "v", "t": "t", **arguments}
    checked = [
        (place, name, _CHECKS[kinds[name]], parameters[name].default is None)
        for place, name in enumerate(parameters)
        if name in kinds
    ]
    first = next(iter(parameters))
    call: Callable[..., Any] = function

    @functools.wraps(function)
    def door(*given: P.args, **named: P.kwargs) -> T:
        if not given and first not in named:
            return call(*given, **named)
        positional = list(given)
        system = admitted(positional[0] if positional else named[first])
        structure = system.structure
        if positional:
            positional[0] = system
        else:
            named[first] = system
        for place, name, check, optional in checked:
            if place < len(positional):
                if not (positional[place] is None and optional):
                    positional[place] = check(structure, positional[place], name)
            elif name in named and not (named[name] is None and optional):
                named[name] = check(structure, named[name], name)
        return call(*positional, **named)

    return door


def is_state(
    structure: Structure,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
) -> BoolScalar:
    """Are these numbers a state: finite, with quaternions of unit length?"""
    numbers = jnp.concatenate([q, v, jnp.reshape(jnp.asarray(t, q.dtype), (1,))])
    # Comparisons with NaN are false; in single precision the limit is infinite, and so is reached.
    limit = min(LARGEST, float(jnp.finfo(q.dtype).max))
    sound = jnp.isfinite(numbers) & (jnp.abs(numbers) <= limit)
    if not len(structure.quaternions):
        return jnp.all(sound)
    squares = jnp.sum(q[structure.quaternions] ** 2, axis=1)
    return jnp.all(jnp.concatenate([sound, jnp.abs(squares - 1) <= EXACT.unit_quaternion]))


def _coordinates(structure: Structure, value: Any, name: str) -> Any:
    array = _vector(value, structure.nq, name, "coordinates")
    if not isinstance(array, Tracer):
        known = np.asarray(array)
        _refuse_broken(structure, known, name, "coordinates")
        _refuse_rotations(structure, known, name)
    return array


def _velocities(structure: Structure, value: Any, name: str) -> Any:
    array = _vector(value, structure.nv, name, "velocities")
    if not isinstance(array, Tracer):
        _refuse_broken(structure, np.asarray(array), name, "velocities")
    return array


def _multipliers(structure: Structure, value: Any, name: str) -> Any:
    array = _vector(value, len(structure.rows), name, "constraint rows")
    if not isinstance(array, Tracer):
        _refuse_broken(structure, np.asarray(array), name, "constraint rows")
    return array


def _time(structure: Structure, value: Any, name: str) -> Any:
    del structure
    if isinstance(value, float) and abs(value) <= LARGEST:
        return value
    wanted = f"{name} must be a time in s, one number"
    if not isinstance(value, _NUMBERS) or type(value) is bool:
        raise TypeError(f"{wanted}, got {described(value)}.")
    if np.shape(value):
        raise ValueError(
            f"{wanted}, got shape {list(np.shape(value))}; map over many times with jax.vmap."
        )
    if type(value) is int and abs(value) > LARGEST:
        # (Some whole numbers are too large for any floating-point number.)
        raise ValueError(f"{wanted} that is at most {LARGEST:g} in size, got a larger one.")
    traced = isinstance(value, Tracer)
    kind = value.dtype if traced else np.asarray(value).dtype
    if kind.kind not in "iuf":
        raise TypeError(f"{wanted}, got {kind}.")
    if traced:
        return value
    if not abs(float(value)) <= LARGEST:
        raise ValueError(f"{wanted} that is finite (at most {LARGEST:g}), got {float(value):g}.")
    return value


_ARRAYS = (jax.Array, np.ndarray)
_NUMBERS = (int, float, jax.Array, np.ndarray, np.number)

_CHECKS: dict[str, Callable[[Structure, Any, str], Any]] = {
    "q": _coordinates,
    "v": _velocities,
    "t": _time,
    "rows": _multipliers,
}


def _vector(value: Any, count: int, name: str, what: str) -> Any:
    """`value` as an array of JAX, of exactly `count` numbers of the precision in use."""
    wanted = precision()
    if not isinstance(value, _ARRAYS):
        raise TypeError(
            f"{name} must be an array of {count} numbers ({what}, {wanted}), got "
            f"{described(value)}."
        )
    if value.shape != (count,):
        batch = len(value.shape) > 1 and value.shape[-1] == count
        advice = (
            "; one state is meant, so map over a batch with jax.vmap"
            if batch
            else "; it may be another system's"
        )
        raise ValueError(
            f"{name} must be an array of shape [{count}], the {what} of this system, got shape "
            f"{list(value.shape)}{advice}."
        )
    if value.dtype != wanted:
        if isinstance(value, np.ndarray) and value.dtype == np.float64:
            return known_array(value)
        raise TypeError(
            f"{name} must hold {wanted} numbers, got {value.dtype}; write "
            f"{name}.astype({str(wanted)!r})."
        )
    # To make an array of an array takes longer than all of this.
    return value if isinstance(value, jax.Array) else known_array(value)


def _refuse_broken(structure: Structure, known: np.ndarray, name: str, what: str) -> None:
    # One product and one comparison where all is well: false for NaN, and where a square is large.
    with np.errstate(over="ignore"):
        if float(known.dot(known)) <= LARGEST:
            return
    broken = np.flatnonzero(~(np.abs(known, dtype=np.float64) <= LARGEST))
    if not broken.size:
        return
    first = int(broken[0])
    owners = {
        "coordinates": [b.name for b in structure.bodies if first in b.coordinates],
        "velocities": [b.name for b in structure.bodies if first in b.columns],
        "constraint rows": [n for i, n in enumerate(structure.row_names) if i == first],
    }[what]
    whose = f" (of {owners[0]!r})" if owners else ""
    more = f", and {broken.size - 1} more" if broken.size > 1 else ""
    raise ValueError(
        f"{name} must be finite, each number at most {LARGEST:g}: {name}[{first}]{whose} is "
        f"{known[first]:g}{more}; look for where it became so."
    )


def _refuse_rotations(structure: Structure, known: np.ndarray, name: str) -> None:
    places = structure.quaternions
    if not len(places):
        return
    own = known.take(places)
    own *= own
    squares = own.sum(axis=1)
    errors = squares - 1
    if errors.dot(errors) <= EXACT.unit_quaternion**2:
        return
    worst = int(np.argmax(np.abs(errors)))
    if abs(errors[worst]) <= EXACT.unit_quaternion:
        return
    first = int(places[worst][0])
    owner = next(b.name for b in structure.bodies if first in b.coordinates)
    raise ValueError(
        f"the orientation of {owner!r}, {name}[{first}:{first + 4}], must be a quaternion of "
        f"length 1, got length {math.sqrt(squares[worst]):.9g}; divide it by its length (one of "
        "length 0 is no rotation)."
    )


def precision() -> np.dtype:
    """The floating-point type of all numbers: double precision if it is enabled."""
    return jax.dtypes.canonicalize_dtype(np.float64)


def described(value: Any) -> str:
    if value is None:
        return "None"
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeioAEIO' else 'a'} {kind}"


def jitted(method: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled method of a system, of a state that is one. Plain numbers become arrays first: as
    they are, each new value of a time would compile anew."""
    compiled = program(method, compiling=Compiling.ONCE)

    @functools.wraps(method)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        arrays = {key: _array(value) for key, value in named.items()}
        return compiled(self, *map(_array, arguments), **arrays)

    return state_method(multipliers="rows")(call)


def _array(value: Any) -> Any:
    """The value as an array; an omitted argument stays None."""
    if value is None or isinstance(value, jax.Array):
        return value
    known = np.asarray(value)
    return jnp.asarray(value) if known.dtype == object else known_array(known)
