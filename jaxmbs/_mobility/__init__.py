from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._mobility import (
        is_left_out as is_left_out,
        LEFT_OUT as LEFT_OUT,
        mobility as mobility,
        without_asking as without_asking,
    )
    from ._report import Branch as Branch, Mobility as Mobility
else:
    _NAMES = {
        "_mobility": ("is_left_out", "LEFT_OUT", "mobility", "without_asking"),
        "_report": ("Branch", "Mobility"),
    }
    _load_late(__name__, _NAMES)
