"""The peer: the same analysis as a NumPy and SciPy loop, one configuration after the other.

Jacobians are written by hand and vectorised over the joints of a kind, as a careful NumPy user
would; decompositions are LAPACK's, through SciPy (geqp3 with an explicit Q).
"""

from typing import Any

import jax
import numpy as np
import scipy.linalg as sl

from jaxmbs import MultibodySystem


class NumpyPeer:
    """C from q and all verdicts, for revolute, translational, spherical and knife-edge joints
    and translational drivers of rigid bodies."""

    def __init__(self, system: MultibodySystem):
        self._structure = system.structure
        self._planar = system.gravity.shape[0] == 2
        self._groups = []
        for group in system.constraint_groups:
            kind = system.structure.constraint(group.names[0]).kind
            columns = [group.indices[f"v{k}"] for k in range(len(group.markers))]
            coordinates = [group.indices[f"q{k}"] for k in range(len(group.markers))]
            offsets: list[Any] = jax.tree.map(
                np.asarray, [vars(m)["offset"] for m in group.markers]
            )
            side = np.asarray(getattr(group.primitives[0], "side", 0.0))
            self._groups.append((kind, group.indices["row"], columns, coordinates, offsets, side))
        self._ground = np.asarray(system.indices["ground_q"])
        self._length = float(system.characteristic_length())
        self._scale = np.where(self._structure.length_columns, self._length, 1.0)

    def matrix(self, q: np.ndarray) -> np.ndarray:
        """The constraint matrix."""
        extended = np.concatenate([q, self._ground])
        width = self._structure.nv + (3 if self._planar else 6)
        matrix = np.zeros((len(self._structure.rows), width))
        for kind, row, columns, coordinates, offsets, side in self._groups:
            poses = [extended[index] for index in coordinates]
            fill = _PLANAR[kind] if self._planar else _SPATIAL[kind]
            for k, block in enumerate(fill(poses, offsets, side)):
                rows = row[:, None] + np.arange(block.shape[1])
                matrix[rows[:, :, None], columns[k][:, None, :]] = block
        return matrix[:, : self._structure.nv]

    def analyze(self, q: np.ndarray) -> tuple[int, np.ndarray, list[tuple[bool, bool]]]:
        """Rank, verdict of each constraint, and verdicts of force and torque on each body."""
        matrix = self.matrix(q) * self._scale
        size = np.linalg.norm(matrix, axis=1, keepdims=True)
        matrix = matrix / np.where(size > 0, size, 1.0)
        decomposed: Any = sl.qr(matrix, mode="full", pivoting=True)
        basis, upper, _ = decomposed
        pivots = np.abs(np.diagonal(upper))
        threshold = 1e-9 * pivots[0]
        rank = int(np.sum(pivots > threshold))
        null_space = basis[:, rank:]
        geometric = self._structure.geometric
        for part in (matrix[geometric], matrix[~geometric]):
            if part.size:
                np.sum(sl.svdvals(part) > threshold)
        np.linalg.norm(null_space, axis=1)
        unique, bodies = [], []
        for info in self._structure.constraints:
            rows = slice(info.start, info.stop)
            product = matrix[rows].T @ null_space[rows]
            unique.append(_small(product[list(info.columns)]))
            for body in info.bodies:
                columns = self._structure.bodies[body]
                bodies.append(
                    (_small(product[list(columns.force)]), _small(product[list(columns.torque)]))
                )
        return rank, np.array(unique), bodies


def _small(product: np.ndarray) -> bool:
    return product.size == 0 or bool(np.linalg.norm(product, 2) <= 1e-6)


def _turn(angle: np.ndarray) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], -2)


def _planar_arm(pose: np.ndarray, offset: Any) -> np.ndarray:
    return np.einsum("nij,nj->ni", _turn(pose[:, 2]), offset.origin)


def _point_block(arm: np.ndarray) -> np.ndarray:
    """Derivative of a planar point: identity and the arm turned by 90 degrees."""
    n = len(arm)
    block = np.zeros((n, 2, 3))
    block[:, 0, 0] = block[:, 1, 1] = 1.0
    block[:, 0, 2], block[:, 1, 2] = -arm[:, 1], arm[:, 0]
    return block


def _planar_revolute(poses, offsets, side):
    first, second = (_point_block(_planar_arm(p, o)) for p, o in zip(poses, offsets, strict=True))
    return first, -second


def _along(poses, offsets, direction):
    """Rows of n . (P_1 - P_2), with the direction n carried by the second body."""
    arms = [_planar_arm(p, o) for p, o in zip(poses, offsets, strict=True)]
    gap = poses[0][:, :2] + arms[0] - poses[1][:, :2] - arms[1]
    turned = np.stack([-direction[:, 1], direction[:, 0]], -1)
    first = np.einsum("ni,nij->nj", direction, _point_block(arms[0]))
    second = -np.einsum("ni,nij->nj", direction, _point_block(arms[1]))
    second[:, 2] += np.einsum("ni,ni->n", turned, gap)
    return first[:, None], second[:, None]


def _planar_translational(poses, offsets, side):
    normal = side[:, None] * _turn(poses[1][:, 2] + offsets[1].angle)[:, :, 1]
    first, second = _along(poses, offsets, normal)
    rotation = np.broadcast_to(np.array([[[0.0, 0.0, 1.0]]]), first.shape)
    return np.concatenate([first, rotation], 1), np.concatenate([second, -rotation], 1)


def _planar_driver(poses, offsets, side):
    axis = _turn(poses[1][:, 2] + offsets[1].angle)[:, :, 0]
    first, second = _along(poses, offsets, axis)
    return -first, -second


def _knife_edge(poses, offsets, side):
    (pose,), (offset,) = poses, offsets
    normal = _turn(pose[:, 2] + offset.angle)[:, :, 1]
    block = _point_block(_planar_arm(pose, offset))
    return (np.einsum("ni,nij->nj", normal, block)[:, None],)


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    w, x, y, z = quaternion.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, -1) for row in rows], -2)


def _skew(vectors: np.ndarray) -> np.ndarray:
    x, y, z = np.moveaxis(vectors, -1, 0)
    o = np.zeros_like(x)
    rows = [[o, -z, y], [z, o, -x], [-y, x, o]]
    return np.stack([np.stack(row, -1) for row in rows], -2)


def _spatial_point(pose, offset):
    """Derivative of a spatial point: identity and -R (s x) on the body's angular velocity."""
    block = np.zeros((len(pose), 3, 6))
    block[:, :, :3] = np.eye(3)
    block[:, :, 3:] = -_rotation(pose[:, 3:]) @ _skew(offset.origin)
    return block


def _spherical(poses, offsets, side):
    first, second = (_spatial_point(p, o) for p, o in zip(poses, offsets, strict=True))
    return first, -second


def _spatial_revolute(poses, offsets, side):
    first, second = _spherical(poses, offsets, side)
    bodies = [_rotation(p[:, 3:]) for p in poses]
    axes = [r @ o.rotation for r, o in zip(bodies, offsets, strict=True)]
    z = axes[0][:, :, 2]
    rows = [np.zeros((len(z), 2, 6)) for _ in range(2)]
    for k in range(2):
        # The derivative of z_1 . n_k with n_k carried by the second body.
        cross = np.cross(z, axes[1][:, :, k])
        rows[0][:, k, 3:] = np.einsum("nij,ni->nj", bodies[0], cross)
        rows[1][:, k, 3:] = -np.einsum("nij,ni->nj", bodies[1], cross)
    return np.concatenate([first, rows[0]], 1), np.concatenate([second, rows[1]], 1)


_PLANAR = {
    "revolute": _planar_revolute,
    "translational": _planar_translational,
    "knife_edge": _knife_edge,
    "driver": _planar_driver,
}
_SPATIAL = {"spherical": _spherical, "revolute": _spatial_revolute}
