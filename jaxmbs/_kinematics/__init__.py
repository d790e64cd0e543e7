from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._assembly import (
        assemble as assemble,
        assemble_closed as assemble_closed,
        Assembly as Assembly,
        close as close,
        close_neighbour as close_neighbour,
        is_closed as is_closed,
        open_constraints as open_constraints,
        open_in as open_in,
        undefined as undefined,
    )
    from ._closing import (
        begin_closing as begin_closing,
        begin_sliding as begin_sliding,
        Lane as Lane,
        look_at_start as look_at_start,
        Slide as Slide,
        Start as Start,
        starts_closed as starts_closed,
        turn_closing as turn_closing,
        turn_sliding as turn_sliding,
    )
    from ._search import (
        assemble_least_squares as assemble_least_squares,
        geometric_descriptor as geometric_descriptor,
        position_residual as position_residual,
        Problem as Problem,
        scaled_geometric_matrix as scaled_geometric_matrix,
    )
else:
    _NAMES = {
        "_assembly": (
            "assemble",
            "assemble_closed",
            "Assembly",
            "close",
            "close_neighbour",
            "is_closed",
            "open_constraints",
            "open_in",
            "undefined",
        ),
        "_closing": (
            "begin_closing",
            "begin_sliding",
            "Lane",
            "look_at_start",
            "Slide",
            "Start",
            "starts_closed",
            "turn_closing",
            "turn_sliding",
        ),
        "_search": (
            "assemble_least_squares",
            "geometric_descriptor",
            "position_residual",
            "Problem",
            "scaled_geometric_matrix",
        ),
    }
    _load_late(__name__, _NAMES)
