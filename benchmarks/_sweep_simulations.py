"""Many motions at once: `simulate_many`, `simulate` under `vmap`, MuJoCo's threaded rollout, and
MJX.

MJX (`mujoco-mjx`) must be of the version of `mujoco`; where it is missing its rows are left out.

Every motion starts from the same state, with the loops at speeds between 0.5 and 1.5 of the
model's (the parallelogram from rest). The closure error is the largest distance (m) between points
that should coincide, at any saved time.
"""

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from _dynamics_peers import _bodies, mujoco_peer
from _sweep_methods import batched, joined, WIDTH
from _timing import best
from jax import lax

import jaxmbs as jm


DURATION = 0.1  # s
_STEP = 1e-3  # s, of MuJoCo's models
_FEW = 64  # Runs that are compared with exact ones.


class Motion(NamedTuple):
    """A mechanism in both forms: ours, and MuJoCo's document; do speeds differ?"""

    name: str
    system: jm.MultibodySystem
    document: str
    moving: bool


def motions() -> list[Motion]:
    """A four-bar loop and the spatial parallelogram."""
    chain = jm.mechanisms.four_bar_chain(1).system()
    platform = jm.mechanisms.parallelogram().system()
    return [
        Motion("four-bar loop", chain, mujoco_peer.chain_document("Euler", 1), True),
        Motion("parallelogram", platform, mujoco_peer.parallelogram_document("Euler"), False),
    ]


_HOW: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-8, "monitor": False, "throw": False}
_EXACT = _HOW | {"rtol": 1e-10, "atol": 1e-12}


def own(motion: Motion, count: int, width: int) -> dict[str, float]:
    """`simulate_many`: simulations a second, the closure error, and how far (m, rad) the ends are
    from those of ten thousand times smaller tolerances."""
    system, v = motion.system, _speeds(count)[:, None] * np.asarray(motion.system.initial_v)

    def many(v: Any = v, how: dict[str, Any] = _HOW) -> jm.results.Trajectory:
        return jm.simulate_many(system, system.reference_q, v, DURATION, width=width, **how)

    found = many()
    # Of a few of them.
    some = slice(None, None, max(1, count // _FEW))
    exact = many(v[some], _EXACT)
    # The position error is relative to the characteristic length.
    closure = float(jnp.max(found.position_error) * system.characteristic_length())
    return {
        "simulations_per_second": count / best(many, _repeats(count)),
        "closure_error": closure,
        "error": float(jnp.max(jnp.abs(found.q[some, -1] - exact.q[:, -1]))),
    }


def mapped(motion: Motion, count: int, width: int) -> dict[str, float]:
    """`simulate` under `jax.vmap`: as `own`."""
    system = motion.system

    def one(system: jm.MultibodySystem, speed: Any) -> Any:
        run = jm.simulate(
            system,
            system.reference_q,
            speed * system.initial_v,
            DURATION,
            **_HOW,
        )
        closure = jnp.max(run.position_error) * system.characteristic_length()
        return (run.q, run.v, run.acceleration, run.multipliers), closure

    many = batched(one, system, width)
    speeds = jnp.asarray(_speeds(count))
    closure = float(np.max(joined(many(speeds))[1]))
    seconds = best(lambda: many(speeds), _repeats(count))
    return {"simulations_per_second": count / seconds, "closure_error": closure}


def masses_row(count: int, low: float, high: float) -> dict[str, float]:
    """`jm.sweep` over motions of the parallelogram with different masses (kg) of its platform, 39
    in the model, and no parts put together by hand: simulations a second, the closure error, how
    far (m, rad) ends are from those of ten thousand times smaller tolerances, and the steps of a
    run on average."""
    model = jm.mechanisms.parallelogram()
    system = model.system()

    def swept(rtol: float, count: int) -> Any:
        question = jm.sweeps.Simulation(DURATION, rtol=rtol, atol=1e-2 * rtol, monitor=False)
        cases = jm.Cases({"bodies.platform.mass": np.linspace(low, high, count)})
        return lambda: jm.sweep(
            question, model, cases, q=system.reference_q, assemble=False, width=WIDTH
        ).answers()

    many = swept(1e-6, count)
    found = many()
    ends, closures = found.q[:, -1], found.position_error * float(system.characteristic_length())
    exact = swept(1e-10, WIDTH)().q[:, -1]
    # The same masses as far as the smaller number of cases has them: the first and the last.
    apart = [np.max(np.abs(ends[k] - exact[k])) for k in (0, -1)]
    seconds = best(many, _repeats(count))
    return {
        "simulations_per_second": count / seconds,
        "closure_error": float(np.max(closures)),
        "error": float(max(apart)),
        "steps": float(np.mean(found.statistics.steps)),
    }


def spread_row(count: int) -> dict[str, float]:
    """One second of four-bar loops whose speeds differ by a factor of 100, so that some make many
    more steps than others: runs a second of `simulate_many`, and its time over that of `simulate`
    under `vmap`. `steps`: on average, and of the longest of `WIDTH`."""
    system = motions()[0].system
    speeds = np.random.default_rng(0).permutation(np.geomspace(0.05, 5.0, count))
    v = jnp.asarray(speeds[:, None] * np.asarray(system.initial_v))

    def one(system: jm.MultibodySystem, v: Any) -> Any:
        run = jm.simulate(system, system.reference_q, v, 1.0, **_HOW)
        return run.q, run.v, run.acceleration, run.multipliers

    mapped = batched(one, system, WIDTH)

    def many() -> jm.results.Trajectory:
        return jm.simulate_many(system, system.reference_q, v, 1.0, width=WIDTH, **_HOW)

    steps = np.asarray(many().statistics.steps)
    seconds = best(many, _repeats(count))
    return {
        "simulations_per_second": count / seconds,
        "time_over_vmap": seconds / best(lambda: mapped(v), _repeats(count)),
        "steps": float(steps.mean()),
        "steps_of_the_longest": float(steps.reshape(-1, WIDTH).max(axis=1).mean()),
    }


def mujoco_rows(motion: Motion, count: int) -> dict[str, float] | None:
    """MuJoCo's rollout, on as many threads as there are cores to this process."""
    try:
        mujoco: Any = importlib.import_module("mujoco")
        rollout: Any = importlib.import_module("mujoco.rollout")
    except ImportError as error:
        print(f"MuJoCo is missing, its rows are left out ({error}).", file=sys.stderr)
        return None
    model, start = _mujoco_start(mujoco, motion)
    threads = len(os.sched_getaffinity(0))
    steps = round(DURATION / _STEP)
    states = np.tile(_full_state(mujoco, model, start), (count, 1))
    # The state is time, positions, velocities.
    velocities = slice(1 + model.nq, 1 + model.nq + model.nv)
    states[:, velocities] *= _speeds(count)[:, None]
    wanted = mujoco.mjtState.mjSTATE_XFRC_APPLIED
    loads = np.tile(start.xfrc_applied.ravel(), (1, steps, 1))
    with rollout.Rollout(nthread=threads) as pool:
        workers = [mujoco.MjData(model) for _ in range(threads)]

        def run() -> Any:
            return pool.rollout(model, workers, states, loads, control_spec=int(wanted))[0]

        seconds = best(run, _repeats(count))
        reached = run()
    closure = _mujoco_closure(
        mujoco, model, reached[: min(count, 64), ::10].reshape(-1, states.shape[1])
    )
    return {
        "simulations_per_second": count / seconds,
        "closure_error": closure,
        "threads": threads,
    }


def mjx_rows(motion: Motion, count: int) -> dict[str, float] | None:
    """MJX: MuJoCo's steps under `vmap`, side by side as many as ours."""
    try:
        mujoco: Any = importlib.import_module("mujoco")
        mjx: Any = importlib.import_module("mujoco.mjx")
    except ImportError as error:
        print(f"MJX is missing, its rows are left out ({error}).", file=sys.stderr)
        return None
    model, start = _mujoco_start(mujoco, motion)
    first = mjx.put_data(model, start)

    def one(model: Any, speed: Any) -> Any:
        def step(data: Any, _: None) -> Any:
            after = mjx.step(model, data)
            return after, jnp.concatenate([after.time[None], after.qpos, after.qvel])

        begin = first.replace(qvel=speed * first.qvel)
        return lax.scan(step, begin, None, length=round(DURATION / _STEP))[1][::10]

    many = batched(one, mjx.put_model(model), WIDTH)
    speeds = jnp.asarray(_speeds(count))
    reached = joined(many(speeds))
    seconds = best(lambda: many(speeds), _repeats(count))
    closure = _mujoco_closure(mujoco, model, reached[:64].reshape(-1, reached.shape[-1]))
    return {"simulations_per_second": count / seconds, "closure_error": closure}


def _mujoco_start(mujoco: Any, motion: Motion) -> tuple[Any, Any]:
    model = mujoco.MjModel.from_xml_string(motion.document)
    data = mujoco.MjData(model)
    if motion.moving:
        for name, speed in (("v0", -1.0), ("h1", 1.0), ("v1", -1.0)):
            data.qvel[model.body(name).dofadr[0]] = speed
    else:
        data.xfrc_applied[model.body("platform").id] = [*_bodies.FORCE, *_bodies.TORQUE]
    return model, data


def _full_state(mujoco: Any, model: Any, data: Any) -> np.ndarray:
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.zeros(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    return state


def _mujoco_closure(mujoco: Any, model: Any, states: np.ndarray) -> float:
    data = mujoco.MjData(model)
    worst = 0.0
    for state in states:
        mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        mujoco.mj_forward(model, data)
        gaps = np.array(data.efc_pos).reshape(-1, 3)
        worst = max(worst, float(np.max(np.linalg.norm(gaps, axis=1))))
    return worst


METHODS: dict[str, Callable[[Motion, int], dict[str, float] | None]] = {
    "jaxmbs": lambda motion, count: own(motion, count, WIDTH),
    "jaxmbs by vmap": lambda motion, count: mapped(motion, count, WIDTH),
    "MuJoCo rollout": mujoco_rows,
    "MJX": mjx_rows,
}


def _speeds(count: int) -> np.ndarray:
    return np.linspace(0.5, 1.5, count) if count > 1 else np.ones(1)


def _repeats(count: int) -> int:
    return 1 if count > 1000 else 3
