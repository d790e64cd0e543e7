"""Example 30: a rope without mass.

A load swings on a rope that a winch pulls in. The free length of the rope is a coordinate of its
own, which has no mass: the mass matrix is singular. Accelerations are determined all the same, as
the winch says how the length changes, and the motion is that of the load in one angle. With the
rope alone the load falls, and the length follows it; without both nothing determines the length,
and the coordinate is named.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import generalized


jax.config.update("jax_enable_x64", True)

mass, gravity = 50.0, 9.81  # kg, m/s^2
longest, pulled = 4.0, 0.35  # m, m/s


def winch(t):
    """The length of the rope (m)."""
    return longest - pulled * t


rope = jm.generalized.PositionConstraint(
    lambda q, t: (q[0] ** 2 + q[1] ** 2 - q[2] ** 2) / 2, quantity=generalized.LENGTH
)
drum = jm.generalized.PositionConstraint(lambda q, t: q[2] - winch(t), quantity=generalized.LENGTH)


def crane(constraints):
    return jm.GeneralizedSystem(
        ("x", "y", "length"),
        mass_matrix=lambda q: jnp.diag(jnp.array([mass, mass, 0.0])),
        force=lambda q, v, t: jnp.array([0.0, -mass * gravity, 0.0]),
        constraints=constraints,
        lengths=("x", "y", "length"),
        semidefinite=True,
    )


angle = 0.5  # rad, at first
q = longest * jnp.array([np.sin(angle), -np.cos(angle), 1.0])
v = -pulled * q / longest  # the load is pulled in, and does not swing yet
times = np.linspace(0.0, 8.0, 241)

print("no rope:", jm.formulations.undetermined_accelerations(crane({}), q, v))
fall = jm.runs.solve_with_friction(crane({"rope": rope}), q, v, 0.0)
print("rope alone: dv/dt =", np.asarray(fall.acceleration).round(6))
system = crane({"rope": rope, "winch": drum})
print("with winch:", jm.formulations.undetermined_accelerations(system, q, v))
motion = jm.simulate(system, q, v, times[-1], times=times)
# The row of the rope is r dr - l dl: its force is the multiplier times the length.
force = np.asarray(motion.multipliers[:, 0]) * winch(times)

# In the angle alone: m l^2 a = -m g l sin - 2 m l dl/dt v.
pendulum = jm.GeneralizedSystem(
    ("angle",),
    mass_matrix=lambda q, t: jnp.full((1, 1), mass * winch(t) ** 2),
    force=lambda q, v, t: (
        -mass * gravity * winch(t) * jnp.sin(q) + 2 * mass * winch(t) * pulled * v
    ),
    constraints={},
)
swing = jm.simulate(pendulum, jnp.array([angle]), jnp.zeros(1), times[-1], times=times)
theta, rate = np.asarray(swing.q[:, 0]), np.asarray(swing.v[:, 0])
tension = mass * (gravity * np.cos(theta) + winch(times) * rate**2)
across = np.asarray(motion.q[:, 0]) - winch(times) * np.sin(theta)
print(f"largest difference of places: {np.max(np.abs(across)):.1e} m")
print(f"and of forces in the rope: {np.max(np.abs(force - tension)):.1e} N")

figure, (path, pull) = plt.subplots(1, 2, figsize=(9.0, 4.2), layout="constrained")
path.plot(motion.q[:, 0], motion.q[:, 1], "k-", label="with the length as a coordinate")
some = slice(None, None, 12)
path.plot(
    (winch(times) * np.sin(theta))[some],
    -(winch(times) * np.cos(theta))[some],
    "ko",
    fillstyle="none",
    label="in the angle alone",
)
path.plot(0.0, 0.0, "k^")
path.annotate("winch", (0.1, 0.0), va="center")
path.set_xlabel("x (m)")
path.set_ylabel("y (m)")
path.set_aspect("equal")
path.set_ylim(-4.2, 0.3)
path.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False)
pull.plot(times, force, "k-", label="multiplier of the rope")
pull.plot(times[some], tension[some], "ko", fillstyle="none", label="in the angle alone")
pull.axhline(mass * gravity, color="0.6", linestyle="--", label="weight")
pull.set_xlabel("time (s)")
pull.set_ylabel("force in the rope (N)")
pull.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False)
figure.savefig("30_singular_mass.png", dpi=130)
