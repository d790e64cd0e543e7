"""The page: a session shown by viser, for all browsers alike."""

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from .._drawing import DrawnBody, Scene, Solid, Strand, Symbol
from ._controls import Control, Kind
from ._loads import loads_of, Shown
from ._session import Session
from ._words import head_html, looks_of, state_html, table_html
from ._worker import Worker


# Colours that differ in grey; what is not unique or in doubt has a frame and words as well.
_COLOURS = {"unique": (142, 202, 230), "in doubt": (240, 190, 60), "not unique": (179, 38, 30)}
_RANGE, _LINE = (238, 195, 189), (30, 30, 30)

_SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "5", "10")

# Words of the page.
_PLAY, _PAUSE = "Play", "Pause"

# The end of a motion (s) that is offered.
_END = 1.0

# From the middle of the scene to the camera, and how far both are moved aside, over its diagonal.
_DISTANCE, _ASIDE = 0.85, 0.26

# Values of sliders that are shown as zero.
_ZERO = 1e-12

# Vertices that move by less than this part of the scene are not sent again.
_SAME = 1e-6


class Names(enum.Enum):
    """Whose names are shown, in the words of the page."""

    ALL = "all"
    SOME = "not unique or in doubt"
    NONE = "none"


# The names of so many joints and drivers are shown from the start, whatever their verdicts.
_FEW = 14


class Page:
    """The page of a session. `refresh` is called by the worker alone, once it has begun."""

    def __init__(self, server: Any, session: Session):
        self._server, self._session = server, session
        self.worker = Worker(session, self.refresh)
        self._solids: dict[str, tuple[Solid, ...]] = {}
        self._nodes: dict[str, Any] = {}
        self._own = session.picture.scene
        self._set_camera(self._own)
        gui = server.gui
        gui.set_panel_label(session.model.name)
        gui.configure_theme(
            show_logo=False,
            show_share_button=False,
            control_width="large",
            brand_color=(38, 84, 124),
        )
        self._head = gui.add_html("")
        self._sliders: dict[str, Any] = {}
        # Their values as far as the worker knows of them.
        self._taken: dict[str, float] = {}
        for kind in Kind:
            self._add_controls(kind)
        self._add_motion()
        self._add_choices()
        with gui.add_folder("Forces and torques on second bodies", expand_by_default=True):
            self._table = gui.add_html("")
        with gui.add_folder("Numbers of this state", expand_by_default=True):
            self._state = gui.add_html("")
        self.refresh()

    # -- What can be set.

    def _add_controls(self, kind: Kind) -> None:
        gui, own = self._server.gui, [x for x in self._session.controls if x.kind is kind]
        if not own:
            return
        with gui.add_folder(kind.value, expand_by_default=kind is not Kind.SHAPE):
            for control in own:
                self._sliders[control.name] = self._add_slider(control)

    def _add_slider(self, control: Control) -> Any:
        value = self._session.values[control.name]
        low, high = min(control.low, value), max(control.high, value)
        slider = self._server.gui.add_slider(control.title, low, high, control.step, value)

        def changed(event: Any) -> None:
            # (What the page is told calls this as well.)
            if event.client_id is not None:
                taken = self._taken[control.name] = float(slider.value)
                self.worker.set({control.name: taken})

        self._taken[control.name] = value
        slider.on_update(changed)
        return slider

    def _add_motion(self) -> None:
        gui = self._server.gui
        with gui.add_folder("Motion"):
            self._end = gui.add_number("until (s)", _END, min=1e-6)
            self._simulate = gui.add_button("Simulate")
            self._play = gui.add_button(_PLAY)
            self._time = gui.add_slider("time (s)", 0.0, 1.0, 1e-3, 0.0)
            self._speed = gui.add_dropdown("speed", _SPEEDS, initial_value="1")
        self._reset = gui.add_button("Reset")
        self._on_click(self._simulate, self._compute_motion)
        self._on_click(self._play, self._play_or_pause)
        self._on_click(self._reset, self._start_again)

        def moved(event: Any) -> None:
            if event.client_id is not None:
                self.worker.do(self._show_time)

        self._time.on_update(moved)

    def _on_click(self, button: Any, task: Callable[[], None]) -> None:
        def clicked(_: Any) -> None:
            self.worker.do(task)

        button.on_click(clicked)

    def _add_choices(self) -> None:
        gui = self._server.gui
        with gui.add_folder("Picture"):
            self._shown = gui.add_dropdown(
                "arrows", tuple(x.value for x in Shown), initial_value=Shown.FORCES.value
            )
            self._longest = gui.add_html("")
            few = len(self._session.picture.contents.reactions.names) <= _FEW
            self._names = gui.add_dropdown(
                "names",
                tuple(x.value for x in Names),
                initial_value=(Names.ALL if few else Names.SOME).value,
            )

        def chosen(event: Any) -> None:
            if event.client_id is not None:
                self.worker.do(lambda: None)

        self._shown.on_update(chosen)
        self._names.on_update(chosen)

    # -- Tasks of the worker.

    def _compute_motion(self) -> None:
        self._simulate.disabled, self._simulate.label = True, "Computing ..."
        self._server.flush()
        try:
            self._session.simulate(float(self._end.value))
        finally:
            self._simulate.disabled, self._simulate.label = False, "Simulate"

    def _play_or_pause(self) -> None:
        self.worker.play(not self.worker.plays, float(self._speed.value))

    def _start_again(self) -> None:
        self.worker.play(False, 1.0)
        self._session.reset()

    def _show_time(self) -> None:
        motion = self._session.motion
        if motion is None:
            return
        self.worker.play(False, 1.0)
        distances = np.abs(motion.times - float(self._time.value))
        self._session.show(int(np.argmin(distances)))

    # -- What is shown.

    def refresh(self) -> None:
        """Show the session as it is now."""
        with self._server.atomic():
            self._refresh_controls()
            self._refresh_scene()
            self._head.content = head_html(self._session)
            self._table.content = table_html(self._session)
            self._state.content = state_html(self._session)
        self._server.flush()

    def _refresh_controls(self) -> None:
        session, waiting = self._session, self.worker.waiting
        for name, slider in self._sliders.items():
            # The others are being moved by a hand.
            if name not in waiting and float(slider.value) == self._taken[name]:
                self._taken[name] = _set_slider(slider, session.values[name])
        motion = session.motion
        for own in (self._play, self._time, self._speed):
            own.visible = motion is not None
        if motion is None:
            return
        self._play.label = _PAUSE if self.worker.plays else _PLAY
        begin, end = float(motion.times[0]), float(motion.times[-1])
        if (self._time.min, self._time.max) != (begin, end) and end > begin:
            self._time.min, self._time.max = begin, end
            self._time.step = (end - begin) / 1000.0
        if session.picture is motion:
            _set_slider(self._time, float(motion.times[session.state]))

    def _refresh_scene(self) -> None:
        picture, state = self._session.picture, self._session.state
        drawn, unit = picture.scene, self._unit
        looks = looks_of(picture.contents, state)
        for k, body in enumerate(drawn.bodies):
            self._place(f"/bodies/{k}", body, state)
        labelled: list[np.ndarray] = []
        for k, symbol in enumerate(drawn.symbols):
            worst = max((looks[own] for own in symbol.constraints), key=_RANKS.__getitem__)
            self._place(f"/symbols/{k}", symbol, state, worst)
            self._mark(f"/symbols/{k}/mark", worst, unit)
            place = symbol.position[state]
            fresh = not any(np.linalg.norm(place - x) < unit for x in labelled)
            here = [
                own
                for x in drawn.symbols
                if np.linalg.norm(x.position[state] - place) < unit
                for own in x.constraints
            ]
            named = fresh and self._is_named(max((looks[x] for x in here), key=_RANKS.__getitem__))
            words = label_of(here, looks, picture.contents.reactions.names) if named else ""
            self._label(f"/symbols/{k}/name", words)
            labelled.append(place)
        for k, strand in enumerate(drawn.strands):
            self._line(f"/strands/{k}", strand, state)
        for group in ("bodies", "symbols", "strands"):
            self._hide(group, len(getattr(drawn, group)))
        shown = Shown(self._shown.value)
        largest = picture.largest[shown]
        loads = loads_of(picture.contents, state, shown, self._own.size, largest)
        self._arrows("/loads/arrows", loads.arrows, _LINE)
        self._arrows("/loads/doubtful", loads.doubtful, _COLOURS["in doubt"])
        self._segments("/loads/bars", loads.bars, _COLOURS["not unique"], 0.8 * unit)
        self._segments("/loads/boxes", loads.boxes, _COLOURS["not unique"], 0.15 * unit)
        self._segments("/loads/unbounded", loads.unbounded, _COLOURS["not unique"], 0.4 * unit)
        of_all = " (of the whole motion)" if len(picture.times) > 1 else ""
        words = f"longest arrow or bound: {loads.longest}{of_all}" if loads.longest else ""
        self._longest.content = f'<p style="font-size:0.8em;padding:0 0.8em">{words}</p>'

    def _hide(self, group: str, count: int) -> None:
        """Hide what earlier pictures have more of, with its names and marks. (Its surfaces are
        hidden with its frame.)"""
        for name, node in self._nodes.items():
            _, own, *rest = name.split("/")
            surface = len(rest) > 1 and rest[1].isdigit()
            if own == group and int(rest[0]) >= count and not surface:
                node.visible = False

    def _is_named(self, look: str) -> bool:
        names = Names(self._names.value)
        return names is Names.ALL or (names is Names.SOME and look != "unique")

    @property
    def _unit(self) -> float:
        return self._own.unit or 0.008 * self._own.size

    def _set_camera(self, drawn: Scene) -> None:
        middle, size = 0.5 * (drawn.low + drawn.high), drawn.size
        up = np.array([0.0, 1.0, 0.0]) if drawn.planar else -drawn.down
        way = np.array([0.0, 0.0, 1.0])
        if not drawn.planar:
            side = np.eye(3)[int(np.argmin(np.abs(up)))]
            side = side - (side @ up) * up
            side = side / np.linalg.norm(side)
            way = 0.45 * up + 0.75 * np.cross(side, up) + 0.5 * side
        self._server.scene.set_up_direction(tuple(up))
        camera = self._server.initial_camera
        # The panel stands on the right.
        middle = middle + _ASIDE * size * np.cross(up, way)
        camera.position, camera.look_at = middle + _DISTANCE * size * way, middle
        camera.up, camera.near, camera.far = up, 1e-3 * size, 1e3 * size

    def _place(self, name: str, part: DrawnBody | Symbol, state: int, look: str = "") -> None:
        """A frame with its shapes, which are sent where they are new."""
        if name not in self._nodes:
            self._nodes[name] = self._server.scene.add_frame(name, show_axes=False)
        frame = self._nodes[name]
        position, rotation = part.position[state], part.rotation[state]
        known = bool(np.all(np.isfinite(position)) and np.all(np.isfinite(rotation)))
        frame.visible = known
        if known:
            frame.position, frame.wxyz = position, quaternion(rotation)
        if not _same(self._solids.get(name), part.solids, self._own.size):
            for k in range(len(self._solids.get(name, ()))):
                self._nodes.pop(f"{name}/{k}").remove()
            for k, solid in enumerate(part.solids):
                self._nodes[f"{name}/{k}"] = self._server.scene.add_mesh_simple(
                    f"{name}/{k}",
                    np.asarray(solid.vertices, np.float32),
                    np.asarray(solid.faces, np.uint32),
                    color=solid.colour,
                    flat_shading=True,
                    side="double",
                )
            self._solids[name] = part.solids
        if look:
            for k in range(len(part.solids)):
                self._nodes[f"{name}/{k}"].color = _COLOURS[look]

    def _mark(self, name: str, look: str, unit: float) -> None:
        """The frame around what is not unique (an octahedron) or in doubt (a cube)."""
        for own, edges in _MARKS.items():
            node = self._nodes.get(f"{name}-{_RANKS[own]}")
            if node is None and own == look:
                points = 3.0 * unit * edges
                node = self._server.scene.add_line_segments(
                    f"{name}-{_RANKS[own]}",
                    points.astype(np.float32),
                    _COLOURS[own],
                    thickness=0.25 * unit,
                )
                self._nodes[f"{name}-{_RANKS[own]}"] = node
            if node is not None:
                node.visible = own == look

    def _label(self, name: str, words: str) -> None:
        node = self._nodes.get(name)
        if node is None:
            if not words:
                return
            node = self._server.scene.add_label(name, words, anchor="bottom-left")
            self._nodes[name] = node
        node.visible = bool(words)
        if words and node.text != words:
            node.text = words

    def _line(self, name: str, strand: Strand, state: int) -> None:
        points = strand.points[state]
        pairs = np.stack([points[:-1], points[1:]], axis=1)
        thick = {"rod": 0.8, "body": 0.8, "rope": 0.5}.get(strand.kind, 0.3)
        self._segments(name, pairs, _LINE, thick * self._unit)

    def _segments(
        self, name: str, pairs: Float[np.ndarray, "n 2 3"], colour: Any, thickness: float
    ) -> None:
        node, known = self._nodes.get(name), len(pairs) and bool(np.all(np.isfinite(pairs)))
        if not known:
            if node is not None:
                node.visible = False
            return
        points = pairs.astype(np.float32)
        if node is None:
            self._nodes[name] = self._server.scene.add_line_segments(
                name, points, colour, thickness=thickness
            )
            return
        node.visible = True
        if node.points.shape != points.shape or not np.array_equal(node.points, points):
            node.points = points

    def _arrows(self, name: str, pairs: Float[np.ndarray, "n 2 3"], colour: Any) -> None:
        node = self._nodes.get(name)
        if not len(pairs):
            if node is not None:
                node.visible = False
            return
        points, unit = pairs.astype(np.float32), self._unit
        if node is None:
            self._nodes[name] = self._server.scene.add_arrows(
                name,
                points,
                colour,
                shaft_radius=0.25 * unit,
                head_radius=0.7 * unit,
                head_length=2.0 * unit,
            )
            return
        node.visible = True
        node.points = points


# From the best to the worst.
_RANKS = {"unique": 0, "in doubt": 1, "not unique": 2}


def label_of(constraints: Iterable[int], looks: Sequence[str], names: Sequence[str]) -> str:
    """Names of constraints at one point, and after each kind of them what is to be said of it."""
    found: dict[str, list[str]] = {}
    for k in dict.fromkeys(constraints):
        found.setdefault(looks[k], []).append(names[k])
    told = (
        ", ".join(own) + ("" if look == "unique" else f": {look}")
        for look, own in sorted(found.items(), key=lambda item: _RANKS[item[0]])
    )
    return "; ".join(told)


def _set_slider(slider: Any, value: float) -> float:
    """Show a value, and return what is shown."""
    if value < slider.min:
        slider.min = value
    if value > slider.max:
        slider.max = value
    slider.value = value if abs(value) > _ZERO else 0.0
    return float(slider.value)


def _same(old: tuple[Solid, ...] | None, new: tuple[Solid, ...], size: float) -> bool:
    """Are these the shapes that were sent?"""
    if old is None or len(old) != len(new):
        return False
    return all(
        one.colour == other.colour
        and one.faces.shape == other.faces.shape
        and one.vertices.shape == other.vertices.shape
        and np.array_equal(one.faces, other.faces)
        and float(np.max(np.abs(one.vertices - other.vertices), initial=0.0)) <= _SAME * size
        for one, other in zip(old, new, strict=True)
    )


def quaternion(rotation: Float[np.ndarray, "3 3"]) -> Float[np.ndarray, "4"]:
    """The unit quaternion of a rotation, scalar first.

    The four columns of 4 q q^T - 1 are known from R; the one with the largest diagonal entry is
    divided by the smallest error (Shepperd 1978, J. Guidance and Control 1, 223-224).
    """
    trace = float(np.trace(rotation))
    squares = np.array([trace, *(2.0 * np.diag(rotation) - trace)]) + 1.0
    largest = int(np.argmax(squares))
    skew = np.array(
        [
            rotation[2, 1] - rotation[1, 2],
            rotation[0, 2] - rotation[2, 0],
            rotation[1, 0] - rotation[0, 1],
        ]
    )
    if largest == 0:
        found = np.array([squares[0], *skew])
    else:
        axis = largest - 1
        found = np.array([skew[axis], *(rotation[axis] + rotation[:, axis])])
        found[largest] = squares[largest]
    return found / np.linalg.norm(found)


def _octahedron() -> Float[np.ndarray, "12 2 3"]:
    ends = np.concatenate([np.eye(3), -np.eye(3)])
    pairs = [(a, b) for i, a in enumerate(ends) for b in ends[i + 1 :] if abs(a @ b) < 0.5]
    return np.array(pairs)


def _cube() -> Float[np.ndarray, "12 2 3"]:
    corners = 0.7 * (2.0 * np.indices((2, 2, 2)).reshape(3, -1).T - 1.0)
    pairs = [
        (a, b)
        for i, a in enumerate(corners)
        for b in corners[i + 1 :]
        if np.count_nonzero(a != b) == 1
    ]
    return np.array(pairs)


_MARKS = {"not unique": _octahedron(), "in doubt": _cube()}
