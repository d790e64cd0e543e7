import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._checks import known_array
from .._programs import Compiling, program
from ._states import state_method


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
