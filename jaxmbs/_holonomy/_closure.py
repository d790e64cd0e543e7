"""Number of integrable combinations of rows, from the dimension of the reachable set.

The motions that rows allow, and their Lie brackets of any depth, span the directions of all
configurations that can be reached; forms that vanish on these are what is integrable of the rows.
Nested brackets would need one derivative more of the rows for each depth. By the orbit theorem
(Sussmann 1973, Trans. AMS 180, theorem 4.1) the same space is spanned by the allowed directions at
all points of the orbit, brought back by the flows that lead there. So one way of random pieces,
along which rows are differentiated once, gives it whatever the depth: each piece adds a dimension
until there is none left to add.

The flows are those of x' = P(x) u with constant u, P the projector onto what the rows allow. With
W of constant rank dP = -W^+ dW P - (W^+ dW P)^T (Golub & Pereyra 1973, SIAM J. Numer. Anal. 10),
so that no decomposition is differentiated.
"""

from typing import NamedTuple

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax
from jaxtyping import Array, Bool, Float

from .._custom_types import BoolScalar, IntScalar, PRNGKeyArray, RealScalarLike
from .._linalg import normalise_rows
from ._forms import Forms, velocity_rows
from ._frobenius import decompose, Split, split


# Length of the way, in characteristic lengths, radians and seconds. A bracket of depth d shows by
# about the d-th power of it over d!: a car with three trailers by 1e-6, where all that is left of
# directions that cannot be reached is below 1e-12.
_LENGTH = 1.0
_FEWEST_PIECES = 8
REACHED = 1e-10

_RTOL, _ATOL = 1e-10, 1e-11
_MOST_STEPS = 512


class Reached(NamedTuple):
    """`values` (n,): singular values of the directions beyond those that the rows allow.
    `integrated`: False if the way could not be followed."""

    values: Float[Array, " n"]
    integrated: BoolScalar


# x, and the derivative of the projection.
_State = tuple[Float[Array, " n"], Float[Array, "n n"]]


def follow_way(
    forms: Forms, rows: Bool[Array, " rows"], rank: IntScalar, key: PRNGKeyArray
) -> Reached:
    """Along one random way from the configuration of the forms, of one set of rows, whose forms
    have that rank."""
    n = forms.system.structure.nv + 1
    # One more than there are dimensions to add.
    pieces = max(_FEWEST_PIECES, len(velocity_rows(forms.system.structure)) + 2)

    def split_of(matrix: Float[Array, "rows n"]) -> Split:
        return split(decompose(jnp.where(rows[:, None], matrix, 0.0)), rank)

    def slope(s: RealScalarLike, state: _State, u: Float[Array, " n"]) -> _State:
        del s
        x, back = state
        matrix, change = forms.with_slope(x)
        inverse, allowed = split_of(matrix)
        along, weights = allowed @ u, u @ inverse
        change = jnp.where(rows[:, None, None], change, 0.0)
        forward = jnp.einsum("rac,a->rc", change, along)
        across = jnp.einsum("rac,r->ac", change, weights)
        return along, back @ (inverse @ forward + allowed @ across)

    def piece(state: _State, u: Float[Array, " n"]) -> tuple[_State, tuple[Array, Array]]:
        x, back = state
        directions = back @ split_of(normalise_rows(forms(x))[0]).allowed
        solution = dfx.diffeqsolve(
            dfx.ODETerm(jax.jit(slope)),
            dfx.Dopri8(),
            0.0,
            _LENGTH / pieces,
            _LENGTH / pieces,
            state,
            u,
            stepsize_controller=dfx.PIDController(rtol=_RTOL, atol=_ATOL),
            adjoint=dfx.ForwardMode(),
            max_steps=_MOST_STEPS,
            throw=False,
        )
        end = jax.tree.map(lambda y: y[-1], solution.ys)
        return end, (directions, solution.result == dfx.RESULTS.successful)

    start = forms.origin, jnp.eye(n, dtype=forms.q.dtype)
    freedoms = jnp.maximum(n - rank, 1)
    # About of unit length in what is allowed.
    chosen = jr.normal(key, (pieces, n), forms.q.dtype) / jnp.sqrt(freedoms)
    _, (directions, done) = lax.scan(piece, start, chosen)
    # Those at the start are allowed themselves.
    beyond = directions[1:] - directions[0] @ directions[1:]
    known = jnp.all(done) & jnp.all(jnp.isfinite(beyond))
    stacked = jnp.where(known, jnp.swapaxes(beyond, 0, 1).reshape(n, -1), 0.0)
    return Reached(jnp.linalg.svd(stacked, compute_uv=False), known)
