"""Random trees in MJCF: every joint that is carried, several on one body, springs, dampers,
armature, motors, inertia given and from shapes, bodies that are welded to others."""

from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np


class _Writer:
    def __init__(self, rng: np.random.Generator):
        self.rng = rng
        self.root = Element("mujoco", model="trees")
        SubElement(self.root, "compiler", angle="radian")
        self.world = SubElement(self.root, "worldbody")
        self.actuators = SubElement(self.root, "actuator")
        self.controls: dict[str, float] = {}

    def numbers(self, count: int, size: float = 1.0) -> str:
        return _text(self.rng.normal(size=count) * size)

    def positive(self, low: float, high: float, count: int = 1) -> str:
        return _text(self.rng.uniform(low, high, size=count))

    def tree(self, name: str) -> None:
        above = [self.world]
        for k in range(int(self.rng.integers(3, 6))):
            place = int(self.rng.integers(len(above)))
            pose = {"pos": self.numbers(3, 0.4), "quat": self.numbers(4)}
            body = SubElement(above[place], "body", {"name": f"{name} {k}", **pose})
            self.joints(body, f"{name} {k}", at_root=above[place] is self.world)
            self.mass(body)
            above = [*above[1:], body] if k == 0 else [*above, body]

    def mass(self, body: Element) -> None:
        if self.rng.random() < 0.5:
            # Any moments between one and two are those of some body.
            moments = self.positive(1.0, 2.0, 3)
            pose = {"pos": self.numbers(3, 0.2), "quat": self.numbers(4)}
            mass = {"mass": self.positive(0.5, 3), "diaginertia": moments}
            SubElement(body, "inertial", mass | pose)
        else:
            SubElement(body, "geom", type="box", size=self.positive(0.05, 0.3, 3))
            pose = {"pos": self.numbers(3, 0.2)}
            shape = {"type": "capsule", "size": self.positive(0.05, 0.3, 2)}
            SubElement(body, "geom", shape | pose)

    def joints(self, body: Element, name: str, at_root: bool) -> None:
        draw = self.rng.random()
        if at_root and draw < 0.3:
            SubElement(body, "freejoint", name=f"{name} free")
        elif draw < 0.2 and not at_root:
            return
        elif draw < 0.4:
            acting = {"stiffness": self.positive(0, 3), "damping": self.positive(0, 1)}
            ball = {"name": f"{name} ball", "type": "ball"}
            SubElement(body, "joint", ball | acting | self.drive())
        else:
            for k in range(int(self.rng.choice([1, 1, 1, 2, 3]))):
                self.joint(body, f"{name} {'abc'[k]}")

    def drive(self) -> dict[str, str]:
        return {"armature": self.positive(0.01, 0.5)} if self.rng.random() < 0.5 else {}

    def joint(self, body: Element, name: str) -> None:
        kind = "hinge" if self.rng.random() < 0.65 else "slide"
        given = {"axis": self.numbers(3), "pos": self.numbers(3, 0.2), "ref": self.numbers(1, 0.3)}
        if self.rng.random() < 0.5:
            given["damping"] = self.positive(0, 1)
        # The angle of a spring is known up to a turn, so that hinges have weak ones that are near.
        if self.rng.random() < 0.5:
            given |= {"stiffness": self.positive(0, 3), "springref": given["ref"]}
        if kind == "hinge":
            given["frictionloss"] = "0.2"
        SubElement(body, "joint", {"name": name, "type": kind} | given | self.drive())
        draw = self.rng.random()
        if draw < 0.6:
            motor = {"name": f"{name} motor", "joint": name, "gear": self.positive(1, 3)}
            SubElement(self.actuators, "motor", motor)
            self.controls[motor["name"]] = float(self.rng.normal())
        if draw < 0.2:
            speed = {"name": f"{name} speed", "joint": name, "kv": self.positive(1, 3)}
            SubElement(self.actuators, "velocity", speed)
            self.controls[speed["name"]] = float(self.rng.normal())


def random_trees(path: Path, rng: np.random.Generator, count: int) -> dict[str, float]:
    """Write a file of so many trees; the control inputs of its actuators."""
    writer = _Writer(rng)
    for k in range(count):
        writer.tree(f"tree {k}")
    path.write_bytes(ElementTree.tostring(writer.root))
    return writer.controls


def _text(numbers: np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in numbers)
