"""Trajectories as files: nothing is lost in `.npz`, and a `.csv` is what MODEL.md says."""

import csv
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jaxmbs import Model, MultibodySystem, planar, RESULTS, spatial, Trajectory
from jaxmbs._dynamics import Statistics
from jaxmbs.io import load_trajectory, ModelError, save_trajectory


COUNT = 4


def door() -> MultibodySystem:
    """A door on one hinge, a free body that turns about all axes, and a particle."""
    bodies = [
        spatial.Body("door", mass=2.0, inertia=(0.4, 0.3, 0.2), position=(0.5, 0.0, 1.0)),
        spatial.Body("stone", mass=1.0, inertia=(0.1, 0.2, 0.25), position=(0.0, 3.0, 0.0)),
        spatial.Particle("speck", mass=0.1, position=(0.0, 0.0, 5.0)),
    ]
    hinge = spatial.Revolute("hinge", ("ground", "door"), (0.0, 0.0, 1.0), (0.0, 0.0, 1.0))
    return Model("door", 3, bodies=bodies, joints=[hinge]).system()


def moved(system: MultibodySystem, rng: np.random.Generator) -> Trajectory:
    """A trajectory of random numbers: what it means is no matter here."""
    structure = system.structure
    steps = rng.uniform(-1.0, 1.0, (COUNT, structure.nv))
    q = jnp.stack([system.retract(system.reference_q, jnp.asarray(step)) for step in steps])

    def numbers(*shape: int) -> jax.Array:
        return jnp.asarray(rng.normal(size=shape))

    return Trajectory(
        times=jnp.linspace(0.0, 1.0, COUNT),
        q=q,
        v=numbers(COUNT, structure.nv),
        acceleration=numbers(COUNT, structure.nv),
        multipliers=numbers(COUNT, len(structure.rows)),
        position_error=numbers(COUNT),
        velocity_error=numbers(COUNT),
        reached=jnp.asarray([True, True, True, False]),
        passages=jnp.asarray([0.25, jnp.nan]),
        passage_count=jnp.asarray(1),
        stopped=jnp.asarray(True),
        statistics=Statistics(jnp.asarray(7), jnp.asarray(5), jnp.asarray(2)),
        result=RESULTS.step_too_small,
        system=system,
        message="It went no further.",
    )


@pytest.fixture(scope="module")
def trajectory() -> Trajectory:
    return moved(door(), np.random.default_rng(1))


@pytest.fixture(scope="module")
def table(trajectory: Trajectory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("csv") / "door.csv"
    save_trajectory(trajectory, path)
    return path


def test_npz_holds_everything(trajectory: Trajectory, tmp_path: Path):
    path = tmp_path / "door.npz"
    save_trajectory(trajectory, path)
    back = load_trajectory(path, trajectory.system)
    assert back.message == "It went no further."
    assert back.result == RESULTS.step_too_small
    for mine, other in zip(jax.tree.leaves(trajectory), jax.tree.leaves(back), strict=True):
        np.testing.assert_array_equal(mine, other)
        assert mine.dtype == other.dtype


@pytest.mark.parametrize("name", ["two.npz", "two.csv"])
def test_a_batch_is_refused(name: str, trajectory: Trajectory, tmp_path: Path):
    arrays, rest = eqx.partition(trajectory, eqx.is_array)
    twice = eqx.filter_vmap(lambda _: eqx.combine(arrays, rest))(jnp.zeros(2))
    with pytest.raises(ModelError, match="one trajectory"):
        save_trajectory(twice, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_columns_of_the_csv(trajectory: Trajectory, table: Path):
    with table.open(newline="") as file:
        header, *lines = list(csv.reader(file))
    body = [f"position.{c}" for c in "xyz"] + [f"orientation.{c}" for c in "wxyz"]
    body += [f"{word}.{c}" for word in ("velocity", "angular_velocity") for c in "xyz"]
    speck = [f"{word}.{c}" for word in ("position", "velocity") for c in "xyz"]
    joint = [f"{word}.{c}" for word in ("force", "torque") for c in "xyz"] + ["unique"]
    expected = ["time", *(f"door.{x}" for x in body), *(f"stone.{x}" for x in body)]
    expected += [*(f"speck.{x}" for x in speck), *(f"hinge.{x}" for x in joint)]
    expected += ["error.position", "error.velocity"]
    assert header[: len(expected)] == expected
    rest = header[len(expected) :]
    assert {"stone.angular_acceleration.y", "speck.acceleration.z", "hinge.x.multiplier"} < set(
        rest
    )
    columns = dict(zip(header, np.array(lines, dtype=float).T, strict=True))
    # The angular velocity is that of the trajectory, turned to world axes.
    q, v = np.array(trajectory.q), np.array(trajectory.v)
    spin = Rotation.from_quat(q[:, 10:14], scalar_first=True).apply(v[:, 9:12])
    found = np.stack([columns[f"stone.angular_velocity.{c}"] for c in "xyz"], axis=1)
    np.testing.assert_allclose(found, spin, rtol=0, atol=1e-14)
    # Point rows are ground minus door, so that lambda is what pushes the door.
    np.testing.assert_allclose(columns["hinge.force.x"], trajectory.multipliers[:, 0], atol=1e-14)
    assert columns["hinge.unique"].tolist() == [1.0] * COUNT


def test_csv_comes_back(trajectory: Trajectory, table: Path):
    back = load_trajectory(table, trajectory.system)
    for name in ("times", "q", "position_error", "velocity_error", "multipliers"):
        np.testing.assert_array_equal(getattr(back, name), getattr(trajectory, name))
    for name in ("v", "acceleration"):
        np.testing.assert_allclose(
            getattr(back, name), getattr(trajectory, name), rtol=0, atol=1e-14
        )


def test_another_system_is_refused(trajectory: Trajectory, table: Path, tmp_path: Path):
    bar = planar.Body("bar", mass=1.0, inertia=1.0, position=(0.0, 0.0))
    other = Model("bar", 2, bodies=[bar]).system()
    path = tmp_path / "door.npz"
    save_trajectory(trajectory, path)
    with pytest.raises(ModelError, match="another system: its row names differ"):
        load_trajectory(path, other)
    with pytest.raises(ModelError, match=r"no column 'bar\.position\.x'"):
        load_trajectory(table, other)


@pytest.mark.parametrize("name", ["door.nc", "door.zarr", "door.txt", "door"])
def test_other_endings_are_refused(name: str, trajectory: Trajectory, tmp_path: Path):
    with pytest.raises(ModelError, match=r"\.npz or|a \.npz"):
        save_trajectory(trajectory, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["door.npz", "door.csv"])
def test_what_is_no_such_file_is_refused(name: str, trajectory: Trajectory, tmp_path: Path):
    (tmp_path / name).write_text("a door,\n1,2,3\n")
    with pytest.raises(ModelError, match="is no"):
        load_trajectory(tmp_path / name, trajectory.system)
