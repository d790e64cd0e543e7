"""How many combinations of rows are integrable: the dimension of what can be reached.

The motions that rows allow, and their Lie brackets of any depth, span the directions of all
configurations that can be reached; forms that vanish on these are what is integrable of the rows.
Nested brackets would need one derivative more of the rows for each depth. By the orbit theorem
(Sussmann 1973, Trans. AMS 180, theorem 4.1) the same space is spanned by the allowed directions at
all points of the orbit, brought back by the flows that lead there. So one way of random pieces,
along which rows are differentiated once, gives it whatever the depth: each piece adds a dimension
until there is none left to add.

The flows are those of x' = P(x) u with constant u, P the projector onto what the rows allow. With
W of constant rank dP = -W^+ dW P - (W^+ dW P)^T (Golub & Pereyra 1973, SIAM J. Numer. Anal. 10,
eq. 4.11), so that no decomposition is differentiated.
"""

from typing import NamedTuple

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax
from jaxtyping import Array, Bool, Float

from .._custom_types import BoolScalar, IntScalar, PRNGKeyArray, Scalar
from ._forms import Forms
from ._frobenius import decompose, split, Split


# Length of the way, in characteristic lengths, radians and seconds, and its pieces: a bracket of
# depth d shows by about the d-th power of the length over d!.
_LENGTH = 1.0
_PIECES = 12

# Of a step of the integration, and what of a direction across counts as one: a hundred thousand times what
# that leaves.
_RTOL, _ATOL = 1e-11, 1e-12
_MOST_STEPS = 512
REACHED = 1e-6


class Reached(NamedTuple):
    """`values` (n,): singular values of the directions beyond those that the rows allow.
    `integrated`: False if the way could not be followed."""

    values: Float[Array, " n"]
    integrated: BoolScalar


# x, and the derivative of the way back.
_State = tuple[Float[Array, " n"], Float[Array, "n n"]]


def follow_way(
    forms: Forms, rows: Bool[Array, " rows"], rank: IntScalar, key: PRNGKeyArray
) -> Reached:
    """Along one random way from the configuration of the forms, of one set of rows, whose forms
    have that rank."""
    n = forms.system.structure.nv + 1

    def own_forms(x: Float[Array, " n"]) -> Float[Array, "rows n"]:
        return jnp.where(rows[:, None], forms(x), 0.0)

    def split_at(x: Float[Array, " n"]) -> Split:
        return split(decompose(own_forms(x)), rank)

    def slope(s: Scalar, state: _State, u: Float[Array, " n"]) -> _State:
        del s
        x, back = state
        inverse, allowed = split_at(x)
        along, weights = allowed @ u, inverse.T @ u
        forward, across = jax.jacfwd(lambda z: _products(own_forms(z), along, weights))(x)
        return along, back @ (inverse @ forward + allowed @ across)

    def piece(state: _State, u: Float[Array, " n"]) -> tuple[_State, tuple[Array, Array]]:
        solution = dfx.diffeqsolve(
            dfx.ODETerm(slope),
            dfx.Dopri8(),
            0.0,
            _LENGTH / _PIECES,
            _LENGTH / _PIECES,
            state,
            u,
            stepsize_controller=dfx.PIDController(rtol=_RTOL, atol=_ATOL),
            adjoint=dfx.ForwardMode(),
            max_steps=_MOST_STEPS,
            throw=False,
        )
        x, back = jax.tree.map(lambda y: y[-1], solution.ys)
        done = solution.result == dfx.RESULTS.successful
        return (x, back), (back @ split_at(x).allowed, done)

    start = jnp.zeros((n,), forms.q.dtype), jnp.eye(n, dtype=forms.q.dtype)
    freedoms = jnp.maximum(n - rank, 1)
    # About of unit length in what is allowed.
    chosen = jr.normal(key, (_PIECES, n), forms.q.dtype) / jnp.sqrt(freedoms)
    _, (directions, done) = lax.scan(piece, start, chosen)
    beyond = directions - split_at(start[0]).allowed @ directions
    known = jnp.all(done) & jnp.all(jnp.isfinite(beyond))
    stacked = jnp.where(known, jnp.swapaxes(beyond, 0, 1).reshape(n, -1), 0.0)
    return Reached(jnp.linalg.svd(stacked, compute_uv=False), known)


def _products(
    matrix: Float[Array, "rows n"], along: Float[Array, " n"], weights: Float[Array, " rows"]
) -> tuple[Float[Array, " rows"], Float[Array, " n"]]:
    return matrix @ along, weights @ matrix
