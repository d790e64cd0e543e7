"""Time of an elastic mechanism by generalized-alpha against that of the rigid one.

The parallelogram of Wojtyra & Fraczek (2012) with its four lower links split: each becomes two
overlapping rods of half its density, with a sliding joint along the axis and a spring and damper
between the far ends. It runs for 1 s by `GeneralizedAlpha` with steps of 1 ms; the rigid mechanism
by Dopri8 at a relative tolerance of 1e-8. Both are measured after compilation, in turn, in one
process. The error of either is that of the angle theta of the links at 1 s, against a run with
steps of a sixteenth (elastic) or a tolerance of 1e-12 (rigid). Then the time of the rigid run whose
error is as large as that of the elastic one.

    taskset -c 0 python benchmarks/elastic.py    # prints a table, writes results/<hardware>.json
    taskset -c 0 python benchmarks/elastic.py --no-file
"""

import os


# One thread for every library; to be said before the libraries are loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# As the command line says it; XLA_FLAGS="" measures without.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_use_fusion_emitters=false "
    "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=300000",
)

import argparse
import dataclasses
import json
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from _hardware import hardware, result_path
from _timing import best_in_turn

import jaxmbs as jm
from jaxmbs import forces, spatial


jax.config.update("jax_enable_x64", True)

DURATION = 1.0
STEP = 1e-3
REFERENCE = STEP / 16
# N/m, and the damper's coefficient relative to it (s).
STIFFNESS, DAMPING = 17e6, 5e-4
LOWER = ("AB", "CD", "EF", "GH")
RIGID_TOLERANCES = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


def split(model: jm.Model, links: tuple[str, ...] = LOWER) -> jm.Model:
    """The mechanism with these links made of two rods each, the first with the base joint and the
    second with the platform's."""
    points = {joint.name: joint.at[0] for joint in model.joints}
    bodies, joints, springs, owner = [], [], [], {}
    for body in model.bodies:
        ends = body.name.removeprefix("link ")
        if ends not in links:
            bodies.append(body)
            continue
        halves = [f"{body.name} {k}" for k in (1, 2)]
        for half in halves:
            bodies.append(
                dataclasses.replace(body, name=half, mass=body.mass / 2, inertia=body.inertia / 2)
            )
        start, end = points[ends[0]], points[ends[1]]
        owner |= {ends[0]: (body.name, halves[0]), ends[1]: (body.name, halves[1])}
        middle = (start + end) / 2
        joints.append(spatial.Translational(f"slide {ends}", halves, middle, end - start))
        springs.append(
            forces.SpringDamper(
                f"rod {ends}",
                halves,
                points=jnp.stack([start, end]),
                stiffness=STIFFNESS,
                damping=DAMPING * STIFFNESS,
            )
        )
    kept = []
    for joint in model.joints:
        whole, half = owner.get(joint.name, ("", ""))
        names = tuple(half if name == whole else name for name in joint.bodies)
        kept.append(dataclasses.replace(joint, bodies=names))
    return jm.Model(
        "parallelogram-elastic",
        3,
        bodies=bodies,
        joints=[*kept, *joints],
        forces=[*model.forces, *springs],
        gravity=model.gravity,
    )


def theta(run: jm.Trajectory) -> float:
    """Angle of the links at the end (rad), by the platform's centre."""
    names = [body.name for body in run.system.structure.bodies]
    centre = np.asarray(run.q[-1])[7 * names.index("platform") :][:2] - 0.25
    return float(np.arctan2(*centre))


def simulated(system: jm.MultibodySystem, **options) -> jm.Trajectory:
    """One run from rest to its end."""
    run = jm.simulate(system, system.reference_q, system.initial_v, DURATION, **options)
    jax.block_until_ready(run.q)
    return run


def first_seconds(call: Callable[[], jm.Trajectory]) -> float:
    """Of the first call (s), which compiles."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
