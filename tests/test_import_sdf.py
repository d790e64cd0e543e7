"""Models in models, and models of other files, in SDF."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaxmbs.io import import_model, Imported


LINK = "<link name='{}'><pose>{}</pose><inertial><mass>1</mass></inertial></link>"
HAND = (
    "<sdf version='1.9'><model name='hand'><pose>9 9 9 0 0 0</pose>"
    + LINK.format("palm", "1 0 0 0 0 0")
    + "<frame name='wrist' attached_to='palm'><pose>0 0 1 0 0 0</pose></frame></model></sdf>"
)
QUARTER = "1.5707963267948966"


def imported(inside: str, folder: Path, **files: str) -> Imported:
    """Of a world, with files of these names beside it."""
    for name, text in files.items():
        (folder / f"{name}.sdf").write_text(text)
    path = folder / "a.sdf"
    path.write_text(f"<sdf version='1.9'><world name='w'>{inside}</world></sdf>")
    return import_model(path)


def place(found: Imported, link: str) -> np.ndarray:
    bodies: dict[str, Any] = {body.name: body for body in found.model.bodies}
    return np.asarray(bodies[found.bodies[link]].reference().origin)


def test_poses_in_frames_of_the_world_and_of_other_models(tmp_path: Path):
    """Counted by hand: a frame that is turned by a quarter about z, a model in it, and one in
    that."""
    inner = LINK.format("b", "0 1 0 0 0 0")
    found = imported(
        f"<frame name='F'><pose>1 0 0 0 0 {QUARTER}</pose></frame>"
        f"<model name='m'><pose relative_to='F'>2 0 0 0 0 0</pose>{LINK.format('a', '0 0 0 0 0 0')}"
        f"<frame name='G'><pose>0 0 5 0 0 0</pose></frame>"
        f"<model name='n'><pose relative_to='G'>1 0 0 0 0 0</pose>{inner}</model></model>"
        f"<model name='k'><pose relative_to='m'>0 3 0 0 0 0</pose>{inner}</model>",
        tmp_path,
    )
    np.testing.assert_allclose(place(found, "m::a"), [1, 2, 0], atol=1e-12)
    np.testing.assert_allclose(place(found, "m::n::b"), [0, 3, 5], atol=1e-12)
    np.testing.assert_allclose(place(found, "k::b"), [-3, 2, 0], atol=1e-12)


def test_what_an_include_says(tmp_path: Path):
    """Its name, its pose, by which frame, whether it stands still; and a joint may hold it."""
    include = "<include><uri>hand.sdf</uri><name>{}</name>{}</include>"
    arm = LINK.format("arm", "0 0 2 0 0 0")
    joint = "<joint name='j' type='ball'><parent>arm</parent><child>right::{}</child></joint>"
    found = imported(
        "<frame name='F'><pose>0 0 7 0 0 0</pose></frame>"
        + include.format("left", "<pose relative_to='F'>1 0 0 0 0 0</pose>")
        + include.format("top", "<placement_frame>wrist</placement_frame><pose>0 0 0 0 0 0</pose>")
        + include.format("base", "<static>true</static>")
        + f"<model name='m'>{arm}{include.format('right', '<pose>0 0 3 0 0 0</pose>')}"
        + joint.format("wrist")
        + "</model>",
        tmp_path,
        hand=HAND,
    )
    np.testing.assert_allclose(place(found, "left::palm"), [2, 0, 7], atol=1e-12)
    np.testing.assert_allclose(place(found, "top::palm"), [0, 0, -1], atol=1e-12)
    assert found.bodies["base::palm"] == "ground"
    ball: Any = found.model.joints[0]
    assert ball.bodies == ("m::arm", "m::right::palm")
    np.testing.assert_allclose(np.asarray(ball.at)[0], [1, 0, 4], atol=1e-12)


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("<include merge='true'><uri>hand.sdf</uri></include>", "merge='true'"),
        ("<include><uri>hand.sdf</uri></include>" * 2, "'hand.*' is used twice"),
        ("<include><uri>none.sdf</uri></include>", "holds no <model>"),
        (
            "<include><uri>hand.sdf</uri><pose relative_to='X'>0 0 0 0 0 0</pose></include>",
            "frame 'X'",
        ),
    ],
)
def test_an_include_is_refused(inside: str, said: str, tmp_path: Path):
    with pytest.raises(ValueError, match=said):
        imported(inside, tmp_path, hand=HAND, none="<sdf version='1.9'/>")


def test_what_a_link_and_a_joint_start_from_is_told(tmp_path: Path):
    link = LINK.format("a", "0 0 0 0 0 0").replace(
        "</inertial>", "<fluid_added_mass/></inertial><velocity_decay/>"
    )
    joint = (
        "<joint name='j' type='revolute'><parent>world</parent><child>a</child>"
        "<axis><initial_position>1</initial_position></axis></joint>"
    )
    found = imported(f"<model name='m'>{link}{joint}</model>", tmp_path)
    kinds = {own.kind for own in found.omissions}
    assert kinds >= {"fluid_added_mass", "velocity_decay", "initial_position"}


AXIS = "<axis><xyz>0 0 1</xyz></axis>"


@pytest.mark.parametrize("kind", ["revolute", "fixed", "prismatic", "ball"])
@pytest.mark.parametrize(
    ("pose", "told"),
    [
        ("0 0 1 0 0 0", ""),
        ("0 0.25 1 0 0 0", "lies 0.25 m away from the parent's frame 'flange' (0, -0.25, 0)"),
        ("0 0 1 0 0.125 0", "turned against it by 0.125 rad"),
    ],
)
def test_a_parent_frame_that_lies_elsewhere_is_told(
    kind: str, pose: str, told: str, tmp_path: Path
):
    arm = LINK.format("arm", "0 0 0 0 0 0") + LINK.format("hand", "0 0 1 0 0 0")
    frame = f"<frame name='flange' attached_to='arm'><pose>{pose}</pose></frame>"
    ends = "<parent>flange</parent><child>hand</child>"
    axis = "" if kind in ("fixed", "ball") else AXIS
    base = f"<joint name='b' type='revolute'><parent>world</parent><child>arm</child>{AXIS}</joint>"
    joint = f"<joint name='wrist' type='{kind}'>{ends}{axis}</joint>"
    found = imported(f"<model name='m'>{arm}{frame}{base}{joint}</model>", tmp_path)
    why = [own.why for own in found.omissions if own.kind == "joint"]
    assert len(why) == bool(told)
    assert told in "".join(why)


@pytest.mark.parametrize(
    ("second", "told"), [("0 1 0", ""), ("0 1 0.125", "rad off a right angle")]
)
def test_axes_of_a_universal_joint_off_a_right_angle_are_told(
    second: str, told: str, tmp_path: Path
):
    arm = LINK.format("arm", "0 0 0 0 0 0")
    axes = AXIS + f"<axis2><xyz>{second}</xyz></axis2>"
    ends = "<parent>world</parent><child>arm</child>"
    joint = f"<joint name='u' type='universal'>{ends}{axes}</joint>"
    found = imported(f"<model name='m'>{arm}{joint}</model>", tmp_path)
    why = "".join(own.why for own in found.omissions if own.kind == "joint")
    assert (told in why) if told else not why
