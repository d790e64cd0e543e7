"""Robots whose bodies have several joints and the inertia of drives, from the poses in which
robots start: all joints at zero, next to zero, in gimbal lock. Links without mass stand between
such joints, with the inertia of a drive about one axis and none about the others. Against MuJoCo's
own accelerations, and runs against its equations, integrated by SciPy.
"""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle_mujoco import mujoco, Tree
from scipy.integrate import solve_ivp

import jaxmbs as jm
from jaxmbs.io import import_model


X, Y, Z = "1 0 0", "0 1 0", "0 0 1"


class Arm(NamedTuple):
    """Bodies one behind the other, each with the joints (axis, armature, further attributes) that
    hold it and a mass (kg). `locked`: the joints whose angle is a right one in gimbal lock."""

    bodies: Sequence[tuple[float, Sequence[tuple[str, float, str]]]]
    locked: Sequence[int] = ()


def hinges(*axes: str, armature: Sequence[float]) -> list[tuple[str, float, str]]:
    return [(axis, own, 'type="hinge"') for axis, own in zip(axes, armature, strict=True)]


ARMS = {
    "two": Arm([(1.0, hinges(X, Y, armature=(0.01, 0.01)))]),
    "two with the first driven": Arm([(1.0, hinges(X, Y, armature=(0.01, 0.0)))]),
    "two with the second driven": Arm([(1.0, hinges(Y, Z, armature=(0.0, 0.3)))]),
    "two with nearly nothing": Arm([(1.0, hinges(X, Y, armature=(1e-7, 0.0)))]),
    "two with none driven": Arm([(1.0, hinges(Z, X, armature=(0.0, 0.0)))]),
    "three": Arm([(1.0, hinges(X, Y, Z, armature=(0.01, 0.02, 0.005)))], (1,)),
    "three with one driven": Arm([(2.0, hinges(Z, Y, X, armature=(0.0, 0.0, 0.01)))], (1,)),
    "three with little": Arm([(2.0, hinges(Z, X, Z, armature=(1e-5, 0.0, 0.0)))]),
    "oblique": Arm([(1.0, hinges("1 2 0.3", "0.2 1 -1", "-1 0.5 2", armature=(0.1, 0, 0.2)))]),
    "slide and hinges": Arm(
        [(1.5, [(X, 0.4, 'type="slide"'), (Y, 0.0, 'type="hinge"'), (X, 0.01, 'type="hinge"')])]
    ),
    "beside each other": Arm(
        [(1.0, [(X, 0.02, 'type="hinge" pos="0 0.1 0"'), (Y, 0.01, 'type="hinge" pos="0.1 0 0"')])]
    ),
    "serial": Arm(
        [
            (3.0, hinges(Z, Y, armature=(0.05, 0.05))),
            (1.0, hinges(X, Y, armature=(0.01, 0.01))),
            (0.2, hinges(X, Y, Z, armature=(1e-3, 1e-3, 1e-3))),
        ],
        (5,),
    ),
    "light hand": Arm(
        [
            (50.0, hinges(Z, X, armature=(0.0, 1.0))),
            (0.01, hinges(X, Y, Z, armature=(1e-5, 1e-5, 1e-5))),
        ],
        (3,),
    ),
}
BALL = Arm([(1.0, [(Y, 0.03, 'type="hinge"'), (X, 0.02, 'type="ball"')])])


def mjcf(arms: dict[str, Arm]) -> str:
    """All of them in one world."""
    text = []
    for k, (name, arm) in enumerate(arms.items()):
        count = 0
        for b, (mass, joints) in enumerate(arm.bodies):
            at = f"{k} 0 1" if b == 0 else "0 0 -0.3"
            text.append(f'<body name="{name} {b}" pos="{at}">')
            for axis, armature, more in joints:
                own = f'name="{name} j{count}" armature="{armature}" {more}'
                text.append(
                    f"<joint {own}/>" if "ball" in more else f'<joint axis="{axis}" {own}/>'
                )
                count += 1
            moments = " ".join(str(mass * x) for x in (0.02, 0.03, 0.025))
            text.append(f'<inertial pos="0.02 0 -0.2" mass="{mass}" diaginertia="{moments}"/>')
        text += ["</body>"] * len(arm.bodies)
    return f"<mujoco><worldbody>{''.join(text)}</worldbody></mujoco>"


class Bench(NamedTuple):
    tree: Tree
    system: jm.MultibodySystem
    solved: Any


@functools.cache
def bench(names: tuple[str, ...], folder: Path) -> Bench:
    path = folder / "arms.xml"
    path.write_text(mjcf({name: ARMS.get(name, BALL) for name in names}))
    peer = mujoco.MjModel.from_xml_path(str(path))
    model = import_model(path).model
    solved = jax.jit(lambda s, q, v: jm.runs.solve_with_friction(s, q, v, jnp.asarray(0.0)))
    return Bench(Tree(model, peer), model.system(), solved)


def poses(tree: Tree, arms: dict[str, Arm]) -> dict[str, np.ndarray]:
    """Coordinates of MuJoCo's by the name of the pose."""
    peer, rng = tree.peer, np.random.default_rng(5)
    zero = peer.qpos0.copy()
    found = {"zero": zero}

    def moved(step: np.ndarray) -> np.ndarray:
        own = zero.copy()
        mujoco.mj_integratePos(peer, own, step, 1.0)
        return own

    for size in (1e-12, 1e-9, 1e-6, 1e-3):
        found[f"{size:g} from zero"] = moved(size * rng.normal(size=peer.nv))
    found["generic"] = moved(0.7 * rng.normal(size=peer.nv))
    lock = 0.3 * rng.normal(size=peer.nv)
    for name, arm in arms.items():
        for k in arm.locked:
            lock[peer.jnt_dofadr[peer.joint(f"{name} j{k}").id]] = np.pi / 2
    found["gimbal lock"] = moved(lock)
    near = lock.copy()
    for name, arm in arms.items():
        for k in arm.locked:
            near[peer.jnt_dofadr[peer.joint(f"{name} j{k}").id]] += 1e-7
    found["next to gimbal lock"] = moved(near)
    return found


def assert_accelerations_agree(names: tuple[str, ...], folder: Path) -> None:
    """Accelerations at every pose, at rest and moving, and that all are called determined."""
    found = bench(names, folder)
    tree, rng = found.tree, np.random.default_rng(8)
    data, peer = tree.data, tree.peer
    for pose, qpos in poses(tree, {name: ARMS.get(name, BALL) for name in names}).items():
        for speed in (0.0, 1.0):
            data.qpos[:] = qpos
            data.qvel[:] = speed * rng.normal(size=peer.nv)
            mujoco.mj_forward(peer, data)
            expected = data.qacc.copy()
            q, v = tree.state()
            solved = found.solved(found.system, jnp.asarray(q), jnp.asarray(v))
            assert bool(solved.result == jm.results.RESULTS.successful), pose
            own = tree.joint_accelerations(q, v, np.asarray(solved.acceleration))
            size = max(1.0, np.max(np.abs(expected)))
            np.testing.assert_allclose(own, expected, rtol=1e-8, atol=1e-8 * size, err_msg=pose)
        open_ones = jm.formulations.undetermined_accelerations(
            found.system, jnp.asarray(q), jnp.asarray(v)
        )
        assert len(open_ones) == 0, f"{pose}: {open_ones}"


@pytest.mark.thorough
def test_accelerations_are_those_of_mujoco(tmp_path_factory: pytest.TempPathFactory):
    assert_accelerations_agree((*ARMS, "ball"), tmp_path_factory.mktemp("arms"))


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*ARMS, "ball"])
def test_each_alone(name: str, tmp_path: Path):
    assert_accelerations_agree((name,), tmp_path)


RUN = tuple(name for name in ARMS if name != "two with nearly nothing")


def assert_run_agrees(names: tuple[str, ...], folder: Path) -> None:
    """From zero at rest, and from the lock, by MuJoCo's equations and SciPy."""
    found = bench(names, folder)
    tree, peer, data = found.tree, found.tree.peer, found.tree.data
    all_poses = poses(tree, {name: ARMS[name] for name in names})

    def slope(t: float, y: np.ndarray) -> np.ndarray:
        del t
        data.qpos[:], data.qvel[:] = np.split(y, 2)
        mujoco.mj_forward(peer, data)
        return np.concatenate([data.qvel, data.qacc])

    for pose in ("zero", "gimbal lock"):
        start = np.concatenate([all_poses[pose], np.zeros(peer.nv)])
        end = solve_ivp(slope, (0.0, 0.1), start, rtol=1e-11, atol=1e-11, method="DOP853").y[:, -1]
        data.qpos[:], data.qvel[:] = np.split(start, 2)
        q, v = map(jnp.asarray, tree.state())
        motion = jm.simulate(found.system, q, v, 0.1)
        data.qpos[:], data.qvel[:] = np.split(end, 2)
        q, v = tree.state()
        ours = np.asarray(motion.q[-1]).reshape(-1, 7)
        expected = q.reshape(-1, 7)
        sign = np.sign(np.sum(ours[:, 3:] * expected[:, 3:], axis=1))
        expected[:, 3:] *= sign[:, None]
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-6, err_msg=pose)
        np.testing.assert_allclose(motion.v[-1], v, rtol=0, atol=1e-5, err_msg=pose)


@pytest.mark.thorough
def test_robots_run_from_zero(tmp_path: Path):
    """One of the kinds."""
    assert_run_agrees(("three",), tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("name", RUN)
def test_each_runs_from_zero(name: str, tmp_path: Path):
    assert_run_agrees((name,), tmp_path)


@pytest.mark.thorough
def test_derivatives_at_zero(tmp_path: Path):
    """Of accelerations along all that joints allow, in both modes, against differences."""
    found = bench(("two with the first driven",), tmp_path)
    tree, system = found.tree, found.system
    tree.data.qpos[:] = 0.0
    tree.data.qvel[:] = (0.3, -0.4)
    q, v = map(jnp.asarray, tree.state())

    @jax.jit
    def accelerations(step: jax.Array) -> jax.Array:
        moved = system.retract(q, step * v)
        return jm.runs.solve_with_friction(system, moved, (1 + step) * v, 0.0).acceleration

    step, weights = 1e-5, jnp.asarray(np.random.default_rng(0).normal(size=v.shape))
    differences = (accelerations(jnp.asarray(step)) - accelerations(jnp.asarray(-step))) / step / 2
    zero = jnp.asarray(0.0)
    _, forward = jax.jvp(accelerations, (zero,), (jnp.ones(()),))
    backward = jax.grad(lambda x: weights @ accelerations(x))(zero)
    np.testing.assert_allclose(forward, differences, atol=1e-8)
    np.testing.assert_allclose(backward, weights @ forward, rtol=1e-10)
