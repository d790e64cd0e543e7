from typing import Annotated

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _printing
from .._custom_types import IntScalar, RealScalarLike, Scalar
from .._dynamics import solve_with_friction
from .._formulations import chosen_formulation
from .._solution import RESULTS
from .._solvability import analyze
from .._solvability._expression import generalized_reactions
from .._system import AbstractSystem, Structure, takes_state
from .._verdict import Verdict


class Workspace(eqx.Module):
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

    def __str__(self) -> str:
        if self.rank.ndim:
            return _printing.batch("states", self.rank.shape)
        failed = _printing.outcome(self.result)
        if not bool(np.all(self.reaction_unique.decided)):
            return f"Nothing was decided. {failed}".strip()
        named = zip(self.structure.constraint_names, self.reaction_unique.unique, strict=True)
        lines = [
            f"rank {int(self.rank)}, redundancy p = {int(self.redundancy)}; largest unique force "
            f"{float(self.force):.6g} N",
            f"unique: {', '.join(name for name, unique in named if bool(unique)) or 'none'}",
        ]
        left_out = [body.name for body in self.structure.bodies if not body.force]
        if left_out:
            lines.append(f"forces on {', '.join(left_out)} are left out: no frame of their own")
        return "\n".join([*([failed] if failed else []), *lines])


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
    solved = solve_with_friction(system, chosen_formulation(None, system.structure), q, v, t)
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
