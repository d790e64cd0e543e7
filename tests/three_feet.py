"""A mechanism in which what is unique of the reactions depends on where a joint stands."""

import jaxmbs as jm
from jaxmbs import planar


GRAVITY = 10.0
FOOT = "joints.P2.at.x"


def three_feet():
    """A beam on three feet at 0, 0.5 and 1 m: only while the middle one stands in the middle is the
    difference of the two others unique, and the rank is 3 wherever it stands."""
    body = planar.Body("beam", mass=3.0, inertia=0.2, position=(0.3, 0.0))
    pair = ("beam", "ground")
    feet = [
        planar.PointOnLine(name, pair, (x, 0.0), (1.0, 0.0))
        for name, x in (("P1", 0.0), ("P2", 0.5), ("P3", 1.0))
    ]
    stop = planar.PointOnLine("stop", pair, (0.0, 0.0), (0.0, 1.0))
    return jm.Model("feet", 2, bodies=[body], joints=[*feet, stop], gravity=(0.0, -GRAVITY))
