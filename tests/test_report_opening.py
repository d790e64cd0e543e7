"""What a report says first: trust, drivers and motors, peak loads, and sharing across a plane."""

import itertools
import re
from html.parser import HTMLParser
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import trimesh

import jaxmbs as jm
import jaxmbs.report
from jaxmbs import forces, motions, planar, spatial
from jaxmbs._reactions import Reactions
from jaxmbs._verdict import NOT_UNIQUE
from jaxmbs.report._contents import contents_of, sharing_plane
from jaxmbs.report._opening import counted_turns, drives_of, peak_of, peak_table, trust_of
from jaxmbs.report._scene_data import _quaternions, lightened, MOST_TRIANGLES
from jaxmbs.report._states import still


STATES = 11
END = 0.5
LOW, HIGH = -300.0, 200.0


def model() -> jm.Model:
    """A driven four-bar whose frame hinges on two pins: of the pins along the line between them
    only the sum is unique."""
    sin, cos = np.sin(1.1), np.cos(1.1)
    crank, end = 0.3, np.array([0.3 * cos, 0.3 * sin])
    return jm.Model(
        "crank on a frame",
        2,
        bodies=[
            planar.Body("frame", mass=8.0, inertia=0.5, position=(0.0, 0.0)),
            planar.Body("crank", mass=2.0, inertia=0.02, position=0.5 * end, angle=1.1),
            planar.Body("bob", mass=1.0, inertia=0.01, position=end, angle=0.0),
        ],
        joints=[
            planar.Revolute("left", ("ground", "frame"), (-0.5, 0.0)),
            planar.Revolute("right", ("ground", "frame"), (0.5, 0.0)),
            planar.Revolute("hinge", ("frame", "crank"), (0.0, 0.0)),
            planar.Revolute("tip", ("crank", "bob"), crank * np.array([cos, sin])),
        ],
        drivers=[
            jm.Driver("drive", "hinge", "rotation", motions.Step(times=[0.0, END], values=[0, 2.0]))
        ],
        forces=[
            forces.Motor(
                "fan",
                "tip",
                actuator=forces.IdealActuator(),
                command=motions.Linear(rate=0.4),
            )
        ],
        gravity=(0.0, -9.81),
    )


@pytest.fixture(scope="module")
def trajectory() -> jm.results.Trajectory:
    system = model().system()
    times = jnp.linspace(0.0, END, STATES)
    return jm.simulate(system, system.reference_q, system.initial_v, END, times=times)


@pytest.fixture(scope="module")
def contents(trajectory):
    return contents_of(trajectory, [f"{LOW} <= left.force.x <= {HIGH}"])


class TestPeaks:
    def test_they_are_the_largest_of_the_reactions(self, trajectory, contents):
        reactions, times = trajectory.reactions(), np.asarray(trajectory.times)
        rows = {row[0]: row for row in peak_table(contents).rows}
        for name in ("hinge", "tip", "drive"):
            wrench = reactions.wrench(name)
            sizes = {
                "force": np.hypot(*np.asarray(wrench.force).T),
                "torque": np.abs(np.asarray(wrench.torque)),
            }
            for what, cells in (("force", rows[name][2:4]), ("torque", rows[name][4:6])):
                peak = peak_of(contents, reactions.names.index(name), what)
                assert peak is not None
                largest = sizes[what].max()
                if largest < 1e-9:
                    assert (peak.size, *cells) == (0.0, "0", "")
                    continue
                assert peak.size == largest
                assert peak.state == np.argmax(sizes[what])
                assert float(cells[0]) == pytest.approx(largest, rel=1e-5)
                assert float(cells[1]) == pytest.approx(times[peak.state], rel=1e-5)

    def test_the_largest_comes_first_and_what_is_not_unique_last(self, contents):
        names = [row[0] for row in peak_table(contents).rows]
        assert {*names[-2:]} == {"left", "right"}
        sizes = [float(row[2]) for row in peak_table(contents).rows[:-2]]
        assert sizes == sorted(sizes, reverse=True)

    def test_what_is_not_unique_has_the_range_of_its_size(self, trajectory, contents):
        """|F| lies between the sizes of its components' ranges."""
        reactions = trajectory.reactions()
        left, right = (np.asarray(reactions.wrench(x).force) for x in ("left", "right"))
        load = left[:, 0] + right[:, 0]
        rows = {row[0]: row for row in peak_table(contents).rows}
        ends = {
            "left": (np.full(STATES, LOW), np.full(STATES, HIGH), left[:, 1]),
            "right": (load - HIGH, load - LOW, right[:, 1]),
        }
        for name, (low, high, across) in ends.items():
            nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(abs(low), abs(high)))
            least = np.hypot(nearest, across).max()
            most = np.hypot(np.maximum(abs(low), abs(high)), across).max()
            assert rows[name][2].startswith("not unique (x), from ")
            told = [float(x) for x in re.findall(r"\d+\.?\d*", rows[name][2])]
            assert told == pytest.approx([least, most], rel=1e-5)
            assert rows[name][3] == ""

    def test_without_bounds_there_is_no_number(self, trajectory):
        rows = {row[0]: row for row in peak_table(contents_of(trajectory)).rows}
        for name in ("left", "right"):
            across = np.abs(np.asarray(trajectory.reactions().wrench(name).force)[:, 1]).max()
            assert rows[name][2:4] == (f"not unique (x); y alone: {across:.6g}", "")


class TestDrives:
    def test_of_a_driver(self, trajectory, contents):
        drive = next(x for x in drives_of(contents) if x.name == "drive")
        assert (drive.kind, drive.load_unit, drive.travel_unit) == ("driver", "N m", "deg")
        assert np.array_equal(drive.load, np.asarray(trajectory.reactions().driving("drive")))
        assert drive.travel is not None
        angle = np.degrees(np.asarray(trajectory.q)[:, 5] - 1.1)
        assert np.allclose(drive.travel, angle, rtol=0, atol=1e-6)
        assert drive.travel[-1] == pytest.approx(np.degrees(2.0), rel=1e-9)

    def test_of_a_motor(self, trajectory, contents):
        drive = next(x for x in drives_of(contents) if x.name == "fan")
        times, q = np.asarray(trajectory.times), np.asarray(trajectory.q)
        assert np.allclose(drive.load, 0.4 * times, rtol=0, atol=1e-12)
        assert drive.travel is not None
        turned = q[:, 8] - q[:, 5] + 1.1
        assert np.allclose(drive.travel, np.degrees(turned), rtol=0, atol=1e-9)

    def test_turns_are_counted(self):
        """x = 8 sin 3 t + 5 t, of which only the remainder of full turns is known."""
        t = np.linspace(0.0, 4.0, 41)
        angle = 8.0 * np.sin(3.0 * t) + 5.0 * t
        rate, slope = 24.0 * np.cos(3.0 * t) + 5.0, -72.0 * np.sin(3.0 * t)
        known = np.arctan2(np.sin(angle), np.cos(angle))
        assert np.max(np.abs(np.diff(known))) > 3.0
        assert np.allclose(counted_turns(known, t, rate, slope), angle, rtol=0, atol=1e-12)


class TestTrust:
    def test_who_can_be_trusted(self, contents):
        told = trust_of(contents)
        assert told.sentences[0] == "Trust hinge, tip, drive: the reactions are unique."
        assert "does not determine the reactions of left, right:" in told.sentences[1]
        assert told.sentences[2] == "Of each only force x is not unique."
        assert told.lines == ()

    def test_nothing_shared(self):
        system = jm.mechanisms.get("slider-crank").system()
        told = trust_of(contents_of(still(system, system.reference_q, system.initial_v)))
        assert told.sentences == (
            "All forces and torques can be trusted: every reaction is unique.",
        )


def planar_in_space(normal: np.ndarray) -> jm.Model:
    """A four-bar of spatial hinges in the plane of that normal."""
    normal = normal / np.linalg.norm(normal)
    first = np.cross(normal, [0.3, -0.2, 0.9])
    first /= np.linalg.norm(first)
    second = np.cross(normal, first)

    def at(x: float, y: float) -> np.ndarray:
        return 0.4 * normal + x * first + y * second

    corners = [at(0, 0), at(0.2, 0.5), at(1.1, 0.8), at(1.3, 0.0)]
    bodies = [
        spatial.Body(f"bar{k}", mass=1.0 + k, inertia=(0.1, 0.1, 0.1), position=0.5 * (p + q))
        for k, (p, q) in enumerate(itertools.pairwise(corners))
    ]
    chain = ("ground", "bar0", "bar1", "bar2", "ground")
    joints = [
        spatial.Revolute(f"J{k}", (chain[k], chain[k + 1]), at=corner, axis=normal)
        for k, corner in enumerate(corners)
    ]
    return jm.Model("four-bar", 3, bodies=bodies, joints=joints, gravity=(0.0, 0.0, -9.81))


@pytest.fixture(scope="module")
def tilted():
    normal = np.array([0.36, 0.48, 0.8])
    system = planar_in_space(normal).system()
    return normal, contents_of(still(system, system.reference_q, system.initial_v))


class TestAcrossThePlane:
    def test_of_a_four_bar(self, tilted):
        normal, found = tilted
        assert found.plane is not None
        assert np.allclose(found.plane.normal, normal, atol=1e-9)
        told = trust_of(found).sentences[-1]
        assert told == (
            "3 redundant rows: all sharing is across the plane normal to (0.36, 0.48, 0.8), of "
            "forces along (0.36, 0.48, 0.8) and torques about axes in the plane; in-plane forces, "
            "and torques about (0.36, 0.48, 0.8), are unique."
        )

    def test_in_plane_forces_are_unique_indeed(self, tilted):
        """All multipliers lambda + N z that C^T N = 0 allows, by NumPy's SVD: forces of hinges are
        their first three rows, in world axes."""
        normal, found = tilted
        system = found.trajectory.system
        state = system.reference_q, system.initial_v, 0.0
        matrix = np.asarray(system.constraint_matrix(*state))
        left, values, _ = np.linalg.svd(matrix)
        null = left[:, np.sum(values > 1e-9 * values[0]) :]
        assert null.shape[1] == 3
        structure = system.structure
        change = np.stack([null[c.start : c.start + 3] for c in structure.constraints])
        across = np.eye(3) - np.outer(normal, normal)
        assert np.max(np.abs(across @ change)) < 1e-9
        assert np.max(np.abs(normal @ change)) > 0.1

    def test_not_so_of_a_door(self):
        system = jm.mechanisms.get("door").system()
        found = contents_of(still(system, system.reference_q, system.initial_v))
        assert found.plane is None
        assert "across the plane" not in " ".join(trust_of(found).sentences)

    def test_not_so_where_one_hinge_is_askew(self):
        """Two doors with different axes share loads in planes of their own."""
        changes = np.zeros((2, 2, 2, 3, 3))
        changes[:, 0, 0] = np.diag([0.0, 0.0, 1.0])
        assert _plane(changes) == ([0.0, 0.0, 1.0], True, 0)
        changes[1, 1, 0] = np.diag([0.0, 1e-6, 0.0])
        assert _plane(changes) is None

    def test_torques_alone(self):
        changes = np.zeros((1, 2, 2, 3, 3))
        changes[:, 0, 1] = np.diag([2.0, 3.0, 0.0])
        assert _plane(changes) == ([0.0, 0.0, 1.0], False, 2)
        changes[:, 1, 1] = np.diag([0.0, 0.0, 1.0])
        assert _plane(changes) is None


def _plane(changes: np.ndarray) -> tuple[list[float], bool, int] | None:
    """Of two joints of which nothing is unique."""
    system = jm.mechanisms.get("door").system()
    reactions: Any = jm.reactions(system, system.reference_q)
    batch = len(changes)
    many: Any = _Stub(reactions, batch)
    found = sharing_plane(many, changes, 1.0)
    return None if found is None else (found.normal.round(12).tolist(), *found[1:])


class _Stub:
    """Reactions of a door at several states."""

    def __init__(self, own: Reactions, states: int):
        self.layout = own.layout
        self.force = np.broadcast_to(np.asarray(own.force), (states, *own.force.shape))
        self.reaction_unique = self
        self._numbers = np.full((states, len(own.names)), NOT_UNIQUE)

    def numbers(self) -> np.ndarray:
        return self._numbers


class _Order(HTMLParser):
    """Identities of a page's elements, in their order."""

    def __init__(self, text: str):
        HTMLParser.__init__(self)
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for key, value in attrs if key == "id" and value]


@pytest.fixture(scope="module")
def text(trajectory, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("opening") / "page.html"
    jaxmbs.report.write(trajectory, path, title="crank")
    whole = path.read_text(encoding="utf-8")
    return re.sub(r"<script.*?</script>", "", whole, flags=re.DOTALL)


class TestPage:
    def test_the_order_of_what_is_asked(self, text):
        wanted = ["mechanism", "scene", "drives-title", "peaks-title", "curves-title", "verdicts"]
        places = [_Order(text).ids.index(own) for own in wanted]
        assert places == sorted(places)
        assert text.index("Trust hinge, tip, drive") < text.index('id="scene"')

    def test_no_number_of_what_is_not_unique(self, trajectory, text):
        """Those of the program's own choice among many are nowhere in the page."""
        reactions = trajectory.reactions()
        for name in ("left", "right"):
            own = np.asarray(reactions.wrench(name).force)
            # (At rest it is rounding, which is written as 0.)
            some = own[np.abs(own[:, 0]) > 1e-3]
            assert len(some) >= 9
            for number in [*np.abs(some[:, 0]), *np.hypot(*some.T)]:
                assert f"{number:.6g}" not in text


def test_quaternions_of_rotations():
    """Against the formula that a quaternion turns a vector by, also at half turns."""
    quaternions = np.random.default_rng(1).normal(size=(50, 4))
    quaternions[:3] = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0.6, 0.8, 0]]
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    x, y, z, w = quaternions.T
    rotation = np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], -1),
            np.stack([2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)], -1),
            np.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], -1),
        ],
        axis=-2,
    )
    found = _quaternions(rotation)
    assert np.allclose(np.abs(np.sum(found * quaternions, axis=1)), 1.0, atol=1e-12)


def test_fine_surfaces_are_replaced(contents):
    """A ball of very many triangles becomes its box, and one of few stays."""
    fine = trimesh.creation.icosphere(subdivisions=7, radius=0.1)
    body = contents.scene.bodies[0]
    solid = body.solids[0]._replace(
        vertices=np.asarray(fine.vertices), faces=np.asarray(fine.faces)
    )
    assert len(fine.faces) > MOST_TRIANGLES
    drawn = contents.scene._replace(bodies=(body._replace(solids=(*body.solids, solid)),))
    found, count = lightened(drawn)
    assert count == 1
    assert found.bodies[0].solids[:-1] == body.solids
    replaced = found.bodies[0].solids[-1]
    assert len(replaced.faces) == 12
    assert np.allclose(np.ptp(replaced.vertices, axis=0), 0.2, atol=1e-3)
    assert lightened(contents.scene) == (contents.scene, 0)
