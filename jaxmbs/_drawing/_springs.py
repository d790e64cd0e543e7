"""Springs as lines between two points: a zigzag in the plane, a helix in space."""

import numpy as np
from jaxtyping import Float

from ._solids import axes_along


_TURNS = 7
_EACH = 10

# Straight ends, as a part of the length.
_END = 0.12


def spring_line(
    first: Float[np.ndarray, "n 3"], last: Float[np.ndarray, "n 3"], unit: float, planar: bool
) -> Float[np.ndarray, "n m 3"]:
    """The line of a spring between two points in n states."""
    between = last - first
    lengths = np.linalg.norm(between, axis=1, keepdims=True)
    known = lengths[:, 0] > 0
    along = np.where(lengths > 0, between, [1.0, 0.0, 0.0]) / np.where(lengths > 0, lengths, 1.0)
    usual = float(np.max(lengths, initial=0.0))
    radius = min(1.6 * unit, 0.1 * usual)
    if planar:
        across = np.stack([-along[:, 1], along[:, 0], np.zeros(len(along))], axis=1)
        side = np.tile([1.0, -1.0], _TURNS)
        share = _END + (1 - 2 * _END) * (np.arange(2 * _TURNS) + 0.5) / (2 * _TURNS)
        share = np.concatenate([[0.0, _END], share, [1 - _END, 1.0]])
        side = np.concatenate([[0.0, 0.0], side, [0.0, 0.0]])
        offset = radius * side[:, None] * across[:, None]
        return first[:, None] + share[:, None] * between[:, None] + offset
    turns = 2 * np.pi * np.linspace(0.0, _TURNS, _TURNS * _EACH + 1)
    share = np.linspace(_END, 1 - _END, len(turns))
    share = np.concatenate([[0.0, _END], share, [1 - _END, 1.0]])
    turns = np.concatenate([[0.0, 0.0], turns, [0.0, 0.0]])
    wide = np.ones(len(share))
    wide[[0, 1, -2, -1]] = 0.0
    # One axis for all states, so that the helix does not turn from state to state.
    start = along[int(np.argmax(known))] if np.any(known) else along[0]
    reference = axes_along(start)[:, 0]
    x = reference - np.einsum("ni,i->n", along, reference)[:, None] * along
    size = np.linalg.norm(x, axis=1, keepdims=True)
    other = axes_along(start)[:, 1] - along * (along @ axes_along(start)[:, 1])[:, None]
    x = np.where(size > 1e-3, x, other)
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    y = np.cross(along, x)
    coil = np.cos(turns)[:, None] * x[:, None] + np.sin(turns)[:, None] * y[:, None]
    offset = radius * wide[:, None] * coil
    return first[:, None] + share[:, None] * between[:, None] + offset
