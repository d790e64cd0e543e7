"""Numbers and verdicts as they are printed."""

from typing import Any

import numpy as np


# Components that are zero for the joint at hand come out of sums of products that cancel.
_ROUNDING = 1e-12

NOT_UNIQUE = "NOT UNIQUE (one of many)"


def vector(values: Any, largest: float | None = None) -> str:
    """Six digits of each; `(x, y)`, or a bare number. What is rounding against `largest`
    (default: of these numbers) is printed as 0."""
    numbers = np.asarray(values, dtype=float)
    size = np.max(np.abs(numbers), initial=0.0) if largest is None else largest
    # Adding zero turns -0 into 0.
    cleaned = np.where(np.abs(numbers) <= _ROUNDING * size, 0.0, numbers) + 0.0
    if cleaned.ndim == 0:
        return f"{cleaned:.6g}"
    return "(" + ", ".join(f"{x:.6g}" for x in cleaned) + ")"


def verdict(unique: Any, force_unique: Any, torque_unique: Any) -> str:
    """Of one reaction on one body: which of its components are one of many, if any."""
    many = [
        text for text in (_named("force", force_unique), _named("torque", torque_unique)) if text
    ]
    if many:
        return f"{NOT_UNIQUE}: {', '.join(many)}"
    if not bool(unique):
        return "unique on this body; as a whole NOT UNIQUE"
    return "unique"


def verdict_of_states(unique: Any) -> str:
    """Of one reaction in a batch of states."""
    good = np.asarray(unique)
    if good.all():
        return "unique"
    if not good.any():
        return NOT_UNIQUE
    return f"NOT UNIQUE in {np.sum(~good)} of {good.size} states"


def _named(what: str, unique: Any) -> str:
    """`force x y`: the components that are not unique, by their axes; empty if all are."""
    bad = ~np.atleast_1d(np.asarray(unique))
    if bad.size == 1:
        return what if bad[0] else ""
    letters = [letter for letter, flag in zip("xyz", bad, strict=False) if flag]
    return " ".join([what, *letters]) if letters else ""
