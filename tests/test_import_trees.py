"""Imported trees against MuJoCo: accelerations, masses, kinetic energies.

All files are imported one by one; their models then stand side by side in one system, so that
there is one program to compile.
"""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from combined import side_by_side
from oracle_mujoco import acceleration, matrices, mujoco, Tree
from random_mjcf import random_trees
from representatives import representatives, representatives_at
from robots import robot_folder

from jaxmbs import spatial
from jaxmbs.io import import_model, Imported


# Robot, its file, and does it float?
ROBOTS = {
    "solo12": ("solo_description/robots/solo12.urdf", True),
    "go2": ("go2_description/urdf/go2.urdf", True),
    "humanoid": ("simple_humanoid_description/urdf/simple_humanoid.urdf", True),
    "kinova": ("kinova_description/robots/kinova.urdf", False),
    "z1": ("z1_description/urdf/z1.urdf", False),
    "panda": ("panda_description/urdf/panda.urdf", False),
    "bolt": ("bolt_description/robots/bolt.urdf", False),
}
STATES = 20


class Drawn(NamedTuple):
    """States of a file: MuJoCo's coordinates, velocities, accelerations, kinetic energies and
    centres of mass of what moves, then q and v of the model."""

    qpos: np.ndarray
    qvel: np.ndarray
    qacc: np.ndarray
    energy: np.ndarray
    center: np.ndarray
    q: np.ndarray
    v: np.ndarray


class Park(NamedTuple):
    """Every file by name: what was imported, MuJoCo beside it, the states drawn, and M, C, F and
    Gamma at each."""

    imported: dict[str, Imported]
    trees: dict[str, Tree]
    drawn: dict[str, Drawn]
    equations: dict[str, list[np.ndarray]]


def peer_of(path: Path, floating: bool) -> Any:
    """MuJoCo's own model, without the shapes that meshes would be needed for."""
    spec = mujoco.MjSpec.from_file(str(path))
    if path.suffix == ".urdf":
        spec.compiler.fusestatic = False
        for geom in list(spec.geoms):
            spec.delete(geom)
        for mesh in list(spec.meshes):
            spec.delete(mesh)
    if floating:
        spec.worldbody.bodies[0].add_freejoint()
    return spec.compile()


@functools.cache
def park_of(names: tuple[str, ...], folder: Path) -> Park:
    """Of robots, and of random trees whose file is written into a folder."""
    rng = np.random.default_rng(23)
    path = folder / "trees.xml"
    controls = random_trees(path, rng, 10)
    files = {name: (robot_folder() / ROBOTS[name][0], ROBOTS[name][1]) for name in names}
    imported = {
        name: import_model(own, floating=floats) for name, (own, floats) in files.items()
    } | {"trees": import_model(path, controls=controls)}
    peers = {name: peer_of(*own) for name, own in files.items()} | {"trees": peer_of(path, False)}
    trees = {name: Tree(imported[name].model, peer) for name, peer in peers.items()}
    drawn = {
        name: Drawn(*(np.array(x) for x in zip(*_states(tree, rng, controls), strict=True)))
        for name, tree in trees.items()
    }
    # MuJoCo's constraints give way, so that trees are compared without.
    models = {name: own.model for name, own in imported.items()}
    whole = side_by_side(models, without=spatial.Coupling)
    q, v = (np.concatenate(x, axis=1) for x in zip(*(d[-2:] for d in drawn.values()), strict=True))
    several = jax.jit(lambda s, q, v: jax.lax.map(lambda x: matrices(s, *x), (q, v)))
    system = whole.system()
    found = [np.asarray(x) for x in several(system, jnp.asarray(q), jnp.asarray(v))]
    return Park(imported, trees, drawn, _apart(found, imported))


def _states(
    tree: Tree, rng: np.random.Generator, controls: dict[str, float]
) -> Iterator[tuple[Any, ...]]:
    data, peer = tree.data, tree.peer
    moves = peer.body_weldid != 0
    for _ in range(STATES):
        tree.random_state(rng)
        for name, value in controls.items() if peer.nu else ():
            data.ctrl[peer.actuator(name).id] = value
        mujoco.mj_forward(peer, data)
        mass = np.zeros((peer.nv, peer.nv))
        mujoco.mj_fullM(peer, data, mass)
        energy = 0.5 * data.qvel @ mass @ data.qvel
        center = peer.body_mass[moves] @ data.xipos[moves] / peer.body_mass[moves].sum()
        yield data.qpos.copy(), data.qvel.copy(), data.qacc.copy(), energy, center, *tree.state()


def _apart(found: list[np.ndarray], imported: dict[str, Imported]) -> dict[str, list[np.ndarray]]:
    """The blocks of each model. Its rows are those that its columns are in."""
    mass, rows, force, offset = found
    apart, start = {}, 0
    for name, own in imported.items():
        columns = slice(start, start + 6 * len(own.model.bodies))
        start = columns.stop
        used = np.any(rows[:, :, columns] != 0, axis=(0, 2))
        apart[name] = [mass[:, columns, columns], rows[:, used][:, :, columns]]
        apart[name] += [force[:, columns], offset[:, used]]
    return apart


@pytest.fixture(scope="module")
def park(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Park:
    """The random trees beside the robots of the parameter."""
    return park_of(PARKS[request.param], tmp_path_factory.getbasetemp())


# The usual run takes few files, which import and compile in less time: one robot that floats.
PARKS = {"few": ("solo12",), "all": tuple(ROBOTS)}
FILES = [(park, name) for park, names in PARKS.items() for name in (*names, "trees")]
each_file = pytest.mark.parametrize(
    ("park", "name"), representatives_at(FILES, 0, 1), indirect=["park"]
)


@each_file
def test_accelerations_are_those_of_mujoco(park: Park, name: str):
    tree, drawn = park.trees[name], park.drawn[name]
    assert tree.peer.nv >= 6
    for k, qacc in enumerate(drawn.qacc):
        assert np.max(np.abs(qacc)) > 1
        dv = acceleration(*(x[k] for x in park.equations[name]))
        tree.place(drawn.qpos[k])
        found = tree.joint_accelerations(drawn.q[k], drawn.v[k], dv)
        np.testing.assert_allclose(found, qacc, rtol=0, atol=1e-9 * np.max(np.abs(qacc)))


@each_file
def test_mass_and_motion_are_those_of_mujoco(park: Park, name: str):
    """Total mass, centre of mass, kinetic energy; and joints hold at every state."""
    tree, drawn = park.trees[name], park.drawn[name]
    mass, rows, *_ = park.equations[name]
    bodies = park.imported[name].model.bodies
    masses = np.array([float(getattr(b, "mass", 0.0)) for b in bodies])
    total = tree.peer.body_mass[tree.peer.body_weldid != 0].sum()
    np.testing.assert_allclose(masses.sum(), total, rtol=1e-12)
    places = drawn.q.reshape(STATES, -1, 7)[:, :, :3]
    centers = np.einsum("b,sbi->si", masses, places) / total
    np.testing.assert_allclose(centers, drawn.center, rtol=0, atol=1e-12 * np.max(np.abs(centers)))
    energies = 0.5 * np.einsum("si,sij,sj->s", drawn.v, mass, drawn.v)
    np.testing.assert_allclose(energies, drawn.energy, rtol=1e-12)
    speeds = np.einsum("sri,si->sr", rows, drawn.v)
    np.testing.assert_allclose(speeds, 0, atol=1e-12 * np.max(np.abs(drawn.v)))


@pytest.mark.parametrize("park", representatives(PARKS, "few"), indirect=True)
def test_trees_hold_every_kind_of_joint(park: Park):
    """The random trees are worth their name."""
    model = park.imported["trees"].model
    kinds = {type(joint) for joint in model.joints}
    assert kinds == {spatial.Revolute, spatial.Translational, spatial.Spherical}
    assert any(isinstance(body, spatial.MasslessBody) for body in model.bodies)
    assert {type(own) for own in model.elements} == {
        spatial.ReflectedInertia,
        spatial.ReflectedMass,
        spatial.BallInertia,
    }
    assert (
        len({body.split()[1] for body in park.imported["trees"].bodies if body != "ground"}) == 10
    )
