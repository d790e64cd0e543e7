"""The report: one page that works offline, shows the trajectory's own numbers, and no number that
is not unique."""

import base64
import json
import re
import time
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import matplotlib.image
import numpy as np
import pytest
from browser import browser_or_skip
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait
from typer.testing import CliRunner

import jaxmbs as jm
import jaxmbs.report
from jaxmbs import planar
from jaxmbs.cli._app import app
from jaxmbs.io import save_trajectory, write_model


# A name that would run a program wherever it is not escaped.
TRAP = "<img src=x onerror=alert(1)>"
LOW, HIGH = -50.0, 80.0
BOUND = f"{LOW:g} <= left.force.x <= {HIGH:g}"
STATES = 9


def model() -> jm.Model:
    """A beam between two fixed hinges, which share its horizontal load in any way, and a pendulum
    that swings below it."""
    beam = planar.Body("beam", mass=3.0, inertia=0.4, position=(0.0, 0.0))
    swing = (0.3 * np.sin(0.6), -0.3 * np.cos(0.6))
    bob = planar.Body("bob", mass=2.0, inertia=0.05, position=swing, angle=0.6)
    return jm.Model(
        "beam & bob",
        2,
        bodies=[beam, bob],
        joints=[
            planar.Revolute("left", ("ground", "beam"), (-0.5, 0.0)),
            planar.Revolute("right", ("ground", "beam"), (0.5, 0.0)),
            planar.Revolute(TRAP, ("beam", "bob"), (0.0, 0.0)),
        ],
        gravity=(0.0, -9.81),
    )


class Made(NamedTuple):
    """A page and what it was made of."""

    path: Path
    text: str
    trajectory: jm.results.Trajectory
    written: jaxmbs.report.Written


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    system = model().system()
    start = system.reference_q, system.initial_v
    trajectory = jm.simulate(
        system, *start, 0.4, times=jnp.linspace(0.0, 0.4, STATES), monitor=False
    )
    path = tmp_path_factory.mktemp("report") / "beam.html"
    written = jaxmbs.report.write(
        trajectory, path, bounds=[BOUND], title=TRAP, notes={"source": TRAP}
    )
    return Made(path, path.read_text(encoding="utf-8"), trajectory, written)


def numbers(made: Made) -> dict[str, Any]:
    """What the page's program reads."""
    (found,) = re.findall(r'id="data">(.*?)</script>', made.text, re.DOTALL)
    return json.loads(found)


def unpacked(packed: dict[str, str], columns: int) -> np.ndarray:
    values = np.frombuffer(base64.b64decode(packed["data"]), f"<{packed['type']}")
    return values.reshape(-1, columns)


def columns_of(packed: dict[str, Any], count: int) -> np.ndarray:
    """All components, of which some columns are in the file and the others have no number."""
    found = np.full((STATES, count), np.nan)
    found[:, packed["columns"]] = unpacked(packed, len(packed["columns"]) or 1)[:STATES]
    return found


def steady(packed: dict[str, str], columns: int) -> np.ndarray:
    """An array of all states, of which one is in the file where all are equal."""
    return np.broadcast_to(unpacked(packed, columns), (STATES, columns))


def expected(made: Made) -> dict[tuple[str, str], np.ndarray]:
    """Components of wrenches along the motion, by joint and label."""
    found = {}
    reactions = made.trajectory.reactions()
    for name in reactions.names:
        wrench = reactions.wrench(name)
        force = np.asarray(wrench.force)
        found |= {(name, "force x"): force[:, 0], (name, "force y"): force[:, 1]}
        found[name, "torque z"] = np.asarray(wrench.torque)
    return found


def horizontal_load(made: Made) -> np.ndarray:
    """What both hinges together exert on the beam."""
    known = expected(made)
    return known["left", "force x"] + known["right", "force x"]


class Reader(HTMLParser):
    """What a page is made of: each element with its attributes and the elements around it."""

    def __init__(self, text: str):
        HTMLParser.__init__(self)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), tuple(self.open)))
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1] == tag, f"{self.open} closed by {tag}"
        self.open.pop()

    def all(self, tag: str) -> list[tuple[str, dict[str, str | None], tuple[str, ...]]]:
        return [x for x in self.elements if x[0] == tag]


class TestFile:
    def test_numbers_are_those_of_the_trajectory(self, made):
        data = numbers(made)
        count = len(data["components"])
        values = columns_of(data["values"], count)
        verdicts = steady(data["verdicts"], count)
        known = expected(made)
        for k, component in enumerate(data["components"]):
            name = data["joints"][component["constraint"]]["name"]
            unique = verdicts[:, k] == 1
            assert np.array_equal(values[unique, k], known[name, component["label"]][unique])
        times = unpacked(data["times"], 1)[:, 0]
        assert np.array_equal(times, np.asarray(made.trajectory.times))
        assert np.array_equal(steady(data["rank"], 1)[:, 0], np.full(STATES, 5))

    def test_what_is_not_unique_has_no_number(self, made):
        data = numbers(made)
        count = len(data["components"])
        verdicts = steady(data["verdicts"], count)
        assert np.all(np.isnan(columns_of(data["values"], count)[verdicts != 1]))
        names = [data["joints"][c["constraint"]]["name"] for c in data["components"]]
        labels = [c["label"] for c in data["components"]]
        many = {(names[k], labels[k]) for k in range(count) if np.any(verdicts[:, k] == 0)}
        assert many == {("left", "force x"), ("right", "force x")}

    def test_ranges_are_those_of_the_bound(self, made):
        data = numbers(made)
        count = len(data["components"])
        assert data["unbounded"] == []
        low, high = (columns_of(data[x], count) for x in ("bandLow", "bandHigh"))
        places = {
            (data["joints"][c["constraint"]]["name"], c["label"]): k
            for k, c in enumerate(data["components"])
        }
        left, right = (places[name, "force x"] for name in ("left", "right"))
        load = horizontal_load(made)
        assert np.max(np.abs(load)) > 1.0
        assert np.allclose(low[:, left], LOW, rtol=0, atol=1e-9)
        assert np.allclose(high[:, left], HIGH, rtol=0, atol=1e-9)
        assert np.allclose(low[:, right], load - HIGH, rtol=0, atol=1e-9)
        assert np.allclose(high[:, right], load - LOW, rtol=0, atol=1e-9)
        assert f"Ranges are those within the bounds: {BOUND}" in made.text.replace("&lt;", "<")

    def test_it_may_change_along_the_beam_alone(self, made):
        data = numbers(made)
        spread = data["spread"]
        assert spread["joints"] == [0, 1]
        assert np.array_equal(steady(spread["count"], 4), np.tile([1, 0, 1, 0], (STATES, 1)))
        assert [(x["joint"], x["part"]) for x in spread["kept"]] == [(0, 0), (1, 0)]
        for own in spread["kept"]:
            first = steady(own["directions"], 6)[:, :3]
            assert np.allclose(first, [1.0, 0.0, 0.0], atol=1e-7)

    def test_it_is_small_enough_for_many_states(self, made):
        ours = len(re.sub(r"<script>/\*.*?</script>", "", made.text, flags=re.DOTALL))
        program = made.written.size - ours
        assert program > 1e6
        assert program + ours / STATES * 500 < 10e6
        assert (made.written.states, made.written.size) == (STATES, made.path.stat().st_size)

    def test_names_are_no_elements(self, made):
        assert "<img" not in made.text
        assert made.text.count("&lt;img src=x onerror=alert(1)&gt;") >= 5

    def test_nothing_is_asked_for(self, made):
        page = Reader(re.sub(r"<script>.*?</script>", "", made.text, flags=re.DOTALL))
        for tag, attributes, _ in page.elements:
            assert not {"src", "srcset", "action"} & attributes.keys(), tag
            assert tag not in ("link", "iframe", "object", "embed", "form", "base")
        assert [a.get("href") for _, a, _ in page.all("a")] == ["#main"]
        policies = [a["content"] for _, a, _ in page.all("meta") if "http-equiv" in a]
        assert [str(policy).split(";")[0] for policy in policies] == ["default-src 'none'"]

    def test_tables_are_tables(self, made):
        page = Reader(re.sub(r"<script>.*?</script>", "", made.text, flags=re.DOTALL))
        assert page.open == []
        assert len(page.all("table")) == len(page.all("caption")) == 5
        assert all(a.get("scope") in ("row", "col") for _, a, _ in page.all("th"))
        assert len(page.all("h1")) == len(page.all("main")) == 1
        assert page.all("html")[0][1] == {"lang": "en"}
        ids = Counter(a["id"] for _, a, _ in page.elements if "id" in a)
        assert set(ids.values()) == {1}
        referred = {a["aria-labelledby"] for _, a, _ in page.elements if "aria-labelledby" in a}
        assert referred <= ids.keys()
        for tag in ("select", "input"):
            for _, attributes, around in page.all(tag):
                assert "label" in around or "aria-label" in attributes

    def test_how_it_was_computed(self, made):
        for text in (f"jaxmbs {jm.__version__}", "rank tolerance 1e-09", "closure", "accepted"):
            assert text in made.text
        assert re.search(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", made.text)

    def test_shared_loads_and_releases(self, made):
        assert "<li>left, right</li>" in made.text
        assert "left: revolute -&gt; point on line" in made.text


class TestView:
    def test_it_is_a_frame_of_its_own(self, made):
        found = jaxmbs.report.view(made.trajectory, title=TRAP, frames=3)
        shown = found._repr_html_()
        assert shown.startswith("<iframe title=")
        assert 'sandbox="allow-scripts"' in shown
        # The page is the value of an attribute, in which a quote would end it.
        assert shown.count('"') == 12
        assert "<img" not in found.html
        assert "How this was computed" not in found.html
        assert 'id="slider" type="range" min="0" max="2"' in found.html
        assert "MB" in str(found)


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "says"),
        [
            ({"path": "page.txt"}, "ends in .html"),
            ({"path": "none/page.html"}, "there is no folder"),
            ({"end": -1.0}, "end must be greater than zero"),
            ({"end": 1.0}, "a trajectory has its own times"),
            ({"frames": 1}, "frames must be at least 2"),
            ({"bounds": ["nobody >= 0"]}, "nobody"),
            ({"title": " "}, "title must be a text"),
        ],
    )
    def test_what_cannot_be_is_refused_and_nothing_written(self, made, tmp_path, settings, says):
        path = tmp_path / settings.pop("path", "page.html")
        with pytest.raises(ValueError, match=re.escape(says)):
            jaxmbs.report.write(made.trajectory, path, **settings)
        assert list(tmp_path.iterdir()) == []

    def test_a_system_is_no_subject(self, made, tmp_path):
        subject: Any = made.trajectory.system
        with pytest.raises(TypeError, match="a Model or a Trajectory"):
            jaxmbs.report.write(subject, tmp_path / "page.html")

    def test_a_model_without_an_end_has_one_state(self, tmp_path):
        with pytest.raises(ValueError, match="give end="):
            jaxmbs.report.write(model(), tmp_path / "page.html", frames=5)


@pytest.mark.thorough
def test_motors_and_stops_are_told(tmp_path):
    plain = model()
    hinge = next(own for own in plain.joints if "rotation" in own.coordinates())
    motor = jm.forces.Motor(
        "engine",
        hinge.name,
        actuator=jm.forces.IdealActuator(),
        command=jm.motions.Linear(rate=1.0),
    )
    word = next(iter(hinge.coordinates()))
    stop = jm.forces.JointStop("buffer", hinge.name, word, upper=-0.1, stiffness=1.0)
    with_motor = eqx.tree_at(lambda m: m.forces, plain, (*plain.forces, motor, stop))
    path = tmp_path / "page.html"
    jaxmbs.report.write(with_motor, path, end=0.1, frames=5)
    text = path.read_text(encoding="utf-8")
    assert '<h2 id="duty-title">Motors</h2>' in text
    assert '<th scope="row">engine</th>' in text
    assert '<h2 id="stops-title">Stops of joints</h2>' in text
    assert '<th scope="row">buffer</th>' in text


@pytest.mark.thorough
def test_contacts_are_told(tmp_path):
    plain = model()
    body = plain.bodies[0].name
    dimension = plain.dimension
    contact = jm.forces.Contact(
        "bump",
        (body, "ground"),
        first=jm.shapes.ContactSphere(0.01),
        second=jm.shapes.ContactHalfSpace([0.0, 1.0, 0.0][:dimension], at=[-100.0] * dimension),
        stiffness=1e3,
    )
    touching = eqx.tree_at(lambda m: m.forces, plain, (*plain.forces, contact))
    path = tmp_path / "page.html"
    jaxmbs.report.write(touching, path, end=0.1, frames=5)
    text = path.read_text(encoding="utf-8")
    assert '<h2 id="contacts-title">Contacts</h2>' in text
    assert '<th scope="row">bump</th>' in text


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["report", *map(str, arguments)], catch_exceptions=False)


class TestCommand:
    @pytest.mark.thorough
    def test_one_state_of_a_file(self, tmp_path):
        source, out = tmp_path / "beam.toml", tmp_path / "beam.html"
        source.write_text(write_model(model()), encoding="utf-8")
        result = run(source, "--out", out, "--bound", BOUND, "--json")
        told = json.loads(result.stdout)
        assert told == {
            "model": "beam & bob",
            "file": str(out),
            "bytes": out.stat().st_size,
            "states": 1,
        }
        text = out.read_text(encoding="utf-8")
        assert re.search(r"beam.toml, SHA-256 [0-9a-f]{64}", text)
        assert 'id="slider"' not in text

    def test_a_motion_that_was_saved(self, made, tmp_path):
        source, motion = tmp_path / "beam.toml", tmp_path / "motion.npz"
        source.write_text(write_model(model()), encoding="utf-8")
        save_trajectory(made.trajectory, motion)
        result = run(source, "--trajectory", motion, "--out", tmp_path / "beam.html")
        assert result.exit_code == 0, result.output
        assert f"{STATES} states" in result.stdout
        assert "motion.npz, SHA-256" in (tmp_path / "beam.html").read_text(encoding="utf-8")

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            (["--out", "page.pdf"], "ends in .html"),
            (["--out", "no/folder/page.html"], "there is no folder"),
            (["--frames", "5"], "give --end"),
            (["--end", "1", "--frames", "1"], "--frames must be at least 2"),
            (["--end", "1", "--frames", "5", "--every", "0.1"], "not both"),
            (["--end", "-1"], "--end must be a time"),
            (["--bound", "slider <> 3"], "--bound"),
            (["--trajectory", "none.npz"], "cannot read"),
            (["--trajectory", "none.npz", "--end", "1"], "a motion of its own"),
        ],
    )
    def test_bad_input_writes_nothing(self, tmp_path, monkeypatch, options, says):
        monkeypatch.chdir(tmp_path)
        given = options if "--out" in options else ["--out", "page.html", *options]
        result = CliRunner().invoke(app, ["report", "door", *given], catch_exceptions=False)
        assert result.exit_code == 2
        assert says in result.stderr
        assert (result.stdout, list(tmp_path.iterdir())) == ("", [])


# ---------------------------------------------------------------------------------------------
# In a browser
# ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    driver = browser_or_skip()
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def opened(browser, made):
    """The page, from its file."""
    # What the browser asked for before is its own.
    browser.get_log("performance")
    browser.get(made.path.as_uri())
    until(browser, "document.body.dataset.ready === 'true'")
    return browser


def until(browser: Any, condition: str) -> None:
    WebDriverWait(browser, 90, 0.05).until(lambda d: d.execute_script(f"return {condition}"))


def move(browser: Any, state: int) -> None:
    """The slider, as a hand does."""
    browser.execute_script(
        "const s = document.getElementById('slider'); s.value = arguments[0];"
        "s.dispatchEvent(new Event('input', { bubbles: true }));",
        str(state),
    )
    until(browser, f"document.body.dataset.shown === '{state}'")


def picture(browser: Any, tmp_path: Path) -> np.ndarray:
    """What is seen of the mechanism, in grey."""
    path = tmp_path / f"scene-{time.monotonic_ns()}.png"
    scene = browser.find_element(By.ID, "scene")
    browser.execute_script("arguments[0].scrollIntoView()", scene)
    path.write_bytes(scene.screenshot_as_png)
    return matplotlib.image.imread(path)[..., :3].mean(axis=2)


class TestBrowser:
    def test_values_at_a_time_are_the_trajectorys(self, opened, made):
        data, known = numbers(made), expected(made)
        load = horizontal_load(made)
        for state in (3, STATES - 1):
            move(opened, state)
            for k, component in enumerate(data["components"]):
                cell = opened.find_element(By.ID, f"value-{k}")
                name = data["joints"][component["constraint"]]["name"]
                value = known[name, component["label"]][state]
                said = cell.get_attribute("textContent")
                if (name, component["label"]) == ("right", "force x"):
                    low, high = (float(x) for x in re.findall(r"-?\d+\.?\d*", said))
                    assert said.startswith("not unique, from ")
                    assert low == pytest.approx(load[state] - HIGH, rel=1e-5)
                    assert high == pytest.approx(load[state] - LOW, rel=1e-5)
                elif (name, component["label"]) == ("left", "force x"):
                    assert said == f"not unique, from {LOW:g} to {HIGH:g}"
                else:
                    assert float(cell.get_attribute("value")) == value
                    assert float(said) == pytest.approx(value, rel=1e-5, abs=1e-9)
            shown = float(made.trajectory.times[state])
            words = opened.find_element(By.ID, "slider").get_attribute("aria-valuetext")
            assert float(words.removesuffix(" s")) == pytest.approx(shown, rel=1e-5)

    def test_a_move_is_answered_at_once(self, opened):
        for state in range(STATES):
            move(opened, state)
        taken = opened.execute_script(
            "return performance.getEntriesByName('state shown').map((x) => x.duration)"
        )
        # The machine may be busy with something else at most of them.
        assert min(taken[-STATES:]) < 100.0

    def test_the_mechanism_is_drawn_and_moves(self, opened, tmp_path):
        move(opened, 0)
        first = picture(opened, tmp_path)
        assert np.mean(first < 0.5) > 1e-3
        move(opened, STATES - 1)
        second = picture(opened, tmp_path)
        assert np.mean(np.abs(first - second) > 0.3) > 1e-3
        Select(opened.find_element(By.ID, "arrows")).select_by_value("none")
        assert np.any(np.abs(picture(opened, tmp_path) - second) > 0.3)
        Select(opened.find_element(By.ID, "arrows")).select_by_value("force")

    def test_bodies_stand_where_the_trajectory_has_them(self, opened, made):
        """Position and orientation of every body, from three.js, at the last state."""
        move(opened, STATES - 1)
        found = opened.execute_script(
            "const { stage, middle } = window.mechanism;"
            "return stage.bodies.map((x) => [x.name, x.object.matrixWorld.elements, middle]);"
        )
        q = np.asarray(made.trajectory.q)[-1].reshape(2, 3)
        poses = dict(zip(("beam", "bob"), q, strict=True))
        matrices = {name: (np.array(m).reshape(4, 4).T, mid) for name, m, mid in found}
        for name, (x, y, angle) in poses.items():
            matrix, middle = matrices[name]
            assert np.allclose(matrix[:3, 3] + middle, [x, y, 0.0], atol=1e-6)
            turned = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
            assert np.allclose(matrix[:2, :2], turned, atol=1e-6)
            assert np.allclose(matrix[2, :3], [0.0, 0.0, 1.0], atol=1e-6)

    def test_arrows_are_the_unique_forces(self, opened, made):
        """From the joint's point, along the force; a bar for what is not unique within bounds."""
        for state in (0, STATES - 1):
            move(opened, state)
            rods = opened.execute_script(
                "const { stage: { forces }, middle } = window.mechanism;"
                "return [middle, ...['shafts', 'heads', 'bars', 'boxes', 'unbounded'].map("
                "(k) => forces[k].segments)];"
            )
            middle, shafts, heads, bars, boxes, unbounded = rods
            known = expected(made)
            force = np.array([known[TRAP, "force x"][state], known[TRAP, "force y"][state], 0.0])
            # Of the three joints one has a force that is unique.
            assert (len(shafts), len(heads), len(unbounded)) == (1, 1, 0)
            begin, tip = np.array(shafts[0][0]) + middle, np.array(heads[0][1]) + middle
            assert np.allclose(begin, 0.0, atol=1e-6)
            drawn = tip - begin
            assert np.allclose(drawn / np.linalg.norm(drawn), force / np.linalg.norm(force))
            # The bars have the directions and the lengths of the ranges, on one scale with it.
            scale = np.linalg.norm(drawn) / np.linalg.norm(force)
            assert (len(bars), len(boxes)) == (2, 4)
            load = horizontal_load(made)[state]
            for (first, last, *_), name in zip(bars, ("left", "right"), strict=True):
                low, high = (LOW, HIGH) if name == "left" else (load - HIGH, load - LOW)
                at = np.array([-0.5 if name == "left" else 0.5, 0.0])
                across = known[name, "force y"][state]
                ends = np.sort([first[0], last[0]]) + middle[0]
                assert np.allclose(ends, at[0] + scale * np.array([low, high]), atol=1e-6)
                assert np.allclose([first[1], last[1]], scale * across - middle[1], atol=1e-6)

    @pytest.mark.parametrize(
        ("ends", "bars", "lines", "begin", "side"),
        [
            ((None, 0.0), [], [], 0.0, -1),
            ((5.0, None), [], [5.0], 5.0, 1),
            ((-5.0, None), [[-5.0, 0.0]], [-5.0], 0.0, 1),
            ((None, 5.0), [[0.0, 5.0]], [5.0], 0.0, -1),
        ],
    )
    @pytest.mark.parametrize("directions", [1, 2])
    def test_what_is_bounded_on_one_side(self, opened, ends, bars, lines, begin, side, directions):
        """Dashes on the other side alone, and something solid to the end that is known: along a
        line, and as an axis of a box."""
        found = opened.execute_script(
            "const { bar, box } = window.mechanism;"
            "const found = { bars: [], boxes: [], unbounded: [] }, all = {};"
            "for (const [k, own] of Object.entries(found)) {"
            "  all[k] = { put: (a, b) => own.push([a, b]) };"
            "}"
            "const [low, high] = [arguments[0] ?? -Infinity, arguments[1] ?? Infinity];"
            "const range = { low: [0, low, 0], high: [0, high, 0] };"
            "if (arguments[2] === 1) bar(all, [1, 1, 0], range, [0, -1, 0], 2, 8);"
            "else box(all, [1, 1, 0], range, 2, 8);"
            "return found;",
            *ends,
            directions,
        )
        own = {k: (np.array(x).reshape(-1, 2, 3) - [1.0, 1.0, 0.0]) for k, x in found.items()}
        assert all(np.all(x[..., [0, 2]] == 0.0) for x in own.values())
        thick, thin = ((own[k][..., 1] / 2).tolist() for k in ("bars", "boxes"))
        to_start = [[0.0, x] for x in lines]
        if directions == 1:
            assert (thick, thin) == (bars, to_start)
        else:
            assert (thick, thin) == ([], bars or to_start)
        dashes = side * (own["unbounded"][..., 1] - 2 * begin)
        assert dashes.shape == (4, 2)
        assert 0.0 < dashes.min() < dashes.max() < 8.0

    def test_marks_are_those_of_the_verdicts(self, opened):
        found = opened.execute_script(
            "return window.mechanism.stage.places.map((x) => [x.label.element.textContent,"
            " x.unique, x.label.element.className]);"
        )
        assert found == [
            ["left", False, "many"],
            ["right", False, "many"],
            [TRAP, True, "joint"],
        ]

    def test_it_is_drawn_on_change_alone(self, opened):
        """No loop draws a mechanism that stands still."""
        move(opened, 0)
        count = "return window.mechanism.stage.renderer.info.render.frame"
        before = opened.execute_script(count)
        opened.execute_async_script("setTimeout(arguments[0], 300)")
        assert opened.execute_script(count) == before
        opened.find_element(By.ID, "reset").click()
        assert opened.execute_script(count) > before

    def test_play_goes_to_the_end_and_stops(self, opened):
        move(opened, 0)
        button = opened.find_element(By.ID, "play")
        assert (button.text, button.accessible_name) == ("Play", "Play")
        button.click()
        assert button.text == "Pause"
        until(opened, f"document.body.dataset.shown === '{STATES - 1}'")
        until(opened, "document.getElementById('play').textContent === 'Play'")

    def test_curves_say_what_has_none(self, opened):
        choice = Select(opened.find_element(By.ID, "choice"))
        assert [x.text for x in choice.options][1:3] == ["left: force", "right: force"]
        choice.select_by_index(1)
        words = opened.find_element(By.ID, "curve-words").text
        assert words == "force x: not unique, within the hatched range."
        drawn = opened.execute_script("return document.getElementById('curves').data")
        assert [x["name"] for x in drawn] == ["force x: range, not unique", "force y"]

    def test_everything_that_acts_has_a_name(self, opened):
        acting = opened.find_elements(By.CSS_SELECTOR, "main button, main input, main select")
        assert len(acting) >= 7
        assert [x.get_attribute("id") for x in acting if not x.accessible_name.strip()] == []

    def test_names_are_read_as_text(self, opened):
        assert opened.execute_script("return document.querySelectorAll('img').length") == 0
        headings = [x.text for x in opened.find_elements(By.CSS_SELECTOR, "#values tbody th")]
        assert TRAP in headings
        assert TRAP in opened.title

    def test_no_complaint_and_no_request(self, opened, made):
        assert [x for x in opened.get_log("browser") if x["level"] == "SEVERE"] == []
        logged = (json.loads(x["message"])["message"] for x in opened.get_log("performance"))
        requests = [x["params"] for x in logged if x["method"] == "Network.requestWillBeSent"]
        # Those of the browser's own pages are none of ours.
        asked = {
            x["request"]["url"]
            for x in requests
            if x["documentURL"].partition("#")[0] == made.path.as_uri()
        }
        assert made.path.as_uri() in asked
        own = (made.path.as_uri(), "data:", "blob:")
        assert [url for url in asked if not url.startswith(own)] == []


def test_without_webgl_it_says_so(browser, made):
    """Tables and curves are complete."""
    script = "HTMLCanvasElement.prototype.getContext = () => null;"
    given = {"source": script}
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", given)
    try:
        browser.get(made.path.as_uri())
        until(browser, "document.body.dataset.ready === 'true'")
        assert browser.find_element(By.ID, "no-webgl").is_displayed()
        assert not browser.find_element(By.ID, "scene").is_displayed()
        move(browser, 2)
        assert browser.find_element(By.ID, "shown").text.endswith(" s")
        assert browser.execute_script("return document.getElementById('curves').data").copy()
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


@pytest.mark.thorough
def test_a_frame_in_a_notebook_draws_the_same(browser, made, tmp_path):
    found = jaxmbs.report.view(made.trajectory, title=TRAP, frames=3, bounds=[BOUND])
    path = tmp_path / "view.html"
    path.write_text(found.html, encoding="utf-8")
    browser.get(path.as_uri())
    until(browser, "document.body.dataset.ready === 'true'")
    drawn = browser.execute_script("return window.mechanism.stage.forces.shafts.segments.length")
    assert drawn == 1
    assert len(browser.find_elements(By.CSS_SELECTOR, "#values tbody tr")) == 3
