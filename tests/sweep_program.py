"""A sweep as a script of its own: killed, shared by processes, split over devices.

python sweep_program.py STORE COUNT DEVICES [INDEX PROCESSES PORT]
"""

import sys

import jax
import jax.numpy as jnp

import jaxmbs as jm


def question(system, q, v, t):
    """Something of which every bit depends on every number."""
    matrix = system.constraint_matrix(q, v, t)
    return {"force": system.force(q, v, t), "sum": jnp.sum(jnp.sin(matrix) * jnp.exp(q[None]))}


def model():
    arm = jm.planar.Body("arm", mass=1.0, inertia=0.1, position=(0.5, 0.0), velocity=(0.0, 1.0))
    pin = jm.planar.Revolute("pin", ("ground", "arm"), (0.0, 0.0))
    return jm.Model("arm", 2, bodies=[arm], joints=[pin], gravity=(0.0, -9.81))


def cases(count):
    ranges = {"bodies.arm.mass": (1.0, 2.0), "gravity.y": (-10.0, -9.0), "q.2": (-3.0, 3.0)}
    return jm.Cases.uniform(ranges, count, seed=1)


def main():
    store, count, devices, *shared = sys.argv[1:]
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_num_cpu_devices", int(devices))
    if shared:
        index, processes, port = shared
        jax.distributed.initialize(f"localhost:{port}", int(processes), int(index))
    found = jm.sweep(
        question, model(), cases(int(count)), assemble=False, store=store, chunk=8, width=8
    )
    print(found.computed)


if __name__ == "__main__":
    main()
