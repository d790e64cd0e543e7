"""Ropes around circles in space.

A rope meets a circle where the radius is perpendicular to its free span. Along one end of a span
that is one equation in one angle; a span between two circles has two, which Newton's method solves.
In the plane of a circle the span is its tangent. Out of it by the fleet angle theta the tension T
of the span has a component T (1 - cos theta) along the groove that a groove without friction cannot
hold; its share is 0.5 % at the largest fleet angle that is admitted.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._custom_types import Scalar, Vector3
from .._geometry import rotated
from .._stop_gradient import stop_gradient


# The largest angle (rad) between a span and the plane of a pulley. (Cranes have at most 4 deg: F.
# ISO 16625:2013.)
LARGEST_FLEET = 0.1
# Newton's method converges quadratically from where each end is the tangent from the other circle's
# nearest tangent; two steps are differentiated, which makes derivatives exact up to the third.
_STARTS, _STEPS, _DIFFERENTIATED = 3, 6, 2
_STEP = 0.05


class Circle(NamedTuple):
    """A circle about z of a frame with a signed radius (m), a point where that is zero."""

    centre: Vector3
    axes: Float[Array, "3 3"]
    radius: Scalar

    def tangent(self, heading: Scalar) -> Vector3:
        """Direction of the rope where it touches, by its angle against x (rad)."""
        return jnp.cos(heading) * self.axes[:, 0] + jnp.sin(heading) * self.axes[:, 1]

    def side(self, heading: Scalar) -> Vector3:
        """From the centre to the right of a rope with that heading."""
        return jnp.sin(heading) * self.axes[:, 0] - jnp.cos(heading) * self.axes[:, 1]

    def touch(self, heading: Scalar) -> Vector3:
        """The point that a rope with that heading touches."""
        return self.centre + self.radius * self.side(heading)

    def heading_to(self, point: Vector3, sign: float) -> Scalar:
        """Heading at the touch of a span that leads to a point (`sign` 1) or comes from it (-1)."""
        along = sign * rotated(self.axes[:, :2].T, point - self.centre)
        square = jnp.sum(along**2)
        outside = square > self.radius**2
        length = jnp.sqrt(jnp.where(outside, square - self.radius**2, 1.0))
        apart = square > 0
        ahead = jnp.arctan2(jnp.where(apart, along[1], 0.0), jnp.where(apart, along[0], 1.0))
        found = ahead + sign * jnp.arctan2(self.radius, length)
        return jnp.where(self.radius == 0, 0.0, jnp.where(outside, found, jnp.nan))


class SpaceSpan(NamedTuple):
    """A free span: its length (m), the headings (rad) at the circles that it leaves and reaches,
    and its largest angle against their planes (rad)."""

    length: Scalar
    leaves: Scalar
    reaches: Scalar
    fleet: Scalar


def space_span(first: Circle, second: Circle) -> SpaceSpan:
    """The free span from one circle to another."""
    headings = stop_gradient(_solved(*stop_gradient((first, second))))
    for _ in range(_DIFFERENTIATED):
        headings = _step(first, second, headings)
    between = second.touch(headings[1]) - first.touch(headings[0])
    square = between @ between
    apart = square > 0
    length = jnp.where(apart, jnp.sqrt(jnp.where(apart, square, 1.0)), 0.0)
    along = stop_gradient(between / jnp.where(apart, length, 1.0))
    sines = [jnp.where(c.radius == 0, 0.0, jnp.abs(c.axes[:, 2] @ along)) for c in (first, second)]
    fleet = jnp.arcsin(jnp.minimum(jnp.maximum(*sines), 1.0))
    return SpaceSpan(length, headings[0], headings[1], stop_gradient(fleet))


def _solved(first: Circle, second: Circle) -> Float[Array, "2"]:
    reached = second.centre
    headings = jnp.zeros(2, reached.dtype)
    for _ in range(_STARTS):
        leaves = first.heading_to(reached, 1.0)
        reaches = second.heading_to(first.touch(leaves), -1.0)
        reached = second.touch(reaches)
        headings = jnp.stack([leaves, reaches])
    return jax.lax.fori_loop(0, _STEPS, lambda _, own: _step(first, second, own), headings)


def _step(first: Circle, second: Circle, headings: Float[Array, "2"]) -> Float[Array, "2"]:
    """A step of Newton's method for radii perpendicular to the span, whose Jacobian has the free
    lengths in the circles' planes on its diagonal."""
    one, two = headings[0], headings[1]
    sides, along = (first.side(one), second.side(two)), (first.tangent(one), second.tangent(two))
    between = second.touch(two) - first.touch(one)
    at_first, at_second = first.radius == 0, second.radius == 0
    f = jnp.where(at_first, 0.0, sides[0] @ between)
    g = jnp.where(at_second, 0.0, sides[1] @ between)
    a = jnp.where(at_first, 1.0, along[0] @ between)
    b = jnp.where(at_first, 0.0, second.radius * (sides[0] @ along[1]))
    c = jnp.where(at_second, 0.0, -first.radius * (sides[1] @ along[0]))
    d = jnp.where(at_second, 1.0, along[1] @ between)
    size = a * d - b * c
    return headings - jnp.stack([d * f - b * g, a * g - c * f]) / size


class SpaceWay(NamedTuple):
    """The spans of a way, one after the other, and the changes of heading (rad) at its inner
    circles, known up to full turns."""

    spans: SpaceSpan
    turned: Float[Array, " inner"]


def space_way(
    points: Float[Array, "n 3"], axes: Float[Array, "n 3 3"], radii: Float[Array, " n"]
) -> SpaceWay:
    """**Arguments:** `points` (n, 3): centres (m). `axes` (n, 3, 3): orientations of frames whose z
    is the circles' axis. `radii` (n,): signed (m)."""
    circles = Circle(points, axes, radii)
    first, second = (jax.tree.map(lambda x, s=s: x[s], circles) for s in (np.s_[:-1], np.s_[1:]))
    spans = jax.vmap(space_span)(first, second)
    return SpaceWay(spans, spans.leaves[1:] - spans.reaches[:-1])


def space_length(
    way: SpaceWay, radii: Float[Array, " n"], turned: Float[Array, " inner"]
) -> Scalar:
    """Length of the way (m), with the arcs `turned` (rad); NaN where a span leaves the plane of a
    pulley by more than the largest fleet angle."""
    held = jnp.max(way.spans.fleet) <= LARGEST_FLEET
    doubt = stop_gradient(jnp.where(held, 0.0, jnp.nan).astype(radii.dtype))
    return jnp.sum(way.spans.length) + radii[1:-1] @ turned + doubt


def space_outline(
    points: np.ndarray, axes: np.ndarray, radii: np.ndarray, way: SpaceWay, turned: np.ndarray
) -> Float[np.ndarray, "m 3"]:
    """The line of a way with points on its arcs; known numbers only."""
    lines = []
    for k, centre in enumerate(points):
        if not radii[k]:
            lines.append(centre[None])
            continue
        arriving, arc = float(way.spans.reaches[k - 1]), float(turned[k - 1])
        steps = 1 + int(np.ceil(abs(arc) / _STEP))
        angles = arriving + arc * np.linspace(0.0, 1.0, steps)[:, None]
        side = np.sin(angles) * axes[k][:, 0] - np.cos(angles) * axes[k][:, 1]
        lines.append(centre + radii[k] * side)
    return np.concatenate(lines)
