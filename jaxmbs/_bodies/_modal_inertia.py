"""The inertia of an elastic body in a floating frame of reference, from a reduced model: its modes,
the displacements of second order, and the integrals over its mass.
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
from .._programs import Compiling, program
from .base import AbstractBodyInertia, ModalElasticity


class SecondOrder(eqx.Module):
    """The displacements of second order of an elastic body: what bends becomes shorter.

    With them a point p of a `ReducedBody` is displaced by

        phi(p) eta + 1/2 sum over i, j of Gamma_ij(p) eta_i eta_j,

    and a node turns by psi eta + 1/2 sum of Psi_ij eta_i eta_j. Whatever acts along a body then
    works on its bending: centrifugal force and tension stiffen it, compression softens it until
    it buckles. Gamma_ij is the displacement that leaves strains linear in eta; of an inextensible
    beam along x it is, along x, minus the integral from the clamp to p of the product of the modes'
    slopes. Energies of strain stay what they are, 1/2 eta K eta.

    - `first_moment` (3, modes, modes): the integral of Gamma_ij dm.
    - `second_moment` (3, 3, modes, modes): that of p_a Gamma_b,ij dm, at [a, b, i, j].
    - `translations`, `rotations` (nodes, 3, modes, modes): Gamma and Psi at the nodes.

    All are symmetric in i and j. `finite_elements.reduce` computes them.
    """

    first_moment: Float[Array, "3 modes modes"]
    second_moment: Float[Array, "3 3 modes modes"]
    translations: Float[Array, "nodes 3 modes modes"]
    rotations: Float[Array, "nodes 3 modes modes"]


class ReducedBody(eqx.Module):
    """An elastic body in few modes, in its own frame: what a reduction of finite elements leaves.

    A point that lies at p in the undeformed body (m, body axes, from the origin of the body's
    frame) is displaced by phi(p) eta, with the modal coordinates eta (modes,); at a node the body
    also turns, by the small rotation psi eta. All that a floating frame of reference needs are the
    integrals over the mass dm, the inertia shape integrals of Shabana (2020, section 5.3), and the
    modes at the nodes.

    - `mass`: kg. `first_moment`: the integral of p dm (kg m), zero in a frame at the centre of
      mass. `inertia` (3, 3): of the undeformed body about the frame's origin (kg m^2).
    - `mode_first_moment` (3, modes): the integral of phi dm.
    - `mode_second_moment` (3, 3, modes): that of p_a phi_b dm, at [a, b].
    - `mode_products` (3, 3, modes, modes): that of phi_a phi_b dm of the modes i and j, at
      [a, b, i, j]; the sum over a = b is the modal mass matrix.
    - `stiffness`, `damping` (modes, modes): of the modal coordinates (their unit follows from that
      of eta, which is a length where modes are shapes that have none).
    - `nodes`: names; `points` (nodes, 3): where they lie (m); `translations`, `rotations`
      (nodes, 3, modes): phi and psi there.
    - `second_order`: a `SecondOrder`, the displacements of second order, by which forces along the
      body stiffen or soften its bending; None where they are not known.
    """

    mass: Scalar
    first_moment: Vector3
    inertia: Matrix3
    mode_first_moment: Float[Array, "3 modes"]
    mode_second_moment: Float[Array, "3 3 modes"]
    mode_products: Float[Array, "3 3 modes modes"]
    stiffness: Float[Array, "modes modes"]
    damping: Float[Array, "modes modes"]
    points: Float[Array, "nodes 3"]
    translations: Float[Array, "nodes 3 modes"]
    rotations: Float[Array, "nodes 3 modes"]
    nodes: tuple[str, ...] = eqx.field(static=True)
    second_order: SecondOrder | None = None


# --------------------------------------------------------------------------------------------------
# Displacements of second order of an elastic body, as a field whose integrals are all known.
#
# Of Gamma the integrals over the mass, of itself and of p_a Gamma_b, are given (`SecondOrder`): of
# all terms of second order in the modal coordinates and their rates no more is needed. A kinetic
# energy that ends there is not positive, though. Where modes are nearly a rigid motion, as shapes
# that are clamped at the frame's origin are, the terms left out are larger than what is left of
# such a motion: a cantilever in the shapes x^2 to x^4 had no mass matrix where it bent by 3 % of
# its length. So Gamma is taken as the field linear in p that has these integrals,
#
#     Gamma_b,ij(p) = sum over c of H_bc,ij P_c,   P = (1, p),
#
# which leaves the terms of second order as they are, and from which those of third and fourth order
# follow: the kinetic energy is that of a displacement of the mass, and positive.
#
# A slender body has no mass off its line that could tell how Gamma changes across it. What such
# directions have is small, and is left at second order (`rest`).
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# The inertia of an elastic body in a floating frame of reference, from integrals over its mass.
#
# A point that lies at p in the undeformed body is at R + A u in the world, with R the frame's
# origin, A its rotation, and u = p + phi eta. Its velocity along the body's axes is A^T dR/dt + w x
# u + phi deta/dt. Everything below follows from the integrals over the mass of u, of u u^T and of u
# phi^T, and these are polynomials in eta whose coefficients `ReducedBody` holds (Shabana 2020,
# chapter 5, where the integrals are called inertia shape integrals).
#
# With displacements of second order, u = p + phi eta + 1/2 Gamma eta eta (`SecondOrder`), what a
# velocity of the modes moves is phi + Gamma eta. To second order in eta and its rate the integrals
# of Gamma and of p Gamma^T enter alone; terms beyond are those of a field that has these
# (`SecondOrderField`). It is the kinetic energy of a motion in a frame, so that momenta and energy
# stay what they are in free motion, exactly. With Omega the spin, the integral of p Gamma^T is the
# geometric stiffness by centrifugal force (K0_omega of Wallrapp & Schwertassek 1998, *Dynamik
# flexibler Mehrkoerpersysteme*); that by the forces of joints is in the motion of markers.
# --------------------------------------------------------------------------------------------------


# The root mean square of an arc about the line that is nearest to it, where its end stands out by
# one from the tangent at its beginning, is one by the root of 180; the square of a uniform rod's
# length is 12 times that of its radius of gyration.
ARC = 180.0 / 12.0


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


@program(compiling=Compiling.ONCE, of_arrays=True)
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
    second_order: SecondOrderField | None
    coordinates: ProductCoordinates = eqx.field(static=True)

    def _moments(self, eta: Float[Array, " modes"]) -> Moments:
        # With d = phi eta: u_a phi_b = p_a phi_b + d_a phi_b, and u u^T = p p^T + d p^T + u d^T.
        modal = self.mode_second_moment + jnp.einsum("abjk,j->abk", self.mode_products, eta)
        displaced = self.mode_second_moment @ eta
        linear = Moments(
            self.first_moment + self.mode_first_moment @ eta,
            self.second_moment + displaced.T + modal @ eta,
            self.mode_first_moment,
            modal,
            _trace(self.mode_products),
        )
        return linear if self.second_order is None else self.second_order.displaced(linear, eta)

    def mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        del t
        rotation, moments = rotation_from_quaternion(q[3:7]), self._moments(q[7:])
        linear = self.mass * np.eye(3, dtype=q.dtype)
        turning = -composed(rotation, cross_matrix(moments.first))
        moving = rotation @ moments.mode_first
        coupling = _skew_part(moments.modal)
        return jnp.concatenate(
            [
                jnp.concatenate([linear, turning, moving], axis=1),
                jnp.concatenate([turning.T, moments.inertia, coupling], axis=1),
                jnp.concatenate([moving.T, coupling.T, moments.mass], axis=1),
            ]
        )

    def inverse_mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        matrix = self.mass_matrix(q, t)
        if self.second_order is not None:
            return cholesky_solve(cholesky(matrix), jnp.eye(len(matrix), dtype=q.dtype))
        # Of blocks, with the modes eliminated first: their own block is constant, and what is left
        # is of the size of a rigid body (Golub & Van Loan 2013, section 3.2.11).
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
        # displacements of second order Gamma (deta/dt) (deta/dt) is left besides.
        del t
        eta, w, rates = q[7:], v[3:6], v[6:]
        moments, spin = self._moments(eta), cross_matrix(w)
        rotation = rotation_from_quaternion(q[3:7])
        along = rotated(spin, moments.first) + 2 * (moments.mode_first @ rates)
        force = -rotated(composed(rotation, spin), along)
        # The integrals of u_a d_b, and of d_a phi_b.
        flow = moments.modal @ rates
        moving = jnp.einsum("abjk,j->abk", self.mode_products, rates)
        coriolis = _trace(flow) * w - rotated(flow.T, w)
        moment = -rotated(spin, rotated(moments.inertia, w)) - 2 * coriolis
        modal = (w @ w) * _trace(moments.modal) - jnp.einsum("a,abk,b->k", w, moments.modal, w)
        if self.second_order is not None:
            moving = self.second_order.flow(moving, eta, rates)
            bend, turning, work = self.second_order.bending(eta, rates)
            force = force - rotated(rotation, bend)
            moment = moment - _skew_part(turning)
            modal = modal - work
        return jnp.concatenate([force, moment, modal - 2 * (w @ _skew_part(moving))])

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
            deflections=ARC * apart / _trace(second),
            stiffened=self.second_order is not None,
        )

    def weight(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Float[Array, " nv"]:
        own, moments = rotated(rotation_from_quaternion(q[3:7]).T, gravity), self._moments(q[7:])
        moment = rotated(cross_matrix(moments.first), own)
        return jnp.concatenate([self.mass * gravity, moment, own @ moments.mode_first])

    def potential(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Scalar:
        first = rotated(rotation_from_quaternion(q[3:7]), self._moments(q[7:]).first)
        return -(gravity @ (self.mass * q[:3] + first))


@program(compiling=Compiling.ONCE, of_arrays=True)
def modal_inertia(reduced: ReducedBody) -> ModalInertia:
    """The inertia of a `normalised` body."""
    trace, modal = _trace(reduced.inertia), _trace(reduced.mode_products)
    second_moment = 0.5 * trace * jnp.eye(3, dtype=trace.dtype) - reduced.inertia
    return ModalInertia(
        mass=reduced.mass,
        first_moment=reduced.first_moment,
        second_moment=second_moment,
        mode_first_moment=reduced.mode_first_moment,
        mode_second_moment=reduced.mode_second_moment,
        mode_products=reduced.mode_products,
        modal_inverse=cholesky_solve(cholesky(modal), jnp.eye(modal.shape[0], dtype=modal.dtype)),
        stiffness=reduced.stiffness,
        damping=reduced.damping,
        second_order=_field(reduced, second_moment),
        coordinates=modal_coordinates(reduced.stiffness.shape[0]),
    )


def _field(reduced: ReducedBody, second_moment: Matrix3) -> SecondOrderField | None:
    if reduced.second_order is None:
        return None
    first = reduced.first_moment
    whole = jnp.concatenate([reduced.mass[None], first])
    moments = jnp.concatenate(
        [whole[None], jnp.concatenate([first[:, None], second_moment], axis=1)]
    )
    modal = jnp.concatenate([reduced.mode_first_moment[None], reduced.mode_second_moment])
    given = reduced.second_order
    return second_order_field(given.first_moment, given.second_moment, moments, modal)


@program(compiling=Compiling.ONCE, of_arrays=True)
def undeformed_mass_matrix(reduced: ReducedBody) -> Float[Array, "nv nv"]:
    """The mass matrix of the undeformed body along its own axes; the body need not be
    `normalised`."""
    inertia = modal_inertia(normalised(reduced))
    q = jnp.asarray(inertia.coordinates.origin, reduced.mass.dtype)
    return inertia.mass_matrix(q, jnp.zeros_like(reduced.mass))


def _trace(moments: Float[Array, "3 3 *n"]) -> Float[Array, "*n"]:
    """The integral of a . b from that of a_i b_j, at [i, j]."""
    return moments[0, 0] + moments[1, 1] + moments[2, 2]


def _skew_part(moments: Float[Array, "3 3 *n"]) -> Float[Array, "3 *n"]:
    """The integral of a x b from that of a_i b_j, at [i, j]."""
    return jnp.stack(
        [
            moments[1, 2] - moments[2, 1],
            moments[2, 0] - moments[0, 2],
            moments[0, 1] - moments[1, 0],
        ]
    )
