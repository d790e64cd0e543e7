"""What the modules of random mechanisms build them with: see `random_mechanisms`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import oracle


GROUND = "ground"


def plain(value):
    """Arrays and NumPy numbers as lists and floats, as a model file gives them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value


class Builder:
    """Draws numbers and collects tables.

    Points keep apart, directions are never nearly parallel by accident.
    """

    def __init__(self, rng, name, dimension):
        self.rng, self.dimension = rng, dimension
        # m, half the side of the box of all points
        self.size = float(np.exp(rng.uniform(np.log(0.1), np.log(10.0))))
        self.drawn_points, self.drawn_units = [], []
        gravity = self.size * rng.normal(size=dimension)
        self.model = {"schema": 1, "name": name, "dimension": dimension}
        self.model |= {"gravity": plain(gravity), "body": [], "joint": []}

    # Numbers

    def uniform(self, low, high):
        return float(self.rng.uniform(low, high))

    def sign(self):
        return float(self.rng.choice([-1.0, 1.0]))

    def length(self, low=0.3, high=1.0):
        return self.size * self.uniform(low, high)

    def ratio(self):
        return self.sign() * self.uniform(0.4, 0.8)

    def point(self):
        """A point of the box, at least 0.15 of its half side from every other one."""
        while True:
            point = self.rng.uniform(-1.0, 1.0, size=self.dimension)
            if all(np.linalg.norm(point - other) > 0.15 for other in self.drawn_points):
                self.drawn_points.append(point)
                return self.size * point

    def points(self, count):
        return [self.point() for _ in range(count)]

    def unit(self):
        """A unit vector, at least 0.2 rad from every other one and from its opposite."""
        while True:
            unit = self.rng.normal(size=self.dimension)
            unit /= np.linalg.norm(unit)
            if all(abs(unit @ other) < np.cos(0.2) for other in self.drawn_units):
                self.drawn_units.append(unit)
                return unit

    def across(self, unit):
        """A unit vector normal to the given one."""
        normal = np.cross(unit, self.unit())
        return normal / np.linalg.norm(normal)

    def motion(self, kind):
        """A motion of the given type with value 0 at time 0."""
        a, b, c = (self.sign() * self.length(0.1, 0.4) for _ in range(3))
        if kind == "sine":
            phase = self.uniform(-3.0, 3.0)
            values = {"offset": -a * float(np.sin(phase)), "amplitude": a}
            values |= {"frequency": self.uniform(0.2, 2.0), "phase": phase}
        elif kind == "linear":
            values = {"offset": 0.0, "rate": a}
        elif kind == "polynomial":
            values = {"coefficients": [0.0, a, b]}
        elif kind == "table":
            times = [-1.0, 0.0, self.uniform(0.5, 1.0), self.uniform(1.5, 2.0), 3.0]
            values = {"times": times, "values": [a, 0.0, b, c, a]}
        else:
            times = [0.2, self.uniform(0.5, 1.0), self.uniform(1.5, 2.0)]
            values = {"times": times, "values": [0.0, a, b]}
        return {"type": kind, **values}

    # Tables

    def body(self, name, position=None):
        """A body of random mass, inertia and orientation.

        Its centre of mass is a random point unless given.
        """
        position = self.point() if position is None else position
        mass = self.uniform(0.5, 5.0)
        second_moments = mass * self.size**2 * self.rng.uniform(0.05, 0.3, size=3)
        table = {"name": name, "mass": mass, "position": plain(position)}
        if self.dimension == 2:
            table |= {"inertia": second_moments[0], "angle": self.uniform(-np.pi, np.pi)}
        else:
            # of a body with these second moments along its axes
            inertia = second_moments.sum() - second_moments
            if len(self.model["body"]) % 2:
                R = oracle.quaternion_matrix(self.rng.normal(size=4))
                inertia = R @ np.diag(inertia) @ R.T
                inertia = 0.5 * (inertia + inertia.T)
            quaternion = self.rng.normal(size=4)
            orientation = quaternion / np.linalg.norm(quaternion)
            table |= {"inertia": inertia, "orientation": orientation}
        self.model["body"].append({key: plain(value) for key, value in table.items()})

    def bodies(self, names):
        for name in names.split():
            self.body(name)

    def joint(self, name, kind, bodies, **keys):
        """A joint table.

        Axes are written with a random length and, as most joints do not mind, a random sign.
        """
        if "axis" in keys:
            keys["axis"] = keys["axis"] * self.uniform(0.5, 2.0) * self.sign()
        bodies = bodies.split()
        table = {"name": name, "type": kind, "bodies": bodies, **keys}
        self.model["joint"].append({key: plain(value) for key, value in table.items()})

    def pair(self, name, kind, bodies, at=None, axis=None, **keys):
        """A joint at a point, with an axis where its type has one; both random unless given."""
        if kind not in ("fixed", "spherical") and (self.dimension == 3 or kind != "revolute"):
            keys["axis"] = self.unit() if axis is None else axis
        self.joint(name, kind, bodies, at=self.point() if at is None else at, **keys)

    def hinges(self, pairs, at=None, axis=None):
        """Revolutes from a text like `A ground crank, B crank rod`.

        Each has its own point and axis unless given.
        """
        for pair in pairs.split(","):
            name, bodies = pair.split(maxsplit=1)
            self.pair(name, "revolute", bodies, at, axis)

    def balls(self, pairs):
        """Spherical joints from a text as in `hinges`, each at its own point."""
        for pair in pairs.split(","):
            name, bodies = pair.split(maxsplit=1)
            self.pair(name, "spherical", bodies)

    def gear(self, name, bodies, ratio, **carrier):
        self.joint(name, "gear", bodies, ratio=ratio, **carrier)

    def link(self, name, bodies, points=None, **length):
        points = self.points(2) if points is None else points
        self.joint(name, "distance", bodies, points=points, **length)

    def driver(self, name, joint, coordinate, kind):
        table = {"name": name, "joint": joint, "coordinate": coordinate}
        table["motion"] = self.motion(kind)
        self.model.setdefault("driver", []).append(table)


def clear(verdicts):
    """Whether every rank and every verdict is far from its threshold."""
    margins = verdicts.margins
    return (
        (verdicts.rank_gap is None or verdicts.rank_gap > 1e6)
        and margins["smallest_kept"] > 1e-5  # over all ranks, that of the whole C among them
        and margins["largest_dropped"] < 1e-12
        and margins["smallest_nonunique"] > 1e-3
        and margins["largest_unique"] < 1e-10
    )


@dataclass(frozen=True)
class Structure:
    """One mechanism with random numbers; `redundancy` holds for all of them."""

    name: str
    dimension: int
    redundancy: int
    build: Callable[[Builder], None]

    def __call__(self, rng: np.random.Generator) -> dict:
        for _ in range(100):
            builder = Builder(rng, self.name, self.dimension)
            self.build(builder)
            if clear(oracle.solvability(builder.model, dependent_sets=False)):
                return builder.model
        raise RuntimeError(f"{self.name}: no clear model in 100 trials")


def collector(structures: list[Structure]):
    """A decorator factory that adds functions of a builder to a list, named after them."""

    def structure(dimension, redundancy):
        def add(build):
            name = build.__name__.replace("_", "-")
            structures.append(Structure(name, dimension, redundancy, build))
            return build

        return add

    return structure
