"""Finite elements: their matrices, the strains of second-order displacements, and integrals over
their mass.
"""

import abc
from typing import Any, TYPE_CHECKING, TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.sparse as sp
from jaxtyping import Array, Bool, Float, Int
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from .. import _settings
from .._bodies import ReducedBody
from .._checks import listed, shown
from .._custom_types import NumberList, Setting
from .._errors import ModelError


if TYPE_CHECKING:
    SparseMatrix: TypeAlias = Any
else:
    SparseMatrix: TypeAlias = sp.csc_array


# SciPy's own annotations leave shapes and products of sparse arrays undecided.


class Factor:
    """L D L^T of a sparse symmetric matrix, by SuperLU with pivots on the diagonal.

    The signs of the pivots are those of the eigenvalues (Sylvester's law of inertia), so the matrix
    is positive definite if all are positive. A pivot that is zero to rounding indicates a singular
    one.
    """

    def __init__(self, matrix: SparseMatrix):
        self._matrix = matrix
        try:
            self._lu = splu(
                matrix,
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError:
            # Exactly singular.
            self.positive_definite = False
            return
        pivots = self._lu.U.diagonal()
        on_diagonal = np.array_equal(self._lu.perm_r, self._lu.perm_c)
        # What is left of a diagonal entry: of a singular matrix, rounding of its size.
        size = np.abs(matrix.diagonal())[np.argsort(self._lu.perm_c)]
        self.positive_definite = bool(on_diagonal and _above_rounding(pivots, size).all())

    def solve(self, right: Float[np.ndarray, "n ..."]) -> Float[np.ndarray, "n ..."]:
        return self._lu.solve(right)


def _above_rounding(
    pivots: Float[np.ndarray, " n"], size: Float[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    return pivots > 1e-13 * size


# --------------------------------------------------------------------------------------------------
# Data by which finite elements evaluate the strains of second-order displacements.
# --------------------------------------------------------------------------------------------------


# Stiffnesses of a pair of nodes count as symmetric, and as those of an element, within this part of
# their largest entry.
_ROUNDING_OF_STRAINS = 1e-6


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
    if np.any(uneven > _ROUNDING_OF_STRAINS * size):
        return None
    least = np.linalg.eigvalsh((scaled + scaled.transpose(0, 2, 1)) / 2)[:, 0]
    if np.any(least < -_ROUNDING_OF_STRAINS * size):
        return None
    even = (whole + whole.transpose(0, 2, 1)) / 2
    return BeamStrains(rows, even, chords, stiffness.shape[0])


def _sum_onto(
    rows: Int[np.ndarray, " n"], values: Float[np.ndarray, "n pairs"], size: int
) -> Float[np.ndarray, "size pairs"]:
    """Values of repeated degrees of freedom, summed."""
    gather = sp.coo_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), (size, len(rows)))
    return gather.tocsr() @ values


# Of what is symmetric, and of forces that cancel in a rigid motion: rounding of what was computed
# in double precision is at 1e-14, that of numbers printed with ten digits at 1e-10.
_ROUNDING = 1e-8


class FiniteElements(eqx.Module):
    """An elastic body in finite elements: mass and stiffness of the displacements of its nodes.

    M u'' + K u = f for small displacements u from rest, free in space: no node is held. A node has
    three displacements, or three displacements and three rotations (beams and shells). `tube`,
    `plate` and `solid` make one; another program's matrices make one here or by `read_matrices`.

    **Arguments:**

    - `mass`, `stiffness` (dof, dof): sparse or dense, symmetric, the mass positive definite; in kg,
      kg m, kg m^2 and N/m, N, N m.
    - `points` (nodes, 3): where the nodes lie (m).
    - `first_dof` (nodes,): the row of each node's displacement along x, counted from zero; those
      along y and z follow, then the rotations about x, y, z where the node has any: it has where
      its rows are six. Default: the nodes follow each other, with as many rows each as there are.
    - `names`: of the nodes, empty where a node needs none; default: none has a name.
    - `strains`: data of `solid` for the strains of second order. Default: that of the beams, if
      all nodes have rotations and the stiffness is that of elements between two nodes each; else
      None, and forces along the body cannot act on its bending.

    **Raises:** `ModelError` for matrices that are not symmetric, not finite or of the wrong size,
    for a mass that is not positive definite, for nodes that belong to no element, for parts that
    are not connected, and for a stiffness that resists rigid motions.
    """

    mass: SparseMatrix
    stiffness: SparseMatrix
    points: Float[np.ndarray, "nodes 3"]
    first_dof: Int[np.ndarray, " nodes"]
    names: tuple[str, ...] = eqx.field(static=True)
    strains: AbstractStrains | None

    def __init__(
        self,
        mass: Any,
        stiffness: Any,
        points: Setting[NumberList],
        first_dof: Any = None,
        names: Any = (),
        *,
        strains: Setting[AbstractStrains | None] = None,
    ):
        self.points = _points(points)
        self.mass = _matrix(mass, "mass")
        self.stiffness = _matrix(stiffness, "stiffness")
        count = self.mass.shape[0]
        if self.stiffness.shape[0] != count:
            raise ModelError(
                f"mass has {count} rows and stiffness {self.stiffness.shape[0]}; give both in the "
                "same degrees of freedom."
            )
        self.first_dof = _first_dof(first_dof, len(self.points), count)
        self.names = _names(names, len(self.points))
        _check_nodes(self)
        _check_rigid_motions(self)
        if not Factor(self.mass).positive_definite:
            raise ModelError(
                "mass is not positive definite: some motion would have no mass; give every degree "
                "of freedom some, also rotations, or condense those that have none."
            )
        if strains is None:
            self.strains = beam_strains(self.stiffness, self.points, self.first_dof, self.rotating)
        else:
            such_as = "the `strains` of what solid(...) returns"
            self.strains = _settings.instance(strains, AbstractStrains, "strains", such_as)

    @property
    def rotating(self) -> Bool[np.ndarray, " nodes"]:
        """Mask of the nodes that have rotations."""
        order = np.argsort(self.first_dof)
        ends = np.append(self.first_dof[order][1:], self.mass.shape[0])
        answer = np.empty(len(order), bool)
        answer[order] = ends - self.first_dof[order] == 6
        return answer

    @property
    def displacements(self) -> Int[np.ndarray, "nodes 3"]:
        """The rows of the displacements of the nodes."""
        return self.first_dof[:, None] + np.arange(3)

    @property
    def node_mass(self) -> SparseMatrix:
        """The integral of N_k N_l dm of the nodes' shape functions (nodes, nodes): the same along
        x, y and z in solid elements, the mean of the three where they differ."""
        x, y, z = self.displacements.T
        blocks = [self.mass[rows][:, rows] for rows in (x, y, z)]
        return sp.csc_array((blocks[0] + blocks[1] + blocks[2]) / 3)

    def rigid_motions(self, origin: Float[np.ndarray, "3"]) -> Float[np.ndarray, "dof 6"]:
        """Unit displacements along x, y, z, and unit rotations about these axes through `origin`,
        as displacements of all nodes."""
        motions = np.zeros((self.mass.shape[0], 6))
        motions[self.displacements, :3] = np.eye(3)
        motions[self.displacements, 3:] = turning(self.points - origin)
        motions[self.first_dof[self.rotating, None] + np.arange(3, 6), 3:] = np.eye(3)
        return motions

    @property
    def total_mass(self) -> float:
        """kg."""
        motions = self.rigid_motions(np.zeros(3))[:, :3]
        return float(np.trace(motions.T @ (self.mass @ motions)) / 3)

    @property
    def centre_of_mass(self) -> Float[np.ndarray, "3"]:
        """Centre of mass in the frame of the points (m)."""
        motions = self.rigid_motions(np.zeros(3))
        coupling = motions[:, :3].T @ (self.mass @ motions[:, 3:])
        # The columns are m e_a x c.
        return (
            np.array(
                [
                    coupling[1, 2] - coupling[2, 1],
                    coupling[2, 0] - coupling[0, 2],
                    coupling[0, 1] - coupling[1, 0],
                ]
            )
            / 2
            / self.total_mass
        )

    @property
    def inertia(self) -> Float[np.ndarray, "3 3"]:
        """About the centre of mass (kg m^2)."""
        turns = self.rigid_motions(self.centre_of_mass)[:, 3:]
        return turns.T @ (self.mass @ turns)


def turning(offsets: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "n 3 3"]:
    """The matrix of theta x r at each offset r."""
    x, y, z = offsets.T
    o = np.zeros_like(x)
    rows = [[o, z, -y], [-z, o, x], [y, -x, o]]
    return np.moveaxis(np.array(rows), -1, 0)


def _points(value: Any) -> Float[np.ndarray, "nodes 3"]:
    try:
        points = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"points must be numbers, three for each node, got {shown(value)}.") from (
            None
        )
    if points.ndim != 2 or points.shape[1] != 3 or len(points) == 0:
        raise ModelError(
            f"points must have shape [nodes, 3], x, y and z of each node, got {list(points.shape)}."
        )
    if not np.all(np.isfinite(points)):
        bad = np.flatnonzero(~np.all(np.isfinite(points), axis=1))
        raise ModelError(f"points must be finite; those of the nodes {listed(bad)} are not.")
    return points


def _matrix(value: Any, what: str) -> SparseMatrix:
    """Square, finite and symmetric; made exactly symmetric."""
    if np.iscomplexobj(value) or getattr(value, "dtype", np.dtype(float)).kind == "c":
        raise ModelError(f"{what} must be a matrix of real numbers, got complex ones.")
    try:
        matrix: SparseMatrix = sp.csc_array(value, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(
            f"{what} must be a square matrix of real numbers, got {shown(value)}."
        ) from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ModelError(f"{what} must be a square matrix, got shape {list(matrix.shape)}.")
    if not np.all(np.isfinite(matrix.data)):
        raise ModelError(f"{what} must be finite; it holds {shown(_first_not_finite(matrix))}.")
    largest = np.max(np.abs(matrix.data), initial=0.0)
    apart = abs(matrix - matrix.T)
    if apart.nnz and apart.max() > _ROUNDING * largest:
        k = int(np.argmax(apart.tocoo().data))
        row, column = (int(x[k]) for x in apart.tocoo().coords)
        raise ModelError(
            f"{what} must be symmetric; its entries [{row}, {column}] and [{column}, {row}] are "
            f"{matrix[row, column]:g} and {matrix[column, row]:g}."
        )
    return sp.csc_array((matrix + matrix.T) / 2)


def _first_not_finite(matrix: SparseMatrix) -> float:
    return float(matrix.data[~np.isfinite(matrix.data)][0])


def _first_dof(value: Any, nodes: int, count: int) -> Int[np.ndarray, " nodes"]:
    if value is None:
        if count not in (3 * nodes, 6 * nodes):
            raise ModelError(
                f"the matrices have {count} rows, which is neither 3 nor 6 for each of {nodes} "
                "points; say with first_dof where the rows of each node begin."
            )
        return np.arange(nodes) * (count // nodes)
    try:
        first = np.asarray(value)
    except ValueError:
        # Lists of unequal lengths.
        first = np.zeros(())
    if first.shape != (nodes,) or not np.issubdtype(first.dtype, np.integer):
        raise ModelError(
            f"first_dof must be one whole number for each of {nodes} points, got {shown(value)}."
        )
    ends = np.sort(first)
    widths = np.diff(np.append(ends, count))
    wrong = np.flatnonzero((widths != 3) & (widths != 6))
    if ends[0] != 0 or wrong.size:
        at = int(ends[0]) if ends[0] != 0 else int(ends[wrong[0]])
        raise ModelError(
            "first_dof must begin at 0 and leave each node 3 or 6 rows of the "
            f"{count} that the matrices have; it does not at the node whose first is {at}."
        )
    return first.astype(int)


def _names(value: Any, nodes: int) -> tuple[str, ...]:
    names = tuple(value) if isinstance(value, list | tuple) else None
    if names is None:
        raise ModelError(f"names must be one text for each of {nodes} points, got {shown(value)}.")
    if not names:
        return ("",) * nodes
    if len(names) != nodes or not all(isinstance(x, str) for x in names):
        raise ModelError(f"names must be one text for each of {nodes} points, got {shown(value)}.")
    given = [x for x in names if x]
    twice = [x for x in dict.fromkeys(given) if given.count(x) > 1]
    if twice:
        raise ModelError(f"names must differ; {listed(twice)} stands more than once.")
    return names


def _check_nodes(elements: FiniteElements) -> None:
    """No free nodes, and one connected body."""
    widths = np.where(elements.rotating, 6, 3)
    node_of = np.empty(elements.mass.shape[0], int)
    for first, width, node in zip(elements.first_dof, widths, range(len(widths)), strict=True):
        node_of[first : first + width] = node
    for what, matrix in (("mass", elements.mass), ("stiffness", elements.stiffness)):
        empty = np.unique(node_of[matrix.diagonal() == 0])
        if empty.size:
            raise ModelError(
                f"the nodes {listed(empty)} are free: their rows of the {what} are zero, as of "
                "nodes that belong to no element; leave them out."
            )
    pattern = (abs(elements.stiffness) + abs(elements.mass)).tocoo()
    rows, columns = (node_of[x] for x in pattern.coords)
    links = sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(widths),) * 2)
    parts, labels = connected_components(links, directed=False)
    if parts > 1:
        smallest = np.argmin(np.bincount(labels))
        raise ModelError(
            f"the mesh falls into {parts} parts that nothing connects, one of them the nodes "
            f"{listed(np.flatnonzero(labels == smallest))}; merge nodes at the same place, or make "
            "a body of each part."
        )


def _check_rigid_motions(elements: FiniteElements) -> None:
    """A free body moves as a rigid one without force."""
    middle = elements.points.mean(axis=0)
    motions = elements.rigid_motions(middle)
    force = np.abs(elements.stiffness @ motions)
    size = abs(elements.stiffness) @ np.abs(motions)
    resisted = np.any(force > _ROUNDING * np.max(size, axis=0), axis=0)
    if np.any(resisted[:3]):
        raise ModelError(
            "stiffness resists translations of the whole body: some node is held or tied to the "
            "ground; give the matrix of the free body."
        )
    if np.any(resisted[3:]):
        raise ModelError(
            "stiffness resists rotations of the whole body: the points or first_dof do not belong "
            "to these matrices (units, order of the nodes), or a node is held."
        )


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


def axial_stiffness(
    reduced: Setting[ReducedBody], nodes: Setting[list[str] | tuple[str, ...]]
) -> Float[Array, ""]:
    """The stiffness (N/m) of a reduced body between two of its nodes, along the line through both:
    that of the rod (`elastic.Rod`) which takes its place.

    Opposite forces F on the nodes, along the line, bring them nearer by u; then F = k u, with

        1 / k = d^T K^-1 d,   d = e . (phi_2 - phi_1),

    K the stiffness of the modes, phi their displacements of both nodes, e the line's direction.
    Craig-Bampton modes hold this deformation whatever the number of normal modes.

    **Arguments:** `reduced`: of `reduce` or `load`. `nodes`: two names.

    **Raises:** `TypeError` or `ValueError` for a value that is not a reduced body, and for names
    that are not two of its nodes.
    """
    reduced = _settings.instance(reduced, ReducedBody, "reduced", "what reduce(...) returns")
    names = _settings.names(nodes, "nodes", '["A", "B"]')
    if len({*names}) != 2 or len(names) != 2 or not {*names} <= {*reduced.nodes}:
        raise ValueError(
            f"nodes must be two nodes of the reduced body, which are {listed(reduced.nodes)}, got "
            f"{listed(names)}."
        )
    first, second = (reduced.nodes.index(name) for name in names)
    line = np.asarray(reduced.points[second] - reduced.points[first], float)
    moved = np.asarray(reduced.translations[second] - reduced.translations[first], float)
    along = (line / np.linalg.norm(line)) @ moved
    return jnp.asarray(1 / (along @ np.linalg.solve(np.asarray(reduced.stiffness, float), along)))
