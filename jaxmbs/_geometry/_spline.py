"""C2 cubic splines through points of the plane or of space, and the places on them that are nearest
to a point, or farthest along a direction.

The parameter u (m) counts along the chords between the points (chordal parametrisation, by which a
cubic spline approximates a smooth curve to the fourth order; Floater 2006, IMA J. Numer. Anal.
26:25). It is close to the length of arc, so that |c'(u)| is close to 1.

A place on the curve is found without derivatives, and then corrected by steps of Newton's method
that are differentiated. The first derivatives of the place are right after one step, the first
three after two. A distance that is stationary in the place, as that from the nearest point and that
along a direction are, has its first three right after one step.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import BoolScalar, Scalar


# Steps of the search, each of which about doubles the digits of a start that has one.
_SEARCH = 8

# Below this part of |c'|^2 the slope of the nearest place's condition is taken as |c'|^2: the point
# is next to the centre of curvature, where no place is nearest.
_FLATTEST = 1e-2

# Two points of the curve that are as close as this part of its length coincide.
_COINCIDE = 1e-9

# Nodes and weights of Gauss-Legendre quadrature on [-1, 1], for lengths of arc.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)


class OnSpline(eqx.Module):
    """A place on a spline: of one cubic piece (4, dim), lowest power first, the parameter x (m)
    from its beginning; `inside`: is it on the curve, and not beyond its ends?"""

    piece: Float[Array, "4 dim"]
    x: Scalar
    inside: BoolScalar

    def derivatives(self) -> Float[Array, "3 dim"]:
        """c, c' and c'' there."""
        return _derivatives(self.piece, self.x)


class Spline(eqx.Module):
    """`knots` (n + 1,): parameter at the ends of the pieces, from 0; `pieces` (n, 4, dim): powers
    of the parameter from the beginning of the piece, lowest first."""

    knots: Float[Array, " knots"]
    pieces: Float[Array, "segments 4 dim"]
    closed: bool = eqx.field(static=True)

    def nearest(self, point: Float[Array, " dim"], steps: int) -> OnSpline:
        """The place that is nearest to a point; `steps` of Newton's method are differentiated."""

        def condition(c: Any, target: Any) -> tuple[Scalar, Scalar]:
            apart, first, second = c[0] - target, c[1], c[2]
            square = first @ first
            slope = square + apart @ second
            return apart @ first, jnp.where(slope > _FLATTEST * square, slope, square)

        return self._place(self._near_polygon(lax.stop_gradient(point)), condition, point, steps)

    def farthest(self, direction: Float[Array, " dim"]) -> OnSpline:
        """The place that lies farthest along a direction of unit length; of a closed curve. One
        step of Newton's method is differentiated."""

        def condition(c: Any, target: Any) -> tuple[Scalar, Scalar]:
            slope = -(target @ c[2])
            # A straight piece has no slope: the step then goes on, as far as it may.
            least = 1e-6 / self.knots[-1]
            return -(target @ c[1]), jnp.where(slope > least, slope, least)

        along = lax.stop_gradient(self.pieces[:, 0] @ direction)
        return self._place(self.knots[jnp.argmax(along)], condition, direction, 1)

    def _near_polygon(self, point: Float[Array, " dim"]) -> Scalar:
        """The parameter of the nearest point of the chords."""
        start, end = self._ends()
        chord = end - start
        square = jnp.sum(chord**2, axis=1)
        s = jnp.clip(jnp.sum((point[None] - start) * chord, axis=1) / square, 0.0, 1.0)
        apart = point[None] - start - s[:, None] * chord
        k = jnp.argmin(jnp.sum(apart**2, axis=1))
        return lax.stop_gradient(self.knots[k] + s[k] * (self.knots[k + 1] - self.knots[k]))

    def _ends(self) -> tuple[Float[Array, "segments dim"], Float[Array, "segments dim"]]:
        width = jnp.diff(self.knots)[:, None]
        a, b, c, d = (self.pieces[:, k] for k in range(4))
        return a, a + width * (b + width * (c + width * d))

    def _place(self, start: Scalar, condition: Any, target: Any, steps: int) -> OnSpline:
        """The zero of a condition of (c, c', c'') and the target, searched from a parameter.
        `condition` returns the condition and its slope over the parameter."""
        known, aim = lax.stop_gradient((self, target))
        whole = known.knots[-1]
        longest = jnp.max(jnp.diff(known.knots))

        def search(_: Any, u: Scalar) -> Scalar:
            k = known.segment(u)
            value, slope = condition(_derivatives(known.pieces[k], u - known.knots[k]), aim)
            u = u - jnp.clip(value / slope, -longest, longest)
            return u - whole * jnp.floor(u / whole) if self.closed else jnp.clip(u, 0.0, whole)

        u = lax.fori_loop(0, _SEARCH, search, lax.stop_gradient(start))
        k = known.segment(u)
        piece, x = self.pieces[k], u - known.knots[k]
        for _ in range(steps):
            value, slope = condition(_derivatives(piece, x), target)
            x = x - value / slope
        return OnSpline(piece, x, self._inside(lax.stop_gradient(x) + known.knots[k]))

    def segment(self, u: Scalar) -> Array:
        """The index of the piece at a parameter."""
        return jnp.sum(u >= self.knots[1:-1])

    def _inside(self, u: Scalar) -> BoolScalar:
        if self.closed:
            return jnp.isfinite(u)
        whole = lax.stop_gradient(self.knots[-1])
        return (u >= -_COINCIDE * whole) & (u <= (1 + _COINCIDE) * whole)

    def at(self, u: Float[Array, " n"]) -> Float[Array, "n 3 dim"]:
        """c, c' and c'' at parameters, by NumPy if all numbers are known."""
        return _checks.of_known(_evaluate, self.knots, self.pieces, u)

    def length(self) -> Scalar:
        """Length of arc (m), to 12 digits or so where points are close enough to make a curve."""

        def integral(knots: Any, pieces: Any) -> Any:
            xp = _checks.namespace(pieces)
            half = xp.diff(knots) / 2
            u = knots[:-1, None] + half[:, None] * (1 + xp.asarray(_NODES))[None]
            speed = xp.sqrt(xp.sum(_evaluate(knots, pieces, u.ravel())[:, 1] ** 2, axis=1))
            return xp.sum(half[:, None] * speed.reshape(u.shape) * xp.asarray(_WEIGHTS)[None])

        return _checks.of_known(integral, self.knots, self.pieces)


def _derivatives(piece: Float[Array, "4 dim"], x: Scalar) -> Float[Array, "3 dim"]:
    a, b, c, d = (piece[k] for k in range(4))
    return jnp.stack(
        [a + x * (b + x * (c + x * d)), b + x * (2 * c + 3 * x * d), 2 * c + 6 * x * d]
    )


def _evaluate(knots: Any, pieces: Any, u: Any) -> Any:
    xp = _checks.namespace(pieces)
    k = xp.sum(u[:, None] >= knots[None, 1:-1], axis=1)
    x = (u - knots[k])[:, None]
    a, b, c, d = (pieces[k, j] for j in range(4))
    value = a + x * (b + x * (c + x * d))
    return xp.stack([value, b + x * (2 * c + 3 * x * d), 2 * c + 6 * x * d], axis=1)


def spline_through(points: Float[Array, "n dim"], closed: bool) -> Spline:
    """The C2 cubic spline through points, over the lengths of the chords between them: closed
    (periodic), or with ends whose first two pieces, and last two, are one cubic (not a knot; de
    Boor 2001, ch. IV). Differentiable with respect to the points."""

    def knots(points: Any) -> Any:
        xp = _checks.namespace(points)
        lengths = xp.sqrt(xp.sum(_chords(points, closed) ** 2, axis=1))
        return xp.concatenate([xp.zeros((1,)), xp.cumsum(lengths)])

    def pieces(points: Any) -> Any:
        xp = _checks.namespace(points)
        chords = _chords(points, closed)
        h = xp.sqrt(xp.sum(chords**2, axis=1))
        slope = chords / h[:, None]
        at_knots = _closed_slopes(xp, h, slope) if closed else _open_slopes(xp, h, slope)
        left = at_knots if closed else at_knots[:-1]
        right = xp.roll(at_knots, -1, axis=0) if closed else at_knots[1:]
        second = (3 * slope - 2 * left - right) / h[:, None]
        third = (left + right - 2 * slope) / h[:, None] ** 2
        return xp.stack([points if closed else points[:-1], left, second, third], axis=1)

    return Spline(_checks.of_known(knots, points), _checks.of_known(pieces, points), closed)


def _chords(points: Any, closed: bool) -> Any:
    xp = _checks.namespace(points)
    return xp.roll(points, -1, axis=0) - points if closed else points[1:] - points[:-1]


def _closed_slopes(xp: Any, h: Any, slope: Any) -> Any:
    """Continuity of the second derivative at every point."""
    one, before, after = np.eye(len(h)), 1 / xp.roll(h, 1), 1 / h
    matrix = 2 * (before + after)[:, None] * one
    matrix = matrix + before[:, None] * np.roll(one, -1, axis=1)
    matrix = matrix + after[:, None] * np.roll(one, 1, axis=1)
    right = 3 * (before[:, None] * xp.roll(slope, 1, axis=0) + after[:, None] * slope)
    return xp.linalg.solve(matrix, right)


def _open_slopes(xp: Any, h: Any, slope: Any) -> Any:
    """Continuity of the second derivative at the points between, and of the third at the second
    and the last but one."""
    one, w = np.eye(len(h) + 1), 1 / h
    matrix = 2 * (w[:-1] + w[1:])[:, None] * one[1:-1]
    matrix = matrix + w[:-1, None] * one[:-2] + w[1:, None] * one[2:]
    right = 3 * (w[:-1, None] * slope[:-1] + w[1:, None] * slope[1:])

    def end(own: int, second: int, third: int, outer: int, inner: int) -> tuple[Any, Any]:
        a, b = 1.0, (h[outer] / h[inner]) ** 2
        row = a * one[own] + (a - b) * one[second] - b * one[third]
        return row[None], (2 * a * slope[outer] - 2 * b * slope[inner])[None]

    first, first_right = end(0, 1, 2, 0, 1)
    last, last_right = end(-1, -2, -3, -1, -2)
    # In the units of the other rows, so that the solution keeps its digits.
    matrix = xp.concatenate([w[0] * first, matrix, w[-1] * last])
    right = xp.concatenate([w[0] * first_right, right, w[-1] * last_right])
    return xp.linalg.solve(matrix, right)


# --------------------------------------------------------------------------------------------------
# What no curve is made of. Concrete numbers.
# --------------------------------------------------------------------------------------------------


# The sharpest turn (deg) from one chord to the next: beyond it the polygon does not show where the
# curve is.
SHARPEST = 75.0


def check_curve(points: np.ndarray, closed: bool, what: str) -> None:
    """**Raises:** `ValueError` for points of which no smooth curve is made, that names the first:
    too few, two that coincide, a turn that is too sharp, a curve that crosses itself."""
    least = 5 if closed else 4
    if len(points) < least:
        kind = "a closed curve" if closed else "a curve with ends"
        raise ValueError(f"{what} must hold at least {least} points for {kind}, got {len(points)}.")
    chords = _chords(points, closed)
    lengths = np.linalg.norm(chords, axis=1)
    if np.any(lengths <= _COINCIDE * np.sum(lengths)):
        k = int(np.argmin(lengths))
        fix = " (a closed curve does not repeat its first point)" if closed else ""
        following = (k + 1) % len(points) + 1
        raise ValueError(f"{what}, entries {k + 1} and {following} coincide; leave one out{fix}.")
    unit = chords / lengths[:, None]
    following = np.roll(unit, -1, axis=0) if closed else unit[1:]
    cosines = np.sum(unit[: len(following)] * following, axis=1)
    if np.any(cosines < np.cos(np.radians(SHARPEST))):
        k = (int(np.argmin(cosines)) + 1) % len(points)
        turn = np.degrees(np.arccos(np.clip(np.min(cosines), -1.0, 1.0)))
        raise ValueError(
            f"{what}, entry {k + 1}: the curve turns by {turn:.3g} deg there, at most "
            f"{SHARPEST:g} deg from one point to the next are allowed; give more points, closer "
            "together where it bends."
        )
    crossing = _crossing(points, closed)
    if crossing is not None:
        first, second = crossing
        raise ValueError(
            f"{what} crosses or touches itself behind entries {first + 1} and {second + 1}, so "
            "that the place of a point on it is not unique; split it into several curves."
        )


def _crossing(points: np.ndarray, closed: bool) -> tuple[int, int] | None:
    """Two chords, not next to each other, that meet."""
    chords = _chords(points, closed)
    starts, count = points[: len(chords)], len(chords)
    i, j = np.triu_indices(count, 2)
    if closed:
        apart = (i != 0) | (j != count - 1)
        i, j = i[apart], j[apart]
    distance = _segment_distance(starts[i], chords[i], starts[j], chords[j])
    size = np.sum(np.linalg.norm(chords, axis=1))
    met = np.flatnonzero(distance <= _COINCIDE * size)
    return (int(i[met[0]]), int(j[met[0]])) if met.size else None


def _segment_distance(p: np.ndarray, d: np.ndarray, q: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Distance of segments p + s d and q + t e (Ericson 2005, section 5.1.9)."""
    r = p - q
    a, b, f = np.sum(d * d, 1), np.sum(d * e, 1), np.sum(e * r, 1)
    c, g = np.sum(d * r, 1), np.sum(e * e, 1)
    across = a * g - b * b
    parallel = across <= 1e-14 * a * g
    s = np.where(parallel, 0.0, np.clip((b * f - c * g) / np.where(parallel, 1.0, across), 0, 1))
    t = np.clip((b * s + f) / g, 0.0, 1.0)
    s = np.clip((b * t - c) / a, 0.0, 1.0)
    return np.linalg.norm(r + s[:, None] * d - t[:, None] * e, axis=1)


def curvature(c: Float[Array, "3 2"]) -> Scalar:
    """Curvature (1/m) of a planar curve, positive where it turns to the left."""
    return (c[1, 0] * c[2, 1] - c[1, 1] * c[2, 0]) / (c[1] @ c[1]) ** 1.5


def sampled(spline: Spline, each: int = 9) -> np.ndarray:
    """c, c' and c'' (n, 3, dim) at `each` places of every piece of a spline with known numbers."""
    knots = np.asarray(spline.knots)
    u = knots[:-1, None] + np.diff(knots)[:, None] * np.linspace(0.0, 1.0, each)[None]
    return _evaluate(knots, np.asarray(spline.pieces), u.ravel())
