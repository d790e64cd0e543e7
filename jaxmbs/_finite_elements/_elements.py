from typing import Any

import equinox as eqx
import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float, Int
from scipy.sparse.csgraph import connected_components

from .. import _settings
from .._checks import listed, shown
from .._custom_types import NumberList, Setting
from .._errors import ModelError
from ._factor import Factor
from ._sparse import SparseMatrix
from ._strains import AbstractStrains, beam_strains


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
