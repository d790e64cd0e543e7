"""Attachments: which nodes of a mesh they are tied to, how, and the modes of their interface."""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np
import scipy.linalg
import scipy.sparse as sp
from jaxtyping import Bool, Float, Int

from .. import _settings
from .._checks import listed, name as checked_name, shown
from .._custom_types import NumberList, Setting
from .._errors import ModelError
from ._elements import FiniteElements, SparseMatrix, turning


# --------------------------------------------------------------------------------------------------
# Which nodes of a mesh an attachment is tied to.
# --------------------------------------------------------------------------------------------------


class AbstractNodeSet(eqx.Module):
    """Nodes of a mesh, chosen by where they lie or by what they are called."""

    @abc.abstractmethod
    def choose(
        self, elements: FiniteElements, point: Float[np.ndarray, "3"] | None
    ) -> Int[np.ndarray, " chosen"]:
        """Their numbers, in order. `point`: the attachment's own, in the frame of the mesh (m);
        None where it has none yet.

        **Raises:** `ModelError` where nodes that were named are not there.
        """


class NodesOnPlane(AbstractNodeSet):
    """The nodes on the plane through the attachment's point, such as the end ring of a tube.

    **Arguments:** `normal`: of the plane, any length. `radius`: only those at most as far from the
    point (m); None: all. `tolerance`: distance from the plane that still counts as on it (m); None:
    a millionth of the mesh's extent.
    """

    normal: Float[np.ndarray, "3"]
    radius: float | None
    tolerance: float | None

    def __init__(
        self,
        normal: Setting[NumberList],
        *,
        radius: Setting[float | None] = None,
        tolerance: Setting[float | None] = None,
    ):
        known = np.asarray(_settings.vector(normal, "normal", size=3), float)
        length = np.linalg.norm(known)
        if length == 0:
            raise ValueError("normal has zero length; give a vector across the plane meant.")
        self.normal = known / length
        self.radius = _optional_length(radius, "radius")
        self.tolerance = _optional_length(tolerance, "tolerance")

    def choose(
        self, elements: FiniteElements, point: Float[np.ndarray, "3"] | None
    ) -> Int[np.ndarray, " chosen"]:
        offsets = elements.points - _given(point)
        extent = np.linalg.norm(np.ptp(elements.points, axis=0))
        tolerance = 1e-6 * extent if self.tolerance is None else self.tolerance
        near = np.abs(offsets @ self.normal) <= tolerance
        if self.radius is not None:
            near &= np.linalg.norm(offsets, axis=1) <= self.radius
        return np.flatnonzero(near)


class NodesWithin(AbstractNodeSet):
    """The nodes at most `radius` (m) from the attachment's point."""

    radius: float

    def __init__(self, radius: Setting[float]):
        self.radius = _settings.known_number(radius, "radius", above=0)

    def choose(
        self, elements: FiniteElements, point: Float[np.ndarray, "3"] | None
    ) -> Int[np.ndarray, " chosen"]:
        distances = np.linalg.norm(elements.points - _given(point), axis=1)
        return np.flatnonzero(distances <= self.radius)


class NodeNumbers(AbstractNodeSet):
    """The nodes of these numbers, counted from zero."""

    numbers: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, numbers: Setting[NumberList]):
        try:
            given = np.atleast_1d(np.asarray(numbers))
        except ValueError:
            # Lists of unequal lengths.
            given = np.zeros(())
        if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
            raise TypeError(
                f"numbers must be a list of whole numbers, at least one, got {numbers!r}."
            )
        self.numbers = tuple(sorted({int(k) for k in given}))

    def choose(
        self, elements: FiniteElements, point: Float[np.ndarray, "3"] | None
    ) -> Int[np.ndarray, " chosen"]:
        del point
        count = len(elements.points)
        missing = [k for k in self.numbers if not 0 <= k < count]
        if missing:
            raise ModelError(
                f"the nodes {listed(missing)} are not among the mesh's, which are 0 to {count - 1}."
            )
        return np.array(self.numbers, int)


class NodesNamed(AbstractNodeSet):
    """The nodes of these names, as a table of imported nodes gives them."""

    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, names: Setting[list[str] | tuple[str, ...]]):
        self.names = _settings.names(names, "names", "['A', 'B']")

    def choose(
        self, elements: FiniteElements, point: Float[np.ndarray, "3"] | None
    ) -> Int[np.ndarray, " chosen"]:
        del point
        known = {name: k for k, name in enumerate(elements.names) if name}
        missing = [name for name in self.names if name not in known]
        if missing:
            raise ModelError(f"no node is called {listed(missing)}; there are {listed(known)}.")
        return np.array(sorted({known[name] for name in self.names}), int)


def _given(point: Float[np.ndarray, "3"] | None) -> Float[np.ndarray, "3"]:
    if point is None:
        raise ModelError(
            "nodes chosen by where they lie need the attachment's point; give point=[x, y, z]."
        )
    return point


def _optional_length(value: Any, what: str) -> float | None:
    return None if value is None else _settings.known_number(value, what, above=0)


# --------------------------------------------------------------------------------------------------
# Connections of attachments to nodes.
#
# An attachment has six degrees of freedom of its own, and lies where the body may have no material.
# --------------------------------------------------------------------------------------------------


class Tie(NamedTuple):
    """Degrees of freedom of nodes that follow from others: u_d = `motion` u_interface + `others`
    u_rest. `dependent`: which of the nodes' degrees of freedom are u_d; the rest, in order, is
    u_rest."""

    dependent: Int[np.ndarray, " d"]
    motion: Float[np.ndarray, "d 6"]
    others: Float[np.ndarray, "d rest"]


class AbstractConnection(eqx.Module):
    """The tie between an attachment of six degrees of freedom and nodes.

    `uses_rotations`: does one node with rotations determine the attachment's?
    """

    uses_rotations: eqx.AbstractClassVar[bool]

    @abc.abstractmethod
    def tie(
        self,
        offsets: Float[np.ndarray, "n 3"],
        rotating: Bool[np.ndarray, " n"],
        masses: Float[np.ndarray, " n"],
    ) -> Tie:
        """The degrees of freedom that the tie removes.

        `offsets`: of the nodes from the attachment (m). `rotating`: which have rotations: their
        degrees of freedom are six, the others' three, node by node. `masses` (kg): a part of the
        body's mass for each.
        """


class RigidConnection(AbstractConnection):
    """The nodes follow the attachment's motion as parts of one rigid body (RBE2).

    The displacement of a node at r from the attachment is u + theta x r, its rotation, if it has
    any, theta. So the nodes' own degrees of freedom go, and the ring cannot change its form: the
    body becomes a little stiffer than it is.
    """

    uses_rotations: ClassVar[bool] = True

    def tie(
        self,
        offsets: Float[np.ndarray, "n 3"],
        rotating: Bool[np.ndarray, " n"],
        masses: Float[np.ndarray, " n"],
    ) -> Tie:
        del masses
        motion = nodal_motion(offsets, rotating)
        return Tie(np.arange(len(motion)), motion, np.zeros((len(motion), 0)))


class AveragedConnection(AbstractConnection):
    """The attachment moves with the average of the nodes, which stay free to deform (RBE3).

    Its motion (u, theta) is that rigid motion which is nearest to the nodes' displacements u_k, by
    least squares: sum of w_k |u_k - u - theta x r_k|^2 is least. By the principle of virtual work a
    force and a torque at the attachment are spread over the nodes by the same weights. The
    weights w_k are the nodes' own masses (the diagonal of the mass matrix), which follow the nodes'
    share of the volume, so that a finer mesh gives the same average. Rotations of nodes are left
    alone.

    Here the attachment depends on the nodes, whereas a reduction needs its motion as a coordinate.
    The six equations are solved for six displacements of the nodes, those that they determine best
    (pivoted QR), which leaves the attachment's motion and all other displacements independent. That
    is a change of coordinates, no approximation: the space of motions is the same as with Lagrange
    multipliers, and the matrices stay positive definite.
    """

    uses_rotations: ClassVar[bool] = False

    def tie(
        self,
        offsets: Float[np.ndarray, "n 3"],
        rotating: Bool[np.ndarray, " n"],
        masses: Float[np.ndarray, " n"],
    ) -> Tie:
        count = 3 * len(offsets) + 3 * int(np.sum(rotating))
        moved = displacements(rotating)
        size = np.sqrt(np.mean(np.sum(offsets**2, axis=1)))
        # Rotations as displacements of a point that far away: rows of like units.
        unit = np.diag([1.0, 1.0, 1.0, *[1 / size] * 3])
        motion = nodal_motion(offsets, np.zeros_like(rotating)) @ unit
        weighted = np.repeat(masses / np.sum(masses), 3)[:, None] * motion
        average = np.zeros((6, count))
        average[:, moved] = np.linalg.solve(motion.T @ weighted, weighted.T)
        pivots = _pivots(average)
        dependent = np.sort(pivots[:6])
        others = np.delete(average, dependent, axis=1)
        square = average[:, dependent]
        return Tie(
            dependent,
            np.linalg.solve(square, np.linalg.inv(unit)),
            -np.linalg.solve(square, others),
        )


def _pivots(matrix: Float[np.ndarray, "6 n"]) -> Int[np.ndarray, " n"]:
    """Its columns in the order of the largest independent part."""
    answer: Any = scipy.linalg.qr(matrix, mode="r", pivoting=True)
    return answer[1]


def displacements(rotating: Bool[np.ndarray, " n"]) -> Int[np.ndarray, " displacements"]:
    """Mask of the nodes' degrees of freedom that are displacements."""
    widths = np.where(rotating, 6, 3)
    first = np.cumsum(widths) - widths
    return (first[:, None] + np.arange(3)).ravel()


def nodal_motion(
    offsets: Float[np.ndarray, "n 3"], rotating: Bool[np.ndarray, " n"]
) -> Float[np.ndarray, "dof 6"]:
    """Motion of the nodes in a rigid motion, by degrees of freedom."""
    moved = displacements(rotating)
    motion = np.zeros((3 * len(offsets) + 3 * int(np.sum(rotating)), 6))
    shift = np.broadcast_to(np.eye(3), (len(offsets), 3, 3))
    motion[moved] = np.concatenate([shift, turning(offsets)], axis=2).reshape(-1, 6)
    turned = np.setdiff1d(np.arange(len(motion)), moved)
    motion[turned, 3:] = np.tile(np.eye(3), (int(np.sum(rotating)), 1))
    return motion


# The default kind of attachments.
_RIGID = RigidConnection()

# Nodes are on one line if what is across it is rounding of what is along it.
_LINE = 1e-9


class Attachment(eqx.Module):
    """A point of an elastic body where joints and forces act: an interface node of three
    displacements and three rotations, tied to nodes of the mesh.

    A joint's centre often lies where the body has no material, as in the middle of a tube's end.

    **Arguments:**

    - `name`: of the node in the reduced body.
    - `point`: where it lies, in the frame of the mesh (m); None: in the middle of the nodes.
    - `nodes`: to which it is tied: `NodesOnPlane`, `NodesWithin`, `NodeNumbers`, `NodesNamed`. They
      are three or more that are not on one line, or one is a node with rotations. One node with
      rotations at the point needs no tie: rigidly connected, it is the attachment itself.
    - `connection`: `RigidConnection()` (RBE2) or `AveragedConnection()` (RBE3).

    **Raises:** `TypeError` or `ValueError` for arguments of another kind. Nodes are searched for
    when the body is reduced.
    """

    name: str = eqx.field(static=True)
    point: Float[np.ndarray, "3"] | None
    nodes: AbstractNodeSet
    connection: AbstractConnection

    def __init__(
        self,
        name: Setting[str],
        point: Setting[NumberList | None] = None,
        nodes: Setting[AbstractNodeSet | None] = None,
        connection: Setting[AbstractConnection] = _RIGID,
    ):
        self.name = checked_name(_settings.text(name, "name", "'A'"), "an attachment")
        self.point = None
        if point is not None:
            self.point = np.asarray(_settings.vector(point, "point", size=3), float)
        self.nodes = _settings.instance(
            nodes,
            AbstractNodeSet,
            "nodes",
            "NodesOnPlane(...), NodesWithin(...), NodeNumbers(...) or NodesNamed(...)",
        )
        self.connection = _settings.instance(
            connection,
            AbstractConnection,
            "connection",
            "RigidConnection() or AveragedConnection()",
        )

    def chosen(self, elements: FiniteElements) -> Int[np.ndarray, " chosen"]:
        """The nodes that it is tied to.

        **Raises:** `ModelError` if there are none, or too few to carry a rotation.
        """
        nodes = self.nodes.choose(elements, self.point)
        if nodes.size == 0:
            raise ModelError(
                f"the attachment {self.name!r} finds no nodes at {shown(_listed(self.point))}; "
                "move its point to the mesh, or choose nodes farther from it."
            )
        if not _spread(elements, nodes, self.connection):
            raise ModelError(
                f"the attachment {self.name!r} is tied to the nodes {listed(nodes)}, all on one "
                "line, about which it could turn freely; choose at least three that are not."
            )
        return nodes

    def place(
        self, elements: FiniteElements, nodes: Int[np.ndarray, " chosen"]
    ) -> Float[np.ndarray, "3"]:
        """Its point, or the middle of its nodes."""
        return elements.points[nodes].mean(axis=0) if self.point is None else self.point


def _listed(point: Float[np.ndarray, "3"] | None) -> list[float] | None:
    return None if point is None else point.tolist()


def _spread(
    elements: FiniteElements, nodes: Int[np.ndarray, " chosen"], connection: AbstractConnection
) -> bool:
    """Do the nodes determine a rotation?"""
    if connection.uses_rotations and np.any(elements.rotating[nodes]):
        return True
    offsets = elements.points[nodes] - elements.points[nodes].mean(axis=0)
    if len(nodes) < 3:
        return False
    along, across = np.linalg.svd(offsets, compute_uv=False)[:2]
    return bool(across > _LINE * along)


class _Tied(NamedTuple):
    """An attachment's tie: the degrees of freedom `rows` of its nodes, and where the nodes lie from
    it (m), with the places of their displacements among these rows."""

    rows: Int[np.ndarray, " rows"]
    tie: Tie
    offsets: Float[np.ndarray, "n 3"]
    displacements: Int[np.ndarray, " displacements"]


class Interface(NamedTuple):
    """The attachments of a body as degrees of freedom of their own.

    u = `expansion` x: the displacements of all nodes from x, which holds the six of each attachment
    first (displacements, rotations) and then the displacements that no tie removes. `points`: where
    the attachments lie, in the frame of the mesh (m). `ties` of the attachments.
    """

    expansion: SparseMatrix
    points: Float[np.ndarray, "attachments 3"]
    ties: tuple[_Tied, ...]

    @property
    def held(self) -> int:
        """Number of degrees of freedom of the attachments."""
        return 6 * len(self.points)

    def rigid_motions(self, origin: Float[np.ndarray, "3"]) -> Float[np.ndarray, "held 6"]:
        """Rigid motions of the attachments."""
        return nodal_motion(self.points - origin, np.ones(len(self.points), bool))

    def second_order(
        self, one: Float[np.ndarray, "held n"], other: Float[np.ndarray, "held n"]
    ) -> Float[np.ndarray, "dof n"]:
        """Second-order displacement of the tied nodes by products of the attachments' motions,
        where x itself has no second order: a node at r from an attachment that rotates by theta is
        displaced by a further theta x (theta x r) / 2. For two motions each, one half of twice
        that."""
        answer = np.zeros((self.expansion.shape[0], one.shape[1]))
        turns = (x.reshape(-1, 2, 3, x.shape[1])[:, 1] for x in (one, other))
        for tied, first, second in zip(self.ties, *turns, strict=True):
            twice = [
                np.cross(a, np.cross(b, tied.offsets[:, :, None], axis=1), axis=1)
                for a, b in ((first[None], second[None]), (second[None], first[None]))
            ]
            own = np.zeros((len(tied.rows), one.shape[1]))
            own[tied.displacements] = ((twice[0] + twice[1]) / 2).reshape(-1, one.shape[1])
            dependent = tied.tie.dependent
            rest = np.delete(own, dependent, axis=0)
            answer[tied.rows[dependent]] = own[dependent] - tied.tie.others @ rest
        return answer


def interface(elements: FiniteElements, attachments: Sequence[Attachment]) -> Interface:
    """Ties every attachment to its nodes.

    **Raises:** `ModelError` for a repeated name, for a node that belongs to two attachments, and
    for attachments without nodes.
    """
    names = [attachment.name for attachment in attachments]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ModelError(f"two attachments are called {listed(twice)}; give each its own name.")
    chosen = [attachment.chosen(elements) for attachment in attachments]
    _check_claims(names, chosen)
    places = [a.place(elements, nodes) for a, nodes in zip(attachments, chosen, strict=True)]
    points = np.reshape(np.array(places, float), (-1, 3))
    count = elements.mass.shape[0]
    masses = elements.node_mass.diagonal()
    left = np.ones(count, bool)
    ties = []
    for attachment, nodes, point in zip(attachments, chosen, points, strict=True):
        rotating = elements.rotating[nodes]
        tie = attachment.connection.tie(elements.points[nodes] - point, rotating, masses[nodes])
        rows = _rows(elements, nodes)
        left[rows[tie.dependent]] = False
        offsets = elements.points[nodes] - point
        ties.append(_Tied(rows, tie, offsets, displacements(rotating)))
    # The columns of x: the attachments' first, then what is left.
    column = np.cumsum(left) - 1 + 6 * len(points)
    entries = [(np.flatnonzero(left), column[left], np.ones(int(np.sum(left))))]
    for k, (rows, tie, *_) in enumerate(ties):
        dependent, rest = rows[tie.dependent], np.delete(rows, tie.dependent)
        entries.append(_block(dependent, np.arange(6 * k, 6 * k + 6), tie.motion))
        entries.append(_block(dependent, column[rest], tie.others))
    at, of, value = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    size = (count, 6 * len(points) + int(np.sum(left)))
    return Interface(sp.coo_array((value, (at, of)), shape=size).tocsc(), points, tuple(ties))


def _block(
    rows: Int[np.ndarray, " n"], columns: Int[np.ndarray, " k"], block: Float[np.ndarray, "n k"]
) -> tuple[Int[np.ndarray, " nk"], Int[np.ndarray, " nk"], Float[np.ndarray, " nk"]]:
    """Row, column and value of every entry of a dense block."""
    return np.repeat(rows, len(columns)), np.tile(columns, len(rows)), block.ravel()


def _rows(elements: FiniteElements, nodes: Int[np.ndarray, " k"]) -> Int[np.ndarray, " rows"]:
    """The degrees of freedom of these nodes, node by node."""
    widths = np.where(elements.rotating[nodes], 6, 3)
    first = elements.first_dof[nodes]
    return np.concatenate([np.arange(f, f + w) for f, w in zip(first, widths, strict=True)])


def _check_claims(names: list[str], chosen: list[Int[np.ndarray, " _"]]) -> None:
    owner: dict[int, str] = {}
    for name, nodes in zip(names, chosen, strict=True):
        both = [int(k) for k in nodes if int(k) in owner]
        if both:
            raise ModelError(
                f"the attachments {owner[both[0]]!r} and {name!r} are both tied to the nodes "
                f"{listed(both)}; choose nodes for each that the other does not have."
            )
        owner |= dict.fromkeys(nodes.tolist(), name)
