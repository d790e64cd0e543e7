"""Formulations by pseudoinverses: multipliers of minimum norm, Udwadia and Kalaba, truncated."""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._custom_types import BoolScalar, Numbers, Setting
from .._limits import EXACT
from .._linalg import (
    cholesky,
    cholesky_solve,
    constrained,
    KKTSystem,
    leading,
    motion_solver,
    ProximalCholesky,
    REGULARISATION,
    unit_rows,
)
from .._linalg._many_states import any_state
from .._linalg._solvers import Pseudoinverse
from .._solution import RESULTS
from .._system import AbstractSystem, Equations, MOST
from ._independent_coordinates import mass_weighted, MassWeighted
from .base import AbstractFormulation, Accelerations, check_mass, outcome


# Entries of C that are this small against the largest of their row are rounding.
_ROUNDING = 1e-14


class UdwadiaKalaba(AbstractFormulation):
    """The explicit equation of motion

        dv/dt = a0 + M^-1/2 (C M^-1/2)^+ (Gamma - C a0),   a0 = M^-1 F

    (Udwadia & Kalaba 1992; Zhao et al. 2018, eq. 36), with multipliers of minimum norm.

    **Arguments:** `semidefinite`: M need only be positive semidefinite, and definite on the null
    space of C: the accelerations are unique exactly if M and C, one over the other, have full
    column rank (Udwadia & Phohomsiri 2006, Proc. R. Soc. A 462:2097). That is checked, and
    `undetermined_accelerations` names what is not determined. No further condition on F is needed:
    with full column rank there is no direction that neither M nor C^T can balance. M and F are
    replaced by M + C^T W C and F + C^T W Gamma with positive W: the solutions stay the same, since
    C dv/dt = Gamma, and the mass matrix becomes positive definite (Udwadia & Schutte 2010). The
    norm of the multipliers is measured with that matrix then.
    """

    word: ClassVar[str] = "udwadia-kalaba"
    semidefinite: bool = eqx.field(static=True)

    def __init__(self, semidefinite: Setting[bool] = False):
        self.semidefinite = _settings.flag(semidefinite, "semidefinite")

    @property
    def label(self) -> str:
        return self.word + (", semidefinite" if self.semidefinite else "")

    def solve(self, equations: Equations) -> Accelerations:
        return self._solved(equations, refined=False)

    def solve_refined(self, equations: Equations) -> Accelerations:
        """`solve`, and once more what it leaves of the equations. In derivatives by the mass of a
        light part the factors of M change as 1 / m, which cancels: the second solve takes away
        what is left of that too."""
        return self._solved(equations, refined=True)

    def _solved(self, equations: Equations, refined: bool) -> Accelerations:
        if self.semidefinite:
            scaled, failure = _augmented(equations), RESULTS.acceleration_not_determined
            failed = ~(scaled.definite & _all_held(equations))
        else:
            scaled, failure = mass_weighted(equations), RESULTS.mass_matrix_not_definite
            failed = ~scaled.definite
        inverse = Pseudoinverse(scaled.matrix)

        def respond(force: Float[Array, " nv"], offset: Float[Array, " rows"]) -> tuple[Any, Any]:
            w = force + inverse.apply(offset - scaled.matrix @ force)
            multipliers = scaled.multipliers(inverse.apply_transposed(force - w))
            return scaled.acceleration(w), multipliers

        acceleration, multipliers = respond(scaled.force, scaled.offset)
        if refined:
            descriptor = equations.descriptor
            balance = equations.force - descriptor.mass(acceleration)
            balance = balance - descriptor.apply_CT(multipliers)
            rate = equations.offset - descriptor.apply_C(acceleration)
            more = respond(scaled.weigh(balance), rate / scaled.row_scale)
            acceleration, multipliers = acceleration + more[0], multipliers + more[1]
        return outcome(acceleration, multipliers, (failed, failure))


def _augmented(equations: Equations) -> MassWeighted:
    mass = equations.descriptor.mass_matrix()
    constraints = equations.descriptor.constraint_matrix()
    metric = jnp.diagonal(equations.descriptor.metric().mass_matrix())
    weighted = effective_mass(metric, constraints)[:, None] * constraints
    return MassWeighted(
        mass + constraints.T @ weighted,
        constraints,
        equations.force + weighted.T @ equations.offset,
        equations.offset,
    )


def _all_held(equations: Equations) -> BoolScalar:
    """Has each velocity mass, or an entry of C, that is more than rounding? Pivots are not
    decisive: they are relative to their columns, which have no units of their own."""
    descriptor = equations.descriptor
    mass = jnp.diagonal(descriptor.mass_matrix())
    # What the metric adds to M where that may be singular has the size of other masses.
    added = jnp.diagonal(descriptor.metric().mass_matrix()) - mass
    entries = jnp.abs(descriptor.constraint_matrix())
    largest = jnp.max(entries, axis=1, initial=0.0)[:, None]
    return jnp.all((mass > _ROUNDING * added) | jnp.any(entries > _ROUNDING * largest, axis=0))


def effective_mass(
    metric: Float[Array, " nv"], constraints: Float[Array, "rows nv"]
) -> Float[Array, " rows"]:
    """The effective mass of each row, by the diagonal of a metric in place of M. Any positive
    number will do, and this one has the right units and size. By the diagonal of M itself it would
    be nearly nothing where M has nearly none in one direction, as a link without mass whose joint
    has the inertia of a drive: rows that such a link shares would then seem to be one."""
    inverse = jnp.where(metric > 0, 1 / jnp.where(metric > 0, metric, 1.0), 0.0)
    felt = constraints**2 @ inverse
    bare = jnp.sum(constraints**2, axis=1)
    compliance = jnp.where(felt > 0, felt, jnp.where(bare > 0, bare, 1.0))
    return 1 / compliance


class Truncated(AbstractFormulation):
    """The equations with C replaced by the nearest matrix of a known rank: the multipliers of
    minimum norm of a mechanism whose redundant constraints contradict each other a little.

    Parts that do not fit each other make dependent rows independent by as much as they are off.
    With its full numerical rank such a C blocks the motion and divides forces by the errors; with
    the rank of C without errors, reactions that are unique there change only by the order of the
    errors. Used for that alone: it has derivatives in F and Gamma, as C is held.

    **Arguments:** `rank`: of C where everything fits.
    """

    word: ClassVar[str] = "truncated"
    rank: int = eqx.field(static=True)

    def solve(self, equations: Equations) -> Accelerations:
        found = _solved(equations, self.rank)
        return outcome(
            found.acceleration,
            found.scaled.multipliers(found.multipliers),
            (~found.scaled.definite, RESULTS.mass_matrix_not_definite),
        )


class ElasticTruncated(AbstractFormulation):
    """`Truncated`, with multipliers that strain what is elastic least (`ElasticResolution`), and
    with the stress of parts that contradict each other.

    **Arguments:** `rank`: as of `Truncated`; `decided`: how many directions of the left null space
    compliances decide where everything fits (others only seem to, by as much as parts are off);
    `residual` (rows,): what is left of Phi where the parts contradict each other least (m, rad),
    zero in velocity rows.
    """

    word: ClassVar[str] = "truncated-elastic"
    rank: int = eqx.field(static=True)
    decided: int = eqx.field(static=True)
    residual: Float[Array, " rows"]

    @property
    def elastic(self) -> bool:
        return True

    def solve(self, equations: Equations) -> Accelerations:
        elasticity = equations.elasticity
        assert elasticity is not None
        found = _solved(equations, self.rank)
        length = found.scaled.row_scale
        columns = elasticity.extended.constraint_matrix()[:, elasticity.velocities :]
        root = columns * jnp.sqrt(elasticity.compliance)[None] / length[:, None]
        gap = (elasticity.gap() + self.residual) / length
        # In the left null space of the nearest matrix of that rank. What compliances do not decide
        # stays at zero.
        null = jnp.eye(length.shape[0], dtype=length.dtype) - found.held @ found.held.T
        u, s, _ = leading(lax.stop_gradient(null @ root), self.decided)
        strain = gap - root @ (root.T @ found.multipliers)
        change = u @ ((u.T @ strain) / s**2)
        return outcome(
            found.acceleration,
            found.scaled.multipliers(found.multipliers + change),
            (~found.scaled.definite, RESULTS.mass_matrix_not_definite),
        )


class _Solved(NamedTuple):
    """In rows of unit length: multipliers of least norm, and what the nearest matrix of the rank
    spans of the rows (rows, rank)."""

    scaled: MassWeighted
    acceleration: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    held: Float[Array, "rows rank"]


def _solved(equations: Equations, rank: int) -> _Solved:
    scaled = mass_weighted(equations)
    u, s, vt = leading(lax.stop_gradient(scaled.matrix), rank)
    gap = (u.T @ (scaled.matrix @ scaled.force - scaled.offset)) / s
    acceleration = scaled.acceleration(scaled.force - vt.T @ gap)
    return _Solved(scaled, acceleration, u @ (gap / s), u)


# The changes of multipliers that need no further refinement, relative, and how often it is tried.
_REFINED = 1e-12
_REFINEMENTS = 8


class MinimumNorm(AbstractFormulation):
    """The multipliers of least weighted square: the default.

        S lambda = C M^-1 F - Gamma,   S = C M^-1 C^T,   dv/dt = M^-1 (F - C^T lambda)

    (the pseudoinverse solution that Wojtyra & Fraczek 2013, section 3.1, name). Among all solutions
    the one with the least sum of d_i lambda_i^2, d_i the diagonal of S, which does not depend on
    units. One Cholesky factor of S + mu diag S with mu = 1e-8 or 1e-9; no dense C is formed.
    Singular values of C M^-1/2 (rows of unit length) below the root of mu are smoothed out, which
    carries a motion through a singular configuration; a state that is this close to one is better
    solved by `UdwadiaKalaba`. Where parts are so light relative to their loads that S loses them
    (masses a hundred thousand times apart), this is `UdwadiaKalaba`, which decomposes C M^-1/2.

    **Arguments:**

    - `weights`: (rows,), positive, in the place of d_i, in the order of the rows. Dense.
    - `clean`: remove the rounding that collects in the null space of S, and carry the derivative of
      non-unique multipliers. Without, multipliers may be off by about 1e-7 there: sufficient where
      only the motion is needed, at half the cost, unless it is differentiated. It means nothing
      with `weights`.
    """

    word: ClassVar[str] = "minimum-norm"
    weights: Float[Array, " rows"] | None
    clean: bool = eqx.field(static=True)

    def __init__(self, weights: Setting[Numbers | None] = None, *, clean: Setting[bool] = True):
        if weights is not None:
            weights = _settings.vector(weights, "weights")
            known = _checks.concrete(weights)
            if known is not None and np.any(known <= 0):
                raise ValueError(
                    f"weights must all be greater than zero, got {known.tolist()}; a small "
                    "weight lets a multiplier become large."
                )
        self.weights = weights
        self.clean = _settings.flag(clean, "clean")

    @property
    def label(self) -> str:
        return self.word + ("" if self.weights is None else ", weighted")

    def motion_only(self, system: AbstractSystem) -> AbstractFormulation:
        rounded = self.weights is None and not system.frictional_joints
        return MinimumNorm(clean=False) if rounded else self

    @property
    def shares_factor(self) -> bool:
        return self.weights is None and not self.clean

    @property
    def inverts_mass(self) -> bool:
        return True

    def solve(self, equations: Equations) -> Accelerations:
        if equations.descriptor.semidefinite:
            check_mass(self, equations.structure)
        if self.weights is None:
            if equations.structure.light:
                return UdwadiaKalaba().solve_refined(equations)
            sparse = _block_sparse if self.clean else _rounded
            return _unless_light(equations, sparse(equations))
        rows = equations.descriptor.shape[0]
        if self.weights.shape != (rows,):
            raise ValueError(
                f"MinimumNorm has {self.weights.shape[0]} weights for {rows} rows; give one "
                f"for each of {', '.join(equations.structure.row_names)}."
            )
        return _weighted(equations, self.weights)


def _unless_light(equations: Equations, found: Accelerations) -> Accelerations:
    """The solution that was found; that of `UdwadiaKalaba` if parts turn out to be light where only
    their numbers tell. Systems that are too large for the latter fail where accuracy was lost."""
    light = equations.light
    if light is None:
        return found

    def either() -> Accelerations:
        if equations.structure.nv > MOST:
            lost = light & _is_lost(equations, found)
            result = RESULTS.where(lost, RESULTS.light_parts_lost, found.result)
            return Accelerations(found.acceleration, found.multipliers, result)
        dense = UdwadiaKalaba().solve_refined(equations)
        return Accelerations(
            jnp.where(light, dense.acceleration, found.acceleration),
            jnp.where(light, dense.multipliers, found.multipliers),
            RESULTS.where(light, dense.result, found.result),
        )

    return lax.cond(any_state(light), either, lambda: found)


def _is_lost(equations: Equations, found: Accelerations) -> BoolScalar:
    """Is more left of C dv/dt = Gamma than rounding explains, in the units of its terms?"""
    descriptor, offset = equations.descriptor, equations.offset
    left = jnp.abs(descriptor.apply_C(found.acceleration) - offset)
    rows = jnp.abs(descriptor.constraint_matrix())
    # What rounds are forces, which accelerate light parts most.
    forces = jnp.abs(equations.force) + rows.T @ jnp.abs(found.multipliers)
    rounded = float(jnp.finfo(left.dtype).eps) * rows @ jnp.abs(descriptor.inverse_mass(forces))
    terms = rows @ jnp.abs(found.acceleration) + jnp.abs(offset)
    return ~jnp.all(left <= EXACT.acceleration * terms + 100 * rounded)


def _block_sparse(equations: Equations) -> Accelerations:
    force, factor = equations.force, equations.factor
    # In rows of unit length the pseudoinverse in the metric of the diagonal is the ordinary one,
    # whose derivative `pseudosolve` implements.
    rows = unit_rows(equations.descriptor)
    if factor is not None:
        factor = eqx.tree_at(lambda f: f.scale, factor, jnp.ones_like(rows.scale))
    system = KKTSystem(rows, ProximalCholesky(regularisation=REGULARISATION), factor)
    multipliers = _least(
        system, system.unconstrained_residual(force, equations.offset / rows.scale)
    )
    return outcome(system.acceleration(force, multipliers), multipliers / rows.scale)


def _rounded(equations: Equations) -> Accelerations:
    """With what rounding leaves in the null space of S, as C^T takes it away."""
    found = constrained(equations.descriptor, equations.force, equations.offset, motion_solver())
    return outcome(*found)


@eqx.filter_custom_jvp
def _least(system: KKTSystem, right: Float[Array, " rows"]) -> Float[Array, " rows"]:
    """S^+ right. Cleaning the null space takes a part 2 (mu / (s + mu))^3 of an eigenvector of S
    with a small eigenvalue s along: 1e-5 for a singular value of C M^-1/2 of 1e-3. It is restored,
    by the same solve."""

    def going(carry: Any) -> Any:
        x, change, previous, count = carry
        done = change <= _REFINED * jnp.max(jnp.abs(x), initial=0.0)
        return ~done & ~(change > 0.5 * previous) & (count <= _REFINEMENTS)

    def step(carry: Any) -> Any:
        x, change, _, count = carry
        missing = system.approximate_multipliers(
            right - system.descriptor.apply_C(system.response(x))
        )
        return x + missing, jnp.max(jnp.abs(missing), initial=0.0), change, count + 1

    infinite = jnp.asarray(jnp.inf, right.dtype)
    return lax.while_loop(going, step, (jnp.zeros_like(right), infinite, infinite, 0))[0]


@_least.def_jvp
def _least_jvp(primals: Any, tangents: Any) -> Any:
    """The derivative at constant rank is that of the solve, implemented in `pseudosolve`."""

    first, change = eqx.filter_jvp(KKTSystem.multipliers, primals, tangents)
    return _least(*primals), jnp.zeros_like(first) if change is None else change


def _weighted(equations: Equations, weights: Float[Array, " rows"]) -> Accelerations:
    """Adds to the minimum-norm mu0 the part of the left null space of J that makes mu^T V mu
    least, with V = D^-1/2 W D^-1/2: the minimum of (mu0 - P z)^T V (mu0 - P z), P the projector
    on that null space. P V P + (1 - P) is positive definite, so no second rank is decided."""
    scaled = mass_weighted(equations)
    inverse = Pseudoinverse(scaled.matrix)
    w = scaled.force + inverse.apply(scaled.offset - scaled.matrix @ scaled.force)
    least = inverse.apply_transposed(scaled.force - w)
    identity = jnp.eye(weights.shape[0], dtype=w.dtype)
    projector = identity - scaled.matrix @ inverse.apply_columns(identity)
    metric = weights / scaled.row_scale**2
    metric = metric / lax.stop_gradient(jnp.max(metric, initial=0.0))
    inside = projector @ (metric[:, None] * projector) + identity - projector
    right = projector @ (metric * least)
    change = projector @ cholesky_solve(cholesky((inside + inside.T) / 2), right)
    return outcome(
        scaled.acceleration(w),
        scaled.multipliers(least - change),
        (~scaled.definite, RESULTS.mass_matrix_not_definite),
    )
