import equinox as eqx
from jaxtyping import Array, Float

from .._custom_types import Matrix3, Scalar, Vector3


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
