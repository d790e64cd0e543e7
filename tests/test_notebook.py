"""What a notebook shows of results, and moving pictures."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.animation import FFMpegWriter
from PIL import Image

import jaxmbs as jm
from jaxmbs import _printing, planar
from jaxmbs._lint import Finding, Findings, Severity
from jaxmbs.plot import animate


TRAP = "<script>alert(1)</script>"


class Cells(HTMLParser):
    """The texts of a table: its caption, and its lines."""

    def __init__(self, text: str):
        HTMLParser.__init__(self)
        self.caption, self.lines = "", []
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag in ("table", "caption", "thead", "tbody", "tr", "th", "td", "p", "pre"), tag
        self.inside = tag
        if tag == "tr":
            self.lines.append([])
        if tag in ("th", "td"):
            self.lines[-1].append("")
        if tag == "th":
            assert dict(attrs)["scope"] in ("row", "col")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "caption":
            self.caption += data
        if self.inside in ("th", "td"):
            self.lines[-1][-1] += data


@pytest.fixture(scope="module")
def swung() -> tuple[jm.results.Trajectory, jm.results.Solvability]:
    """A pendulum on two hinges at one point, of which neither reaction is unique."""
    bob = planar.Body(TRAP, mass=2.0, inertia=0.05, position=(0.3, 0.0))
    hinges = [planar.Revolute(name, ("ground", TRAP), (0.0, 0.0)) for name in ("A", "B")]
    system = jm.MultibodySystem([bob], hinges, gravity=(0.0, -9.81))
    start = system.reference_q, system.initial_v
    trajectory = jm.simulate(system, *start, 0.3, times=jnp.linspace(0.0, 0.3, 4), monitor=False)
    return trajectory, jm.analyze(system, system.reference_q)


class TestTables:
    def test_texts_are_escaped(self):
        columns = [_printing.Column("a & b", ["<i>"], "m>"), _printing.Column('"', ["<"])]
        table = _printing.Table(columns, title="<b>")
        shown = _printing.html(_printing.Description(["&", ""], [table], ["<"]))
        assert Cells(shown).lines == [["a & b (m>)", '"'], ["<i>", "<"]]
        assert Cells(shown).caption == "<b>"
        assert shown.startswith("<p>&amp;</p><table>")
        assert shown.endswith("</table><p>&lt;</p>")

    def test_verdicts(self, swung):
        report = swung[1]
        found = Cells(report._repr_html_())
        assert found.lines[0] == ["joint", "type", "rows", "reaction", "measure"]
        assert [line[3] for line in found.lines[1:]] == ["not unique"] * 2
        assert "redundancy p = 2" in found.caption
        many = jax.tree.map(lambda x: jnp.stack([x, x]), report)
        assert many._repr_html_() == "<p>2 states (index them to print one)</p>"

    def test_trajectory(self, swung):
        shown = swung[0]._repr_html_()
        assert shown.startswith("<p>4 states from 0 s to 0.3 s in ")
        assert "</p><p>closed within " in shown
        many = jax.tree.map(lambda x: jnp.stack([x, x]), swung[0])
        assert "<p>2 motions of 4 states each</p>" in many._repr_html_()

    def test_reactions(self, swung):
        reactions = swung[0].reactions()
        shown = reactions._repr_html_()
        assert "script" not in re.sub("&lt;.*?&gt;", "", shown)
        found = Cells(shown)
        assert found.lines[1][:3] == ["A", "revolute", TRAP]
        assert "NOT UNIQUE" in found.lines[1][5]
        assert "over 4 states" in found.caption
        assert len(Cells(reactions.state(0)._repr_html_()).lines) == 3

    def test_sweep(self):
        bob = planar.Body("bob", mass=2.0, inertia=0.05, position=(0.3, 0.0))
        pin = planar.Revolute("A", ("ground", "bob"), (0.0, 0.0))
        model = jm.Model("one", 2, bodies=[bob], joints=[pin], gravity=(0.0, -9.81))
        cases = jm.Cases.grid({"bodies.bob.mass": [1.0, 3.0]})
        swept = jm.sweep(lambda system, q, v, t: jnp.sum(q), model, cases)
        found = Cells(swept._repr_html_())
        assert found.lines == [["varied", "from", "to"], ["bodies.bob.mass", "1", "3"]]
        assert found.caption.startswith("2 cases (grid of 2)")
        assert "none failed" in swept._repr_html_()

    def test_findings(self):
        assert Findings("slider-crank", ())._repr_html_() == "<p>slider-crank: nothing found</p>"
        finding = Finding("JM1", "a-rule", Severity.NOTE, TRAP, ())
        found = Cells(Findings("it", (finding,))._repr_html_())
        assert found.lines == [
            ["code", "rule", "severity", "finding"],
            ["JM1", "a-rule", "note", TRAP],
        ]


class TestAnimation:
    def test_a_gif_has_the_pictures_of_the_motion(self, swung, tmp_path):
        path = tmp_path / "swing.gif"
        swung[0].animate(path, rate=10, dpi=50, title="two hinges")
        with Image.open(path) as picture:
            assert getattr(picture, "n_frames", 1) == 4
            assert picture.info["duration"] == 100
            frames = []
            for k in (0, 3):
                picture.seek(k)
                frames.append(np.asarray(picture.convert("L"), float))
        assert np.mean(np.abs(frames[0] - frames[1]) > 50) > 1e-3
        assert [x.name for x in tmp_path.iterdir()] == ["swing.gif"]

    @pytest.mark.parametrize(
        ("name", "settings", "says"),
        [
            ("swing.png", {}, "ends in .gif or .mp4"),
            ("none/swing.gif", {}, "there is no folder"),
            ("swing.gif", {"speed": 0.0}, "speed must be greater than zero"),
            ("swing.gif", {"rate": 200}, "rate must be"),
            ("swing.gif", {"dpi": 3}, "dpi must be"),
        ],
    )
    def test_what_cannot_be_is_refused(self, swung, tmp_path, name, settings, says):
        with pytest.raises(ValueError, match=re.escape(says)):
            animate(swung[0], tmp_path / name, **settings)
        assert list(tmp_path.iterdir()) == []

    def test_one_state_does_not_move(self, swung, tmp_path):
        with pytest.raises(ValueError, match="at least two saved states"):
            animate(swung[0].at(slice(0, 1)), tmp_path / "swing.gif")

    def test_without_ffmpeg_there_is_no_mp4(self, swung, tmp_path, monkeypatch):
        monkeypatch.setattr(FFMpegWriter, "isAvailable", classmethod(lambda cls: False))
        with pytest.raises(ValueError, match="ffmpeg, which is not installed"):
            animate(swung[0], tmp_path / "swing.mp4")

    def test_what_fails_leaves_what_was_there(self, swung, tmp_path, monkeypatch):
        path = Path(tmp_path / "swing.gif")
        path.write_bytes(b"before")
        monkeypatch.setattr("PIL.Image.Image.save", _fail)
        with pytest.raises(OSError, match="full"):
            animate(swung[0], path, rate=10, dpi=30)
        assert path.read_bytes() == b"before"
        assert [x.name for x in tmp_path.iterdir()] == ["swing.gif"]


def _fail(*given: Any, **more: Any) -> None:
    raise OSError("the disk is full")
