"""What one body of many coordinates costs among fifty rigid ones.

Microseconds of one evaluation, from q and v to accelerations and multipliers: of fifty rigid bodies
in a row, of one body with thirty modes on a hinge, and of both in one system, the large body at the
end of the row. Had all blocks the size of the largest, the last would take many times the sum of
the two others.

    taskset -c 0 python benchmarks/bodies.py    # prints a line, writes results/bodies-<hardware>
"""

import os


os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from _evaluations import evaluations
from _hardware import hardware, renew, result_path
from _timing import best_in_turn

import jaxmbs as jm
from jaxmbs import generalized, planar


jax.config.update("jax_enable_x64", True)

RIGID, MODES, CALLS = 50, 30, 100
MODE = generalized.Quantity("amplitude", "m")


def rods(count: int) -> tuple[list[Any], list[Any]]:
    """Rods of 1 m in a row from the origin on, on hinges."""
    names = ["ground", *(f"rod {k}" for k in range(count))]
    bodies = [
        planar.Body(name, mass=1.0, inertia=1 / 12, position=(k + 0.5, 0.0))
        for k, name in enumerate(names[1:])
    ]
    joints = [
        planar.Revolute(f"hinge {k}", (names[k], names[k + 1]), (float(k), 0.0))
        for k in range(count)
    ]
    return bodies, joints


def beam(start: float) -> Any:
    """A beam whose left end is at (start, 0), with modes that bend it."""

    def end(q: Any) -> Any:
        return generalized.PlanarFrame(q[:2], q[2] + 0.1 * jnp.sum(q[3:]))

    masses = jnp.asarray(np.concatenate([[2.0, 2.0, 0.5], np.linspace(0.1, 1.0, MODES)]))
    stiffness = jnp.asarray(np.concatenate([np.zeros(3), np.linspace(10.0, 1e3, MODES)]))
    modes = [f"mode {k}" for k in range(MODES)]
    return generalized.Body(
        "beam",
        ["x", "y", "angle", *modes],
        mass_matrix=lambda q, t: jnp.diag(masses) + 0.01,
        force=lambda q, v, t: -stiffness * q,
        first_moment=lambda q: 2.0 * q[:2],
        frames={"end": end},
        start=[start, *np.zeros(MODES + 2)],
        lengths=["x", "y"],
        quantities={name: MODE for name in modes},
    )


def systems() -> dict[str, jm.MultibodySystem]:
    """The two apart, and together."""
    gravity = (0.0, -9.81)
    bodies, joints = rods(RIGID)

    def held(to: str, start: float) -> Any:
        return planar.Revolute("end", (to, "beam.end"), (start, 0.0))

    return {
        "rigid": jm.MultibodySystem(bodies, joints, gravity=gravity),
        "modal": jm.MultibodySystem([beam(0.0)], [held("ground", 0.0)], gravity=gravity),
        "both": jm.MultibodySystem(
            [*bodies, beam(float(RIGID))],
            [*joints, held(f"rod {RIGID - 1}", float(RIGID))],
            gravity=gravity,
        ),
    }


def main() -> None:
    """Measure, print, and write the result file."""
    calls = {
        name: lambda s=system: jax.block_until_ready(
            evaluations(s, s.reference_q, s.initial_v, CALLS)
        )
        for name, system in systems().items()
    }
    times = {name: 1e6 * x / CALLS for name, x in best_in_turn(calls).items()}
    ratio = times["both"] / (times["rigid"] + times["modal"])
    words = ", ".join(f"{name} {x:.1f} us" for name, x in times.items())
    print(f"{RIGID} rigid bodies, one with {MODES} modes: {words}; {ratio:.2f} of the sum")
    device = hardware()
    renew(result_path("bodies", device), {"hardware": device, "bodies": times | {"ratio": ratio}})


if __name__ == "__main__":
    main()
