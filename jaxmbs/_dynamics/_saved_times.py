from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._custom_types import Scalar


# States saved at most: a run of more is a slip of the unit, and would fill the memory.
MOST_STATES = 10_000_000


def saved_times(
    start: Any,
    end: Any,
    every: Any,
    times: Any,
    dtype: np.dtype,
) -> Float[Array, " times"]:
    """When to save: start, start + every, ... and the end; or `times`; or start and end.

    **Raises:** `ValueError` for an end that is not after the start, times that do not increase,
    and more states than memory holds; `TypeError` for a value that is not a number.
    """
    _settings.check_range(start, "start")
    _settings.check_range(end, "end")
    if times is not None:
        if every is not None:
            raise ValueError("give `every` or `times`, not both.")
        grid = _settings.increasing(times, "times", dtype, least=2)
        known = [_checks.concrete(x) for x in (start, end)]
        ends = None if any(x is None for x in known) else np.array(known, float)
        own = _settings.known_numbers(times)
        if ends is not None and own is not None:
            _must_agree(own[[0, -1]], ends)
        return grid
    first, last = _checks.concrete(start), _checks.concrete(end)
    if first is None or last is None:
        grid = jnp.stack([jnp.asarray(start, dtype), jnp.asarray(end, dtype)])
    else:
        if last <= first:
            raise ValueError(_behind(float(first), float(last)))
        grid = _checks.number([first, last], dtype)
    return grid if every is None else _regular(start, end, every, dtype)


def first_of(times: Float[Array, " times"]) -> Scalar:
    """The first of the times. An index into an array is a program, one for each length."""
    return _checks.picked(times, 0)


def _must_agree(own: np.ndarray, ends: np.ndarray) -> None:
    """**Raises:** `ValueError` for times that begin or end elsewhere than the run."""
    if np.any(np.abs(own - ends) > 1e-6 * (own[1] - own[0])):
        raise ValueError(
            f"times must run from start to end, {ends[0]:g} s to {ends[1]:g} s, got times from "
            f"{own[0]:g} s to {own[1]:g} s; give start and end as in times."
        )


def _behind(start: float, end: float) -> str:
    return f"end must lie behind start, got end {end:g} s and start {start:g} s."


def _regular(start: Any, end: Any, every: Any, dtype: np.dtype) -> Float[Array, " times"]:
    _settings.check_range(every, "every", above=0)
    known = [_checks.concrete(x) for x in (start, end, every)]
    if any(x is None for x in known):
        raise ValueError(
            "how many states `every` saves must be known while tracing; give `times` instead."
        )
    first, last, step = (float(x) for x in known if x is not None)
    if last <= first:
        raise ValueError(_behind(first, last))
    if (last - first) / step > MOST_STATES:
        raise ValueError(
            f"every={step:g} s saves {(last - first) / step:.3g} states, more than "
            f"{MOST_STATES:,}; make it longer."
        )
    # A last interval that is only rounding is none.
    count = int(np.ceil((last - first) / step * (1 - 1e-12)))
    return _checks.number(np.append(first + step * np.arange(count), last), dtype)
