"""The answer: how a mechanism can move, and not to first order alone."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import listed
from .._printing import AbstractAnswer, Column, Description, more, rows_of_last_table, Table
from .._solution import RESULTS
from .._solvability._report import openness
from .._system import Structure


# A count that was not decided.
NO_COUNT = -1

# A body that moves by less than this part of all of a branch's velocities rests. So many are named.
_MOVING, _NAMED = 1e-4, 6


class Branch(AbstractAnswer):
    """Motions that lead away from the configuration.

    - `dimension`: of the set of configurations. `freedoms`: how many velocities are possible on it;
      fewer than the dimension where there are constraints on velocities. `first_order`: how many
      velocities the rows of C allow there, n - rank at configurations of the branch: more than
      `freedoms` where it is shaky all along.
    - `tangent` (nv, dimension): velocities along it at the configuration, orthonormal with lengths
      relative to the characteristic length. Where `is_cone` it has no tangent space there, and
      these are directions that it spans.
    - `one_way`: a cusp. It leads away in one direction alone, along `tangent`, and no motion
      passes through it with a velocity.
    """

    dimension: int
    freedoms: int
    first_order: int
    tangent: Float[Array, "nv dimension"] | np.ndarray
    one_way: bool
    is_cone: bool

    def described(self) -> Description:
        number = f"{self.freedoms} degree{'s' * (self.freedoms != 1)} of freedom"
        shape = ", one way only (a cusp)" * self.one_way + ", a cone" * self.is_cone
        words = f"branch of motion: {number}, {self.first_order} to first order{shape}"
        return Description([words], data=self._data)

    def _data(self) -> dict[str, Any]:
        return {
            "degrees_of_freedom": self.freedoms,
            "first_order": self.first_order,
            "one_way": self.one_way,
            "cone": self.is_cone,
            "tangent": np.asarray(self.tangent).T.tolist(),
        }


class Mobility(AbstractAnswer):
    """The answer of `mobility`.

    - `result`: `RESULTS.configuration_open` where the configuration is not closed; then nothing is
      decided. `residual` (geometric rows,): what is left of Phi, lengths relative to `length` (m).
    - `first_order`: n - rank of C, the `mobility` of `analyze`. `mobility`: the real one, the
      largest number of `freedoms` of a branch; -1 where it was not decided.
    - `branches`: those that meet here, the freest first; none if the mechanism is rigid. Those that
      touch are counted one by one up to `reach`; where their number is not sure, `doubts` says so.
    - `order`: of the highest derivative along curves that was needed; 1 where no geometric row is
      redundant, and all that there are up to `reach` where redundant rows restrict nothing.
      `reach`: conditions up to this order would have been noticed.
    - `distance`: up to which motions were confirmed (characteristic lengths, radians); `left`: what
      was left of the redundant rows there.
    - `redundant`: p of the geometric rows. `restricting`: the joints and drivers whose redundant
      rows take first-order motions away. `forms` (p, k, k): N^T d2Phi/2 on the k first-order
      motions of these rows, `first_order_basis` (nv, k); NaN where they were not found.
    - `doubts`: why it was not decided, or what is not sure.
    """

    result: RESULTS
    residual: Float[Array, " geometric"] | np.ndarray
    first_order: int
    mobility: int
    redundant: int
    order: int
    reach: int
    distance: float
    left: float
    branches: tuple[Branch, ...]
    restricting: tuple[str, ...]
    forms: Float[Array, "p k k"] | np.ndarray
    first_order_basis: Float[Array, "nv k"] | np.ndarray
    doubts: tuple[str, ...]
    length: float
    structure: Structure = eqx.field(static=True)

    @property
    def decided(self) -> bool:
        """Was the mobility found?"""
        return self.mobility != NO_COUNT

    @property
    def doubtful(self) -> bool:
        """Was it not decided, or is it not sure?"""
        return bool(self.doubts)

    @property
    def is_finite(self) -> bool:
        """Is every first-order motion one of a finite motion: one branch, as free as n - rank says,
        here and all along?"""
        return (
            self.decided
            and self.mobility == self.first_order
            and len(self.branches) <= 1
            and all(branch.first_order == branch.freedoms for branch in self.branches)
        )

    @property
    def is_shaky(self) -> bool:
        """Does the mechanism move less than it seems to, to first order?"""
        return self.decided and self.mobility < self.first_order

    def headline(self) -> str:
        """First-order and real mobility, in a sentence."""
        if not self.decided:
            return (
                f"First-order mobility {self.first_order}; the real one was not decided: "
                f"{self.doubts[0]}."
            )
        if not self.is_shaky:
            return f"Real mobility {self.mobility}, as to first order."
        return f"First-order mobility {self.first_order}, real mobility {self.mobility}."

    rows = rows_of_last_table

    def described(self) -> Description:
        tables = [self._table()] if self.branches else []
        return Description([self.headline()], tables, self.sentences(), self._data)

    def _table(self) -> Table:
        return Table(
            [
                Column("branch", [str(k + 1) for k in range(len(self.branches))]),
                Column("degrees of freedom", [str(own.freedoms) for own in self.branches]),
                Column("to first order", [str(own.first_order) for own in self.branches]),
                Column("moving bodies", [self._motion(own) for own in self.branches]),
            ]
        )

    def _data(self) -> dict[str, Any]:
        """The JSON document; undecided values are null."""
        return {
            "mobility": self.mobility if self.decided else None,
            "first_order": self.first_order,
            "order": self.order if self.decided else None,
            "shaky": self.is_shaky if self.decided else None,
            "branches": [own._data() for own in self.branches],
            "doubts": list(self.doubts),
        }

    def sentences(self) -> list[str]:
        """Remarks below the table; empty ones are left out."""
        said = [self._branches(), self._order(), self._shaky_along(), self._velocity_rows()]
        if bool(self.result == RESULTS.configuration_open):
            said.append(
                openness(self.structure, jnp.asarray(self.length), jnp.asarray(self.residual))
            )
        elif self.doubts:
            said.append(f"Doubtful: {'; '.join(self.doubts)}.")
        return [sentence for sentence in said if sentence]

    def _motion(self, branch: Branch) -> str:
        moving = [
            body.name
            for body in self.structure.bodies
            if _part(branch, body.columns, self._unit) > _MOVING * _part(branch, ..., self._unit)
        ]
        who = ", ".join(moving[:_NAMED])
        way = " (one way only: a cusp)" if branch.one_way else ""
        shape = " (a cone: no tangent space here)" if branch.is_cone else ""
        return f"{who}{more(moving, _NAMED)}{way}{shape}"

    @property
    def _unit(self) -> np.ndarray:
        return np.asarray(self.structure.column_scale(self.length))

    def _branches(self) -> str:
        if not self.decided:
            return ""
        count = len(self.branches)
        if count == 0:
            if self.first_order == 0:
                return "No motion is possible."
            return (
                f"Shaky: the constraints allow {_motions(self.first_order)} to first order, and no "
                "finite one. Joint clearance or elasticity will show as large displacements across."
            )
        if count == 1:
            return ""
        words = ", ".join(str(branch.freedoms) for branch in self.branches)
        return (
            f"Singular configuration: {count} branches of motion meet here, with {words} degrees "
            "of freedom; which one a motion takes is not determined by the constraints."
        )

    def _order(self) -> str:
        if not self.decided:
            return ""
        if self.redundant == 0:
            return "No geometric row is redundant here: first order decides."
        if self.is_finite and self.order >= self.reach:
            return (
                f"Redundant rows restrict nothing up to order {self.reach}: they hold to "
                f"{self.left:.1e} at a distance of {self.distance:.2g} (characteristic lengths, "
                "rad)."
            )
        confirmed = (
            f" Motions were confirmed to {self.left:.1e} up to a distance of {self.distance:.2g} "
            "(characteristic lengths, rad)."
        )
        if self.order == 1:
            return "First order decides."
        rows = f"Decided at order {self.order}, by the redundant rows of {self._restricting()}."
        return rows + confirmed * bool(self.branches)

    def _restricting(self) -> str:
        return listed(self.restricting[:_NAMED]) + more(self.restricting, _NAMED)

    def _shaky_along(self) -> str:
        named = [
            str(k) for k, own in enumerate(self.branches, start=1) if own.first_order > own.freedoms
        ]
        if not named:
            return ""
        where = "" if len(self.branches) == 1 else f" of branch {', '.join(named)}"
        return (
            f"Shaky all along{where}: the rank is too small at every configuration, so that "
            "comparing it with neighbours shows nothing."
        )

    def _velocity_rows(self) -> str:
        if all(own.freedoms == own.dimension for own in self.branches):
            return ""
        words = ", ".join(str(own.dimension) for own in self.branches)
        return (
            f"Constraints on velocities restrict what moves on each branch, of dimension {words}; "
            "whether they can be integrated holonomy tells."
        )


def _part(branch: Branch, columns: Any, unit: np.ndarray) -> float:
    own = np.asarray(branch.tangent) / unit[:, None]
    part = own[list(columns)] if columns is not ... else own
    return float(np.linalg.norm(part))


def _motions(count: int) -> str:
    return "one motion" if count == 1 else f"{count} motions"
