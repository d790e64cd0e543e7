"""Example 28: does a constraint on velocities follow from one on positions?

A coin rolls upright on a table: two rows on velocities, neither of which can be integrated. So it
turns and rolls on a closed loop in its two angles, and ends elsewhere: by the radius times the area
of the loop for small ones. Two such wheels on an axle have three rows, of which one combination is
holonomic: the difference of their turns is a function of the heading, which their sum is not.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)

radius, half_axle = 0.25, 0.5  # m


def along(heading):
    return jnp.stack([jnp.cos(heading), jnp.sin(heading)])


def across(heading):
    return jnp.stack([-jnp.sin(heading), jnp.cos(heading)])


def coin_rows(q, v, t):
    _, _, heading, _ = q
    slip = along(heading) @ v[:2] - radius * v[3]
    return jnp.stack([slip, across(heading) @ v[:2]])


def axle_rows(q, v, t):
    _, _, heading, _, _ = q
    forward, turning = along(heading) @ v[:2], half_axle * v[2]
    left, right = forward - turning - radius * v[3], forward + turning - radius * v[4]
    return jnp.stack([left, right, across(heading) @ v[:2]])


def rolling(name, rows, count, angles):
    names = ("x", "y", "heading", *angles)
    return jm.GeneralizedSystem(
        names,
        mass_matrix=lambda q: jnp.eye(len(names)),
        force=lambda q, v, t: jnp.zeros(len(names)),
        constraints={name: jm.generalized.VelocityConstraint(rows, count)},
        lengths=("x", "y"),
        length=radius,
    )


coin = rolling("coin", coin_rows, 2, ("turn",))
axle = rolling("axle", axle_rows, 3, ("left turn", "right turn"))
for system in (coin, axle):
    print(jm.holonomy(system, jnp.zeros(system.structure.nq), key=jax.random.key(0)))
    print()


def loop(size, steps=400):
    """A square in heading and roll, from a corner: (steps, 2)."""
    side = np.linspace(0.0, size, steps // 4, endpoint=False)
    there, full, none = side, np.full_like(side, size), np.zeros_like(side)
    heading = np.concatenate([none, there, full, size - there, [0.0]])
    roll = np.concatenate([there, full, size - there, none, [0.0]])
    return np.stack([heading, roll], axis=1)


def follow(size):
    """The point of contact of the coin, and both angles, along the loop: each piece rolls
    straight or turns on the spot, so the sum is exact."""
    angles = loop(size)
    step = radius * np.diff(angles[:, 1])[:, None] * np.asarray(along(angles[:-1, 0])).T
    return np.concatenate([np.zeros((1, 2)), np.cumsum(step, axis=0)]), angles


sizes = np.radians([5, 10, 20, 40, 60, 90])
ends = np.array([np.linalg.norm(follow(size)[0][-1]) for size in sizes])
path, angles = follow(np.radians(60))
print(f"after a loop of 60 degrees the coin is {1000 * ends[4]:.1f} mm from where it began")

# The axle goes on at 0.5 m/s and swings from side to side.
time = np.linspace(0.0, 6.0, 601)
heading = np.radians(40) * np.sin(2 * np.pi * time / 4)
forward = 0.5 * time / radius
left, right = (forward + sign * half_axle * heading / radius for sign in (-1, 1))

figure, panels = plt.subplots(2, 2, figsize=(10.0, 8.0), layout="constrained")
(loops, places), (sizes_of, wheels) = panels
loops.plot(*np.degrees(angles).T[::-1], "k-")
loops.plot(0, 0, "ko", label="start and end")
loops.set_xlabel("roll (deg)")
loops.set_ylabel("heading (deg)")
loops.set_title("angles of the coin: a closed loop")
loops.legend(loc="center")
places.plot(*1000 * path.T, "k-")
places.plot(0, 0, "ko", label="start")
places.plot(*1000 * path[-1], "wo", markeredgecolor="k", label="end")
places.set_xlabel("x (mm)")
places.set_ylabel("y (mm)")
places.axis("equal")
places.set_title("its point of contact does not close")
places.legend()
area = sizes**2
sizes_of.loglog(area, 1000 * ends, "ko", label="coin")
sizes_of.loglog(area, 1000 * radius * area, "k-", label="radius times area")
sizes_of.set_xlabel("area of the loop (rad$^2$)")
sizes_of.set_ylabel("displacement after the loop (mm)")
sizes_of.set_title("not holonomic: it grows with the area")
sizes_of.legend()
wheels.plot(np.degrees(heading), np.degrees(left + right) / 360, color="0.6", label="sum")
wheels.plot(np.degrees(heading), np.degrees(right - left) / 360, "k-", label="right less left")
wheels.set_xlabel("heading of the axle (deg)")
wheels.set_ylabel("turns of the wheels (revolutions)")
wheels.set_title("two wheels: one relation is holonomic")
wheels.legend()
for axes in panels.flat:
    axes.grid(alpha=0.3)
figure.savefig("28_holonomy.png", dpi=130)
