import numpy as np
import scipy.linalg
from jaxtyping import Float

from ._elements import FiniteElements


# e_abc: of the vector product.
_PERMUTATION = np.array(
    [[[(a - b) * (b - c) * (c - a) / 2 for c in range(3)] for b in range(3)] for a in range(3)]
)


def inertia_integrals(
    elements: FiniteElements, shapes: Float[np.ndarray, "dof modes"]
) -> dict[str, Float[np.ndarray, "..."]]:
    """The inertia shape integrals of modes about the centre of mass, by the names of `ReducedBody`.

    Positions and modes are both fields of the finite elements, so with the consistent mass matrix
    integrals of their products are products of that matrix with the nodes' values, and exact: of
    p_a phi_b, sum over nodes k, l of p_ka m_kl phi_lb, where m_kl is the integral of N_k N_l dm.

    That m is read off the displacements' rows of M. Where the mass along x, y and z differs, or
    where rotations have mass (beams and shells), it is their mean, and the remainder is restored
    where M itself determines it: in the modes' momentum and angular momentum, which act on a body
    to first order (`mode_first_moment` and the part of `mode_second_moment` that is odd in a and
    b), and in the modal mass (the sum over a = b of `mode_products`).

    Shabana (2020, section 5.3).
    """
    centre = elements.centre_of_mass
    moved = elements.displacements
    places = elements.points - centre
    scalar = elements.node_mass
    motions = elements.rigid_motions(centre)
    momenta = motions.T @ (elements.mass @ shapes)
    # Nodes, axes, modes.
    field = shapes[moved]
    count = shapes.shape[1]
    weighted = (scalar @ field.reshape(len(moved), -1)).reshape(field.shape)
    second = np.einsum("ka,kbi->abi", places, weighted)
    turned = momenta[3:] - np.einsum("cab,abi->ci", _PERMUTATION, second)
    second += np.einsum("cab,ci->abi", _PERMUTATION, turned) / 2
    flat = field.reshape(len(moved), -1)
    products = (flat.T @ weighted.reshape(len(moved), -1)).reshape(3, count, 3, count)
    products = products.transpose(0, 2, 1, 3)
    modal = shapes.T @ (elements.mass @ shapes)
    products = _no_more_than(modal, products)
    rest = modal - np.einsum("aaij->ij", products)
    products = products + np.einsum("ab,ij->abij", np.eye(3), rest) / 3
    return {
        "mass": np.array(elements.total_mass),
        "first_moment": _momentum_of_turns(motions, elements),
        "inertia": elements.inertia,
        "mode_first_moment": momenta[:3],
        "mode_second_moment": second,
        "mode_products": products,
    }


def _no_more_than(
    modal: Float[np.ndarray, "modes modes"], products: Float[np.ndarray, "3 3 modes modes"]
) -> Float[np.ndarray, "3 3 modes modes"]:
    """Fields that move more mass than M does, reduced accordingly: with a negative remainder, the
    mass matrix of a bent body would not be positive definite."""
    if not len(modal):
        return products
    shares, basis = scipy.linalg.eigh(np.einsum("aaij->ij", products), modal)
    smaller = (basis / np.sqrt(np.maximum(shares, 1.0))) @ basis.T @ modal
    return np.einsum("ki,abkl,lj->abij", smaller, products, smaller)


def _momentum_of_turns(
    motions: Float[np.ndarray, "dof 6"], elements: FiniteElements
) -> Float[np.ndarray, "3"]:
    """The first moment of mass: column a of the momenta of turns is e_a x (m c)."""
    coupling = motions[:, :3].T @ (elements.mass @ motions[:, 3:])
    return np.einsum("abc,bc->a", _PERMUTATION, coupling) / 2
