"""Common functions of the printed results."""

from typing import Any

import jax
import numpy as np

from ._solution import RESULTS


# A vector is printed up to this length, of a longer one its ends.
_PRINTED = 24


def array(values: Any) -> str:
    """A vector on one line, six digits of each number."""
    text = np.array2string(
        np.asarray(values),
        threshold=_PRINTED,
        edgeitems=4,
        separator=", ",
        max_line_width=10**6,
        formatter={"float_kind": lambda x: f"{x:.6g}"},
    )
    return " ".join(text.split())


def complex_line(value: Any, beside: Any) -> str:
    """A line of a table: a complex number, and a real one next to it."""
    text = f"{float(np.real(value)):+.6g} {float(np.imag(value)):+.6g}i"
    return f"{text:<28}{float(beside):.6g}"


def largest(values: Any) -> str:
    """The largest magnitude among numbers; 0 where there are none."""
    return f"{float(np.max(np.abs(np.asarray(values)), initial=0.0)):.2g}"


def batch(what: str, shape: tuple[int, ...]) -> str:
    """Text of batched results."""
    count = int(np.prod(shape))
    return f"{count} {what} (index them to print one)"


def outcome(result: RESULTS) -> str:
    """Message of a computation that failed; empty for one that succeeded."""
    # Of cases of a sweep the number is one of NumPy's.
    return RESULTS[jax.tree.map(np.asarray, result)]
