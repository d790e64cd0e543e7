"""Numbers and verdicts as they are printed."""

from typing import Any

import numpy as np

from .._verdict import Verdict


# Components that are zero for the joint at hand come out of sums of products that cancel, each
# rounded to 1e-16 of itself; a solution loses some digits more to the condition of its equations.
# So what is below this part of the largest that it is compared with is not known to be anything.
ROUNDING = 1e-12

NOT_UNIQUE = "NOT UNIQUE (one of many)"
NOT_DECIDED = "NOT DECIDED (no state)"


def vector(values: Any, largest: float | None = None) -> str:
    """Six digits of each; `(x, y)`, or a bare number. What is rounding against `largest`
    (default: of these numbers) is printed as 0."""
    numbers = np.asarray(values, dtype=float)
    size = np.max(np.abs(numbers), initial=0.0) if largest is None else largest
    # Adding zero turns -0 into 0.
    cleaned = np.where(np.abs(numbers) <= ROUNDING * size, 0.0, numbers) + 0.0
    if cleaned.ndim == 0:
        return f"{cleaned:.6g}"
    return "(" + ", ".join(f"{x:.6g}" for x in cleaned) + ")"


def verdict(unique: Verdict, force_unique: Verdict, torque_unique: Verdict) -> str:
    """Verdict on one reaction on one body, with the components that are not unique, if any."""
    if not bool(unique.decided):
        return NOT_DECIDED
    many = [
        text for text in (_named("force", force_unique), _named("torque", torque_unique)) if text
    ]
    if many:
        return f"{NOT_UNIQUE}: {', '.join(many)}"
    if not bool(unique):
        return "unique on this body; as a whole NOT UNIQUE"
    return "unique"


def verdict_of_states(unique: Verdict) -> str:
    """Verdict on one reaction in a batch of states."""
    undecided = unique.size - int(np.sum(unique.decided))
    if undecided:
        return f"{NOT_DECIDED} in {undecided} of {unique.size} states"
    good = np.asarray(unique)
    if good.all():
        return "unique"
    if not good.any():
        return NOT_UNIQUE
    return f"NOT UNIQUE in {np.sum(~good)} of {good.size} states"


def _named(what: str, unique: Verdict) -> str:
    """`force x y`: the components that are not unique, by their axes; empty if all are."""
    bad = ~np.atleast_1d(np.asarray(unique))
    if bad.size == 1:
        return what if bad[0] else ""
    letters = [letter for letter, flag in zip("xyz", bad, strict=False) if flag]
    return " ".join([what, *letters]) if letters else ""
