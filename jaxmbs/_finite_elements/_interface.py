from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int

from .._checks import listed
from .._errors import ModelError
from ._attachment import Attachment
from ._connections import displacements, nodal_motion, Tie
from ._elements import FiniteElements
from ._sparse import SparseMatrix


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
