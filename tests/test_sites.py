"""Bodies that are held at several sites: nodes of elastic bodies and frames of bodies in
coordinates of their own. What joints exert there, for every reader of it, by virtual work, by point
masses and by the same mechanism held by other names."""

import csv
import functools
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from modal_bodies import Cloud, GRAVITY, random_cloud

import jaxmbs as jm
from jaxmbs import bounds, design, forces, generalized, motions, spatial
from jaxmbs._reactions import reactions_of_multipliers
from jaxmbs.plot import draw_reactions


CLOUD = random_cloud(modes=3, count=8)
# Joints without a point stand at the origin, and so does this node.
CLOUD.nodes["A"] = (np.zeros(3), *CLOUD.nodes["A"][1:])
AXIS, OTHER = np.array([0.36, 0.48, 0.8]), np.array([0.8, -0.6, 0.0])
AT = {name: node[0] for name, node in CLOUD.nodes.items()}

# One of each kind, between any two sites; all but the first in the thorough run alone.
KINDS: dict[str, Any] = {
    "revolute": lambda n, b, p: spatial.Revolute(n, b, p, axis=AXIS),
    "distance": lambda n, b, p: spatial.Distance(n, b, points=(p, p + np.array([0.3, 0.2, 0.5]))),
    "perpendicular axes": lambda n, b, p: spatial.PerpendicularAxes(n, b, axes=(AXIS, OTHER)),
    "screw": lambda n, b, p: spatial.Screw(n, b, p, axis=AXIS, pitch=0.3),
    "fixed": spatial.Fixed,
    "spherical": spatial.Spherical,
    "universal": lambda n, b, p: spatial.Universal(n, b, p, axes=(AXIS, OTHER)),
    "cylindrical": lambda n, b, p: spatial.Cylindrical(n, b, p, axis=AXIS),
    "translational": lambda n, b, p: spatial.Translational(n, b, p, axis=AXIS),
    "planar": lambda n, b, p: spatial.Planar(n, b, p, axis=AXIS),
    "point on line": lambda n, b, p: spatial.PointOnLine(n, b, p, axis=AXIS),
    "point on plane": lambda n, b, p: spatial.PointOnPlane(n, b, p, axis=AXIS),
    "parallel axes": lambda n, b, p: spatial.ParallelAxes(n, b, axes=(AXIS, AXIS)),
}
PAIRS = (
    ("ground", "bar.A"),
    ("bar.B", "rod"),
    ("bar.A", "bar.B"),
    ("bar", "bar.B"),
    ("arm.tip", "bar.A"),
    ("arm.base", "arm.tip"),
    ("arm.tip", "ground"),
)
CHOICES = [
    tuple(KINDS)[:1],
    *(pytest.param(tuple(KINDS)[k : k + 3], marks=pytest.mark.thorough) for k in (1, 4, 7, 10)),
]


def about_x(angle):
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def base(q):
    return generalized.SpatialFrame(jnp.array([0.2, 0.1 * q[1], 0.0]), about_x(q[0]))


def tip(q):
    turn = about_x(q[0]) @ about_x(0.3 * q[1]).T[:, ::-1][::-1]
    return generalized.SpatialFrame(turn @ jnp.array([0.1, 0.7 + q[1], 0.2 * q[2]]), turn)


def arm():
    return generalized.Body(
        "arm",
        ("turn", "slide", "bend"),
        mass_matrix=np.diag([0.4, 2.0, 1.5]),
        frames={"base": base, "tip": tip},
        start=(0.3, 0.2, -0.4),
        lengths=("slide", "bend"),
    )


def bar(cloud: Cloud = CLOUD, **keys: Any):
    keys = {"position": (0.0, 0.0, 0.0)} | keys
    return spatial.ModalBody("bar", cloud.reduced(), **keys)


def rod():
    return spatial.Body("rod", mass=1.3, inertia=(0.2, 0.3, 0.25), position=AT["B"] + 0.4)


class Table(NamedTuple):
    """All joints of some kinds on all pairs, far from closed, with random multipliers."""

    system: jm.MultibodySystem
    q: np.ndarray
    report: jm.results.Reactions
    jacobians: dict[tuple[str, int], np.ndarray]
    points: dict[tuple[str, int], np.ndarray]


@functools.cache
def table_of(kinds: tuple[str, ...]) -> Table:
    joints = [
        KINDS[kind](f"{kind} {k}", pair, AT["A"] if pair[0] == "bar" else AT["B"])
        for kind in kinds
        for k, pair in enumerate(PAIRS)
    ]
    drivers = [
        jm.Driver(
            f"motor {k}",
            joint=f"{kinds[0]} {k}",
            coordinate="rotation",
            motion=motions.Linear(offset=0.0, rate=1.0),
        )
        for k in range(len(PAIRS))
        if "rotation" in joints[k].coordinates()
    ]
    system = jm.MultibodySystem([bar(), rod(), arm()], joints, drivers)
    rng = np.random.default_rng(5)
    step = 0.3 * rng.normal(size=system.structure.nv)
    q = system.retract(system.reference_q, jnp.asarray(step))
    multipliers = jnp.asarray(rng.normal(size=len(system.structure.rows)))
    report = reactions_of_multipliers(system, q, jnp.zeros(system.structure.nv), 0.0, multipliers)
    return Table(system, np.asarray(q), report, *_moves(system, q))


def _moves(system, q, size=1e-4):
    """By how much each velocity moves and turns (6, nv) each joint's markers, by differences."""

    @jax.jit
    def frames(step):
        found = system.marker_frames(system.retract(q, step))
        return {n: [(f.origin, f.rotation) for f in own] for n, own in found.items()}

    here = frames(jnp.zeros(system.structure.nv))
    moves = {
        (n, k): np.zeros((6, system.structure.nv)) for n, own in here.items() for k in range(2)
    }
    weights = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
    for c, along in enumerate(np.eye(system.structure.nv)):
        for times, weight in weights.items():
            ahead, behind = (frames(jnp.asarray(s * times * size * along)) for s in (1, -1))
            for name, k in moves:
                one, two, own = (np.asarray(x[name][k][1]) for x in (ahead, behind, here))
                shift = np.asarray(ahead[name][k][0] - behind[name][k][0])
                skew = (one - two) @ own.T
                turn = np.array([skew[2, 1], skew[0, 2], skew[1, 0]])
                moves[name, k][:, c] += weight / size * np.concatenate([shift, turn])
    points = {(n, k): np.asarray(here[n][k][0]) for n, k in moves}
    return moves, points


def pair_of(name: str) -> tuple[str, ...]:
    """The sites of a joint or driver."""
    return PAIRS[int(name.split(" ")[-1])]


@pytest.mark.parametrize("kinds", CHOICES, ids=lambda kinds: kinds[0])
class TestWrenches:
    @pytest.mark.thorough
    def test_their_virtual_work_is_that_of_the_generalized_reaction(self, kinds):
        """On every velocity, those of modes among them: -C_X^T lambda_X is what the wrenches at the
        markers do."""
        table = table_of(kinds)
        report = table.report
        for name in report.names:
            work = np.zeros(table.system.structure.nv)
            for k, site in enumerate(pair_of(name)):
                if site == "ground":
                    continue
                w = report.on(site).wrench(name)
                force, point = np.asarray(w.force), np.asarray(w.point)
                np.testing.assert_allclose(point, table.points[name, k], atol=1e-12)
                work += table.jacobians[name, k].T @ np.concatenate([force, np.asarray(w.torque)])
            expected = -np.asarray(report.generalized(name))
            np.testing.assert_allclose(work, expected, rtol=0, atol=1e-8, err_msg=name)
            assert np.linalg.norm(expected) > 1e-3

    def test_forces_on_both_sites_are_opposite(self, kinds):
        report = table_of(kinds).report
        for name in report.names:
            forces = [np.asarray(report.on(s).wrench(name).force) for s in pair_of(name)]
            np.testing.assert_allclose(forces[0], -forces[1], rtol=0, atol=1e-9, err_msg=name)

    def test_a_body_is_asked_for_by_its_own_name_too(self, kinds):
        report = table_of(kinds).report
        assert report.on("bar").names == tuple(
            n for n in report.names if any(s.startswith("bar") for s in pair_of(n))
        )
        for name in report.on("bar").names:
            sites = [s for s in pair_of(name) if s.startswith("bar")]
            if len(sites) == 1:
                one, two = report.on("bar").wrench(name), report.on(sites[0]).wrench(name)
                np.testing.assert_array_equal(one.force, two.force)
                np.testing.assert_array_equal(one.torque, two.torque)
            elif "bar" not in sites:
                with pytest.raises(ValueError, match=r"several of its frames; ask .*bar\.B"):
                    report.on("bar").wrench(name)
        assert len(str(report.on("bar")).splitlines()) > len(report.on("bar").names)


# ---------------------------------------------------------------------------------------------
# The same mechanism, held by other names
# ---------------------------------------------------------------------------------------------


def hung(site: str, end: str) -> jm.Model:
    """The bar on two hinges at one node, which share a load, one of them driven; a rod hangs at its
    other node. By names of nodes or by that of the body."""
    joints = [
        spatial.Revolute("left", ("ground", site), AT["A"], axis=AXIS),
        spatial.Revolute("right", ("ground", site), AT["A"], axis=AXIS),
        spatial.Spherical("pin", (end, "rod"), AT["B"]),
    ]
    motor = jm.Driver("motor", "left", "rotation", motions.Linear(rate=1.0))
    return jm.Model(
        "hung",
        3,
        bodies=[bar(velocity=np.zeros(3), angular_velocity=AXIS), rod()],
        joints=joints,
        drivers=[motor],
        forces=[
            forces.Applied("push", end, at=AT["B"], force=(1.0, -2.0, 3.0), torque=(0.0, 1.0, 0.0))
        ],
        gravity=GRAVITY,
    )


@functools.cache
def both() -> tuple[jm.results.Trajectory, jm.results.Trajectory]:
    from jaxmbs.report._states import still

    models = hung("bar.A", "bar.B"), hung("bar", "bar")
    made = [model.system() for model in models]
    one, two = (still(s, s.reference_q, s.initial_v, assemble=True) for s in made)
    return one, two


def assert_same(one, two):
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-9, atol=1e-9)


class TestReaders:
    """Whatever reads wrenches reads the same of both."""

    @pytest.mark.thorough
    def test_reactions_and_verdicts(self):
        one, two = (x.reactions() for x in both())
        assert_same(one.force, two.force)
        assert_same(one.torque, two.torque)
        assert_same(one.force_unique.numbers(), two.force_unique.numbers())
        assert_same(one.torque_unique.numbers(), two.torque_unique.numbers())
        assert np.linalg.norm(one.wrench("pin").force) > 1
        # The driver's torque, and what both hinges carry, stays one.
        assert bool(one.wrench("pin").determined[0])
        assert not bool(one.wrench("left").determined[0])

    def test_the_bar_is_moved_by_what_acts_on_it(self):
        """Newton's and Euler's laws of its point masses, from all wrenches on it."""
        run = both()[0]
        q, v, a = (np.asarray(x)[0] for x in (run.q, run.v, run.acceleration))
        own = slice(0, 6 + 3)
        places, moves = CLOUD.places(q[:10]), CLOUD.moves(q[:10])
        speeds = CLOUD.accelerations(q[:10], v[own]) + moves @ a[own]
        report = run.reactions().on("bar").state(0)
        force = CLOUD.masses.sum() * GRAVITY + np.array([1.0, -2.0, 3.0])
        end = np.asarray(report.wrench("pin").point)
        moment = np.cross(CLOUD.masses @ places, GRAVITY) + np.array([0.0, 1.0, 0.0])
        moment = moment + np.cross(end, [1.0, -2.0, 3.0])
        assert report.names == ("left", "right", "pin", "motor")
        for name in report.names:
            w = report.wrench(name)
            force = force + np.asarray(w.force)
            moment = moment + np.asarray(w.torque) + np.cross(w.point, w.force)
        np.testing.assert_allclose(force, CLOUD.masses @ speeds, rtol=0, atol=1e-6)
        expected = CLOUD.masses @ np.cross(places, speeds)
        np.testing.assert_allclose(moment, expected, rtol=0, atol=1e-6)

    @pytest.mark.thorough
    def test_ranges(self):
        asked = [bounds.FrictionCone("pin", 5.0, (0.0, 0.0, 1.0), body="bar")]
        found = [jm.ranges_along(x) for x in both()]
        assert_same((found[0].low, found[0].high), (found[1].low, found[1].high))
        cones = [jm.ranges_along(x, bounds=asked) for x in both()]
        assert_same(cones[0].feasible, cones[1].feasible)
        with pytest.raises(ValueError, match=r"it may be that on bar\.B, rod"):
            jm.ranges_along(both()[0], bounds=[bounds.FrictionCone("pin", 1, (0, 0, 1), body="x")])

    @pytest.mark.thorough
    @pytest.mark.parametrize("quantity", [design.Force, design.Torque])
    def test_objectives(self, quantity):
        for joints in ("pin", ("left", "right"), "motor"):
            one, two = (np.asarray(quantity(joints, body="bar")(x)) for x in both())
            assert_same(one, two)
            named = quantity(joints, body="bar.B" if joints == "pin" else "bar.A")
            assert_same(named(both()[0]), one)

    def test_verdicts_on_a_body(self):
        one, two = (jm.analyze(x.system, x.q[0], x.v[0]) for x in both())
        for name, site in (("pin", "bar.B"), ("left", "bar.A"), ("motor", "bar.A")):
            verdict = one.on_body(name, site)
            assert_same(verdict.numbers(), one.on_body(name, "bar").numbers())
            assert_same(verdict.numbers(), two.on_body(name, "bar").numbers())
        assert np.asarray(one.on_body("pin", "bar.B").unique).all()
        assert not np.asarray(one.on_body("left", "bar.A").unique).all()
        with pytest.raises(
            ValueError, match=r"'pin' does not act at 'bar\.A', but on bar\.B and rod"
        ):
            one.on_body("pin", "bar.A")
        # By the name of the body it acts at the body's own frame.
        with pytest.raises(ValueError, match=r"'pin' does not act at 'bar\.B', but on bar and rod"):
            two.on_body("pin", "bar.B")
        with pytest.raises(
            ValueError, match=r"'left' does not act on a moving body 'rod'; it .*bar"
        ):
            one.on_body("left", "rod")

    @pytest.mark.parametrize("kind", ["npz", "nc"])
    def test_files_keep_what_acts_at_sites(self, kind, tmp_path):
        run = both()[0]
        path = tmp_path / f"run.{kind}"
        jm.io.save_trajectory(run, path)
        again = jm.io.load_trajectory(path, run.system).reactions()
        for site in ("bar.A", "bar.B", "bar", "rod"):
            here, there = run.reactions().on(site), again.on(site)
            assert here.names == there.names
            for name in here.names:
                assert_same(here.wrench(name).force, there.wrench(name).force)
                assert_same(here.wrench(name).torque, there.wrench(name).torque)

    def test_pictures(self):
        curves = []
        for run in both():
            figure = draw_reactions(run, ["pin", "left"])
            found = [[line.get_ydata() for line in axes.lines] for axes in figure.axes]
            curves.append([np.asarray(y, float) for own in found for y in own if np.size(y)])
            plt.close(figure)
        assert_same(*curves)
        pin = np.linalg.norm(both()[0].reactions().wrench("pin").force, axis=-1)
        assert any(np.allclose(y, pin) for y in curves[0])
        assert pin.max() > 1

    def test_columns_of_files(self):
        tables = []
        for run in both():
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "run.csv"
                jm.io.save_trajectory(run, path)
                tables.append(list(csv.reader(path.read_text().splitlines())))
        one, two = tables
        assert one[0] == two[0]
        own = [k for k, name in enumerate(one[0]) if ".force." in name or ".torque" in name]
        numbers = [[float(x[1][k]) for k in own] for x in (one, two)]
        assert_same(*map(np.array, numbers))
