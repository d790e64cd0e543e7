"""Files of other programs as they come: broken, incomplete or made to do harm. Each is refused with
one sentence, exit status 2, nothing printed, nothing written, nothing fetched, nothing executed."""

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from jaxmbs.cli._app import app
from jaxmbs.io import import_model


LONGEST = 700


class Bad(NamedTuple):
    """Files by name, of which the first is imported, what the refusal says, and options."""

    files: Mapping[str, str]
    said: tuple[str, ...]
    options: tuple[str, ...] = ()


BODY = '<body name="arm"><joint name="pin"/><geom size="0.1"/></body>'
FLEX = '<flexcomp name="f" type="mesh" dim="2" file="../secret.stl" mass="1" radius="0.01"/>'
PART = """<mujoco><compiler meshdir="../hidden"/><asset><mesh name="t" file="t.stl"/></asset>
<worldbody><body name="s"><freejoint/><geom type="mesh" mesh="t"/></body></worldbody></mujoco>"""
ATTACHED = (
    '<mujoco><asset><model name="s" file="part.xml"/></asset><worldbody><body name="arm"><freejoint'
    '/><geom size="1"/></body><frame><attach model="s" body="s" prefix="p"/></frame></worldbody>'
    "</mujoco>"
)
MESH = '<body name="arm"><joint name="pin"/><geom type="mesh" mesh="m"/></body>'
BOMB = """<!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>"""
THIEF = '<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
ROD = (
    "<link name='a'><inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>0</izz></inertia>"
    "</inertial></link><joint name='j' type='{}'><parent>world</parent><child>a</child></joint>"
)
CAMERA = (
    '<link name="base"/><link name="arm"><inertial><mass value="1"/><inertia ixx="6" ixy="5" '
    'ixz="4" iyy="9" iyz="0.1" izz="5"/></inertial></link><joint name="j" type="continuous">'
    '<parent link="base"/><child link="arm"/></joint>'
)
LINK = "<link name='{}'><inertial><mass>1</mass></inertial></link>"


def mjcf(inside: str, before: str = "", world: str = BODY) -> str:
    return f"{before}<mujoco>{inside}<worldbody>{world}</worldbody></mujoco>"


def mesh(file: str) -> str:
    return mjcf(f'<asset><mesh name="m" file="{file}"/></asset>', world=MESH)


def urdf(inside: str) -> str:
    return f'<robot name="r">{inside}</robot>'


def sdf(inside: str, head: str = "") -> str:
    return f"{head}<sdf version='1.9'><model name='m'>{inside}</model></sdf>"


def pinned(joint: str) -> str:
    return sdf(LINK.format("a") + LINK.format("b") + joint)


def usda(inside: str, head: str = "") -> str:
    return f'#usda 1.0\n({head}\n)\ndef Xform "World"\n{{\n{inside}\n}}\n'


RIGID = 'def Xform "a" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])\n{\n}\n'

CASES: dict[str, Bad] = {
    # Any XML.
    "no file": Bad({}, ("cannot read", "No such file")),
    "another format": Bad({"a.stl": "solid"}, ("a.stl", ".xml", ".sdf")),
    "no xml": Bad({"a.xml": "model: 1"}, ("not an XML file", "line 1")),
    "empty": Bad({"a.urdf": ""}, ("not an XML file",)),
    "cut off": Bad({"a.xml": mjcf("")[:40]}, ("not an XML file",)),
    "another root": Bad({"a.xml": "<svg/>"}, ("neither MJCF nor URDF", "<svg>")),
    "entity bomb": Bad({"a.xml": mjcf("&c;", BOMB)}, ("document type", "<!DOCTYPE")),
    "entity bomb in urdf": Bad({"a.urdf": BOMB + urdf("&c;")}, ("document type",)),
    "entity bomb in sdf": Bad({"a.sdf": sdf("&c;", BOMB)}, ("document type",)),
    "entity that reads a file": Bad({"a.xml": mjcf("&x;", THIEF)}, ("document type",)),
    "entity bomb where a strict parser stops before it": Bad(
        {"a.xml": mjcf("", "<!-- a -- b -->" + BOMB)}, ("document type",)
    ),
    "include from outside, and no strict XML": Bad(
        {"a.xml": mjcf('<include file="../secret.xml"/>', "<!-- a -- b -->")},
        ("'../secret.xml'", "outside"),
    ),
    "attribute twice": Bad(
        {"a.xml": '<mujoco model="a" model="b"/>'}, ("not an XML file", "duplicate attribute")
    ),
    "too deep": Bad({"a.xml": "<a>" * 600}, ("more than 500 deep",)),
    "unknown encoding": Bad(
        {"a.sdf": "<?xml version='1.0' encoding='x-y'?><sdf>"}, ("not an XML",)
    ),
    # MJCF.
    "include that is not there": Bad(
        {"a.xml": mjcf('<include file="b.xml"/>')}, ("<include>", "'b.xml'", "not there")
    ),
    "include from outside": Bad(
        {"a.xml": mjcf('<include file="../secret.xml"/>')},
        ("'../secret.xml'", "outside", "--outside"),
    ),
    "include of a root": Bad(
        {"a.xml": mjcf('<include file="/etc/passwd"/>')}, ("/etc/passwd", "outside")
    ),
    "include from the net": Bad(
        {"a.xml": mjcf('<include file="http://x.test/b.xml"/>')},
        ("http://x.test", "nothing is fetched"),
    ),
    "include of itself": Bad({"a.xml": mjcf('<include file="a.xml"/>')}, ("includes itself",)),
    "bomb in an include": Bad(
        {"a.xml": mjcf('<include file="b.xml"/>'), "b.xml": mjcf("&c;", BOMB)},
        ("b.xml", "document type"),
    ),
    "attached model from outside": Bad(
        {"a.xml": mjcf('<asset><model name="m" file="../b.xml"/></asset>')}, ("../b.xml", "outside")
    ),
    "flexible mesh from outside": Bad(
        {"a.xml": mjcf("", world=BODY.replace("<geom", FLEX + "<geom"))},
        ("<flexcomp>", "'../secret.stl'", "outside"),
    ),
    # With another file of this name where there is none of the part.
    "mesh of an attached model from outside": Bad(
        {"a.xml": ATTACHED, "part.xml": PART, "t.stl": "solid"}, ("mesh 'pt'", "outside")
    ),
    "mesh that is not there": Bad({"a.xml": mesh("m.stl")}, ("mesh 'm'", "'m.stl'", "not there")),
    "mesh from outside": Bad({"a.xml": mesh("../secret.stl")}, ("'../secret.stl'", "outside")),
    "mesh from the net": Bad({"a.xml": mesh("http://x.test/m.stl")}, ("x.test/m.stl", "not there")),
    "unknown element": Bad({"a.xml": mjcf("<magic/>")}, ("MuJoCo refuses", "magic")),
    "plugin": Bad(
        {"a.xml": mjcf('<extension><plugin plugin="evil.code"/></extension>')},
        ("MuJoCo refuses", "evil.code"),
    ),
    "joint of unknown body": Bad(
        {"a.xml": mjcf('<equality><weld body1="x"/></equality>')}, ("MuJoCo refuses", "'x'")
    ),
    "no body": Bad({"a.xml": mjcf("", world="")}, ("no body that moves",)),
    "nothing moves": Bad(
        {"a.xml": mjcf("", world='<body name="a"><geom size="1"/></body>')}, ("no body that moves",)
    ),
    "no mass": Bad(
        {"a.xml": mjcf("", world='<body name="a"><joint/></body>')}, ("MuJoCo refuses", "mass")
    ),
    "unknown keyframe": Bad(
        {"a.xml": mjcf("")}, ("keyframe 'home'", "none"), ("--keyframe", "home")
    ),
    "unknown actuator": Bad({"a.xml": mjcf("")}, ("actuator 'm'", "none"), ("--control", "m=1")),
    "control of no number": Bad(
        {"a.xml": mjcf("")}, ("--control", "NAME=VALUE"), ("--control", "m")
    ),
    "unknown ground": Bad(
        {"a.xml": mjcf("")}, ("link 'leg' to ground", "arm"), ("--ground", "leg")
    ),
    "nothing kept": Bad(
        {"a.xml": mjcf("")}, ("pattern 'leg*'", "matches no link", "arm"), ("--keep", "leg*")
    ),
    "folder to write": Bad(
        {"a.xml": mjcf("")}, ("cannot write",), ("--out", "no/such/folder.toml")
    ),
    # URDF.
    "moments of no body": Bad(
        {
            "a.urdf": urdf(
                '<link name="base"/><link name="arm"><inertial><mass value="1"/><inertia ixx="1" '
                'iyy="1" izz="9" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" '
                'type="revolute"><parent link="base"/><child link="arm"/></joint>'
            )
        },
        ("body 'arm'", "triangle inequality", "--balance"),
    ),
    "link twice": Bad({"a.urdf": urdf('<link name="a"/>' * 2)}, ("MuJoCo refuses",)),
    # SDF.
    "no sdf": Bad({"a.sdf": "<robot/>"}, ("root element is not <sdf>",)),
    "version": Bad({"a.sdf": "<sdf version='x'/>"}, ("version 'x'",)),
    "no model": Bad({"a.sdf": "<sdf version='1.6'/>"}, ("holds no <model>",)),
    "include by address": Bad(
        {"a.sdf": sdf("<include><uri>model://hand</uri></include>")}, ("model://hand", "fetched")
    ),
    "sdf include from outside": Bad(
        {"a.sdf": sdf("<include><uri>../b.sdf</uri></include>")}, ("'../b.sdf'", "outside")
    ),
    "unknown link": Bad(
        {"a.sdf": pinned("<joint name='j' type='ball'><parent>a</parent><child>x</child></joint>")},
        ("'x'",),
    ),
    "unknown joint": Bad(
        {"a.sdf": pinned("<joint name='j' type='glue'><parent>a</parent><child>b</child></joint>")},
        ("joint 'j'", "'glue'", "revolute"),
    ),
    "joint of a link with itself": Bad(
        {"a.sdf": pinned("<joint name='j' type='ball'><parent>a</parent><child>a</child></joint>")},
        ("joint 'j'", "itself"),
    ),
    "no number": Bad(
        {"a.sdf": sdf("<link name='a'><pose>0 0 x 0 0 0</pose></link>")},
        ("<pose>", "6 finite numbers"),
    ),
    "no finite number": Bad(
        {"a.sdf": sdf("<link name='a'><inertial><mass>nan</mass></inertial></link>")},
        ("<mass>", "finite", "'nan'"),
    ),
    "mass 0": Bad(
        {"a.sdf": sdf("<link name='a'><inertial><mass>0</mass></inertial></link>")},
        ("body 'a'", "mass", "greater than zero"),
    ),
    "ring of frames": Bad(
        {
            "a.sdf": sdf(
                LINK.format("a") + "<frame name='f'><pose relative_to='g'/></frame>"
                "<frame name='g'><pose relative_to='f'/></frame>"
                "<link name='b'><pose relative_to='f'/></link>"
            )
        },
        ("given in itself",),
    ),
    "same link": Bad({"a.sdf": sdf(LINK.format("a") * 2)}, ("'a'", "twice")),
    "inertia from shapes that there are none of": Bad(
        {"a.sdf": sdf("<link name='a'><inertial auto='true'/></link>")}, ("link 'a'", "auto")
    ),
    "inertia from a mesh": Bad(
        {
            "a.sdf": sdf(
                "<link name='a'><inertial auto='true'/><collision name='c'><geometry><mesh/>"
                "</geometry></collision></link>"
            )
        },
        ("link 'a'", "collision 'c'", "auto", "write mass"),
    ),
    "a thin rod that may turn about itself": Bad(
        {"a.sdf": sdf(ROD.format("ball"))}, ("body 'a'", "moment of inertia of zero", "turning")
    ),
    "product that holds a moment": Bad(
        {"a.urdf": urdf(CAMERA)}, ("body 'arm'", "xy (5, which is zz too)", "--balance")
    ),
    "loop of no link": Bad(
        {"a.xml": mjcf("")}, ("loop", "'leg'", "arm"), ("--close", "arm=leg:spherical")
    ),
    "loop of no joint": Bad(
        {"a.xml": mjcf("")}, ("loop", "'glue'", "spherical"), ("--close", "arm=ground:glue")
    ),
    "loop that is none": Bad({"a.xml": mjcf("")}, ("loop", "tip=crank"), ("--close", "arm")),
    # USD.
    "no usd": Bad({"a.usda": "def Xform"}, ("USD refuses",)),
    "no rigid body": Bad({"a.usda": usda("")}, ("holds no rigid body",)),
    "body without mass": Bad({"a.usda": usda(RIGID)}, ("body 'a'", "mass", "PhysicsMassAPI")),
    "layer that is not there": Bad(
        {"a.usda": usda(RIGID, "subLayers = [@b.usda@]")}, ("'b.usda'", "not there")
    ),
    "layer from outside": Bad(
        {"a.usda": usda(RIGID, "subLayers = [@../b.usda@]")}, ("../b.usda", "outside")
    ),
    "layer from the net": Bad(
        {"a.usda": usda(RIGID, "subLayers = [@http://x.test/b.usda@]")}, ("x.test", "fetched")
    ),
}


@pytest.fixture(autouse=True)
def _nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **named: Any) -> Any:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)


@pytest.mark.parametrize("label", CASES)
def test_is_refused_with_one_sentence(
    label: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.xml").write_text(mjcf(""))
    (tmp_path / "secret.stl").write_text("solid")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "t.stl").write_text("solid")
    (tmp_path / "b.xml").write_text(mjcf(""))
    (tmp_path / "b.sdf").write_text(sdf(LINK.format("a")))
    (tmp_path / "b.usda").write_text(usda(RIGID))
    bad = CASES[label]
    for name, text in bad.files.items():
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    before = sorted(tmp_path.rglob("*"))
    path = next(iter(bad.files), "none.xml")
    result = CliRunner().invoke(app, ["import", path, *bad.options], catch_exceptions=False)
    assert (result.exit_code, result.stdout) == (2, "")
    (sentence,) = result.stderr.splitlines()
    for word in bad.said:
        assert word in sentence, sentence
    assert sentence.endswith(".")
    assert not sentence.endswith("..")
    assert sentence.isprintable()
    assert len(sentence) < LONGEST
    assert capfd.readouterr().out == ""
    assert sorted(tmp_path.rglob("*")) == before


def test_files_outside_are_read_where_they_are_allowed(tmp_path: Path):
    """And without permission those inside."""
    folder = tmp_path / "model"
    (folder / "parts").mkdir(parents=True)
    part = f"<mujoco><worldbody>{BODY}</worldbody></mujoco>"
    (tmp_path / "out.xml").write_text(part)
    (folder / "parts" / "in.xml").write_text(part)
    for named, outside in (("parts/in.xml", False), ("../out.xml", True)):
        path = folder / "a.xml"
        path.write_text(mjcf(f'<include file="{named}"/>', world=""))
        found = import_model(path, outside=outside)
        assert [body.name for body in found.model.bodies] == ["arm"]
