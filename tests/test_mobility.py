"""Real mobility of mechanisms, against what is known of them, and where it is told."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mobile_mechanisms as known
import numpy as np
import pytest
from closed_loops import line_symmetric, model_of, threefold
from random_mechanisms import STRUCTURES
from representatives import representatives
from typer.testing import CliRunner

import jaxmbs as jm
from jaxmbs import mechanisms
from jaxmbs.cli._app import app
from jaxmbs.io import model_from_tables, write_model
from jaxmbs.report import write
from jaxmbs.results import RESULTS


def ask(model: jm.Model, **options: Any) -> jm.results.Mobility:
    system = model.system()
    return jm.mobility(system, system.reference_q, **options)


def undriven(model: jm.Model) -> jm.Model:
    return jm.Model(model.name, model.dimension, bodies=model.bodies, joints=model.joints)


class Known(NamedTuple):
    """To first order, in truth, degrees of freedom of the branches and to first order on them, and
    the order that decides (None: no row is restricted, by any order)."""

    model: Any
    first_order: int
    mobility: int
    branches: tuple[tuple[int, int], ...]
    order: int | None
    cusps: int = 0
    sure: bool = True


_FLAT = ((1, 1), (1, 1))

KNOWN: Mapping[str, Known] = {
    "straight arch": Known(known.arch, 1, 0, (), 2),
    "taut chain": Known(known.taut_chain, 2, 0, (), 2),
    "arch on a moving link": Known(known.arch_on_link, 2, 1, ((1, 2),), 2),
    "flat four-bar": Known(lambda: known.flat_four_bar(1, 3, 1.8), 2, 1, _FLAT, 2),
    "flat four-bar, other pins between": Known(
        lambda: known.flat_four_bar(1, 2.7, 1.8), 2, 1, _FLAT, 2
    ),
    "flat parallelogram": Known(lambda: known.flat_four_bar(1, 3, 2), 2, 1, _FLAT, 2),
    "flat kite": Known(lambda: known.flat_four_bar(1, 3, 1), 2, 1, _FLAT, 2),
    "stretched four-bar": Known(lambda: known.flat_four_bar(1, 3, 4), 2, 0, (), 2),
    "flat four-bar, crank held": Known(
        lambda: known.flat_four_bar(1, 3, 1.8, drivers=[known.held("A")]), 1, 0, (), 2
    ),
    "crank as long as its rod": Known(lambda: known.equal_slider_cranks(1.0), 2, 1, _FLAT, 2),
    "kinematotropic": Known(lambda: known.equal_slider_cranks(1.0, 0.7), 3, 2, ((2, 2), (1, 1)), 2),
    "gear of the tangent ratio": Known(known.tangent_geared_four_bar, 1, 0, (), 2),
    "guide at an inflection": Known(known.guided_at_inflection, 1, 0, (), 3),
    "guide of Watt's linkage": Known(known.watt_guided, 1, 0, (), 5),
    "cusp": Known(known.mirrored_at_inflection, 2, 1, ((1, 1),), 3, cusps=1),
    "motions that touch": Known(known.dead_centre_slider_crank, 2, 1, _FLAT, 4),
    # Within 0.2 rad of where both surfaces meet, on the smaller of the two spheres, what tells them
    # apart is less than rounding leaves: walks may stray there, and the answer says so.
    "surfaces that touch": Known(
        lambda: known.dead_centre_slider_crank(second=True), 3, 2, ((2, 2), (2, 2)), 4, sure=False
    ),
    "wunderlich": Known(lambda: known.wunderlich()[0], 3, 2, ((2, 2), (1, 1)), 2),
    "hexagon with arches": Known(known.hexagon_with_arches, 5, 3, ((3, 5),), 2),
    "arch of rods": Known(known.arch_of_rods, 5, 3, ((3, 5),), 2),
    "arch on a cart": Known(known.arch_on_cart, 3, 2, ((2, 3),), 2),
    "platform at yaw 90": Known(lambda: known.platform(known.FEET, known.HEADS, 90.0), 1, 0, (), 2),
    # Legs along one regulus: yaw and height change together, and they stay on one.
    "platform of two hexagons": Known(
        lambda: known.platform(known.EVEN, known.EVEN, 90.0), 3, 1, ((1, 3),), 2
    ),
    "platform": Known(lambda: known.platform(known.FEET, known.HEADS, 20.0), 0, 0, (), 1),
    "slider-crank": Known(mechanisms.slider_crank, 1, 1, ((1, 1),), 1),
    "door": Known(mechanisms.door, 1, 1, ((1, 1),), None),
    "bennett": Known(mechanisms.bennett, 1, 1, ((1, 1),), None),
    "sarrus": Known(mechanisms.sarrus, 1, 1, ((1, 1),), None),
    "line-symmetric Bricard": Known(
        lambda: undriven(model_of(line_symmetric(139))), 1, 1, ((1, 1),), None
    ),
    "threefold Bricard": Known(lambda: undriven(model_of(threefold(1.2))), 1, 1, ((1, 1),), None),
    "parallelogram": Known(mechanisms.parallelogram, 7, 7, ((7, 7),), None),
    "mobile robot": Known(mechanisms.mobile_robot, 1, 1, ((1, 1),), 1),
    "table": Known(mechanisms.table, 0, 0, (), 1),
}

# One of each kind; four-bars share a program.
USUAL = (
    *("straight arch", "taut chain", "arch on a moving link", "flat four-bar", "flat kite"),
    *("stretched four-bar", "flat parallelogram", "crank as long as its rod", "kinematotropic"),
    *("gear of the tangent ratio", "guide at an inflection", "guide of Watt's linkage", "cusp"),
    *("arch on a cart", "platform at yaw 90", "platform", "bennett"),
    *("threefold Bricard", "motions that touch"),
)


def check(found: jm.results.Mobility, expected: Known) -> None:
    assert found.decided, found.doubts
    assert not (expected.sure and found.doubtful), found.doubts
    assert not found.doubtful or any("the order is about" in doubt for doubt in found.doubts)
    assert found.first_order == expected.first_order
    assert found.mobility == expected.mobility
    assert tuple((own.freedoms, own.first_order) for own in found.branches) == expected.branches
    if expected.order is None:
        assert found.order == found.reach >= 6
        assert found.is_finite
    else:
        assert found.doubtful or found.order == expected.order
    assert sum(own.one_way for own in found.branches) == expected.cusps


@pytest.mark.parametrize("name", representatives(KNOWN, *USUAL))
def test_known_mechanisms(name: str):
    expected = KNOWN[name]
    model = expected.model()
    found = ask(model)
    check(found, expected)
    check_second_order(model.system(), found)


def check_second_order(system: Any, found: jm.results.Mobility) -> None:
    """Tangents are first-order motions at which N^T d2Phi vanishes; and that is what Gamma says,
    -d2Phi(v, v) at the velocity v, in an orthonormal basis of the left null space."""
    basis = np.asarray(found.first_order_basis)
    unit = np.asarray(system.column_scale())[:, None]
    for branch in found.branches:
        assert branch.tangent.shape[0] == system.structure.nv
        if not branch.is_cone:
            part = np.linalg.lstsq(basis / unit, branch.tangent / unit, rcond=None)[0]
            np.testing.assert_allclose(basis @ part, branch.tangent, atol=1e-9 * float(unit.max()))
            bent = np.einsum("pij,ia,jb->pab", found.forms, part, part)
            np.testing.assert_allclose(bent, 0.0, atol=1e-4)
    if basis.shape[1] == 0 or found.redundant == 0 or not system.structure.geometric.all():
        return
    rows = np.asarray(system.residual_scale())
    matrix = np.asarray(
        system.constraint_matrix(system.reference_q, jnp.zeros(system.structure.nv), 0.0)
    )
    matrix = matrix * unit.T / rows[:, None]
    sizes = np.linalg.norm(matrix, axis=1)
    left, values, _ = np.linalg.svd(matrix / sizes[:, None])
    null = left[:, np.sum(values > 1e-9 * values[0]) :]
    along = np.linspace(1.0, 2.0, basis.shape[1])
    bend = system.acceleration_offset(system.reference_q, jnp.asarray(basis @ along), 0.0)
    wanted = np.linalg.norm(null.T @ (np.asarray(bend) / rows / sizes))
    known_forms = 2 * np.einsum("pij,i,j->p", found.forms, along, along)
    np.testing.assert_allclose(
        np.linalg.norm(known_forms), wanted, atol=1e-8 * float(along @ along)
    )


_POLYGONS = (
    (1, 1.2, 0.9, -1.7),
    (1, 1.2, -0.9, 1.7),
    (1, -1.1, -0.9, 1.7, 0.3),
    (1, 1.1, -0.9, 1.7, -0.8),
    (1, 1.1, 0.9, 1.7, 0.8),
    (1, 2, 1.5, -2.1, 1.3),
)


@pytest.mark.parametrize("place", representatives(range(len(_POLYGONS)), 0, 4))
@pytest.mark.thorough
def test_flat_polygons_are_cones_by_their_signature(place: int):
    """Of squares of both signs, more than one of either, one cone; of one sign, no motion."""
    lengths = _POLYGONS[place]
    plus, minus = known.signature(*lengths)
    found = ask(known.flat_polygon(*lengths))
    assert found.first_order == plus + minus
    assert not found.doubtful, found.doubts
    if 0 in (plus, minus):
        assert found.mobility == 0
        return
    (branch,) = found.branches
    assert branch.is_cone
    assert branch.freedoms == found.mobility == plus + minus - 1


class TestWunderlich:
    def test_the_oracle(self):
        """In NumPy alone. The flat loop of b and c is a parallelogram, with equal angles of c: then
        all closes, with the angle of a and that one free. Or it is crossed, with the angles g and
        g2(g): then the last bar has the length b where f(x, g) = 0, and f / g vanishes here with a
        slope that does not: one curve."""
        a, b, c = 9.0, 6.0, 3.0

        def crossed(length: float, angle: float) -> np.ndarray:
            """End of the second crank of an antiparallelogram less that of the first one."""
            first = length * np.array([np.cos(angle), np.sin(angle)])
            # The second end is that of the parallelogram, mirrored in the diagonal.
            along = np.array([b, 0.0]) - first
            along /= np.linalg.norm(along)
            second = 2 * (first @ along) * along - first
            return second - first

        def left(x: float, g: float) -> float:
            top = np.array([b, 0.0]) + crossed(a, np.arccos(b / a) + x) + crossed(c, g)
            return float(top @ top - b**2)

        for x, g in ((0.1, 0.0), (-0.2, 0.0)):
            assert abs(left(x, g)) < 1e-12
        step = 1e-5
        assert abs(left(0.0, step) / step) < 1e-2
        slope = (left(step, step) - left(-step, step)) / step / (2 * step)
        assert abs(slope) > 1.0

    def test_all_bars_have_their_lengths(self):
        _, places = known.wunderlich()
        for vertex, place in places.items():
            for direction, length in enumerate((6.0, 9.0, 3.0)):
                if not vertex[direction]:
                    end = tuple(1 if k == direction else x for k, x in enumerate(vertex))
                    np.testing.assert_allclose(np.hypot(*np.subtract(places[end], place)), length)


class TestClosedForms:
    def test_branches_of_equal_slider_crank(self):
        """With the slider on the pivot crank and rod turn as one; otherwise, at angles a of the
        crank and pi - a of the rod, x = 2 l cos a."""
        found = ask(known.equal_slider_cranks(1.0))
        angles = np.array([branch.tangent[[2, 5]] for branch in found.branches])[..., 0]
        slides = np.array([branch.tangent[6] for branch in found.branches])[:, 0]
        together = int(np.argmin(np.abs(slides)))
        np.testing.assert_allclose(slides[together], 0.0, atol=1e-6)
        np.testing.assert_allclose(angles[together, 0], angles[together, 1], rtol=1e-6)
        np.testing.assert_allclose(angles[1 - together, 0], -angles[1 - together, 1], rtol=1e-6)
        np.testing.assert_allclose(slides[1 - together], -2.0 * angles[1 - together, 0], rtol=1e-6)

    @pytest.mark.parametrize(("b", "c", "d"), [(1.0, 3.0, 1.8), (0.6, 2.0, 1.1)])
    def test_branches_of_flat_four_bar(self, b: float, c: float, d: float):
        """Height of the pins to second order: with x, y and z the angles of crank, coupler and
        rocker, l1 x + l2 y + l3 z = 0 and l1 x^2 + l2 y^2 + l3 z^2 = 0, lengths with signs."""
        lengths = np.array([b, c - b, d - c])
        found = ask(known.flat_four_bar(b, c, d))
        assert len(found.branches) == 2
        slopes = []
        for branch in found.branches:
            turns = branch.tangent[[2, 5, 8], 0]
            np.testing.assert_allclose(lengths @ turns, 0.0, atol=1e-6)
            np.testing.assert_allclose(lengths @ turns**2, 0.0, atol=1e-6)
            slopes.append(turns[1] / turns[0])
        assert abs(slopes[0] - slopes[1]) > 0.1

    def test_the_arch_bends_by_its_lengths(self):
        """Phi of the arch is -1/2 (l1 x^2 + l2 y^2) with l1 x + l2 y = 0: of one sign."""
        found = ask(known.arch())
        assert found.restricting == ("A", "B", "C")
        assert float(np.linalg.det(found.forms[0])) != 0.0

    def test_watt_path_leaves_the_line_by_the_fifth_power(self):
        """By two circles, in NumPy alone."""

        def deviation(turn: float) -> tuple[float, float]:
            first = np.array([np.cos(turn) - 1.0, np.sin(turn) - 0.4])
            to = np.array([1.0, 0.4]) - first
            distance = np.linalg.norm(to)
            along = (0.8**2 - 1.0 + distance**2) / (2 * distance)
            height = np.sqrt(0.8**2 - along**2)
            second = first + along * to / distance + height * known.across(to) / distance
            return tuple((first + second) / 2)

        (x, y), (far_x, far_y) = deviation(0.1), deviation(0.2)
        assert round(np.log(far_x / x) / np.log(far_y / y)) == 5


class TestInvariance:
    @pytest.mark.parametrize("size", representatives([1e-3, 1e3], 1e-3))
    def test_units(self, size: float):
        check(ask(known.arch(size)), KNOWN["straight arch"])
        check(ask(known.arch_on_link(size)), KNOWN["arch on a moving link"])

    def test_turned_and_in_another_order(self):
        expected, there = ask(known.arch_on_link()), ask(known.arch_on_link(angle=2.2))
        check(there, KNOWN["arch on a moving link"])
        np.testing.assert_allclose(
            np.abs(there.branches[0].tangent[2::3]),
            np.abs(expected.branches[0].tangent[2::3]),
            atol=1e-4,
        )
        order = (3, 1, 4, 0, 2)
        swapped = ask(known.arch_on_link(order=order))
        check(swapped, KNOWN["arch on a moving link"])
        assert swapped.restricting == expected.restricting == ("E", "F", "G")


# Chains whose rows stay dependent, or never are: one branch, n - rank. Four parallel links of one
# length allow their platform to turn about their direction, to first order: its points on them are
# on no circle, so that it cannot.
_SHAKY = {"platform-on-parallel-links": (10, ((9, 10),)), "platform-on-rods": (1, ())}
_GENERIC = [made.name for made in STRUCTURES]


@pytest.mark.parametrize("name", representatives(_GENERIC, "watt-six-bar", "platform-on-rods"))
def test_random_chains(name: str):
    made = next(own for own in STRUCTURES if own.name == name)
    model = model_from_tables(made(np.random.default_rng(7)))
    report = jm.analyze(model.system(), model.system().reference_q)
    found = ask(model)
    assert found.first_order == int(report.mobility)
    branches = tuple((own.freedoms, own.first_order) for own in found.branches)
    assert found.is_finite == (name not in _SHAKY), str(found)
    if name in _SHAKY:
        assert (found.first_order, branches) == _SHAKY[name]


class TestTold:
    @pytest.fixture(scope="class")
    @staticmethod
    def path(tmp_path_factory) -> Path:
        path = tmp_path_factory.mktemp("mobility") / "arch.toml"
        path.write_text(write_model(known.arch_on_link()), encoding="utf-8")
        return path

    def test_in_the_head_line_of_analyze(self, path: Path):
        printed = CliRunner().invoke(app, ["analyze", str(path)], catch_exceptions=False).stdout
        (head,) = (line for line in printed.splitlines() if "constraint rows" in line)
        assert head.endswith("mobility 2 to first order; really 1")
        assert "Shaky all along" in printed

    def test_in_json(self, path: Path):
        printed = CliRunner().invoke(app, ["analyze", str(path), "--json"], catch_exceptions=False)
        document = json.loads(printed.stdout)
        assert document["mobility"] == 2
        found = document["real_mobility"]
        assert (found["mobility"], found["first_order"], found["order"]) == (1, 2, 2)
        assert found["shaky"]
        (branch,) = found["branches"]
        assert branch["degrees_of_freedom"] == 1
        assert np.shape(branch["tangent"]) == (1, 15)

    def test_by_lint(self):
        (finding,) = jm.lint(known.arch_on_link()).of("JM105")
        assert dict(finding.numbers) == {"first_order": 2.0, "mobility": 1.0}
        assert {part.name for part in finding.parts} == {"E", "F", "G"}

    @pytest.mark.thorough
    def test_by_lint_of_higher_order(self):
        (finding,) = jm.lint(known.watt_guided()).of("JM105")
        assert "(decided at order 5)" in finding.message

    @pytest.mark.thorough
    def test_in_the_report(self, path: Path, tmp_path: Path):
        write(known.arch_on_link(), tmp_path / "page.html")
        assert "First-order mobility 2, real mobility 1." in (tmp_path / "page.html").read_text()

    @pytest.mark.thorough
    def test_what_is_left_out_in_large_mechanisms(self, monkeypatch, path: Path, tmp_path: Path):
        """The count of coordinates from which it is left out, set low."""
        monkeypatch.setattr("jaxmbs._mobility._mobility._MOST_COORDINATES", 10)
        printed = CliRunner().invoke(app, ["analyze", str(path)], catch_exceptions=False).stdout
        joined = " ".join(printed.split())
        assert "mobility 2 to first order (the real mobility is not computed unasked" in joined
        assert "ask with --mobility, or jm.mobility)" in joined
        document = CliRunner().invoke(app, ["analyze", str(path), "--json"], catch_exceptions=False)
        assert json.loads(document.stdout)["real_mobility"] is None
        (finding,) = jm.lint(known.arch_on_link()).of("JM105")
        assert finding.severity.word == "note"
        assert "--mobility" in finding.message
        write(known.arch_on_link(), tmp_path / "page.html")
        assert "jm.mobility computes it" in (tmp_path / "page.html").read_text()
        # Where nothing is redundant there is nothing to compute.
        assert not jm.lint(mechanisms.slider_crank()).of("JM105")

    def test_texts(self):
        shaky = ask(known.arch())
        assert "Shaky: the constraints allow one motion to first order" in str(shaky)
        assert "order 2, by the redundant rows of A, B, C" in str(shaky)
        crossing = ask(known.flat_four_bar(1, 3, 1.8))
        assert "2 branches of motion meet here" in str(crossing)
        assert "<table>" in crossing._repr_html_()
        assert "<p>" in shaky._repr_html_()


class TestRefused:
    def test_open_configurations_are_not_decided(self):
        system = known.flat_four_bar(1, 3, 1.8).system()
        found = jm.mobility(system, system.reference_q.at[0].add(1e-3))
        assert found.result == RESULTS.configuration_open
        assert not found.decided
        assert found.mobility == -1
        assert "'A' by 0.001 m" in str(found)

    def test_traced_numbers(self):
        system = known.flat_four_bar(1, 3, 1.8).system()
        with pytest.raises(TypeError, match="cannot be traced"):
            jax.jit(lambda q: jm.mobility(system, q).mobility)(system.reference_q)

    def test_accelerations(self):
        servo = jm.generalized.ServoConstraint(jm.generalized.PfaffianConstraint([1.0]), 1.0)
        system = jm.GeneralizedSystem(("x",), mass_matrix=[[1.0]], constraints={"s": servo})
        with pytest.raises(ValueError, match=r"mobility does not know .* \('s'\)"):
            jm.mobility(system, jnp.zeros(1))

    def test_digits_that_are_missing_are_told(self):
        """A pin that is off the line by a ten billionth: redundant at the tolerance, not sure."""
        found = ask(known.arch(bend=1e-10))
        assert (found.first_order, found.mobility) == (1, 0)
        assert found.doubtful
        assert "more than rounding leaves" in str(found)
