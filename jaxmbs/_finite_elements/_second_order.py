"""Displacements of second order: by them what bends becomes shorter, and forces along a body act on
its bending.

Strains are e(u) + 1/2 eps(u, u). For displacements u = phi eta + 1/2 Gamma eta eta the strains of
second order are 1/2 (e(Gamma_ij) + eps(phi_i, phi_j)) eta_i eta_j, and Gamma is chosen so that
they do no work on any displacement:

    K Gamma_ij = -h_ij,   h_ij = the integral of e^T C eps(phi_i, phi_j).

The strain energy to third order is 1/2 eta K eta then, as of the linear body: what the third
derivative of the energy adds, 1/2 h_ij(phi_k) eta_i eta_j eta_k, K Gamma takes away. A force f does
work on Gamma, which is a geometric stiffness, -f^T Gamma_ij = the stresses that f causes, times
eps(phi_i, phi_j) (Wallrapp & Schwertassek 1991; modal derivatives, Idelsohn & Cardona 1985, hold
that part of them). Where modes turn a part of the body as a rigid one, Gamma is the second order
of the rotation.
"""

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float

from ._craig_bampton import ElasticModes
from ._elements import FiniteElements
from ._factor import Factor
from ._interface import Interface
from ._sparse import SparseMatrix
from ._strains import AbstractStrains


# So many pairs of modes at once: memory against calls.
_CHUNK = 16


def second_order(
    elements: FiniteElements, strains: AbstractStrains, tied: Interface, found: ElasticModes
) -> dict[str, Float[np.ndarray, "..."]]:
    """The fields of `SecondOrder`, by these names. Gamma has no momentum and no angular momentum,
    as the modes have none."""
    expansion, count = tied.expansion, found.shapes.shape[1]
    stiffness: SparseMatrix = sp.csc_array(expansion.T @ elements.stiffness @ expansion)
    # The forces of strains leave a rigid motion alone, so that it does not matter where the body
    # is held to solve for Gamma: here at its first attachment.
    factor = Factor(sp.csc_array(stiffness[6:, 6:]))
    centre = elements.centre_of_mass
    rigid, held_rigid = elements.rigid_motions(centre), tied.rigid_motions(centre)
    weighted = elements.mass @ rigid
    momenta = np.linalg.inv(rigid.T @ weighted) @ weighted.T
    # Of p_a along the axis b.
    axes = elements.displacements.T
    places = elements.points - centre
    moments = np.stack([elements.mass[rows][:, rows] @ places for rows in axes])
    prepared = strains.prepared(found.shapes)
    pairs = np.stack(np.triu_indices(count))
    second = np.zeros((3, 3, count, count))
    held = np.zeros((tied.held, count, count))
    for start in range(0, pairs.shape[1], _CHUNK):
        one, other = pairs[:, start : start + _CHUNK]
        own = tied.second_order(found.held[:, one], found.held[:, other])
        forces = strains.forces(prepared, one, other) + elements.stiffness @ own
        answer = np.zeros((stiffness.shape[0], len(one)))
        answer[6:] = factor.solve(np.ascontiguousarray(-(expansion.T @ forces)[6:]))
        fields = expansion @ answer + own
        part = momenta @ fields
        fields = fields - rigid @ part
        at_attachments = answer[: tied.held] - held_rigid @ part
        moment = np.einsum("bka,bkn->abn", moments, fields[axes])
        for i, j in ((one, other), (other, one)):
            held[:, i, j] = at_attachments
            # The odd part is angular momentum, which is zero.
            second[:, :, i, j] = (moment + moment.transpose(1, 0, 2)) / 2
    nodes = held.reshape(tied.held // 6, 2, 3, count, count)
    return {
        "first_moment": np.zeros((3, count, count)),
        "second_moment": second,
        "translations": nodes[:, 0],
        "rotations": nodes[:, 1],
    }
