"""Data by which finite elements evaluate the strains of second-order displacements."""

import abc
from typing import Any

import equinox as eqx
import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float, Int

from ._sparse import SparseMatrix


# Stiffnesses of a pair of nodes count as symmetric, and as those of an element, within this part of
# their largest entry.
_ROUNDING = 1e-6


class AbstractStrains(eqx.Module):
    """The strains of second order of a body in finite elements."""

    @abc.abstractmethod
    def prepared(self, shapes: Float[np.ndarray, "dof modes"]) -> Any:
        """Data computed once for all pairs of these modes."""

    @abc.abstractmethod
    def forces(
        self, prepared: Any, first: Int[np.ndarray, " pairs"], second: Int[np.ndarray, " pairs"]
    ) -> Float[np.ndarray, "dof pairs"]:
        """For each pair of modes, the nodal forces of the stresses C eps(phi_i, phi_j), where the
        strains of phi eta are e(phi) eta + 1/2 eps(phi, phi) eta eta."""


class SolidStrains(AbstractStrains):
    """Strains of solid elements: Green's strains, eps(u, w) = sym(grad u^T grad w).

    `nodes` (elements, n); `slopes` (elements, n, 3, points): derivatives of the shape functions
    along x, y, z at the points of quadrature, `weights` (elements, points); `lame`: Lame's
    constants (Pa); `size`: how many degrees of freedom there are.
    """

    nodes: Int[np.ndarray, "elements n"]
    slopes: Float[np.ndarray, "elements n 3 points"]
    weights: Float[np.ndarray, "elements points"]
    lame: tuple[float, float]
    size: int

    def prepared(self, shapes: Float[np.ndarray, "dof modes"]) -> Any:
        """The gradients d u_a / d x_b of the modes, (elements, points, a, b, modes)."""
        moved = shapes[self.rows].reshape(*self.nodes.shape, 3, -1)
        return np.einsum("ekbq,ekam->eqabm", self.slopes, moved, optimize=True)

    @property
    def rows(self) -> Int[np.ndarray, "elements rows"]:
        """The degrees of freedom of each element."""
        return (3 * self.nodes[:, :, None] + np.arange(3)).reshape(len(self.nodes), -1)

    def forces(
        self, prepared: Any, first: Int[np.ndarray, " pairs"], second: Int[np.ndarray, " pairs"]
    ) -> Float[np.ndarray, "dof pairs"]:
        product = np.einsum(
            "eqcan,eqcbn->eqabn", prepared[..., first], prepared[..., second], optimize=True
        )
        strain = (product + product.swapaxes(2, 3)) / 2
        lame, mu = self.lame
        spread = np.einsum("eqaan->eqn", strain)[:, :, None, None] * np.eye(3)[:, :, None]
        stress = (lame * spread + 2 * mu * strain) * self.weights[:, :, None, None, None]
        elements, count, _, points = self.slopes.shape
        # Of each element: nodes by (b, points), times (b, points) by (a, pairs).
        left = self.slopes.reshape(elements, count, 3 * points)
        right = stress.transpose(0, 3, 1, 2, 4).reshape(elements, 3 * points, -1)
        blocks = (left @ right).reshape(elements * count * 3, len(first))
        return _sum_onto(self.rows.ravel(), blocks, self.size)


class BeamStrains(AbstractStrains):
    """Strains of elements between two nodes that have rotations, such as beams: their deformation
    in a frame that turns with the chord from one node to the other, and the bowing between them.

    `rows` (elements, 12): degrees of freedom of both nodes; `stiffness` (elements, 12, 12);
    `chords` (elements, 3): from the first node to the second (m); `size`: of all degrees of
    freedom.
    """

    rows: Int[np.ndarray, "elements 12"]
    stiffness: Float[np.ndarray, "elements 12 12"]
    chords: Float[np.ndarray, "elements 3"]
    size: int

    def prepared(self, shapes: Float[np.ndarray, "dof modes"]) -> Any:
        """Motion of the nodes (elements, 3, modes): the displacement of the second relative to the
        first, the rotation of the element, and those of both nodes."""
        moved = shapes[self.rows]
        apart = moved[:, 6:9] - moved[:, :3]
        turns = moved[:, 3:6], moved[:, 9:12]
        mean = (turns[0] + turns[1]) / 2
        length = np.linalg.norm(self.chords, axis=1)
        long = length > 0
        axis = self.chords / np.where(long, length, 1.0)[:, None]
        along = axis[:, :, None] * np.einsum("ea,eam->em", axis, mean)[:, None]
        across = np.cross(axis[:, :, None], apart, axis=1)
        across = across / np.where(long, length, 1.0)[:, None, None]
        turned = np.where(long[:, None, None], along + across, mean)
        return apart, turned, turns

    def forces(
        self, prepared: Any, first: Int[np.ndarray, " pairs"], second: Int[np.ndarray, " pairs"]
    ) -> Float[np.ndarray, "dof pairs"]:
        apart, turned, turns = prepared
        chord = np.broadcast_to(self.chords[:, :, None], (*self.chords.shape, len(first)))
        deformed = np.zeros((len(self.rows), 12, len(first)))
        for one, other in ((first, second), (second, first)):
            turn = turned[..., one]
            # R^T (r + u) - r and the rotation log(R^T R_k), both to second order, with R the turn
            # of the element.
            deformed[:, 6:9] -= np.cross(turn, apart[..., other], axis=1)
            twice = np.cross(turn, np.cross(turned[..., other], chord, axis=1), axis=1)
            deformed[:, 6:9] += twice / 2
            for k, own in enumerate(turns):
                rows = slice(6 * k + 3, 6 * k + 6)
                deformed[:, rows] -= np.cross(turn, own[..., other], axis=1) / 2
        # A cubic bow of slopes a and b at the ends is longer than its chord by half of
        # l (4 a a - 2 a b + 4 b b) / 30. Slopes are turns across the chord, r x turn / l.
        slopes = [np.cross(own - turned, self.chords[:, :, None], axis=1) for own in turns]
        left, right = [x[..., first] for x in slopes], [x[..., second] for x in slopes]
        weights = np.array([[4.0, -1.0], [-1.0, 4.0]]) / 30
        bow = sum(
            weights[k, m] * np.sum(left[k] * right[m], axis=1) for k in range(2) for m in range(2)
        )
        square = np.sum(self.chords**2, axis=1)
        square = np.where(square > 0, square, 1.0)
        deformed[:, 6:9] += chord * (bow / square[:, None])[:, None]
        blocks = (self.stiffness @ deformed).reshape(-1, len(first))
        return _sum_onto(self.rows.ravel(), blocks, self.size)


def beam_strains(
    stiffness: SparseMatrix,
    points: Float[np.ndarray, "nodes 3"],
    first_dof: Int[np.ndarray, " nodes"],
    rotating: Bool[np.ndarray, " nodes"],
) -> BeamStrains | None:
    """The elements of a stiffness matrix, if all lie between two nodes that have rotations; else
    None.

    What couples two nodes, K_ij, belongs to one element then. A rigid motion (matrices R_i, R_j of
    its nodes' displacements) takes no force, so that K_ii = -K_ij R_j R_i^-1 of that element, and
    K_jj likewise. Elements of more nodes leave pairs that are not symmetric, or not positive.
    """
    if not np.all(rotating):
        return None
    node_of = np.empty(stiffness.shape[0], int)
    node_of[(first_dof[:, None] + np.arange(6)).ravel()] = np.repeat(np.arange(len(points)), 6)
    entries = stiffness.tocoo()
    ends = np.stack([node_of[x] for x in entries.coords])
    ends = np.unique(ends[:, ends[0] < ends[1]], axis=1)
    if ends.shape[1] == 0:
        return None
    rows = np.concatenate([first_dof[k][:, None] + np.arange(6) for k in ends], axis=1)
    coupling = np.stack([stiffness[r[:6]][:, r[6:]].toarray() for r in rows])
    chords = points[ends[1]] - points[ends[0]]
    # A rigid motion of the second node by that of the first: u + theta x r.
    carried = np.zeros((len(rows), 6, 6))
    carried[:] = np.eye(6)
    x, y, z = chords.T
    carried[:, 0, 4], carried[:, 0, 5], carried[:, 1, 5] = z, -y, x
    carried[:, 1, 3], carried[:, 2, 3], carried[:, 2, 4] = -z, y, -x
    own = -coupling @ carried
    other = -coupling.transpose(0, 2, 1) @ np.linalg.inv(carried)
    whole = np.concatenate(
        [
            np.concatenate([own, coupling], axis=2),
            np.concatenate([coupling.transpose(0, 2, 1), other], axis=2),
        ],
        axis=1,
    )
    # Rotations as displacements at half of the chord, or of the body where there is no chord:
    # entries of one unit.
    length = np.linalg.norm(chords, axis=1)
    unit = np.where(length > 0, length, np.max(np.ptp(points, axis=0))) / 2
    scale = np.where(np.arange(12) % 6 < 3, 1.0, 1 / unit[:, None])
    scaled = whole * scale[:, :, None] * scale[:, None]
    size = np.max(np.abs(scaled), axis=(1, 2))
    uneven = np.max(np.abs(scaled - scaled.transpose(0, 2, 1)), axis=(1, 2))
    if np.any(uneven > _ROUNDING * size):
        return None
    least = np.linalg.eigvalsh((scaled + scaled.transpose(0, 2, 1)) / 2)[:, 0]
    if np.any(least < -_ROUNDING * size):
        return None
    even = (whole + whole.transpose(0, 2, 1)) / 2
    return BeamStrains(rows, even, chords, stiffness.shape[0])


def _sum_onto(
    rows: Int[np.ndarray, " n"], values: Float[np.ndarray, "n pairs"], size: int
) -> Float[np.ndarray, "size pairs"]:
    """Values of repeated degrees of freedom, summed."""
    gather = sp.coo_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), (size, len(rows)))
    return gather.tocsr() @ values
