"""Distances between shapes in contact, and the points where they touch.

A shape is evaluated in the axes of its marker, which has its origin in the shape. A pair of shapes
has one possible contact point or several: one for each end of a capsule and each corner of a box
above a half-space, one between other shapes. All functions hold in the plane and in space.

Where a distance has no gradient, a direction is chosen and the derivative is that of the chosen
branch: the last axis of the world where centres coincide or axes of capsules cross, the nearest
face for a point within a box.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._constraints import Frames
from .._custom_types import Scalar
from .._geometry import rotated
from .._stop_gradient import stop_gradient


class Touch(NamedTuple):
    """The possible contact points of a pair of shapes.

    - `gap` (points,): distance of the surfaces (m), negative where they overlap.
    - `normal` (points, dim): the unit vector in the world from the second shape to the first.
    - `levers`: of each shape the vectors (points, dim) (m, world axes) from the origin of its
      marker to the contact point, which is halfway between the surfaces.
    """

    gap: Float[Array, " points"]
    normal: Float[Array, "points dim"]
    levers: tuple[Float[Array, "points dim"], Float[Array, "points dim"]]


class Ball(eqx.Module):
    """A sphere, in the plane a disc: `radius` (m) about the marker's origin; zero is a point."""

    radius: Scalar


class Rod(eqx.Module):
    """A capsule: all points within `radius` (m) of the segment from -`half` to `half` (m, marker
    axes)."""

    radius: Scalar
    half: Float[Array, " dim"]


class Block(eqx.Module):
    """A box about the marker's origin, along its axes: `half` of its edges (m)."""

    half: Float[Array, " dim"]


class Hull(eqx.Module):
    """A convex polytope: `corners` (m, marker axes), and of each face (an edge in the plane) as
    many of them as the space has dimensions, counterclockwise seen from outside."""

    corners: Float[Array, "corners dim"]
    faces: tuple[tuple[int, ...], ...] = eqx.field(static=True)


class Wall(eqx.Module):
    """A half-space: all points behind the plane through the marker's origin with the outward
    unit vector `normal` (marker axes)."""

    normal: Float[Array, " dim"]


def _unit(
    vector: Float[Array, " dim"], size: Scalar | None = None
) -> tuple[Scalar, Float[Array, " dim"]]:
    """Length and direction of a vector; where it vanishes, zero and the last axis, of derivative
    zero. `size`: of the numbers whose difference it is, if it is more than one difference; it
    vanishes where it is their rounding."""
    square = vector @ vector
    least = 0.0 if size is None else (100 * jnp.finfo(vector.dtype).eps * size) ** 2
    apart = square > least
    length = jnp.sqrt(jnp.where(apart, square, 1.0))
    last = np.eye(len(vector), dtype=vector.dtype)[-1]
    return jnp.where(apart, length, 0.0), jnp.where(apart, vector / length, last)


def _round(
    between: Float[Array, " dim"],
    centre: Float[Array, " dim"],
    radii: tuple[Scalar, Scalar],
    apart: Float[Array, " dim"],
    size: Scalar | None = None,
) -> Touch:
    """The touch of two spheres. `between`: from the second's centre to the first's; `centre`: of
    the first, from its marker; `apart`: from the second marker to the first; `size` as of
    `_unit`."""
    distance, normal = _unit(between, size)
    gap = distance - radii[0] - radii[1]
    lever = centre - normal * (radii[0] + gap / 2)
    return Touch(gap[None], normal[None], (lever[None], (lever + apart)[None]))


def _apart(frames: Frames) -> Float[Array, " dim"]:
    """From the origin of the second marker to that of the first (m)."""
    # Differences first, so that nothing but them is rounded far from the world's origin.
    return frames[0].origin - frames[1].origin


def _ball_ball(first: Ball, second: Ball, frames: Frames) -> Touch:
    apart = _apart(frames)
    return _round(apart, jnp.zeros_like(apart), (first.radius, second.radius), apart)


def _ball_rod(first: Ball, second: Rod, frames: Frames) -> Touch:
    apart = _apart(frames)
    half = rotated(frames[1].rotation, second.half)
    along = _clipped(_ratio(apart @ half, half @ half))
    radii, size = (first.radius, second.radius), jnp.max(jnp.abs(half))
    return _round(apart - along * half, jnp.zeros_like(apart), radii, apart, size)


# The weight on the middle of parallel axes, relative to that of the least distance. A larger one
# moves the points of axes that are not parallel, and a smaller one makes derivatives steeper: next
# to parallel axes they are of the inverse of it, and lose as many digits.
_SIDE_BY_SIDE = 1e-10


def _rod_rod(first: Rod, second: Rod, frames: Frames) -> Touch:
    """The closest points s h1 of the first axis and t h2 of the second: the minimum of a convex
    quadratic over -1 <= s, t <= 1.

    For parallel axes they are not unique, and the middle of the overlap is taken. It is the limit
    of a small weight on the distance from that middle, which keeps derivatives finite next to
    parallel axes; at angles far from 1e-5 rad it changes the points by 1e-10 over the
    squared angle of their lengths, and the gap by the square of that.
    """
    apart = _apart(frames)
    h1, h2 = (rotated(f.rotation, own.half) for f, own in zip(frames, (first, second), strict=True))
    a, e, b = h1 @ h1, h2 @ h2, h1 @ h2
    f1, f2 = h1 @ apart, h2 @ apart
    # Where the ends of the second project on the first.
    middle, width = _ratio(-f1, a), _ratio(jnp.abs(b), a)
    low, high = jnp.maximum(middle - width, -1.0), jnp.minimum(middle + width, 1.0)
    middle = _clipped((low + high) / 2)
    weight = max(_SIDE_BY_SIDE, 100 * float(jnp.finfo(apart.dtype).eps)) * a * e
    s = _clipped(
        _ratio(b * f2 - e * f1 + weight * middle, jnp.maximum(a * e - b * b, 0.0) + weight)
    )
    t = _clipped(_ratio(b * s + f2, e))
    s = _clipped(_ratio(b * t - f1, a))
    centre = s * h1
    radii, size = (first.radius, second.radius), jnp.max(jnp.abs(jnp.stack([h1, h2])))
    return _round(apart + centre - t * h2, centre, radii, apart, size)


def _ratio(above: Scalar, below: Scalar) -> Scalar:
    """Zero where `below` is, as of a capsule without length."""
    some = below > 0
    return jnp.where(some, above / jnp.where(some, below, 1.0), 0.0)


def _clipped(x: Scalar) -> Scalar:
    return jnp.minimum(jnp.maximum(x, -1.0), 1.0)


def _points_wall(
    points: Float[Array, "points dim"], radius: Scalar, wall: Wall, frames: Frames
) -> Touch:
    """Spheres about points of the first marker (world axes) above a half-space."""
    apart = _apart(frames)
    normal = rotated(frames[1].rotation, wall.normal)
    gap = (points + apart[None]) @ normal - radius
    levers = points - (radius + gap / 2)[:, None] * normal[None]
    normals = jnp.broadcast_to(normal[None], points.shape)
    return Touch(gap, normals, (levers, levers + apart[None]))


def _ball_wall(first: Ball, second: Wall, frames: Frames) -> Touch:
    centre = jnp.zeros_like(frames[0].origin)[None]
    return _points_wall(centre, first.radius, second, frames)


def _rod_wall(first: Rod, second: Wall, frames: Frames) -> Touch:
    half = rotated(frames[0].rotation, first.half)
    return _points_wall(jnp.stack([-half, half]), first.radius, second, frames)


def _block_wall(first: Block, second: Wall, frames: Frames) -> Touch:
    dimension = first.half.shape[0]
    signs = np.stack(np.meshgrid(*[[-1.0, 1.0]] * dimension, indexing="ij"), axis=-1)
    corners = signs.reshape(-1, dimension).astype(first.half.dtype) * first.half[None]
    turned = corners @ frames[0].rotation.T
    return _points_wall(turned, jnp.zeros((), turned.dtype), second, frames)


def _ball_block(first: Ball, second: Block, frames: Frames) -> Touch:
    apart = _apart(frames)
    rotation = frames[1].rotation
    centre = rotation.T @ apart
    outside, outward = _unit(centre - jnp.clip(centre, -second.half, second.half))
    within = jnp.abs(centre) - second.half
    face = jnp.argmax(within)
    chosen = jnp.arange(len(within)) == face
    inward = jnp.where(chosen, jnp.where(centre < 0, -1.0, 1.0), 0.0).astype(centre.dtype)
    is_outside = outside > 0
    distance = jnp.where(is_outside, outside, jnp.where(chosen, within, 0.0).sum())
    normal = rotation @ jnp.where(is_outside, outward, inward)
    gap = distance - first.radius
    lever = -normal * (first.radius + gap / 2)
    return Touch(gap[None], normal[None], (lever[None], (lever + apart)[None]))


def _rod_block(first: Rod, second: Block, frames: Frames) -> Touch:
    """The signed distance of the capsule's axis from the box: of points outside of it, and where
    the axis cuts the box the least way out of it, along a face's normal or across an edge and the
    axis (the faces of the box swept along the axis). Of an axis along a face the middle of where it
    is above the face is taken, as of parallel axes (`_rod_rod`)."""
    rotation = frames[1].rotation
    half = rotated(frames[0].rotation, first.half)
    along, centre = rotation.T @ half, rotation.T @ _apart(frames)
    middle = _middle_above(centre, along, second.half)
    outer = _nearest_outside(centre, along, second.half, middle)
    depth, inward, inner = _way_out(centre, along, second.half, middle)
    is_outside = depth > 0
    place = centre + outer * along
    outside, outward = _unit(place - jnp.clip(place, -second.half, second.half))
    normal = rotation @ jnp.where(is_outside, outward, inward)
    gap = jnp.where(is_outside, outside, depth) - first.radius
    lever = jnp.where(is_outside, outer, inner) * half - normal * (first.radius + gap / 2)
    apart = _apart(frames)
    return Touch(gap[None], normal[None], (lever[None], (lever + apart)[None]))


def _middle_above(
    centre: Float[Array, " dim"], along: Float[Array, " dim"], half: Float[Array, " dim"]
) -> Scalar:
    """Middle of the part of an axis, -1 <= s <= 1, that is within the box's edges along all axes of
    the box but that of its highest face."""
    face = jnp.arange(len(half)) == jnp.argmax(jnp.abs(centre) - half)
    moving = (along != 0) & ~face
    slope = jnp.where(moving, along, 1.0)
    ends = jnp.stack([(-half - centre) / slope, (half - centre) / slope])
    low = jnp.max(jnp.where(moving, jnp.min(ends, axis=0), -1.0), initial=-1.0)
    high = jnp.min(jnp.where(moving, jnp.max(ends, axis=0), 1.0), initial=1.0)
    return _clipped((low + high) / 2)


def _nearest_outside(
    centre: Float[Array, " dim"],
    along: Float[Array, " dim"],
    half: Float[Array, " dim"],
    middle: Scalar,
) -> Scalar:
    """Minimum of the squared distance from a box along an axis: where its slope, which increases
    and is linear between the planes of the faces, is zero."""
    weight = max(_SIDE_BY_SIDE, 100 * float(jnp.finfo(along.dtype).eps)) * (along @ along)

    def slope(s: Scalar) -> Scalar:
        place = centre + s * along
        return along @ (place - jnp.clip(place, -half, half)) + weight * (s - middle)

    moving = along != 0
    safe = jnp.where(moving, along, 1.0)
    planes = jnp.concatenate([(-half - centre) / safe, (half - centre) / safe])
    planes = jnp.where(jnp.concatenate([moving, moving]), planes, 1.0)
    knots = jnp.sort(jnp.concatenate([jnp.clip(planes, -1.0, 1.0), jnp.array([-1.0, 1.0])]))
    knots = stop_gradient(knots.astype(along.dtype))
    below = jnp.sum(jax.vmap(slope)(knots) < 0)
    place = jnp.clip(below, 1, len(knots) - 1)
    between = (knots[place - 1] + knots[place]) / 2
    # Between two knots the distance is that from the same faces.
    off = jnp.abs(centre + between * along) > half
    side = jnp.where(centre + between * along > 0, half, -half)
    above = jnp.sum(jnp.where(off, along * (side - centre), 0.0)) + weight * middle
    return _clipped(_ratio(above, jnp.sum(jnp.where(off, along * along, 0.0)) + weight))


def _way_out(
    centre: Float[Array, " dim"],
    along: Float[Array, " dim"],
    half: Float[Array, " dim"],
    middle: Scalar,
) -> tuple[Scalar, Float[Array, " dim"], Scalar]:
    """The greatest separation of an axis from a box over the normals of their faces and edges
    (negative where they overlap), the normal from the box, and the point of the axis."""
    identity = np.eye(len(half))
    normals = jnp.asarray(np.concatenate([identity, -identity]), along.dtype)
    slopes = normals @ along
    apart = [normals @ centre - jnp.abs(slopes) - jnp.concatenate([half, half])]
    # Of an axis along the face its middle.
    flat = jnp.abs(slopes) <= _SIDE_BY_SIDE * jnp.sum(jnp.abs(along))
    places = [jnp.where(flat, middle, -jnp.sign(slopes))]
    directions = [normals]
    for edge in identity if len(half) == 3 else np.zeros((1, 2)):
        across = jnp.cross(jnp.asarray(edge, along.dtype), along) if len(half) == 3 else None
        across = jnp.stack([-along[1], along[0]]) if across is None else across
        size, normal = _unit(across, jnp.max(jnp.abs(along)))
        normal = jnp.where(normal @ centre < 0, -normal, normal)
        # From the corner of the box that leads in this direction, beside its edge.
        corner = jnp.where(normal < 0, -half, half)
        beside = along * (1 - edge)
        places.append(_clipped(_ratio((corner - centre) @ beside, beside @ beside))[None])
        own = normal @ centre - jnp.abs(normal) @ half
        apart.append(jnp.where(size > 0, own, -jnp.inf)[None])
        directions.append(normal[None])
    separations, found = jnp.concatenate(apart), jnp.concatenate(places)
    best = jnp.argmax(separations)
    return separations[best], jnp.concatenate(directions)[best], found[best]


def _hull_wall(first: Hull, second: Wall, frames: Frames) -> Touch:
    turned = first.corners @ frames[0].rotation.T
    return _points_wall(turned, jnp.zeros((), turned.dtype), second, frames)


def _ball_hull(first: Ball, second: Hull, frames: Frames) -> Touch:
    """The signed distance of a centre from a convex polytope: from the nearest point of its faces,
    and within it that of the nearest plane."""
    apart, rotation = _apart(frames), frames[1].rotation
    centre = rotation.T @ apart
    corners = second.corners[np.array(second.faces)]
    normals = _outward(corners)
    heights = jnp.sum(normals * (centre[None] - corners[:, 0]), axis=1)
    best = jnp.argmax(heights)
    nearest = jax.vmap(lambda face, normal: _nearest_on(face, normal, centre))(corners, normals)
    between = centre[None] - nearest
    chosen = jnp.argmin(jnp.sum(between**2, axis=1))
    outside, outward = _unit(between[chosen])
    is_outside = (heights[best] > 0) & (outside > 0)
    distance = jnp.where(is_outside, outside, heights[best])
    normal = rotation @ jnp.where(is_outside, outward, normals[best])
    gap = distance - first.radius
    lever = -normal * (first.radius + gap / 2)
    return Touch(gap[None], normal[None], (lever[None], (lever + apart)[None]))


def _outward(corners: Float[Array, "faces count dim"]) -> Float[Array, "faces dim"]:
    """Unit normals of faces."""
    along = corners[:, 1] - corners[:, 0]
    if corners.shape[2] == 2:
        across = jnp.stack([along[:, 1], -along[:, 0]], axis=1)
    else:
        across = jnp.cross(along, corners[:, 2] - corners[:, 0])
    return across / jnp.linalg.norm(across, axis=1, keepdims=True)


def _nearest_on(
    face: Float[Array, "count dim"], normal: Float[Array, " dim"], point: Float[Array, " dim"]
) -> Float[Array, " dim"]:
    """The nearest point of a segment, or of a triangle: within it the foot of the perpendicular,
    elsewhere on an edge."""
    starts, along = face, jnp.roll(face, -1, axis=0) - face
    if len(face) == 2:
        starts, along = face[:1], along[:1]
    share = jnp.sum((point[None] - starts) * along, axis=1) / jnp.sum(along**2, axis=1)
    feet = starts + jnp.clip(share, 0.0, 1.0)[:, None] * along
    on_edge = feet[jnp.argmin(jnp.sum((point[None] - feet) ** 2, axis=1))]
    if len(face) == 2:
        return on_edge
    beside = jnp.cross(normal[None], along)
    within = jnp.all(jnp.sum((point[None] - starts) * beside, axis=1) >= 0)
    return jnp.where(within, point - normal * (normal @ (point - face[0])), on_edge)


_TOUCH: Mapping[tuple[type[Any], type[Any]], Callable[[Any, Any, Frames], Touch]] = (
    MappingProxyType(
        {
            (Ball, Ball): _ball_ball,
            (Ball, Rod): _ball_rod,
            (Rod, Rod): _rod_rod,
            (Ball, Wall): _ball_wall,
            (Rod, Wall): _rod_wall,
            (Block, Wall): _block_wall,
            (Ball, Block): _ball_block,
            (Rod, Block): _rod_block,
            (Ball, Hull): _ball_hull,
            (Hull, Wall): _hull_wall,
        }
    )
)


def is_known(first: Any, second: Any) -> bool:
    """Is the distance of the two kinds of shapes known, in this order or the other?"""
    kinds = type(first), type(second)
    return kinds in _TOUCH or kinds[::-1] in _TOUCH


def touch(first: Any, second: Any, frames: Frames) -> Touch:
    """The possible contact points of two shapes at their markers."""
    found = _TOUCH.get((type(first), type(second)))
    if found is not None:
        return found(first, second, frames)
    other = _TOUCH[type(second), type(first)](second, first, frames[::-1])
    on_second, on_first = other.levers
    return Touch(other.gap, -other.normal, (on_first, on_second))


def has_fixed_normal(first: Any, second: Any) -> bool:
    """Is the normal of the pair fixed in one of the bodies?"""
    return Wall in (type(first), type(second))


def point_count(first: Any, second: Any, dimension: int) -> int:
    """Number of possible contact points of a pair."""
    kinds = {type(first), type(second)}
    if Wall not in kinds:
        return 1
    if Hull in kinds:
        return (first if isinstance(first, Hull) else second).corners.shape[0]
    return 2**dimension if Block in kinds else 2 if Rod in kinds else 1
