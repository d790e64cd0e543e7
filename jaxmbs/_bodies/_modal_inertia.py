"""The inertia of an elastic body in a floating frame of reference, from integrals over its mass.

A point that lies at p in the undeformed body is at R + A u in the world, with R the frame's origin,
A its rotation, and u = p + phi eta. Its velocity along the body's axes is A^T dR/dt + w x u +
phi deta/dt. Everything below follows from the integrals over the mass of u, of u u^T and of
u phi^T, and these are polynomials in eta whose coefficients `ReducedBody` holds (Shabana 2020,
chapter 5, where the integrals are called inertia shape integrals).

With displacements of second order, u = p + phi eta + 1/2 Gamma eta eta (`SecondOrder`), what a
velocity of the modes moves is phi + Gamma eta. The kinetic energy is kept to second order in eta
and its rate: the integrals of Gamma and of p Gamma^T enter, those of phi Gamma^T, of third order,
do not. It is still the kinetic energy of a motion in a frame, so that momenta and energy stay what
they are in free motion, exactly. With Omega the spin, the integral of p Gamma^T is the geometric
stiffness by centrifugal force (K0_omega of Wallrapp & Schwertassek 1998, *Dynamik flexibler
Mehrkoerpersysteme*); that by the forces of joints is in the motion of markers.
"""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._custom_types import Matrix3, Scalar, Vector3
from .._geometry import (
    composed,
    cross_matrix,
    FlatCoordinates,
    LENGTH,
    ProductCoordinates,
    rotated,
    rotation_from_quaternion,
    SpatialPose,
)
from .._linalg import cholesky, cholesky_solve
from ._reduced_body import ReducedBody
from .base import AbstractBodyInertia, ModalElasticity


# The root mean square of an arc about the line that is nearest to it, where its end stands out by
# one from the tangent at its beginning, is one by the root of this.
_ARC = 180.0

# A uniform rod is so many times as long as the square of the radius of gyration says.
_ROD = 12.0


def modal_coordinates(modes: int) -> ProductCoordinates:
    """The pose of the frame, then so many modal coordinates."""
    names = tuple(f"mode.{k + 1}" for k in range(modes))
    # As `normalised` measures them, a length of one moves the body by one length.
    return ProductCoordinates((SpatialPose(), FlatCoordinates(names, (LENGTH,) * modes)))


def modal_scale(reduced: ReducedBody) -> Float[Array, " modes"]:
    """The displacement of the mass by each mode of `reduced`: the root mean square of |phi|, so
    that the product with a modal coordinate is a length (m), whatever the modes were scaled to."""
    squares = _trace(reduced.mode_products)
    return jnp.sqrt(jnp.diagonal(squares) / reduced.mass)


@jax.jit
def normalised(reduced: ReducedBody) -> ReducedBody:
    """The same body, each mode scaled so that its coordinate is the root mean square displacement
    (m) of the mass.

    No decision on ranks, no tolerance and no step depends on the scale of the modes then; a node
    would not do to measure by, since modes with fixed interfaces move none.
    """
    one = 1 / modal_scale(reduced)
    pairs = one[:, None] * one[None]
    return ReducedBody(
        mass=reduced.mass,
        first_moment=reduced.first_moment,
        inertia=reduced.inertia,
        mode_first_moment=reduced.mode_first_moment * one[None],
        mode_second_moment=reduced.mode_second_moment * one[None, None],
        mode_products=reduced.mode_products * pairs[None, None],
        stiffness=reduced.stiffness * pairs,
        damping=reduced.damping * pairs,
        points=reduced.points,
        translations=reduced.translations * one[None, None],
        rotations=reduced.rotations * one[None, None],
        nodes=reduced.nodes,
        second_order=jax.tree.map(
            lambda x: x * jnp.broadcast_to(pairs, x.shape), reduced.second_order
        ),
    )


class SecondMoments(NamedTuple):
    """The integrals of Gamma_ij (kg m), `first`, and of p_a Gamma_b,ij (kg m^2), `second`."""

    first: Float[Array, "3 modes modes"]
    second: Float[Array, "3 3 modes modes"]


class _Moments(NamedTuple):
    """Moments of the deformed body about the frame's origin, along the frame's axes: the integrals
    of u (kg m), of u_a u_b (kg m^2), at [a, b], and of u_a du_b / d eta, at [a, b, mode]."""

    first: Vector3
    second: Matrix3
    modal: Float[Array, "3 3 modes"]

    @property
    def inertia(self) -> Matrix3:
        """The inertia matrix (kg m^2)."""
        return _trace(self.second) * np.eye(3, dtype=self.second.dtype) - self.second


class ModalInertia(AbstractBodyInertia):
    """A body whose points are displaced by phi eta in a floating frame, and where `second_order` is
    known by 1/2 Gamma eta eta.

    The mass matrix holds every term of the linear displacement field: constant, linear and
    quadratic in eta. Without `second_order` forces along a body, centrifugal ones too, do not act
    on its bending.

    `second_moment` (3, 3): the integral of p p^T dm (kg m^2), of the undeformed body; the other
    numbers are those of a `ReducedBody` that is `normalised`. `modal_inverse`: of the modal mass
    matrix, which does not change with eta, so that each evaluation inverts six rows alone.
    """

    rheonomic: ClassVar[bool] = False
    massless: ClassVar[bool] = False
    weighed: ClassVar[bool] = True
    mass: Scalar
    first_moment: Vector3
    second_moment: Matrix3
    mode_first_moment: Float[Array, "3 modes"]
    mode_second_moment: Float[Array, "3 3 modes"]
    mode_products: Float[Array, "3 3 modes modes"]
    modal_inverse: Float[Array, "modes modes"]
    stiffness: Float[Array, "modes modes"]
    damping: Float[Array, "modes modes"]
    second_order: SecondMoments | None
    coordinates: ProductCoordinates = eqx.field(static=True)

    def _first_moment(self, eta: Float[Array, " modes"]) -> Vector3:
        linear = self.first_moment + self.mode_first_moment @ eta
        if self.second_order is None:
            return linear
        return linear + 0.5 * (self.second_order.first @ eta) @ eta

    def _mode_first_moment(self, eta: Float[Array, " modes"]) -> Float[Array, "3 modes"]:
        """The change of the first moment along each mode."""
        if self.second_order is None:
            return self.mode_first_moment
        return self.mode_first_moment + self.second_order.first @ eta

    def _moments(self, eta: Float[Array, " modes"]) -> _Moments:
        # With d = phi eta: u_a phi_b = p_a phi_b + d_a phi_b, and u u^T = p p^T + d p^T + u d^T.
        modal = self.mode_second_moment + jnp.einsum("abjk,j->abk", self.mode_products, eta)
        displaced = self.mode_second_moment @ eta
        second = self.second_moment + displaced.T + modal @ eta
        if self.second_order is not None:
            # p Gamma^T eta in the modes; 1/2 p (Gamma eta eta)^T and its transpose in u u^T.
            bent = self.second_order.second @ eta
            half = 0.5 * (bent @ eta)
            modal, second = modal + bent, second + half + half.T
        return _Moments(self._first_moment(eta), second, modal)

    def mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        del t
        rotation, moments = rotation_from_quaternion(q[3:7]), self._moments(q[7:])
        linear = self.mass * np.eye(3, dtype=q.dtype)
        turning = -composed(rotation, cross_matrix(moments.first))
        moving = rotation @ self._mode_first_moment(q[7:])
        modal = _trace(self.mode_products)
        coupling = _skew_part(moments.modal)
        return jnp.concatenate(
            [
                jnp.concatenate([linear, turning, moving], axis=1),
                jnp.concatenate([turning.T, moments.inertia, coupling], axis=1),
                jnp.concatenate([moving.T, coupling.T, modal], axis=1),
            ]
        )

    def inverse_mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        # Of blocks, with the modes eliminated first: their own block is constant, and what is left
        # is of the size of a rigid body (Golub & Van Loan 2013, section 3.2.11).
        matrix = self.mass_matrix(q, t)
        rigid, coupling = matrix[:6, :6], matrix[:6, 6:]
        carried = coupling @ self.modal_inverse
        schur = rigid - carried @ coupling.T
        own = cholesky_solve(cholesky(schur), jnp.eye(6, dtype=q.dtype))
        beside = -own @ carried
        modal = self.modal_inverse - carried.T @ beside
        return jnp.concatenate(
            [
                jnp.concatenate([own, beside], axis=1),
                jnp.concatenate([beside.T, modal], axis=1),
            ]
        )

    def inertia_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        # Minus the integral of each velocity's direction times what is left of the acceleration
        # with v constant, w x (w x u) + 2 w x d, d = phi deta/dt (the quadratic velocity vector,
        # Shabana 2020, chapter 5). Products are those of a x (b x c) = b (a c) - c (a b). With
        # displacements of second order Gamma (deta/dt) (deta/dt) is left besides; along the modes
        # it is of third order.
        del t
        eta, w, rates = q[7:], v[3:6], v[6:]
        moments, spin = self._moments(eta), cross_matrix(w)
        rotation = rotation_from_quaternion(q[3:7])
        along = rotated(spin, moments.first) + 2 * (self._mode_first_moment(eta) @ rates)
        force = -rotated(composed(rotation, spin), along)
        # The integral of u_a d_b.
        flow = moments.modal @ rates
        coriolis = _trace(flow) * w - rotated(flow.T, w)
        moment = -rotated(spin, rotated(moments.inertia, w)) - 2 * coriolis
        if self.second_order is not None:
            force = force - rotated(rotation, (self.second_order.first @ rates) @ rates)
            moment = moment - _skew_part(self.second_order.second @ rates) @ rates
        centrifugal = (w @ w) * _trace(moments.modal) - jnp.einsum(
            "a,abk,b->k", w, moments.modal, w
        )
        moving = _skew_part(jnp.einsum("abjk,j->abk", self.mode_products, rates))
        return jnp.concatenate([force, moment, centrifugal - 2 * (w @ moving)])

    def internal_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        del t
        modal = -self.stiffness @ q[7:] - self.damping @ v[6:]
        return jnp.concatenate([jnp.zeros_like(v[:6]), modal])

    def stored_energy(self, q: Float[Array, " nq"]) -> Scalar:
        return 0.5 * q[7:] @ self.stiffness @ q[7:]

    @property
    def deforms(self) -> bool:
        return self.stiffness.shape[-1] > 0

    def elasticity(self) -> ModalElasticity:
        origin = jnp.asarray(self.coordinates.origin, self.mass.dtype)
        matrix = self.mass_matrix(origin, jnp.zeros_like(self.mass))
        coupling, centre = matrix[:6, 6:], self.first_moment / self.mass
        second = self.second_moment - self.mass * centre[:, None] * centre[None]
        # Without the rigid motion that is nearest to a deformation, whatever frame modes are in.
        apart = matrix[6:, 6:] - coupling.T @ cholesky_solve(cholesky(matrix[:6, :6]), coupling)
        return ModalElasticity(
            mass_matrix=matrix,
            stiffness=self.stiffness,
            centre=centre,
            second_moment=second,
            deflections=_ARC / _ROD * apart / _trace(second),
            stiffened=self.second_order is not None,
        )

    def weight(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Float[Array, " nv"]:
        own = rotated(rotation_from_quaternion(q[3:7]).T, gravity)
        moment = rotated(cross_matrix(self._first_moment(q[7:])), own)
        return jnp.concatenate([self.mass * gravity, moment, own @ self._mode_first_moment(q[7:])])

    def potential(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Scalar:
        first = rotated(rotation_from_quaternion(q[3:7]), self._first_moment(q[7:]))
        return -(gravity @ (self.mass * q[:3] + first))


@jax.jit
def modal_inertia(reduced: ReducedBody) -> ModalInertia:
    """The inertia of a `normalised` body."""
    found = reduced.second_order
    second = None if found is None else SecondMoments(found.first_moment, found.second_moment)
    trace, modal = _trace(reduced.inertia), _trace(reduced.mode_products)
    return ModalInertia(
        mass=reduced.mass,
        first_moment=reduced.first_moment,
        second_moment=0.5 * trace * jnp.eye(3, dtype=trace.dtype) - reduced.inertia,
        mode_first_moment=reduced.mode_first_moment,
        mode_second_moment=reduced.mode_second_moment,
        mode_products=reduced.mode_products,
        modal_inverse=cholesky_solve(cholesky(modal), jnp.eye(modal.shape[0], dtype=modal.dtype)),
        stiffness=reduced.stiffness,
        damping=reduced.damping,
        second_order=second,
        coordinates=modal_coordinates(reduced.stiffness.shape[0]),
    )


@jax.jit
def undeformed_mass_matrix(reduced: ReducedBody) -> Float[Array, "nv nv"]:
    """The mass matrix of the undeformed body along its own axes; the body need not be
    `normalised`."""
    inertia = modal_inertia(normalised(reduced))
    q = jnp.asarray(inertia.coordinates.origin, reduced.mass.dtype)
    return inertia.mass_matrix(q, jnp.zeros_like(reduced.mass))


def _trace(moments: Float[Array, "3 3 *n"]) -> Float[Array, "*n"]:
    """The integral of a . b from that of a_i b_j, at [i, j]."""
    return moments[0, 0] + moments[1, 1] + moments[2, 2]


def _skew_part(moments: Float[Array, "3 3 n"]) -> Float[Array, "3 n"]:
    """The integral of a x b from that of a_i b_j, at [i, j]."""
    return jnp.stack(
        [
            moments[1, 2] - moments[2, 1],
            moments[2, 0] - moments[0, 2],
            moments[0, 1] - moments[1, 0],
        ]
    )
