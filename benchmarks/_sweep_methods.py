"""Ways to the verdicts of many configurations: those of jaxmbs, and what a user would write."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import scipy.linalg as sl
from _numpy_peer import NumpyPeer
from jax import lax

import jaxmbs as jm


# Configurations side by side: as many as suit a core's cache, or fill an accelerator.
WIDTH = 32 if jax.default_backend() == "cpu" else 4096

# From configurations (batch, nq) to rank and verdicts (batch, constraints), ready to be timed.
Method = Callable[[Any], Any]

# Relative to the first pivot; single precision cannot tell smaller ones from rounding.
TOLERANCE = {"float64": 1e-9, "float32": 1e-5}


def in_precision(system: jm.MultibodySystem, dtype: str) -> jm.MultibodySystem:
    """The system with numbers of this precision."""
    return jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, system)


def batched(one: Callable[..., Any], system: jm.MultibodySystem, width: int) -> Method:
    """A question of one configuration, asked of many: `width` side by side, part after part
    without waiting, by one program."""
    part = jax.jit(jax.vmap(one, in_axes=(None, 0)))

    def many(qs: Any) -> Any:
        size = min(width, qs.shape[0])
        if qs.shape[0] % size:
            raise ValueError(f"{qs.shape[0]} configurations are no whole parts of {size}.")
        starts = range(0, qs.shape[0], size)
        found = [part(system, lax.dynamic_slice_in_dim(qs, k, size)) for k in starts]
        return jax.block_until_ready(found)

    return many


def joined(parts: Any) -> Any:
    """The answers of all parts, one after the other."""
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)


def fast_pass(system: jm.MultibodySystem, q: Any) -> Any:
    """`screen`."""
    found = jm.screen(system, q)
    return len(system.structure.rows) - found.redundancy, found.reaction_unique.unique


def decomposed(method: Any, dtype: str) -> Callable[..., Any]:
    """`analyze` by pivoted QR: the verdicts on reactions, bodies and multipliers."""
    tolerance = TOLERANCE[dtype]

    def one(system: jm.MultibodySystem, q: Any) -> Any:
        report = jm.analyze(system, q, criterion=jm.criteria.QR(tolerance, method=method))
        verdicts = (report.reaction_unique, report.multiplier_unique, report.body_unique)
        return report.rank, *(verdict.unique for verdict in verdicts)

    return one


def vmapped_qr(dtype: str) -> Callable[..., Any]:
    """JAX's own pivoted QR of C under `vmap`, as it comes: the rank and no verdict."""

    def one(system: jm.MultibodySystem, q: Any) -> Any:
        v = jnp.zeros((system.structure.nv,), q.dtype)
        matrix = system.constraint_matrix(q, v, 0.0)
        decomposition: Any = jsl.qr(matrix, pivoting=True)
        basis, upper, _ = decomposition
        pivots = jnp.abs(jnp.diagonal(upper))
        return jnp.sum(pivots > TOLERANCE[dtype] * pivots[0]), basis[:, -1]

    return one


def two_tier(system: jm.MultibodySystem, times: np.ndarray, qs: np.ndarray) -> Any:
    """A whole `sweep` of the two-tier question, its bookkeeping included; in memory. `times` (s):
    at which the configurations are closed, repeated as these are."""
    cases = jm.Cases({"q": qs, "time": np.resize(times, len(qs))})
    found = jm.sweep(
        jm.sweeps.Certification(), system, cases, q=jnp.asarray(qs[0]), assemble=False, width=WIDTH
    )
    answers = found.answers()
    return [(answers.rank, answers.reaction_unique.unique)]


class ScipyLoop:
    """One configuration after the other: C by vectorised NumPy, geqp3 with an explicit Q, and
    the verdicts on all reactions by one product.

    The leanest form of what the fast pass answers: |C_X^T N_X|^2 = tr((N N^T)_XX (C C^T)_XX), so
    that all joints need two products and one sum over blocks, and no loop.
    """

    def __init__(self, system: jm.MultibodySystem):
        self._peer = NumpyPeer(system)
        structure = system.structure
        length = float(system.characteristic_length())
        self._scale = np.where(structure.length_columns, length, 1.0)
        self._starts = np.array([c.start for c in structure.constraints])

    def matrix(self, q: np.ndarray) -> np.ndarray:
        """C with columns and rows scaled."""
        matrix = self._peer.matrix(q) * self._scale
        return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)

    def reactions(self, q: np.ndarray) -> tuple[int, np.ndarray]:
        """Rank, and the verdict on the reaction of each constraint."""
        matrix = self.matrix(q)
        decomposition: Any = sl.qr(matrix, pivoting=True, overwrite_a=False, check_finite=False)
        basis, upper, _ = decomposition
        pivots = np.abs(np.diagonal(upper))
        rank = int(np.count_nonzero(pivots > 1e-9 * pivots[0]))
        null_space = basis[:, rank:]
        return rank, self._unique(matrix, null_space @ null_space.T)

    def _unique(self, matrix: np.ndarray, projector: np.ndarray) -> np.ndarray:
        entries = projector * (matrix @ np.swapaxes(matrix, -1, -2))
        blocks = np.add.reduceat(np.add.reduceat(entries, self._starts, -1), self._starts, -2)
        return np.diagonal(blocks, axis1=-2, axis2=-1) <= 1e-12

    def loop(self, qs: np.ndarray) -> Any:
        """The reactions of all."""
        return [self.reactions(q) for q in qs]

    def everything(self, qs: np.ndarray) -> Any:
        """Reactions, multipliers and bodies of all, by the peer of `solvability.py`."""
        return [self._peer.analyze(q) for q in qs]

    def singular_values(self, qs: np.ndarray) -> Any:
        """NumPy's batched SVD of all C, which are filled in a loop."""
        matrices = np.stack([self.matrix(q) for q in qs])
        left, values, _ = np.linalg.svd(matrices)
        rank = np.sum(values > 1e-9 * values[:, :1], axis=1)
        null_space = left * (np.arange(left.shape[1]) >= rank[:, None])[:, None]
        return rank, self._unique(matrices, null_space @ np.swapaxes(null_space, 1, 2))
