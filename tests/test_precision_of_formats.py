"""Redundant mechanisms in the formats of other programs, with few digits: the rank that is meant,
or a doubt."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from representatives import representatives
from ring_mechanisms import Ring, RINGS

import jaxmbs as jm
from jaxmbs.io import import_model


INERTIA = "ixx='0.1' iyy='0.1' izz='0.1' ixy='0' ixz='0' iyz='0'"


def mjcf(ring: Ring, digits: int, folder: Path) -> Any:
    """Closed by a ball, as connections are."""
    text, count = "", len(ring.points) - 1
    for k in range(count):
        at = ring.points[k] - (ring.points[k - 1] if k else 0)
        text += (
            f"<body name='b{k}' pos='{said(at, digits)}'>"
            f"<inertial pos='0 0 0' mass='1' diaginertia='0.1 0.1 0.1'/>"
            f"<joint name='j{k}' axis='{said(ring.axes[k], digits)}'/>"
        )
    text += "</body>" * count
    anchor = said(ring.points[-1] - ring.points[-2], digits)
    tie = f"<equality><connect name='tie' body1='b{count - 1}' anchor='{anchor}'/></equality>"
    path = folder / "m.xml"
    path.write_text(f"<mujoco><worldbody>{text}</worldbody>{tie}</mujoco>")
    return import_model(path)


def urdf(ring: Ring, digits: int, folder: Path) -> Any:
    """A tree with a frame at its tip and one on the base, which are the closing ball."""
    inertial = f"<inertial><mass value='1'/><inertia {INERTIA}/></inertial>"
    text, count = "<link name='base'/>", len(ring.points) - 1
    for k in range(count):
        at = ring.points[k] - (ring.points[k - 1] if k else 0)
        text += (
            f"<link name='b{k}'>{inertial}</link><joint name='j{k}' type='continuous'>"
            f"<parent link='{f'b{k - 1}' if k else 'base'}'/><child link='b{k}'/>"
            f"<origin xyz='{said(at, digits)}'/><axis xyz='{said(ring.axes[k], digits)}'/></joint>"
        )
    last = ring.points[-1] - ring.points[-2]
    for name, parent, at in (("tip", f"b{count - 1}", last), ("anchor", "base", ring.points[-1])):
        text += (
            f"<link name='{name}'/><joint name='{name} weld' type='fixed'><parent link='{parent}'/>"
            f"<child link='{name}'/><origin xyz='{said(at, digits)}'/></joint>"
        )
    path = folder / "m.urdf"
    path.write_text(f"<robot name='m'>{text}</robot>")
    return import_model(path, close=["tip=anchor:spherical"])


def sdf(ring: Ring, digits: int, folder: Path) -> Any:
    """Links and joints in the model's frame."""
    inertia = "".join(f"<{k}>0.1</{k}>" for k in ("ixx", "iyy", "izz"))
    text, count = "", len(ring.points) - 1
    for k in range(count):
        text += (
            f"<link name='b{k}'><pose>{said(ring.points[k], digits)} 0 0 0</pose><inertial>"
            f"<mass>1</mass><inertia>{inertia}</inertia></inertial></link>"
        )
    for k in range(count + 1):
        place = said(ring.points[k] - ring.points[min(k, count - 1)], digits)
        child = f"b{min(k, count - 1)}"
        parent = "world" if k in (0, count) else f"b{k - 1}"
        text += (
            f"<joint name='j{k}' type='revolute'><parent>{parent}</parent><child>{child}</child>"
            f"<pose>{place} 0 0 0</pose><axis><xyz>{said(ring.axes[k], digits)}</xyz></axis>"
            "</joint>"
        )
    path = folder / "m.sdf"
    path.write_text(f"<sdf version='1.9'><model name='m'>{text}</model></sdf>")
    return import_model(path)


def usd(ring: Ring, digits: int, folder: Path) -> Any:
    """In single precision, whatever the digits: axes by the orientation of the joint's frames."""
    del digits
    from test_import_usd import body, Gf, joint, new, UsdPhysics

    physics: Any = UsdPhysics
    stage, count = new(), len(ring.points) - 1
    centers = [(ring.points[k] + ring.points[k + 1]) / 2 for k in range(count)]
    for k, center in enumerate(centers):
        body(stage, f"b{k}", center)
    for k, (point, axis) in enumerate(zip(ring.points, ring.axes, strict=True)):
        ends = (f"b{k - 1}" if k else None, f"b{k}" if k < count else None)
        points = [point - (0 if not end else centers[int(end[1:])]) for end in ends]
        made = joint(stage, f"j{k}", physics.RevoluteJoint, ends, points)
        quaternion = np.array([1 + axis[2], -axis[1], axis[0], 0.0])
        turn = Gf.Quatf(*map(float, quaternion / np.linalg.norm(quaternion)))
        physics.Joint(made).CreateLocalRot0Attr(turn)
        physics.Joint(made).CreateLocalRot1Attr(turn)
    path = folder / "m.usda"
    stage.GetRootLayer().Export(str(path))
    return import_model(path)


def said(values: Any, digits: int) -> str:
    return " ".join(f"{x:.{digits - 1}e}" for x in values)


FORMATS: Mapping[str, tuple[Callable[[Ring, int, Path], Any], str]] = MappingProxyType(
    {
        "mjcf": (mjcf, "spherical"),
        "urdf": (urdf, "spherical"),
        "sdf": (sdf, "revolute"),
        "usd": (usd, "revolute"),
    }
)
CASES = [
    (kind, name, digits)
    for kind, (_, closing) in FORMATS.items()
    for name, ring in RINGS.items()
    if closing in ring.rank
    for digits in ((3, 4, 5, 6, 8, 12) if kind != "usd" else (7,))
]


@pytest.mark.parametrize(
    ("kind", "name", "digits"),
    representatives(
        CASES,
        ("mjcf", "door", 5),
        ("mjcf", "four-bar", 3),
        ("urdf", "four-bar", 5),
        ("urdf", "door", 4),
        ("sdf", "star", 5),
        ("sdf", "door", 6),
        ("usd", "star", 7),
        ("usd", "door", 7),
    ),
)
def test_the_rank_that_is_meant_or_a_doubt(kind: str, name: str, digits: int, tmp_path: Path):
    pytest.importorskip("pxr" if kind == "usd" else "mujoco")
    write, closing = FORMATS[kind]
    ring = RINGS[name]
    found = write(ring, digits, tmp_path)
    system = found.system()
    report = jm.analyze(system, system.reference_q)
    meant = ring.rank[closing]
    if digits < 5 and bool(report.result == jm.results.RESULTS.configuration_open):
        # Numbers as short as these are taken as they stand: what they leave open is told.
        assert "open" in report.openness()
        return
    assert bool(report.result == jm.results.RESULTS.successful), report.openness()
    assert int(report.rank) == meant or bool(report.doubtful)
    if digits >= 5:
        assert int(report.rank) == meant
    if report.rank_as_written is not None and int(report.rank_as_written) > meant:
        assert "Redundant at the precision" in str(report)
