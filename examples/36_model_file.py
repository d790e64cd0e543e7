"""Example 36: a platform on six legs, from one leg.

A model file may have parameters, and parts that are declared once and used several times. Here the
leg of a Stewart platform is one assembly, a cylinder between the ground and the plate, and six
uses of it say at which angles it stands. A sweep over the plate's radius and the angle between its
joints, which are parameters, takes along all that follows from them: points, lengths and directions
of legs, masses, inertias. Where the joints of plate and ground are similar hexagons the platform is
singular and no finite forces hold it. Derivatives pass through the same expressions, and what was
found is written to a file with its parameters.
"""

import tomllib
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs.io import model_from_tables, write_model


jax.config.update("jax_enable_x64", True)

TEXT = """
schema = 1
name = "platform"
dimension = 3
gravity = [0, 0, -9.81]

[parameters]
base_radius = 1.0                  # m
top_radius = "0.6 * base_radius"
height = 1.2                       # m
base_gap = "radians(12)"           # half the angle between the joints of two neighbours
top_gap = 0.8                      # rad, the same on the plate

[[body]]
name = "plate"
shape = { type = "cylinder", radius = "top_radius", length = 0.05, density = 2700 }
position = [0, 0, "height"]

[[force]]
name = "load"
type = "applied"
body = "plate"
at = { body = "plate", point = ["top_radius / 2", 0, 0] }
force = [300, 200, -2000]

[[assembly]]
name = "leg"
outer = ["top"]
required = ["base_angle", "top_angle"]

[[assembly.cylinder]]
name = "actuator"
bodies = ["ground", "top"]
points = [
    ["base_radius * cos(base_angle)", "base_radius * sin(base_angle)", 0],
    { body = "top", point = ["top_radius * cos(top_angle)", "top_radius * sin(top_angle)", 0] },
]
barrel = { type = "tube", length = 0.8, radius = 0.05, inner_radius = 0.04, density = 7850 }
rod = { type = "cylinder", length = 0.8, radius = 0.03, density = 7850 }
motion = { type = "polynomial", coefficients = [0] }
"""
for k in range(6):
    corner, side = 120 * (k // 2), "-+"[k % 2]
    TEXT += f"""
[[use]]
name = "leg {k + 1}"
assembly = "leg"
bodies = {{ top = "plate" }}

[use.parameters]
base_angle = "radians({corner}) {side} base_gap"
top_angle = "radians({corner}) {side} top_gap"
"""
model = model_from_tables(tomllib.loads(TEXT))
print(f"{len(model.bodies)} bodies, {len(model.joints)} joints, {len(model.drivers)} drivers")


def largest(system, q, v, t):
    """The largest force of a driver at rest (N)."""
    multipliers = jm.formulations.MinimumNorm().solve(system.equations(q, v, t)).multipliers
    rows = [system.structure.rows_of(f"leg {k} actuator drive")[0] for k in range(1, 7)]
    return jnp.max(jnp.abs(multipliers[np.array(rows)]))


gaps, radii = np.linspace(0.05, 1.0, 39), (0.4, 0.6, 0.8)
cases = jm.Cases.grid({"parameters.top_radius": radii, "parameters.top_gap": gaps})
found = jm.sweep(largest, model, cases, assemble=False, width=len(gaps))
forces = found.answers().reshape(len(radii), len(gaps))


@jax.jit
@jax.value_and_grad
def leg_length(numbers):
    """From foot to head of the first leg (m)."""
    joints: Any = jm.vary(model, numbers).joints
    pins = {joint.name: joint.at[0] for joint in joints}
    return jnp.linalg.norm(pins["leg 1 actuator head"] - pins["leg 1 actuator foot"])


length, slopes = leg_length({"parameters.base_radius": jnp.array(1.0)})
print(
    f"a leg is {length:.3f} m long, by the base's radius {slopes['parameters.base_radius']:.3f} m/m"
)
best = jm.vary(model, {"parameters.top_gap": gaps[np.argmin(forces[1])]})
print(write_model(best).split("[[body]]")[0])

figure = plt.figure(figsize=(10.5, 4.2), layout="constrained")
left = figure.add_subplot(1, 2, 1, projection="3d")
left.set_box_aspect((1, 1, 1), zoom=0.8)  # pyright: ignore[reportArgumentType]
joints: Any = best.joints
pins = {joint.name: np.asarray(joint.at[0]) for joint in joints}
ends = [
    np.array([pins[f"leg {k} actuator {end}"] for k in (*range(1, 7), 1)])
    for end in ("foot", "head")
]
for foot, head in zip(*ends, strict=True):
    left.plot(*np.stack([foot, head]).T, color="0.2", lw=3)
left.plot(*ends[0].T, "o", color="0.5")
order = np.argsort(np.arctan2(ends[1][:-1, 1], ends[1][:-1, 0]))
left.plot_trisurf(*ends[1][:-1][order].T + np.array([[0], [0], [1e-9]]), color="0.8", alpha=0.7)
left.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)")
left.set(xticks=(-0.5, 0.0, 0.5, 1.0), yticks=(-1.0, 0.0, 1.0), zticks=(0.0, 0.6, 1.2))
left.set_aspect("equal")
left.set_anchor("W")
right = figure.add_subplot(1, 2, 2)
for radius, values, line in zip(radii, forces, ("-", "--", ":"), strict=True):
    right.semilogy(np.degrees(gaps), values / 1e3, "k" + line, label=f"plate's radius {radius} m")
right.axvline(12.0, color="0.7", lw=4, zorder=0, label="similar hexagons: singular")
right.set(xlabel="angle of the plate's joints (deg)", ylabel="largest force of a leg (kN)")
right.legend()
right.grid(alpha=0.3)
figure.savefig("36_model_file.png", dpi=130)
