"""Example 45: what the pins of a planetary gear carry.

A sun drives three planets in a ring that stands still, and their carrier drives a load. A `gear`
between two angles gives the right speeds and torques, but acts by torques alone: the pins of the
planets carry nothing. A `gear_pair` presses its teeth at the pitch point, so that the tangential
forces of both meshes meet in the pin. With one planet the pin's force is unique; three of them
share the load in parts that a rigid model cannot tell, unless the sun floats.

    python examples/45_planetary.py
"""

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle

import jaxmbs as jm
from jaxmbs import forces, planar


jax.config.update("jax_enable_x64", True)

SUN, PLANET = 24, 18
RING = SUN + 2 * PLANET
ARM, SPEED, LOAD = 0.084, 50.0, 70.0
MODULE = 2 * ARM / (SUN + PLANET)
CENTRE = (0.0, 0.0)


def planetary(planets: int, *, floating: bool = False, pressing: bool = True) -> jm.Model:
    """A planetary gear with its sun driven at a constant speed, and a torque on the carrier."""
    turns = 2 * np.pi * np.arange(planets) / planets
    places = {
        f"planet {k}": (ARM * np.cos(turn), ARM * np.sin(turn))
        for k, turn in enumerate(turns, start=1)
    }
    bodies = [
        planar.Body("sun", mass=1.0, inertia=1e-3, position=CENTRE),
        planar.Body("carrier", mass=2.0, inertia=1e-2, position=CENTRE),
        *(planar.Body(n, mass=0.4, inertia=1e-4, position=p) for n, p in places.items()),
    ]
    joints = [planar.Revolute("carrier bearing", ("ground", "carrier"), CENTRE)]
    if not floating:
        joints.append(planar.Revolute("sun bearing", ("ground", "sun"), CENTRE))
    for name, place in places.items():
        joints.append(planar.Revolute(f"pin of {name}", ("carrier", name), place))
        if pressing:
            joints += [
                planar.GearPair(
                    f"sun and {name}",
                    ("sun", name, "carrier"),
                    points=(CENTRE, place),
                    teeth=(SUN, PLANET),
                ),
                planar.GearPair(
                    f"{name} and ring",
                    (name, "ground", "carrier"),
                    points=(place, CENTRE),
                    teeth=(PLANET, -RING),
                    flank=-1,
                ),
            ]
        else:
            joints += [
                planar.Gear(f"sun and {name}", ("sun", name, "carrier"), ratio=-PLANET / SUN),
                planar.Gear(f"{name} and ring", (name, "ground", "carrier"), ratio=RING / PLANET),
            ]
    drive = forces.Applied("motor", "sun", torque=LOAD * SUN / (SUN + RING))
    load = forces.Applied("load", "carrier", torque=-LOAD)
    return jm.Model("planetary gear", 2, bodies=bodies, joints=joints, forces=[drive, load])


def steady(model: jm.Model) -> tuple[jm.MultibodySystem, jm.results.Reactions]:
    """Reactions while the sun turns at its speed."""
    system = model.system()
    v = system.initial_v.at[2].set(SPEED)
    state = jm.consistent_state(system, system.reference_q, v)
    return system, jm.reactions(system, state.q, state.v)


def pin(found: jm.results.Reactions, k: int) -> np.ndarray:
    """The force (N) of a pin on its planet."""
    name = f"planet {k}"
    return np.asarray(found.on(name).wrench(f"pin of {name}").force)


for words, pressing in (("gear (torques alone)", False), ("gear_pair", True)):
    _, found = steady(planetary(1, pressing=pressing))
    print(f"{words}: the pin of one planet carries {abs(pin(found, 1)[1]):.1f} N along its path")

system, fixed = steady(planetary(3))
floating_system, floating = steady(planetary(3, floating=True))
print("\nThree planets, sun in a bearing:\n", fixed, sep="")
print("\nThree planets, floating sun:\n", floating, sep="")
tangential = LOAD / ARM / 3
print(f"\nEach pin along its path, by statics: {tangential:.1f} N")

figure, (picture, bars) = plt.subplots(
    1, 2, figsize=(9.0, 4.4), layout="constrained", width_ratios=(1.1, 1.0)
)
for radius, centres, style in (
    (MODULE * RING / 2, [CENTRE], {"linewidth": 2.5, "edgecolor": "k"}),
    (MODULE * SUN / 2, [CENTRE], {"linewidth": 1.5, "edgecolor": "k", "facecolor": "0.75"}),
):
    for centre in centres:
        picture.add_patch(Circle((centre[0], centre[1]), radius, **({"facecolor": "none"} | style)))
for k in range(1, 4):
    turn = 2 * np.pi * (k - 1) / 3
    centre = ARM * np.array([np.cos(turn), np.sin(turn)])
    picture.add_patch(
        Circle(
            (centre[0], centre[1]),
            MODULE * PLANET / 2,
            facecolor="0.92",
            edgecolor="k",
            linewidth=1.5,
        )
    )
    picture.plot([0.0, centre[0]], [0.0, centre[1]], color="0.5", linewidth=5, zorder=3)
    force = pin(floating, k)
    picture.annotate(
        "",
        centre + 0.045 * force / np.linalg.norm(force),
        centre,
        arrowprops={"arrowstyle": "-|>", "linewidth": 2, "color": "k"},
        zorder=5,
    )
    picture.plot(*centre, "o", color="k", markersize=5, zorder=4)
picture.text(0.0, -0.022, "sun", ha="center", va="top", fontsize=9)
picture.text(0.0, 1.02 * MODULE * RING / 2, "ring (fixed)", ha="center", va="bottom", fontsize=9)
picture.set_xlim(-0.135, 0.135)
picture.set_ylim(-0.128, 0.14)
picture.set_aspect("equal")
picture.set_xlabel("x (m)")
picture.set_ylabel("y (m)")
picture.set_title("Forces of the pins on their planets", fontsize=11)

places, width = np.arange(1, 4), 0.38
for shift, found, label, style in (
    (-0.5, floating, "floating sun: unique", {"color": "0.35"}),
    (0.5, fixed, "sun in a bearing: one of many", {"color": "0.85", "hatch": "//"}),
):
    sizes = [np.linalg.norm(pin(found, k)) for k in range(1, 4)]
    bars.bar(places + shift * width, sizes, width, label=label, edgecolor="k", **style)
bars.set_xticks(places)
bars.set_xlabel("planet")
bars.set_ylabel("force of its pin (N)")
bars.set_ylim(0, 480)
bars.legend(fontsize=9, loc="upper center")
bars.set_title(f"Carrier with {LOAD:g} N m", fontsize=11)
figure.savefig("45_planetary.png", dpi=130)
