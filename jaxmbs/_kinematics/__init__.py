from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._assembly import (
        assemble as assemble,
        Assembly as Assembly,
        close as close,
        is_closed as is_closed,
        open_constraints as open_constraints,
        open_in as open_in,
        undefined as undefined,
    )
    from ._closing import (
        begin_closing as begin_closing,
        Lane as Lane,
        look_at_start as look_at_start,
        Start as Start,
        turn_closing as turn_closing,
    )
    from ._geometric_rows import (
        geometric_descriptor as geometric_descriptor,
        position_residual as position_residual,
        scaled_geometric_matrix as scaled_geometric_matrix,
    )
    from ._least_squares import assemble_least_squares as assemble_least_squares
    from ._search import Problem as Problem
    from ._sliding import (
        begin_sliding as begin_sliding,
        Slide as Slide,
        turn_sliding as turn_sliding,
    )
else:
    _NAMES = {
        "_assembly": (
            "assemble",
            "Assembly",
            "close",
            "is_closed",
            "open_constraints",
            "open_in",
            "undefined",
        ),
        "_closing": ("begin_closing", "Lane", "look_at_start", "Start", "turn_closing"),
        "_geometric_rows": ("geometric_descriptor", "position_residual", "scaled_geometric_matrix"),
        "_least_squares": ("assemble_least_squares",),
        "_search": ("Problem",),
        "_sliding": ("begin_sliding", "Slide", "turn_sliding"),
    }
    _load_late(__name__, _NAMES)
