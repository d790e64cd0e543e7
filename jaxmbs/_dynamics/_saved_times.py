import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Numbers, RealScalarLike


def saved_times(
    start: RealScalarLike,
    end: RealScalarLike,
    every: float | None,
    times: Numbers | None,
    dtype: np.dtype,
) -> Float[Array, " times"]:
    """When to save: start, start + every, ... and the end; or `times`; or start and end.

    **Raises:** `ValueError` for an end that is not behind the start, or times that do not
    increase.
    """
    if times is not None:
        if every is not None:
            raise ValueError("give `every` or `times`, not both.")
        grid = jnp.asarray(times, dtype)
        if grid.ndim != 1 or grid.shape[0] < 2:
            raise ValueError(f"times must be at least two numbers, got shape {grid.shape}.")
    elif every is None:
        grid = jnp.stack([jnp.asarray(start, dtype), jnp.asarray(end, dtype)])
    else:
        grid = _regular(start, end, every, dtype)
    known = _checks.concrete(grid)
    if known is not None:
        if not np.all(np.isfinite(known)):
            raise ValueError(f"times must be finite, got {known.tolist()}.")
        if np.any(np.diff(known) <= 0):
            raise ValueError(
                "times must increase: the end lies behind the start, got "
                f"start {known[0]:g} s and end {known[-1]:g} s."
            )
    return grid


def _regular(
    start: RealScalarLike, end: RealScalarLike, every: float, dtype: np.dtype
) -> Float[Array, " times"]:
    known = [_checks.concrete(x) for x in (start, end, every)]
    if any(x is None for x in known):
        raise ValueError(
            "how many states `every` saves must be known while tracing; give `times` instead."
        )
    first, last, step = (float(x) for x in known if x is not None)
    if not step > 0 or not np.isfinite([first, last, step]).all() or last <= first:
        raise ValueError(
            f"need start < end and every > 0, got start {first:g}, end {last:g} and every "
            f"{step:g} s."
        )
    # A last interval that is only rounding is none.
    count = int(np.ceil((last - first) / step * (1 - 1e-12)))
    return jnp.asarray(np.append(first + step * np.arange(count), last), dtype)
