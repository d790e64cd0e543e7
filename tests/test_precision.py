"""Numbers that are not exact: files with few digits, whose true redundancy looks like full rank."""

import ast
import functools
import re
import warnings
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives
from ring_mechanisms import model, RINGS
from typer.testing import CliRunner

import jaxmbs as jm
from jaxmbs import mechanisms, spatial
from jaxmbs._kinematics import is_closed
from jaxmbs._limits import EXACT, Tolerances
from jaxmbs.cli._app import app
from jaxmbs.io import ModelError, read_model, write_model
from jaxmbs.io._digits import (
    Digits,
    numbers_in,
    of_angle,
    of_direction,
    of_lengths,
    of_numbers,
    written,
)


# Rank of the mechanism that is meant, by what papers say of it (see test_solvability).
REDUNDANT = {
    **{"bennett": 17, "sarrus": 29, "three-crank-parallelogram": 23, "door": 5},
    **{name: RINGS[name].rank["revolute"] for name in ("four-bar", "star")},
}
DIGITS = (3, 4, 5, 6, 7, 8, 9, 10, 12, 16)


def turned(text: str, digits: int, angle: float = 0.7) -> str:
    """A model file with its joints turned about an oblique axis (so that no number is short) and
    written with so many digits."""
    lines = []
    for line in text.splitlines():
        key = line.partition("=")[0].strip()
        if key in ("at", "axis", "position", "axes", "points"):
            values = ast.literal_eval(line.partition("=")[2].strip())
            lines.append(f"{key} = {_rounded(_turned(values, angle), digits)}")
        else:
            lines.append(line)
    return "\n".join(lines)


def _turned(values: Any, angle: float) -> Any:
    if isinstance(values[0], list):
        return [_turned(own, angle) for own in values]
    c, s = np.cos(angle), np.sin(angle)
    if len(values) == 2:
        return (np.array([[c, -s], [s, c]]) @ values).tolist()
    axis = np.array([1.0, 2.0, 2.0]) / 3
    cross = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    turn = np.eye(3) + s * cross + (1 - c) * cross @ cross
    return (turn @ np.array(values, float)).tolist()


def _rounded(values: Any, digits: int) -> Any:
    if isinstance(values, list):
        return [_rounded(own, digits) for own in values]
    return float(f"{values:.{digits - 1}e}")


def analyzed(text: str, folder: Path) -> tuple[Any, Any]:
    path = folder / "m.toml"
    path.write_text(text)
    model = read_model(path)
    system = model.system()
    return model, jm.analyze(system, system.reference_q)


def of_ring(name: str) -> str:
    return write_model(model(RINGS[name]))


def as_written(report: Any) -> int:
    assert report.rank_as_written is not None
    return int(report.rank_as_written)


@pytest.fixture(scope="module")
def door() -> str:
    """A door on three hinges, which no built-in mechanism is."""
    body = spatial.Body("door", mass=2.0, inertia=[1.0, 1.0, 1.0], position=[0.5, 0.0, 0.5])
    hinges = [
        spatial.Revolute(f"hinge {k}", ("ground", "door"), at=[0.0, 0.0, z], axis=[0.0, 0.0, 1.0])
        for k, z in enumerate((0.1, np.sqrt(0.3), 0.9))
    ]
    return write_model(jm.Model("door", 3, bodies=[body], joints=hinges))


@pytest.mark.parametrize(
    ("name", "digits"),
    representatives(
        [(name, digits) for name in REDUNDANT for digits in DIGITS],
        ("door", 3),
        ("door", 5),
        ("bennett", 5),
        ("three-crank-parallelogram", 8),
        ("bennett", 16),
        ("four-bar", 4),
        ("star", 6),
    ),
)
def test_redundancy_is_found_or_told(name: str, digits: int, door: str, tmp_path: Path):
    own = {"door": lambda: door, **{k: functools.partial(of_ring, k) for k in ("four-bar", "star")}}
    text = own.get(name, lambda: write_model(mechanisms.get(name)))()
    model, report = analyzed(turned(text, digits), tmp_path)
    meant = REDUNDANT[name]
    if int(report.rank) != meant:
        assert bool(report.doubtful), report.doubt()
    if 5 <= digits <= 9:
        assert model.precision is not None
        assert int(report.rank) == meant
    if model.precision is not None and as_written(report) > meant:
        assert bool(report.redundant_at_precision)
        assert "Redundant at the precision" in str(report)


@pytest.mark.parametrize("digits", [3, 5, 16])
def test_a_regular_mechanism_stays_so(digits: int, tmp_path: Path):
    _, report = analyzed(turned(write_model(mechanisms.get("slider-crank")), digits), tmp_path)
    assert int(report.redundancy) == 0
    assert not bool(report.doubtful)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("0.70711", 5e-6),
        ("0.5 0.25 0.125 0.35 12.0 3", 0.0),
        ("0.354 0.612 0.258", 0.0),
        ("0.354 0.612", 0.0),
        ("0.15625 0.0625", 0.0),
        ("0.354 0.612 0.25881", 5e-6),
        ("0.353553390593273 0.70711", 5e-6),
        ("1.5708e-3", 5e-8),
        ("0.35355339059327373 -0.1234567890123456", 0.0),
        ("", 0.0),
    ],
)
def test_lengths_by_their_digits(text: str, length: float):
    assert of_lengths(numbers_in(text)) == pytest.approx(length, rel=1e-9)


@pytest.mark.parametrize(
    ("text", "angle"),
    [
        ("0.707 0.707 0.0", 0.0),
        ("0.70711 0.70711 0", 5e-6),
        ("0.6 0.8 0.0", 0.0),
        ("1.0 1.0 0.0", 0.0),
        ("0.0 0.0 0.999", 0.0),
        ("0.923 0.382 0 0.04", 0.0),
        ("1.0 0.00123456 0", 5e-9),
        ("0.5773502691896258 0.5773502691896258 0.5773502691896258", 0.0),
    ],
)
def test_directions_by_their_digits(text: str, angle: float):
    assert of_direction(numbers_in(text)) == pytest.approx(angle, rel=1e-9)


def test_angles_by_their_digits():
    found = [of_angle(written(text)) for text in ("1.57", "1.5708", "0.785", "0.5", "1.23", "3.0")]
    np.testing.assert_allclose(found, [0, 5e-5, 0, 0, 0, 0])
    # Shorter ones may be rounded.
    found = [of_angle(written(text), least=2) for text in ("1.57", "0.785", "0.5", "1.23", "3.0")]
    np.testing.assert_allclose(found, [5e-3, 5e-4, 0, 5e-3, 0])
    vector = numbers_in("0.707 0.707 0.0")
    assert of_direction(vector, least=2) == pytest.approx(5e-4)
    known = of_numbers(numbers_in("0.354"), [vector], numbers_in("1.5708"))
    np.testing.assert_allclose(known, [0, 5e-5, 5e-4, 5e-4])
    degrees = np.pi / 180
    assert of_angle(written("57.296"), degrees) == pytest.approx(5e-4 * degrees)
    assert of_angle(written("22.5"), degrees) == 0.0
    assert Digits(1e-13, 0.0).relative(1.0) is None
    assert Digits(1.0, 0.0).relative(1.0) == 1e-3


def test_what_is_stated_counts(door: str, tmp_path: Path):
    text = turned(door, 5)
    model, report = analyzed(text, tmp_path)
    assert bool(report.redundant_at_precision) == (as_written(report) > 5)
    exact, literal = analyzed(f"precision = 0\n{text}", tmp_path)
    assert exact.precision is None
    assert int(literal.rank) == as_written(report)
    stated, _ = analyzed(f"precision = 1e-4\n{text}", tmp_path)
    assert float(stated.precision) == 1e-4
    for own in (model, exact, stated):
        again, _ = analyzed(write_model(own), tmp_path)
        assert (again.precision is None) == (own.precision is None)
        if own.precision is not None:
            assert float(again.precision) == float(own.precision)
    for wrong in ("-1.0", "0.2", "'few'", "inf"):
        path = tmp_path / "w.toml"
        path.write_text(f"precision = {wrong}\n{text}")
        with pytest.raises(ModelError, match="precision"):
            read_model(path)


LEANING = (0.0, np.cos(1.5708), np.sin(1.5708))


def misaligned(precision: float | None, leaning: Any = LEANING) -> jm.MultibodySystem:
    """Two hinges, of which one leans by 1.5708 - pi / 2."""
    body = spatial.Body("door", mass=2.0, inertia=[1.0, 1.0, 1.0], position=[0.5, 0.0, 0.5])
    hinges = [
        spatial.Revolute("lower", ("ground", "door"), at=[0.0, 0.0, 0.0], axis=[0.0, 0.0, 1.0]),
        spatial.Revolute("upper", ("ground", "door"), at=[0.0, 0.0, 1.0], axis=leaning),
    ]
    return jm.MultibodySystem([body], hinges, gravity=[0.0, -9.81, 0.0], precision=precision)


AT_PRECISION = "redundant at the precision of its numbers .* where 1 is meant, as lower, upper are"


@pytest.mark.thorough
def test_reactions_are_those_of_the_mechanism_that_is_meant():
    told, meant = misaligned(5e-5), misaligned(None, leaning=[0.0, 0.0, 1.0])
    with pytest.warns(UserWarning, match=AT_PRECISION):
        found = jm.reactions(told, told.reference_q)
    assert bool(found.doubtful)
    assert bool(found.redundant_at_precision)
    assert "Redundant at the precision of the model's numbers: what is not unique" in str(found)
    exact = jm.reactions(meant, meant.reference_q)
    assert exact.redundant_at_precision is None
    # No force is that of the error, which would be millions of newtons.
    np.testing.assert_allclose(found.multipliers, exact.multipliers, atol=1e-3)
    for name in ("lower", "upper"):
        assert not bool(found.unique(name))
        own, other = found.wrench(name), exact.wrench(name)
        np.testing.assert_array_equal(own.force_unique.tolist(), other.force_unique.tolist())
        np.testing.assert_array_equal(own.torque_unique.tolist(), other.torque_unique.tolist())
        np.testing.assert_allclose(own.force, other.force, atol=1e-3)


def test_what_takes_every_row_as_it_stands_is_refused():
    told = misaligned(5e-5)
    with pytest.raises(ValueError, match=f"{AT_PRECISION}.*NullSpace.. takes the numbers as they"):
        jm.reactions(told, told.reference_q, formulation=jm.formulations.NullSpace())
    with pytest.raises(ValueError, match=f"{AT_PRECISION}.*a simulation takes the numbers"):
        jm.simulate(told, told.reference_q, told.initial_v, 1e-3, throw=False)
    # Its one mobility is not driven; the error alone holds it.
    with pytest.raises(ValueError, match=f"{AT_PRECISION}.*a kinematic analysis takes the numbers"):
        jm.kinematics(told, told.reference_q, np.array([0.0, 0.1]))


@pytest.mark.thorough
def test_traced_analyses_say_the_same():
    """Under `jit` and `vmap`, over states and over precisions: verdicts, ranks and words."""
    told = misaligned(5e-5)
    q = told.reference_q

    def stated(precision: Any) -> jm.MultibodySystem:
        return eqx.tree_at(lambda s: s.precision, told, precision)

    outside = jm.analyze(told, q)
    assert "rank is 6, within their precision 5" in str(outside)
    exact = jm.analyze(stated(jnp.asarray(1e-9)), q)
    assert int(exact.rank) == 6
    over_states = jax.vmap(lambda q: jm.analyze(told, q))(jnp.stack([q, q]))
    over_precisions = jax.jit(jax.vmap(lambda p: jm.analyze(stated(p), q)))(jnp.array([5e-5, 1e-9]))
    pairs = [
        (jax.jit(lambda q: jm.analyze(told, q))(q), outside),
        (eqx.filter_jit(jm.analyze)(told, q), outside),
        (jax.tree.map(lambda x: x[1], over_states), outside),
        (jax.tree.map(lambda x: x[0], over_precisions), outside),
        (jax.tree.map(lambda x: x[1], over_precisions), exact),
    ]
    for traced, own in pairs:
        assert int(traced.rank_as_written) == 6
        assert bool(traced.redundant_at_precision) == (int(own.rank) == 5)
        assert str(traced) == str(own)
    # Forces of a traced call are those of the numbers as they stand, and the answer says so.
    found = jax.jit(lambda q: jm.reactions(told, q))(q)
    assert bool(found.redundant_at_precision)
    assert bool(found.doubtful)
    assert not bool(found.unique("lower"))


def test_tolerances_follow_the_precision():
    exact, told = misaligned(None).tolerances, misaligned(5e-5).tolerances
    assert (exact, exact.rows) == (EXACT, None)
    np.testing.assert_allclose([told.closed, told.rows, told.unique], [4e-4, 2e-4, 2e-3])
    fine = jax.jit(lambda p: (lambda own: (own.closed, own.unique))(Tolerances(p)))(1e-12)
    assert fine == (EXACT.closed, EXACT.unique)
    for tolerances in (exact, told):
        residual = jnp.array([0.999, -0.999]) * tolerances.closed
        closed = [is_closed(x * residual, tolerances.precision) for x in (1.0, 1.01)]
        assert [bool(own) for own in closed] == [True, False]


def test_analyses_tell(tmp_path: Path):
    told, silent = misaligned(5e-5), misaligned(None)
    report = jm.analyze(told, told.reference_q)
    assert int(report.rank) == 5
    assert int(report.mobility) == 1
    assert as_written(report) == 6
    for criterion in (jm.criteria.SVD(), jm.criteria.RankComparison()):
        assert int(jm.analyze(told, told.reference_q, criterion=criterion).rank) == 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jm.analyze(silent, silent.reference_q)
    assert not jm.screen(told, told.reference_q).certain.any()
    assert bool(jm.screen(told, told.reference_q).doubtful)
    path = tmp_path / "door.toml"
    text = re.sub(r"(precision.*\n)", "", write_model(_model()))
    path.write_text(text)
    done = CliRunner().invoke(app, ["analyze", str(path), "--json"], catch_exceptions=False)
    assert '"redundant_at_precision": true' in done.stdout
    done = CliRunner().invoke(app, ["simulate", str(path), "--end", "0.1"])
    assert done.exit_code == 2
    assert "a simulation takes the numbers as they stand" in done.stderr
    assert "Traceback" not in done.stderr


def _model() -> jm.Model:
    body = spatial.Body("door", mass=2.0, inertia=[1.0, 1.0, 1.0], position=[0.5, 0.0, 0.5])
    axes = ([0.0, 0.0, 1.0], [0.0, -3.7e-6, 1.0], [0.0, 0.70711, 0.70710])
    hinges = [
        spatial.Revolute(f"h{k}", ("ground", "door"), at=[0.0, 0.0, float(k)], axis=axis)
        for k, axis in enumerate(axes[:2])
    ]
    free = spatial.Body("arm", mass=1.0, inertia=[1.0, 1.0, 1.0], position=[2.0, 0.0, 0.0])
    arm = spatial.Revolute("elbow", ("door", "arm"), at=[1.0, 0.0, 0.0], axis=axes[2])
    return jm.Model("door", 3, bodies=[body, free], joints=[*hinges, arm])


def test_trees_have_full_rank_whatever_their_numbers():
    """A straight chain, whose smallest pivots are those of its length."""
    bodies, joints = [], []
    for k in range(40):
        bodies.append(
            spatial.Body(f"b{k}", mass=1.0, inertia=[0.1] * 3, position=[0.0, 0.0, -k - 0.5])
        )
        pair = ("ground" if k == 0 else f"b{k - 1}", f"b{k}")
        joints.append(spatial.Revolute(f"j{k}", pair, at=[0.0, 0.0, -k], axis=[0.0, 1.0, 0.0]))
    system = jm.MultibodySystem(bodies, joints, precision=1e-2)
    report = jm.analyze(system, system.reference_q)
    assert int(report.redundancy) == 0
    assert report.precision is None


STEPS = """
schema = 1
name = "door"
dimension = 3
[[body]]
name = "door"
mass = 1.0
inertia = [1.0, 1.0, 1.0]
position = [0.5, 0.0, 0.5]
[[joint]]
type = "revolute"
name = "lower"
bodies = ["ground", "door"]
at = [0.0, {0}, 0.0]
axis = [0.0, 0.0, 1.0]
[[joint]]
type = "revolute"
name = "upper"
bodies = ["ground", "door"]
at = [0.0, {1}, 1.0]
axis = [0.0, 0.0, 1.0]
"""


@pytest.mark.parametrize(
    ("lower", "upper", "rank", "doubtful"),
    [
        ("0.0", "0.0", 5, False),
        ("0.354", "0.354", 5, False),
        # 0.5 / sqrt(2), to three and four digits.
        ("0.354", "0.3536", 6, True),
        ("0.71", "0.707", 6, True),
        ("0.0", "0.001", 6, True),
        # What no digit explains is meant.
        ("0.0", "0.125", 6, False),
        ("0.354", "0.612", 6, False),
    ],
)
def test_a_rank_of_few_short_numbers_is_doubtful(
    lower: str, upper: str, rank: int, doubtful: bool, tmp_path: Path
):
    """Two hinges of one line, whose offset is that of the digits or is meant."""
    model, report = analyzed(STEPS.format(lower, upper), tmp_path)
    assert model.precision is None
    assert int(report.rank) == rank
    assert bool(report.doubtful) == doubtful
    assert ("numbers are not exact" in report.doubt()) == doubtful
    exact, report = analyzed(f"precision = 0\n{STEPS.format(lower, upper)}", tmp_path)
    assert exact.possible_precision is None
    assert not bool(report.doubtful)
