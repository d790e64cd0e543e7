"""Newton's method for the equations of a step of the generalized-alpha scheme.

Its matrix is

    [ A   C^T     ]        A  = d(dynamic equations)/d(increment),
    [ C'  -mu D   ]        C' = d(rows)/d(increment),

with D the diagonal of S = C M^-1 C^T. As the residual is that of the exact equations, mu makes an
iteration of Newton's method a proximal step: where rows depend on each other the matrix stays
regular, the increment is the same, and the multipliers change by what is least.

A matrix and its inverse are kept over iterations and steps, as long as that is cheaper: a new one
costs as much as some dozens of iterations. With an old one the iteration converges linearly, at a
measured rate, from which convergence is decided.

The derivative of the solution is that of the equations at it (implicit function theorem), with a
matrix of its own. Nothing is unrolled.
"""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, Scalar
from .._linalg import AbstractKKTMatrices, REGULARISATION
from .._programs import program
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem
from ._alpha_scheme import Beginning, end_of, residual
from ._force_slopes import coloured_jacobian, colouring
from ._projection import MET


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
    met = ((missing <= allowed) | (change <= rounding) | amplified) & (closure <= MET)

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
