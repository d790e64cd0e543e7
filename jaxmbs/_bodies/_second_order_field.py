"""Displacements of second order of an elastic body, as a field whose integrals are all known.

Of Gamma the integrals over the mass, of itself and of p_a Gamma_b, are given (`SecondOrder`): of
all terms of second order in the modal coordinates and their rates no more is needed. A kinetic
energy that ends there is not positive, though. Where modes are nearly a rigid motion, as shapes
that are clamped at the frame's origin are, the terms left out are larger than what is left of such
a motion: a cantilever in the shapes x^2 to x^4 had no mass matrix where it bent by 3 % of its
length. So Gamma is taken as the field linear in p that has these integrals,

    Gamma_b,ij(p) = sum over c of H_bc,ij P_c,   P = (1, p),

which leaves the terms of second order as they are, and from which those of third and fourth order
follow: the kinetic energy is that of a displacement of the mass, and positive.

A slender body has no mass off its line that could tell how Gamma changes across it. What such
directions have is small, and is left at second order (`rest`).
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import Matrix3, Vector3
from .._linalg import cholesky, cholesky_solve


# Second moments of the mass that are smaller than this part of their sum are not resolved: of a bar
# whose section is a fifth of its length. Integrals of finite elements are not exact to that.
_RESOLVED = 1e-2


class Moments(NamedTuple):
    """Moments of the deformed body about the frame's origin, along its axes: the integrals of
    u (kg m), of
    u_a u_b (kg m^2), at [a, b], and of the displacements phi by a unit of each mode: phi_a, u_a
    phi_b, at [a, b, mode], and of phi_i phi_j, the modal mass."""

    first: Vector3
    second: Matrix3
    mode_first: Float[Array, "3 modes"]
    modal: Float[Array, "3 3 modes"]
    mass: Float[Array, "modes modes"]

    @property
    def inertia(self) -> Matrix3:
        """The inertia matrix (kg m^2)."""
        return jnp.trace(self.second) * jnp.eye(3, dtype=self.second.dtype) - self.second


class SecondOrderField(eqx.Module):
    """`coefficients`: H_bc,ij at [b, c, i, j]. `rest`: what the integral of p_a Gamma_b, at
    [a, b, i, j], is more than that of the linear field. `moments`: the integral of P P^T over the
    mass; `modal`: of P_c phi_b,k at [c, b, k]."""

    moments: Float[Array, "4 4"]
    modal: Float[Array, "4 3 modes"]
    coefficients: Float[Array, "3 4 modes modes"]
    rest: Float[Array, "3 3 modes modes"]

    def displaced(self, linear: Moments, eta: Float[Array, " modes"]) -> Moments:
        """With the field added to the linear displacements."""
        # u gets S P, and what a mode moves N_k P.
        slopes = self.coefficients @ eta
        bent = 0.5 * slopes @ eta
        carried = self._carried(slopes)
        # The integral of u P^T, of the linear displacements.
        along = self.moments[1:] + (self.modal @ eta).T
        rest = self.rest @ eta
        both = along @ bent.T + 0.5 * rest @ eta
        return Moments(
            first=linear.first + bent @ self.moments[0],
            second=linear.second + both + both.T + bent @ self.moments @ bent.T,
            mode_first=carried[0],
            modal=linear.modal
            + jnp.einsum("ac,bck->abk", along, slopes)
            + jnp.einsum("ac,cbk->abk", bent, carried)
            + rest,
            mass=linear.mass
            + jnp.einsum("bcj,cbk->jk", slopes, carried)
            + jnp.einsum("cbj,bck->jk", self.modal, slopes),
        )

    def flow(
        self,
        linear: Float[Array, "3 3 modes"],
        eta: Float[Array, " modes"],
        rates: Float[Array, " modes"],
    ) -> Float[Array, "3 3 modes"]:
        """The integral of d_a phi_b, with the rate d of the displacements, from that of the linear
        ones."""
        slopes = self.coefficients @ eta
        own = jnp.einsum("ca,bck->abk", self.modal @ rates, slopes)
        return linear + own + jnp.einsum("ac,cbk->abk", slopes @ rates, self._carried(slopes))

    def bending(
        self, eta: Float[Array, " modes"], rates: Float[Array, " modes"]
    ) -> tuple[Vector3, Matrix3, Float[Array, " modes"]]:
        """The integrals of the acceleration g = Gamma rates rates: of g_b, of u_a g_b at [a, b],
        and of g along the displacement of each mode."""
        slopes = self.coefficients @ eta
        own = (self.coefficients @ rates) @ rates
        along = self.moments[1:] + (self.modal @ eta).T + (0.5 * slopes @ eta) @ self.moments
        modal = jnp.einsum("bc,cbk->k", own, self._carried(slopes))
        turning = along @ own.T + (self.rest @ rates) @ rates
        return own @ self.moments[0], turning, modal

    def _carried(self, slopes: Float[Array, "3 4 modes"]) -> Float[Array, "4 3 modes"]:
        """The integral of P_c phi_b, with what a mode moves at second order."""
        return self.modal + jnp.einsum("cd,bdk->cbk", self.moments, slopes)


def second_order_field(
    first: Float[Array, "3 modes modes"],
    second: Float[Array, "3 3 modes modes"],
    moments: Float[Array, "4 4"],
    modal: Float[Array, "4 3 modes"],
) -> SecondOrderField:
    """The integrals of Gamma_b, and of p_a Gamma_b at [a, b]."""
    centre = moments[0, 1:] / moments[0, 0]
    own = moments[1:, 1:] - moments[0, 0] * centre[:, None] * centre[None]
    beside = second - centre[:, None, None, None] * first[None]
    # Moments p become p^3 / (p^4 + r^4): 1 / p, and zero where p is, with a derivative anywhere.
    scaled = own / jnp.trace(own)
    square = scaled @ scaled
    normal = square @ square + _RESOLVED**4 * jnp.eye(3, dtype=own.dtype)
    inverse = cholesky_solve(cholesky(normal), square @ scaled) / jnp.trace(own)
    linear = jnp.einsum("ca,abij->bcij", inverse, beside)
    rest = beside - jnp.einsum("ac,bcij->abij", own, linear)
    constant = first / moments[0, 0] - jnp.einsum("bcij,c->bij", linear, centre)
    coefficients = jnp.concatenate([constant[:, None], linear], axis=1)
    return SecondOrderField(moments, modal, coefficients, rest)
