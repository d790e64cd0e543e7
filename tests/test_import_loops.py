"""Closed loops of other programs' files: rank, redundancy and verdicts are those of a dense
decomposition in NumPy, and their motion keeps them closed."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from closed_loop_models import GRIPPER, scott_russell
from combined import side_by_side
from oracle_sdf import decomposed, Dense, dense_rows
from robots import robot_folder

import jaxmbs as jm
from jaxmbs import spatial
from jaxmbs.io import import_model, Imported, model_from_tables


CASSIE = robot_folder() / "cassie_description/robots/cassie.sdf"


def dense_of(model: Any, length: float) -> Dense:
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

    def rows(joint: Any) -> np.ndarray:
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


class Park(NamedTuple):
    """Cassie, the gripper and the double Scott-Russell mechanism side by side, so that there is
    one program for verdicts and one for motions."""

    model: jm.Model
    system: jm.MultibodySystem
    cassie: Imported
    gripper: Imported


@pytest.fixture(scope="module")
def park(tmp_path_factory: pytest.TempPathFactory) -> Park:
    path = tmp_path_factory.mktemp("gripper") / "gripper.xml"
    path.write_text(GRIPPER)
    # The file gives the rotors of the feet moments that no body can have. Its numbers are taken as
    # exact, as the dense decomposition takes them.
    cassie = import_model(CASSIE, balance=True, precision=0)
    gripper = import_model(path, controls={"grip": 0.02}, precision=0)
    lift = model_from_tables(dict(scott_russell(3)))
    models = {"cassie": cassie.model, "gripper": gripper.model, "lift": lift}
    model = side_by_side(models)
    return Park(model, model.system(), cassie, gripper)


@pytest.fixture(scope="module")
def verdicts(park: Park) -> jm.results.Solvability:
    return jm.analyze(park.system, park.system.reference_q)


def of(verdicts: jm.results.Solvability, prefix: str) -> dict[str, bool]:
    names = verdicts.structure.constraint_names
    mine = [name for name in names if name.startswith(f"{prefix} ")]
    return {name.removeprefix(f"{prefix} "): bool(verdicts.unique(name)) for name in mine}


@pytest.mark.thorough
def test_cassie_has_the_verdicts_of_its_file(park: Park, verdicts: jm.results.Solvability):
    """From the XML, with which the model has nothing in common."""
    rank, unique = decomposed(dense_rows(CASSIE, float(park.system.characteristic_length())))
    assert (rank, len(unique)) == (194, 50)
    assert of(verdicts, "cassie") == unique
    assert [o.name for o in park.cassie.omissions if o.kind == "inertia"] == [
        "left-foot-reference",
        "right-foot-reference",
    ]


def test_verdicts_are_those_of_a_dense_decomposition(park: Park, verdicts: jm.results.Solvability):
    dense = dense_of(park.model, float(park.system.characteristic_length()))
    rank, unique = decomposed(dense)
    assert int(verdicts.rank) == rank
    names = park.system.structure.constraint_names
    assert {name: bool(verdicts.unique(name)) for name in names} == unique
    # Cassie 8; a finger holds one motion twice that is not there, across its plane; each of the
    # lift's three loops three.
    assert int(verdicts.redundancy) == len(dense.matrix) - rank == 8 + 2 + 9
    assert int(verdicts.mobility) == 16 + 2 + 2


def test_what_is_unique_in_planar_loops(verdicts: jm.results.Solvability):
    gripper, lift = of(verdicts, "gripper"), of(verdicts, "lift")
    assert gripper["lift"]
    assert gripper["gear"]
    assert not gripper["left loop"]
    assert not any(lift.values())


def test_scott_russell_in_the_plane_is_not_redundant():
    """What solvers without a remedy stop at is the third dimension."""
    planar = model_from_tables(dict(scott_russell(2))).system()
    flat = jm.analyze(planar, planar.reference_q)
    assert (int(flat.redundancy), int(flat.mobility)) == (0, 2)
    assert all(bool(flat.unique(name)) for name in planar.structure.constraint_names)


def moved(
    model: jm.Model, system: jm.MultibodySystem, *, monitor: bool
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Places of the bodies at the start and after a second, in which all loops stay closed."""
    q, v = system.reference_q, system.initial_v
    motion = jm.simulate(system, q, v, 1.0, every=0.5, monitor=monitor)
    assert np.max(motion.position_error) < 1e-12
    assert np.max(motion.velocity_error) < 1e-12
    both = np.stack([q, motion.q[-1]]).reshape(2, len(model.bodies), 7)
    return {body.name: (*both[:, k],) for k, body in enumerate(model.bodies)}


@pytest.mark.thorough
def test_the_lift_stays_closed_for_a_second():
    lift = model_from_tables(dict(scott_russell(3)))
    before, after = moved(lift, lift.system(), monitor=False)["platform"]
    assert np.max(np.abs(after - before)) > 1e-3


@pytest.mark.thorough
def test_loops_stay_closed_for_a_second(park: Park):
    places = moved(park.model, park.system, monitor=True)
    for name in ("cassie pelvis", "gripper left crank", "lift platform"):
        before, after = places[name]
        assert np.max(np.abs(after - before)) > 1e-3, name
    # The fingers are geared: about opposite axes by the same angle.
    left, right = (places[f"gripper {side} crank"][1][3:] for side in ("left", "right"))
    np.testing.assert_allclose(left * np.array([1, 1, -1, 1]), right, atol=1e-9)
