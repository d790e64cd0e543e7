"""Inertias whose numbers stand in places that are not theirs, and numbers that are left out: each
is told by the name of its link, and mended only where it is certain what was meant."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from robots import robot_folder
from typer.testing import CliRunner

from jaxmbs import spatial
from jaxmbs.cli._app import app
from jaxmbs.io import import_model, Imported
from jaxmbs.io._imports._masses import slip_of


SIX = ("xx", "xy", "xz", "yy", "yz", "zz")
ORDERS = {"urdf": SIX, "sdf": SIX, "xml": ("xx", "yy", "zz", "xy", "xz", "yz")}
TURN = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


def urdf(numbers: Sequence[float], extra: str = "") -> str:
    said = " ".join(f'i{n}="{float(v)!r}"' for n, v in zip(SIX, numbers, strict=True))
    return (
        '<robot name="r"><link name="base"/><link name="a"><inertial><origin rpy="0 0 '
        f'{np.pi / 2!r}"/><mass value="2"/><inertia {said}/></inertial></link><joint name="j" '
        f'type="continuous"><parent link="base"/><child link="a"/></joint>{extra}</robot>'
    )


def sdf(numbers: Sequence[float], extra: str = "") -> str:
    said = "".join(f"<i{n}>{float(v)!r}</i{n}>" for n, v in zip(SIX, numbers, strict=True))
    return (
        f"<sdf version='1.9'><model name='m'><link name='a'><inertial><pose>0 0 0 0 0 {np.pi / 2!r}"
        f"</pose><mass>2</mass><inertia>{said}</inertia></inertial></link><joint name='j' "
        f"type='revolute'><parent>world</parent><child>a</child></joint>{extra}</model></sdf>"
    )


def mjcf(numbers: Sequence[float], extra: str = "") -> str:
    """`fullinertia` takes no orientation: the body has it."""
    said = " ".join(repr(float(v)) for v in numbers)
    return (
        f"<mujoco><compiler angle='radian'/><worldbody><body name='a' euler='0 0 {np.pi / 2!r}'>"
        f"<joint name='j'/><inertial pos='0 0 0' mass='2' fullinertia='{said}'/></body>{extra}"
        "</worldbody></mujoco>"
    )


FILES: dict[str, Callable[..., str]] = {"urdf": urdf, "sdf": sdf, "xml": mjcf}


def solid(seed: int, *, full: bool) -> np.ndarray:
    """Moments of points of mass, along their own axes or near to them."""
    rng = np.random.default_rng(seed)
    squares = rng.uniform(0.2, 1.0, 3) ** 2
    second = np.diag(squares)
    if full:
        turn = np.linalg.qr(np.eye(3) + 0.03 * rng.normal(size=(3, 3)))[0]
        second = turn @ second @ turn.T
    return np.trace(second) * np.eye(3) - (second + second.T) / 2


def in_order(matrix: np.ndarray, order: Sequence[str]) -> list[float]:
    return [float(matrix["xyz".index(n[0]), "xyz".index(n[1])]) for n in order]


def matrix_of(found: Imported) -> np.ndarray:
    body: Any = found.model.bodies[0]
    own = np.asarray(body.inertia)
    turn = np.asarray(body.reference().rotation)
    return turn @ (np.diag(own) if own.ndim == 1 else own) @ turn.T


def told(found: Imported, kind: str = "inertia") -> dict[str, str]:
    return {own.name: own.why for own in found.omissions if own.kind == kind}


SLIPS = {
    "rows": ("urdf", "sdf", "xml"),
    "other order": ("urdf", "sdf", "xml"),
    "lower triangle": ("urdf", "sdf"),
}


@pytest.mark.parametrize("full", [False, True], ids=["diagonal", "full"])
@pytest.mark.parametrize(
    ("slip", "kind"), [(slip, kind) for slip, kinds in SLIPS.items() for kind in kinds]
)
def test_numbers_in_the_wrong_places_are_put_right(
    slip: str, kind: str, full: bool, tmp_path: Path
):
    """The matrix that was meant comes back, except for a number that no place holds."""
    meant = solid(3, full=full)
    other = "xml" if kind != "xml" else "urdf"
    numbers = {
        "rows": list(map(float, meant.reshape(9)[:6])),
        "other order": in_order(meant, ORDERS[other]),
        "lower triangle": in_order(meant, ("xx", "xy", "yy", "xz", "yz", "zz")),
    }[slip]
    path = tmp_path / f"m.{kind}"
    path.write_text(FILES[kind](numbers))
    found = import_model(path)
    matrix = TURN.T @ matrix_of(found) @ TURN
    given = np.triu(np.ones((3, 3), bool))
    given[2, 2] = slip != "rows"
    np.testing.assert_allclose(matrix[given], meant[given], rtol=1e-9, atol=1e-12)
    why = told(found)["a"]
    assert "read so" in why
    if slip == "rows":
        assert f"zz, for which {matrix[2, 2]:.6g} is taken" in why
        # The middle: as far from either end of what a body can have.
        ends = [_largest(meant, sign, matrix[2, 2]) for sign in (1.0, -1.0)]
        np.testing.assert_allclose(ends[0], ends[1], rtol=1e-6)
        if not full:
            np.testing.assert_allclose(matrix[2, 2], max(meant[0, 0], meant[1, 1]), rtol=1e-9)
    said = CliRunner().invoke(app, ["lint", str(path)])
    assert (said.exit_code, "JM401" in said.output) == (1, True)


def _largest(meant: np.ndarray, sign: float, start: float) -> float:
    """How far the last moment may go, until a second moment of mass along any of many directions is
    none any more: x^T (tr I/2 - I) x >= 0."""
    rng = np.random.default_rng(0)
    rays = rng.normal(size=(400_000, 3))
    rays /= np.linalg.norm(rays, axis=1)[:, None]
    matrix = meant.copy()
    matrix[2, 2] = start
    fixed = np.trace(matrix) / 2 - np.einsum("ki,ij,kj->k", rays, matrix, rays)
    slope = sign * (0.5 - rays[:, 2] ** 2)
    reach = fixed[slope < 0] / -slope[slope < 0]
    return float(np.round(np.min(reach), 3))


def test_what_a_body_can_have_stays():
    """Also where two of its numbers are the same; and what cannot be is not taken for another."""
    rng = np.random.default_rng(1)
    for seed in range(60):
        body = solid(seed, full=True)
        assert slip_of(1.0, body) is None
        squares = np.sort(rng.uniform(0.1, 1.0, 2))
        wrong = np.diag([*squares, 1.1 * squares.sum()])[:, rng.permutation(3)]
        wrong = np.diag(wrong.sum(axis=0))
        found = slip_of(1.0, wrong)
        assert found is not None
        assert not found.repaired
        np.testing.assert_array_equal(found.inertia, wrong)
    same = np.array([[3.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 3.0]])
    # xy is yy there, and a body has it.
    assert slip_of(1.0, same) is None
    # Thin rods, points, and the rounding of zero.
    for moments in ([1, 1, 0], [0, 0, 0], [1e-16, -1e-16, 0]):
        assert slip_of(1.0, np.diag(np.array(moments, float))) is None


# Numbers with which no body can be and of which it is not certain what was meant: what is said.
DOUBTFUL = {
    "a product that holds a moment": (
        (6.37e-4, 4.846e-4, 4.24e-4, 9.29e-4, 5.1e-6, 4.846e-4),
        ("xy (0.0004846, which is zz too)", "between -7.7"),
    ),
    "six times the same": ((1e-3,) * 6, ("all its six numbers are 0.001",)),
    "signs of products": (
        (4.701e-6, 1.256e-6, 1.294e-6, 3.649e-6, 1.762e-6, 4.701e-6),
        ("the other sign of all products",),
    ),
    "one moment": ((1, 0, 0, 1.5, 0, 9), ("zz (9) were between 0.5 and 2.5",)),
    "nothing fits": ((-1, 0, 0, -1, 0, -1), ("positive",)),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("label", DOUBTFUL)
def test_what_is_doubtful_is_refused_with_a_guess_and_lint_goes_on(
    label: str, kind: str, tmp_path: Path
):
    numbers, words = DOUBTFUL[label]
    matrix = np.zeros((3, 3))
    for name, value in zip(SIX, numbers, strict=True):
        i, j = "xyz".index(name[0]), "xyz".index(name[1])
        matrix[i, j] = matrix[j, i] = value
    path = tmp_path / f"m.{kind}"
    path.write_text(FILES[kind](in_order(matrix, ORDERS[kind])))
    with pytest.raises(ValueError, match="body 'a'") as refused:
        import_model(path)
    for word in words:
        assert word in str(refused.value)
    said = CliRunner().invoke(app, ["lint", str(path)])
    assert (said.exit_code, "JM401" in said.output) == (1, True)
    assert words[0] in said.output
    mean = np.trace(matrix) / 3
    if mean > 0:
        np.testing.assert_allclose(matrix_of(import_model(path, balance=True)), mean * np.eye(3))


def test_a_wrong_part_of_a_good_body_is_told(tmp_path: Path):
    """Welded to another link it makes a body that can be."""
    wrong = ' rpy="0 0 0"/><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.09" ixy="0" '
    camera = (
        f'<link name="camera"><inertial><origin{wrong}ixz="0" iyz="0"/></inertial></link><joint '
        'name="w" type="fixed"><parent link="a"/><child link="camera"/></joint>'
    )
    path = tmp_path / "m.urdf"
    path.write_text(urdf((1, 0, 0, 1, 0, 1), camera))
    found = import_model(path)
    assert told(found).keys() == {"camera"}
    assert "no body has" in told(found)["camera"]
    assert "'a' as they stand" in told(found)["camera"]
    np.testing.assert_allclose(np.diag(matrix_of(found)), [1.01, 1.01, 1.09])
    mended = import_model(path, balance=True)
    np.testing.assert_allclose(matrix_of(mended), (1 + 0.11 / 3) * np.eye(3))
    said = CliRunner().invoke(app, ["lint", str(path)])
    assert "body 'a': part 'camera'" in said.output


def test_a_robot_with_such_parts():
    """Four cameras of ANYmal have a product of inertia that is one of their moments, and its hatch
    six numbers that are the same."""
    found = import_model(
        robot_folder() / "anymal_c_simple_description/urdf/anymal.urdf", floating=True
    )
    cameras = [name for name, why in told(found).items() if "xy (0.000484569, which is zz" in why]
    assert sorted(cameras) == [
        f"depth_camera_{x}_camera" for x in ("front", "left", "rear", "right")
    ]
    assert "all its six numbers are 0.001" in told(found)["hatch"]


LEFT_OUT = {
    "one of six": ('<mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"/>', "no iyz"),
    "products": ('<mass value="2"/><inertia ixx="1" iyy="1" izz="1"/>', "no ixy, ixz, iyz"),
    "inertia": ('<mass value="2"/>', "no <inertia>"),
    "all": ("", "neither mass nor inertia"),
}


@pytest.mark.parametrize("label", LEFT_OUT)
def test_what_a_urdf_leaves_out_is_told(label: str, tmp_path: Path):
    inside, said = LEFT_OUT[label]
    path = tmp_path / "m.urdf"
    tip = (
        f'<link name="tip"><inertial>{inside}</inertial></link><joint name="w" type="fixed">'
        '<parent link="a"/><child link="tip"/></joint>'
    )
    path.write_text(urdf((1, 0, 0, 1, 0, 1), tip))
    found = import_model(path)
    assert said in told(found, "inertial")["tip"]
    assert found.masses.moving == found.masses.stated == (2.0 if label == "all" else 4.0)
    path.write_text(urdf((1, 0, 0, 1, 0, 1)))
    assert not told(import_model(path), "inertial")


def test_moments_of_the_format_and_rounding_of_zero_are_told(tmp_path: Path):
    path = tmp_path / "m.sdf"
    path.write_text(sdf((1, 0, 0, 1, 0, 1)).replace("<iyy>1.0</iyy>", ""))
    found = import_model(path)
    assert "iyy" in told(found)["a"]
    assert "1 kg m2" in told(found)["a"]
    path = tmp_path / "m.urdf"
    path.write_text(
        urdf((1e-18, 0, 0, 1e-18, 0, 1e-18)).replace('rpy="0 0', 'xyz="0 1 0" rpy="0 0')
    )
    found = import_model(path)
    assert "rounding of zero" in told(found)["a"]
    assert isinstance(found.model.bodies[0], spatial.SlenderBody)
