"""Misfit of parts that are a little off: the question of a Monte-Carlo of tolerances."""

from typing import Annotated

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .. import _printing
from .._custom_types import RealScalarLike, Setting
from .._dynamics import solve_with_friction
from .._errors import ModelError
from .._formulations import AbstractFormulation
from .._formulations._minimum_norm import ElasticTruncated, Truncated
from .._geometry import LENGTH
from .._kinematics import assemble_least_squares, is_closed, scaled_geometric_matrix
from .._linalg import cholesky, leading
from .._linalg._concrete_rank import values_and_rank
from .._linalg._solvers import substitute_lower
from .._reactions import Axes, reactions_of_multipliers, wrench_maps
from .._solution import RESULTS
from .._solvability._analyze import (
    check_elastic,
    scaled,
    scaled_constraint_matrix,
    with_deformations,
)
from .._system import AbstractSystem, Model, Structure
from .._system._places import PlaceLayout
from .._verdict import Verdict
from ._model_subject import subject_of
from ._questions import AbstractQuestion, Case


# Entries of an orthonormal basis below this are rounding.
_ZERO = 1e-6


class Contradiction(eqx.Module):
    """One column of N_h: the names of the `rows` and of the `joints` (and drivers) that may
    contradict each other, and the `unit` of their misfit."""

    rows: tuple[str, ...] = eqx.field(static=True)
    joints: tuple[str, ...] = eqx.field(static=True)
    unit: str = eqx.field(static=True)

    def __str__(self) -> str:
        return ", ".join(self.rows if len(self.rows) < 4 else self.joints)


class Fit(eqx.Module):
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

    def __str__(self) -> str:
        if self.misfit.ndim > 1:
            return _printing.batch("fits", self.misfit.shape[:-1])
        failed = _printing.outcome(self.result)
        lines = [failed] if failed else []
        if not self.contradictions:
            lines.append("no constraint can contradict the others")
        for own, amount in zip(self.contradictions, self.misfit, strict=True):
            lines.append(f"{own}: off by {float(amount):.4g} {own.unit}")
        return "\n".join(lines)


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
        solved = solve_with_friction(system, formulation, q, v, t)
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
    order = np.argsort(np.sum(np.abs(echelon) > _ZERO, axis=0), kind="stable")
    if not order.size:
        return basis
    orthonormal, factor = np.linalg.qr(echelon[:, order])
    return orthonormal * np.sign(np.diagonal(factor))


def _contradiction(structure: Structure, column: np.ndarray) -> Contradiction:
    rows = structure.geometric_rows[np.abs(column) > _ZERO]
    owners = dict.fromkeys(structure.row_owner[rows].tolist())
    return Contradiction(
        rows=tuple(structure.row_names[row] for row in rows),
        joints=tuple(structure.constraint_names[owner] for owner in owners),
        unit="m" if any(structure.rows[row].quantity == LENGTH for row in rows) else "rad",
    )
