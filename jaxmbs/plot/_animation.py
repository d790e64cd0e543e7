"""A motion as a moving picture: GIF or MP4."""

from pathlib import Path
from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import AbstractMovieWriter, FFMpegWriter, PillowWriter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .. import _settings
from .._custom_types import Setting
from .._drawing import Skeleton, skeleton
from .._dynamics import Trajectory
from .._errors import ModelError
from .._files import check_folder, replacing
from .._reactions import Reactions


# Shapes and patterns differ as well as brightness: it must be readable in grey.
_BODY, _UNIQUE, _MANY = "#5c677d", "#8ecae6", "#b3261e"

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
) -> None:
    """Write a motion as a moving picture: bodies as lines from their centre of mass to their
    joints, joints marked by verdict at every time.

    **Arguments:**

    - `trajectory`: one, not a batch. Frames are its saved states, those nearest to the times of the
      frames.
    - `path`: ends in .gif, or in .mp4, for which the program ffmpeg must be installed. A file that
      is there is replaced, as a whole or not at all.
    - `speed`: seconds of the motion in a second of the picture. `rate`: pictures a second, at most
      100. `title` above it. `dpi`: of 6.4 by 4.8 inches.

    **Raises:** `ModelError` (a `ValueError`) for another ending, a folder that is not there, a
    batch, a motion without duration, one without anything to draw, and where ffmpeg is missing.
    `OSError` if it cannot be written.
    """
    trajectory = _settings.instance(trajectory, Trajectory, "trajectory", "a Trajectory")
    speed = _settings.known_number(speed, "speed", above=0)
    rate = _settings.whole_number(rate, "rate", least=1, most=100)
    dpi = _settings.whole_number(dpi, "dpi", least=20, most=600)
    path = Path(_settings.path(path, "path"))
    if not isinstance(title, str):
        raise TypeError(f"title must be a text such as 'Robot', got {title!r}.")
    writer = _writer(path, rate)
    check_folder(path)
    chosen = trajectory.at(_pictures(trajectory, speed, rate))
    # As NumPy arrays: indexed one by one, those of JAX are a small program each.
    reactions = jax.tree.map(np.asarray, chosen.reactions())
    drawing = skeleton(chosen.system, reactions, np.asarray(chosen.q))
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
    """The lines of a figure, whose data change from picture to picture."""

    def __init__(
        self,
        figure: Figure,
        drawing: Skeleton,
        reactions: Reactions,
        times: np.ndarray,
        title: str,
    ):
        self._drawing, self._times, self._title = drawing, times, title
        self._planar = drawing.planar
        self._unique = np.asarray(reactions.reaction_unique.unique)
        self._axes: Any = figure.add_subplot(projection=None if self._planar else "3d")
        self._limits()
        self._spokes = [self._line("-", color=_BODY, lw=2.5) for _ in drawing.spokes]
        self._pulleys = [self._line("-", color=_BODY, lw=1.0) for _ in drawing.pulleys]
        self._ropes = [self._line("-", color="k", lw=1.2) for _ in drawing.ropes]
        self._hubs = self._line("o", color=_BODY, ms=3)
        self._ground = self._line("s", color="k", mfc="none", ms=10)
        self._good = self._line("o", color="k", mfc=_UNIQUE, ms=7)
        self._many = self._line("X", color="k", mfc=_MANY, ms=9)
        marks = ((self._good, "reaction unique"), (self._many, "reaction not unique"))
        handles = [
            Line2D([], [], ls="none", marker=x.get_marker(), color="k", mfc=x.get_mfc(), label=said)
            for x, said in marks
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)

    def _line(self, form: str, **look: Any) -> Any:
        empty = [[]] * (2 if self._planar else 3)
        return self._axes.plot(*empty, form, **look)[0]

    def _limits(self) -> None:
        drawing, axes = self._drawing, self._axes
        margin = _MARGIN * drawing.size
        for k, letter in enumerate("xy" if self._planar else "xyz"):
            ends = drawing.low[k] - margin, drawing.high[k] + margin
            getattr(axes, f"set_{letter}lim")(*ends)
            getattr(axes, f"set_{letter}label")(f"{letter} (m)")
        axes.set_aspect("equal")
        if self._planar:
            axes.grid(alpha=0.3)

    def _put(self, line: Any, points: Any) -> None:
        columns = np.asarray(points, float).reshape(-1, 3).T
        if self._planar:
            line.set_data(columns[0], columns[1])
        else:
            line.set_data_3d(*columns)

    def show(self, k: int) -> None:
        """The picture of a state."""
        drawing, unique = self._drawing, self._unique[k]
        for line, spoke in zip(self._spokes, drawing.spokes, strict=True):
            self._put(line, [drawing.hubs[k, spoke.hub], drawing.points[k, spoke.point]])
            line.set_linestyle("-" if unique[spoke.constraint] else "--")
        lines, drawn = (*self._ropes, *self._pulleys), (*drawing.ropes, *drawing.pulleys)
        for line, own in zip(lines, drawn, strict=True):
            self._put(line, own[k])
        self._put(self._hubs, drawing.hubs[k])
        self._put(self._ground, drawing.points[k, list(drawing.ground)])
        told = [(place, all(unique[j] for j in own)) for place, own in drawing.joints]
        for line, wanted in ((self._good, True), (self._many, False)):
            chosen = [place for place, good in told if good == wanted]
            self._put(line, drawing.points[k, chosen])
        heading = f"{self._title}, " if self._title else ""
        self._axes.set_title(f"{heading}t = {self._times[k]:.3f} s")
