"""Reports as files, and their moving picture in a notebook."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import _settings
from .._bodies import AbstractVisual
from .._custom_types import Setting
from .._dynamics import Trajectory
from .._errors import ModelError
from .._files import check_folder, replacing
from .._ranges import AbstractBound
from .._system import Model
from ._contents import check_bounds, Contents, contents_of
from ._opening import drive_table, drives_of, largest_words, peak_table, trust_of
from ._page import (
    advice_of,
    check_extra,
    data_of,
    drawing_words,
    interval_table,
    method_of,
    opening_words,
    page,
    passage_words,
    rank_words,
    release_words,
    sharing_words,
    verdict_table,
)
from ._states import motion_of, system_of


# --------------------------------------------------------------------------------------------------
# Reports as files.
# --------------------------------------------------------------------------------------------------


class Written(NamedTuple):
    """The written report: the file, its size in bytes, and the number of states in it."""

    path: Path
    size: int
    states: int

    def __str__(self) -> str:
        plural = "s" if self.states > 1 else ""
        return f"{self.path}: {self.states} state{plural}, {self.size / 1e6:.1f} MB"


def write(
    subject: Setting[Model | Trajectory],
    path: Setting[str | Path],
    *,
    end: Setting[float | None] = None,
    every: Setting[float | None] = None,
    frames: Setting[int | None] = None,
    bounds: Setting[Sequence[AbstractBound | str]] = (),
    title: Setting[str | None] = None,
    notes: Setting[Mapping[str, str] | None] = None,
    visuals: Setting[Sequence[AbstractVisual]] = (),
) -> Written:
    """Write a report as one HTML file, which works without a network.

    It begins with which reactions can be trusted, in a sentence and on the mechanism in three
    dimensions, which can be turned and played, with forces as arrows where they are unique and as
    ranges where they are not. Then follow what drivers and motors have to do; the peak loads of
    joints; curves; verdicts, ranks and singular configurations along the motion; which joints share
    loads, and which releases would make all reactions unique; and how it was computed. Numbers that
    are not unique are not in the file at all.

    **Arguments:**

    - `subject`: a model, whose reference configuration and velocities must be allowed by its
      constraints, or a trajectory.
    - `path`: of the file, which ends in .html; one that is there is replaced, as a whole or not at
      all.
    - `end` (s): of a model's motion; without it one state is shown. `every` (s): time between
      saved states.
    - `frames`: at least 2. Of a model without `every` so many states are saved, default 101; of
      others at most so many are shown, evenly chosen, default 500.
    - `bounds`: what is known of reactions, as `jaxmbs.ranges` takes it.
    - `title`: default the model's name. `notes`: more lines of how it was computed, by names.
    - `visuals`: shapes of bodies, of a trajectory (`Model.visuals`); a model has its own.

    **Returns:** `Written`.

    **Raises:** `ModelError` (a `ValueError`) for another ending, a folder that is not there, a
    missing extra (`report`), a batch, and settings that do not belong to the subject; what
    `simulate` raises. `OSError` if it cannot be written.
    """
    check_path(path)
    check_folder(Path(path))
    end = None if end is None else _settings.known_number(end, "end", above=0)
    every = None if every is None else _settings.known_number(every, "every", above=0)
    if frames is not None:
        frames = _settings.whole_number(frames, "frames", least=2)
    heading = chosen_title(subject, title)
    chosen = {} if notes is None else _settings.mapping(notes, "notes", '{"source": "drawing 7"}')
    system = system_of(subject)
    known, shapes = check_bounds(system, bounds), chosen_visuals(subject, visuals)
    motion = motion_of(subject, system, end, every, frames)
    contents = contents_of(motion, known, visuals=shapes)
    return write_page(contents, Path(path), heading, _remark(subject) | chosen)


def write_page(contents: Contents, path: Path, title: str, notes: Mapping[str, str]) -> Written:
    """Write what is shown.

    **Raises:** `OSError` if it cannot be written.
    """
    drives = drives_of(contents)
    text = page(words_of(contents, title, notes), data_of(contents, drives))
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8")
    return Written(path, path.stat().st_size, contents.trajectory.times.shape[0])


def check_path(path: Setting[str | Path]) -> None:
    """Refuse, before anything is computed, what could not be written after it.

    **Raises:** `ModelError` for another ending and a missing extra.
    """
    if Path(_settings.path(path, "path")).suffix.lower() not in (".html", ".htm"):
        raise ModelError(f"{str(path)!r}: a report is a file that ends in .html.")
    check_extra()


def chosen_title(subject: Any, title: Any) -> str:
    """Title of a report."""
    if title is not None:
        return _settings.text(title, "title", "'Mobile robot'")
    return subject.name if isinstance(subject, Model) else "Mechanism"


def chosen_visuals(subject: Any, visuals: Any) -> tuple[AbstractVisual, ...]:
    """Visual shapes of a model, or those that are given with a trajectory.

    **Raises:** `ModelError` for shapes that are given with a model.
    """
    given = _settings.parts(visuals, AbstractVisual, "visuals")
    if not isinstance(subject, Model):
        return given
    if given:
        raise ModelError("visuals are those of a trajectory; a model has its own (Model.visuals).")
    return subject.visuals


def _remark(subject: Any) -> dict[str, str]:
    """A model's remark on its numbers."""
    return {"remark": subject.remark} if isinstance(subject, Model) and subject.remark else {}


def words_of(
    contents: Contents, title: str, notes: Mapping[str, str], *, whole: bool = True
) -> dict[str, Any]:
    """Texts of a page. `whole`: all of it, or the animation alone."""
    shared, released, remarks = release_words(contents)
    structure, times = contents.reactions.structure, np.asarray(contents.trajectory.times)
    return {
        "title": title,
        "whole": whole,
        "states": len(times),
        "begin": float(times[0]),
        "end": float(times[-1]),
        "trust": trust_of(contents),
        "opening": list(filter(None, opening_words(contents))),
        "drives": drive_table(drives_of(contents), times) if len(times) > 1 else None,
        "peaks": peak_table(contents),
        "largest": largest_words(contents),
        "ranks": rank_words(contents),
        "verdicts": verdict_table(contents),
        "planar": contents.scene.planar,
        "drawable": contents.scene.drawable,
        "bodies": contents.reactions.layout.bodies,
        "seconds": contents.reactions.layout.seconds,
        "names": structure.constraint_names,
        "components": contents.components,
        "intervals": interval_table(contents),
        "passages": passage_words(contents),
        "bands": [*filter(None, [drawing_words(contents)]), *contents.bands.notes],
        "sharing": sharing_words(contents),
        "shared": shared,
        "released": released,
        "advice": advice_of(contents),
        "remarks": remarks,
        "duty": None if contents.duty is None else contents.duty.described().tables[0],
        "stops": None if contents.stops is None else contents.stops.described(),
        "contacts": None if contents.contacts is None else contents.contacts.described().tables[0],
        "method": method_of(contents, notes),
    }


# --------------------------------------------------------------------------------------------------
# The moving picture of a report, in a notebook.
# --------------------------------------------------------------------------------------------------


class View(NamedTuple):
    """A page that a notebook shows in a frame of its own. `html`: the page; `height` in pixels."""

    html: str
    height: int

    def __str__(self) -> str:
        return f"a moving picture of {len(self.html) / 1e6:.1f} MB; a notebook shows it"

    def _repr_html_(self) -> str:
        # A frame keeps the page's program and style apart from the notebook's.
        return (
            f'<iframe title="Mechanism and its reactions" sandbox="allow-scripts" width="100%" '
            f'height="{self.height}" style="border:0" srcdoc="{escape(self.html)}"></iframe>'
        )


def view(
    subject: Setting[Model | Trajectory],
    *,
    end: Setting[float | None] = None,
    frames: Setting[int | None] = None,
    bounds: Setting[Sequence[AbstractBound | str]] = (),
    title: Setting[str | None] = None,
    height: Setting[int] = 760,
    visuals: Setting[Sequence[AbstractVisual]] = (),
) -> View:
    """The mechanism of a report in three dimensions, with its time slider and its reactions, for a
    notebook.

    **Arguments:** as of `write`; `height`: pixels, at least 200.

    **Returns:** a `View`, which a notebook shows.

    **Raises:** as `write`.
    """
    end = None if end is None else _settings.known_number(end, "end", above=0)
    if frames is not None:
        frames = _settings.whole_number(frames, "frames", least=2)
    height = _settings.whole_number(height, "height", least=200)
    heading = chosen_title(subject, title)
    system = system_of(subject)
    known, shapes = check_bounds(system, bounds), chosen_visuals(subject, visuals)
    motion = motion_of(subject, system, end, None, frames)
    contents = contents_of(motion, known, visuals=shapes, explained=False)
    return View(page(words_of(contents, heading, {}, whole=False), data_of(contents)), height)
