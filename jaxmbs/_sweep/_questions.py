"""Questions for every case."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .. import _printing, _settings
from .._custom_types import BoolScalar, IntScalar, Scalar, Setting
from .._kinematics import assemble
from .._solution import RESULTS
from .._solvability import (
    AbstractCriterion,
    analyze,
    chosen_criterion,
    screen,
    Screening,
    Solvability,
)
from .._system import AbstractSystem, Structure
from .._verdict import Verdict


# Any function of the state: (system, q, v, t) to arrays.
Function: TypeAlias = Callable[..., Any]


class Case(NamedTuple):
    """One case: a system at a state, `q` (nq,), `v` (nv,), `t` (s)."""

    system: AbstractSystem
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    t: Scalar


class AbstractSecondLook(eqx.Module):
    """Second evaluation of the cases that the first one could not decide completely."""

    @abc.abstractmethod
    def wanted(self, answer: Any) -> BoolScalar:
        """Does this answer need a second evaluation?"""

    @abc.abstractmethod
    def __call__(self, case: Case, answer: Any) -> Any:
        """The answer after the second evaluation, of the same form."""


class AbstractIteration(eqx.Module):
    """Iteration that answers a question; the number of turns differs from case to case. The cases
    of a batch make their turns side by side, and each is replaced by the next one as soon as it has
    ended.

    A call of the question gives the same answer: cases that need another assembly, or whose parts
    are very light, are answered by it."""

    @abc.abstractmethod
    def begin(self, case: Case) -> Any:
        """State before the first turn: a pytree of arrays with a boolean attribute `ended`."""

    @abc.abstractmethod
    def turn(self, case: Case, lane: Any) -> Any:
        """State after one more turn; also called after the end, where it is ignored."""

    @abc.abstractmethod
    def answer(self, case: Case, lane: Any) -> Any:
        """The answer of a case that has ended."""


class AbstractQuestion(eqx.Module):
    """A question with a second evaluation of some cases, or an assembly of its own.

    All is done for many cases at once (`vmap`). Where neither is needed, any function (system, q,
    v, t) will do.
    """

    @property
    @abc.abstractmethod
    def second(self) -> AbstractSecondLook | None:
        """The second evaluation; None where the first is complete."""

    @property
    def iteration(self) -> AbstractIteration | None:
        """The iteration that answers it; None where the answer is that of a call."""
        return None

    @property
    def nearest(self) -> bool:
        """Is `assembled` the nearest closed configuration, as of `assemble`? Then cases are
        assembled together."""
        return False

    @abc.abstractmethod
    def assembled(self, start: Case) -> tuple[Float[Array, " nq"], RESULTS]:
        """The configuration in which a case is evaluated, and the result of its assembly. The
        system of `start` has the coordinates driven that the case holds."""

    @abc.abstractmethod
    def __call__(self, case: Case) -> Any:
        """The answer of the first evaluation: arrays, in any pytree."""


def nearest_closed(start: Case) -> tuple[Float[Array, " nq"], RESULTS]:
    """The default configuration of questions."""
    assembly = assemble(start.system, start.q, start.t, throw=False)
    return assembly.q, assembly.result


class FunctionQuestion(AbstractQuestion):
    """A function of the state, without a second evaluation."""

    function: Function

    @property
    def second(self) -> None:
        return None

    @property
    def nearest(self) -> bool:
        return True

    def assembled(self, start: Case) -> tuple[Float[Array, " nq"], RESULTS]:
        return nearest_closed(start)

    def __call__(self, case: Case) -> Any:
        return self.function(*case)


class Verdicts(eqx.Module):
    """Verdicts on the uniqueness of reactions at one state (or, batched, at many).

    - `rank` of C, `redundancy` p (degree of redundancy), `mobility`; -1 where the state is none.
    - `reaction_unique` (constraints,): of C_X^T lambda_X; `certain`: beyond doubt.
    - `rechecked`: decided by a decomposition.
    - `result`: that of `Solvability`, then `RESULTS.verdict_doubtful` where a decomposition is in
      doubt as well.
    """

    rank: IntScalar
    redundancy: IntScalar
    mobility: IntScalar
    reaction_unique: Annotated[Verdict, "constraints"]
    certain: Bool[Array, " constraints"]
    rechecked: BoolScalar
    result: RESULTS
    structure: Structure = eqx.field(static=True)

    def __str__(self) -> str:
        if self.rank.ndim:
            return _printing.batch("states", self.rank.shape)
        doubt = _printing.outcome(self.result)
        if not bool(np.all(self.reaction_unique.decided)):
            return f"Nothing was decided. {doubt}".strip()
        named = zip(self.structure.constraint_names, self.reaction_unique.unique, strict=True)
        lines = [
            f"rank {int(self.rank)}, redundancy p = {int(self.redundancy)}, mobility "
            f"{int(self.mobility)}",
            f"unique: {', '.join(name for name, unique in named if bool(unique)) or 'none'}",
        ]
        return "\n".join([*lines, *([doubt] if doubt else [])])

    def unique(self, name: str) -> Verdict:
        """Is the generalized reaction of the joint or driver of that name unique?"""
        info = self.structure.constraint(name)
        return self.reaction_unique[..., self.structure.constraints.index(info)]


class Certification(AbstractQuestion):
    """Verdicts on all reactions in two tiers: the fast `screen` of every case, and `analyze` of
    those that it leaves in doubt.

    **Arguments:** `criterion`: of `analyze` (default its own); `every`: `analyze` every case.
    """

    criterion: AbstractCriterion | None
    every: bool = eqx.field(static=True)

    def __init__(
        self, criterion: Setting[AbstractCriterion | None] = None, every: Setting[bool] = False
    ):
        self.criterion = None if criterion is None else chosen_criterion(criterion)
        self.every = _settings.flag(every, "every")

    @property
    def second(self) -> "_Decomposition | None":
        return None if self.every else _Decomposition(self.criterion)

    @property
    def nearest(self) -> bool:
        return True

    def assembled(self, start: Case) -> tuple[Float[Array, " nq"], RESULTS]:
        return nearest_closed(start)

    def __call__(self, case: Case) -> Verdicts:
        if self.every:
            return _decomposed(case, self.criterion)
        found = screen(*case)
        return _verdicts(found, found.certain, rechecked=False)


class _Decomposition(AbstractSecondLook):
    """The results of `analyze`, except for reactions of which the first evaluation was certain."""

    criterion: AbstractCriterion | None

    def wanted(self, answer: Verdicts) -> BoolScalar:
        return answer.result != RESULTS.successful

    def __call__(self, case: Case, answer: Verdicts) -> Verdicts:
        found = _decomposed(case, self.criterion)
        unique = jnp.where(
            answer.certain, answer.reaction_unique.unique, found.reaction_unique.unique
        )
        return dataclasses.replace(
            found,
            reaction_unique=Verdict.where(found.reaction_unique.decided, unique),
            certain=answer.certain | found.certain,
        )


def _decomposed(case: Case, criterion: AbstractCriterion | None) -> Verdicts:
    report = analyze(*case, criterion=criterion)
    certain = jnp.broadcast_to(~report.doubtful, report.reaction_unique.shape)
    return _verdicts(report, certain, rechecked=True)


def _verdicts(
    found: Screening | Solvability, certain: Bool[Array, " constraints"], rechecked: bool
) -> Verdicts:
    structure = found.structure
    decided = found.result != RESULTS.state_not_valid
    rank = len(structure.rows) - found.redundancy
    rank, mobility = (
        jnp.where(decided, number, found.redundancy) for number in (rank, structure.nv - rank)
    )
    doubt = RESULTS.where(found.doubtful, RESULTS.verdict_doubtful, RESULTS.successful)
    return Verdicts(
        rank=rank,
        redundancy=found.redundancy,
        mobility=mobility,
        reaction_unique=found.reaction_unique,
        certain=certain & (found.result == RESULTS.successful),
        rechecked=jnp.asarray(rechecked),
        result=RESULTS.where(found.result != RESULTS.successful, found.result, doubt),
        structure=structure,
    )


def as_question(question: Any) -> AbstractQuestion:
    """A plain function becomes a question without a second evaluation.

    **Raises:** `TypeError` for an invalid question.
    """
    if isinstance(question, AbstractQuestion):
        return question
    such_as = "a function (system, q, v, t), or a question such as Certification()"
    return FunctionQuestion(_settings.function(question, "question", such_as, "system, q, v, t"))
