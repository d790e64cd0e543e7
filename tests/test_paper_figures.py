"""The figures of the two papers' motions, of the first moments of each: what is drawn, and that
what is not unique says so."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib


matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxmbs import mechanisms
from jaxmbs.cli import _papers


# What the papers call unique, of what is drawn.
UNIQUE = {"A", "H", "W5"}


def drawn(name: str, folder: Path) -> dict[str, Figure]:
    """The figures by the names of their files."""
    found: dict[str, Figure] = {}
    save = Figure.savefig

    def keep(figure: Figure, path: Path, **named: Any) -> None:
        found[path.name] = figure
        save(figure, path, **named)

    whole = _papers._motion
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(Figure, "savefig", keep)
        patch.setattr(_papers, "_motion", lambda model, end, count: whole(model, 0.01 * end, 3))
        paths = written(name)
    for path in paths:
        assert (folder / path).read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in paths] == list(found)
    return found


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Figure]]:
    yield drawn("mobile-robot", tmp_path_factory.mktemp("robot"))
    plt.close("all")


@pytest.fixture(scope="module")
def parallelogram(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Figure]]:
    yield drawn("parallelogram", tmp_path_factory.mktemp("parallelogram"))
    plt.close("all")


def written(name: str) -> list[Path]:
    return _papers.write_figures(mechanisms.get(name))


FILES = {
    "robot": [f"mobile-robot-{name}.png" for name in ("rack", "paths", "reactions")],
    "parallelogram": [f"parallelogram-{name}.png" for name in ("motion", "links", "eliminations")],
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", FILES)
def test_each_figure_has_a_file(name: str, request: pytest.FixtureRequest):
    figures = request.getfixturevalue(name)
    assert list(figures) == FILES[name]
    for figure in figures.values():
        # Numbers that were chosen, where the paper gives none, are said below.
        assert "hosen" in figure.get_supxlabel()


def test_other_models_have_none():
    assert written("door") == []


def told(axes: Axes, unique: bool) -> None:
    """Each curve is dashed and labelled exactly if it is not unique."""
    assert axes.lines
    for line in axes.lines:
        assert (line.get_linestyle() == "-") == unique
        assert ("not unique" in str(line.get_label())) != unique


@pytest.mark.thorough
def test_reactions_of_the_robot(robot: dict[str, Figure]):
    figure = robot["mobile-robot-reactions.png"]
    shown = {axes.get_title(): axes for axes in figure.axes}
    assert list(shown) == ["A", "H", "W5", "C, not unique", "W1, not unique", "W3, not unique"]
    for title, axes in shown.items():
        assert len(axes.lines) == len(_papers.ROBOT_ELIMINATIONS)
        told(axes, title.split(",")[0] in UNIQUE)
    (legend,) = figure.legends
    words = {text.get_text() for text in legend.get_texts()}
    for rows in _papers.ROBOT_ELIMINATIONS:
        assert {f"without {', '.join(rows)}", f"without {', '.join(rows)} (not unique)"} <= words


@pytest.mark.thorough
def test_motion_of_the_robot(robot: dict[str, Figure]):
    (rack,) = robot["mobile-robot-rack.png"].axes
    assert (rack.get_xlabel(), rack.get_ylabel()) == ("time (s)", "rack displacement d (mm)")
    told(rack, True)
    (paths,) = robot["mobile-robot-paths.png"].axes
    assert (paths.get_xlabel(), paths.get_ylabel()) == ("x (m)", "y (m)")
    _, labels = paths.get_legend_handles_labels()
    assert labels == ["platform", "trolley"]
    assert paths.get_legend() is not None


@pytest.mark.thorough
def test_links_of_the_parallelogram_are_unique(parallelogram: dict[str, Figure]):
    figure = parallelogram["parallelogram-links.png"]
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [f"{joint}, {letter}: unique" for joint in "KM" for letter in "xyz"]
    for axes in figure.axes:
        assert len(axes.lines) == 1
        told(axes, True)


@pytest.mark.thorough
def test_eliminations_of_the_parallelogram(parallelogram: dict[str, Figure]):
    figure = parallelogram["parallelogram-eliminations.png"]
    # The self-stress acts along the links, which lie across x at the start.
    sayings = {"x": "(not unique at some times)", "y": "(not unique)", "z": "(not unique)"}
    assert [axes.get_title() for axes in figure.axes] == [f"G, {k}: not unique" for k in sayings]
    for axes, said in zip(figure.axes, sayings.values(), strict=True):
        labels = [f"without {row} {said}" for (row,) in _papers.PARALLELOGRAM_ELIMINATIONS]
        assert [line.get_label() for line in axes.lines] == labels
        told(axes, False)
