"""The moving picture of a report, in a notebook."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from .. import _settings
from .._custom_types import Setting
from .._dynamics import Trajectory
from .._ranges import AbstractBound
from .._system import Model
from ._bands import check_bounds
from ._contents import contents_of
from ._data import data_of
from ._page import page
from ._states import motion_of, system_of
from ._write import chosen_title, words_of


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
    known = check_bounds(system, bounds)
    motion = motion_of(subject, system, end, None, frames)
    contents = contents_of(motion, known, explained=False)
    return View(page(words_of(contents, heading, {}, whole=False), data_of(contents)), height)
