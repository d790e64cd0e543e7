"""A planar model file with everything that is expanded into parts."""

import tomllib
from typing import Any


# A crank, a lift under it, and two legs that hang from it, one of them in a leg.
_TEXT = """
schema = 1
name = "crane"
dimension = 2
gravity = [0.0, "-g"]

[parameters]
g = 9.81
length = 0.4
width = "length / 10"
tip = ["length", 0.1]

[[body]]
name = "crank"
shape = { type = "box", size = ["length", "width", 0.02], density = 7850.0 }
position = ["length / 2", 0.0]

[[body]]
name = "weight"
mass = "3 * length"
inertia = 0.02
position = { body = "crank", point = ["length / 2", "-width"] }
angle = { body = "crank", angle = 0.25 }

[[joint]]
name = "A"
type = "revolute"
bodies = ["ground", "crank"]
at = { body = "crank", point = ["-length / 2", 0.0] }

[[joint]]
name = "B"
type = "revolute"
bodies = ["crank", "weight"]
points = ["tip", { body = "weight", point = [0.0, "width"] }]

[[driver]]
name = "motor"
joint = "A"
coordinate = "rotation"
motion = { type = "polynomial", coefficients = [0, "2 * pi * length"] }

[[force]]
name = "spring"
type = "spring_damper"
bodies = ["ground", "weight"]
points = [[0.0, 1.0], { body = "weight", point = [0.0, 0.0] }]
stiffness = "100 / length"

[[cylinder]]
name = "lift"
bodies = ["ground", "crank"]
points = [["length", -0.5], { body = "crank", point = [0.0, 0.0] }]
barrel = { type = "tube", length = 0.3, radius = 0.04, inner_radius = 0.03, density = 7850.0 }
rod = { type = "cylinder", length = "length", radius = 0.02, mass = 2.0 }
force = 500.0
damping = "10 * length"

[[assembly]]
name = "toe"
outer = ["leg"]
[[assembly.body]]
name = "tip"
mass = 0.1
inertia = 0.001
position = [0.05, 0.0]
[[assembly.joint]]
name = "pin"
type = "revolute"
bodies = ["leg", "tip"]
at = [0.0, 0.0]

[[assembly]]
name = "leg"
outer = ["top"]
required = ["reach"]
parameters = { thickness = "reach / 8" }
[[assembly.body]]
name = "shank"
mass = "thickness * 10"
inertia = 0.01
position = ["reach / 2", 0.0]
velocity = [0.5, 0.0]
[[assembly.joint]]
name = "knee"
type = "revolute"
bodies = ["top", "shank"]
at = [0.0, 0.0]
[[assembly.use]]
name = "toe"
assembly = "toe"
position = ["reach", 0.0]
bodies = { leg = "shank" }

[[use]]
name = "left"
assembly = "leg"
position = { body = "crank", point = [0.0, 0.0] }
direction = [0.0, -1.0]
bodies = { top = "crank" }
parameters = { reach = "length / 2" }

[[use]]
name = "right"
assembly = "leg"
position = [0.3, 0.0]
angle = -0.5
bodies = { top = "crank" }
parameters = { reach = 0.25, thickness = 0.05 }
"""
CRANE: dict[str, Any] = tomllib.loads(_TEXT)
