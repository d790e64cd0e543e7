"""Curves over time: a reaction that is not unique is dashed, and its label and title say so."""

from collections.abc import Iterator

import matplotlib


matplotlib.use("Agg")

import dataclasses

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxmbs import MultibodySystem, planar
from jaxmbs._dynamics import Statistics
from jaxmbs._dynamics._passages import Passages
from jaxmbs._reactions import Reactions, Wrench
from jaxmbs._verdict import Verdict
from jaxmbs.plot import draw_curve, draw_force, draw_reactions
from jaxmbs.results import RESULTS, Trajectory


TIMES = np.linspace(0.0, 1.0, 4)
YES, NO = np.ones(4, bool), np.zeros(4, bool)
SOMETIMES = np.array([True, False, True, True])


@pytest.fixture
def axes() -> Iterator[Axes]:
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def dashed(line: Line2D) -> bool:
    return line.get_linestyle() != "-"


def curves(axes: Axes) -> list[tuple[bool, str]]:
    """Of each curve: is it dashed, and its label."""
    return [(dashed(line), str(line.get_label())) for line in axes.lines]


# ---------------------------------------------------------------------------------------------
# One curve
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize(
    ("unique", "expected"),
    [
        (YES, (False, "A")),
        (True, (False, "A")),
        (NO, (True, "A (not unique)")),
        (False, (True, "A (not unique)")),
        (SOMETIMES, (True, "A (not unique at some times)")),
    ],
)
def test_a_curve_says_whether_it_is_unique(unique, expected, place: int, axes: Axes):
    draw_curve(axes, TIMES, TIMES**2, "A", unique=unique, place=place)
    assert curves(axes) == [expected]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), TIMES**2)


def test_curves_that_are_compared_differ_in_colour_and_pattern(axes: Axes):
    for place in range(4):
        draw_curve(axes, TIMES, TIMES, "A", unique=False, place=place)
    lines = axes.lines
    patterns = {tuple(np.ravel(vars(line)["_unscaled_dash_pattern"][1])) for line in lines}
    assert len(patterns) == 4
    pairs = [(a, b) for a in range(4) for b in range(a)]
    assert not any(same_color(lines[a].get_color(), lines[b].get_color()) for a, b in pairs)


def wrench(unique: np.ndarray) -> Wrench:
    """A force of 3 N along x and 4 N along y, with these verdicts (4, 2) of its components."""
    return Wrench(
        force=jnp.tile(jnp.array([3.0, 4.0]), (4, 1)),
        torque=jnp.zeros(4),
        point=jnp.zeros((4, 2)),
        arm=jnp.ones(4),
        force_unique=Verdict.where(True, unique),
        torque_unique=Verdict.where(True, np.ones(4, bool)),
        unique=Verdict.where(True, unique.all(1)),
        name="A",
        body="bar",
        axes="world",
    )


@pytest.mark.parametrize(
    ("y", "label"), [(NO, "A (not unique)"), (SOMETIMES, "A (not unique at some times)")]
)
def test_components_have_verdicts_of_their_own(y: np.ndarray, label: str, axes: Axes):
    given = wrench(np.stack([YES, y], axis=1))
    draw_force(axes, TIMES, given, "A", component=0)
    draw_force(axes, TIMES, given, "A", component=1)
    # A magnitude is no more unique than its components.
    draw_force(axes, TIMES, given, "A")
    assert curves(axes) == [(False, "A"), (True, label), (True, label)]
    for line, value in zip(axes.lines, (3.0, 4.0, 5.0), strict=True):
        np.testing.assert_allclose(np.asarray(line.get_ydata()), value, rtol=1e-15)


# ---------------------------------------------------------------------------------------------
# All joints
# ---------------------------------------------------------------------------------------------


def still(system: MultibodySystem) -> Trajectory:
    """A trajectory that stays where it is, with multipliers that only have to be numbers."""
    rows = len(system.structure.rows)
    none = jnp.asarray(0)
    return Trajectory(
        times=jnp.asarray(TIMES),
        q=jnp.tile(system.reference_q, (4, 1)),
        v=jnp.zeros((4, system.structure.nv)),
        acceleration=jnp.zeros((4, system.structure.nv)),
        multipliers=jnp.tile(jnp.arange(1.0, rows + 1), (4, 1)),
        position_error=jnp.zeros(4),
        velocity_error=jnp.zeros(4),
        reached=jnp.ones(4, bool),
        passes=Passages.none(np.dtype(float)),
        stopped=jnp.asarray(False),
        statistics=Statistics(none, none, none),
        result=RESULTS.successful,
        system=system,
    )


@pytest.fixture(scope="module")
def rails() -> Trajectory:
    """A block on two rails, which may press against each other, and a pendulum on a pin."""
    bodies = [
        planar.Body("block", mass=2.0, inertia=0.1, position=(0.0, 0.1)),
        planar.Body("bar", mass=1.0, inertia=0.1, position=(1.0, 1.0)),
    ]
    joints = [
        planar.Translational("left", ("ground", "block"), (-0.2, 0.0), (1.0, 0.0)),
        planar.Translational("right", ("ground", "block"), (0.2, 0.0), (1.0, 0.0)),
        planar.Revolute("pin", ("block", "bar"), (0.0, 0.5)),
    ]
    return still(MultibodySystem(bodies, joints))


@pytest.fixture(scope="module")
def found(rails: Trajectory) -> Reactions:
    return rails.reactions()


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def panels(figure: Figure) -> dict[str, Axes]:
    return {axes.get_title().split(",")[0]: axes for axes in figure.axes}


def test_panels_of_reactions_say_which_are_not_unique(rails: Trajectory):
    figure = draw_reactions(rails)
    shown = panels(figure)
    assert list(shown) == ["left", "right", "pin"]
    for name, axes in shown.items():
        (line,) = axes.lines
        sound = name == "pin"
        assert dashed(line) is not sound
        assert axes.get_title() == (name if sound else f"{name}, not unique")
        assert axes.title.get_fontweight() == ("normal" if sound else "bold")
        assert axes.get_ylabel() == "force (N)"
    assert not figure.legends


def test_reactions_that_are_compared_share_a_legend(rails: Trajectory, found: Reactions):
    figure = draw_reactions(rails, ["right", "pin"], compared={"this": found, "that": found})
    shown = panels(figure)
    assert curves(shown["right"]) == [(True, "this (not unique)"), (True, "that (not unique)")]
    assert curves(shown["pin"]) == [(False, "this"), (False, "that")]
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert sorted(words) == ["that", "that (not unique)", "this", "this (not unique)"]
    styles = dict(zip(words, map(dashed, legend.get_lines()), strict=True))
    assert styles == {word: "not unique" in word for word in words}


def test_a_verdict_that_changes_is_told(rails: Trajectory, found: Reactions):
    words = ("force_unique", "torque_unique", "reaction_unique")
    every = {w: Verdict.where(True, jnp.ones(getattr(found, w).shape, bool)) for w in words}
    sound = dataclasses.replace(found, **every)
    changing = dataclasses.replace(
        sound,
        force_unique=Verdict.where(True, found.force_unique.unique.at[::2].set(True)),
        reaction_unique=sound.reaction_unique,
    )
    figure = draw_reactions(rails, ["left", "pin"], compared={"sound": sound, "other": changing})
    shown = panels(figure)
    assert curves(shown["left"]) == [(False, "sound"), (True, "other (not unique at some times)")]
    # One curve that is not unique is enough for the title.
    assert shown["left"].get_title() == "left, not unique"
    assert curves(shown["pin"]) == [(False, "sound"), (False, "other")]
    assert shown["pin"].get_title() == "pin"
