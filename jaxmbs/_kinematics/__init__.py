from ._assembly import (
    assemble as assemble,
    Assembly as Assembly,
    close as close,
    is_closed as is_closed,
    open_constraints as open_constraints,
)
