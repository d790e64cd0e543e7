"""What a beam of many elements costs: bodies whose masses are coupled.

Microseconds of one evaluation, from q and v to accelerations and multipliers, and CPU seconds to
trace and compile it, of a cantilever of 25 to 200 elements in a row that carries a rod at its end.
Cost should go with the number of elements, and compiling with its logarithm.

    taskset -c 0 python benchmarks/elements.py    # prints a line each, writes results/elements-...
"""

import os


os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
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

COUNTS, CALLS = (25, 50, 100, 200), 50
LENGTH, MASS, STIFFNESS = 0.1, 1.0, 1e3


def end(q: Any) -> Any:
    """The frame of a node."""
    return generalized.PlanarFrame(q[:2], q[2])


def mass_matrix(q: Any, t: Any) -> Any:
    """Consistent, of a bar with a rotating cross section."""
    del q, t
    ones = np.kron(np.array([[2.0, 1.0], [1.0, 2.0]]) / 6, np.diag([1.0, 1.0, 1e-3]))
    return jnp.asarray(MASS * LENGTH * ones)


def energy(q: Any) -> Any:
    """Of bending, shear and stretching."""
    first, second = q
    angle = (first[2] + second[2]) / 2
    dx, dy = second[0] - first[0], second[1] - first[1]
    along = jnp.cos(angle) * dx + jnp.sin(angle) * dy - LENGTH
    across = jnp.cos(angle) * dy - jnp.sin(angle) * dx
    return STIFFNESS * (along**2 + across**2 + 0.01 * (second[2] - first[2]) ** 2)


def cantilever(count: int) -> jm.MultibodySystem:
    """So many elements from the origin along x, and a rod on a hinge."""
    nodes: list[Any] = [
        generalized.Body(
            f"{k}",
            ["x", "y", "angle"],
            frames={"end": end},
            start=[k * LENGTH, 0.0, 0.0],
            lengths=["x", "y"],
        )
        for k in range(count + 1)
    ]
    elements = [
        generalized.Element(f"e{k}", (f"{k}", f"{k + 1}"), mass_matrix=mass_matrix, energy=energy)
        for k in range(count)
    ]
    tip = count * LENGTH
    rod = planar.Body("rod", mass=0.5, inertia=0.1, position=(tip + 0.2, 0.0))
    joints = [
        planar.Fixed("clamp", ("ground", "0.end"), (0.0, 0.0)),
        planar.Revolute("hinge", (f"{count}.end", "rod"), (tip, 0.0)),
    ]
    return jm.MultibodySystem([*nodes, rod], joints, elements=elements)


def main() -> None:
    """Measure, print, and write the result file."""
    calls, compiling = {}, {}
    for count in COUNTS:
        system = cantilever(count)
        start = time.process_time()
        jax.block_until_ready(evaluations(system, system.reference_q, system.initial_v, CALLS))
        compiling[count] = time.process_time() - start
        calls[str(count)] = lambda s=system: jax.block_until_ready(
            evaluations(s, s.reference_q, s.initial_v, CALLS)
        )
    times = {count: 1e6 * x / CALLS for count, x in best_in_turn(calls).items()}
    rows = {}
    for count in COUNTS:
        rows[f"{count}"] = {"us": times[f"{count}"], "compile_cpu_s": compiling[count]}
        each = times[f"{count}"] / count
        print(
            f"{count} elements: {times[f'{count}']:.0f} us ({each:.2f} each), "
            f"{compiling[count]:.1f} CPU s before the first"
        )
    device = hardware()
    renew(result_path("elements", device), {"hardware": device, "elements": rows})


if __name__ == "__main__":
    main()
