"""Connections of attachments to nodes.

An attachment has six degrees of freedom of its own, and lies where the body may have no material.
"""

import abc
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np
import scipy.linalg
from jaxtyping import Bool, Float, Int

from ._elements import turning


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
