"""Which ways a force or a torque that is not unique may change.

All multipliers that carry the loads are lambda + N z. So the force of a joint changes by G z, and
the eigenvectors of G G^T are the directions in which it does: one, and it may lie anywhere on a
line; three, and it may be any vector.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._reactions import ExplainedReactions, Reactions
from .._verdict import NOT_UNIQUE
from ._components import second_wrench


# A direction in which a change is less than this part of the largest of all joints is none: of a
# square root of what is rounded to 1e-16.
_LEAST = 1e-6


class Spread(NamedTuple):
    """`constraints` whose force or torque is not unique at some state; of each at every state the
    `count` of directions of its force and of its torque, and these `directions`, the first of them
    first, in space."""

    constraints: tuple[int, ...]
    count: Int[np.ndarray, "n constraints 2"]
    directions: Float[np.ndarray, "n constraints 2 3 3"]


def changes_of(found: ExplainedReactions) -> Float[Array, "joints 2 3 3"]:
    """G G^T of the force and of the torque of every constraint on its second body; zero for what
    acts at no point."""
    layout, report = found.reactions.layout, found.solvability
    seconds = np.array(layout.seconds, dtype=int)
    if not found.maps.force.size:
        return jnp.zeros((len(seconds), 2, 3, 3))
    null = report.null_space / report.row_scale[:, None]
    padded = jnp.concatenate([null, jnp.zeros((1, null.shape[1]), null.dtype)])
    own = padded[layout.indices["rows"][seconds]]
    parts = []
    for what in (found.maps.force, found.maps.torque):
        change = jnp.einsum("jir,jrk->jik", what[seconds], own)
        # Of a planar mechanism a force has no z, and a torque nothing else.
        behind = (0, 3 - change.shape[1]) if change.shape[1] > 1 else (2, 0)
        change = jnp.pad(change, ((0, 0), behind, (0, 0)))
        parts.append(jnp.einsum("jik,jlk->jil", change, change))
    both = jnp.stack(parts, axis=1)
    return jnp.where((seconds >= 0)[:, None, None, None], both, 0.0)


def spread_of(reactions: Reactions, changes: Float[np.ndarray, "n joints 2 3 3"]) -> Spread:
    """The directions, from the largest down."""
    values, vectors = np.linalg.eigh(np.where(np.isfinite(changes), changes, 0.0))
    sizes = np.sqrt(np.maximum(values[..., ::-1], 0.0))
    largest = np.max(sizes, axis=(1, 3), keepdims=True, initial=0.0)
    count = np.sum(sizes > np.maximum(_LEAST * largest, 1e-300), axis=-1)
    many = np.zeros(changes.shape[:3], bool)
    for k in range(len(reactions.names)):
        wrench = second_wrench(reactions, k)
        if wrench is not None:
            for part, verdict in enumerate((wrench.force_verdict, wrench.torque_verdict)):
                many[:, k, part] = np.any(verdict == NOT_UNIQUE, axis=1)
    count = np.where(many, count, 0)
    chosen = np.flatnonzero(many.any(axis=(0, 2)))
    directions = np.swapaxes(vectors[..., ::-1], -1, -2)
    return Spread(tuple(chosen.tolist()), count[:, chosen], directions[:, chosen])
