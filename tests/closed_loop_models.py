"""Mechanisms with closed loops that other programs refuse or hold by springs."""

from collections.abc import Mapping
from typing import Any


# Two four-bar fingers whose cranks are geared to each other: the loops are closed by `connect`.
GRIPPER = """
<mujoco model="four-bar gripper">
  <default>
    <joint axis="0 1 0" damping="0.001"/>
    <geom type="capsule" size="0.008" density="2000"/>
    <default class="other"><joint axis="0 -1 0"/></default>
  </default>
  <worldbody>
    <body name="palm" pos="0 0 0.5">
      <joint name="lift" type="slide" axis="0 0 1" damping="20" stiffness="400"/>
      <inertial pos="0 0 0" mass="0.5" diaginertia="2e-3 2e-3 2e-3"/>
      <body name="left crank" pos="0.03 0 0">
        <joint name="left drive" stiffness="0.5"/>
        <geom fromto="0 0 0 0.05 0 -0.06"/>
        <body name="left finger" pos="0.05 0 -0.06">
          <joint name="left knuckle"/>
          <geom fromto="0 0 0 -0.02 0 -0.08"/>
        </body>
      </body>
      <body name="left rocker" pos="0.01 0 -0.01">
        <joint name="left pivot"/>
        <geom fromto="0 0 0 0.05 0 -0.06"/>
      </body>
      <body name="right crank" pos="-0.03 0 0" childclass="other">
        <joint name="right drive"/>
        <geom fromto="0 0 0 -0.05 0 -0.06"/>
        <body name="right finger" pos="-0.05 0 -0.06">
          <joint name="right knuckle"/>
          <geom fromto="0 0 0 0.02 0 -0.08"/>
        </body>
      </body>
      <body name="right rocker" pos="-0.01 0 -0.01" childclass="other">
        <joint name="right pivot"/>
        <geom fromto="0 0 0 -0.05 0 -0.06"/>
      </body>
    </body>
  </worldbody>
  <equality>
    <connect name="left loop" body1="left rocker" body2="left finger" anchor="0.05 0 -0.06"/>
    <connect name="right loop" body1="right rocker" body2="right finger" anchor="-0.05 0 -0.06"/>
    <joint name="gear" joint1="left drive" joint2="right drive" polycoef="0 1 0 0 0"/>
  </equality>
  <actuator><motor name="grip" joint="left drive" gear="2"/></actuator>
</mujoco>
"""


def scott_russell(dimension: int) -> Mapping[str, Any]:
    """A double Scott-Russell mechanism: two straight-line linkages, each a long bar from a slider
    on the floor to the platform, whose middle a bar of half the length holds at the height of the
    floor, carry a platform; between the left one and the platform there is another slider.

    Someone who models it in space with revolute joints is told that the system's Jacobian is
    singular (github.com/jgerstmayr/EXUDYN, issue 39): its three loops are planar, and each of them
    holds three motions twice that the plane has not got. Lengths and masses were chosen.
    """
    half, up, apart = 0.4, 0.3, 1.0

    def at(x: float, z: float) -> list[float]:
        return [x, z] if dimension == 2 else [x, 0.0, z]

    bodies, joints = [], []

    def body(name: str, mass: float, x: float, z: float, length: float) -> None:
        moment = mass * length**2 / 12 + 1e-3
        inertia: Any = moment if dimension == 2 else [moment, moment, moment]
        bodies.append({"name": name, "mass": mass, "inertia": inertia, "position": at(x, z)})

    def pin(name: str, first: str, second: str, x: float, z: float) -> None:
        axis = {} if dimension == 2 else {"axis": [0.0, 1.0, 0.0]}
        pair = {"name": name, "type": "revolute", "bodies": [first, second]}
        joints.append(pair | {"at": at(x, z)} | axis)

    def slide(name: str, first: str, second: str, x: float, z: float) -> None:
        pair = {"name": name, "type": "translational", "bodies": [first, second]}
        joints.append(pair | {"at": at(x, z), "axis": at(1.0, 0.0)})

    for side, place in (("left", 0.0), ("right", apart)):
        # The ends of the long bar are twice as far from the pivot's level as its middle.
        body(f"{side} long bar", 2.0, place + half / 2, up, 2 * half)
        body(f"{side} short bar", 1.0, place + half / 4, up / 2, half)
        body(f"{side} slider", 0.5, place + half, 0.0, 0.1)
        pin(f"{side} pivot", "ground", f"{side} short bar", place, 0.0)
        pin(f"{side} middle", f"{side} short bar", f"{side} long bar", place + half / 2, up)
        pin(f"{side} foot", f"{side} slider", f"{side} long bar", place + half, 0.0)
        slide(f"{side} rail", "ground", f"{side} slider", place + half, 0.0)
    body("top slider", 0.5, 0.0, 2 * up, 0.1)
    body("platform", 4.0, apart / 2, 2 * up, apart)
    pin("left top", "left long bar", "top slider", 0.0, 2 * up)
    slide("platform slide", "top slider", "platform", 0.0, 2 * up)
    pin("right top", "right long bar", "platform", apart, 2 * up)
    gravity = [0.0, -9.81] if dimension == 2 else [0.0, 0.0, -9.81]
    head = {"schema": 1, "name": "double Scott-Russell", "dimension": dimension}
    return head | {"gravity": gravity, "body": bodies, "joint": joints}
