"""Distribution of numbers over many cases, and verdicts over a workspace."""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _printing, _settings
from .._custom_types import IntScalar, RealScalarLike, Scalar, Setting
from .._dynamics import solve_with_friction
from .._errors import ModelError
from .._formulations import chosen_formulation
from .._printing import AbstractAnswer, Description, Table
from .._reactions import NOT_UNIQUE
from .._solution import RESULTS
from .._solvability import analyze
from .._solvability._expression import generalized_reactions
from .._system import AbstractSystem, Structure, takes_state
from .._verdict import Verdict
from ._questions import Fit, unique_words
from ._sweep import Sweep


# --------------------------------------------------------------------------------------------------
# Distribution of numbers over many cases.
# --------------------------------------------------------------------------------------------------


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


class Spread(AbstractAnswer):
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

    def described(self) -> Description:
        rows = []
        for c in self.components:
            numbers = ["", "", "", "", NOT_UNIQUE]
            if c.unique:
                numbers = [f"{x:.4g}" for x in (c.mean, c.deviation, *c.percentiles)]
            rows.append((c.name, c.what, c.unit, *numbers))
        titles = ("of", "what", "unit", "mean", "deviation", *(f"{p} %" for p in PERCENTILES))
        table = Table.of(titles, rows)
        return Description([f"{self.count} of {self.total} cases could be put together"], [table])


def spread(found: Setting[Sweep]) -> Spread:
    """The distribution of the misfits and reactions of a sweep of the question `Misfit`.

    Components of reactions that are zero in all cases (up to rounding) are omitted.

    **Raises:** `ModelError` (a `ValueError`) for a sweep of another question, or where no case
    could be assembled.
    """
    _settings.instance(found, Sweep, "found", "the Sweep that sweep returns")
    answers, good = found.answers(), found.result == 0
    if not isinstance(answers, Fit):
        raise ModelError("a spread needs a sweep of the question jaxmbs.sweeps.Misfit.")
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


class Workspace(AbstractAnswer):
    """Data of a workspace map at one state (or, batched, at many).

    - `rank`, `redundancy`, `rank_gap`, `margin`, `reaction_unique` (constraints,): as in
      `Solvability`.
    - `force` (N): the largest resultant force on a body that is unique; 0 if none is. Bodies in
      coordinates of their own have no frame whose force that would be, and no part in it.
    - `result`: a `RESULTS` member, of the state and the multipliers.
    """

    rank: IntScalar
    redundancy: IntScalar
    rank_gap: Scalar
    margin: Scalar
    reaction_unique: Annotated[Verdict, "constraints"]
    force: Scalar
    result: RESULTS
    structure: Structure = eqx.field(static=True)

    def described(self) -> Description:
        if self.rank.ndim:
            return _printing.batch("states", self.rank.shape)
        if not bool(np.all(self.reaction_unique.decided)):
            return Description([_printing.undecided(self.result)])
        left_out = ", ".join(body.name for body in self.structure.bodies if not body.force)
        return Description(
            [
                _printing.outcome(self.result),
                f"rank {int(self.rank)}, redundancy p = {int(self.redundancy)}; largest unique "
                f"force {float(self.force):.6g} N",
                unique_words(self.structure, self.reaction_unique),
                f"forces on {left_out} are left out: no frame of their own" if left_out else "",
            ]
        )


@takes_state(decides_rank=True)
def workspace(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
) -> Workspace:
    """The question of a map over a workspace: what is unique, how clearly, and how large do
    forces become that can be known?

    Forces are the resultants H_i C_X^T lambda_X of joints and drivers on bodies at this state
    (q, v, t); one that is not unique (Wojtyra & Pekal, eq. 5) takes no part.

    **Arguments:** `q` (nq,), `v` (nv,), `t` (s): the state.

    **Returns:** a `Workspace`, for `sweep` and `jaxmbs.plot.draw_map`.
    """
    report = analyze(system, q, v, t)
    solved = solve_with_friction(
        system, q, v, t, formulation=chosen_formulation(None, system.structure)
    )
    structure = system.structure
    selections = []
    for constraint, body in report.layout.pairs:
        info = structure.constraints[constraint]
        selections.append((range(info.start, info.stop), structure.bodies[body].force))
    questions = generalized_reactions(system.constraint_matrix(q, v, t), selections)
    own = jnp.append(solved.multipliers, 0.0)[questions.rows]
    forces = jnp.linalg.norm(jnp.einsum("pcr,pr->pc", questions.coefficients, own), axis=1)
    known = jnp.where(report.body_unique.unique[:, 0], forces, 0.0)
    return Workspace(
        rank=report.rank,
        redundancy=report.redundancy,
        rank_gap=report.rank_gap,
        margin=report.margin,
        reaction_unique=report.reaction_unique,
        force=jnp.where(report.decided, jnp.max(known, initial=0.0), jnp.nan),
        result=RESULTS.where(report.result != RESULTS.successful, report.result, solved.result),
        structure=structure,
    )
