"""The scene of a report as its page reads it: surfaces once, and the frames in which they move.

All positions are relative to the middle of the scene, so that single precision suffices far from
the origin.
"""

import base64
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import trimesh
from jaxtyping import Float

from .._drawing import Scene, Solid
from .._reactions import Reactions


# --------------------------------------------------------------------------------------------------
# Arrays as bytes.
# --------------------------------------------------------------------------------------------------


def packed(array: np.ndarray, kind: str) -> dict[str, Any]:
    """An array as its bytes; of more than one axis row by row."""
    values = np.ascontiguousarray(array, dtype=f"<{kind}")
    return {"type": kind, "data": base64.b64encode(values.tobytes()).decode("ascii")}


def steady(array: np.ndarray, kind: str, within: float = 0.0) -> dict[str, Any]:
    """An array of n states; of those that are equal within that, one alone."""
    same = len(array) > 0 and bool(np.all(np.abs(array - array[:1]) <= within))
    return packed(array[:1] if same else array, kind)


# --------------------------------------------------------------------------------------------------
# Surfaces and frames.
# --------------------------------------------------------------------------------------------------


# What moves by less than this part of the scene's size stands still.
_STILL = 1e-9
# A symbol is carried by a body if it stays in its frame to this part of the scene's size.
_CARRIED = 1e-6


class _Frames(NamedTuple):
    position: Float[np.ndarray, "n 3"]
    rotation: Float[np.ndarray, "n 3 3"]


def scene_data(drawn: Scene) -> dict[str, Any]:
    """Bodies, joints and lines of a scene as its program reads them."""
    middle, size = 0.5 * (drawn.low + drawn.high), drawn.size
    frames = [_Frames(body.position - middle, body.rotation) for body in drawn.bodies]
    bodies = [
        {"name": body.name, **_moving(own, size), "solids": list(map(_solid, body.solids))}
        for body, own in zip(drawn.bodies, frames, strict=True)
    ]
    symbols = []
    for symbol in drawn.symbols:
        own = _Frames(symbol.position - middle, symbol.rotation)
        parent, local = _carrier(own, frames, size)
        symbols.append(
            {
                "kind": symbol.kind,
                "constraints": list(symbol.constraints),
                "parent": parent,
                **_moving(local, size),
                "solids": list(map(_solid, symbol.solids)),
                "grounded": symbol.grounded,
            }
        )
    strands = [
        {
            "kind": strand.kind,
            "name": strand.name,
            "count": strand.points.shape[1],
            "points": steady(strand.points - middle, "f4", _STILL * size),
        }
        for strand in drawn.strands
    ]
    return {
        "dimension": 2 if drawn.planar else 3,
        "bodies": bodies,
        "symbols": symbols,
        "strands": strands,
        "gravity": drawn.gravity.tolist(),
        "low": drawn.low.tolist(),
        "high": drawn.high.tolist(),
        "size": size,
    }


def _moving(frames: _Frames, size: float) -> dict[str, Any]:
    """Positions, and orientations as unit quaternions (x, y, z, w)."""
    return {
        "position": steady(frames.position, "f4", _STILL * size),
        "rotation": steady(_quaternions(frames.rotation), "f4", _STILL),
    }


def _quaternions(rotation: Float[np.ndarray, "n 3 3"]) -> Float[np.ndarray, "n 4"]:
    """Unit quaternions (x, y, z, w): eigenvectors of a symmetric matrix (Bar-Itzhack 2000), which
    need no cases."""
    r = rotation
    matrix = np.empty((len(r), 4, 4))
    for i in range(3):
        for j in range(3):
            matrix[:, i, j] = r[:, i, j] + r[:, j, i]
        matrix[:, i, i] -= np.trace(r, axis1=1, axis2=2)
        j, k = (i + 1) % 3, (i + 2) % 3
        matrix[:, i, 3] = matrix[:, 3, i] = r[:, k, j] - r[:, j, k]
    matrix[:, 3, 3] = np.trace(r, axis1=1, axis2=2)
    found = np.linalg.eigh(matrix)[1][:, :, -1]
    return found * np.where(found[:, 3:] < 0, -1.0, 1.0)


def place_data(drawn: Scene, reactions: Reactions) -> list[dict[str, Any]]:
    """The points at which joints and drivers act on their second bodies."""
    middle, size = 0.5 * (drawn.low + drawn.high), drawn.size
    frames = [_Frames(body.position - middle, body.rotation) for body in drawn.bodies]
    layout, found = reactions.layout, []
    on_ground = {
        c
        for c, body in zip(layout.constraints, layout.bodies, strict=True)
        if body == layout.ground
    }
    for own in together(reactions):
        points = np.asarray(reactions.point)[:, layout.seconds[own[0]]]
        missing = 3 - points.shape[1]
        points = np.pad(points, ((0, 0), (0, missing))) - middle
        parent, local = _carrier(_Frames(points, np.zeros((len(points), 3, 3))), frames, size)
        found.append(
            {
                "joints": list(own),
                "parent": parent,
                "position": steady(local.position, "f4", _STILL * size),
                "grounded": bool(on_ground & {*own}),
            }
        )
    return found


def _carrier(own: _Frames, bodies: Sequence[_Frames], size: float) -> tuple[int, _Frames]:
    """The body in whose frame another frame stands still, and where it stands there; -1 and the
    frame itself if there is none. (Of a point the rotation is zero.)"""
    if _stands(*own, size):
        return -1, own
    for k, body in enumerate(bodies):
        back = np.swapaxes(body.rotation, 1, 2)
        position = np.einsum("nij,nj->ni", back, own.position - body.position)
        local = _Frames(position, back @ own.rotation)
        if _stands(*local, size):
            return k, _Frames(local.position[:1], local.rotation[:1])
    return -1, own


def _stands(position: np.ndarray, rotation: np.ndarray, size: float) -> bool:
    # (NaN does not.)
    near = np.all(np.abs(position - position[:1]) <= _CARRIED * size)
    return bool(near and np.all(np.abs(rotation - rotation[:1]) <= _CARRIED))


def _solid(solid: Solid) -> dict[str, Any]:
    kind = "u2" if len(solid.vertices) < 65536 else "u4"
    return {
        "vertices": packed(solid.vertices, "f4"),
        "faces": packed(solid.faces, kind),
        "colour": list(map(float, solid.colour)),
    }


# --------------------------------------------------------------------------------------------------
# Where joints act.
# --------------------------------------------------------------------------------------------------


# Points that stay as near to each other as this part of the size are one place.
_SAME = 1e-9


def together(reactions: Reactions) -> list[tuple[int, ...]]:
    """Constraints by the points on their second bodies, those that never part as one."""
    points, seconds = np.asarray(reactions.point), reactions.layout.seconds
    size = float(np.max(np.abs(points), initial=0.0))
    found: dict[int, list[int]] = {}
    for constraint, place in enumerate(seconds):
        if place < 0:
            continue
        for other in found:
            if np.max(np.abs(points[:, other] - points[:, place])) <= _SAME * size:
                found[other].append(constraint)
                break
        else:
            found[place] = [constraint]
    return [tuple(own) for own in found.values()]


# So many triangles are drawn in all, and so many of a surface that takes the place of another: a
# page of surfaces must not take minutes to send and to draw.
MOST_TRIANGLES, _OF_HULL = 100_000, 1_000


def lightened(drawn: Scene) -> tuple[Scene, int]:
    """A scene of not too many triangles: the finest surfaces are replaced by their convex hulls,
    or by boxes where these are fine as well. Also how many were."""
    solids = {
        (place, k): solid
        for place, body in enumerate(drawn.bodies)
        for k, solid in enumerate(body.solids)
    }
    total, replaced = sum(len(own.faces) for own in solids.values()), 0
    for key in sorted(solids, key=lambda key: -len(solids[key].faces)):
        if total <= MOST_TRIANGLES or len(solids[key].faces) <= _OF_HULL:
            break
        total -= len(solids[key].faces)
        solids[key] = _hull(solids[key])
        total += len(solids[key].faces)
        replaced += 1
    if not replaced:
        return drawn, 0
    bodies = tuple(
        body._replace(solids=tuple(solids[place, k] for k in range(len(body.solids))))
        for place, body in enumerate(drawn.bodies)
    )
    return drawn._replace(bodies=bodies), replaced


def _hull(solid: Solid) -> Solid:
    mesh = trimesh.Trimesh(solid.vertices, solid.faces, process=False)
    hull = mesh.convex_hull
    if len(hull.faces) > _OF_HULL:
        hull = trimesh.creation.box(bounds=mesh.bounds)
    return solid._replace(vertices=np.asarray(hull.vertices), faces=np.asarray(hull.faces))
