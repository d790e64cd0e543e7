"""Existence and uniqueness of accelerations with Coulomb friction, in every state of slip.

The forces that press the joints together at one configuration are P = a + sum_j G_j s_j mu_j |P_j|:
a without friction, s_j the direction of slip of joint j (its size is at most 1, as the law is
regularised), mu_j its coefficient, and G_j what a friction force of unit size does to P. For two
solutions |P_j| - |P'_j| = g_j . (P_j - P'_j) with |g_j| <= 1. So there is one at most if

    det(I - G diag(mu_j s_j g_j^T)) > 0      for all |s_j| <= 1, |g_j| <= 1,

whatever the loads are, and then there is one: P - G diag(mu_j s_j) |P| is Lipschitz continuous with
generalized derivatives that are uniformly invertible, and so a homeomorphism (Pourciau, J. Math.
Anal. Appl. 22, 1988, 103-109). With one component of slip and one of pressing force in each joint
that is an absolute value equation, the products s_j g_j are any numbers between -1 and 1, and the
condition is also necessary for solutions to exist and be unique for all loads: a P-matrix condition
(Rohn, Linear Algebra Appl. 126, 1989, 39-78; Cottle, Pang & Stone, 1992, section 3.3).

The determinant is affine in each such number, whatever the others are, so that its signs at the
corners of their box decide. At each corner these joints are eliminated; what is left of joints with
several components, all |s_j| <= 1 and |g_j| <= 1, is safe if the spectral radius of the matrix of
norms of its blocks is below 1: exact for one such joint, sufficient for several.
"""

import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._formulations import chosen_formulation
from .._system import AbstractSystem, FrictionMaps


# Joints of one component each whose corners are all evaluated (2^n of them); more are taken by
# their norms.
_CORNERS = 8

# A coefficient greater than this is not a coefficient of friction: a proof up to it counts for all.
_GREATEST = 1e3

_Sizes = tuple[tuple[int, int], ...]


def pressing_gains(
    system: AbstractSystem,
    maps: FrictionMaps,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Any,
) -> Float[Array, "laws 3 laws 3"]:
    """G: how the pressing forces (N) change by a friction force (N) against each slip, at unit
    coefficient."""
    equations = system.equations(q, v, t)
    formulation = chosen_formulation(None, system.structure)

    def multipliers(slip: Float[Array, " nv"]) -> Float[Array, " rows"]:
        def solve(force: Float[Array, " nv"]) -> Float[Array, " rows"]:
            loaded = eqx.tree_at(lambda x: x.force, equations, force)
            return formulation.solve(loaded).multipliers

        return jax.jvp(solve, (equations.force,), (-slip,))[1]

    laws, width, _ = maps.slip.shape
    changes = jax.vmap(multipliers)(maps.slip.reshape(laws * width, -1))
    return (maps.pressing @ changes.T).reshape(laws, -1, laws, width)


def one_solution(gains: Any, coefficients: Any, sizes: _Sizes, xp: ModuleType = jnp) -> Any:
    """Is it proved that accelerations exist and are unique in every state of slip?

    **Arguments:** `gains` (laws, 3, laws, 3); `coefficients` (..., laws); `sizes`: how many
    components of slip and of pressing force each law has; `xp`: whose arrays they are.
    """
    # Rounding is not a proof.
    scaled = coefficients[..., None, None, :, None] * gains * (1 + 1e-9)
    single = [i for i, size in enumerate(sizes) if size == (1, 1)][:_CORNERS]
    others = [i for i in range(len(sizes)) if i not in single]
    batch, width = coefficients.shape[:-1], gains.shape[1]
    safe = xp.ones(batch, dtype=bool)
    corner = scaled[..., 0, :, 0]
    many = scaled[..., others, :, :, :][..., others, :]
    count = len(others)
    for signs in itertools.product((-1.0, 1.0), repeat=len(single)):
        left = many
        if single:
            turned = np.array([signs])
            own = xp.eye(len(single)) - corner[..., single, :][..., single] * turned
            definite = xp.linalg.det(own) > 0
            safe = safe & definite
            # What follows is of no consequence where it is not.
            own = xp.where(definite[..., None, None], own, xp.eye(len(single)))
            into = scaled[..., 0, :, :][..., single, :, :][..., others, :].reshape(
                *batch, len(single), -1
            )
            out = scaled[..., 0][..., others, :, :][..., single] * turned[None]
            out = out.reshape(*batch, count * width, len(single))
            through = out @ xp.linalg.solve(own, into)
            left = many + through.reshape(*batch, count, width, count, width)
        if others:
            norms = xp.linalg.norm(xp.swapaxes(left, -3, -2), ord=2, axis=(-2, -1))
            # A matrix I - n with n >= 0 has a positive solution of (I - n) x = 1 if, and only if,
            # the spectral radius of n is below 1 (Berman & Plemmons, 1979, chapter 6).
            around = xp.eye(count) - norms
            solvable = xp.abs(xp.linalg.det(around)) > 0
            around = xp.where(solvable[..., None, None], around, -xp.eye(count))
            found = xp.linalg.solve(around, xp.ones((*batch, count, 1)))
            safe = safe & xp.all(found > 0, axis=(-2, -1))
    return safe


def critical_coefficients(gains: Any, coefficients: Any, sizes: _Sizes) -> np.ndarray:
    """The coefficient (laws,) of each law up to which that is proved while the others keep theirs:
    0 if it is not proved even without its friction, infinite if it is for any. NumPy."""
    place = np.eye(len(sizes), dtype=bool)
    return _critical(gains, lambda own: np.where(place, own[:, None], coefficients), sizes)


def critical_factor(gains: Any, coefficients: Any, sizes: _Sizes) -> float:
    """The largest factor of all coefficients. NumPy."""
    own = np.asarray(coefficients)
    return float(_critical(gains, lambda factor: factor[:, None] * own, sizes, 1)[0])


def _critical(
    gains: Any, coefficients: Callable[[np.ndarray], Any], sizes: _Sizes, count: int | None = None
) -> np.ndarray:
    """The largest numbers whose coefficients are proved, one after the other, by bisection."""
    gains = np.asarray(gains)
    count = len(sizes) if count is None else count
    if not np.all(np.isfinite(gains)):
        return np.zeros(count)

    def proved(own: np.ndarray) -> np.ndarray:
        return one_solution(gains, np.asarray(coefficients(own)), sizes, np)

    low, high = np.full(count, 1e-6), np.full(count, _GREATEST)
    never, always = ~proved(low), proved(high)
    for _ in range(50):
        middle = np.sqrt(low * high)
        safe = proved(middle)
        low, high = np.where(safe, middle, low), np.where(safe, high, middle)
    return np.where(never, 0.0, np.where(always, np.inf, low))
