"""A motion as a moving picture: GIF or MP4."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import AbstractMovieWriter, FFMpegWriter, PillowWriter
from matplotlib.figure import Figure

from .. import _settings
from .._bodies import AbstractVisual
from .._custom_types import Setting
from .._drawing import Scene, scene
from .._dynamics import Trajectory
from .._errors import ModelError
from .._files import check_folder, replacing
from .._reactions import Reactions
from .._reactions._joints import joint_verdicts_of
from ._marks import draw_legend, MARKS, marks_of
from ._shapes import draw_gravity, PlanarPicture, set_limits, SpatialPicture


# Marks are smaller than those of a still picture.
_SCALE = 0.8

# Around what is drawn, relative to its size.
_MARGIN = 0.08


def animate(
    trajectory: Setting[Trajectory],
    path: Setting[str | Path],
    *,
    speed: Setting[float] = 1.0,
    rate: Setting[int] = 20,
    title: Setting[str] = "",
    dpi: Setting[int] = 100,
    visuals: Setting[Sequence[AbstractVisual]] = (),
) -> None:
    """Write a motion as a moving picture: bodies by their shapes, joints by their symbols, marked
    by verdict at every time: unique, not unique, or in doubt.

    **Arguments:**

    - `trajectory`: one, not a batch. Frames are its saved states, those nearest to the times of the
      frames.
    - `path`: ends in .gif, or in .mp4, for which the program ffmpeg must be installed. A file that
      is there is replaced, as a whole or not at all.
    - `speed`: seconds of the motion in a second of the picture. `rate`: pictures a second, at most
      100. `title` above it. `dpi`: of 6.4 by 4.8 inches.
    - `visuals`: shapes of bodies (`Model.visuals`), which a system does not know; others have those
      that follow from their joints.

    **Raises:** `ModelError` (a `ValueError`) for another ending, a folder that is not there, a
    batch, a motion without duration, one without anything to draw, and where ffmpeg is missing.
    `ValueError` for a mesh that cannot be read, and for a visual shape of a frame that has no
    place. `OSError` if the file cannot be written.
    """
    trajectory = _settings.instance(trajectory, Trajectory, "trajectory", "a Trajectory")
    speed = _settings.known_number(speed, "speed", above=0)
    rate = _settings.whole_number(rate, "rate", least=1, most=100)
    dpi = _settings.whole_number(dpi, "dpi", least=20, most=600)
    visuals = _settings.parts(visuals, AbstractVisual, "visuals")
    path = Path(_settings.path(path, "path"))
    if not isinstance(title, str):
        raise TypeError(f"title must be a text such as 'Robot', got {title!r}.")
    writer = _writer(path, rate)
    check_folder(path)
    chosen = trajectory.at(_pictures(trajectory, speed, rate))
    # As NumPy arrays: indexed one by one, those of JAX are a small program each.
    reactions = jax.tree.map(np.asarray, chosen.reactions())
    drawing = scene(chosen.system, reactions, np.asarray(chosen.q), visuals)
    if not drawing.drawable:
        raise ModelError("nothing of this motion has a place that could be drawn.")
    figure = plt.figure(figsize=(6.4, 4.8), layout="constrained")
    try:
        picture = _Picture(figure, drawing, reactions, np.asarray(chosen.times), title)
        with replacing(path) as new:
            # The writer selects formats by endings, which `new` keeps at its end.
            named = new.with_name(f"{new.name}{path.suffix}")
            try:
                with writer.saving(figure, str(named), dpi):
                    for k in range(len(chosen.times)):
                        picture.show(k)
                        writer.grab_frame()
                named.replace(new)
            finally:
                named.unlink(missing_ok=True)
    finally:
        plt.close(figure)


def _writer(path: Path, rate: int) -> AbstractMovieWriter:
    """
    **Raises:** `ModelError` for another ending, and without the program that writes it.
    """
    ending = path.suffix.lower()
    if ending == ".gif":
        return PillowWriter(fps=rate)
    if ending != ".mp4":
        raise ModelError(f"{str(path)!r}: a moving picture is a file that ends in .gif or .mp4.")
    if not FFMpegWriter.isAvailable():
        raise ModelError(
            f"{str(path)!r}: .mp4 is written by the program ffmpeg, which is not installed; "
            "install it, or write a .gif."
        )
    return FFMpegWriter(fps=rate, codec="h264", extra_args=["-pix_fmt", "yuv420p"])


def _pictures(trajectory: Trajectory, speed: float, rate: int) -> np.ndarray:
    """The saved states nearest to the times of the pictures.

    **Raises:** `ModelError`.
    """
    times = np.asarray(trajectory.times)
    if times.ndim != 1:
        raise ModelError("a moving picture shows one trajectory; index the batch.")
    if times.size < 2:
        raise ModelError(
            "a moving picture needs at least two saved states; simulate with every=... or times=..."
        )
    count = max(2, round((times[-1] - times[0]) / speed * rate) + 1)
    wanted = np.linspace(times[0], times[-1], count)
    behind = np.clip(np.searchsorted(times, wanted), 1, times.size - 1)
    nearer = wanted - times[behind - 1] < times[behind] - wanted
    return behind - nearer


class _Picture:
    """The shapes of a figure, which move from picture to picture."""

    def __init__(
        self,
        figure: Figure,
        drawn: Scene,
        reactions: Reactions,
        times: np.ndarray,
        title: str,
    ):
        self._drawn, self._times, self._title = drawn, times, title
        doubtful = np.asarray(reactions.doubtful)
        own = marks_of(joint_verdicts_of(reactions), doubtful[:, None])
        # Of the constraints that are drawn at one point, the worst.
        none = np.zeros((len(times), 0), int)
        columns = [own[:, list(symbol.constraints)].max(axis=1) for symbol in drawn.symbols]
        self._marked = np.stack(columns, axis=1) if columns else none
        self._axes: Any = figure.add_subplot(projection=None if drawn.planar else "3d")
        set_limits(self._axes, drawn, _MARGIN)
        if drawn.planar:
            self._axes.grid(alpha=0.3)
            self._axes.set_axisbelow(True)
        kind = PlanarPicture if drawn.planar else SpatialPicture
        self._shapes = kind(self._axes, drawn)
        draw_gravity(self._axes, drawn)
        self._lines = [
            self._marks(x.marker, color="k", mfc=x.colour, ms=_SCALE * x.size) for x in MARKS
        ]
        occurring = [mark for k, mark in enumerate(MARKS) if np.any(self._marked == k)]
        draw_legend(figure, "outside lower center", occurring, 0.75)

    def _marks(self, form: str, **look: Any) -> Any:
        empty = [[]] * (2 if self._drawn.planar else 3)
        return self._axes.plot(*empty, form, zorder=5, **look)[0]

    def _put(self, line: Any, points: Any) -> None:
        columns = np.asarray(points, float).reshape(-1, 3).T
        if self._drawn.planar:
            line.set_data(columns[0], columns[1])
        else:
            line.set_data_3d(*columns)

    def show(self, k: int) -> None:
        """The picture of a state."""
        self._shapes.show(k)
        symbols = self._drawn.symbols
        for mark, line in enumerate(self._lines):
            chosen = [
                own for own, told in zip(symbols, self._marked[k], strict=True) if told == mark
            ]
            self._put(line, [own.position[k] for own in chosen])
        heading = f"{self._title}, " if self._title else ""
        self._axes.set_title(f"{heading}t = {self._times[k]:.3f} s")
