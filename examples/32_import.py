"""Example 32: a robot's file of another program.

A gripper of two four-bar fingers as MuJoCo writes it: a tree of bodies, whose loops are closed by
equality constraints and whose cranks are geared to each other. `import_model` makes a model of it
and lists what that does not have: shapes, limits, a camera. In space each finger is held across its
plane twice over, so that rigid bodies say nothing of the forces in its joints; the lift and the
gear are told. The picture shows the gripper and its joints by these verdicts.
"""

from pathlib import Path
from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs.io import import_model


jax.config.update("jax_enable_x64", True)

SIDE = """
<body name="{side} crank" pos="{x}0.03 0 0" childclass="{side}">
  <joint name="{side} drive" range="-1 1" limited="true"/>
  <geom fromto="0 0 0 {x}0.05 0 -0.06"/>
  <body name="{side} finger" pos="{x}0.05 0 -0.06">
    <joint name="{side} knuckle"/>
    <geom fromto="0 0 0 {y}0.02 0 -0.08"/>
  </body>
</body>
<body name="{side} rocker" pos="{x}0.01 0 -0.01" childclass="{side}">
  <joint name="{side} pivot"/>
  <geom fromto="0 0 0 {x}0.05 0 -0.06"/>
</body>
"""
LOOP = """
<connect name="{side} loop" body1="{side} rocker" body2="{side} finger" anchor="{x}0.05 0 -0.06"/>
"""
SIDES = ({"side": "left", "x": "-", "y": ""}, {"side": "right", "x": "", "y": "-"})
FILE = f"""
<mujoco model="gripper">
  <compiler angle="radian"/>
  <default>
    <joint damping="0.001"/>
    <geom type="capsule" size="0.008" density="2000"/>
    <default class="left"><joint axis="0 1 0"/></default>
    <default class="right"><joint axis="0 -1 0"/></default>
  </default>
  <worldbody>
    <camera name="eye" pos="0 -1 0.5"/>
    <body name="palm" pos="0 0 0.5">
      <joint name="lift" type="slide" axis="0 0 1" damping="20" stiffness="400"/>
      <inertial pos="0 0 0" mass="0.5" diaginertia="2e-3 2e-3 2e-3"/>
      {"".join(SIDE.format(**side) for side in SIDES)}
    </body>
  </worldbody>
  <equality>
    {"".join(LOOP.format(**side) for side in SIDES)}
    <joint name="gear" joint1="left drive" joint2="right drive" polycoef="0 1 0 0 0"/>
  </equality>
  <actuator><motor name="grip" joint="left drive" gear="2"/></actuator>
</mujoco>
"""
path = Path("gripper.xml")
path.write_text(FILE)
imported = import_model(path, controls={"grip": -0.01})
path.unlink()
print(imported)

system = imported.system()
verdicts = jm.analyze(system, system.reference_q)
print(verdicts)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
joints: dict[str, Any] = {joint.name: joint for joint in imported.model.joints}
# The gear is at no place.
places = {name: np.asarray(joint.at[0]) for name, joint in joints.items() if joint.located}
bars = [
    (f"{side} {first}", f"{side} {second}")
    for side in ("left", "right")
    for first, second in (("drive", "knuckle"), ("pivot", "loop"), ("knuckle", "loop"))
]
for first, second in bars:
    left.plot(*zip(places[first][[0, 2]], places[second][[0, 2]], strict=True), color="0.6", lw=5)
for name, place in places.items():
    known = bool(verdicts.unique(name))
    mark = {"marker": "o" if known else "X", "color": "black" if known else "white"}
    left.plot(*place[[0, 2]], ls="", ms=10, mec="black", **mark)
left.plot([], [], "o", color="black", label="reaction is unique")
left.plot([], [], "X", color="white", mec="black", label="reaction is not unique")
left.set(xlabel="x (m)", ylabel="z (m)", title="Joints of the gripper", aspect="equal")
left.set(xticks=[-0.08, -0.04, 0.0, 0.04, 0.08], ylim=(0.40, 0.54))
left.legend(loc="upper center", fontsize=9)

measures = dict(zip(verdicts.structure.constraint_names, verdicts.reaction_measure, strict=True))
sizes = [max(float(measures[name]), 1e-17) for name in joints]
shades = ["black" if verdicts.unique(name) else "white" for name in joints]
right.barh(list(joints), sizes, color=shades, edgecolor="black")
right.axvline(1e-6, color="0.4", ls="--")
right.text(3e-6, 0, "unique below 1e-6", va="center", fontsize=9)
right.set(xscale="log", xlabel="part of the reaction that loads do not decide (1)")
right.set_title("Verdicts")
right.invert_yaxis()
figure.savefig("32_import.png", dpi=150)
