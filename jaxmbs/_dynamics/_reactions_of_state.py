"""Reactions of one state in one call: multipliers first, then what they exert."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from .._checks import listed
from .._custom_types import RealScalarLike, Setting
from .._errors import AnalysisError
from .._formulations import (
    AbstractFormulation,
    Accelerations,
    chosen_formulation,
    ElasticResolution,
)
from .._formulations._elastic_resolution import check_compliances
from .._formulations._minimum_norm import Truncated
from .._formulations.base import solutions_in_words
from .._programs import Compiling, program
from .._reactions import Reactions, reactions_of_multipliers
from .._solution import RESULTS
from .._solvability import (
    AbstractCriterion,
    chosen_criterion,
    redundancy_at_precision,
    RedundancyAtPrecision,
    refuse_at_precision,
    warn_at_precision,
)
from .._solvability._analyze import check_elastic
from .._system import AbstractSystem, takes_state
from ._elastic_theory import limits_left_by_state
from ._friction import contradicting_rows, solve_with_friction
from ._initial import check_state


# What is left of rows that are redundant within a precision, relative to accelerations and to
# that: rows, and the error of one row over another's.
_CONSISTENT = 100.0


@takes_state(decides_rank=True, multipliers="rows")
def reactions(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    t: RealScalarLike = 0.0,
    multipliers: Float[Array, " rows"] | None = None,
    *,
    formulation: Setting[AbstractFormulation | None] = None,
    criterion: Setting[AbstractCriterion | None] = None,
    elastic: Setting[bool | None] = None,
) -> Reactions:
    """Forces and torques of every joint and driver on its bodies at one state, and whether the
    model determines them uniquely.

    The multipliers solve M dv/dt + C^T lambda = F at this state, friction in the joints included,
    unless they are given. The generalized reaction of a constraint X is f_X = C_X^T lambda_X; on a
    body it acts as the wrench -f_X, here moved to the joint's point. Each component of it is a
    combination c^T lambda_X, with N a basis of the left null space of C unique iff c^T N_X = 0; the
    scaling and the threshold are those of `analyze`, whose verdict on the whole joint is repeated
    (Wojtyra & Fraczek 2013, eq. 27; Wojtyra & Pekal, eq. 5). Friction is a force and no part of
    this.

    The joint's point on a body is its marker there, which moves with each body in a sliding joint,
    and for a rolling disk the point of contact. A pure couple (of a gear) has no point.

    Works under `jit` and `vmap`. Numbers are differentiable, verdicts are not. What is not unique
    depends on the formulation and is one of many.

    **Arguments:**

    - `q` (nq,), `v` (nv,), `t` (s): the state; v is zero if left out.
    - `multipliers` (rows,): lambda of M dv/dt + C^T lambda = F, in N and N m for rows of lengths
      and angles, where they are known; found by `formulation` if left out.
    - `formulation`: which of the possible multipliers; default as of `simulate`, with `elastic`
      `ElasticResolution()`.
    - `criterion`: as in `analyze`.
    - `elastic`: verdicts of rigid bodies and compliances together, as in `analyze`. Default: those
      of the formulation, and for given multipliers those of rigid bodies.

    **Returns:** `Reactions`; its numbers are NaN where traced equations had no solution.

    **Raises:** `ValueError` for a state that the constraints do not allow, for multipliers of
    another number of rows or together with a formulation, and where rigid multipliers would get the
    verdicts of elastic parts; `AnalysisError` if the multipliers cannot be found, or no
    accelerations satisfy all constraints.
    """
    structure, criterion = system.structure, chosen_criterion(criterion, system)
    if elastic is not None:
        check_elastic(structure, elastic)
    v = jnp.zeros((structure.nv,), q.dtype) if v is None else v
    t = jnp.asarray(t, q.dtype)
    if multipliers is not None:
        if formulation is not None:
            raise ValueError(
                "multipliers are given, so that there is nothing for formulation to find; leave "
                "one of the two out."
            )
        given = bool(elastic)
        found = reactions_of_multipliers(
            system, q, v, t, multipliers, criterion=criterion, elastic=given
        )
        return _with_limits(found, system, q, v, t)
    chosen = _formulation(system, formulation, elastic)
    inexact = redundancy_at_precision(system, q, v, t, chosen.kept_rows(structure))
    chosen = _within_precision(system, inexact, chosen, formulation)
    check_state(system, q, v, t, "consistent_state gives the nearest state that they allow")
    # Rows that are redundant within the precision are satisfied within that.
    met = system.tolerances.acceleration
    if inexact is not None:
        met += _CONSISTENT * inexact.precision
    found, missed = _solved(system, chosen, q, v, t, met)
    failed = found.result != RESULTS.successful
    if not isinstance(failed, Tracer) and bool(failed):
        raise AnalysisError(f"{RESULTS[found.result]}{_friction_in(found)}")
    if not isinstance(missed, Tracer) and bool(jnp.any(missed)):
        raise AnalysisError(_contradiction(system, np.asarray(missed)))
    failed = failed | jnp.any(missed)
    chosen_multipliers = jnp.where(failed, jnp.nan, found.multipliers)
    # In one program a decomposition of the criterion must not run at the same time as one of the
    # formulation.
    q, chosen_multipliers = lax.optimization_barrier((q, chosen_multipliers))
    given = chosen.elastic if elastic is None else elastic
    loads = reactions_of_multipliers(
        system, q, v, t, chosen_multipliers, criterion=criterion, elastic=given
    )
    return _with_remark(_with_limits(loads, system, q, v, t), found)


def _friction_in(found: Accelerations) -> str:
    """The joints with friction, where that has made it fail."""
    lost = (RESULTS.friction_without_acceleration, RESULTS.friction_did_not_converge)
    if not any(bool(found.result == member) for member in lost):
        return ""
    return f" There is friction in {listed(found.rubbing)}."


def _with_remark(loads: Reactions, found: Accelerations) -> Reactions:
    """With a sentence where friction leaves several accelerations, and so reactions."""
    count = found.solutions
    if count is None or isinstance(count, Tracer) or int(count) < 2:
        return loads
    remark = f"Friction in {listed(found.rubbing)} leaves {solutions_in_words(int(count))}."
    return dataclasses.replace(loads, message=" ".join(filter(None, [loads.message, remark])))


def _with_limits(
    found: Reactions,
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
) -> Reactions:
    """With the elastic bodies that this state takes beyond their theory."""
    message = limits_left_by_state(system, q, v, t, found.multipliers)
    return dataclasses.replace(found, message=message) if message else found


def _formulation(
    system: AbstractSystem, formulation: Any, elastic: bool | None
) -> AbstractFormulation:
    given = ElasticResolution() if formulation is None and elastic else formulation
    chosen = chosen_formulation(given, system.structure)
    check_compliances(chosen, system.structure)
    if elastic and not chosen.elastic:
        raise ValueError(
            "elastic=True gives verdicts of elastic parts, and formulation="
            f"{type(chosen).__name__}() finds multipliers of rigid bodies; leave the formulation "
            "out, or use ElasticResolution()."
        )
    return chosen


def _within_precision(
    system: AbstractSystem,
    inexact: RedundancyAtPrecision | None,
    chosen: AbstractFormulation,
    formulation: AbstractFormulation | None,
) -> AbstractFormulation:
    """The multipliers of least norm of the nearest mechanism that is redundant.

    **Raises:** `ValueError` where that is none of `formulation`, or there is none.
    """
    if inexact is None:
        return chosen
    if formulation is not None or chosen.elastic or system.structure.semidefinite:
        refuse_at_precision(inexact, f"{type(chosen).__name__}()")
    warn_at_precision(inexact, 4)
    return Truncated(inexact.within)


@program(compiling=Compiling.ONCE)
def _solved(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
    met: float,
) -> tuple[Accelerations, Bool[Array, " rows"]]:
    """The solution, with the rows that the accelerations do not satisfy."""
    found = solve_with_friction(system, q, v, t, formulation=formulation)
    equations = system.equations(q, v, t)
    return found, contradicting_rows(system, equations, found.acceleration, met)


def _contradiction(system: AbstractSystem, missed: np.ndarray) -> str:
    structure = system.structure
    owners = dict.fromkeys(int(k) for k in np.asarray(structure.row_owner)[missed])
    names = listed([structure.constraint_names[k] for k in owners])
    return (
        f"no accelerations satisfy what {names} ask for together at this state, so that there are "
        "no reactions; make the motions of drivers agree, leave one of them out, or give a state "
        "at which the mechanism can go on."
    )
