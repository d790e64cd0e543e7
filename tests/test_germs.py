"""Real zeros of germs that are given as polynomials: dimension, branches, and the order that
decides. In NumPy alone."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from jaxmbs._mobility import _spheres
from jaxmbs._mobility._cone import cone, MOST_UNKNOWNS, second_order_forms
from jaxmbs._mobility._germ import AbstractGerm, Values


class Polynomials(AbstractGerm):
    """g(z) = mix p(change z), each of the p a table from exponents to coefficients."""

    def __init__(
        self,
        tables: Sequence[Mapping[Any, float]],
        change: np.ndarray | None = None,
        mix: np.ndarray | None = None,
        noise: float = 1e-15,
    ):
        count = len(next(iter(tables[0])))
        self.tables = tables
        self.change = np.eye(count) if change is None else change
        self.mix = np.eye(len(tables)) if mix is None else mix
        self.unknowns, self.equations, self.noise = count, len(self.mix), noise

    def __call__(self, z: np.ndarray, inner: np.ndarray | None = None) -> Values:
        y = z @ self.change.T
        value = np.zeros((len(z), len(self.tables)))
        slope = np.zeros((len(z), len(self.tables), self.unknowns))
        for j, table in enumerate(self.tables):
            for powers, coefficient in table.items():
                exponents = np.array(powers)
                value[:, j] += coefficient * np.prod(y**exponents, axis=1)
                for i in np.flatnonzero(exponents):
                    less = exponents - (np.arange(len(exponents)) == i)
                    slope[:, j, i] += coefficient * exponents[i] * np.prod(y**less, axis=1)
        slope = np.einsum("ij,bjk->bik", self.mix, slope @ self.change)
        return Values(value @ self.mix.T, slope, np.ones(len(z), bool), np.zeros((len(z), 0)))


class Known(NamedTuple):
    """Dimensions of the branches, descending, and the order."""

    tables: Sequence[Mapping[Any, float]]
    branches: tuple[int, ...]
    order: int
    cusps: int = 0
    cones: int = 0


KNOWN: Mapping[str, Known] = {
    "z^2": Known([{(2,): 1.0}], (), 2),
    "z^3": Known([{(3,): 1.0, (4,): 2.0}], (), 3),
    "z^5": Known([{(5,): -1.0}], (), 5),
    # A double line: no rank anywhere tells it from a plane.
    "x^2": Known([{(2, 0): 1.0}], (1,), 2),
    "(x - y^2)^2": Known([{(2, 0): 1.0, (1, 2): -2.0, (0, 4): 1.0}], (1,), 2),
    "x^2 + y^2": Known([{(2, 0): 1.0, (0, 2): 1.0}], (), 2),
    "x y": Known([{(1, 1): 1.0, (3, 0): 0.3, (0, 3): -0.2}], (1, 1), 2),
    "x^2 - y^3": Known([{(2, 0): 1.0, (0, 3): -1.0}], (1,), 3, cusps=1),
    "x^2 + y^4": Known([{(2, 0): 1.0, (0, 4): 1.0}], (), 4),
    "x^2 - y^4": Known([{(2, 0): 1.0, (0, 4): -1.0}], (1, 1), 4),
    # Only curves whose second derivative is right stop as late as at sixth order.
    "(x - y^2)^2 + y^6": Known([{(2, 0): 1.0, (1, 2): -2.0, (0, 4): 1.0, (0, 6): 1.0}], (), 6),
    "x y, x^3": Known([{(1, 1): 1.0}, {(3, 0): 1.0}], (1,), 3),
    "x y, x^2 y + 3 x y^2": Known([{(1, 1): 1.0}, {(2, 1): 1.0, (1, 2): 3.0}], (1, 1), 2),
    "x y, x z": Known([{(1, 1, 0): 1.0}, {(1, 0, 1): 1.0}], (2, 1), 2),
    "x y, y z, z x": Known([{(1, 1, 0): 1.0}, {(0, 1, 1): 1.0}, {(1, 0, 1): 1.0}], (1, 1, 1), 2),
    "x^2 + y^2 - z^2": Known([{(2, 0, 0): 1.0, (0, 2, 0): 1.0, (0, 0, 2): -1.0}], (2,), 2, cones=1),
    "x^2 + y^2 - 9 z^2": Known(
        [{(2, 0, 0): 1.0, (0, 2, 0): 1.0, (0, 0, 2): -9.0}], (2,), 2, cones=1
    ),
    "x^2 - y^2 in space": Known([{(2, 0, 0): 1.0, (0, 2, 0): -1.0}], (2, 2), 2),
    "x^2, y^2": Known([{(2, 0, 0): 1.0}, {(0, 2, 0): 1.0}], (1,), 2),
    "x^2 + y^2 + z^2": Known([{(2, 0, 0): 1.0, (0, 2, 0): 1.0, (0, 0, 2): 1.0}], (), 2),
    "x y in six": Known([{(1, 1, 0, 0, 0, 0): 1.0}], (5, 5), 2),
    "squares in six": Known([{tuple(row): 1.0 for row in 2 * np.eye(6, dtype=int)}], (), 2),
    "two double lines in six": Known(
        [{(2, 0, 0, 0, 0, 0): 1.0}, {(0, 0, 2, 0, 0, 0): 1.0, (0, 1, 1, 0, 0, 0): 0.0}], (4,), 2
    ),
}


def product(*factors: Mapping[Any, float]) -> dict[Any, float]:
    found: dict[Any, float] = {tuple(0 for _ in next(iter(factors[0]))): 1.0}
    for factor in factors:
        more: dict[Any, float] = {}
        for first, x in found.items():
            for second, y in factor.items():
                powers = tuple(a + b for a, b in zip(first, second, strict=True))
                more[powers] = more.get(powers, 0.0) + x * y
        found = more
    return found


def curve(power: int, size: float = 1.0) -> dict[Any, float]:
    """x - size y^power."""
    return {(1, 0): 1.0, (0, power): -size}


_X = {(1, 0): 1.0}
_Z = {(0, 0, 1): 1.0}
_ROUND = {(2, 0, 0): 1.0, (0, 2, 0): 1.0, (0, 0, 2): -1.0}

# Branches that touch each other, and several cones.
TOUCHING: Mapping[str, Known] = {
    **{f"x (x - y^{n})": Known([product(_X, curve(n))], (1, 1), 2 * n) for n in (2, 3, 4)},
    "nearly one": Known([product(curve(2, 0.01), curve(2, -0.01))], (1, 1), 4),
    "three": Known([product(curve(2), curve(2, 2.0), curve(2, -1.0))], (1, 1, 1), 6),
    # Nothing leads from outside to the middle one.
    "three, one in the middle": Known([product(_X, curve(3), curve(3, -1.0))], (1, 1, 1), 9),
    "plane and paraboloid": Known(
        [product(_Z, {(0, 0, 1): 1.0, (2, 0, 0): -1.0, (0, 2, 0): -1.0})], (2, 2), 4
    ),
    "two paraboloids": Known([{(0, 0, 2): 1.0, (4, 0, 0): -1.0, (0, 4, 0): -1.0}], (2, 2), 4),
    "two saddles that also cross": Known([{(0, 0, 2): 1.0, (2, 2, 0): -1.0}], (2, 2), 4),
    "planes nearly one": Known([product(_Z, {(0, 0, 1): 1.0, (1, 0, 0): -0.02})], (2, 2), 2),
    "plane and touching curve": Known(
        [product(_Z, {(0, 1, 0): 1.0}), product(_Z, {(0, 0, 1): 1.0, (2, 0, 0): -1.0})], (2, 1), 2
    ),
    "cone in a cone": Known(
        [product(_ROUND, {(2, 0, 0): 1.0, (0, 2, 0): 1.0, (0, 0, 2): -4.0})], (2, 2), 4, cones=2
    ),
    "cones that cross": Known(
        [product(_ROUND, {(2, 0, 0): 1.0, (0, 2, 0): -1.0, (0, 0, 2): 1.3})], (2, 2), 4, cones=2
    ),
    "cone and plane": Known(
        [product(_ROUND, {(1, 0, 0): 1.0, (0, 0, 1): 0.4})], (2, 2), 3, cones=1
    ),
    "two squares of each sign": Known(
        [{(2, 0, 0, 0): 1.0, (0, 2, 0, 0): 1.0, (0, 0, 2, 0): -1.0, (0, 0, 0, 2): -1.3}],
        (3,),
        2,
        cones=1,
    ),
    "one square against three": Known(
        [{(2, 0, 0, 0): 1.0, (0, 2, 0, 0): 1.0, (0, 0, 2, 0): 1.0, (0, 0, 0, 2): -1.3}],
        (3,),
        2,
        cones=1,
    ),
}


def check(found: Any, known: Known) -> None:
    assert found.decided, found.doubts
    assert tuple(sorted((p.dimension for p in found.pieces), reverse=True)) == known.branches
    assert found.order == known.order
    assert sum(p.one_way for p in found.pieces) == known.cusps
    assert sum(p.is_cone for p in found.pieces) == known.cones


@pytest.mark.parametrize("name", KNOWN)
def test_known_germs(name: str):
    germ = Polynomials(KNOWN[name].tables)
    found = cone(germ, 6, 0.1)
    check(found, KNOWN[name])
    for piece in found.pieces:
        assert np.max(np.abs(germ(piece.points).value)) <= 3 * germ.noise


@pytest.mark.parametrize("name", TOUCHING)
def test_branches_that_touch(name: str):
    found = cone(Polynomials(TOUCHING[name].tables), 6, 0.1)
    check(found, TOUCHING[name])
    assert not found.doubts


_BENT = {(0, 0, 1): 1.0, (2, 0, 0): -0.4, (0, 3, 0): 1.2, (1, 1, 0): 0.7}
_ACROSS = {(0, 0, 0, 1): 1.0, (2, 0, 0, 0): 0.5, (0, 1, 1, 0): -0.8}
SHEETS: Mapping[str, Sequence[Mapping[Any, float]]] = {
    "a double sheet": [product(_BENT, _BENT)],
    "a triple sheet": [product(_BENT, _BENT, _BENT)],
    "of dimension three": [product(_ACROSS, _ACROSS)],
    "and a line": [product(_Z, {(0, 1, 0): 1.0}), product(_Z, {(1, 0, 0): 1.0})],
}


@pytest.mark.parametrize("name", SHEETS)
def test_a_single_sheet_takes_no_walks(name: str, monkeypatch):
    """And is what walks find. (Where several touch, one is never taken for certain: above.)"""
    germ, known = Polynomials(SHEETS[name]), []
    for instead in ("_one_sheet", "_joined"):
        with monkeypatch.context() as patched:
            patched.setattr(_spheres, instead, lambda *_: None)
            known.append(cone(germ, 6, 0.1))
    walked, cut = known
    assert not cut.doubts
    assert cut.order == walked.order
    for one, other in zip(cut.pieces, walked.pieces, strict=True):
        assert (one.dimension, one.is_cone) == (other.dimension, other.is_cone)
        spaces = [p.tangent @ p.tangent.T for p in (one, other)]
        np.testing.assert_allclose(*spaces, atol=1e-3)


@pytest.mark.parametrize("noise", [1e-11, 3e-9, 1e-6])
def test_what_few_digits_leave_is_right_or_told(noise: float):
    """Of motions that exist to first order alone, and of surfaces that touch."""
    squares = [{(2, 0, 0): 1.0, (0, 0, 2): 0.3}, {(0, 2, 0): 1.0}]
    for tables, wanted in ((squares, ()), ([product(_BENT, _BENT)], (2,))):
        found = cone(Polynomials(tables, noise=noise), 4, 0.1)
        dimensions = tuple(p.dimension for p in found.pieces)
        assert (found.decided and dimensions == wanted) or found.doubts
    shaky = [{(2, 0, 0): 1.0, (0, 1, 1): 1e-3}, {(0, 2, 0): 0.02}, {(1, 1, 0): 0.1}]
    found = cone(Polynomials(shaky, noise=noise), 4, 0.1)
    assert (found.decided and [p.dimension for p in found.pieces] == [1]) or found.doubts


@pytest.mark.parametrize("power", [5, 6])
def test_touching_branches_that_rounding_hides_are_told(power: int):
    found = cone(Polynomials([product(_X, curve(power))]), 6, 0.1)
    assert len(found.pieces) == 1
    assert "4 arcs of motion that touch each other" in found.doubts[0]


@pytest.mark.parametrize("name", KNOWN)
def test_neither_coordinates_nor_combinations_matter(name: str):
    """Unknowns that are other combinations, equations of which some repeat others."""
    known, rng = KNOWN[name], np.random.default_rng(5)
    count, rows = len(next(iter(known.tables[0]))), len(known.tables)
    turned, _ = np.linalg.qr(rng.standard_normal((count, count)))
    change = turned @ (np.eye(count) + 0.15 * rng.standard_normal((count, count)))
    mix = rng.standard_normal((rows + 2, rows))
    found = cone(Polynomials(known.tables, change, mix), 6, 0.1)
    check(found, known)
    # Tangents change as unknowns do.
    straight = cone(Polynomials(known.tables), 6, 0.1)
    for piece in found.pieces:
        if not piece.is_cone:
            moved, _ = np.linalg.qr(change @ piece.tangent)
            same = [p for p in straight.pieces if p.dimension == piece.dimension]
            gaps = [np.linalg.norm(moved @ moved.T - p.tangent @ p.tangent.T) for p in same]
            assert min(gaps) < 1e-3


def test_tangents_of_crossing_curves():
    """Of x (x - 2 y) and terms of higher order: exact directions, from points at a distance."""
    table = {(2, 0): 1.0, (1, 1): -2.0, (3, 0): 0.4, (0, 3): 1.0, (1, 3): 0.7}
    found = cone(Polynomials([table]), 6, 0.1)
    slopes = sorted(float(p.tangent[0, 0] / p.tangent[1, 0]) for p in found.pieces)
    np.testing.assert_allclose(slopes, [0.0, 2.0], atol=1e-5)


def test_nothing_restricts():
    found = cone(Polynomials([{(2, 0): 0.0}]), 6, 0.1)
    assert [p.dimension for p in found.pieces] == [2]
    assert found.decided
    assert found.restricting.shape == (0, 1)


def test_what_is_below_rounding_is_not_decided():
    """z^9, or values of unknown digits: neither a motion nor none."""
    for germ in (
        Polynomials([{(9,): 1.0}], noise=1e-9),
        Polynomials([{(1, 1): 1.0, (8, 0): 1.0}, {(9, 0): 1.0}], noise=1e-7),
    ):
        found = cone(germ, 9, 0.1)
        assert not found.decided
        assert found.doubts


def test_too_many_unknowns_are_not_decided():
    count = MOST_UNKNOWNS + 1
    found = cone(Polynomials([{tuple(row): 1.0 for row in 2 * np.eye(count, dtype=int)}]), 6, 0.1)
    assert not found.decided
    assert f"{count} first-order motions" in found.doubts[0]


def test_unknowns_that_do_not_count_are_free():
    """Any number of them."""
    table = {(1, 1) + 20 * (0,): 1.0}
    found = cone(Polynomials([table]), 6, 0.1)
    check(found, Known([table], (21, 21), 2))
    for piece in found.pieces:
        np.testing.assert_allclose(piece.tangent.T @ piece.tangent, np.eye(21), atol=1e-9)


def test_quadratic_forms():
    table = {(2, 0): 3.0, (1, 1): -4.0, (0, 3): 7.0, (2, 2): 5.0}
    forms = second_order_forms(Polynomials([table]), 0.1)
    assert forms is not None
    np.testing.assert_allclose(forms, [[[3.0, -2.0], [-2.0, 0.0]]], atol=1e-9)
