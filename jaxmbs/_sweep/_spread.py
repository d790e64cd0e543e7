"""Distribution of numbers over many cases."""

from collections.abc import Iterator
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from .. import _settings
from .._custom_types import Setting
from .._errors import ModelError
from .._reactions import NOT_UNIQUE
from .._solvability._report import format_table
from ._questions import Fit
from ._sweep import Sweep


PERCENTILES = (5, 50, 95)


class Component(NamedTuple):
    """The numbers (cases,) of one component of a misfit or reaction: of `name`, which `what`
    (`misfit`, `force x`, `torque`), in `unit`. `unique`: False of a reaction that is one of many.
    """

    name: str
    what: str
    unit: str
    unique: bool
    values: Float[np.ndarray, " cases"]

    @property
    def mean(self) -> float:
        """The mean of all cases."""
        return float(np.mean(self.values))

    @property
    def deviation(self) -> float:
        """The standard deviation (with cases - 1) of all cases; 0 of one case."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else 0.0

    @property
    def percentiles(self) -> Float[np.ndarray, "3"]:
        """The values below which 5, 50 and 95 of a hundred cases are."""
        return np.percentile(self.values, PERCENTILES)


class Spread(eqx.Module):
    """The distribution of misfits and reactions over the `count` cases that could be assembled (of
    `total`): a table when printed, in which reactions that are not unique have no numbers."""

    components: tuple[Component, ...]
    count: int = eqx.field(static=True)
    total: int = eqx.field(static=True)

    def component(self, name: str, what: str) -> Component:
        """One of them.

        **Raises:** `ModelError` (a `ValueError`) that lists those that there are.
        """
        for found in self.components:
            if (found.name, found.what) == (name, what):
                return found
        known = ", ".join(f"{c.what} of {c.name}" for c in self.components)
        raise ModelError(f"there is no {what!r} of {name!r}; there are {known or 'none'}.")

    def __str__(self) -> str:
        header = ("of", "what", "unit", "mean", "deviation", *(f"{p} %" for p in PERCENTILES))
        lines = []
        for c in self.components:
            numbers = ("", "", "", "", NOT_UNIQUE)
            if c.unique:
                numbers = [f"{x:.4g}" for x in (c.mean, c.deviation, *c.percentiles)]
            lines.append((c.name, c.what, c.unit, *numbers))
        head = f"{self.count} of {self.total} cases could be put together"
        return "\n".join([head, "", format_table(header, lines)])


def spread(found: Setting[Sweep]) -> Spread:
    """The distribution of the misfits and reactions of a sweep of the question `Misfit`.

    Components of reactions that are zero in all cases (up to rounding) are omitted.

    **Raises:** `ModelError` (a `ValueError`) for a sweep of another question, or where no case
    could be assembled.
    """
    _settings.instance(found, Sweep, "found", "the Sweep that sweep returns")
    answers, good = found.answers(), found.result == 0
    if not isinstance(answers, Fit):
        raise ModelError("a spread needs a sweep of the question jaxmbs.Misfit.")
    if not good.any():
        raise ModelError(f"no case could be put together: {', '.join(found.failures())}")
    components = (*_misfits(answers, good), *_reactions(answers, good))
    return Spread(components, int(good.sum()), len(good))


def _misfits(answers: Fit, good: np.ndarray) -> Iterator[Component]:
    names = [str(c) for c in answers.contradictions]
    for k, contradiction in enumerate(answers.contradictions):
        what = "misfit"
        if names.count(names[k]) > 1:
            what = f"misfit {names[: k + 1].count(names[k])}"
        values = np.asarray(answers.misfit)[good, k]
        yield Component(names[k], what, contradiction.unit, True, values)


# Against the largest force or torque of all cases, in N or N m: what a joint cannot transmit comes
# out of sums that cancel.
_ROUNDING = 1e-9


def _reactions(answers: Fit, good: np.ndarray) -> Iterator[Component]:
    size = max(np.max(np.abs(x[good]), initial=0.0) for x in (answers.force, answers.torque))
    for word, unit in (("force", "N"), ("torque", "N m")):
        values = np.asarray(getattr(answers, word))[good]
        verdicts = np.asarray(getattr(answers, f"{word}_unique"))[good]
        letters = [word] if values.shape[2] == 1 else [f"{word} {x}" for x in "xyz"]
        names = answers.structure.constraint_names
        for i, k in np.argwhere(np.max(np.abs(values), axis=0) > _ROUNDING * size):
            yield Component(
                names[i], letters[k], unit, bool(verdicts[:, i, k].all()), values[:, i, k]
            )
