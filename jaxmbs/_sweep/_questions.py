"""What can be asked of every case."""

import abc
from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._custom_types import BoolScalar, IntScalar, Scalar
from .._solution import RESULTS
from .._solvability import AbstractCriterion, analyze, screen, Screening
from .._system import AbstractSystem, Structure


# Any function of the state: (system, q, v, t) to arrays.
Function: TypeAlias = Callable[..., Any]


class AbstractQuestion(eqx.Module):
    """A question with a second look at some cases.

    Both looks are taken of many cases at once (`vmap`), the second one only where it is wanted.
    Where everything can be said at the first look, any function (system, q, v, t) will do.
    """

    @abc.abstractmethod
    def __call__(
        self, system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Any:
        """The answer at the first look: arrays, in any pytree."""

    @abc.abstractmethod
    def unsettled(self, answer: Any) -> BoolScalar:
        """Does this answer want a second look?"""

    @abc.abstractmethod
    def settle(
        self,
        answer: Any,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        t: Scalar,
    ) -> Any:
        """The answer after the second look, of the same form."""


class Asked(AbstractQuestion):
    """A function of the state, with nothing to be looked at again."""

    function: Function

    def __call__(
        self, system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Any:
        return self.function(system, q, v, t)

    def unsettled(self, answer: Any) -> BoolScalar:
        del answer
        return jnp.asarray(False)

    def settle(
        self,
        answer: Any,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        t: Scalar,
    ) -> Any:
        del system, q, v, t
        return answer


class Verdicts(eqx.Module):
    """Which reactions are unique at one state (or, batched, at many).

    - `rank` of C, `redundancy` p (degree of redundancy), `mobility`.
    - `reaction_unique` (constraints,): of C_X^T lambda_X; `certain`: beyond doubt.
    - `rechecked`: decided by a decomposition.
    - `result`: `RESULTS.verdict_doubtful` where a decomposition is in doubt as well.
    """

    rank: IntScalar
    redundancy: IntScalar
    mobility: IntScalar
    reaction_unique: Bool[Array, " constraints"]
    certain: Bool[Array, " constraints"]
    rechecked: BoolScalar
    result: RESULTS
    structure: Structure = eqx.field(static=True)

    def unique(self, name: str) -> Bool[Array, "..."]:
        """Is the generalized reaction of the joint or driver of that name unique?"""
        info = self.structure.constraint(name)
        return self.reaction_unique[..., self.structure.constraints.index(info)]


class Certification(AbstractQuestion):
    """Verdicts on all reactions in two tiers: the fast `screen` of every case, and `analyze` of
    those that it leaves in doubt.

    **Arguments:** `criterion`: of `analyze` (default its own); `every`: `analyze` every case.
    """

    criterion: AbstractCriterion | None = None
    every: bool = eqx.field(default=False, static=True)

    def __call__(
        self, system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Verdicts:
        if self.every:
            return self._decomposed(None, system, q, v, t)
        found = screen(system, q, v, t)
        return _verdicts(found, found.doubtful(), jnp.asarray(False))

    def unsettled(self, answer: Any) -> BoolScalar:
        return (answer.result != RESULTS.successful) & ~answer.rechecked

    def settle(
        self,
        answer: Any,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        t: Scalar,
    ) -> Verdicts:
        return self._decomposed(answer, system, q, v, t)

    def _decomposed(
        self,
        first: Verdicts | None,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        t: Scalar,
    ) -> Verdicts:
        """What `analyze` says, but for reactions of which the first look was certain."""
        report = analyze(system, q, v, t, criterion=self.criterion)
        clear = ~report.doubtful()
        unique, certain = (
            report.reaction_unique,
            jnp.broadcast_to(clear, report.reaction_unique.shape),
        )
        if first is not None:
            unique = jnp.where(first.certain, first.reaction_unique, unique)
            certain = first.certain | certain
        return Verdicts(
            rank=report.rank,
            redundancy=report.redundancy,
            mobility=report.mobility,
            reaction_unique=unique,
            certain=certain,
            rechecked=jnp.asarray(True),
            result=RESULTS.where(clear, RESULTS.successful, RESULTS.verdict_doubtful),
            structure=system.structure,
        )


def _verdicts(found: Screening, doubtful: BoolScalar, rechecked: BoolScalar) -> Verdicts:
    rank = len(found.structure.rows) - found.redundancy
    return Verdicts(
        rank=rank,
        redundancy=found.redundancy,
        mobility=found.structure.nv - rank,
        reaction_unique=found.reaction_unique,
        certain=found.certain,
        rechecked=rechecked,
        result=RESULTS.where(doubtful, RESULTS.verdict_doubtful, RESULTS.successful),
        structure=found.structure,
    )


def as_question(question: AbstractQuestion | Function) -> AbstractQuestion:
    """A plain function becomes a question without a second look."""
    return question if isinstance(question, AbstractQuestion) else Asked(question)
