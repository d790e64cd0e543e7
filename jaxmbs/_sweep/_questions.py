"""Questions for every case, among them the misfit of parts that are a little off."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from .. import _printing, _settings
from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar, Setting
from .._dynamics import solve_with_friction
from .._errors import ModelError
from .._formulations import AbstractFormulation
from .._formulations._minimum_norm import ElasticTruncated, Truncated
from .._geometry import LENGTH
from .._kinematics import assemble, assemble_least_squares, is_closed, scaled_geometric_matrix
from .._limits import EXACT
from .._linalg import cholesky, leading
from .._linalg._concrete_rank import values_and_rank
from .._linalg._solvers import substitute_lower
from .._printing import AbstractAnswer, Description
from .._reactions import Axes, reactions_of_multipliers, wrench_maps
from .._solution import RESULTS
from .._solvability import (
    AbstractCriterion,
    analyze,
    chosen_criterion,
    screen,
    Screening,
    Solvability,
)
from .._solvability._analyze import (
    check_elastic,
    scaled,
    scaled_constraint_matrix,
    with_deformations,
)
from .._system import AbstractSystem, Model, Structure
from .._system._places import PlaceLayout
from .._verdict import Verdict
from ._subjects import subject_of


# --------------------------------------------------------------------------------------------------
# Questions for every case.
# --------------------------------------------------------------------------------------------------


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


class Verdicts(AbstractAnswer):
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

    def described(self) -> Description:
        if self.rank.ndim:
            return _printing.batch("states", self.rank.shape)
        if not bool(np.all(self.reaction_unique.decided)):
            return Description([_printing.undecided(self.result)])
        return Description(
            [
                f"rank {int(self.rank)}, redundancy p = {int(self.redundancy)}, mobility "
                f"{int(self.mobility)}",
                unique_words(self.structure, self.reaction_unique),
                _printing.outcome(self.result),
            ]
        )

    def unique(self, name: str) -> Verdict:
        """Is the generalized reaction of the joint or driver of that name unique?"""
        info = self.structure.constraint(name)
        return self.reaction_unique[..., self.structure.constraints.index(info)]


def unique_words(structure: Structure, unique: Verdict) -> str:
    """The constraints whose reaction is unique, by name."""
    named = zip(structure.constraint_names, np.asarray(unique.unique), strict=True)
    return f"unique: {', '.join(name for name, own in named if own) or 'none'}"


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


# --------------------------------------------------------------------------------------------------
# Misfit of parts that are a little off: the question of a Monte-Carlo of tolerances.
# --------------------------------------------------------------------------------------------------


class Contradiction(eqx.Module):
    """One column of N_h: the names of the `rows` and of the `joints` (and drivers) that may
    contradict each other, and the `unit` of their misfit."""

    rows: tuple[str, ...] = eqx.field(static=True)
    joints: tuple[str, ...] = eqx.field(static=True)
    unit: str = eqx.field(static=True)

    def __str__(self) -> str:
        return ", ".join(self.rows if len(self.rows) < 4 else self.joints)


class Fit(AbstractAnswer):
    """Fit of a mechanism of inexact parts at one state (or, batched, at many).

    - `misfit` (contradictions,): N_h^T Phi, see `Misfit`; m or rad, as in `contradictions`, with
      the rows that each belongs to.
    - `residual` (geometric,): what is left of Phi, row by row (m, rad).
    - `force` (constraints, dim), `torque` (constraints, 1 or 3): what each joint and driver exerts
      on its second body (its only one), about its point, world axes (N, N m).
    - `force_unique`, `torque_unique`: the verdict of each component, that of the mechanism whose
      parts fit; a number whose verdict is False is one of many.
    - `result`: a `RESULTS` member, of the multipliers.
    """

    misfit: Float[Array, " contradictions"]
    residual: Float[Array, " geometric"]
    force: Float[Array, "constraints dim"]
    torque: Float[Array, "constraints turns"]
    force_unique: Annotated[Verdict, "constraints dim"]
    torque_unique: Annotated[Verdict, "constraints turns"]
    result: RESULTS
    contradictions: tuple[Contradiction, ...] = eqx.field(static=True)
    structure: Structure = eqx.field(static=True)

    def described(self) -> Description:
        if self.misfit.ndim > 1:
            return _printing.batch("fits", self.misfit.shape[:-1])
        misfits = zip(self.contradictions, self.misfit, strict=True)
        return Description(
            [
                _printing.outcome(self.result),
                "" if self.contradictions else "no constraint can contradict the others",
                *(f"{own}: off by {float(amount):.4g} {own.unit}" for own, amount in misfits),
            ]
        )


class Misfit(AbstractQuestion):
    """Contradiction of redundant constraints when parts are a little off, and the unique reactions
    then.

    With N_h an orthonormal basis of the left null space of C_h, the geometric rows of C, a
    mechanism closes only if N_h^T Phi = 0. Each case is assembled by least squares: Phi is made
    as small as it can be, lengths relative to the characteristic length against angles, across
    the directions in which the constraints hold the mechanism where its parts fit. N_h^T Phi is
    what is left; multiplied by stiffness it is what strains the parts (with rigid ones, any
    non-unique reaction). There is one contradiction for each redundant geometric row, and none
    where there is no such row: then every case closes.

    Ranks are those of the mechanism whose parts fit, as parts that are off make dependent rows
    independent; N_h spans the vectors that the nearest matrix of that rank has, and stays next to
    the basis at that mechanism, whose columns have few rows. Verdicts are also that mechanism's:
    reactions that are unique there change by as little as the parts do, all others by as much
    as the parts are stiff. Velocities are those of the case, which need not be consistent.

    **Arguments:**

    - `system`: whose parts fit: a `Model` or a system, for which `tolerances` are drawn.
    - `q` (nq,), `t` (s): a closed configuration near those of the cases; default the reference.
    - `elastic`: with the compliances of the system, reactions are those of `ElasticResolution`, and
      take in the stress of the misfit: what each assembled mechanism is loaded with by its own
      parts. (Misfits of compliances themselves, as of a rod that is too long, are numbers like
      others: `compliances.NAME.misfit`.) Verdicts are then those of `analyze(..., elastic=True)`.

    **Raises:** `ModelError` (a `ValueError`) if it is not closed, or for a system without q;
    `ValueError` with `elastic` for a system without compliances.
    """

    basis: Float[Array, "geometric contradictions"]
    force_unique: Annotated[Verdict, "constraints dim"]
    torque_unique: Annotated[Verdict, "constraints turns"]
    rank: int = eqx.field(static=True)
    rank_geometric: int = eqx.field(static=True)
    decided: int = eqx.field(static=True)
    contradictions: tuple[Contradiction, ...] = eqx.field(static=True)
    elastic: bool = eqx.field(static=True)

    def __init__(
        self,
        system: Setting[Model | AbstractSystem],
        q: Setting[Float[Array, " nq"] | None] = None,
        t: Setting[RealScalarLike] = 0.0,
        *,
        elastic: Setting[bool] = False,
    ):
        exact, _, q, v, t = subject_of(system, q, None, t).place({})
        check_elastic(exact.structure, elastic)
        self.elastic = elastic
        if not is_closed(exact.scaled_residual(q, t)):
            raise ModelError(
                "the parts must fit before they deviate, but the mechanism is not closed here; "
                "give the q that jaxmbs.assemble finds."
            )
        matrix = np.asarray(scaled_constraint_matrix(exact, q, v, t)[0])
        geometric = exact.structure.geometric
        self.rank, self.rank_geometric = (
            values_and_rank(rows)[1] for rows in (matrix, matrix[geometric])
        )
        self.decided = 0
        if elastic:
            both = with_deformations(exact, exact.constraint_matrix(q, v, t), q, v, t)
            rows, _ = scaled(exact.structure, both, exact.characteristic_length())
            self.decided = values_and_rank(np.asarray(rows))[1] - self.rank
        whole = np.asarray(scaled_geometric_matrix(exact, q, t))
        basis = _few_rows(np.linalg.svd(whole)[0][:, self.rank_geometric :])
        self.basis = jnp.asarray(basis)
        self.contradictions = tuple(_contradiction(exact.structure, x) for x in basis.T)
        none = jnp.zeros((len(exact.structure.rows),), q.dtype)
        found = reactions_of_multipliers(exact, q, v, t, none, elastic=elastic)
        seconds = _seconds(found.layout)
        own = (v[Axes.WORLD, seconds] for v in (found.force_unique, found.torque_unique))
        there = seconds[:, None] >= 0
        self.force_unique, self.torque_unique = (
            Verdict.where(verdict.decided & there, verdict.unique) for verdict in own
        )

    @property
    def second(self) -> None:
        return None

    def assembled(self, start: Case) -> tuple[Float[Array, " nq"], RESULTS]:
        # A coordinate that is held is a driver more, whose row is independent of the others.
        held = len(start.system.structure.geometric_rows) - self.basis.shape[0]
        return assemble_least_squares(start.system, start.q, start.t, self.rank_geometric + held)

    def __call__(self, case: Case) -> Fit:
        system, q, v, t = case
        misfit = self._misfit(case)
        # Two decompositions, one after the other: see AbstractCriterion.measure.
        q, misfit = lax.optimization_barrier((q, misfit))
        residual = system.position_residual(q, t)
        formulation: AbstractFormulation = Truncated(self.rank)
        if self.elastic:
            structure = system.structure
            rows = jnp.zeros((len(structure.rows),), q.dtype)
            rows = rows.at[structure.geometric_rows].set(residual)
            formulation = ElasticTruncated(self.rank, self.decided, rows)
        solved = solve_with_friction(system, q, v, t, formulation=formulation)
        places = system.places(q, v, t)
        maps = wrench_maps(places, system.constraint_matrix(q, v, t))
        seconds = _seconds(places.layout)
        force, torque = maps.of(solved.multipliers, places.layout)
        return Fit(
            misfit=misfit,
            residual=residual,
            force=_at(force, seconds),
            torque=_at(torque, seconds),
            force_unique=self.force_unique,
            torque_unique=self.torque_unique,
            result=solved.result,
            contradictions=self.contradictions,
            structure=system.structure,
        )

    def _misfit(self, case: Case) -> Float[Array, " contradictions"]:
        """N_h^T Phi with N_h the orthonormal basis next to that of the exact mechanism."""
        if not self.contradictions:
            return jnp.zeros((0,), case.q.dtype)
        system, q, _, t = case
        held, _, _ = leading(scaled_geometric_matrix(system, q, t), self.rank_geometric)
        across = self.basis - held @ (held.T @ self.basis)
        lower = cholesky(across.T @ across)
        misfit = substitute_lower(lower, across.T @ system.scaled_residual(q, t))
        lengths = np.array([c.unit == "m" for c in self.contradictions])
        return misfit * jnp.where(lengths, system.characteristic_length(), 1.0)


def _at(wrenches: Float[Array, "places n"], seconds: np.ndarray) -> Float[Array, "constraints n"]:
    """The wrenches on the second bodies; NaN for constraints on coordinates, without a point."""
    return jnp.where(seconds[:, None] >= 0, wrenches[seconds], jnp.nan)


def _seconds(layout: PlaceLayout) -> np.ndarray:
    """The place of each constraint on its second body; none where coordinates do not locate
    points."""
    return np.array(layout.seconds if layout.bodies else (), dtype=int)


def _few_rows(basis: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the same space whose first columns have few rows: the reduced
    echelon form, made orthonormal from the sparsest column on."""
    echelon, used = basis.copy(), np.zeros(basis.shape[0], dtype=bool)
    for k in range(basis.shape[1]):
        size = np.where(used[:, None], 0.0, np.abs(echelon))
        size[:, :k] = 0.0
        row, column = np.unravel_index(np.argmax(size), size.shape)
        echelon[:, [k, column]] = echelon[:, [column, k]]
        echelon[:, k] /= echelon[row, k]
        others = np.arange(basis.shape[1]) != k
        echelon[:, others] -= np.outer(echelon[:, k], echelon[row, others])
        used[row] = True
    order = np.argsort(np.sum(np.abs(echelon) > EXACT.unique, axis=0), kind="stable")
    if not order.size:
        return basis
    orthonormal, factor = np.linalg.qr(echelon[:, order])
    return orthonormal * np.sign(np.diagonal(factor))


def _contradiction(structure: Structure, column: np.ndarray) -> Contradiction:
    rows = structure.geometric_rows[np.abs(column) > EXACT.unique]
    owners = dict.fromkeys(structure.row_owner[rows].tolist())
    return Contradiction(
        rows=tuple(structure.row_names[row] for row in rows),
        joints=tuple(structure.constraint_names[owner] for owner in owners),
        unit="m" if any(structure.rows[row].quantity == LENGTH for row in rows) else "rad",
    )
