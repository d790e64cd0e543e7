"""The generalized-alpha method for the index-3 equations: its scheme, its Newton iteration, and
the solver.
"""

import functools
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .. import _settings
from .._constraints._primitives import COUPLING
from .._custom_types import BoolScalar, IntScalar, Numbers, Scalar, Setting
from .._kinematics import position_residual
from .._limits import EXACT
from .._linalg import AbstractKKTMatrices, REGULARISATION
from .._programs import program
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem
from ._projection import nearly_projected, project_velocity
from ._runge_kutta import accelerations_at
from ._state_evaluation import Packed, split


# --------------------------------------------------------------------------------------------------
# The derivative of the forces along the coordinates and velocities, where it is not zero.
#
# Forces act between few bodies, so that most of the matrix is zero. Columns that have no row in
# common are computed by one push forward: their sum is that of both, and each entry is read off
# where it can only be that of one (Curtis, Powell & Reid 1974, J. Inst. Maths Applics 13).
# --------------------------------------------------------------------------------------------------


class Colouring(NamedTuple):
    """`seeds` (colours, n): which columns are computed together. `colours` (n,): of each column.
    `entries` (n, n): what may not be zero."""

    seeds: Float[np.ndarray, "colours n"]
    colours: Int[np.ndarray, " n"]
    entries: Bool[np.ndarray, "n n"]


@functools.lru_cache
def colouring(sets: tuple[tuple[int, ...], ...], size: int) -> Colouring:
    """The colouring of a matrix whose rows and columns depend on each other within these sets
    alone. Each column has the first colour that no column before it has with which it shares a
    row."""
    entries = np.zeros((size, size), dtype=bool)
    for own in sets:
        entries[np.ix_(own, own)] = True
    meets = entries.T.astype(int) @ entries.astype(int) > 0
    colours = np.zeros(size, dtype=int)
    for column in range(size):
        taken = set(colours[:column][meets[column, :column]].tolist())
        colours[column] = next(k for k in range(size) if k not in taken)
    seeds = np.arange(colours.max(initial=-1) + 1)[:, None] == colours[None, :]
    return Colouring(seeds.astype(float), colours, entries)


def coloured_jacobian(
    function: Callable[[Float[Array, " n"]], Float[Array, " n"]],
    x: Float[Array, " n"],
    found: Colouring,
) -> Float[Array, "n n"]:
    """The derivative of a function whose matrix has such entries."""

    def push(seed: Float[Array, " n"]) -> Float[Array, " n"]:
        return jax.jvp(function, (x,), (seed,))[1]

    # One after the other: batched they took twice as long.
    sums = lax.map(push, jnp.asarray(found.seeds, x.dtype))
    return jnp.where(found.entries, sums[found.colours].T, 0.0)


# --------------------------------------------------------------------------------------------------
# The equations of one step of the generalized-alpha scheme.
#
# For M dv/dt + C^T lambda = F, Phi = 0 and velocity rows g = 0, a step of length h from q, v, dv/dt
# and the auxiliary acceleration a finds the increment d along the velocities and the multipliers
# lambda at its end, marked by 1 (Arnold & Bruels 2007, eqs. 3-5; with a retraction Bruels, Cardona
# & Arnold 2012, eqs. 21-23):
#
#     q1 = retract(q, d),           d  = h v + h^2 ((1/2 - beta) a + beta a1)
#                                   v1 = v + h ((1 - gamma) a + gamma a1)
#     (1 - alpha_m) a1 + alpha_m a = (1 - alpha_f) dv/dt1 + alpha_f dv/dt
#     M1 dv/dt1 + C1^T lambda = F1,    Phi1 = 0,    g1 = 0
#
# The unknowns are d and beta h^2 lambda, the dynamic equations are multiplied by beta h^2 and the
# velocity rows by beta h / gamma: so all entries of the matrix of Newton's method remain bounded
# when h goes to zero, M and C (Bottasso, Bauchau & Cardona 2007, SIAM J. Sci. Comput. 29).
# --------------------------------------------------------------------------------------------------


class Coefficients(NamedTuple):
    """Coefficients of the scheme."""

    alpha_m: Scalar
    alpha_f: Scalar
    gamma: Scalar
    beta: Scalar


def coefficients(spectral_radius: Scalar) -> Coefficients:
    """The second-order coefficients whose spectral radius is this for infinite frequencies, and
    least for lower ones (Chung & Hulbert 1993, J. Appl. Mech. 60, eqs. 17, 19, 25)."""
    alpha_m = (2 * spectral_radius - 1) / (spectral_radius + 1)
    alpha_f = spectral_radius / (spectral_radius + 1)
    gamma = 0.5 + alpha_f - alpha_m
    return Coefficients(alpha_m, alpha_f, gamma, (gamma + 0.5) ** 2 / 4)


class Beginning(eqx.Module):
    """Beginning and length of a step: `q`, `v`, dv/dt (`acceleration`), a (`auxiliary`),
    the time `t1` (s) of its end and its length `h` (s)."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    acceleration: Float[Array, " nv"]
    auxiliary: Float[Array, " nv"]
    t1: Scalar
    h: Scalar
    scheme: Coefficients

    @property
    def force_scale(self) -> Scalar:
        """beta h^2, by which forces are multiplied."""
        return self.scheme.beta * self.h**2

    def increment(self, acceleration: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """d for dv/dt at the end."""
        c = self.scheme
        mean = (1 - c.alpha_f) * acceleration + c.alpha_f * self.acceleration
        following = (mean - c.alpha_m * self.auxiliary) / (1 - c.alpha_m)
        pushed = (0.5 - c.beta) * self.auxiliary + c.beta * following
        return self.h * self.v + self.h**2 * pushed


class End(NamedTuple):
    """End of a step after an increment: as `Beginning`."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    acceleration: Float[Array, " nv"]
    auxiliary: Float[Array, " nv"]


def end_of(system: AbstractSystem, start: Beginning, increment: Float[Array, " nv"]) -> End:
    """The end of the step with this increment."""
    c, h = start.scheme, start.h
    before = h * start.v + (0.5 - c.beta) * h**2 * start.auxiliary
    auxiliary = (increment - before) / start.force_scale
    velocity = start.v + h * ((1 - c.gamma) * start.auxiliary + c.gamma * auxiliary)
    mean = (1 - c.alpha_m) * auxiliary + c.alpha_m * start.auxiliary
    acceleration = (mean - c.alpha_f * start.acceleration) / (1 - c.alpha_f)
    return End(system.retract(start.q, increment), velocity, acceleration, auxiliary)


class Residual(NamedTuple):
    """Residual of the scaled equations: of the dynamic ones (nv,) and of the rows (rows,)."""

    dynamic: Float[Array, " nv"]
    rows: Float[Array, " rows"]


def residual(
    system: AbstractSystem,
    start: Beginning,
    increment: Float[Array, " nv"],
    multipliers: Float[Array, " rows"],
) -> Residual:
    """`multipliers`: scaled, beta h^2 lambda."""
    end, t = end_of(system, start, increment), start.t1
    geometric = system.structure.geometric

    def closure(step: Float[Array, " nv"]) -> Float[Array, " rows"]:
        return position_residual(system, system.retract(end.q, step), t)

    # C^T lambda is the gradient of lambda^T Phi: blocks of C, which are more, are not needed.
    rows, pull = jax.vjp(closure, jnp.zeros_like(increment))
    reaction = pull(multipliers)[0]
    if not geometric.all():
        rate, pull = jax.vjp(lambda v: system.velocity_residual(end.q, v, t), end.v)
        reaction = reaction + pull(jnp.where(geometric, 0.0, multipliers))[0]
        turned = start.scheme.beta * start.h / start.scheme.gamma
        rows = jnp.where(geometric, rows, turned * rate)
    mass = system.descriptor(end.q, end.v, t).mass(end.acceleration)
    inertia = mass - system.force(end.q, end.v, t)
    return Residual(start.force_scale * inertia + reaction, rows)


# --------------------------------------------------------------------------------------------------
# Newton's method for the equations of a step of the generalized-alpha scheme.
#
# Its matrix is
#
#     [ A   C^T     ]        A  = d(dynamic equations)/d(increment),
#     [ C'  -mu D   ]        C' = d(rows)/d(increment),
#
# with D the diagonal of S = C M^-1 C^T. As the residual is that of the exact equations, mu makes an
# iteration of Newton's method a proximal step: where rows depend on each other the matrix stays
# regular, the increment is the same, and the multipliers change by what is least.
#
# A matrix and its inverse are kept over iterations and steps, as long as that is cheaper: a new one
# costs as much as some dozens of iterations. With an old one the iteration converges linearly, at a
# measured rate, from which convergence is decided.
#
# The derivative of the solution is that of the equations at it (implicit function theorem), with a
# matrix of its own. Nothing is unrolled.
# --------------------------------------------------------------------------------------------------


# A matrix is made anew where a step converges more slowly than this, ...
_SLOW = 0.7

# ... where the length of the step has changed by this part of it, ...
_OTHER_LENGTH = 0.2

# ... and where steps have taken so many iterations more than with a fresh one: about what it costs.
_WORTH = 30

# The rate of convergence that is assumed after one iteration. (That of the step before is none: it
# grew a thousandfold within three steps, as a mechanism turned away from where a matrix was made.)
_UNKNOWN_RATE = 0.5

# Rounding of coordinates, relative to them: smaller changes mean nothing.
_ROUNDING = 1e-14

# A change that is as small as this, relative to coordinates, and does not shrink with a fresh
# matrix is rounding that the constraints or stiff forces amplify.
_AMPLIFIED = 1e-10

# Masses (and inertias, of the size of the mechanism) that are this many times apart are usual;
# where they are further apart mu is less, down to this part of it, where rounding of an inverse is.
_USUAL, _LEAST = 1e4, 1e-5

# Proximal steps of the solve for a derivative.
_REFINEMENTS = 5


class Matrix(eqx.Module):
    """An inverse of Newton's matrix, and what is known of it: `length` (s) of the step for which it
    was made, negative where a new one is wanted; `fewest` iterations of a step, and how many `more`
    all steps since have taken. `exact`: does a matrix of all terms have to be made?"""

    inverse: Float[Array, "n n"]
    length: Scalar
    fewest: IntScalar
    more: IntScalar
    exact: BoolScalar


class Guess(eqx.Module):
    """Values of the unknowns: `increment` and scaled `multipliers`. `unit` (nv,): the unit of each
    coordinate, `scale` (rows,) of each row."""

    increment: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    unit: Float[Array, " nv"]
    scale: Float[Array, " rows"]


class Limits(eqx.Module):
    """When Newton's method ends: `rtol` of accelerations; `iterations` at most."""

    rtol: Scalar
    iterations: int = eqx.field(static=True)


class Solved(NamedTuple):
    """The unknowns at the end of a step. `converged`: are they a solution?"""

    increment: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    matrix: Matrix
    converged: BoolScalar


class _Iterate(NamedTuple):
    """`change`: of the last iteration; `rate`: the largest of this step; `count` of iterations;
    `renew`: is a new matrix wanted, and an `exact` one? `fresh`: was one made in this step?"""

    unknowns: Float[Array, " n"]
    inverse: Array
    change: Scalar
    rate: Scalar
    count: IntScalar
    renew: BoolScalar
    exact: BoolScalar
    fresh: BoolScalar
    going: BoolScalar
    met: BoolScalar


def no_matrix(system: AbstractSystem, dtype: Any) -> Matrix:
    """The matrix before the first step."""
    size = system.structure.nv + len(system.structure.rows)
    none = jnp.asarray(0)
    return Matrix(
        jnp.zeros((size, size), dtype), -jnp.ones((), dtype), none, none, jnp.asarray(False)
    )


@eqx.filter_custom_jvp
def solve_step(
    system: AbstractSystem, start: Beginning, guess: Guess, matrix: Matrix, limits: Limits
) -> Solved:
    """The increment and the multipliers of a step, Newton's method from a guess with a matrix that
    was used before."""
    return _solve_step(system, start, guess, matrix, limits)


@program
def _solve_step(
    system: AbstractSystem, start: Beginning, guess: Guess, matrix: Matrix, limits: Limits
) -> Solved:
    first = jnp.concatenate([guess.increment, guess.multipliers])
    dtype = first.dtype
    renew = jnp.abs(start.h - matrix.length) > _OTHER_LENGTH * matrix.length
    beginning = _Iterate(
        first,
        matrix.inverse,
        jnp.asarray(jnp.inf, dtype),
        jnp.zeros((), dtype),
        jnp.asarray(0),
        renew,
        matrix.exact,
        jnp.asarray(False),
        jnp.asarray(True),
        jnp.asarray(False),
    )
    turn = functools.partial(_turn, system, start, guess, limits)
    # The matrix is carried by a loop of its own: to hand it on at each iteration would cost more
    # than the product with it.
    end = lax.while_loop(lambda now: now.going, turn, beginning)
    kept = _kept(start, matrix, end)
    increment, multipliers = _parts(system, end.unknowns)
    return Solved(increment, multipliers, kept, end.met)


def _kept(start: Beginning, matrix: Matrix, end: _Iterate) -> Matrix:
    """The matrix that the next step starts with."""
    fewest = jnp.where(end.fresh, end.count, jnp.minimum(matrix.fewest, end.count))
    more = jnp.where(end.fresh, 0, matrix.more + end.count - fewest)
    length = jnp.where(end.fresh, start.h, matrix.length)
    length = jnp.where((more > _WORTH) | ~end.met, -1.0, length)
    return Matrix(end.inverse, length, fewest, more, end.exact)


def _turn(
    system: AbstractSystem,
    start: Beginning,
    guess: Guess,
    limits: Limits,
    now: _Iterate,
) -> _Iterate:
    """Iterations with one matrix, a new one if that is wanted."""
    inverse = now.inverse
    for make, wanted in ((_inverse, ~now.exact), (_exact_inverse, now.exact)):
        # A loop of one turn at most: in a batch a condition would make the matrix at each step.
        _, inverse = lax.while_loop(
            lambda carry: carry[0],
            lambda _, make=make: (jnp.asarray(False), make(system, start, now.unknowns)),
            (now.renew & wanted, inverse),
        )
    fresh = now.fresh | now.renew
    iterate = functools.partial(_iterate, system, start, guess, limits, inverse)
    light = now._replace(inverse=jnp.zeros(()), renew=jnp.asarray(False), fresh=fresh)
    end = lax.while_loop(lambda x: x.going & ~x.renew, iterate, light)
    return end._replace(inverse=inverse)


def _iterate(
    system: AbstractSystem,
    start: Beginning,
    guess: Guess,
    limits: Limits,
    inverse: Float[Array, "n n"],
    now: _Iterate,
) -> _Iterate:
    """One iteration."""
    increment, multipliers = _parts(system, now.unknowns)
    left = residual(system, start, increment, multipliers)
    step = inverse @ jnp.concatenate(left)
    unknowns = now.unknowns - step
    change = jnp.max(jnp.abs(_parts(system, step)[0] / guess.unit), initial=0.0)
    closure = jnp.max(jnp.abs(left.rows / guess.scale), initial=0.0)

    size = 1 + jnp.max(jnp.abs(start.q), initial=0.0) / jnp.min(guess.unit, initial=1.0)
    pushed = 1 + jnp.max(jnp.abs(start.auxiliary / guess.unit), initial=0.0)
    again = jnp.isfinite(now.change)
    ratio = jnp.where(again, change / jnp.where(now.change > 0, now.change, 1.0), 0.0)
    means = again & (change > 100 * _ROUNDING * size)
    rate = jnp.where(means, jnp.maximum(now.rate, ratio), now.rate)
    expected = jnp.where(rate > 0, jnp.minimum(rate, 0.99), _UNKNOWN_RATE)
    missing = change * expected / (1 - expected)
    fresh = now.fresh
    amplified = fresh & again & (change > _SLOW * now.change) & (change <= _AMPLIFIED * size)
    allowed, rounding = limits.rtol * start.force_scale * pushed, _ROUNDING * size
    met = ((missing <= allowed) | (change <= rounding) | amplified) & (closure <= EXACT.closed)

    finite = jnp.isfinite(change) & jnp.all(jnp.isfinite(unknowns))
    # Or not there within the iterations that are left (Hairer & Wanner 1996, eq. IV.8.11).
    end = missing * expected ** (limits.iterations - now.count - 1)
    late = again & ~fresh & (end > jnp.maximum(allowed, rounding))
    slow = ~finite | (ratio > _SLOW) | late
    # What an old matrix led astray begins again with a new one, and what one led astray that leaves
    # out how reactions turn (light parts under heavy loads) with one of all terms.
    astray = (~finite | (ratio > 1)) & ~(fresh & now.exact)
    first = jnp.concatenate([guess.increment, guess.multipliers])
    count = now.count + 1
    return _Iterate(
        jnp.where(astray, first, unknowns),
        now.inverse,
        jnp.where(astray | slow, jnp.inf, change),
        jnp.where(slow, 0.0, rate),
        count,
        ~met & slow,
        now.exact | (~met & slow & fresh),
        fresh,
        ~met & (finite | astray) & (count < limits.iterations),
        met & finite,
    )


def _parts(
    system: AbstractSystem, unknowns: Float[Array, " n"]
) -> tuple[Float[Array, " nv"], Float[Array, " rows"]]:
    return unknowns[: system.structure.nv], unknowns[system.structure.nv :]


class _Linearised(NamedTuple):
    """Newton's `matrix` without mu, the `units` (n,) that make it of size one, and mu (`shift`)."""

    matrix: Float[Array, "n n"]
    units: Float[Array, " n"]
    shift: Scalar


def _linearised(
    system: AbstractSystem, start: Beginning, unknowns: Float[Array, " n"]
) -> _Linearised:
    increment, multipliers = _parts(system, unknowns)

    def along(increment: Float[Array, " nv"]) -> Float[Array, " n"]:
        return jnp.concatenate(residual(system, start, increment, multipliers))

    end = end_of(system, start, increment)
    descriptor = system.descriptor(end.q, end.v, start.t1)
    rows = len(system.structure.rows)
    across = jnp.concatenate([descriptor.constraint_matrix().T, jnp.zeros((rows, rows))])
    columns = lax.map(
        lambda seed: jax.jvp(along, (increment,), (seed,))[1],
        jnp.eye(len(increment), dtype=increment.dtype),
    )
    matrix = jnp.concatenate([columns.T, across], axis=1)
    return _Linearised(matrix, *_units(system, descriptor))


def _units(
    system: AbstractSystem, descriptor: AbstractKKTMatrices
) -> tuple[Float[Array, " n"], Scalar]:
    """Units of increments and scaled multipliers, in which M, as a metric, and S have unit
    diagonals; and mu, which must stay below the eigenvalues of S: these are as small as the ratio
    of masses."""
    masses = jnp.diagonal(descriptor.metric().mass_matrix())
    units = 1 / jnp.concatenate([jnp.sqrt(masses), descriptor.row_scale()])
    sizes = masses * system.column_scale() ** 2
    ratio = jnp.min(sizes, initial=jnp.inf) / jnp.max(sizes, initial=0.0)
    return units, REGULARISATION * jnp.clip(_USUAL * ratio, _LEAST, 1.0)


def _inverse(
    system: AbstractSystem, start: Beginning, unknowns: Float[Array, " n"]
) -> Float[Array, "n n"]:
    """The inverse of an approximate matrix without terms that are small or vary slowly: of the
    dynamic equations it contains mass, and stiffness and damping of the forces alone; of the rows,
    C."""
    increment, _ = _parts(system, unknowns)
    end, scheme = end_of(system, start, increment), start.scheme
    turned = scheme.gamma / (scheme.beta * start.h)

    def force(increment: Float[Array, " nv"]) -> Float[Array, " nv"]:
        q, v = system.retract(end.q, increment), end.v + turned * increment
        return system.force(q, v, start.t1)

    pattern = colouring(system.force_couplings(), system.structure.nv)
    slopes = coloured_jacobian(force, jnp.zeros_like(increment), pattern)
    descriptor = system.descriptor(end.q, end.v, start.t1)
    mass, rows = descriptor.mass_matrix(), descriptor.constraint_matrix()
    inertia = (1 - scheme.alpha_m) / (1 - scheme.alpha_f) * mass
    upper = jnp.concatenate([inertia - start.force_scale * slopes, rows.T], axis=1)
    lower = jnp.concatenate([rows, jnp.zeros((len(rows), len(rows)))], axis=1)
    matrix = jnp.concatenate([upper, lower])
    return _regular_inverse(system, _Linearised(matrix, *_units(system, descriptor)))


def _exact_inverse(
    system: AbstractSystem, start: Beginning, unknowns: Float[Array, " n"]
) -> Float[Array, "n n"]:
    """The inverse of the matrix of all terms, several times as expensive: reactions turn with the
    bodies, which matters where stiff forces make them large on the way to the solution."""
    return _regular_inverse(system, _linearised(system, start, unknowns))


def _regular_inverse(system: AbstractSystem, found: _Linearised) -> Float[Array, "n n"]:
    """The inverse of the matrix with mu."""
    of_rows = np.arange(found.units.shape[0]) >= system.structure.nv
    both = found.units[:, None] * found.units[None, :]
    damped = found.matrix * both - jnp.diag(found.shift * of_rows)
    return jnp.linalg.inv(damped) * both


@solve_step.def_jvp
def _solve_step_jvp(primals: Any, tangents: Any) -> Any:
    solved = solve_step(*primals)
    system, start, *_ = primals
    still = stop_gradient((solved.increment, solved.multipliers))

    def left(system: AbstractSystem, start: Beginning) -> Float[Array, " n"]:
        return jnp.concatenate(residual(system, start, *still))

    found = _linearised(system, start, jnp.concatenate([solved.increment, solved.multipliers]))
    inverse = stop_gradient(_regular_inverse(system, found))
    none, change = eqx.filter_jvp(left, (system, start), tangents[:2])
    right = jnp.zeros_like(none) if change is None else -change

    def refined(
        inverse: Float[Array, "n n"], product: Any, right: Float[Array, " n"]
    ) -> Float[Array, " n"]:
        def step(_: Any, x: Float[Array, " n"]) -> Float[Array, " n"]:
            return x + inverse @ (right - product(x))

        return lax.fori_loop(0, _REFINEMENTS, step, jnp.zeros_like(right))

    moved = lax.custom_linear_solve(
        lambda x: found.matrix @ x,
        right,
        functools.partial(refined, inverse),
        functools.partial(refined, inverse.T),
    )
    zeros = jax.tree.map(lambda x: jnp.zeros_like(x) if eqx.is_inexact_array(x) else None, solved)
    return solved, zeros._replace(increment=moved[: system.structure.nv])


# A coupling has jumped where a step ends so far (characteristic lengths, rad) from where it leads,
# and by more than half of its way.
_LEAP = 0.1


def _jumps(
    system: AbstractSystem, solved: Solved, guess: Guess, unit: Float[Array, " nv"]
) -> BoolScalar:
    """Does the step lead over the jump of a coupling of angles? (Without couplings a step may end
    anywhere: one longer than a period of a vibration does.)"""
    if not any(own.kind == COUPLING for own in system.structure.constraints):
        return jnp.asarray(False)
    move, far = (
        jnp.max(jnp.abs(x) / unit, initial=0.0)
        for x in (solved.increment, solved.increment - guess.increment)
    )
    return (far > _LEAP) & (far > move / 2)


class AlphaState(eqx.Module):
    """State that the method carries from step to step: dv/dt at the end of the last one, and of the
    one `before` it; a (`auxiliary`), lambda, and the matrix of Newton's method; units of
    coordinates and rows."""

    acceleration: Float[Array, " nv"]
    before: Float[Array, " nv"]
    auxiliary: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    matrix: Matrix
    unit: Float[Array, " nv"]
    scale: Float[Array, " rows"]


class GeneralizedAlpha(dfx.AbstractSolver[AlphaState]):
    """The generalized-alpha method, for stiff forces and elastic bodies: implicit, of second order,
    with steps of one length.

    In each step M dv/dt + C^T lambda = F and Phi = 0 (index 3; velocity rows at velocity level) are
    solved together at its end, by Newton's method with a matrix that is kept over steps. Motions
    whose frequency w is high, h w >> 1, are not followed but damped: by the factor
    `spectral_radius` a step in the limit. So steps are as long as the slow motion allows.

    Positions satisfy the constraints by the method itself; its velocities satisfy C v + b = 0 to
    the order of h^2 only, and are not projected. A state that is saved has them projected, and
    accelerations and reactions are those of the formulation there: with second order too. (The
    force of a stiff damper has the error of the velocity times its coefficient.) States within a
    step lie on cubic Hermite polynomials through both ends. Give it to `simulate(...,
    solver=GeneralizedAlpha(step=1e-3))`; it has no error estimate, hence no adaptive step sizes:
    compare runs with steps h and h/2.

    **Arguments:**

    - `spectral_radius`: 0 (high frequencies vanish in one step) to 1 (nothing is damped). It must
      be less than 1 where there are constraints, whose multipliers are undamped otherwise.
    - `step`: length of the steps (s), at most; they divide the duration evenly. Without it give
      `controller` and `first_step` of `simulate`.
    - `rtol`: of the accelerations (relative to the largest, or to 1 rad or a characteristic length
      a second squared) when Newton's method ends a step.
    - `max_iterations`: of Newton's method in a step, after which the run fails.

    **Raises:** `TypeError` or `ValueError` for a setting of another type or out of its range.

    Chung & Hulbert 1993, J. Appl. Mech. 60; with constraints Arnold & Bruels 2007, Multibody Syst.
    Dyn. 18, eqs. 3-5; with rotations Bruels, Cardona & Arnold 2012, Mech. Mach. Theory 48.
    """

    spectral_radius: Scalar
    step_length: Scalar | None
    rtol: Scalar
    max_iterations: int = eqx.field(static=True)

    term_structure: ClassVar = dfx.AbstractTerm
    interpolation_cls: ClassVar[Callable[..., dfx.AbstractLocalInterpolation]] = (
        dfx.ThirdOrderHermitePolynomialInterpolation
    )

    def __init__(
        self,
        spectral_radius: Setting[Numbers] = 0.8,
        step: Setting[Numbers | None] = None,
        *,
        rtol: Setting[Numbers] = 1e-6,
        max_iterations: Setting[int] = 30,
    ):
        self.spectral_radius = _settings.between(
            spectral_radius, "spectral_radius", least=0, most=1, advice="0.8 is usual"
        )
        self.step_length = None
        if step is not None:
            self.step_length = _settings.between(step, "step", above=0, advice="it is in s")
        self.rtol = _settings.between(
            rtol, "rtol", least=_settings.LEAST_TOLERANCE, below=1, advice="1e-6 is usual"
        )
        self.max_iterations = _settings.whole_number(max_iterations, "max_iterations", least=2)

    def order(self, terms: Any) -> int:
        del terms
        return 2

    def func(self, terms: Any, t0: Any, y0: Float[Array, " state"], args: Packed) -> Any:
        return terms.vf(t0, y0, args)

    def init(
        self, terms: Any, t0: Any, t1: Any, y0: Float[Array, " state"], args: Packed
    ) -> AlphaState:
        del terms, t1
        if y0.dtype != jnp.float64:
            raise ValueError(
                "GeneralizedAlpha needs double precision, as steps are solved to some millionths "
                'of accelerations; set jax.config.update("jax_enable_x64", True).'
            )
        given = args.opened()
        system = given.system
        q, v = split(system, y0)
        found = accelerations_at(given, q, v, t0)
        acceleration = found.acceleration
        return AlphaState(
            acceleration,
            stop_gradient(acceleration),
            acceleration,
            stop_gradient(found.multipliers),
            no_matrix(system, y0.dtype),
            stop_gradient(system.column_scale()),
            stop_gradient(system.residual_scale()),
        )

    def step(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: Float[Array, " state"],
        args: Packed,
        solver_state: AlphaState,
        made_jump: Any,
    ) -> tuple[Float[Array, " state"], None, dict[str, Array], AlphaState, dfx.RESULTS]:
        del terms, made_jump
        system, last = args.opened().system, solver_state
        q, v = split(system, y0)
        t0, t1 = jnp.asarray(t0, y0.dtype), jnp.asarray(t1, y0.dtype)
        scheme = coefficients(self.spectral_radius)
        start = Beginning(q, v, last.acceleration, last.auxiliary, t1, t1 - t0, scheme)
        # Forces change evenly for some steps.
        guess = Guess(
            start.increment(2 * last.acceleration - last.before),
            start.force_scale * last.multipliers,
            last.unit,
            last.scale,
        )
        matrix, limits = stop_gradient(last.matrix), Limits(self.rtol, self.max_iterations)
        solved = solve_step(system, start, stop_gradient(guess), matrix, stop_gradient(limits))
        end = end_of(system, start, solved.increment)
        slopes = [
            jnp.concatenate([system.flow(*state), acceleration, jnp.zeros((1,), y0.dtype)])
            for state, acceleration in (
                ((q, v, t0), start.acceleration),
                ((end.q, end.v, t1), end.acceleration),
            )
        ]
        # A failed solution must not be returned as a motion.
        usable = solved.converged & ~_jumps(system, solved, guess, last.unit)
        y1 = jnp.where(usable, jnp.concatenate([end.q, end.v, y0[-1:]]), jnp.nan)
        dense = {"y0": y0, "y1": y1, "k0": start.h * slopes[0], "k1": start.h * slopes[1]}
        following = AlphaState(
            end.acceleration,
            stop_gradient(last.acceleration),
            end.auxiliary,
            stop_gradient(solved.multipliers / start.force_scale),
            solved.matrix,
            last.unit,
            last.scale,
        )
        return y1, None, dense, following, dfx.RESULTS.successful


@nearly_projected.register
def _(
    solver: GeneralizedAlpha, system: AbstractSystem, t: Scalar, y: Float[Array, " state"]
) -> Float[Array, " state"]:
    # Its velocities are as far away as its error is large.
    del solver
    q, v = split(system, y)
    return jnp.concatenate([q, project_velocity(system, q, v, t).v, y[-1:]])
