"""Pictures (extra `cli`)."""

from ._animation import animate as animate
from ._flexibility import draw_flexibility as draw_flexibility
from ._history import (
    draw_curve as draw_curve,
    draw_force as draw_force,
    draw_reactions as draw_reactions,
)
from ._map import draw_map as draw_map
from ._mechanism import draw_mechanism as draw_mechanism
from ._spread import draw_spread as draw_spread
from ._study import draw_study as draw_study
