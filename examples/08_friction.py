"""Example 8: when is a motion with dry friction unique?

A beam on three parallel cranks is overconstrained once. Coulomb friction follows from a joint's
own reaction. Where that is unique (the pendulum's pin P) the motion is certified unique; where it
is not (the beam's pin B2) the acceleration depends on the formulation, here on the weights of a
minimum-norm solution. The certificate names the joint, and a slot in place of one hole would make
every reaction unique.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import forces, planar
from jaxmbs.plot import draw_curve


jax.config.update("jax_enable_x64", True)

pivots = {"1": (0.0, 0.0), "2": (1.0, 0.0), "3": (2.2, 0.0)}  # m
crank = np.array([0.3, -0.4])
ends = {k: np.array(pivot) + crank for k, pivot in pivots.items()}


def mechanism(joint, coefficient=0.5, slotted=False):
    """Three cranks, a beam and a pendulum, with friction in that joint."""
    bodies = [
        *(
            planar.Body(f"crank {k}", mass=1.0, inertia=0.02, position=np.array(pivot) + crank / 2)
            for k, pivot in pivots.items()
        ),
        planar.Body("beam", mass=4.0, inertia=1.6, position=np.mean(list(ends.values()), axis=0)),
        planar.Body("pendulum", mass=2.0, inertia=0.02, position=(1.5, -0.7)),
    ]
    first = ("B1", ("crank 1", "beam"), ends["1"])
    joints = [
        *(planar.Revolute(f"G{k}", ("ground", f"crank {k}"), pivots[k]) for k in pivots),
        planar.PointOnLine(*first, (1.0, 0.0)) if slotted else planar.Revolute(*first),
        *(planar.Revolute(f"B{k}", (f"crank {k}", "beam"), ends[k]) for k in ("2", "3")),
        planar.Revolute("P", ("beam", "pendulum"), (1.5, -0.4)),
    ]
    rub = forces.CoulombFriction("rub", joint, coefficient=coefficient, velocity=0.01, radius=0.05)
    return jm.MultibodySystem(bodies, joints, forces=[rub], gravity=(0.0, -9.81))


certain, uncertain = mechanism("P"), mechanism("B2")
print("friction in P:", jm.certify(certain, certain.reference_q))
certificate = jm.certify(uncertain, uncertain.reference_q)
print("friction in B2:", certificate)
helpful = jm.releases(uncertain, uncertain.reference_q, report=certificate.solvability)
for (option,) in helpful.sets:
    print(f"  would help: {option}")
slotted = mechanism("B2", slotted=True)
print("B1 slotted:", jm.certify(slotted, slotted.reference_q))


def motion(coefficient):
    system = mechanism("P", coefficient)
    return jm.simulate(system, system.reference_q, system.initial_v, 4.0, every=0.02)


free, rubbing = motion(0.0), motion(0.5)
certified = jax.vmap(lambda q: jm.certify(certain, q).certified)(rubbing.q)
print(f"certified in {int(certified.unique.sum())} of {certified.size} states of the motion")
state = rubbing.q[15], rubbing.v[15], rubbing.times[15]


@eqx.filter_jit
def accelerations(systems, formulation):
    """Angular acceleration of the first crank (rad/s^2) in that state, system by system."""
    return jax.lax.map(
        lambda system: jm.runs.solve_with_friction(
            system, *state, formulation=formulation
        ).acceleration[2],
        systems,
    )


figure, (above, below) = plt.subplots(2, 1, figsize=(7.5, 6.5), layout="constrained")
for place, (trajectory, label) in enumerate(
    ((free, "without friction"), (rubbing, "with friction in P"))
):
    angle = np.degrees(trajectory.q[:, 14])
    draw_curve(above, trajectory.times, angle, label, unique=certified, place=place)
above.set_xlabel("time (s)")
above.set_ylabel("angle of the pendulum (deg)")
verdict = "certified unique" if bool(certified.all()) else "not certified"
above.set_title(f"the motion, {verdict}", fontsize=10)

coefficients = np.linspace(0.0, 0.8, 9)
rows = certificate.solvability.structure.row_names
formulations = {
    "all rows alike": jm.formulations.MinimumNorm(np.ones(len(rows))),
    "B2 spared": jm.formulations.MinimumNorm(
        [100.0 if row.startswith("B2.") else 1.0 for row in rows]
    ),
}
place = 0
for joint in ("P", "B2"):
    stacked = jax.tree.map(
        lambda *x: jnp.stack(x), *(mechanism(joint, value) for value in coefficients)
    )
    unique = jm.certify(mechanism(joint), *state).certified
    for name, formulation in formulations.items():
        values = accelerations(stacked, formulation)
        label = f"friction in {joint}, {name}"
        draw_curve(below, coefficients, values, label, unique=unique, place=place)
        place += 1
below.set_title(f"crank 1 in the state of {float(state[2]):.1f} s", fontsize=10)
below.set_xlabel("coefficient of friction (1)")
below.set_ylabel("angular acceleration (rad/s²)")
for axes in (above, below):
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9, handlelength=3.5)
figure.savefig("08_friction.png", dpi=130)
