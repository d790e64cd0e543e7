"""Frames of markers and how motion changes them, all markers of a kind at once.

Joints and forces depend on frames alone. So the chain rule splits at the frames: the derivatives of
markers by a body's coordinates are those of the markers (`AbstractMarker.kinematics`), once for all
of a kind, and those of a residual by the frames belong to each kind of joint (`_groups.py`).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._bodies import AbstractMarker, MarkerKinematics
from .._constraints import Frames
from .._linalg import gather
from ._groups import AnyGroup, group_by, map_parts, MarkerMotion


class Directions(NamedTuple):
    """Frames, and their changes: along the motion (`rates`, 1/s), and along each velocity of the
    slot's bodies (n, nv, ...)."""

    frames: Frames
    rates: Frames
    changes: Frames


def frames_of(groups: Sequence[AnyGroup], q: Float[Array, " extended_q"]) -> list[Frames]:
    """The frames of each group's markers, from the ground-extended coordinates."""
    return of_markers(lambda marker, own: marker.frame(own), groups, q)


def motion_of(
    groups: Sequence[AnyGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
) -> list[MarkerMotion]:
    """The motion of each group's markers, from the ground-extended state."""
    return [motion for motion, _ in motion_and_directions_of(groups, q, v)]


def rates_of(
    groups: Sequence[AnyGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
) -> list[tuple[Frames, Frames]]:
    """Each group's markers and their changes along the motion."""
    found = motion_and_directions_of(groups, q, v)
    return [(motion.frames, motion.rates) for motion, _ in found]


def directions_of(
    groups: Sequence[AnyGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
) -> list[Directions]:
    """Motion of each group's markers by the motion and by each velocity."""
    found = motion_and_directions_of(groups, q, v)
    return [Directions(motion.frames, motion.rates, changes) for motion, changes in found]


def motion_and_directions_of(
    groups: Sequence[AnyGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
) -> list[tuple[MarkerMotion, Frames]]:
    """The motion of each group's markers, and their changes along each velocity."""
    found = [tuple(zip(*slots, strict=True)) for slots in of_markers(_kinematics, groups, q, v)]
    return [(MarkerMotion(*motion), changes) for *motion, changes in found]


def arms_of(groups: Sequence[AnyGroup]) -> list[tuple[Float[Array, " n"], ...]]:
    """Distances (m) of each group's markers from their bodies' centres of mass."""
    return of_markers(lambda marker: marker.lever_arm(), groups)


def of_markers(
    function: Callable[..., Any], groups: Sequence[AnyGroup], *state: Float[Array, " _"]
) -> list[tuple[Any, ...]]:
    """`function(marker, q, v)` of each marker (q and v of its body, as many as are given), for
    each group one result for each slot, along a leading axis."""
    slots = [(g, k) for g, group in enumerate(groups) for k in range(len(group.markers))]
    markers = [groups[g].markers[k] for g, k in slots]
    found: dict[tuple[int, int], Any] = {}
    for members in group_by(markers, stacked=True):
        own = [slots[i] for i in members]
        together = _joined([markers[i] for i in members])
        places = [
            np.concatenate([groups[g].indices[f"{letter}{k}"] for g, k in own])
            for letter, _ in zip("qv", state, strict=False)
        ]
        of_bodies = [gather(x, where) for x, where in zip(state, places, strict=True)]
        results = map_parts(function, together, *of_bodies)
        leaves, tree = jax.tree.flatten(results)
        counts = [len(groups[g].indices[f"q{k}"]) for g, k in own]
        parts = zip(*(lax.split(x, counts) for x in leaves), strict=True)
        found |= {place: tree.unflatten(part) for place, part in zip(own, parts, strict=True)}
    return [tuple(found[g, k] for k in range(len(group.markers))) for g, group in enumerate(groups)]


def _joined(markers: Sequence[AbstractMarker]) -> AbstractMarker:
    """Stacks of markers as one stack."""
    if len(markers) == 1:
        return markers[0]

    def join(*leaves: Any) -> Any:
        return jnp.concatenate(leaves) if eqx.is_array(leaves[0]) else leaves[0]

    return jax.tree.map(join, *markers)


def _kinematics(
    marker: AbstractMarker, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> MarkerKinematics:
    return marker.kinematics(q, v)
