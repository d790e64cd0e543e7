"""Model files as they come: over 120 that are none, each refused with one sentence that names the
entry and what is wrong with it, exit status 2, nothing printed and nothing written."""

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tomlkit
from model_parts import BASES, driver, MOTION_TABLES, PARTS
from typer.testing import CliRunner

from jaxmbs.cli._app import app
from jaxmbs.io import read_model


# What a message may be long, whatever it quotes.
LONGEST = 400


class Malformed(NamedTuple):
    """A file, and what its refusal says."""

    content: bytes
    said: tuple[str, ...]


def _dumped(content: Mapping[str, Any]) -> bytes:
    return tomlkit.dumps(content).encode()


def _edited(dimension: int, edit: Callable[[Any], Any], *said: str) -> Malformed:
    """The small model of a dimension after an edit in place."""
    content = copy.deepcopy(dict(BASES[dimension]))
    edit(content)
    return Malformed(_dumped(content), said)


def _set(place: str, value: Any) -> Callable[[Any], Any]:
    """Sets what lies at `place`, such as "body.0.mass"; adds to a list at "+"."""

    def edit(content: Any) -> None:
        *way, last = place.split(".")
        for step in way:
            content = content[int(step)] if step.isdigit() else content.setdefault(step, [])
        if last == "+":
            content.append(value)
        else:
            content[last] = value

    return edit


def _put(dimension: int, place: str, value: Any, *said: str) -> Malformed:
    return _edited(dimension, _set(place, value), *said)


def _part(name: str, said: tuple[str, ...] = (), /, **changes: Any) -> Malformed:
    """The small model with a part, some of whose keys are changed."""
    return Malformed(_dumped(PARTS[name].content(**changes)), said)


def _drive(kind: str, *said: str, **keys: Any) -> Malformed:
    motion = {"type": kind, **MOTION_TABLES[kind], **keys}
    return _put(2, "driver.+", driver("hinge", "rotation", motion), "driver 'drive'", *said)


def _text(text: str, *said: str) -> Malformed:
    return Malformed(text.encode(), said)


def _raw(dimension: int, table: str, line: str, *said: str) -> Malformed:
    """The small model with one more line, as typed, at the end of a new entry of a table."""
    text = tomlkit.dumps(BASES[dimension])
    name = f"[[{table}]]\nname = 'new'\n" if table else ""
    return _text(f"{name}{line}\n{text}" if not table else f"{text}\n{name}{line}\n", *said)


_NAN, _INF = float("nan"), float("inf")
_HEAD = "schema = 1\ndimension = 2\n"
_BODY = "[[body]]\nname = 'a'\nmass = 1.0\ninertia = 1.0\nposition = [0.0, 0.0]\n"
_MIRROR = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]]
_LONG = "y" * 100_000

CASES: dict[str, Malformed] = {
    # Texts that are no TOML.
    "empty": _text("", "'schema'", "missing"),
    "only comments": _text("# a model\n# of nothing\n", "'schema'", "missing"),
    "no value": _text("schema =\n", "not a TOML file", "line 1"),
    "key twice": _text("schema = 1\nschema = 1\n", "not a TOML file", "line 2"),
    "open bracket": _text("[[body]\n", "not a TOML file"),
    "open text": _text('name = "four\n', "not a TOML file", "line 1"),
    "bare word": _text("name = four-bar\n", "not a TOML file", "line 1"),
    "python": _text("model = dict(schema=1)\n", "not a TOML file"),
    "json": _text('{"schema": 1}\n', "not a TOML file"),
    "a date that is none": _text("schema = 2024-13-45\n", "not a TOML file"),
    "control character": _text('name = "a\x01b"\n', "not a TOML file", "x01"),
    "table and array": _text("[body]\n[[body]]\n", "not a TOML file"),
    "nested arrays": _text("schema = " + "[" * 20_000 + "]" * 20_000, "too deeply"),
    "nested tables": _text("schema = " + "{a=" * 20_000 + "1" + "}" * 20_000, "too deeply"),
    "dotted key": _text(".".join(["schema"] * 5_000) + " = 1\ndimension = 2\n", "schema must be 1"),
    "20,000 digits": _text(f"{_HEAD}mass = {'9' * 20_000}\n", "digits"),
    "20,000 hexadecimal": _text(
        f"{_HEAD}{_BODY}velocity = [0x{'f' * 20_000}, 0]\n", "body 'a'", "velocity"
    ),
    "20,000 as schema": _text(f"schema = 0x{'f' * 20_000}\ndimension = 2\n", "schema must be 1"),
    # Bytes that are no text.
    "latin letters": Malformed('name = "Größe"\n'.encode("latin-1"), ("UTF-8", "line 1", "0xf6")),
    "utf-16": Malformed((_HEAD + _BODY).encode("utf-16"), ("UTF-16", "save it as UTF-8")),
    "utf-32": Malformed((_HEAD + _BODY).encode("utf-32"), ("save it as UTF-8",)),
    "utf-16 without a mark": Malformed(_HEAD.encode("utf-16-le"), ("not a TOML file",)),
    "picture": Malformed(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", ("UTF-8", "0x89")),
    "zeros": Malformed(bytes(1000), ("not a TOML file",)),
    # The head.
    "no schema": _edited(2, lambda c: c.pop("schema"), "'schema'", "missing"),
    "schema 2": _put(2, "schema", 2, "schema must be 1", "got 2"),
    "schema text": _put(2, "schema", "1", "schema must be 1", "got '1'"),
    "schema true": _put(2, "schema", True, "schema must be 1", "got True"),
    "schema 1.0": _put(2, "schema", 1.0, "schema must be 1", "got 1.0"),
    "no dimension": _edited(2, lambda c: c.pop("dimension"), "'dimension'", "missing"),
    "dimension 4": _put(2, "dimension", 4, "dimension", "got 4"),
    "dimension text": _put(2, "dimension", "2", "dimension", "got '2'"),
    "dimension true": _put(2, "dimension", True, "dimension", "got True"),
    "planar read as spatial": _put(2, "dimension", 3, "body 'bar'", "inertia"),
    "name a number": _put(2, "name", 4, "name must be a text", "got 4"),
    "name empty": _put(2, "name", "", "name", "''"),
    "name of two lines": _put(2, "name", "four\nbar", r"'four\nbar'", "not printed"),
    "gravity a number": _put(2, "gravity", 9.81, "gravity", "9.81"),
    "gravity in space": _put(2, "gravity", [0.0, 0.0, -9.81], "gravity", "2 numbers"),
    "gravity a text": _put(2, "gravity", "-9.81", "gravity", "'-9.81'"),
    "gravity nan": _put(2, "gravity", [0.0, _NAN], "gravity, entry 2", "nan"),
    "gravity too large": _put(2, "gravity", [0.0, -1e200], "gravity", "1e+200", "units"),
    "unknown key": _put(2, "lengths", "mm", "unknown key 'lengths'"),
    "units that are none": _put(2, "units", "mm", "[units] must be a table"),
    "unknown table": _put(2, "bodies", [], "unknown key 'bodies'", "body"),
    "unprintable key": _text('"a\\u202eb" = 1\n' + _HEAD, r"'a\u202eb'"),
    "table of bodies": _put(2, "body", dict(BASES[2]["body"][0]), "[body]", "[[body]]"),
    "number of bodies": _put(2, "body", 2, "[body]", "[[body]]"),
    "numbers as bodies": _put(2, "body", [1, 2], "body number 1", "table", "got 1"),
    "no body": _put(2, "body", [], "no body", "[[body]]"),
    "table of joints": _put(2, "joint", dict(BASES[2]["joint"][0]), "[joint]", "[[joint]]"),
    "text as force": _put(2, "force", "gravity", "[force]", "[[force]]"),
    "gravity a table": _put(2, "gravity", {"y": -9.81}, "gravity must be an array"),
    # Bodies.
    "body without a name": _edited(
        2, lambda c: c["body"][0].pop("name"), "body number 1", "'name'"
    ),
    "empty name": _put(2, "body.0.name", "", "body", "name", "''"),
    "blank name": _put(2, "body.0.name", "  ", "body", "name", "'  '"),
    "name of spaces around": _put(2, "body.0.name", " bar", "' bar'", "space"),
    "name of a comma": _put(2, "body.0.name", "b,c", "'b,c'", "full stops"),
    "name of a new line": _put(2, "body.0.name", "a\nb", r"'a\nb'", "not printed"),
    "name of a tab": _put(2, "body.0.name", "a\tb", r"'a\tb'", "not printed"),
    "name of an escape": _put(2, "body.0.name", "\x1b[31mred", r"\x1b", "not printed"),
    "name of a zero": _put(2, "body.0.name", "a\x00b", r"\x00", "not printed"),
    "name turned round": _put(2, "body.0.name", "a\u202eb", r"\u202e", "not printed"),
    "name of no width": _put(2, "body.0.name", "a\u200bb", r"\u200b", "not printed"),
    "name a number of a body": _put(2, "body.0.name", 3, "body number 1", "name", "3"),
    "fixed frame": _put(2, "body.0.name", "ground", "'ground'", "fixed frame"),
    "same name": _put(2, "body.1.name", "bar", "body", "'bar'", "twice"),
    "long name twice": _edited(
        2,
        lambda c: [body.update(name=_LONG) for body in c["body"]],
        "body",
        "yyy",
        "twice",
    ),
    "no mass": _edited(2, lambda c: c["body"][0].pop("mass"), "body 'bar'", "'mass'", "missing"),
    "mass 0": _put(2, "body.0.mass", 0.0, "body 'bar'", "mass", "greater than zero"),
    "mass < 0": _put(2, "body.0.mass", -1.0, "body 'bar'", "mass", "-1"),
    "mass nan": _put(2, "body.0.mass", _NAN, "body 'bar'", "mass", "nan"),
    "mass inf": _put(2, "body.0.mass", _INF, "body 'bar'", "mass", "inf"),
    "mass text": _put(2, "body.0.mass", "1", "body 'bar'", "mass", "'1'"),
    "mass true": _put(2, "body.0.mass", True, "body 'bar'", "mass", "True"),
    "mass in a list": _put(2, "body.0.mass", [1.0], "body 'bar'", "mass", "[1.0]"),
    "mass a table": _put(2, "body.0.mass", {"kg": 1.0}, "body 'bar'", "mass", "kg"),
    "mass a date": _raw(2, "body", "mass = 2024-01-01", "body 'new'", "missing"),
    "mass too large": _put(2, "body.0.mass", 1e300, "body 'bar'", "mass", "1e+300", "units"),
    "mass too small": _put(2, "body.0.mass", 1e-300, "body 'bar'", "mass", "1e-300", "units"),
    "inertia too small": _put(2, "body.0.inertia", 1e-320, "body 'bar'", "inertia", "units"),
    "inertia < 0": _put(2, "body.0.inertia", -0.1, "body 'bar'", "inertia", "-0.1"),
    "inertia of space": _put(2, "body.0.inertia", [0.1] * 3, "body 'bar'", "inertia"),
    "moment 0": _put(3, "body.0.inertia", [0.1, 0.1, 0.0], "body 'bar'", "positive definite"),
    "triangle inequality": _put(3, "body.0.inertia", [1.0, 1.0, 9.0], "body 'bar'", "triangle"),
    "not symmetric": _put(
        3, "body.0.inertia", [[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "symmetric"
    ),
    "ragged inertia": _put(
        3, "body.0.inertia", [[1.0], [0.0, 1.0], [1.0]], "body 'bar'", "inertia"
    ),
    "position of space": _put(2, "body.0.position", [0.0] * 3, "body 'bar'", "position", "2 num"),
    "position of plane": _put(3, "body.0.position", [0.0] * 2, "body 'bar'", "position", "3 num"),
    "position of many": _put(2, "body.0.position", [0.5] * 500, "body 'bar'", "position"),
    "position a number": _put(2, "body.0.position", 1.0, "body 'bar'", "position", "array"),
    "position of texts": _put(2, "body.0.position", ["0", "0"], "position, entry 1", "'0'"),
    "position nan": _put(2, "body.0.position", [0.0, _NAN], "position, entry 2", "nan"),
    "position too large": _put(2, "body.0.position", [1e160, 0.0], "position", "1e+160", "units"),
    "velocity too large": _put(2, "body.0.velocity", [0.0, 1e300], "velocity", "1e+300", "units"),
    "spin of the plane": _put(3, "body.0.angular_velocity", 1.0, "angular_velocity", "array"),
    "angle in space": _put(3, "body.0.angle", 0.1, "body 'bar'", "unknown key 'angle'"),
    "angle a list": _put(2, "body.0.angle", [0.1], "body 'bar'", "angle", "number"),
    "misspelt": _put(2, "body.0.intertia", 0.1, "body 'bar'", "unknown key 'intertia'"),
    "singular rotation": _put(3, "body.0.rotation", [[0.0] * 3] * 3, "rotation", "not orthogonal"),
    "left-handed": _put(3, "body.0.rotation", _MIRROR, "rotation", "reflection", "-1"),
    "rotation of two": _put(3, "body.0.rotation", _MIRROR[:2], "body 'bar'", "rotation"),
    "zero quaternion": _put(3, "body.0.orientation", [0.0] * 4, "orientation", "zero length"),
    "next to zero": _put(3, "body.0.orientation", [1e-200, 0.0, 0.0, 0.0], "orientation", "units"),
    "three of four": _put(3, "body.0.orientation", [1.0, 0.0, 0.0], "orientation", "4 numbers"),
    # Joints.
    "unknown type": _put(2, "joint.0.type", "hinge", "joint 'hinge'", "'hinge'", "revolute"),
    "long type": _put(2, "joint.0.type", _LONG, "joint 'hinge'", "yyy", "revolute"),
    "type of space": _put(2, "joint.0.type", "screw", "joint 'hinge'", "dimension 3"),
    "no type": _edited(2, lambda c: c["joint"][0].pop("type"), "joint 'hinge'", "'type'"),
    "no place": _edited(2, lambda c: c["joint"][0].pop("at"), "joint 'hinge'", "`at`"),
    "no bodies": _edited(2, lambda c: c["joint"][0].pop("bodies"), "joint 'hinge'", "'bodies'"),
    "place of space": _put(2, "joint.0.at", [0.0] * 3, "joint 'hinge'", "at", "2 numbers"),
    "bodies a text": _put(2, "joint.0.bodies", "bar", "joint 'hinge'", "bodies", "'bar'"),
    "bodies of numbers": _put(2, "joint.0.bodies", [0, 1], "joint 'hinge'", "bodies, entry 1"),
    "one body": _put(2, "joint.0.bodies", ["bar"], "joint 'hinge'", "2 bodies"),
    "three bodies": _put(2, "joint.0.bodies", ["ground", "bar", "rod"], "'hinge'", "2 bodies"),
    "with itself": _put(2, "joint.0.bodies", ["bar", "bar"], "joint 'hinge'", "itself"),
    "unknown body": _put(2, "joint.0.bodies", ["ground", "box"], "'hinge'", "'box'", "declared"),
    "lookalike": _put(2, "joint.0.bodies", ["ground", "b\u0430r"], "'hinge'", "'b\u0430r'"),
    "long body": _put(2, "joint.0.bodies", ["ground", _LONG], "joint 'hinge'", "yyy", "declared"),
    "of a driver's name": _put(
        2,
        "driver.+",
        driver("hinge", "rotation", {"type": "linear", "rate": 1.0}) | {"name": "slide"},
        *("'slide'", "twice"),
    ),
    "axis 0": _put(2, "joint.1.axis", [0.0, 0.0], "joint 'slide'", "axis", "zero length"),
    "axis next to 0": _put(2, "joint.1.axis", [1e-200, 0.0], "joint 'slide'", "axis", "units"),
    "axis a letter": _put(2, "joint.1.axis", "x", "joint 'slide'", "axis", "'x'"),
    "axis of one axes": _part("universal 3", ("joint 'J'", "axes"), axes=[[0.0, 0.0, 1.0]]),
    "axes with a zero": _part("universal 3", ("'J'", "axes"), axes=[[0.0] * 3, [0.0, 0.0, 1.0]]),
    "pitch nan": _part("screw 3", ("joint 'J'", "pitch", "nan"), pitch=_NAN),
    "radius 0": _part("rolling_disk 3", ("joint 'J'", "radius"), radius=0.0),
    "length < 0": _part("distance 2", ("joint 'J'", "length", "-1"), length=-1.0),
    "no distance": _part("distance 2", ("joint 'J'", "coincide"), points=[[1.0, 1.0]] * 2),
    "ratio a text": _part("gear 2", ("joint 'J'", "ratio", "'1:2'"), ratio="1:2"),
    "carrier unknown": _part("gear 2", ("joint 'J'", "'arm'", "declared"), carrier="arm"),
    "carrier a list": _part("gear 2", ("joint 'J'", "carrier"), carrier=["bar"]),
    "row too short": _part("pfaffian 2", ("joint 'J'", "coefficients", "6"), coefficients=[1.0]),
    "rows ragged": _part("pfaffian 2", ("'J'", "coefficients"), coefficients=[[1.0], [1.0, 2.0]]),
    # Drivers.
    "driver of nothing": _put(2, "driver.+", {"name": "m"}, "driver 'm'", "missing"),
    "driver's joint": _put(
        2,
        "driver.+",
        driver("pivot", "rotation", {"type": "linear", "rate": 1.0}),
        *("driver 'drive'", "'pivot'", "declared"),
    ),
    "driver's coordinate": _put(
        2,
        "driver.+",
        driver("hinge", "spin", {"type": "linear", "rate": 1.0}),
        *("driver 'drive'", "'spin'"),
    ),
    "driver slides a hinge": _put(
        2,
        "driver.+",
        driver("hinge", "translation", {"type": "linear", "rate": 1.0}),
        *("driver 'drive'", "'hinge'", "translation"),
    ),
    "motion a number": _put(
        2, "driver.+", driver("hinge", "rotation", {}) | {"motion": 1.0}, "driver 'drive'", "motion"
    ),
    "motion unknown": _drive("linear", "'ramp'", type="ramp"),
    "motion's key": _drive("linear", "unknown key 'speed'", speed=1.0),
    "table going back": _drive("table", "increase", "entry 3", times=[0.0, 1.0, 0.5, 3.0]),
    "table of one": _drive("table", "at least two", times=[0.0], values=[0.0]),
    "table uneven": _drive("table", "equally long", "3 and 4", times=[0.0, 1.0, 2.0]),
    "table nan": _drive("table", "times, entry 2", "nan", times=[0.0, _NAN, 2.0, 3.0]),
    "steps at once": _drive("step", "increase", times=[0.5, 0.5, 2.0]),
    "no coefficient": _drive("polynomial", "coefficients", coefficients=[]),
    # Forces.
    "force of no type": _put(2, "force.+", {"name": "f"}, "force 'f'", "'type'"),
    "force unknown": _part("applied 2", ("force 'load'", "'gust'"), type="gust"),
    "force on box": _part("applied 2", ("force 'load'", "'box'", "declared"), body="box"),
    "force of space": _part("applied 2", ("force 'load'", "force", "2 numbers"), force=[0.0] * 3),
    "force follows": _part("applied 2", ("force 'load'", "follows", "'wind'"), follows="wind"),
    "spring of one end": _part("spring_damper 2", ("'load'", "2 bodies"), bodies=["bar"]),
    "spring of no length": _part(
        "spring_damper 2", ("'load'", "coincide"), points=[[1.0, 1.0]] * 2
    ),
    "spring's length < 0": _part("spring_damper 2", ("'load'", "length", "-0.3"), length=-0.3),
    "stiffness nan": _part("spring_damper 2", ("'load'", "stiffness", "nan"), stiffness=_NAN),
    "spring in a slide": _part("torsion_spring 2", ("'load'", "'slide'"), joint="slide"),
    "friction < 0": _part("coulomb_friction 2", ("'load'", "coefficient"), coefficient=-0.1),
    "friction's speed": _part("coulomb_friction 2", ("'load'", "velocity"), velocity=0.0),
    "bushing of four": _part("bushing 2", ("force 'load'", "stiffness"), stiffness=[1.0] * 4),
    "bushing askew": _part(
        "bushing 2",
        ("'load'", "stiffness", "symmetric"),
        stiffness=[[1.0, 2.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    ),
}
COMMANDS = {
    "analyze": ("--json",),
    "simulate": ("--end", "1", "--out", "motion.csv"),
    "kinematics": ("--end", "1", "--every", "0.1", "--out", "motion.npz"),
    "sweep": ("--over", "hinge=0:1:3", "--out", "store.zarr"),
}


def sentence_of(folder: Path, command: str, path: Path) -> str:
    """What a command says of a file; it prints and writes nothing."""
    before = set(folder.iterdir())
    result = CliRunner().invoke(
        app, [command, str(path), *COMMANDS[command]], catch_exceptions=False
    )
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    assert set(folder.iterdir()) == before
    (line,) = result.stderr.splitlines()
    assert line.startswith("jaxmbs: ")
    return line.removeprefix("jaxmbs: ")


def test_there_are_enough():
    assert len(CASES) >= 120


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_malformed_file_is_refused_in_one_sentence(
    case: Malformed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.toml"
    path.write_bytes(case.content)
    sentences = {sentence_of(tmp_path, command, path) for command in COMMANDS}
    (sentence,) = sentences
    assert [words for words in case.said if words not in sentence] == [], sentence
    assert len(sentence) < LONGEST
    assert sentence.isprintable()
    assert sentence.endswith(".")


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b""], ids=["byte order mark", "none"])
@pytest.mark.parametrize("end", [b"\r\n", b"\n"], ids=["two characters", "one"])
def test_what_editors_add_is_read(mark: bytes, end: bytes, tmp_path: Path):
    path = tmp_path / "model.toml"
    path.write_bytes(mark + _dumped(BASES[2]).replace(b"\n", end))
    assert read_model(path).name == "small planar model"


def test_names_of_all_letters_are_read(tmp_path: Path):
    names = ["Кривошип", "曲柄", "b\u0430r", "Größe", "a/b", "é" * 300]
    bodies = [dict(BASES[2]["body"][0]) | {"name": name} for name in names]
    path = tmp_path / "model.toml"
    path.write_bytes(_dumped({"schema": 1, "dimension": 2, "body": bodies}))
    assert [body.name for body in read_model(path).bodies] == names


def test_what_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "folder.toml"
    folder.mkdir()
    assert "directory" in sentence_of(tmp_path, "analyze", folder)
    assert "No such file" in sentence_of(tmp_path, "simulate", tmp_path / "none.toml")
    large = tmp_path / "large.toml"
    with large.open("wb") as file:
        file.truncate(2**28)
    assert "larger than 128 MB" in sentence_of(tmp_path, "analyze", large)


def test_a_study_is_read_in_the_same_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "study.toml"
    good = 'schema = 1\nmodel = "door"\n[objective]\nkind = "peak"\nforce = "A"\n'
    parameter = '[[parameter]]\nname = "bodies.door.mass"\nlow = 1.0\nhigh = 2.0\n'
    cases = {
        "schema = true\n": "schema must be 1, got True",
        "schema = " + "[" * 20_000 + "]" * 20_000: "too deeply",
        f"schema = {'9' * 20_000}\n": "digits",
        "schema = 1\nmodel = 3\n": "'model'",
        'schema = 1\nmodel = "a\\u0000b.toml"\n': "cannot read",
        'schema = 1\nmodel = "none.toml"\n': "none.toml",
        good: "[[parameter]]",
        'schema = 1\nmodel = "door"\nparameter = 3\n': "[[parameter]]",
        good + parameter.replace("1.0", "nan"): "low",
        good + parameter + parameter: "twice",
        good + parameter.replace("bodies.door.mass", "bodies.box.mass"): "'box'",
        good + parameter + '[optimiser]\nmethod = "magic"\n': "method",
        good + parameter + "[run]\nkind = 'driven'\nend = 1.0\ncount = 1000000000000\n": "count",
    }
    for text, said in cases.items():
        path.write_text(text, encoding="utf-8")
        result = CliRunner().invoke(app, ["design", str(path)], catch_exceptions=False)
        assert (result.exit_code, result.stdout) == (2, ""), text[:80]
        (line,) = result.stderr.splitlines()
        assert said in line, line
        assert len(line) < LONGEST
