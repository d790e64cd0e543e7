"""Trajectories as files: nothing is lost in `.npz`, `.nc` and `.zarr`, and a `.csv` is what
`io/REFERENCE.md` says."""

import csv
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from scipy.spatial.transform import Rotation

from jaxmbs import AbstractSystem, GeneralizedSystem, Model, MultibodySystem, planar, spatial
from jaxmbs._dynamics import Statistics
from jaxmbs._dynamics._passages import Passages
from jaxmbs.io import load_trajectory, ModelError, save_trajectory
from jaxmbs.results import Kinematics, RESULTS, Trajectory


COUNT = 4

# Those in which nothing is lost.
LOSSLESS = ("motion.npz", "motion.nc", "motion.zarr")


def door() -> MultibodySystem:
    """A door on one hinge, a free body that turns about all axes, and a particle."""
    bodies = [
        spatial.Body("door", mass=2.0, inertia=(0.4, 0.3, 0.2), position=(0.5, 0.0, 1.0)),
        spatial.Body("stone", mass=1.0, inertia=(0.1, 0.2, 0.25), position=(0.0, 3.0, 0.0)),
        spatial.Particle("speck", mass=0.1, position=(0.0, 0.0, 5.0)),
    ]
    hinge = spatial.Revolute("hinge", ("ground", "door"), (0.0, 0.0, 1.0), (0.0, 0.0, 1.0))
    return Model("door", 3, bodies=bodies, joints=[hinge]).system()


def moved(system: AbstractSystem, q: jax.Array, rng: np.random.Generator) -> Trajectory:
    """A trajectory of random numbers: what it means is no matter here."""
    structure = system.structure
    steps = rng.uniform(-1.0, 1.0, (COUNT, structure.nv))
    q = jnp.stack([system.retract(q, jnp.asarray(step)) for step in steps])

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
        passes=Passages(jnp.asarray([0.25, jnp.nan]), jnp.asarray(1)),
        stopped=jnp.asarray(True),
        statistics=Statistics(jnp.asarray(7), jnp.asarray(5), jnp.asarray(2)),
        result=RESULTS.step_too_small,
        system=system,
        message="It went no further.",
    )


@pytest.fixture(scope="module")
def trajectory() -> Trajectory:
    system = door()
    return moved(system, system.reference_q, np.random.default_rng(1))


@pytest.fixture(scope="module")
def free() -> Trajectory:
    """Of generalized coordinates without any row, and without bodies."""
    system = GeneralizedSystem(
        ["x", "turn"],
        mass_matrix=lambda q: jnp.eye(2),
        force=lambda q, v, t: -q,
        constraints={},
        lengths=["x"],
    )
    found = moved(system, jnp.zeros(2), np.random.default_rng(2))
    return eqx.tree_at(lambda x: x.passes, found, Passages.none(found.q.dtype))


@pytest.fixture(scope="module")
def table(trajectory: Trajectory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("csv") / "door.csv"
    save_trajectory(trajectory, path)
    return path


def same(first: Trajectory, second: Trajectory) -> None:
    assert (first.message, first.result) == (second.message, second.result)
    arrays = (jax.tree.leaves(eqx.filter(x, eqx.is_array)) for x in (first, second))
    for mine, other in zip(*arrays, strict=True):
        np.testing.assert_array_equal(mine, other)
        assert mine.dtype == other.dtype


@pytest.mark.parametrize("name", LOSSLESS)
def test_nothing_is_lost(name: str, trajectory: Trajectory, free: Trajectory, tmp_path: Path):
    path = tmp_path / name
    for given in (trajectory, free):
        # The second takes the place of the first.
        save_trajectory(given, path)
        back = load_trajectory(path, given.system)
        assert back.message == "It went no further."
        same(given, back)
    assert list(tmp_path.iterdir()) == [path]


def test_columns_with_units(trajectory: Trajectory, tmp_path: Path):
    """The same numbers under other names, and read as before."""
    plain, named = tmp_path / "plain.csv", tmp_path / "named.csv"
    save_trajectory(trajectory, plain)
    save_trajectory(trajectory, named, units=True)
    (head, *lines), (names, *others) = (
        path.read_text(encoding="utf-8").splitlines() for path in (plain, named)
    )
    assert others == lines
    pairs = dict(zip(head.split(","), names.split(","), strict=True))
    for name, unit in {
        "time": "s",
        "door.position.x": "m",
        "stone.angular_velocity.z": "rad/s",
        "door.angular_acceleration.x": "rad/s^2",
        "hinge.force.z": "N",
        "hinge.torque.x": "N m",
        "hinge.y.multiplier": "N",
        "hinge.a1.multiplier": "N m",
    }.items():
        assert pairs[name] == f"{name} ({unit})"
    for name in ("door.orientation.w", "hinge.unique", "error.position", "error.velocity"):
        assert pairs[name] == name
    first, second = (load_trajectory(path, trajectory.system) for path in (plain, named))
    same(first, second)


@pytest.fixture(scope="module", params=["nc", "zarr"])
def labelled(
    trajectory: Trajectory, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> xarray.Dataset:
    path = tmp_path_factory.mktemp("labelled") / f"door.{request.param}"
    save_trajectory(trajectory, path)
    with xarray.open_dataset(path) as opened:
        return opened.load()


def test_entries_are_found_by_name(trajectory: Trajectory, labelled: xarray.Dataset):
    np.testing.assert_array_equal(labelled["time"], trajectory.times)
    first = labelled["q"].sel(coordinate="door.orientation.w")
    np.testing.assert_array_equal(first, trajectory.q[:, 3])
    assert first.dims == ("time",)
    spin = labelled["v"].sel(speed="stone.angular_velocity.z")
    np.testing.assert_array_equal(spin, trajectory.v[:, 11])
    row = labelled["multipliers"].sel(row="hinge.y")
    np.testing.assert_array_equal(row, trajectory.multipliers[:, 1])
    # Point rows are ground minus door, so that lambda is what pushes the door.
    force = labelled["force"].sel(joint="hinge", axis="y")
    np.testing.assert_allclose(force, row, rtol=0, atol=1e-14)
    assert bool(labelled["unique"].all())
    position = labelled["position"].sel(body="speck")
    np.testing.assert_array_equal(position, trajectory.q[:, 14:])
    orientation = labelled["orientation"]
    np.testing.assert_array_equal(orientation.sel(body="stone"), trajectory.q[:, 10:14])
    # A particle has none.
    assert bool(np.isnan(orientation.sel(body="speck")).all())


def test_units_are_attributes(labelled: xarray.Dataset):
    units = {name: x.attrs.get("units") for name, x in labelled.variables.items()}
    assert units["time"] == "s"
    assert (units["q"], units["v"]) == ("m, 1", "m/s, rad/s")
    assert (units["force"], units["torque"]) == ("N", "N m")
    assert (units["position"], units["angular_velocity"]) == ("m", "rad/s")
    assert labelled["row_unit"].sel(row="hinge.x").item() == "N"
    assert labelled["row_unit"].sel(row="hinge.a1").item() == "N m"


@pytest.mark.parametrize("name", [*LOSSLESS, "motion.csv"])
def test_a_file_that_cannot_be_finished_leaves_what_was_there(
    name: str, trajectory: Trajectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / name
    save_trajectory(trajectory, path)
    before = load_trajectory(path, trajectory.system)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    monkeypatch.setattr("xarray.backends.common.ArrayWriter.sync", full)
    monkeypatch.setattr(csv, "writer", full)
    later = eqx.tree_at(lambda x: x.times, trajectory, trajectory.times + 1.0)
    with pytest.raises(OSError, match="No space"):
        save_trajectory(later, path)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == [path]
    same(before, load_trajectory(path, trajectory.system))


@pytest.mark.parametrize(
    ("name", "module"),
    [("motion.nc", "xarray"), ("motion.zarr", "xarray"), ("motion.zarr", "zarr")],
)
def test_a_missing_extra_is_named(
    name: str,
    module: str,
    trajectory: Trajectory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModelError, match=rf"needs {module}, .* pip install 'jaxmbs\[sweep\]'"):
        save_trajectory(trajectory, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_something_else_is_kept(trajectory: Trajectory, tmp_path: Path):
    path = tmp_path / "mine.zarr"
    path.mkdir()
    (path / "notes.txt").write_text("mine")
    with pytest.raises(ModelError, match="no store of a motion"):
        save_trajectory(trajectory, path)
    assert (path / "notes.txt").read_text() == "mine"
    xarray.Dataset({"x": ("time", np.arange(3.0))}).to_zarr(tmp_path / "x.zarr", zarr_format=2)
    with pytest.raises(ModelError, match="no store of a motion"):
        save_trajectory(trajectory, tmp_path / "x.zarr")


def test_a_kinematics_has_no_reactions(trajectory: Trajectory, tmp_path: Path):
    taken = ("times", "q", "v", "acceleration", "position_error", "velocity_error", "reached")
    arrays = {name: getattr(trajectory, name) for name in taken}
    arrays["regular"] = arrays["reached"]
    found = Kinematics(**arrays, result=RESULTS.successful, system=trajectory.system)
    for name in ("door.nc", "door.zarr"):
        save_trajectory(found, tmp_path / name)
        with xarray.open_dataset(tmp_path / name) as opened:
            assert {"position", "acceleration", "reached", "regular"} < set(opened.data_vars)
            assert opened["regular"].values.tolist() == found.regular.tolist()
            assert not {"force", "unique", "multipliers"} & set(opened.variables)
        with pytest.raises(ModelError, match="no file of a trajectory: it has no accepted"):
            load_trajectory(tmp_path / name, trajectory.system)


@pytest.mark.parametrize("name", [*LOSSLESS, "motion.csv"])
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


@pytest.mark.parametrize("name", LOSSLESS)
def test_another_system_is_refused(name: str, trajectory: Trajectory, table: Path, tmp_path: Path):
    bar = planar.Body("bar", mass=1.0, inertia=1.0, position=(0.0, 0.0))
    other = Model("bar", 2, bodies=[bar]).system()
    path = tmp_path / name
    save_trajectory(trajectory, path)
    with pytest.raises(ModelError, match="another system: its row names differ"):
        load_trajectory(path, other)
    with pytest.raises(ModelError, match=r"no column 'bar\.position\.x'"):
        load_trajectory(table, other)


def test_a_table_needs_bodies(free: Trajectory, tmp_path: Path):
    with pytest.raises(ModelError, match=r"save it as \.npz"):
        save_trajectory(free, tmp_path / "free.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_table_needs_coordinates_that_bodies_call(tmp_path: Path):
    """Those of bodies that a system in generalized coordinates names have names of their own."""
    system = GeneralizedSystem(
        ["x", "turn"],
        mass_matrix=lambda q: jnp.eye(2),
        force=lambda q, v, t: -q,
        constraints={},
        bodies={"bead": (["x"], ["turn"])},
    )
    found = moved(system, jnp.zeros(2), np.random.default_rng(2))
    with pytest.raises(ModelError, match=r"save it as \.npz"):
        save_trajectory(found, tmp_path / "bead.csv")


@pytest.mark.parametrize("name", ["door.txt", "door"])
def test_other_endings_are_refused(name: str, trajectory: Trajectory, tmp_path: Path):
    with pytest.raises(ModelError, match=r"ends in \.npz, \.csv, \.nc or \.zarr"):
        save_trajectory(trajectory, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [*LOSSLESS, "motion.csv"])
def test_what_is_no_such_file_is_refused(name: str, trajectory: Trajectory, tmp_path: Path):
    with pytest.raises(OSError, match="No such file"):
        load_trajectory(tmp_path / name, trajectory.system)
    (tmp_path / name).write_text("a door,\n1,2,3\n")
    with pytest.raises(ModelError, match="is no"):
        load_trajectory(tmp_path / name, trajectory.system)
