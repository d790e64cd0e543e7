"""Example 24: a platform whose legs carry alike.

Four lower links share the load of a platform as their stiffness says, and badly: at the start one
of them carries eight times as much as another. Here their loads become as equal as can be, by where
they are attached (each link is moved as a whole, along the base by at most 0.15 m each way)
and by how stiff they are (half to twice as much as before). Links that are moved so stay parallel,
and the redundant constraint stays redundant: the reactions have a derivative along such a design,
because elastic links decide them. With rigid ones there is nothing to differentiate.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import jaxmbs as jm
from jaxmbs import elastic, spatial


jax.config.update("jax_enable_x64", True)

model: Any = jm.mechanisms.parallelogram()
ends = {joint.name: np.asarray(joint.at[0]) for joint in model.joints}
lower = ("AB", "CD", "EF", "GH")
stiffness = 17e6  # N/m


def designed(design):
    """The mechanism with its lower links moved along x and y (m, two for each) and with other
    stiffnesses (logarithms of factors)."""
    moved = {name: design[2 * k : 2 * k + 2] for k, name in enumerate(lower)}
    points = dict(ends)
    bodies = {body.name: body for body in model.bodies}
    for name, (x, y) in moved.items():
        aside = jnp.stack([x, y, jnp.zeros_like(x)])
        points |= {end: ends[end] + aside for end in name}
        place = bodies[f"link {name}"].position + aside
        bodies[f"link {name}"] = eqx.tree_at(lambda b: b.position, bodies[f"link {name}"], place)
    joints = [spatial.Spherical(j.name, j.bodies, at=points[j.name]) for j in model.joints]
    rods = [
        elastic.Rod(
            name,
            f"link {name}",
            points=jnp.stack([points[name[0]], points[name[1]]]),
            stiffness=stiffness * jnp.exp(design[8 + k]),
        )
        for k, name in enumerate(lower)
    ]
    return jm.MultibodySystem(
        list(bodies.values()), joints, forces=model.forces, compliances=rods, gravity=model.gravity
    )


def forces(design):
    """Axial forces of the lower links at the start (N, compression positive)."""
    system = designed(design)
    q, v = system.reference_q, system.initial_v
    found = jm.formulations.ElasticResolution().solve(system.equations(q, v, 0.0))
    return system.deformation_matrix(q, v, 0.0).T @ found.multipliers


def unevenness(design):
    """Variance of the forces, relative to the square of their mean."""
    carried = forces(design)
    return jnp.var(carried) / jnp.mean(carried) ** 2


start = np.zeros(12)
print(jm.analyze(designed(start), designed(start).reference_q, elastic=True))
slopes = jax.jit(jax.value_and_grad(unevenness))
bounds = [(-0.15, 0.15)] * 8 + [(-np.log(2), np.log(2))] * 4
found = minimize(
    lambda x: tuple(map(np.asarray, slopes(x))), start, jac=True, method="L-BFGS-B", bounds=bounds
)
assert found.success, found.message
loads = [np.asarray(jax.jit(forces)(design)) for design in (start, found.x)]
print("before (N):", loads[0].round(1), " after (N):", loads[1].round(1))
print("moved by (m):", dict(zip(lower, found.x[:8].reshape(4, 2).round(4).tolist(), strict=True)))
print("stiffness, times:", np.exp(found.x[8:]).round(3))

figure, (bars, plan) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
places = np.arange(4)
bars.bar(places - 0.2, loads[0] / 1000, 0.38, color="0.75", edgecolor="k", label="before")
bars.bar(places + 0.2, loads[1] / 1000, 0.38, color="0.35", edgecolor="k", label="after")
bars.set_xticks(places, lower)
bars.set_xlabel("link")
bars.set_ylabel("axial force (kN, compression > 0)")
before = np.array([ends[name[0]][:2] for name in lower])
after = before + found.x[:8].reshape(4, 2)
plan.plot(*before.T, "o", color="0.6", ms=9, label="before")
plan.plot(*after.T, "k^", ms=8, label="after")
for (x, y), name in zip(after, lower, strict=True):
    plan.annotate(name, (x, y), xytext=(8, 8), textcoords="offset points")
plan.set_aspect("equal")
plan.margins(0.2)
plan.set_xlabel("x of the joint on the base (m)")
plan.set_ylabel("y of the joint on the base (m)")
for axes in (bars, plan):
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9)
figure.savefig("24_equal_loads.png", dpi=130)
