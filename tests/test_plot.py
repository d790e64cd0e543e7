"""Pictures of mechanisms: readable, labelled, to scale."""

import functools
import itertools
import struct
from pathlib import Path
from typing import Any

import matplotlib


matplotlib.use("Agg")

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnchoredOffsetbox
from matplotlib.patches import PathPatch

from jaxmbs import analyze, mechanisms, Model, MultibodySystem, planar, reactions, shapes
from jaxmbs._drawing import scene
from jaxmbs._drawing._solids import box, prism, tube
from jaxmbs._drawing._symbols import GROUND_COLOUR
from jaxmbs._verdict import NOT_DECIDED, NOT_UNIQUE, UNIQUE, Verdict
from jaxmbs.plot import draw_mechanism
from jaxmbs.plot._animation import _Picture
from jaxmbs.plot._marks import MARKS
from jaxmbs.plot._shapes import outline, PlanarPicture, set_limits, Surface


@functools.cache
def _figure(name: str) -> Figure:
    model = mechanisms.get(name)
    system = model.system()
    q = system.reference_q
    figure = draw_mechanism(model, system, analyze(system, q), q)
    figure.canvas.draw()
    return figure


@pytest.fixture(scope="module", autouse=True)
def _closed():
    yield
    plt.close("all")


def _labels(name: str) -> dict[str, Any]:
    """The texts beside the joints."""
    (axes,) = _figure(name).axes
    return {text.get_text(): text for text in axes.texts if text.get_text()}


@pytest.mark.parametrize(("name", "letters"), [("mobile-robot", "xy"), ("table", "xyz")])
def test_axes_are_labelled_with_their_unit(name: str, letters: str):
    (axes,) = _figure(name).axes
    labels = [getattr(axes, f"get_{letter}label")() for letter in letters]
    assert labels == [f"{letter} (m)" for letter in letters]
    assert name in axes.get_title()
    assert axes.get_aspect() in ("equal", 1.0)


@pytest.mark.parametrize("name", ["mobile-robot", "table"])
def test_every_joint_is_named_once(name: str):
    structure = mechanisms.get(name).system().structure
    named = [part for text in _labels(name) for part in text.split(", ")]
    assert sorted(named) == sorted(structure.constraint_names)


def test_labels_stand_beside_their_joints():
    labels = _labels("mobile-robot")
    for joint in ("A", "D", "E", "F", "G"):
        (text,) = [t for names, t in labels.items() if joint in names.split(", ")]
        frames = mechanisms.mobile_robot().system()
        point = frames.marker_frames(frames.reference_q)[joint][0].origin
        assert np.allclose(text.xy, point, atol=1e-12)


def test_both_verdicts_are_told_apart_without_colour():
    (axes,) = _figure("mobile-robot").axes
    markers = {}
    for line in axes.lines:
        if line.get_marker() not in ("None", None, ""):
            markers[tuple(np.round(np.ravel(line.get_xydata()), 9))] = line.get_marker()
    # The trolley's hinge A is unique, the front knuckle's B is not.
    assert markers[(-0.4, 0.0)] != markers[(0.2, 0.0)]
    (legend,) = _figure("mobile-robot").legends
    handles: Any = legend.legend_handles
    words = [text.get_text() for text in legend.get_texts()]
    entries = {word: line.get_marker() for word, line in zip(words, handles, strict=True)}
    assert entries["reaction unique"] == markers[(-0.4, 0.0)]
    assert entries["reaction not unique"] == markers[(0.2, 0.0)]


def _marks(figure: Figure) -> dict[tuple[float, ...], str]:
    (axes,) = figure.axes
    lines: list[Any] = list(axes.lines)
    told = [line for line in lines if line.get_marker() not in ("None", None, "")]
    return {tuple(np.round(xy, 9)): own.get_marker() for own in told for xy in own.get_xydata()}


def _legend(figure: Figure) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


_TWO, _THREE = (
    ["reaction unique", "reaction not unique"],
    ["reaction unique", "in doubt", "reaction not unique"],
)


def test_what_is_in_doubt_has_a_third_mark():
    """What is not decided, and what counts as unique where the rank is marginal; what is not unique
    remains that."""
    model = mechanisms.get("mobile-robot")
    system = model.system()
    q = system.reference_q
    report = analyze(system, q)
    near = eqx.tree_at(lambda r: r.near_threshold, report, jnp.array(True))
    assert bool(near.doubtful)
    nowhere = eqx.tree_at(
        lambda r: (r.reaction_unique, r.body_unique),
        report,
        replace_fn=lambda x: Verdict(np.full(x.shape, NOT_DECIDED)),
        is_leaf=lambda x: isinstance(x, Verdict),
    )
    plain, marginal, none = (
        draw_mechanism(model, system, own, q) for own in (report, near, nowhere)
    )
    unique, many = (-0.4, 0.0), (0.2, 0.0)
    told = [tuple(_marks(x)[place] for place in (unique, many)) for x in (plain, marginal, none)]
    assert told == [("o", "X"), ("^", "X"), ("^", "^")]
    assert [_legend(x) for x in (plain, marginal, none)] == [_TWO, _THREE, _THREE]
    assert len({to_grey(mark.colour) for mark in MARKS}) == 3


def to_grey(colour: str) -> float:
    """Brightness in tenths."""
    return round(float(np.dot(to_rgb(colour), (0.299, 0.587, 0.114))), 1)


def test_a_moving_picture_marks_every_state_by_its_own_verdict():
    """By the verdicts of reports: of a joint whose force has one component that is not unique."""
    bob = planar.Body("bob", mass=2.0, inertia=0.05, position=(0.3, 0.0))
    system = MultibodySystem([bob], [planar.Revolute("A", ("ground", "bob"), (0.0, 0.0))])
    q = jnp.stack([system.reference_q] * 4)
    found = jax.tree.map(np.asarray, jax.vmap(lambda q: reactions(system, q, 0 * q))(q))
    verdict = np.array([UNIQUE, NOT_DECIDED, UNIQUE, UNIQUE])
    numbers = np.array(found.force_unique.numbers())
    numbers[3, :, found.layout.seconds[0], 0] = NOT_UNIQUE
    found = eqx.tree_at(
        lambda r: (r.reaction_unique, r.doubtful, r.force_unique),
        found,
        (Verdict(verdict[:, None]), np.array([False, False, True, False]), Verdict(numbers)),
    )
    drawing = scene(system, found, np.asarray(q))
    figure = plt.figure()
    picture = _Picture(figure, drawing, found, np.arange(4.0), "")
    shown = []
    for k in range(4):
        picture.show(k)
        (mark,) = _marks(figure).values()
        shown.append(mark)
    assert shown == ["o", "^", "^", "X"]
    assert _legend(figure) == _THREE
    certain = jax.tree.map(lambda x: x[:1], found)
    first = plt.figure()
    _Picture(first, scene(system, certain, np.asarray(q[:1])), certain, np.zeros(1), "")
    assert _legend(first) == _TWO


def test_no_two_texts_of_the_robot_overlap():
    figure = _figure("mobile-robot")
    (axes,) = figure.axes
    renderer = FigureCanvasAgg(figure).get_renderer()
    (legend,) = figure.legends
    texts = [*_labels("mobile-robot").values(), *legend.get_texts()]
    texts += [axes.title, axes.xaxis.label, axes.yaxis.label, *figure.texts]
    shown = [text for text in texts if text.get_text() and text.get_visible()]
    assert len(shown) > 15
    boxes = {text: text.get_window_extent(renderer) for text in shown}
    overlapping = [
        (first.get_text(), second.get_text())
        for first, second in itertools.combinations(shown, 2)
        if boxes[first].overlaps(boxes[second])
    ]
    assert not overlapping
    inside = figure.bbox
    assert all(inside.contains(*corner) for box in boxes.values() for corner in box.corners())


@pytest.mark.parametrize("name", ["mobile-robot", "table"])
def test_pictures_are_saved(name: str, tmp_path: Path):
    path = tmp_path / "picture.png"
    _figure(name).savefig(path, dpi=100)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    assert 600 <= width <= 2000
    assert 400 <= height <= 2000
    # A page with something on it, and most of it left free.
    grey = plt.imread(path)[..., :3].mean(axis=-1)
    assert 0.01 < np.mean(grey < 0.95) < 0.5


# --------------------------------------------------------------------------------------------------
# Shapes.
# --------------------------------------------------------------------------------------------------


_WHITE = (1.0, 1.0, 1.0)


def _area(path: Any) -> float:
    """The area within a path, of holes less than nothing."""
    total = 0.0
    for loop in path.to_polygons(closed_only=False):
        x, y = np.asarray(loop).T
        total += 0.5 * float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))
    return total


def test_outlines_are_those_of_the_shapes():
    """Also with hollow corners and holes, and turned."""
    corners = np.array([[0, 0], [3, 0], [3, 1], [1, 1], [1, 2], [0, 2]], float)
    assert _area(outline(prism(corners, -0.1, 0.1, _WHITE))) == pytest.approx(4.0)
    polygon = 24 / 2 * np.sin(2 * np.pi / 24)
    ring = tube(0.5, 0.3, 0.1, _WHITE, 24)
    assert _area(outline(ring)) == pytest.approx(polygon * (0.25 - 0.09))
    c, s = np.cos(0.4), np.sin(0.4)
    turned = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    seen = outline(box((2.0, 1.0, 0.5), _WHITE).placed(np.zeros(3), turned))
    assert _area(seen) == pytest.approx((2.0 * c + 0.5 * s) * 1.0)


def test_patches_lie_where_bodies_are():
    model = mechanisms.get("four-bar-chain")
    system = model.system()
    q = np.asarray(system.reference_q)[None] + np.linspace(0.0, 1.0, 3)[:, None]
    drawn = scene(system, None, q)
    figure = plt.figure()
    axes = figure.add_subplot()
    picture = PlanarPicture(axes, drawn)
    set_limits(axes, drawn, 0.1)
    picture.show(2)
    patches = [p for p in axes.patches if isinstance(p, PathPatch)]
    solids = [(body, solid) for body in drawn.bodies for solid in body.solids]
    found = []
    for patch in patches:
        moved = (patch.get_transform() - axes.transData).transform(patch.get_path().vertices)
        found.append((*moved.min(axis=0), *moved.max(axis=0)))
    for body, solid in solids:
        x, y, angle = body.position[2][0], body.position[2][1], 2.0 / 2
        c, s = np.cos(angle), np.sin(angle)
        if body.name == "ground":
            x, y, c, s = 0.0, 0.0, 1.0, 0.0
        corners = np.array([(x + c * u - s * v, y + s * u + c * v) for u, v, _ in solid.vertices])
        wanted = (*corners.min(axis=0), *corners.max(axis=0))
        assert any(np.allclose(own, wanted, atol=1e-9) for own in found), body.name
    # The ground is told from bodies without colour.
    hatched = [patch for patch in patches if patch.get_hatch()]
    assert len(hatched) == sum(body.name == "ground" for body, _ in solids) > 0


def test_only_the_ground_is_hatched():
    """Whatever the colours of others are."""
    bob = planar.Body("bob", mass=2.0, inertia=0.05, position=(0.3, 0.0))
    own = "#" + "".join(f"{round(255 * x):02x}" for x in GROUND_COLOUR)
    shape = shapes.VisualBox("bob", (0.3, 0.1, 0.1), color=own)
    for colour, hatched in {None: True, "red": False}.items():
        base = shapes.VisualBox("ground", (0.3, 0.1, 0.1), color=colour)
        pin = planar.Revolute("A", ("ground", "bob"), (0.0, 0.0))
        model = Model("m", 2, bodies=[bob], joints=[pin], visuals=[shape, base])
        system = model.system()
        drawn = scene(system, None, np.asarray(system.reference_q)[None], model.visuals)
        told = {body.name: [solid.hatched for solid in body.solids] for body in drawn.bodies}
        assert told == {"bob": [False], "ground": [hatched]}
        axes = plt.figure().add_subplot()
        PlanarPicture(axes, drawn)
        assert sum(bool(patch.get_hatch()) for patch in axes.patches) == int(hatched)


def test_hidden_sides_are_left_out_in_space():
    figure = _figure("table")
    axes: Any = figure.axes[0]
    (surface,) = [own for own in axes.collections if isinstance(own, Surface)]
    axes.view_init(90.0, -90.0)
    figure.canvas.draw()
    above = len(surface.get_facecolor())
    axes.view_init(-90.0, -90.0)
    figure.canvas.draw()
    below = len(surface.get_facecolor())
    # What is seen from above is not seen from below; of closed surfaces nothing else is left out
    # but what is seen from its edge.
    assert above + below <= surface.triangles
    assert above + below > 0.7 * surface.triangles


def test_gravity_is_an_arrow_where_there_is_any():
    def arrows(name: str) -> int:
        (axes,) = _figure(name).axes
        return sum(isinstance(own, AnchoredOffsetbox) for own in axes.artists)

    assert arrows("four-bar-chain") == 1
    assert arrows("mobile-robot") == 0
