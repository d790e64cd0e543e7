"""Between which values that are not unique lie."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from .._dynamics import Trajectory
from .._errors import ModelError
from .._ranges import AbstractBound, check_question, given_bounds, Ranges, ranges_along
from .._system import AbstractSystem
from .._verdict import NOT_UNIQUE
from ._components import Component


class Bands(NamedTuple):
    """The least and the greatest value of every component at every state: infinite where nothing
    bounds it, NaN where it is unique and where there is no answer, which `notes` explain."""

    low: Float[np.ndarray, "n components"]
    high: Float[np.ndarray, "n components"]
    notes: tuple[str, ...]


def bands_of(
    trajectory: Trajectory,
    names: Sequence[str],
    components: Sequence[Component],
    verdicts: np.ndarray,
    bounds: Sequence[AbstractBound | str],
) -> Bands:
    """Without bounds, what is not unique may have any value, and no program is solved.

    **Arguments:** `names` of the constraints; `verdicts` (n, components); `bounds` as of
    `jaxmbs.ranges`.
    """
    many = verdicts == NOT_UNIQUE
    if not bounds:
        low, high = (np.where(many, sign * np.inf, np.nan) for sign in (-1.0, 1.0))
        return Bands(low, high, ())
    found = ranges_along(trajectory, bounds=bounds)
    low, high = (np.full(verdicts.shape, np.nan) for _ in range(2))
    left_out = []
    for k, component in enumerate(components):
        name = names[component.constraint]
        if not found.has_wrench(name):
            left_out += [name] if many[:, k].any() else []
            continue
        ends = _ends(found, name, component)
        low[:, k], high[:, k] = (np.where(many[:, k], end, np.nan) for end in ends)
    return Bands(low, high, _notes(found, left_out))


def _ends(found: Ranges, name: str, component: Component) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest values (n,) of a component of a wrench."""
    wrench, count = found.wrench(name), len(found.times)
    sides = (getattr(wrench, f"{component.what}_{side}") for side in ("low", "high"))
    low, high = (np.asarray(x).reshape(count, -1)[:, component.place] for x in sides)
    return low, high


def _notes(found: Ranges, left_out: Sequence[str]) -> tuple[str, ...]:
    notes = [f"Ranges are those within the bounds: {'; '.join(map(str, found.bounds))}."]
    if found.refusal():
        notes.append(found.refusal())
    if left_out:
        named = ", ".join(dict.fromkeys(left_out))
        notes.append(f"Ranges of what acts on coordinates are not computed: {named}.")
    return tuple(notes)


def check_bounds(system: AbstractSystem, bounds: Any) -> tuple[AbstractBound, ...]:
    """Bounds that this system understands, before anything is computed. What makes no sense is
    refused by a `ValueError`.

    **Raises:** `ModelError`, and `TypeError` for values that are not bounds.
    """
    try:
        chosen = given_bounds(bounds)
        if chosen:
            check_question(system, chosen, ())
    except ValueError as error:
        raise ModelError(f"bounds: {error}") from None
    return chosen
