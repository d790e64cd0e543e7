"""A slider-crank with two guides and numbers of its own, for tests of the viewer."""

import functools
import tomllib
from typing import NamedTuple

import numpy as np

import jaxmbs as jm
from jaxmbs.io import model_from_tables


CRANK, ROD = 0.1, 0.3

# A name that would run a program wherever it is not escaped.
TRAP = "<img src=x onerror=alert(1)>"

_FILE = f"""
schema = 1
name = "slider & crank"
dimension = 2
gravity = [0.0, -9.81]

[parameters]
crank = {CRANK}
rod = {ROD}

[[body]]
name = "crank"
mass = 0.8
inertia = 0.0005
position = ["crank / 2", 0.0]

[[body]]
name = "rod"
mass = 0.5
inertia = 0.002
position = ["crank + rod / 2", 0.0]

[[body]]
name = "slider"
mass = 2.0
inertia = 0.01
position = ["crank + rod", 0.0]

[[joint]]
name = "A"
type = "revolute"
bodies = ["ground", "crank"]
at = [0.0, 0.0]

[[joint]]
name = "B"
type = "revolute"
bodies = ["crank", "rod"]
at = ["crank", 0.0]

[[joint]]
name = "C"
type = "revolute"
bodies = ["rod", "slider"]
at = ["crank + rod", 0.0]

[[joint]]
name = "{TRAP}"
type = "translational"
bodies = ["ground", "slider"]
at = ["crank + rod", 0.0]
axis = [1.0, 0.0]

[[joint]]
name = "upper"
type = "translational"
bodies = ["ground", "slider"]
at = ["crank + rod", 0.05]
axis = [1.0, 0.0]
"""

RATE = 2.0
_DRIVER = f"""
[[driver]]
name = "motor"
joint = "A"
coordinate = "rotation"
motion = {{type = "linear", rate = {RATE}, offset = 0.0}}
"""


@functools.cache
def slider_crank(driven: bool = True) -> jm.Model:
    """The model."""
    return model_from_tables(tomllib.loads(_FILE + (_DRIVER if driven else "")))


class Positions(NamedTuple):
    """The closed form: positions and angles of crank, rod and slider."""

    q: np.ndarray

    @classmethod
    def at(cls, angle: float, crank: float = CRANK, rod: float = ROD) -> "Positions":
        """At an angle of the crank, with the slider to the right."""
        pin = crank * np.array([np.cos(angle), np.sin(angle)])
        tilt = -np.arcsin(pin[1] / rod)
        end = pin[0] + rod * np.cos(tilt)
        middle = 0.5 * (pin + np.array([end, 0.0]))
        return cls(np.array([*(0.5 * pin), angle, *middle, tilt, end, 0.0, 0.0]))
