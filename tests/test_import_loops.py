"""Closed loops of other programs' files: rank, redundancy and verdicts are those of a dense
decomposition in NumPy, and their motion keeps them closed."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from closed_loop_models import GRIPPER, scott_russell
from oracle_sdf import Dense, dense_rows, rank, unique
from robots import robot_folder

import jaxmbs as jm
from jaxmbs import spatial
from jaxmbs.io import import_model, model_from_tables


CLOSED = 1e-12


def dense_of(model: jm.Model, length: float) -> Dense:
    """Rows of the joints of a spatial model in its reference configuration, written anew."""
    centers = {b.name: np.asarray(b.reference().origin) for b in model.bodies}
    columns = {name: 6 * k for k, name in enumerate(centers)}

    def moving(name: str, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        speed, spin = np.zeros((2, 3, 6 * len(columns)))
        if name != "ground":
            k, (x, y, z) = columns[name], (point - centers[name]) / length
            speed[:, k : k + 3] = spin[:, k + 3 : k + 6] = np.eye(3)
            speed[:, k + 3 : k + 6] = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
        return speed, spin

    def rows(joint) -> np.ndarray:
        if isinstance(joint, spatial.Coupling):
            assert joint.measures == ("rotation", "rotation")
            spins = [moving(name, np.zeros(3))[1] for name in joint.bodies]
            axes = [np.asarray(a) / np.linalg.norm(a) for a in joint.axes]
            first, second = (axes[k] @ (spins[2 * k + 1] - spins[2 * k]) for k in range(2))
            return (first - float(joint.coefficients[1]) * second)[None]
        point = np.asarray(joint.at[0])
        (speed, spin), (other, turn) = (moving(name, point) for name in joint.bodies)
        gap, between = other - speed, turn - spin
        if isinstance(joint, spatial.Spherical):
            return gap
        axis = np.asarray(joint.axis) / np.linalg.norm(joint.axis)
        across = np.linalg.svd(axis[None])[2][1:]
        if isinstance(joint, spatial.Revolute):
            return np.concatenate([gap, across @ between])
        assert isinstance(joint, spatial.Translational)
        return np.concatenate([across @ gap, between])

    found = {joint.name: rows(joint) for joint in model.joints}
    return Dense(tuple(found), found)


def assert_verdicts(system: jm.MultibodySystem, dense: Dense) -> jm.Solvability:
    """Rank, redundancy and every verdict."""
    found = jm.analyze(system, system.reference_q)
    assert int(found.rank) == rank(dense.matrix)
    assert int(found.redundancy) == len(dense.matrix) - rank(dense.matrix)
    verdicts = {name: bool(found.unique(name)) for name in system.structure.constraint_names}
    assert verdicts == unique(dense)
    return found


def assert_stays_closed(system: jm.MultibodySystem) -> jm.Trajectory:
    """For a second."""
    motion = jm.simulate(system, system.reference_q, system.initial_v, 1.0, every=0.25)
    assert np.max(motion.position_error) < CLOSED
    assert np.max(motion.velocity_error) < CLOSED
    assert np.max(np.abs(motion.v[-1])) > 0.01
    return motion


def test_cassie():
    path = robot_folder() / "cassie_description/robots/cassie.sdf"
    # The file gives the rotors of the feet moments that no body can have.
    imported = import_model(path, balance=True)
    system = imported.system()
    dense = dense_rows(path, float(system.characteristic_length()))
    found = assert_verdicts(system, dense)
    assert int(found.redundancy) == 8
    assert [o.name for o in imported.omissions if o.kind == "inertia"] == [
        "left-foot-reference",
        "right-foot-reference",
    ]


@pytest.fixture(scope="module")
def gripper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gripper") / "gripper.xml"
    path.write_text(GRIPPER)
    return path


def test_gripper(gripper: Path):
    """Each finger is a planar loop in space, whose pin holds one motion twice that is not there:
    across the plane."""
    imported = import_model(gripper, controls={"grip": 0.05})
    system = imported.system()
    found = assert_verdicts(system, dense_of(imported.model, float(system.characteristic_length())))
    assert (int(found.redundancy), int(found.mobility)) == (2, 2)
    verdicts = {name: bool(found.unique(name)) for name in system.structure.constraint_names}
    assert verdicts["lift"]
    assert verdicts["gear"]
    assert not verdicts["left loop"]
    motion = assert_stays_closed(system)
    drives = [
        motion.q[:, 7 * k + 3 : 7 * k + 7]
        for k, b in enumerate(imported.model.bodies)
        if b.name in ("left crank", "right crank")
    ]
    # About opposite axes by the same angle.
    assert np.max(np.abs(drives[0] - drives[1] * np.array([1, 1, -1, 1]))) < 1e-9


def test_scott_russell():
    """Redundant in space, where solvers without a remedy stop, and not in the plane."""
    planar, space = (model_from_tables(dict(scott_russell(d))).system() for d in (2, 3))
    flat = jm.analyze(planar, planar.reference_q)
    assert (int(flat.redundancy), int(flat.mobility)) == (0, 2)
    assert all(bool(flat.unique(name)) for name in planar.structure.constraint_names)
    model = model_from_tables(dict(scott_russell(3)))
    found = assert_verdicts(space, dense_of(model, float(space.characteristic_length())))
    assert (int(found.redundancy), int(found.mobility)) == (9, 2)
    motion = assert_stays_closed(space)
    again = jm.simulate(planar, planar.reference_q, planar.initial_v, 1.0, every=0.25)
    places = jnp.reshape(motion.q, (len(motion.times), -1, 7))[:, :, jnp.array([0, 2])]
    flat_places = jnp.reshape(again.q, (len(again.times), -1, 3))[:, :, :2]
    np.testing.assert_allclose(places, flat_places, atol=1e-6)
