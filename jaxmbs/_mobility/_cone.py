"""The real zeros of a germ near 0: their dimension, their branches, and the order that says so.

A set of zeros of analytic equations looks, near enough to a point of it, like the cone over what it
has in common with a small sphere about that point (Milnor 1968, Singular Points of Complex
Hypersurfaces, theorem 2.10). So the equations are minimised on spheres of several radii r. Where
the minimum is zero on all of them a branch goes on; what dimension it has is seen about a point of
it, by the zeros on a much smaller sphere. Where it is not zero it grows as r^m, and m is the order
of the condition that stops the motion: a curve z(s) in that direction satisfies all conditions
of lower order with some choice of its higher derivatives, and none satisfies that of order m (the
kinematic tangent cone, order by order: Lerbet 1998, ZAMM 78, 687; Mueller 2018, J. Mechanisms
Robotics 10). Ranks of derivatives are not asked: of an equation such as z1^2 = 0 they say as
little everywhere as at the start.
"""

from typing import NamedTuple

import numpy as np

from ._germ import AbstractGerm, Restricted, Values
from ._spheres import directions, Link, link, NOT_ZERO, Piece, refined, surfaces, ZERO


# More unknowns than these are too many to find all branches by random starts.
MOST_UNKNOWNS = 12

# The radius of spheres is halved so often, until two in turn say the same.
_HALVINGS = 6
_TRIES = 3
_LEAST_RADIUS = 1e-4

# Arcs whose directions differ by less from one on a smaller sphere go on in that.
_NEARLY = 0.1

# Powers of the radius that differ by less from a whole number are that.
_WHOLE = 0.1


class Cone(NamedTuple):
    """Zeros near 0. `order`: that of the highest condition that was needed; 1 without equations.
    `reach`: conditions up to this order were examined. `radius`: the distance up to which zeros
    were confirmed; `left`: the largest value there. `decided`; `doubts`: why not, or
    what else is not sure. `restricting` (p', p): the combinations of equations that are not zero
    everywhere, orthonormal."""

    pieces: tuple[Piece, ...]
    order: int
    reach: int
    radius: float
    left: float
    decided: bool
    doubts: tuple[str, ...]
    restricting: np.ndarray

    @property
    def dimension(self) -> int:
        return max((piece.dimension for piece in self.pieces), default=0)


def cone(germ: AbstractGerm, order: int, largest: float) -> Cone:
    """The cone of the zeros within `largest`; decided if no condition up to that order can be
    missed."""
    rng, none = np.random.default_rng(0), np.zeros((0, germ.equations))
    k, zero = germ.unknowns, ZERO * germ.noise
    whole = _everything(np.eye(k), np.zeros((0, k)))
    if germ.equations == 0 or k == 0:
        return Cone((whole,) if k else (), 1, order, 0.0, 0.0, True, (), none)
    radius, probe = _first_radius(germ, largest, rng)
    if probe is None:
        return undecided(
            germ,
            "the constraints could not be solved for as many coordinates as "
            "they determine; the configuration is next to another singular one",
        )
    size = np.max(np.abs(probe.value))
    if size <= NOT_ZERO * germ.noise:
        points = radius * directions(rng, 4, k)
        reach = _reach(zero, radius)
        doubts = () if size <= zero else ("values next to the configuration are nearly zero",)
        if reach < order:
            doubts += (_too_small(reach),)
        whole = _everything(np.eye(k), points)
        return Cone((whole,), reach, reach, radius, float(size), reach >= order, doubts, none)
    basis, idle = _unknowns_that_count(germ, radius, rng)
    if basis.shape[1] > MOST_UNKNOWNS:
        return undecided(
            germ,
            f"{basis.shape[1]} first-order motions depend on each other, and "
            f"branches are looked for among {MOST_UNKNOWNS} at most",
        )
    inside = Restricted(germ, basis)
    found = _spheres(inside, order, radius, rng)
    _, sizes, right = np.linalg.svd(probe.value, full_matrices=False)
    restricting = right[sizes > NOT_ZERO * germ.noise * np.sqrt(len(probe.value))]
    pieces = _with_idle(found.pieces, basis, idle, k)
    return found._replace(pieces=pieces, restricting=restricting)


def _everything(basis: np.ndarray, points: np.ndarray) -> Piece:
    """A branch along all of the basis (k, dimension)."""
    tangents = np.repeat(basis[None], len(points), axis=0)
    return Piece(basis.shape[1], basis, False, False, points, tangents)


def second_order_forms(germ: AbstractGerm, radius: float) -> np.ndarray | None:
    """The quadratic forms (p, k, k) of g = z^T A z + ...: derivatives along curves, from slopes on
    Chebyshev's points of each axis."""
    if 0 in (germ.unknowns, germ.equations):
        return np.zeros((germ.equations, germ.unknowns, germ.unknowns))
    nodes = np.cos(np.pi * (np.arange(9) + 0.5) / 9)
    points = np.concatenate([radius * nodes[:, None] * axis for axis in np.eye(germ.unknowns)])
    found = germ(points)
    if not np.all(found.found):
        return None
    slopes = found.slope.reshape(germ.unknowns, nodes.size, -1)
    vander = np.polynomial.chebyshev.chebvander(nodes, 8)
    to_powers = np.stack(
        [np.pad(c, (0, 9 - c.size)) for c in map(np.polynomial.chebyshev.cheb2poly, np.eye(9))]
    )
    linear = (np.linalg.inv(vander).T @ to_powers)[:, 1] / radius
    forms = np.einsum("n,anj->aj", linear, slopes) / 2
    forms = forms.reshape(germ.unknowns, germ.equations, germ.unknowns).transpose(1, 0, 2)
    return (forms + forms.transpose(0, 2, 1)) / 2


def undecided(germ: AbstractGerm, why: str) -> Cone:
    """A cone that is not decided."""
    return Cone((), 1, 1, 0.0, 0.0, False, (why,), np.zeros((0, germ.equations)))


def _reach(zero: float, radius: float) -> int:
    """The highest power of the radius, times a thousandth, that is not taken for zero."""
    return max(1, int(np.log(1e3 * zero) / np.log(radius)))


def _first_radius(
    germ: AbstractGerm, largest: float, rng: np.random.Generator
) -> tuple[float, Values | None]:
    """The largest at which the germ can be evaluated, and its values there."""
    radius = largest
    u = directions(rng, 8 + 4 * germ.unknowns, germ.unknowns)
    while radius >= _LEAST_RADIUS:
        found = germ(radius * u)
        if np.all(found.found):
            return radius, found
        radius /= 2
    return radius, None


def _unknowns_that_count(
    germ: AbstractGerm, radius: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal bases of the unknowns on which a germ depends, and of the others."""
    k = germ.unknowns
    u = directions(rng, 4 + 4 * k, k)
    found = [germ(r * u) for r in (radius, radius / 2)]
    slopes = np.concatenate([own.slope[own.found] for own in found])
    _, values, right = np.linalg.svd(slopes.reshape(-1, k), full_matrices=False)
    count = int(np.sum(values > NOT_ZERO * germ.noise / radius * np.sqrt(len(slopes))))
    return right[:count].T, right[count:].T


def _with_idle(
    pieces: tuple[Piece, ...], basis: np.ndarray, idle: np.ndarray, k: int
) -> tuple[Piece, ...]:
    """Pieces among all unknowns, along those that do not count as well."""
    count = idle.shape[1]
    if not pieces and count:
        # Nothing but these moves.
        return (_everything(idle, np.zeros((1, k))),)

    def among_all(piece: Piece) -> Piece:
        also = np.repeat(idle[None], len(piece.points), axis=0)
        return piece._replace(
            dimension=piece.dimension + count,
            tangent=np.concatenate([basis @ piece.tangent, idle], axis=1),
            points=piece.points @ basis.T,
            tangents=np.concatenate([basis @ piece.tangents, also], axis=2),
        )

    return tuple(map(among_all, pieces))


def _spheres(germ: AbstractGerm, order: int, radius: float, rng: np.random.Generator) -> Cone:
    """From spheres that become smaller, until two in turn say the same."""
    zero, touching = ZERO * germ.noise, 0
    outer = inner = link(germ, radius, rng)
    for _ in range(_HALVINGS):
        inner = link(germ, radius / 2, rng)
        touching = max(touching, _merging(outer, inner))
        if outer.signature() == inner.signature() and not outer.doubts and not inner.doubts:
            break
        outer, radius = inner, radius / 2
    else:
        doubts = ["the zeros on small spheres differ from each other", *inner.doubts]
        return undecided(germ, "; ".join(dict.fromkeys(doubts)))
    needed, is_sure = _order(germ, outer, inner, radius, rng)
    reach = _reach(zero, radius)
    pieces, doubts, powers = _told_apart(germ, outer, inner, radius, rng)
    pieces = tuple(refined(germ, piece, radius, rng) for piece in pieces)
    needed = max([needed, *map(round, powers)])
    is_sure &= all(abs(power - round(power)) < 2 * _WHOLE for power in powers)
    # Branches that were taken for one may need a higher order to be told apart.
    is_sure &= not doubts
    if touching > len(outer.halves):
        doubts.append(
            f"{touching} arcs of motion that touch each other were seen, of which "
            f"{len(outer.halves)} differ by more than rounding nearer to the configuration"
        )
    if not is_sure:
        doubts.append(f"the order is about {needed}")
    decided = needed <= reach and (reach >= order or not pieces)
    if not decided:
        doubts.append(_too_small(reach))
    rows = np.eye(germ.equations)
    return Cone(pieces, needed, reach, radius, outer.left, decided, tuple(doubts), rows)


def _merging(outer: Link, inner: Link) -> int:
    """Number of arcs that leave the outer sphere, if all lie next to fewer on the inner one."""
    if len(outer.halves) <= len(inner.halves) or not len(inner.halves):
        return 0
    cosines = outer.halves @ inner.halves.T
    return len(outer.halves) if np.min(np.max(cosines, axis=1)) > 1 - _NEARLY**2 / 2 else 0


def _told_apart(
    germ: AbstractGerm, outer: Link, inner: Link, radius: float, rng: np.random.Generator
) -> tuple[tuple[Piece, ...], list[str], list[float]]:
    """Branches, those of a dimension of two or more one by one, by two spheres; doubts about their
    number, and powers of the radius by which values between those that touch grow."""
    pieces = [piece for piece in outer.pieces if piece.dimension == 1]
    doubts: list[str] = []
    powers: list[float] = []
    for rough, again in zip(*(_surfaces_of(x) for x in (outer, inner)), strict=True):
        tries, found, confirmed, agree = 0, None, None, False
        while found is None or confirmed is None or tries < _TRIES:
            found = surfaces(germ, rough, radius, rng)
            confirmed = surfaces(germ, again, radius / 2, rng)
            agree, tries = found.signature() == confirmed.signature(), tries + 1
            if agree and not found.doubts and not confirmed.doubts:
                break
        if not agree:
            counts = sorted({len(found.pieces), len(confirmed.pieces)})
            words = " or ".join(str(count) for count in counts)
            doubts.append(
                f"the number of branches of dimension {rough.dimension} is not sure ({words})"
            )
        pieces += found.pieces
        doubts += dict.fromkeys(found.doubts + confirmed.doubts)
        gaps = zip(found.gaps, confirmed.gaps, strict=False)
        powers += [float(np.log2(a / b)) for a, b in gaps if min(a, b) > NOT_ZERO * germ.noise]
    return tuple(pieces), doubts, powers


def _surfaces_of(found: Link) -> list[Piece]:
    return sorted((p for p in found.pieces if p.dimension > 1), key=lambda p: p.dimension)


def _order(
    germ: AbstractGerm, outer: Link, inner: Link, radius: float, rng: np.random.Generator
) -> tuple[int, bool]:
    """The order of the condition that decides, and whether it is sure: from spheres so small that
    terms of higher order count no more, and values grow by a whole power of the radius."""
    least = NOT_ZERO * germ.noise
    power = max(_exponents(outer, inner, least))
    first = outer.signature()
    for _ in range(_HALVINGS):
        if abs(power - round(power)) < _WHOLE:
            break
        outer, radius = inner, radius / 2
        inner = link(germ, radius / 2, rng)
        found = _exponents(outer, inner, least)
        if inner.signature() != first or inner.doubts or len(found) < 1:
            break
        power = max(found)
    is_sure = abs(power - round(power)) < 2 * _WHOLE
    return max(2, round(power) if is_sure else int(np.ceil(power))), is_sure


def _too_small(reach: int) -> str:
    return f"conditions of an order above {reach} are smaller than rounding here"


def _exponents(outer: Link, inner: Link, least: float) -> list[float]:
    """Powers of the radius by which values grow: on the whole, at minima that are not zero, and
    between arcs of one direction."""
    found = [np.log2(outer.size / inner.size)]
    for u, size in inner.minima:
        others = [(float(u @ v), other) for v, other in outer.minima]
        near = [other for cosine, other in others if cosine > 0.9 and other > least]
        if near and size > least:
            closest = min(near, key=lambda other: abs(np.log(other / size)))
            found.append(np.log2(closest / size))
    pairs = zip(sorted(outer.gaps), sorted(inner.gaps), strict=False)
    found += [np.log2(a / b) for a, b in pairs if min(a, b) > least]
    return [float(x) for x in found]
