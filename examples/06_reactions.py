"""Example 6: unique and non-unique reactions along a motion.

A beam swings on three parallel cranks, one more than it needs, and a pendulum swings below it.
Several formulations find the same motion. What they make of the reactions agrees where a
rigid-body model determines them (the pendulum's pin P) and differs where it does not (the pins of
the cranks). Every curve that is not unique is dashed and says so.
"""

import equinox as eqx
import jax
import numpy as np

import jaxmbs as jm
from jaxmbs import planar
from jaxmbs.plot import draw_reactions


jax.config.update("jax_enable_x64", True)

pivots = {"1": (0.0, 0.0), "2": (1.0, 0.0), "3": (2.2, 0.0)}  # m
crank = np.array([0.3, -0.4])
ends = {k: np.array(pivot) + crank for k, pivot in pivots.items()}
pin = (1.5, -0.4)
bodies = [
    *(
        planar.Body(f"crank {k}", mass=1.0, inertia=0.02, position=np.array(pivot) + crank / 2)
        for k, pivot in pivots.items()
    ),
    planar.Body("beam", mass=4.0, inertia=1.6, position=np.mean(list(ends.values()), axis=0)),
    planar.Body("pendulum", mass=2.0, inertia=0.02, position=(1.5, -0.7)),
]
joints = [
    *(planar.Revolute(f"G{k}", ("ground", f"crank {k}"), pivots[k]) for k in pivots),
    *(planar.Revolute(f"B{k}", (f"crank {k}", "beam"), ends[k]) for k in pivots),
    planar.Revolute("P", ("beam", "pendulum"), pin),
]
system = jm.MultibodySystem(bodies, joints, gravity=(0.0, -9.81))
trajectory = jm.simulate(system, system.reference_q, system.initial_v, 2.0, every=0.01)
print(trajectory)


@eqx.filter_jit
def multipliers(formulation, trajectory):
    """Multipliers (n, rows) of a formulation at every state of the motion."""

    def one(state):
        return jm.runs.solve_with_friction(
            trajectory.system, *state, formulation=formulation
        ).multipliers

    return jax.lax.map(one, (trajectory.q, trajectory.v, trajectory.times))


found = {"minimum norm": trajectory.reactions()}
for row in ("B1.y", "B3.y"):
    chosen = multipliers(jm.formulations.Elimination([row]), trajectory)
    other = eqx.tree_at(lambda x: x.multipliers, trajectory, chosen)
    found[f"without {row}"] = other.reactions()
print(found["without B1.y"].state(0))

first, *others = found.values()
for name in first.names:
    spread = max(
        float(np.max(np.abs(one.wrench(name).force - first.wrench(name).force))) for one in others
    )
    verdict = "unique" if bool(first.unique(name).all()) else "not unique"
    print(f"{name}: {verdict}, formulations differ by {spread:.1e} N")

figure = draw_reactions(trajectory, ("P", "B1", "B2", "B3"), compared=found)
figure.savefig("06_reactions.png", dpi=130)
