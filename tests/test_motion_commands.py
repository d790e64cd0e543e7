"""`simulate` and `kinematics` with their options, in space, with drivers, friction, passages and
failures, against closed forms."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import xarray
from scipy.special import ellipkinc
from typer.testing import CliRunner

from jaxmbs import mechanisms
from jaxmbs.cli import _simulate
from jaxmbs.cli._app import app
from jaxmbs.formulations import ElasticResolution
from jaxmbs.io import read_model, write_model


GRAVITY = 9.81

# A ring that falls along a pole about which a motor turns it.
MASS, ARM, AXIAL = 2.0, 0.5, 0.3
RATE, GAIN = 1.2, 0.8
RING = f"""
schema = 1
name = "ring"
dimension = 3
gravity = [0.0, 0.0, -{GRAVITY}]
[[body]]
name = "ring"
mass = {MASS}
inertia = [0.2, 0.25, {AXIAL}]
position = [{ARM}, 0.0, 1.0]
[[joint]]
name = "pole"
type = "cylindrical"
bodies = ["ground", "ring"]
at = [0.0, 0.0, 1.0]
axis = [0.0, 0.0, 1.0]
"""
MOTOR = f"""
[[driver]]
name = "motor"
joint = "pole"
coordinate = "rotation"
motion = {{ type = "polynomial", coefficients = [0.0, {RATE}, {GAIN / 2}] }}
"""
LIFT = """
[[driver]]
name = "lift"
joint = "pole"
coordinate = "translation"
motion = { type = "sine", amplitude = 0.1, frequency = 0.5 }
"""

# A block on two rails of one direction, which rub; and on one of them.
BLOCK = f"""
schema = 1
name = "block"
dimension = 2
gravity = [0.0, -{GRAVITY}]
[[body]]
name = "block"
mass = 2.0
inertia = 0.1
position = [0.0, 0.1]
velocity = [1.0, 0.0]
"""
RAIL = """
[[joint]]
name = "{name}"
type = "translational"
bodies = ["ground", "block"]
at = [{x}, 0.0]
axis = [1.0, 0.0]
[[force]]
name = "rub {name}"
type = "coulomb_friction"
joint = "{name}"
coefficient = 0.3
velocity = 1e-3
"""

# More than the mechanism can reach.
PULL = """
[[driver]]
name = "pull"
joint = "D"
coordinate = "translation"
motion = { type = "linear", rate = 0.2 }
"""


class Result(NamedTuple):
    code: int
    out: str
    err: str


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(app, [str(x) for x in arguments], catch_exceptions=False)
    return Result(result.exit_code, result.stdout, result.stderr)


def succeeding(*arguments: object) -> str:
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    return out


def document(*arguments: object) -> dict[str, Any]:
    return json.loads(succeeding(*arguments, "--json"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("motion")
    rails = [RAIL.format(name=name, x=x) for name, x in (("left", -0.2), ("right", 0.2))]
    texts = {
        "free": RING,
        "ring": RING + MOTOR,
        "lifted": RING + MOTOR + LIFT,
        "rails": BLOCK + "".join(rails),
        "rail": BLOCK + rails[0],
        "pulled": write_model(mechanisms.get("slider-crank")) + PULL,
    }
    for name, text in texts.items():
        (folder / f"{name}.toml").write_text(text)
    return folder


def turned(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angle and rate of the ring."""
    return RATE * times + GAIN / 2 * times**2, RATE + GAIN * times


# ---------------------------------------------------------------------------------------------
# simulate
# ---------------------------------------------------------------------------------------------

START, END = 0.4, 0.9
FALL = ("--time", START, "--end", END, "--assemble", "--formulation", "null-space")


@pytest.fixture(scope="module")
def fallen(folder: Path) -> dict[str, Any]:
    """The file's ring stands where the motor wants it at time 0, so that it must be assembled."""
    return document("simulate", folder / "ring.toml", *FALL, "--out", folder / "ring.nc")


def test_a_later_start_is_refused_without_assembly(folder: Path):
    code, out, err = run("simulate", folder / "ring.toml", *FALL[:4], "--json")
    assert (code, out) == (2, "")
    assert "driver 'motor' is open by" in err
    assert "--assemble" in err


@pytest.mark.thorough
def test_a_driven_ring_falls(fallen: dict[str, Any]):
    assert fallen["time"] == pytest.approx(END)
    assert fallen["formulation"] == "null-space"
    assert fallen["passages"] == []
    angle, rate = map(float, turned(np.array(END)))
    along, across = (
        np.array([np.cos(angle), np.sin(angle)]),
        np.array([-np.sin(angle), np.cos(angle)]),
    )
    fell = END - START
    ring = fallen["bodies"]["ring"]
    assert list(ring) == ["position", "orientation", "velocity", "angular_velocity"]
    height = 1.0 - GRAVITY * fell**2 / 2
    np.testing.assert_allclose(ring["position"], np.append(ARM * along, height), atol=1e-8)
    np.testing.assert_allclose(
        ring["velocity"], np.append(ARM * rate * across, -GRAVITY * fell), atol=1e-8
    )
    half = [np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)]
    np.testing.assert_allclose(ring["orientation"], half, atol=1e-8)
    np.testing.assert_allclose(ring["angular_velocity"], [0.0, 0.0, rate], atol=1e-8)
    assert fallen["constraint_error"]["position"] < 1e-12


def test_drivers_are_among_the_reactions(fallen: dict[str, Any]):
    assert list(fallen["reactions"]) == ["pole", "motor"]
    angle, rate = map(float, turned(np.array(END)))
    along, across = (
        np.array([np.cos(angle), np.sin(angle)]),
        np.array([-np.sin(angle), np.cos(angle)]),
    )
    pole, motor = fallen["reactions"]["pole"], fallen["reactions"]["motor"]
    # What accelerates the centre of mass; nothing acts along the pole.
    expected = MASS * ARM * (GAIN * across - rate**2 * along)
    np.testing.assert_allclose(pole["force"], [*expected, 0.0], atol=1e-6)
    np.testing.assert_allclose(motor["force"], 0.0, atol=1e-9)
    torque = (AXIAL + MASS * ARM**2) * GAIN
    np.testing.assert_allclose(motor["torque"], [0.0, 0.0, torque], atol=1e-7)
    assert (pole["unique"], motor["unique"]) == (True, True)


def test_the_whole_motion_as_netcdf(folder: Path, fallen: dict[str, Any]):
    with xarray.open_dataset(folder / "ring.nc") as motion:
        np.testing.assert_allclose(motion["time"], [START, END], atol=1e-14)
        last = motion.sel(body="ring", joint="motor").isel(time=-1)
        np.testing.assert_array_equal(last["position"], fallen["bodies"]["ring"]["position"])
        np.testing.assert_array_equal(last["torque"], fallen["reactions"]["motor"]["torque"])
        angle = turned(np.array(START))[0]
        start = motion["position"].sel(body="ring").isel(time=0)
        expected = [ARM * np.cos(angle), ARM * np.sin(angle), 1.0]
        np.testing.assert_allclose(start, expected, atol=1e-9)


@pytest.mark.usefixtures("fallen")
def test_a_spatial_motion_as_a_person_reads_it(folder: Path):
    text = succeeding("simulate", folder / "ring.toml", *FALL, "--out", folder / "ring.zarr")
    for said in ("from 0.4 s to 0.9 s by null-space", "orientation", "driver", "N m", "ring.zarr"):
        assert said in text
    with xarray.open_zarr(folder / "ring.zarr") as motion:
        assert motion["unique"].sel(joint="pole").values.all()


@pytest.mark.parametrize("name", _simulate.FORMULATIONS)
def test_every_formulation_has_its_name(name: str, folder: Path):
    system = read_model(folder / "ring.toml").system()
    request = _simulate.Request("ring.toml", end=1.0, formulation=name)
    if name == ElasticResolution.word:
        with pytest.raises(ValueError, match=r"--formulation elastic .* \[\[compliance\]\]"):
            _simulate._formulation(system, request)
        system = mechanisms.elastic_parallelogram().system()
    assert _simulate._formulation(system, request).word == name


@pytest.mark.thorough
def test_passages_are_told():
    """Of one window: theta'' = a sin theta from theta = 0 with rate 1, flat at a right angle."""
    a = GRAVITY * 2.0 / (2.0 / 3 + 1)
    # theta'^2 = 1 + 4 a sin^2(theta / 2).
    flat = 2 * ellipkinc(np.pi / 4, -4 * a)
    arguments = ("simulate", "four-bar-chain:1", "--end", 1.2 * flat)
    found = document(*arguments)
    np.testing.assert_allclose(found["passages"], [flat], rtol=0, atol=1e-4)
    text = succeeding(*arguments)
    assert f"passed 1 singular configuration, at {found['passages'][0]:.4f} s" in text


@pytest.mark.parametrize(
    ("name", "uncertain", "said"),
    [
        (
            "rails",
            ["left", "right"],
            "friction at the start: not certified: the reactions of left, right are",
        ),
        pytest.param(
            "rail",
            [],
            "friction at the start: certified unique: the reaction of every joint with friction",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_friction_is_certified_or_not(name: str, uncertain: list[str], said: str, folder: Path):
    arguments = ("simulate", folder / f"{name}.toml", "--end", 0.2)
    found = document(*arguments)
    joints = ["left", "right"] if uncertain else ["left"]
    assert found["certificate"] == {
        "certified": not uncertain,
        "joints": joints,
        "uncertain": uncertain,
        # One rail is not pressed by its own friction; what presses two is not unique.
        "solvable": not uncertain,
        "critical_coefficients": dict.fromkeys(joints),
        # (What presses is not known, and so is the number of accelerations.)
        "solutions": None if uncertain else 1,
    }
    # Whatever each rail carries, together they carry the weight.
    speed = found["bodies"]["block"]["velocity"][0]
    assert speed == pytest.approx(1 - 0.3 * GRAVITY * 0.2, abs=1e-5)
    assert said in " ".join(succeeding(*arguments).split())


# ---------------------------------------------------------------------------------------------
# kinematics
# ---------------------------------------------------------------------------------------------

LIFTED = ("--end", 1.0, "--every", 0.3)
TIMES = np.array([0.0, 0.3, 0.6, 0.9, 1.0])


@pytest.fixture(scope="module")
def lifted(folder: Path) -> dict[str, Any]:
    out = folder / "lifted.npz"
    return document("kinematics", folder / "lifted.toml", *LIFTED, "--out", out)


@pytest.mark.thorough
def test_kinematics_in_space(lifted: dict[str, Any]):
    np.testing.assert_allclose(lifted["times"], TIMES, atol=1e-14)
    angle, rate = turned(TIMES)
    cos, sin, zero = np.cos(angle), np.sin(angle), np.zeros(5)
    phase, turn = np.pi * TIMES, np.pi
    expected = {
        "position": [ARM * cos, ARM * sin, 1.0 + 0.1 * np.sin(phase)],
        "orientation": [np.cos(angle / 2), zero, zero, np.sin(angle / 2)],
        "velocity": [-ARM * rate * sin, ARM * rate * cos, 0.1 * turn * np.cos(phase)],
        "angular_velocity": [zero, zero, rate],
        "acceleration": [
            -ARM * (GAIN * sin + rate**2 * cos),
            ARM * (GAIN * cos - rate**2 * sin),
            -0.1 * turn**2 * np.sin(phase),
        ],
        "angular_acceleration": [zero, zero, np.full(5, GAIN)],
    }
    ring = lifted["bodies"]["ring"]
    assert list(ring) == list(expected)
    for word, columns in expected.items():
        np.testing.assert_allclose(ring[word], np.stack(columns, axis=1), atol=1e-8)


@pytest.mark.thorough
def test_kinematics_as_npz(folder: Path, lifted: dict[str, Any]):
    with np.load(folder / "lifted.npz") as file:
        np.testing.assert_array_equal(file["times"], lifted["times"])
        np.testing.assert_array_equal(file["q"][:, :3], lifted["bodies"]["ring"]["position"])
        np.testing.assert_array_equal(file["v"][:, :3], lifted["bodies"]["ring"]["velocity"])
        assert file["body_names"].tolist() == ["ring"]
        assert (file["result"].item(), file["message"].item()) == ("", "")
        assert float(file["position_error"].max()) < 1e-10


def test_forces_of_a_prescribed_motion(folder: Path):
    """The motor's torque and the lift's force against closed forms, and their picture."""
    picture = folder / "forces.png"
    options = ("--reactions", "--plot", picture)
    found = document("kinematics", folder / "lifted.toml", *LIFTED, *options)
    torque = (AXIAL + MASS * ARM**2) * GAIN
    np.testing.assert_allclose(
        found["reactions"]["motor"]["torque"], [[0.0, 0.0, torque]] * len(TIMES), atol=1e-9
    )
    force = MASS * (GRAVITY - 0.1 * np.pi**2 * np.sin(np.pi * np.array(TIMES)))
    np.testing.assert_allclose(np.array(found["reactions"]["lift"]["force"])[:, 2], force)
    assert found["reactions"]["lift"]["unique"] == [True] * len(TIMES)
    assert found["plot"] == str(picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    text = succeeding("kinematics", folder / "lifted.toml", *LIFTED, "--reactions")
    assert "largest values" in text
    assert f"{torque:.6g}" in text
    assert "largest magnitudes over 5 states" in text


@pytest.mark.usefixtures("lifted")
@pytest.mark.thorough
def test_kinematics_as_a_person_reads_it(folder: Path):
    out = folder / "lifted.nc"
    text = succeeding("kinematics", folder / "lifted.toml", *LIFTED, "--out", out)
    assert "5 times from 0 s to 1 s; largest values" in text
    (line,) = [line for line in text.splitlines() if line.startswith("│ring")]
    # Rate and gain of the motor; largest at the end.
    assert f"{RATE + GAIN:.6g} at 1 s" in line
    assert f"{GAIN:.6g} at" in line
    assert f"wrote {out}" in " ".join(text.split())
    with xarray.open_dataset(out) as motion:
        assert motion["angular_velocity"].attrs["units"] == "rad/s"
        spin = motion["angular_velocity"].sel(body="ring", axis="z")
        np.testing.assert_allclose(spin, turned(TIMES)[1], atol=1e-8)


@pytest.mark.thorough
def test_kinematics_that_fails_keeps_what_it_has(folder: Path):
    out = folder / "pulled.npz"
    arguments = ("--end", 1.0, "--every", 0.05, "--out", out)
    code, text, err = run("kinematics", folder / "pulled.toml", *arguments, "--json")
    assert (code, text) == (1, "")
    for said in ("no configuration nearby", "a driver (pull)", f"is in {str(out)!r}"):
        assert said in err
    with np.load(out) as file:
        times, q = file["times"], file["q"]
        assert 0.0 < times[-1] < 1.0
        np.testing.assert_allclose(times, 0.05 * np.arange(len(times)), atol=1e-12)
        assert q.shape[0] == len(times)
        assert np.isfinite(q).all()
        assert f"known until {times[-1]:.9g} s" in err
        assert file["message"].item() in err


def test_undriven_mobilities_are_counted(folder: Path):
    code, out, err = run("kinematics", folder / "free.toml", *LIFTED, "--json")
    assert (code, out) == (2, "")
    assert "2 mobilities are not driven: 'ring'" in err
    assert "'ring' (moving along z)" in err
    assert "'ring' (turning)" in err
    assert len(err.splitlines()) == 1
    code, out, err = run("kinematics", folder / "ring.toml", *LIFTED, "--json")
    assert (code, out) == (2, "")
    assert "1 mobility is not driven: 'ring' (moving along z)" in err
