"""The answer: which reactions a rigid-body model determines."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._custom_types import BoolScalar, IntScalar, Scalar
from .._system import Structure
from ._table import format_table


# A gap between kept and dropped pivots below this makes every verdict doubtful.
DOUBTFUL_GAP = 1e3

# So does a kept pivot this small against the first: a redundancy that numbers of seven or eight
# digits, or a tolerance of manufacture, may just have hidden.
DOUBTFUL_MARGIN = 1e-6


class Layout(NamedTuple):
    """Names of what was asked, in the order of the arrays of `Solvability`.

    `pairs`: (constraint, body) for body-wise verdicts; `subset_pairs`: (subset, body).
    """

    structure: Structure
    method: str
    pairs: tuple[tuple[int, int], ...]
    subsets: tuple[tuple[str, ...], ...]
    subset_pairs: tuple[tuple[int, int], ...]
    expressions: tuple[str, ...]


class Solvability(eqx.Module):
    """Verdicts on the reactions of a system at one state (or, batched, at many).

    - `rank`, `redundancy` p, `mobility`, `rank_geometric`, `rank_velocity`.
    - `rank_gap`: last kept over first dropped pivot of the scaled C, infinite if none dropped;
      `margin`: last kept over first pivot.
    - `reaction_measure`, `reaction_unique` (constraints,): of C_X^T lambda_X.
    - `multiplier_measure`, `multiplier_unique` (rows,).
    - `body_measure`, `body_unique` (pairs, 2): resultant force and torque of one constraint on
      one body. `subset_...`: the same of subsets. `combination_...`: of c^T lambda.
    - `null_space` (rows, rows): orthonormal left null space of the SCALED C behind `rank`
      columns of zeros. `row_scale` (rows,), `length` (m): C_scaled = C D / row_scale, with D
      the length for linear columns and 1 for angular ones.

    Everything is invariant under a change of units, frames and order. A measure is the largest
    singular value of the functional times the null space (`qr`, `svd`) or a difference of
    ranks (`rank`); 0 is unique.
    """

    rank: IntScalar
    redundancy: IntScalar
    mobility: IntScalar
    rank_geometric: IntScalar
    rank_velocity: IntScalar
    rank_gap: Scalar
    margin: Scalar
    pivots: Float[Array, " k"]
    length: Scalar
    row_scale: Float[Array, " rows"]
    null_space: Float[Array, "rows rows"]
    reaction_measure: Float[Array, " constraints"]
    reaction_unique: Bool[Array, " constraints"]
    multiplier_measure: Float[Array, " rows"]
    multiplier_unique: Bool[Array, " rows"]
    body_measure: Float[Array, "pairs 2"]
    body_unique: Bool[Array, "pairs 2"]
    subset_measure: Float[Array, " subsets"]
    subset_unique: Bool[Array, " subsets"]
    subset_body_measure: Float[Array, "subset_pairs 2"]
    subset_body_unique: Bool[Array, "subset_pairs 2"]
    combination_measure: Float[Array, " combinations"]
    combination_unique: Bool[Array, " combinations"]
    layout: Layout = eqx.field(static=True)

    @property
    def structure(self) -> Structure:
        """Names of rows, constraints and bodies."""
        return self.layout.structure

    def unique(self, name: str) -> BoolScalar:
        """Is the generalized reaction of the joint or driver of that name unique?"""
        info = self.structure.constraint(name)
        return self.reaction_unique[..., self.structure.constraints.index(info)]

    def multipliers_unique(self, name: str) -> BoolScalar:
        """Is every multiplier of the joint, driver or row of that name unique?"""
        rows = np.array(self.structure.rows_of(name))
        return jnp.all(self.multiplier_unique[..., rows], axis=-1)

    def on_body(self, name: str, body: str) -> Bool[Array, " 2"]:
        """Are the resultant (force, torque) of that joint on that body unique?

        **Raises:** `ValueError` if the joint does not act on the body.
        """
        for k, (constraint, index) in enumerate(self.layout.pairs):
            if (
                self.structure.constraints[constraint].name == name
                and self.structure.bodies[index].name == body
            ):
                return self.body_unique[..., k, :]
        raise ValueError(f"{name!r} does not act on a moving body {body!r}.")

    def doubtful(self) -> BoolScalar:
        """Is the rank decided by a hair: the gap between kept and dropped pivots small, or the
        last kept pivot itself?"""
        return (self.rank_gap < DOUBTFUL_GAP) | (self.margin < DOUBTFUL_MARGIN)

    def doubt(self) -> str:
        """What is doubtful, in one sentence."""
        return (
            f"Doubtful: the last kept pivot is {float(self.rank_gap):.3g} times the first "
            f"dropped one and {float(self.margin):.3g} times the first; the configuration is near "
            "a singular one, or the model's numbers are not exact."
        )

    def __str__(self) -> str:
        if self.rank.ndim:
            return f"Solvability of {self.rank.shape} states (index it to print one)"
        head = [
            f"{self.structure.nv} coordinates, {len(self.structure.rows)} constraint rows, "
            f"rank {int(self.rank)} ({int(self.rank_geometric)} geometric, "
            f"{int(self.rank_velocity)} velocity), redundancy p = {int(self.redundancy)}, "
            f"mobility {int(self.mobility)}",
            "",
        ]
        table = format_table(("joint", "type", "rows", "reaction", "measure"), self.rows())
        notes = []
        if bool(self.doubtful()):
            notes = [
                "",
                self.doubt(),
            ]
        return "\n".join([*head, table, *notes])

    def rows(self) -> list[tuple[str, ...]]:
        """The table's lines: name, type, number of rows, verdict, measure."""
        lines = []
        for i, info in enumerate(self.structure.constraints):
            unique = bool(self.reaction_unique[i])
            verdict = "unique" if unique else "not unique"
            if unique and not bool(self.multipliers_unique(info.name)):
                verdict = "unique (multipliers are not)"
            lines.append(
                (
                    info.name,
                    info.kind,
                    str(info.stop - info.start),
                    verdict,
                    f"{float(self.reaction_measure[i]):.1e}",
                )
            )
        return lines
