"""Example 50: a finger that one tendon bends.

A finger of three links as MuJoCo writes it: a tendon runs through sites on the palm side of all
links and is pulled at its end, springs in the hinges stretch the finger, and a second tendon along
both outer hinges makes them bend alike, as in many hands of robots. `import_model` makes tendons of
both: lengths without a constraint, along which a motor and a spring act. The picture shows the
finger on its way to rest, and its angles over time.

    python examples/50_tendon.py
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs.io import import_model


jax.config.update("jax_enable_x64", True)

LINKS = (0.05, 0.03, 0.025)
PULL = 3.0
FILE = """
<mujoco model="finger">
  <compiler angle="radian"/>
  <option gravity="0 0 -9.81"/>
  <default>
    <joint axis="0 1 0" stiffness="0.035" damping="0.0008"/>
    <geom type="capsule" size="0.007" density="1500"/>
  </default>
  <worldbody>
    <site name="palm" pos="-0.03 0 -0.008"/>
    <site name="root" pos="-0.008 0 -0.009"/>
    <body name="proximal">
      <joint name="knuckle"/>
      <geom fromto="0 0 0 0.05 0 0"/>
      <site name="p1" pos="0.008 0 -0.009"/>
      <site name="p2" pos="0.042 0 -0.009"/>
      <body name="middle" pos="0.05 0 0">
        <joint name="middle hinge"/>
        <geom fromto="0 0 0 0.03 0 0"/>
        <site name="m1" pos="0.008 0 -0.008"/>
        <site name="m2" pos="0.023 0 -0.008"/>
        <body name="tip" pos="0.03 0 0">
          <joint name="outer hinge"/>
          <geom fromto="0 0 0 0.025 0 0"/>
          <site name="t1" pos="0.008 0 -0.007"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="flexor">
      <site site="palm"/><site site="root"/><site site="p1"/><site site="p2"/>
      <site site="m1"/><site site="m2"/><site site="t1"/>
    </spatial>
    <fixed name="link" stiffness="4000" damping="4">
      <joint joint="middle hinge" coef="0.01"/><joint joint="outer hinge" coef="-0.01"/>
    </fixed>
  </tendon>
  <actuator><motor name="pull" tendon="flexor" gear="-1"/></actuator>
</mujoco>
"""

path = Path("finger.xml")
path.write_text(FILE)
imported = import_model(path, controls={"pull": PULL})
path.unlink()
print(imported)
system = imported.system()
print(jm.analyze(system, system.reference_q))
run = jm.simulate(system, system.reference_q, jnp.zeros(system.structure.nv), end=0.5, every=0.0025)
print(run)

times, q = np.asarray(run.times), np.asarray(run.q)
quaternions = q.reshape(len(times), -1, 7)[:, :, 3:]
# About y alone; a link's angle is that of all hinges before it.
absolute = 2 * np.arctan2(quaternions[:, :, 2], quaternions[:, :, 0])
angles = np.degrees(np.diff(absolute, axis=1, prepend=0.0))

figure, (picture, curves) = plt.subplots(1, 2, figsize=(9.0, 4.0), layout="constrained")
shown = [0, 12, 30, len(times) - 1]
greys = ["0.82", "0.65", "0.45", "0.0"]
for k, grey in zip(shown, greys, strict=True):
    heading = absolute[k]
    steps = np.array(LINKS)[:, None] * np.stack([np.cos(heading), -np.sin(heading)], axis=1)
    knots = np.concatenate([[[0.0, 0.0]], np.cumsum(steps, axis=0)])
    picture.plot(*(1e3 * knots.T), "-", color=grey, linewidth=7, solid_capstyle="round", alpha=0.5)
    picture.plot(*(1e3 * knots[:-1].T), "o", color="white", markeredgecolor=grey, markersize=5)
    ((line, _),) = system.drawn_ways(jnp.asarray(q[k]))
    line = np.asarray(line)[0]
    label = f"{1e3 * times[k]:.0f} ms"
    picture.plot(1e3 * line[:, 0], 1e3 * line[:, 2], "-", color=grey, linewidth=1.3, label=label)
picture.set_aspect("equal")
picture.set_xlabel("x (mm)")
picture.set_ylabel("z (mm)")
picture.set_title("finger and flexor tendon", fontsize=10)
picture.grid(alpha=0.25)
picture.legend(fontsize=8, loc="lower right", title="thin line: tendon")

for k, (name, style) in enumerate((("knuckle", "-"), ("middle hinge", "--"), ("outer hinge", ":"))):
    curves.plot(1e3 * times, angles[:, k], f"k{style}", linewidth=1.5, label=name)
curves.set_xlabel("time (ms)")
curves.set_ylabel("angle of the hinge (deg)")
curves.set_title(f"pulled with {PULL:g} N", fontsize=10)
curves.grid(alpha=0.3)
curves.legend(fontsize=9, loc="lower right")
figure.suptitle("A finger bent by one tendon", fontsize=11)
figure.savefig("50_tendon.png", dpi=130)
