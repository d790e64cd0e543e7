"""Which constraints of bodies are holonomic, and the command that tells it."""

import json
import math

import numpy as np
import pytest
from holonomy_answers import ask, ROUNDING, verdict
from typer.testing import CliRunner

import jaxmbs as jm
from jaxmbs import motions, planar, spatial
from jaxmbs.cli._app import app
from jaxmbs.results import RESULTS


def sledges(unit=1.0, rate=0.0):
    """A sledge on an edge; a skate that a slide lets move along its edge alone; both are on
    a table that a driver moves."""
    at = {"table": (0.0, 0.0), "sledge": (0.4, 0.2), "skate": (-0.4, 0.3)}
    bodies = [
        planar.Body(k, mass=2.0, inertia=0.1 * unit**2, position=unit * np.array(p))
        for k, p in at.items()
    ]
    turn = np.array([math.cos(0.3), math.sin(0.3)])
    joints = [
        planar.Translational("rail", ("ground", "table"), (0.0, 0.0), (1.0, 0.0)),
        planar.KnifeEdge("edge", ("sledge",), unit * np.array([0.3, 0.1]), (1.0, 0.5)),
        planar.Translational("slide", ("ground", "skate"), unit * np.array([-0.4, 0.3]), turn),
        planar.KnifeEdge("blade", ("skate",), unit * np.array([-0.3, 0.3]), turn),
    ]
    driver = jm.Driver("push", "rail", "translation", motions.Linear(rate=unit * rate))
    return jm.MultibodySystem(bodies, joints, [driver])


@pytest.fixture(scope="module")
def found():
    """Of the sledges."""
    system = sledges()
    return ask(system, system.reference_q)


class TestSledges:
    @pytest.mark.thorough
    def test_alone_and_together(self, found):
        assert found.names == ("edge", "blade")
        assert found.each.integrable.tolist() == [False, True]
        # What the slide forbids the blade does not forbid again.
        assert found.each.rank.tolist() == [1, 0]
        assert found.each.integrable_rows.tolist() == [0, 0]
        assert verdict(found) == (False, False, 0, 1)
        assert found.together.freedoms.tolist() == 3
        held = {name: found.holonomic(name).tolist() for name in found.structure.constraint_names}
        assert held == {
            "rail": True,
            "edge": False,
            "slide": True,
            "blade": True,
            "push": True,
        }

    @pytest.mark.thorough
    def test_a_driver_is_rheonomic_also_at_rest(self, found):
        assert found.scleronomic.tolist() == [True, True, True, True, False]
        assert found.resting.tolist() == [False, False, False, False, True]
        system = sledges(rate=0.2)
        moving = ask(system, system.reference_q)
        assert moving.scleronomic.tolist() == [True, True, True, True, False]
        assert not moving.resting.any()

    def test_words(self, found):
        lines = str(found).splitlines()
        assert lines[2].split() == ["rail", "translational", "0", *GEOMETRIC, "scleronomic"]
        assert lines[3].split()[:6] == ["edge", "knife_edge", "1", "0", "of", "1"]
        assert lines[6].split() == ["push", "driver", "0", *GEOMETRIC, "rheonomic"]
        assert "The system is nonholonomic. Rheonomic: push." in lines
        assert "At rest, where a driver holds its joint fixed: push." in lines
        assert str(found.alone("blade")) == "holonomic"
        assert str(found.each) == "2 sets of velocity rows (index them to print one)"
        with pytest.raises(ValueError, match=r"'rail' has no velocity rows; .* of edge, blade"):
            found.alone("rail")

    @pytest.mark.parametrize("unit", [1e3, 1e-3])
    def test_units(self, found, unit):
        """In millimetres and kilometres."""
        system = sledges(unit)
        other = ask(system, system.reference_q)
        assert other.each.integrable.tolist() == found.each.integrable.tolist()
        np.testing.assert_allclose(
            other.each.measure_here, found.each.measure_here, rtol=1e-9, atol=ROUNDING
        )

    def test_open(self):
        system = sledges()
        found = ask(system, system.reference_q.at[1].set(0.01))
        assert found.result == RESULTS.configuration_open
        assert "Not closed: 'rail' by 0.01 m" in str(found)


GEOMETRIC = ("holonomic", "(geometric)")


def spinning_ball(spin, unit=1.0):
    """A ball, and rows on its angular velocity along its own axes, filled up to three."""
    body = spatial.Body(
        "ball",
        mass=1.0,
        inertia=np.array([0.1, 0.2, 0.3]) * unit**2,
        position=np.array([1.0, 2.0, 3.0]) * unit,
        orientation=np.array([0.5, 0.5, -0.5, 0.5]),
    )
    coefficients = np.zeros((3, 6))
    coefficients[: len(spin), 3:] = spin
    return body, spatial.Pfaffian("spin", ("ball",), coefficients=coefficients)


def disk_and_ball(unit=1.0, at=(0.0, 0.0)):
    """A leaning disk that rolls, and beside it a ball that does not turn."""
    lean, radius = 0.3, 0.5
    disk = spatial.Body(
        "disk",
        mass=1.0,
        inertia=np.array([0.1, 0.2, 0.1]) * unit**2,
        position=np.array([*at, radius * math.cos(lean)]) * unit,
        orientation=np.array([math.cos(lean / 2), math.sin(lean / 2), 0.0, 0.0]),
    )
    axis = (0.0, math.cos(lean), math.sin(lean))
    tyre = spatial.RollingDisk("tyre", ("disk",), axis=axis, radius=unit * radius)
    ball, still = spinning_ball(np.eye(3), unit)
    return jm.MultibodySystem([disk, ball], [tyre, still])


class TestInSpace:
    """Velocities that are no rates of coordinates."""

    @pytest.mark.parametrize(
        ("rows", "expected"),
        [
            ([[0.6, 0.0, 0.8]], (False, 0, 1)),
            ([[0.6, 0.0, 0.8], [0.0, 1.0, 0.0]], (True, 2, 2)),
            (np.eye(3), (True, 3, 3)),
        ],
        ids=["one", "two", "three"],
    )
    @pytest.mark.thorough
    def test_turns_of_a_ball(self, rows, expected):
        """Without spin about one of its axes a ball still comes to any orientation: turns about
        the two others make one about the first, of the area between them. Two rows leave one axis,
        and what has one direction can be integrated."""
        ball, spin = spinning_ball(rows)
        system = jm.MultibodySystem([ball], [spin])
        own = ask(system, system.reference_q).alone("spin")
        assert (own.integrable.tolist(), int(own.integrable_rows), int(own.rank)) == expected
        np.testing.assert_allclose(own.measure_here, 1.0 - expected[0], atol=ROUNDING)

    @pytest.mark.thorough
    def test_a_disk_that_rolls(self):
        """It turns and rolls in three ways, and comes to all five dimensions of places on the
        plane; in other units and far away as well."""
        system = disk_and_ball()
        found = ask(system, system.reference_q)
        own = found.alone("tyre")
        assert (own.integrable.tolist(), int(own.integrable_rows), int(own.rank)) == (False, 0, 2)
        # Three of the disk, and those of the ball's centre, which is free.
        assert verdict(found) == (False, False, 3, 5)
        assert int(found.together.freedoms) == 6
        for unit, at in ((1e3, (0.0, 0.0)), (1e-3, (0.0, 0.0)), (1.0, (1e5, -1e5))):
            other = disk_and_ball(unit, at)
            again = ask(other, other.reference_q)
            assert verdict(again) == verdict(found)
            # A hundred kilometres away a place has 11 digits.
            np.testing.assert_allclose(
                again.each.measure_here, found.each.measure_here, rtol=1e-8, atol=ROUNDING
            )


@pytest.mark.thorough
def test_the_mobile_robot():
    """Its wheels are nonholonomic one by one. With the rack at rest they let it move in one
    way, along a circle: nothing is left to integrate. While the rack moves, they do not."""
    found = {}
    for rate in (0.0, 0.05):
        system = jm.mechanisms.mobile_robot(motions.Linear(rate=rate)).system()
        found[rate] = ask(system, system.reference_q, samples=2)
        assert found[rate].each.integrable.tolist() == [False] * 5
        # Five rows, of which three are independent.
        assert int(found[rate].together.rank) == 3
    assert verdict(found[0.0]) == (True, True, 3, 3)
    assert verdict(found[0.05]) == (False, False, 0, 3)


@pytest.mark.thorough
def test_the_bicycle():
    """Three degrees of freedom of velocities, seven of configurations (Meijaard, Papadopoulos,
    Ruina & Schwab 2007)."""
    system = jm.mechanisms.get("whipple-bicycle").system()
    found = ask(system, system.reference_q, samples=1)
    own = found.together
    assert verdict(found) == (False, False, 0, 4)
    assert (int(own.freedoms), int(own.freedoms + own.rank)) == (3, 7)
    assert found.each.integrable_rows.tolist() == [0, 0]


def run(*arguments):
    return CliRunner().invoke(app, ["holonomy", *arguments], catch_exceptions=False)


MODEL = """
schema = 1
name = "sledge"
dimension = 2

[[body]]
name = "sledge"
mass = 1.0
inertia = 0.1
position = [0.0, 0.0]

[[joint]]
name = "edge"
type = "knife_edge"
bodies = ["sledge"]
at = [0.3, 0.0]
direction = [1.0, 0.0]
"""


class TestCommand:
    @pytest.fixture
    def model(self, tmp_path):
        path = tmp_path / "sledge.toml"
        path.write_text(MODEL, encoding="utf-8")
        return str(path)

    def test_document_and_table(self, model):
        done = run(model, "--json", "--samples", "2")
        assert (done.exit_code, done.stderr) == (0, "")
        found = json.loads(done.stdout)
        assert (found["model"], found["holonomic"], found["closed"]) == ("sledge", False, True)
        (name, edge), *more = found["constraints"].items()
        assert (name, more) == ("edge", [])
        assert (edge["type"], edge["holonomic"], edge["scleronomic"]) == ("knife_edge", False, True)
        rows = edge["velocity_rows"]
        assert (rows["independent"], rows["integrable"], rows["degrees_of_freedom"]) == (1, 0, 2)
        done = run(model, "--samples", "2")
        assert done.exit_code == 0
        assert "The system is nonholonomic." in done.stdout

    def test_help(self):
        options = (
            "MODEL",
            "--time",
            "--assemble",
            "--samples",
            "--spread",
            "--tolerance",
            "--json",
        )
        text = run("--help").stdout
        assert [word for word in options if word not in text] == []

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (("--spread", "3"), "spread must be at least 0.001 and at most 1, got 3"),
            (("--samples", "0"), "samples must be at least 1, got 0"),
            (("--tolerance", "0"), "tolerance must be"),
            (("--time", "nan"), "--time must be a finite number of seconds"),
        ],
    )
    def test_refused(self, model, options, words):
        done = run(model, *options)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith("jaxmbs: ")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
