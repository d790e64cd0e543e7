"""How near split rods come to the elastic resolution, over one second.

The parallelogram of Wojtyra & Fraczek (2012) with split links, by generalized-alpha with steps of
0.2 ms from a static start (and from a sudden one), against the elastic resolution along the rigid
motion: mean axial forces of the links at 101 times, relative to the largest force of a link in that
second (2995.5 N).

    python benchmarks/split_rods.py
"""

import os


os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from _hardware import hardware, renew, result_path

import jaxmbs as jm
from jaxmbs import elastic, spatial


jax.config.update("jax_enable_x64", True)

LINKS = ("AB", "CD", "EF", "GH", "KL", "MN")
LARGEST, STEP = 2995.5, 2e-4
TIMES = np.linspace(0.0, 1.0, 101)


def resolution() -> np.ndarray:
    """Axial forces (times, links) along the rigid motion with all links elastic (N)."""
    system = jm.mechanisms.elastic_parallelogram().system()
    q, v = system.reference_q, system.initial_v
    run = jm.simulate(
        system, q, v, 1.0, times=TIMES, rtol=1e-10, formulation=jm.formulations.ElasticResolution()
    )

    @eqx.filter_jit
    def forces(q: Any, v: Any, multipliers: Any) -> jax.Array:
        return system.deformation_matrix(q, v, 0.0).T @ multipliers

    return np.asarray(jax.vmap(forces)(run.q, run.v, run.multipliers))


def without_row(model: Any) -> jm.Model:
    """Without the row B.z: the joint B holds along a vertical line alone. Once the upper links have
    stretched, the four rigid lower ones no longer fit exactly, and all their rows contradict each
    other."""
    place = next(joint.at[0] for joint in model.joints if joint.name == "B")
    line = spatial.PointOnLine("B", ("link AB", "platform"), at=place, axis=(0.0, 0.0, 1.0))
    joints = tuple(line if joint.name == "B" else joint for joint in model.joints)
    return eqx.tree_at(lambda m: m.joints, model, joints)


def axial_forces(names: tuple[str, ...], model: jm.Model, **options: Any) -> np.ndarray:
    """Mean axial forces (times, names) of split links (N)."""
    rods = [elastic.SplitRod(f"link {name}", stiffness=17e6) for name in names]
    model = elastic.split_rods(model, rods, **options)
    system = model.system()
    run = jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        1.0,
        times=TIMES,
        solver=jm.runs.GeneralizedAlpha(step=STEP),
        monitor=False,
    )
    # Mean of what the joints at both ends push the halves with, along the link.
    found = run.reactions()
    forces = []
    for name in names:
        start, end = (found.wrench(joint) for joint in name)
        along = end.point - start.point
        along = along / jnp.linalg.norm(along, axis=-1, keepdims=True)
        # On the second body: of the first joint the link, of the second the platform.
        forces.append(jnp.sum((start.force + end.force) * along, axis=-1) / 2)
    return np.asarray(jnp.stack(forces, axis=1))


def differences(one: np.ndarray, other: np.ndarray) -> dict[str, float]:
    """Relative to the largest force: up to 0.1 s, over the whole second, and the mean."""
    off = np.abs(one - other) / LARGEST
    return {
        "to_0.1_s": float(off[TIMES <= 0.1].max()),
        "to_1_s": float(off.max()),
        "mean": float(off.mean()),
    }


def main() -> None:
    """Measure, print, and write the result file."""
    rigid = resolution()
    model = jm.mechanisms.parallelogram()
    lower = axial_forces(LINKS[:4], model)
    every = axial_forces(LINKS, model)
    upper = axial_forces(LINKS[4:], without_row(model))
    sudden = axial_forces(LINKS[:4], model, start=elastic.SuddenStart())
    late = TIMES > 0.1
    rows = {
        "four lower links": differences(lower, rigid[:, :4]),
        "all links against the four lower ones": differences(every[:, :4], lower),
        "upper links alone, without B.z": differences(upper, rigid[:, 4:]),
        "four lower links, sudden start, after 0.1 s": {
            "to_1_s": float((np.abs(sudden - rigid[:, :4])[late] / LARGEST).max())
        },
    }
    for name, row in rows.items():
        print(name, {key: f"{100 * value:.4f} %" for key, value in row.items()}, flush=True)
    device = hardware(("diffrax", "equinox"))
    renew(result_path("split-rods", device), {"rows": rows, "step": STEP, "hardware": device})


if __name__ == "__main__":
    main()
