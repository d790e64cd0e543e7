"""The viewer: what is set closes the mechanism, what is shown is true, and the page stays on this
machine."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import viser
from browser import browser_or_skip
from scipy.spatial.transform import Rotation
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from typer.testing import CliRunner
from viewed import CRANK, Positions, RATE, ROD, slider_crank, TRAP
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

import jaxmbs as jm
import jaxmbs.view
from jaxmbs import planar
from jaxmbs.cli._app import app
from jaxmbs.io import ModelError, save_trajectory, write_model
from jaxmbs.report._contents import Bands, Contents
from jaxmbs.report._opening import compliance_words
from jaxmbs.report._states import still
from jaxmbs.results import AnalysisError
from jaxmbs.view import Viewer
from jaxmbs.view._controls import control, Kind
from jaxmbs.view._loads import largest_of, loads_of, Shown
from jaxmbs.view._page import label_of, quaternion
from jaxmbs.view._serve import free_port
from jaxmbs.view._session import _without_forces, Session
from jaxmbs.view._words import (
    component_words,
    head_html,
    looks_of,
    reaction_rows,
    sentences_of,
    state_html,
    table_html,
)
from jaxmbs.view._worker import Worker


MOTOR, LENGTH = "drivers.motor", "parameters.rod"
CLOSED = 1e-10
GUIDES = (TRAP, "upper")

# What programs are traced for; JAX tells it to all who listen, until the process ends.
TRACED: list[str] = []


def _listen(event: str, *_: Any, **__: Any) -> None:
    if event.endswith("jaxpr_trace_duration"):
        TRACED.append(event)


jax.monitoring.register_event_duration_secs_listener(_listen)


@pytest.fixture(scope="module")
def made() -> Session:
    """A session that is set back by `session`."""
    return Session(slider_crank())


@pytest.fixture
def session(made: Session) -> Session:
    made.motion = None
    made.reset()
    assert made.message == ""
    return made


def component(session: Session, name: str, label: str) -> int:
    """The place of a component, by its joint and label."""
    contents = session.picture.contents
    (found,) = [
        k
        for k, own in enumerate(contents.components)
        if (contents.reactions.names[own.constraint], own.label) == (name, label)
    ]
    return found


# ---------------------------------------------------------------------------------------------
# Controls
# ---------------------------------------------------------------------------------------------


class TestControls:
    def test_drivers_and_parameters_have_one(self, made):
        found = {own.name: (own.kind, own.unit) for own in made.controls}
        assert found == {
            MOTOR: (Kind.DRIVER, "rad"),
            "parameters.crank": (Kind.PARAMETER, ""),
            LENGTH: (Kind.PARAMETER, ""),
        }
        assert made.unset == 0

    def test_independent_coordinates_of_the_ground_have_one(self):
        """Three coordinates and one mobility; and of a free body's motions none."""
        model = slider_crank(driven=False)
        loose = planar.Body("loose", mass=1.0, inertia=0.1, position=(2.0, 2.0))
        both = jm.Model("both", 2, bodies=[*model.bodies, loose], joints=model.joints)
        found = Session(both)
        assert [own.name for own in found.controls] == ["joints.A.rotation"]
        assert found.unset == 3
        found.set({"joints.A.rotation": 0.4})
        assert np.allclose(found.q[:9], Positions.at(0.4).q, rtol=0, atol=CLOSED)
        assert np.array_equal(found.q[9:], [2.0, 2.0, 0.0])

    @pytest.mark.thorough
    def test_coordinates_of_a_chain_are_independent(self):
        arms = [
            planar.Body(name, mass=1.0, inertia=0.1, position=(x, 0.0))
            for name, x in (("lower", 0.5), ("upper", 1.5))
        ]
        joints = [
            planar.Revolute("elbow", ("lower", "upper"), (1.0, 0.0)),
            planar.Revolute("shoulder", ("ground", "lower"), (0.0, 0.0)),
        ]
        found = Session(jm.Model("arm", 2, bodies=arms, joints=joints))
        names = ["joints.shoulder.rotation", "joints.elbow.rotation"]
        assert [own.name for own in found.controls] == names
        found.set({names[0]: 0.5})
        found.set({names[1]: -0.8})
        # The other one stays where it is.
        assert np.allclose(found.q[[2, 5]], [0.5, -0.3], rtol=0, atol=CLOSED)

    @pytest.mark.parametrize(
        ("value", "unit", "ends"),
        [
            (0.0, "rad", (-3.142, 3.142)),
            (0.1, "m", (0.05, 0.15)),
            (-4.0, "kg", (-6.0, -2.0)),
            (0.0, "", (-1.0, 1.0)),
        ],
    )
    def test_ends(self, value, unit, ends):
        own = control("parameters.x", Kind.PARAMETER, "x", unit, value)
        assert (own.low, own.high) == ends
        assert (own.high - own.low) / own.step > 999


# ---------------------------------------------------------------------------------------------
# The session
# ---------------------------------------------------------------------------------------------


class TestSession:
    @pytest.mark.parametrize("angle", [0.3, -0.7, 1.4, 2.5])
    def test_a_driver_moves_the_mechanism(self, session, angle):
        """On its branch, also where it is moved far at once: nearer to the start is the other one,
        with the slider to the left."""
        session.set({MOTOR: angle})
        assert session.message == ""
        assert np.allclose(session.q, Positions.at(angle).q, rtol=0, atol=CLOSED)
        assert session.picture.residual[0] < CLOSED
        assert session.values[MOTOR] == angle

    def test_a_parameter_moves_the_mechanism(self, session):
        session.set({MOTOR: 0.9})
        session.set({LENGTH: 0.35, "parameters.crank": 0.12})
        expected = Positions.at(0.9, crank=0.12, rod=0.35).q
        assert np.allclose(session.q, expected, rtol=0, atol=CLOSED)

    def test_what_does_not_close_changes_nothing(self, session):
        session.set({MOTOR: 0.9})
        before, picture = dict(session.values), session.picture
        session.set({LENGTH: 0.05})
        assert "did not close" in session.message
        assert "'upper' by" in session.message
        assert session.values == before
        assert session.picture is picture
        assert session.message in head_html(session).replace("&#x27;", "'").replace(
            "&lt;", "<"
        ).replace("&gt;", ">")
        session.set({MOTOR: 1.0})
        assert session.message == ""

    def test_what_is_no_number_changes_nothing(self, session):
        session.set({MOTOR: float("nan")})
        assert "finite" in session.message
        session.set({LENGTH: float("nan")})
        assert "finite" in session.message
        assert session.values[LENGTH] == ROD
        # Of many numbers that which is at fault.
        session.set({"parameters.crank": 0.11})
        session.set({LENGTH: float("inf")})
        assert session.message.startswith("'rod': ")
        with pytest.raises(ModelError, match="no control 'motor'"):
            session.set({"motor": 1.0})

    def test_new_numbers_are_no_new_program(self, session):
        def move(k: int) -> None:
            session.set({MOTOR: 0.1 * k})
            session.set({LENGTH: 0.3 + 0.01 * k, MOTOR: 0.2})

        move(1)
        TRACED.clear()
        move(2)
        move(-3)
        assert TRACED == []
        jax.jit(lambda x: 3.7 * x)(jnp.ones(()))
        assert TRACED

    def test_no_number_of_what_is_not_unique(self, session):
        """Not even that of least norm, which is there."""
        session.set({MOTOR: 0.8})
        contents = session.picture.contents
        shared = component(session, "upper", "force y")
        place = contents.reactions.layout.seconds[contents.components[shared].constraint]
        hidden = float(contents.reactions.force[0, 0, place, 1])
        assert abs(hidden) > 1.0
        assert component_words(contents, 0, shared) == "not unique, unbounded"
        page = head_html(session) + table_html(session) + state_html(session)
        assert f"{hidden:.6g}" not in page
        assert f"{hidden:.4g}" not in page

    def test_unique_forces(self, session):
        """The motor holds the weight of crank and rod, by virtual work."""
        session.set({MOTOR: 0.8})
        contents = session.picture.contents
        motor = contents.reactions.names.index("motor")
        rows = dict(reaction_rows(contents, 0, motor))
        known = 9.81 * CRANK * np.cos(0.8) * (0.8 + 0.5) / 2
        assert float(rows["torque z (N m)"]) == pytest.approx(known, rel=1e-5)
        assert rows["force (N)"] == "(0, 0)"

    def test_ranges_within_bounds(self):
        """Both guides together carry a load that is known: from the bound of one follows that of
        the other."""
        own = Session(slider_crank(), bounds=["-10 <= upper.force.y <= 25"])
        own.set({MOTOR: 0.8})
        contents = own.picture.contents
        shown = component_words(contents, 0, component(own, "upper", "force y"))
        assert shown == "not unique, from -10 to 25"
        places = [contents.reactions.layout.seconds[k] for k in (3, 4)]
        load = float(np.sum(np.asarray(contents.reactions.force)[0, 0, places, 1]))
        other = component_words(contents, 0, component(own, TRAP, "force y"))
        low, high = map(float, re.findall(r"-?\d+\.?\d*", other))
        assert (low, high) == pytest.approx((load - 25, load + 10), rel=1e-5)
        assert "Ranges are those within the bounds: " in head_html(own)
        bars = loads_of(contents, 0, Shown.FORCES, 1.0)
        assert (bars.bars.shape, bars.unbounded.shape) == ((2, 2, 3), (0, 2, 3))

    def test_sentences_and_looks(self, session):
        contents = session.picture.contents
        said = sentences_of(contents, 0)
        assert "redundancy p = 2, mobility 0" in said[0]
        assert "does not determine the reactions of <img" in said[1]
        assert said[1].endswith(", upper.")
        looks = dict(zip(contents.reactions.names, looks_of(contents, 0), strict=True))
        assert [looks[name] for name in GUIDES] == ["not unique"] * 2
        assert {looks[name] for name in "ABC"} == {"unique"}

    def test_doubt_is_seen(self, session):
        contents = session.picture.contents
        assert not contents.solvability.doubtful[0]
        marginal = eqx.tree_at(
            lambda x: x.near_threshold, contents.solvability, np.ones(1, dtype=bool)
        )
        doubtful = contents._replace(solvability=marginal)
        looks = dict(zip(contents.reactions.names, looks_of(doubtful, 0), strict=True))
        assert {looks[name] for name in "ABC"} == {"in doubt"}
        assert looks["upper"] == "not unique"
        assert len(sentences_of(doubtful, 0)) == len(sentences_of(contents, 0)) + 1
        # Arrows and numbers as well.
        sure, unsure = (loads_of(x, 0, Shown.FORCES, 1.0) for x in (contents, doubtful))
        assert len(sure.arrows) == len(unsure.doubtful) > 0
        assert len(unsure.arrows) == len(sure.doubtful) == 0
        rows = reaction_rows(doubtful, 0, 0)
        assert rows == [(x, f"{y} (in doubt)") for x, y in reaction_rows(contents, 0, 0)]
        shared = component(session, "upper", "force y")
        assert component_words(doubtful, 0, shared) == "not unique, unbounded"

    def test_what_is_in_doubt_is_not_said_to_be_unique(self, session):
        contents = session.picture.contents
        unique = contents._replace(joint_verdicts=np.ones_like(contents.joint_verdicts))
        assert "Every reaction is unique." in sentences_of(unique, 0)
        marginal = eqx.tree_at(
            lambda x: x.near_threshold, contents.solvability, np.ones(1, dtype=bool)
        )
        doubtful = unique._replace(solvability=marginal)
        assert "Every reaction is unique." not in sentences_of(doubtful, 0)

    def test_notes_on_ranges_are_shown(self, session):
        contents = session.picture.contents
        bands = contents.bands._replace(notes=("No forces are within <these> bounds.",))
        picture = session.picture._replace(contents=contents._replace(bands=bands))
        session._moment = session._moment._replace(picture=picture)
        assert "No forces are within &lt;these&gt; bounds." in head_html(session)

    def test_names_are_escaped(self, session):
        page = head_html(session) + table_html(session) + state_html(session)
        assert "<img" not in page
        assert "&lt;img" in page

    def test_a_motion_is_played_and_left(self, session, monkeypatch):
        session.set({MOTOR: 1.0})
        session.simulate(0.2)
        assert session.message == ""
        motion = session.motion
        assert motion is session.picture
        assert len(motion.times) == 101
        for state in (0, 57, 100):
            session.show(state)
            angle = RATE * motion.times[state]
            assert np.allclose(session.q, Positions.at(angle).q, rtol=0, atol=1e-8)
            assert session.values[MOTOR] == pytest.approx(angle, abs=1e-8)
        drawn = [loads_of(motion.contents, k, Shown.FORCES, 1.0) for k in range(101)]
        assert not np.isnan(drawn[57].arrows).any()
        # One scale for all states.
        assert len({own.longest for own in drawn}) == 1
        assert motion.largest[Shown.FORCES] == largest_of(motion.contents, Shown.FORCES)
        longest = [np.max(np.abs(own.arrows[:, 1] - own.arrows[:, 0])) for own in drawn]
        assert max(longest) == pytest.approx(0.2)
        assert np.ptp(longest) > 5e-4
        # Whoever reads meanwhile reads one state.
        monkeypatch.setattr(Session, "__setattr__", read_after_it)
        session.set({MOTOR: 0.7})
        assert np.allclose(session.q, Positions.at(0.7).q, rtol=0, atol=CLOSED)
        assert (session.picture is motion, session.motion is motion) == (False, True)
        session.set({LENGTH: 0.31})
        assert session.motion is None

    def test_a_motion_of_another_model_is_refused(self, session):
        system = jm.mechanisms.slider_crank().system()
        other = still(system, system.reference_q, jnp.zeros(9))
        with pytest.raises(ModelError, match="another model"):
            session.play(other)

    def test_a_motion_of_other_numbers_is_refused(self, session, monkeypatch):
        own = eqx.tree_at(lambda x: x.system, resting(session), session.model.system())
        other = eqx.tree_at(lambda x: x.system.gravity, own, own.system.gravity * 0.5)
        with pytest.raises(ModelError, match=r"^the trajectory belongs to a model with other nu"):
            session.play(other)
        taken: list[Any] = []
        monkeypatch.setattr(Session, "_take", lambda _, *own: taken.append(own))
        session.play(own)
        assert taken == [(own, "")]
        # Of the numbers that are set.
        session.set({LENGTH: 0.31})
        with pytest.raises(ModelError, match="other numbers"):
            session.play(own)

    def test_why_a_motion_ended_is_shown_with_it(self, session, monkeypatch):
        why = "it ended at < 0.1 s."
        own = resting(session)
        monkeypatch.setattr("jaxmbs.view._session._run", lambda *_: (own, why))
        session.simulate(1.0)
        assert "it ended at &lt; 0.1 s." in head_html(session)
        session.show(0)
        assert "it ended at &lt; 0.1 s." in head_html(session)
        session.set({MOTOR: 0.0})
        assert "it ended" not in head_html(session)

    @pytest.mark.thorough
    def test_what_verdicts_are_based_on_is_said_as_in_reports(self):
        """Compliances, and forces of rows that act one way only which are not unique."""
        own = Session(jm.mechanisms.get("elastic-parallelogram"))
        said = sentences_of(own.picture.contents, 0)
        assert any(x.startswith("With the compliances ") for x in said)
        assert set(said) >= set(compliance_words(own.picture.contents))
        load = planar.Body("load", mass=2.0, inertia=0.1, position=(0.0, -1.0))
        ropes = [
            planar.Rope(name, ("ground", "load"), points=((0.0, 0.0), (0.0, -1.0)))
            for name in ("left", "right")
        ]
        hung = Session(jm.Model("hung", 2, bodies=[load], joints=ropes))
        said = sentences_of(hung.picture.contents, 0)
        assert any(x.startswith("Held both ways here: left, ") for x in said)
        assert any("can exert their forces is not known where these are not" in x for x in said)

    def test_without_forces(self):
        """As the question that failed: with compliances, where there are any."""
        for name, elastic in (("elastic-parallelogram", True), ("door", False)):
            system = jm.mechanisms.get(name).system()
            assert _without_forces(system, system.reference_q).elastic is elastic

    def test_a_model_that_does_not_assemble(self):
        rod = planar.Body("rod", mass=1.0, inertia=0.1, position=(0.0, 0.0))
        joints = [
            planar.Distance(name, ("ground", "rod"), points=[(x, 0.0), (0.1, 0.0)], length=length)
            for name, x, length in (("left", -5.0, 1.0), ("right", 5.0, 1.0))
        ]
        with pytest.raises(AnalysisError, match=r"Still open: '(left|right)' by"):
            Session(jm.Model("torn", 2, bodies=[rod], joints=joints))


def resting(session: Session) -> Any:
    """A motion of one state."""
    return session.picture.contents.trajectory


def read_after_it(session: Session, name: str, value: Any) -> None:
    object.__setattr__(session, name, value)
    assert session.q.shape == (9,)
    assert session.values.keys() == session._begin.keys()


def ranged(session: Session, ranges: dict[str, tuple[float, float]]) -> Contents:
    """What is known of the force of the upper guide; it is not unique along so many axes."""
    contents = session.picture.contents
    low, high = np.array(contents.bands.low), np.array(contents.bands.high)
    verdicts, count = np.array(contents.verdicts), np.array(contents.spread.count)
    for axis, ends in ranges.items():
        k = component(session, "upper", f"force {axis}")
        low[0, k], high[0, k], verdicts[0, k] = *ends, 0
    own = contents.reactions.names.index("upper")
    count[0, contents.spread.constraints.index(own), 0] = len(ranges)
    return contents._replace(
        bands=Bands(low, high, ()),
        verdicts=verdicts,
        spread=contents.spread._replace(count=count),
    )


INF = float("inf")


class TestLoads:
    @pytest.mark.parametrize(
        ("ends", "bar", "line", "side"),
        [
            ((-INF, 0.0), None, None, -1),
            ((0.0, INF), None, None, 1),
            ((-INF, -5.0), None, -5.0, -1),
            ((5.0, INF), None, 5.0, 1),
            ((-5.0, INF), (-5.0, 0.0), -5.0, 1),
            ((-INF, 5.0), (0.0, 5.0), 5.0, -1),
        ],
    )
    def test_bounded_on_one_side(self, session, ends, bar, line, side):
        """Dashes on the other side alone, and something solid to the end that is known."""
        contents = ranged(session, {"y": ends})
        found = loads_of(contents, 0, Shown.FORCES, 2.0, largest=10.0)
        start, scale = np.array([CRANK + ROD, 0.05, 0.0]), 0.2 * 2.0 / 10.0
        moved = [own - start for own in found.unbounded if np.allclose(own[:, 0], start[0])]
        # (The other guide has dashes on both sides, from its own point.)
        dashes = np.array(moved[9:])[..., 1]
        begin = 0.0 if line is None or bar is not None else scale * line
        assert dashes.shape == (9, 2)
        assert np.allclose(np.sort(side * (dashes - begin), axis=None)[[0, -1]], [0.0, 0.2])
        bars, lines = ((own[..., 1] - start[1]) / scale for own in (found.bars, found.boxes))
        assert bars.shape == (int(bar is not None), 2)
        assert np.allclose(bars, 0.0 if bar is None else [bar])
        assert lines.shape == (int(line is not None), 2)
        assert np.allclose(lines, 0.0 if line is None else [[0.0, line]])

    def test_bounded_along_one_axis(self, session):
        """The edge of what is known, and dashes along the other axis alone."""
        contents = ranged(session, {"x": (2.0, 4.0), "y": (-INF, INF)})
        found = loads_of(contents, 0, Shown.FORCES, 2.0, largest=10.0)
        start, scale = np.array([CRANK + ROD, 0.05, 0.0]), 0.2 * 2.0 / 10.0
        (edge,) = found.boxes - start
        assert np.allclose(edge, scale * np.array([[2.0, 0.0, 0.0], [4.0, 0.0, 0.0]]))
        dashes = found.unbounded[9:] - start
        assert dashes.shape == (18, 2, 3)
        assert np.allclose(dashes[..., 0], scale * 2.0)
        assert np.allclose([dashes[..., 1].min(), dashes[..., 1].max()], [-0.2, 0.2])
        assert largest_of(contents, Shown.FORCES) == largest_of(
            session.picture.contents, Shown.FORCES
        )

    def test_the_scale_is_of_what_is_drawn(self, session):
        contents = session.picture.contents
        before = largest_of(contents, Shown.FORCES)
        values = np.array(contents.values)
        values[0, component(session, "upper", "force x")] = 1e6
        beside = contents._replace(values=values)
        # (Along y it is unbounded, so that dashes alone are drawn.)
        assert largest_of(beside, Shown.FORCES) == before
        bounded = ranged(session, {"y": (-1e6, INF)})
        assert largest_of(bounded, Shown.FORCES) == 1e6

    def test_arrows_are_forces(self, session):
        session.set({MOTOR: 0.8})
        contents = session.picture.contents
        found = loads_of(contents, 0, Shown.FORCES, 2.0)
        known = contents.values[0, [component(session, "B", f"force {x}") for x in "xy"]]
        pin = CRANK * np.array([np.cos(0.8), np.sin(0.8), 0.0])
        (own,) = [x for x in found.arrows if np.allclose(x[0], pin)]
        largest = float(found.longest.removesuffix(" N"))
        expected = 0.2 * 2.0 * np.array([*known, 0.0]) / largest
        assert np.allclose(own[1] - own[0], expected, rtol=1e-3)
        # Of the guides, which share a force across and no other one.
        assert found.unbounded.shape == (18, 2, 3)
        assert np.allclose(np.ptp(found.unbounded[..., 0].reshape(2, -1), axis=1), 0.0)
        assert loads_of(contents, 0, Shown.NOTHING, 2.0).arrows.shape == (0, 2, 3)

    def test_torques(self, session):
        found = loads_of(session.picture.contents, 0, Shown.TORQUES, 2.0)
        assert np.allclose(found.unbounded[..., :2].std(axis=1), 0.0)
        assert found.longest.endswith("N m")


def test_labels():
    looks = ["unique", "not unique", "not unique", "in doubt"]
    assert label_of([1, 0, 2, 1], looks, "ABCD") == "A; B, C: not unique"
    assert label_of([3], looks, "ABCD") == "D: in doubt"


@pytest.mark.parametrize("turn", [0.0, 0.3, 3.0, np.pi])
def test_quaternions(turn, rng):
    for axis in (*np.eye(3), *rng.normal(size=(5, 3))):
        rotation = Rotation.from_rotvec(turn * axis / np.linalg.norm(axis))
        ours, known = quaternion(rotation.as_matrix()), rotation.as_quat(scalar_first=True)
        assert min(np.abs(ours - known).max(), np.abs(ours + known).max()) < 1e-12


# ---------------------------------------------------------------------------------------------
# The thread that does it
# ---------------------------------------------------------------------------------------------


class Recorder:
    """In the place of a session."""

    def __init__(self) -> None:
        self.set_values: list[dict[str, float]] = []
        self.message, self.motion = "", None
        self.busy, self.go = threading.Event(), threading.Event()

    def set(self, values: dict[str, float]) -> None:
        self.busy.set()
        self.go.wait(10)
        if "wrong" in values:
            raise RuntimeError("no such thing")
        self.set_values.append(dict(values))


class TestWorker:
    def test_the_last_of_many_values_counts(self, capfd):
        recorder: Any = Recorder()
        refreshed = threading.Semaphore(0)
        worker = Worker(recorder, refreshed.release)
        worker.start()
        worker.set({"a": 0.0})
        assert recorder.busy.wait(10)
        for k in range(1, 6):
            worker.set({"a": float(k)})
        worker.set({"b": 2.0})
        assert worker.waiting == {"a", "b"}
        recorder.go.set()
        assert refreshed.acquire(timeout=10)
        assert refreshed.acquire(timeout=10)
        assert recorder.set_values == [{"a": 0.0}, {"a": 5.0, "b": 2.0}]
        worker.set({"wrong": 0.0})
        assert refreshed.acquire(timeout=10)
        assert recorder.message.endswith("no such thing")
        assert "RuntimeError" in capfd.readouterr().err
        worker.set({"a": 7.0})
        assert refreshed.acquire(timeout=10)
        assert recorder.set_values[-1] == {"a": 7.0}
        worker.end()


# ---------------------------------------------------------------------------------------------
# Address and command
# ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def viewer() -> Iterator[Viewer]:
    with jaxmbs.view.serve(slider_crank(), browser=False) as found:
        yield found


@pytest.fixture
def occupied() -> Iterator[int]:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        own.listen()
        yield own.getsockname()[1]


class TestPage:
    def test_what_a_new_picture_lacks_is_hidden(self, viewer):
        page, session = viewer._page, viewer._session
        picture = session.picture
        drawn = picture.scene
        fewer = drawn._replace(symbols=drawn.symbols[:-2], bodies=drawn.bodies[:-1])
        last = len(drawn.symbols) - 1
        gone = [f"/symbols/{last}", f"/symbols/{last - 1}", f"/bodies/{len(drawn.bodies) - 1}"]
        kept = [f"/symbols/{last - 2}", "/bodies/0"]
        moment = session._moment
        try:
            session._moment = moment._replace(picture=picture._replace(scene=fewer))
            page.refresh()
            assert [page._nodes[x].visible for x in gone + kept] == [False] * 3 + [True] * 2
        finally:
            session._moment = moment
            page.refresh()
        assert all(page._nodes[x].visible for x in gone + kept)


class TestAddress:
    def test_of_this_machine_alone(self, viewer):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", viewer.address)
        with urllib.request.urlopen(viewer.address) as page:
            assert b"<html" in page.read()
        assert viewer.values[MOTOR] == 0.0
        assert viewer.q.shape == (9,)

    def test_pages_of_other_addresses_are_refused(self, viewer):
        """A page of any site may try to speak to this machine."""
        place = viewer.address.replace("http", "ws")
        version = [Subprotocol(f"viser-v{viser.__version__}")]
        with pytest.raises(InvalidStatus, match="403"):
            connect(place, origin=Origin("http://elsewhere.example"), subprotocols=version)
        with connect(place, origin=Origin(viewer.address), subprotocols=version) as own:
            assert own.recv(timeout=10)

    def test_nothing_is_shared(self, viewer, monkeypatch):
        monkeypatch.setattr("viser._viser.ViserTunnel", None)
        assert viewer._server.request_share_url() is None

    def test_a_port_in_use_is_refused(self, occupied):
        with pytest.raises(ModelError, match=rf"^port {occupied} of 127.0.0.1 cannot be used"):
            jaxmbs.view.serve(slider_crank(), port=occupied, browser=False)

    def test_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "viser", None)
        with pytest.raises(ModelError, match=r"needs viser.*'jaxmbs\[view\]'"):
            free_port(None)


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["view", *arguments], catch_exceptions=False)


class TestCommand:
    @pytest.mark.parametrize(
        ("options", "says"),
        [
            (["--port", "70000"], "--port must be at least 1 and at most 65535"),
            (["--end", "-1"], "--end must be a time"),
            (["--end", "1", "--trajectory", "x.npz"], "a motion of its own"),
            (["--trajectory", "none.npz"], "cannot read"),
            (["--bound", "slider <> 3"], "--bound"),
        ],
    )
    def test_bad_input(self, options, says, monkeypatch):
        monkeypatch.setattr("jaxmbs.cli._load.load", lambda name: slider_crank())
        done = invoke("driven-slider-crank", "--no-open", *options)
        assert (done.exit_code, done.stdout) == (2, "")
        assert says in done.stderr

    def test_a_port_in_use(self, occupied):
        done = invoke("door", "--no-open", "--port", str(occupied))
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert f"port {occupied} of 127.0.0.1 cannot be used" in done.stderr

    def test_ctrl_c_and_what_is_printed(self, monkeypatch):
        """In this process, which has compiled what it needs."""
        port = free_port(None)
        opened: list[str] = []
        monkeypatch.setattr("webbrowser.open", opened.append)
        monkeypatch.setattr("jaxmbs.cli._load.load", lambda name: slider_crank())

        def interrupt() -> None:
            answers(port)
            while not opened:
                time.sleep(0.01)
            signal.raise_signal(signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        done = invoke("door", "--port", str(port), "--json")
        assert (done.exit_code, done.stderr) == (130, "jaxmbs: stopped.\n")
        address = f"http://127.0.0.1:{port}"
        assert json.loads(done.stdout) == {"model": "slider & crank", "address": address}
        assert opened == [address]
        # The port is free again.
        assert free_port(port) == port

    def test_a_motion_that_ends_early_is_said(self, monkeypatch):
        """And played as far as it goes."""
        own = SimpleNamespace(address="the address", wait=lambda: None)
        pages: list[Session] = []

        def open_page(session: Session, _: int) -> Any:
            pages.append(session)
            return nullcontext(own)

        def run(system: Any, q: Any, v: Any, _: float) -> Any:
            return still(system, q, v), "the run ended at 0.1 s."

        monkeypatch.setattr("jaxmbs.cli._view.open_page", open_page)
        monkeypatch.setattr("jaxmbs.cli._load.load", lambda name: slider_crank())
        monkeypatch.setattr("jaxmbs.view._session._run", run)
        done = invoke("door", "--no-open", "--end", "1")
        assert (done.exit_code, done.stderr) == (0, "jaxmbs: the run ended at 0.1 s.\n")
        assert "the address" in done.stdout
        assert pages[0].motion is pages[0].picture

    @pytest.mark.thorough
    def test_the_program(self, tmp_path):
        """As users call it, with a motion that was saved."""
        model, saved = slider_crank(), tmp_path / "motion.npz"
        system = model.system()
        start = system.reference_q, system.initial_v
        motion = jm.simulate(system, *jm.consistent_state(system, *start), 0.1, every=0.05)
        save_trajectory(motion, saved)
        (tmp_path / "crank.toml").write_text(write_model(model))
        run = "import jaxmbs_program; jaxmbs_program.main()"
        program = [sys.executable, "-c", run, "view", str(tmp_path / "crank.toml")]
        with subprocess.Popen(
            [*program, "--no-open", "--trajectory", str(saved)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert re.fullmatch(
                r"slider & crank: http://127\.0\.0\.1:\d+ \(Ctrl-C ends it\)\n", said
            )
            process.send_signal(signal.SIGINT)
            rest = process.communicate(timeout=60)
        assert (process.returncode, *rest) == (130, "", "jaxmbs: stopped.\n")

    @pytest.mark.thorough
    def test_a_model_that_does_not_assemble(self, tmp_path):
        path = tmp_path / "torn.toml"
        path.write_text(
            'schema = 1\nname = "torn"\ndimension = 2\n'
            '[[body]]\nname = "rod"\nmass = 1.0\ninertia = 0.1\nposition = [0.0, 0.0]\n'
            '[[joint]]\nname = "left"\ntype = "distance"\nbodies = ["ground", "rod"]\n'
            "points = [[-5.0, 0.0], [0.1, 0.0]]\nlength = 1.0\n"
            '[[joint]]\nname = "right"\ntype = "distance"\nbodies = ["ground", "rod"]\n'
            "points = [[5.0, 0.0], [0.1, 0.0]]\nlength = 1.0\n"
        )
        done = invoke(str(path), "--no-open")
        assert (done.exit_code, done.stdout) == (1, "")
        assert "did not close" in done.stderr
        assert "Still open: " in done.stderr


def answers(port: int) -> None:
    """Wait until somebody answers at the port."""
    for _ in range(1000):
        with socket.socket() as own:
            if own.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError


# ---------------------------------------------------------------------------------------------
# In a browser
# ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    driver = browser_or_skip()
    # The processor draws.
    driver.set_window_size(640, 640)
    yield driver
    driver.quit()


def opened(browser: Any, viewer: Viewer) -> Any:
    """The page as it is at first."""
    viewer._page.worker.do(viewer._page._start_again)
    browser.get_log("performance")
    browser.get(viewer.address)
    until(lambda: browser.find_elements(By.CSS_SELECTOR, "[data-q]"))
    return browser


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def shown(browser: Any) -> tuple[np.ndarray, dict[str, float]]:
    """The configuration and the values as the page tells them."""
    q, values = browser.execute_script(
        "return ['q', 'values'].map((x) => document.querySelector(`[data-${x}]`).textContent)"
    )
    return np.array(json.loads(q)), json.loads(values.replace("'", '"'))


ALERT = '[data-part="head"] [role="alert"]'


def drag(browser: Any, number: int, pixels: int) -> None:
    """The thumb of a slider, by hand."""
    thumb = browser.find_elements(By.CSS_SELECTOR, '[role="slider"]')[number]
    hand = ActionChains(browser, duration=50).click_and_hold(thumb)
    for _ in range(5):
        hand.move_by_offset(pixels // 5, 0)
    hand.release().perform()


class TestBrowser:
    def test_dragging_a_driver(self, browser, viewer):
        """What the page tells closes the mechanism, by its closed form."""
        page = opened(browser, viewer)
        before = shown(page)[1][MOTOR]
        drag(page, 0, 20)
        until(lambda: shown(page)[1][MOTOR] > before + 0.2)
        field = page.find_elements(By.CSS_SELECTOR, "input[inputmode]")[0]
        until(lambda: abs(float(field.get_attribute("value")) - shown(page)[1][MOTOR]) < 1e-9)
        q, values = shown(page)
        expected = Positions.at(values[MOTOR], values["parameters.crank"], values[LENGTH])
        assert np.max(np.abs(q - expected.q)) < CLOSED
        # Names are read as text.
        assert page.find_elements(By.CSS_SELECTOR, 'img[src="x"]') == []
        nobody_else(page, viewer)

    @pytest.mark.thorough
    def test_two_browsers_show_the_same(self, browser, viewer):
        first, second = opened(browser, viewer), browser_or_skip()
        second.set_window_size(640, 640)
        try:
            opened(second, viewer)
            drag(first, 0, 15)
            until(lambda: viewer.values[MOTOR] == shown(first)[1][MOTOR])
            until(lambda: np.array_equal(shown(first)[0], shown(second)[0]))
            drag(second, 0, -30)
            until(lambda: viewer.values[MOTOR] == shown(second)[1][MOTOR])
            until(lambda: np.array_equal(shown(first)[0], shown(second)[0]))
            q, values = shown(first)
            assert np.max(np.abs(q - Positions.at(values[MOTOR]).q)) < CLOSED
        finally:
            second.quit()

    @pytest.mark.thorough
    def test_what_does_not_close_is_said(self, browser, viewer):
        page = opened(browser, viewer)
        type_in(page, 1, "0.15")
        until(lambda: viewer.values["parameters.crank"] == 0.15)
        type_in(page, 0, "1.5")
        until(lambda: viewer.values[MOTOR] == 1.5)
        # Shorter than the crank is high.
        viewer._page.worker.set({LENGTH: 0.1})
        until(lambda: page.find_elements(By.CSS_SELECTOR, ALERT))
        said = page.find_element(By.CSS_SELECTOR, ALERT).text
        assert "did not close" in said
        assert "'upper' by" in said
        assert shown(page)[1][LENGTH] == ROD
        click(page, "Reset")
        until(lambda: shown(page)[1][MOTOR] == 0.0)
        assert page.find_elements(By.CSS_SELECTOR, ALERT) == []

    @pytest.mark.thorough
    def test_a_motion_is_played(self, browser, viewer):
        page = opened(browser, viewer)
        click(page, "Simulate")
        until(lambda: [x for x in page.find_elements(By.TAG_NAME, "button") if x.text == "Play"])
        assert np.max(np.abs(shown(page)[0] - Positions.at(0.0).q)) < 1e-8
        click(page, "Play")
        until(lambda: abs(shown(page)[1][MOTOR] - RATE) < 1e-8)
        until(lambda: [x for x in page.find_elements(By.TAG_NAME, "button") if x.text == "Play"])
        assert np.max(np.abs(shown(page)[0] - Positions.at(RATE).q)) < 1e-7
        # Away from it, and the picture is one of rest again.
        drag(page, 0, -10)
        until(lambda: abs(shown(page)[1][MOTOR] - RATE) > 0.05)
        q, values = shown(page)
        assert np.max(np.abs(q - Positions.at(values[MOTOR]).q)) < CLOSED
        nobody_else(page, viewer)


def click(browser: Any, text: str) -> None:
    (own,) = [x for x in browser.find_elements(By.TAG_NAME, "button") if x.text == text]
    own.click()


def type_in(browser: Any, number: int, text: str) -> None:
    """A number beside a slider."""
    field = browser.find_elements(By.CSS_SELECTOR, "input[inputmode]")[number]
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(text, Keys.ENTER)


def nobody_else(browser: Any, viewer: Viewer) -> None:
    """Everything that the page asked for came from its own address."""
    logged = [json.loads(x["message"])["message"] for x in browser.get_log("performance")]
    asked = {
        own["params"]["request"]["url"]
        for own in logged
        if own["method"] == "Network.requestWillBeSent"
        and not own["params"]["documentURL"].startswith("chrome")
    }
    asked |= {own["params"]["url"] for own in logged if own["method"] == "Network.webSocketCreated"}
    place = viewer.address.removeprefix("http")
    assert f"{viewer.address}/" in asked
    own = (f"http{place}/", f"ws{place}", f"blob:http{place}/", "data:")
    assert [url for url in asked if not url.startswith(own)] == []
