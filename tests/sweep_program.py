"""Sweeps in processes of their own: killed, shared by processes, split over devices.

A script that reads requests, one a line: ["start", STORE, COUNT, DEVICES, TOLD, INDEX, PROCESSES,
PORT] (the last three of shared ones only) answers the process, ["wait", PROCESS] its exit code.
"""

import json
import os
import sys
import traceback
import warnings
from pathlib import Path

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


def swept(store, count, devices, told, *shared):
    """One sweep in a process of its own; writes down how many cases it computed."""
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_num_cpu_devices", devices)
    if shared:
        index, processes, port = shared
        jax.distributed.initialize(f"localhost:{port}", processes, index)
    found = jm.sweep(question, model(), cases(count), assemble=False, store=store, chunk=8, width=8)
    Path(told).write_text(str(found.computed))


def serve():
    """Start a process for each request, and wait for one. To import everything takes longer than
    to sweep, so it is done once, here: no thread and no device has been started when it forks."""
    warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called")
    for line in sys.stdin:
        word, *arguments = json.loads(line)
        answer = _start(arguments) if word == "start" else _wait(*arguments)
        print(json.dumps(answer), flush=True)


def _start(arguments):
    process = os.fork()
    if process:
        return process
    # Libraries print, which is no answer.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    code = 1
    try:
        swept(*arguments)
        code = 0
    except Exception:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code)


def _wait(process):
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


if __name__ == "__main__":
    serve()
