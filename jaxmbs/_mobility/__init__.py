from ._mobility import (
    is_left_out as is_left_out,
    LEFT_OUT as LEFT_OUT,
    mobility as mobility,
    without_asking as without_asking,
)
from ._report import Branch as Branch, Mobility as Mobility
