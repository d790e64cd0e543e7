"""Pictures (extra `cli`)."""

from ._animation import animate as animate
from ._history import (
    draw_curve as draw_curve,
    draw_driving as draw_driving,
    draw_flexibility as draw_flexibility,
    draw_force as draw_force,
    draw_reactions as draw_reactions,
    draw_spread as draw_spread,
    draw_study as draw_study,
)
from ._map import draw_map as draw_map
from ._mechanism import draw_mechanism as draw_mechanism
