"""The machines of the gallery (`examples/gallery`): they close, move as the real ones do, carry
their weight, and every number of their answers is that of a closed form or of statics in NumPy.
"""

import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from representatives import representatives
from typer.testing import CliRunner

import jaxmbs as jm
from jaxmbs.cli._app import app
from jaxmbs.forces import Applied
from jaxmbs.io import model_from_tables, read_model


pytestmark = pytest.mark.usefixtures("forgets_programs")

ROOT = Path(__file__).parent.parent
GALLERY = ROOT / "examples" / "gallery"
FILES = sorted(GALLERY.glob("*.toml"))
NAMES = [path.stem for path in FILES]
G = 9.81

# Of each machine: degrees of freedom with its drivers locked, redundant rows, and joints whose
# reaction is not unique.
ALL = object()
MOBILITY: dict[str, tuple[int, int, Any]] = {
    "beam_engine": (0, 0, ()),
    "delta_robot": (0, 0, ()),
    "desk_lamp": (1, 0, ()),
    "door": (1, 5, ALL),
    "double_wishbone": (
        1,
        2,
        ("lower front bush", "lower rear bush", "upper front bush", "upper rear bush"),
    ),
    "excavator": (0, 0, ()),
    "geneva_drive": (0, 0, ()),
    "jansen_leg": (0, 0, ()),
    "landing_gear": (0, 0, ()),
    "pantograph": (0, 0, ()),
    "peaucellier": (0, 0, ()),
    "planetary_gear": (0, 2, "all but drivers"),
    "scissor_lift": (0, 0, ()),
    "stewart_platform": (0, 0, ()),
    "table": (3, 1, ALL),
    "toggle_press": (0, 0, ()),
    "umbrella": (0, 24, "all but drivers"),
    "universal_joint": (0, 3, "all but drivers"),
    "v_engine": (0, 0, ()),
    "windscreen_wiper": (0, 0, ()),
}

# The usual run: statics, kinematics and redundancy in one machine each.
USUAL = ("door", "toggle_press")


# ---------------------------------------------------------------------------------------------
# Help
# ---------------------------------------------------------------------------------------------


def tables(name: str) -> Any:
    return tomllib.loads((GALLERY / f"{name}.toml").read_text(encoding="utf-8"))


def at_rest(name: str) -> Any:
    """The tables of a machine whose drivers hold it."""
    own = tables(name)
    rest = {"type": "polynomial", "coefficients": [0.0]}
    parts = [own, *own.get("assembly", [])]
    for part in [*(d for p in parts for k in ("driver", "cylinder") for d in p.get(k, []))]:
        if "motion" in part:
            part["motion"] = rest
    return own


@cache
def held(name: str) -> Any:
    """A machine at rest: its model, system and reactions."""
    return solved(at_rest(name))


def solved(own: Any) -> Any:
    model = model_from_tables(own, own["name"])
    system = model.system()
    found = jm.reactions(system, system.reference_q, jnp.zeros(system.structure.nv))
    return model, system, found


def moving(name: str, times: Any) -> Any:
    """A model, and its motion as its drivers prescribe it."""
    model = read_model(GALLERY / f"{name}.toml")
    system = model.system()
    return model, jm.inverse_dynamics(system, system.reference_q, jnp.asarray(times))


def places(model: Any, q: Any, body: str) -> tuple[np.ndarray, np.ndarray]:
    """Centre of mass and angle of a planar body along a motion."""
    k = list(bodies(model)).index(body)
    own = np.asarray(q).reshape(len(q), -1, 3)[:, k]
    return own[:, :2], own[:, 2]


def carried(model: Any, q: Any, body: str, point: Any) -> np.ndarray:
    """Path of a point that a planar body carries, from where it is in the reference."""
    own = bodies(model)[body]
    centre, angle = places(model, q, body)
    arm = rotated(-float(own.angle), np.asarray(point) - np.asarray(own.position))
    return centre + np.stack([rotated(a, arm) for a in angle])


def rotated(angle: float, vector: Any) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]]) @ vector


def bodies(model: Any) -> dict[str, Any]:
    return {body.name: body for body in model.bodies}


def mass(model: Any, *names: str) -> float:
    """Of bodies whose name begins so; of all without names."""
    return sum(float(b.mass) for b in model.bodies if b.name.startswith(names or ("",)))


def parameters(model: Any) -> dict[str, Any]:
    return {
        name.removeprefix("parameters."): np.asarray(value)
        for name, value in model.parameters.values.items()
    }


def text(name: str) -> dict[str, str]:
    """The parts of a file's head."""
    lines = []
    for line in (GALLERY / f"{name}.toml").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    title, what, *others = " \n".join(lines).replace(" \n \n", "\f").split("\f")
    own = {"title": title.strip(), "what": what}
    for other in others:
        key, _, said = other.partition(": ")
        own[key] = " ".join(said.split())
    return own


def says(name: str, *numbers: str) -> None:
    """The answer in the file tells these numbers."""
    answer = text(name)["Answer"]
    for number in numbers:
        assert re.search(rf"(?<![\d.]){re.escape(number)}(?!\d|\.\d)", answer), (number, answer)


def cross(a: Any, b: Any) -> Any:
    """Of vectors in the plane: the component out of it."""
    return a[0] * b[1] - a[1] * b[0]


# ---------------------------------------------------------------------------------------------
# All of them
# ---------------------------------------------------------------------------------------------


def test_every_machine_is_in_the_table():
    assert len(NAMES) >= 20
    assert list(MOBILITY) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_a_model_and_says_what_it_answers(name: str):
    own = text(name)
    assert list(own) == ["title", "what", "Question", "Answer", "Try"]
    assert own["Question"].endswith("?")
    assert own["Answer"].endswith(".")
    assert own["Try"].startswith("jaxmbs ")
    assert f"examples/gallery/{name}.toml" in own["Try"]
    model = read_model(GALLERY / f"{name}.toml")
    assert model.name == tables(name)["name"]


@pytest.mark.parametrize("name", representatives(NAMES, *USUAL))
def test_it_moves_as_the_real_one_and_carries_its_weight(name: str):
    model, system, found = held(name)
    report = jm.analyze(system, system.reference_q)
    mobility, redundancy, not_unique = MOBILITY[name]
    assert (int(report.mobility), int(report.redundancy)) == (mobility, redundancy)
    every = report.structure.constraint_names
    drivers = {driver.name for driver in model.drivers}
    if not_unique is ALL:
        not_unique = every
    elif not_unique == "all but drivers":
        not_unique = [x for x in every if x not in drivers]
    assert [x for x in every if not bool(report.unique(x))] == list(not_unique)

    # What the ground carries is the weight and what is applied, at rest.
    on_ground = found.on("ground")
    wrenches = [on_ground.wrench(x) for x in on_ground.names]
    reaction = sum(np.asarray(w.force) for w in wrenches)
    moment = sum(
        np.asarray(w.torque).squeeze() + torque(np.asarray(w.point), np.asarray(w.force))
        for w in wrenches
    )
    loads = [
        (np.asarray(b.position), float(b.mass) * np.asarray(model.gravity))
        for b in (model.bodies if model.gravity is not None else ())
    ]
    couple = 0.0
    for force in model.forces:
        if isinstance(force, Applied):
            if force.force is not None:
                loads.append((application(model, force), np.asarray(force.force)))
            if force.torque is not None:
                couple = couple + np.asarray(force.torque)
        else:  # A spring between the ground and a body, without a length of its own.
            foot, head = np.asarray(force.points)
            loads.append((head, float(force.stiffness) * (foot - head)))
    size = sum(float(np.linalg.norm(f)) for _, f in loads) + 1.0
    assert_allclose(
        reaction, sum((f for _, f in loads), np.zeros(model.dimension)), atol=1e-9 * size
    )
    assert_allclose(moment, sum(torque(*one) for one in loads) + couple, atol=1e-9 * size)


def application(model: Any, force: Any) -> np.ndarray:
    """The point on which a force acts."""
    return np.asarray(force.at if force.at is not None else bodies(model)[force.bodies[0]].position)


# What lint says of machines that are redundant by intention, or whose drivers move from the start.
SAID = {"JM101", "JM102", "JM601"}
ROLLING = {
    *("beam_engine", "geneva_drive", "jansen_leg", "planetary_gear"),
    *("universal_joint", "v_engine", "windscreen_wiper"),
}


@pytest.mark.parametrize("name", representatives(NAMES, "desk_lamp"))
def test_lint_finds_nothing_else(name: str):
    found = {finding.code for finding in jm.lint(read_model(GALLERY / f"{name}.toml")).found}
    admitted = {"JM302"} if name in ROLLING else set()
    admitted |= SAID if MOBILITY[name][1] else set()
    assert found <= admitted


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thorough
def test_the_command_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    _, *words = shlex.split(text(name)["Try"])
    words = [str(ROOT / x) if x.startswith("examples/") else x for x in words]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    assert result.stdout


# What makes every reaction unique, as the answers say: joints of another type, or none.
SLIDES = {"type": "point_on_line", "axis": [1, 0, 0]}
SETTLED: dict[str, dict[str, Any]] = {
    "double_wishbone": {"lower front bush": SLIDES, "upper rear bush": SLIDES},
    "table": {"leg 1": None},
    "universal_joint": {"driven bearing": SLIDES | {"axis": "out"}},
}


@pytest.mark.parametrize("name", list(SETTLED))
@pytest.mark.thorough
def test_what_settles_it(name: str):
    own = at_rest(name)
    for joint in [*own["joint"]]:
        change = SETTLED[name].get(joint["name"], joint)
        if change is None:
            own["joint"].remove(joint)
        elif change is not joint:
            joint.update(change, bodies=joint["bodies"][::-1])
    _, system, _ = solved(own)
    report = jm.analyze(system, system.reference_q)
    assert (int(report.mobility), int(report.redundancy)) == (MOBILITY[name][0], 0)
    assert bool(report.reaction_unique.all())


def torque(point: np.ndarray, force: np.ndarray) -> Any:
    return np.cross(point, force) if len(force) == 3 else cross(point, force)


# ---------------------------------------------------------------------------------------------
# Each of them: statics
# ---------------------------------------------------------------------------------------------


def test_toggle_press():
    model, _, found = held("toggle_press")
    own = parameters(model)
    angle, link, press = own["angle"], own["link"], own["press"]
    drive = float(found.driving("cylinder drive"))
    # Virtual work; of the cylinder's own weight the knee carries a share by the lever rule.
    at = bodies(model)
    foot = -0.65
    reach = -link * np.sin(angle) - foot
    share = sum(
        float(at[x].mass) * (float(at[x].position[0]) - foot) / reach
        for x in ("cylinder barrel", "cylinder rod")
    )
    weights = mass(model, "upper link") / 2 + 1.5 * mass(model, "lower link")
    weights = G * (weights + 2 * mass(model, "ram") + share)
    assert_allclose(drive, np.tan(angle) * (2 * press - weights), rtol=1e-9)
    says("toggle_press", f"{drive / 1e3:.1f} kN", f"{press / drive:.2f}")
    assert_allclose(drive, 2 * press * np.tan(angle), rtol=0.02)


@pytest.mark.thorough
def test_door():
    own = at_rest("door")
    leaf, spread = own["body"][0]["mass"] * G, 1.5
    own["joint"][0] |= {"type": "spherical"}
    own["joint"][1] |= {"type": "point_on_line", "bodies": ["leaf", "ground"]}
    del own["joint"][0]["axis"]
    _, system, found = solved(own)
    assert bool(jm.analyze(system, system.reference_q).reaction_unique.all())
    lower, upper = (
        np.asarray(found.on("leaf").wrench(f"{x} hinge").force) for x in ("lower", "upper")
    )
    pull = leaf * 0.45 / spread
    assert_allclose(lower, [pull, 0, leaf], atol=1e-9 * leaf)
    assert_allclose(upper, [-pull, 0, 0], atol=1e-9 * leaf)
    says("door", f"{leaf:.1f} N", f"{pull:.1f} N")


@pytest.mark.thorough
def test_table():
    model, system, found = held("table")
    own = parameters(model)
    a, b, (x, y) = own["a"], own["b"], own["spot"]
    table, weight = 20 * G, 40 * G
    legs = [f"leg {k}" for k in range(1, 5)]
    forces = np.array([-float(found.wrench(leg).force[2]) for leg in legs])
    # Sides are unique: the lever rule.
    assert_allclose(forces[0] + forces[3], table / 2 + weight * (a + x) / (2 * a), rtol=1e-9)
    assert_allclose(forces[0] + forces[1], table / 2 + weight * (b + y) / (2 * b), rtol=1e-9)
    # What is left is one number, and feet do not pull.
    twist = np.array([1, -1, 1, -1])
    low, high = -forces[twist > 0].min(), forces[twist < 0].min()
    found = jm.ranges(system, system.reference_q, bounds=[f"{leg} <= 0" for leg in legs])
    said = []
    for leg, force, sign in zip(legs, forces, twist, strict=True):
        ends = sorted((force + sign * low, force + sign * high))
        wrench = found.wrench(leg)
        assert_allclose(-np.array([wrench.force_high[2], wrench.force_low[2]]), ends, atol=1e-6)
        said += [f"{end:.0f}" for end in ends]
    says("table", *said)


@pytest.mark.thorough
def test_scissor_lift():
    model, _, found = held("scissor_lift")
    angle = parameters(model)["angle"]
    load = (120 + 800) * G
    expected = (2 * load + 4 * 25 * G) / np.tan(angle)
    drive = float(found.driving("cylinder drive"))
    assert_allclose(-drive, expected, rtol=1e-9)
    says("scissor_lift", f"{expected / 1e3:.1f} kN")
    _, run = moving("scissor_lift", [0.0, 4.0, 8.0])
    says("scissor_lift", f"{-float(run.reactions().driving('cylinder drive')[-1]) / 1e3:.1f} kN")


def cylinder(model: Any, name: str, foot: Any, head: Any) -> tuple[Any, Any, Any]:
    """Direction of a cylinder, the part of its head's force across it that its own weight makes
    (on the cylinder), and its rod's weight."""
    foot, head = np.asarray(foot), np.asarray(head)
    length = np.linalg.norm(head - foot)
    along = (head - foot) / length
    at = bodies(model)
    gravity = np.asarray(model.gravity)
    # Moments about the foot: the head carries each weight by the lever rule, across the cylinder.
    share = sum(
        float(at[x].mass) * (np.asarray(at[x].position) - foot) @ along / length
        for x in (f"{name} barrel", f"{name} rod")
    )
    across = gravity - (gravity @ along) * along
    return along, -share * across, float(at[f"{name} rod"].mass) * gravity


@pytest.mark.thorough
def test_excavator():
    model, _, found = held("excavator")
    own, at = parameters(model), bodies(model)
    gravity = np.asarray(model.gravity)
    load = (np.array([5.6, 0.4]), own["earth"] * gravity)

    def weights(*names: str) -> list[Any]:
        return [(np.asarray(at[x].position), float(at[x].mass) * gravity) for x in names]

    ends = {
        "boom": ([0.6, 1.2], [2.7, 3.1]),
        "stick": ([2.6, 4.3], [4.96, 4.31]),
        "bucket": ([5.75, 3.2], own["N"]),
    }
    lines = {x: cylinder(model, f"{x} cylinder", *ends[x]) for x in ends}

    def thrust(name: str, pivot: Any, carried: list[Any], more: float = 0.0) -> float:
        """From the moments of all beyond a pivot: what the cylinder pushes its rod with."""
        along, across, rod = lines[name]
        arm = np.asarray(ends[name][1]) - pivot
        moment = sum(cross(p - pivot, f) for p, f in carried) + more
        axial = (-moment + cross(arm, across)) / cross(arm, along)
        return axial - rod @ along

    # Bucket: the link is a two-force member but for its weight; so link and bucket are solved
    # together, forces at Q (2), T (2), N (2) and the moments of the rocker.
    q, s, n, t = (np.asarray(own[x]) for x in "QSNT")
    (link,), (rocker,) = weights("link"), weights("rocker")
    # Unknown: force of the link on the bucket at T, of the rocker on the link at N.
    matrix, right = np.zeros((4, 4)), np.zeros(4)
    matrix[0, :2] = [-(t - q)[1], (t - q)[0]]
    right[0] = -sum(cross(p - q, f) for p, f in [*weights("bucket"), load])
    matrix[1:3, :2], matrix[1:3, 2:] = -np.eye(2), np.eye(2)
    right[1:3] = -link[1]
    matrix[3, :2] = [(t - n)[1], -(t - n)[0]]
    right[3] = -cross(link[0] - n, link[1])
    on_link = np.linalg.solve(matrix, right)[2:]
    bucket = thrust("bucket", s, [rocker, (n, -on_link)])

    tip = weights(
        "stick", "bucket", "rocker", "link", "bucket cylinder barrel", "bucket cylinder rod"
    )
    stick = thrust("stick", np.asarray(own["P"]), [*tip, load])
    arm = weights("boom", "stick cylinder barrel", "stick cylinder rod")
    boom = thrust("boom", np.asarray(own["O"]), [*arm, *tip, load])
    expected = {"boom": boom, "stick": stick, "bucket": bucket}
    for name, force in expected.items():
        assert_allclose(float(found.driving(f"{name} cylinder drive")), force, rtol=1e-9)
    says("excavator", *(f"{abs(force) / 1e3:.0f} kN" for force in expected.values()))


@pytest.mark.thorough
def test_stewart_platform():
    model, _, found = held("stewart_platform")
    own = parameters(model)
    top = np.array([0, 0, own["height"]])
    matrix, right, rods = np.zeros((6, 6)), np.zeros(6), []
    for k in range(6):
        base, plate = (
            np.radians(120.0 * (k // 2)) + (-1) ** (k + 1) * own[f"{x}_gap"]
            for x in ("base", "top")
        )
        foot = own["base_radius"] * np.array([np.cos(base), np.sin(base), 0])
        head = (
            top
            + 0.6 * own["base_radius"] * 0
            + own["top_radius"] * np.array([np.cos(plate), np.sin(plate), 0])
        )
        along, across, rod = cylinder(model, f"leg {k + 1} cylinder", foot, head)
        matrix[:, k] = [*along, *np.cross(head - top, along)]
        right += [*across, *np.cross(head - top, across)]
        rods.append(rod @ along)
    weight = np.array([0, 0, -mass(model, "plate") * G])
    load = np.array([0, 0, -200 * G])
    right -= [*(weight + load), *np.cross([0.2, 0.1, 0], load)]
    expected = np.linalg.solve(matrix, right) - rods
    forces = [float(found.driving(f"leg {k} cylinder drive")) for k in range(1, 7)]
    assert_allclose(forces, expected, rtol=1e-9)
    says("stewart_platform", *(f"{force:.0f}" for force in forces))


@pytest.mark.thorough
def test_delta_robot():
    model, _, found = held("delta_robot")
    own, at = parameters(model), bodies(model)
    radius, arm, wrist, angle = (own[x] for x in ("base", "arm", "wrist", "angle"))
    elbow = np.array([radius + arm * np.cos(angle), -arm * np.sin(angle)])
    drop = np.sqrt(own["rod"] ** 2 - (elbow[0] - wrist) ** 2)
    rod = np.array([wrist - elbow[0], -drop])
    weight = np.array([0.0, -float(at["limb 1 left rod"].mass) * G])
    # Each limb lifts a third; half of its rods' weight hangs at the wrist. What is axial in a rod
    # follows from the vertical.
    third = (float(at["platform"].mass) + 1.0) * G / 3 + 2 * -weight[1] / 2
    pair = third / rod[1] * rod  # on the rods, at the wrist; horizontal parts cancel by symmetry
    pair = np.array([pair[0], third])
    on_arm = pair * np.array([-1, -1]) + weight  # its other half at the elbow
    moment = cross(elbow - [radius, 0], on_arm) - cross(
        (elbow - [radius, 0]) / 2, np.array([0.0, 0.9 * G])
    )
    for k in range(1, 4):
        # The motor turns about y, from z to x.
        assert_allclose(float(found.driving(f"limb {k} motor")), moment, rtol=1e-9)
    says("delta_robot", f"{abs(moment):.2f} N m")


@pytest.mark.thorough
def test_double_wishbone():
    model, _, found = held("double_wishbone")
    own, at = parameters(model), bodies(model)
    low, high, centre = own["low"], own["high"], own["centre"]
    tie = np.array([[-0.12, 0.32, 0.28], [-0.14, 0.66, 0.28]])
    spring = np.array([[0, 0.4, 0.65], [0, 0.52, 0.21]])
    weight = {
        x: (np.asarray(b.position), np.array([0, 0, -float(b.mass) * G])) for x, b in at.items()
    }
    road = (np.array([0, 0.75, 0]), np.array([0, -own["cornering"], own["wheel_load"]]))
    # Unknown: forces on the knuckle at the ball joints (3 + 3), of the tie rod and the spring.
    unit = [(b - a) / np.linalg.norm(b - a) for a, b in (tie, spring)]
    matrix, right = np.zeros((8, 8)), np.zeros(8)
    matrix[:3, :3] = matrix[:3, 3:6] = np.eye(3)
    matrix[:3, 6] = unit[0]
    for k in range(3):
        matrix[3:6, k] = np.cross(low, np.eye(3)[k])
        matrix[3:6, 3 + k] = np.cross(high, np.eye(3)[k])
    matrix[3:6, 6] = np.cross(tie[1], unit[0])
    outer = [weight["knuckle"], weight["wheel"], road]
    right[:3] = -sum(f for _, f in outer)
    right[3:6] = -sum(np.cross(p, f) for p, f in outer)
    # Moments of the wishbones about their hinges, which lie along x.
    for row, ball, arm, hinge, at_ball in (
        (6, low, "lower arm", [0, 0.3, 0.22], slice(0, 3)),
        (7, high, "upper arm", [0, 0.42, 0.52], slice(3, 6)),
    ):
        matrix[row, at_ball] = [-np.cross(ball - hinge, e)[0] for e in np.eye(3)]
        right[row] = -np.cross(weight[arm][0] - hinge, weight[arm][1])[0]
    matrix[6, 7] = np.cross(spring[1] - [0, 0.3, 0.22], unit[1])[0]
    solution = np.linalg.solve(matrix, right)
    for name, part in (("lower ball", slice(0, 3)), ("upper ball", slice(3, 6))):
        assert_allclose(found.wrench(name).force, solution[part], atol=1e-6)
    for name, k in (("tie rod", 6), ("spring", 7)):
        assert_allclose(found.wrench(name).force, solution[k] * unit[k - 6], atol=1e-6)
        # On the second body, away from the first: it pushes.
        assert_allclose(found.axial(name), -solution[k], rtol=1e-9)
    says("double_wishbone", f"{solution[7]:.0f} N")
    # Along the hinge only the sum of the two bushes is unique.
    for arm, part in (("lower", slice(0, 3)), ("upper", slice(3, 6))):
        pair = [
            found.on(f"{arm} arm").wrench(f"{arm} {end} bush").force[0] for end in ("front", "rear")
        ]
        assert_allclose(sum(map(float, pair)), solution[part][0], atol=1e-6)
    del centre


@pytest.mark.thorough
def test_landing_gear():
    model, _, found = held("landing_gear")
    own, at = parameters(model), bodies(model)
    a, b, c, tyre = (own[x] for x in ("A", "B", "C", "tyre"))
    along = (c - b) / np.linalg.norm(c - b)
    elbow = (b + c) / 2 + own["past"] * np.array([along[1], -along[0]])
    weight = {x: (np.asarray(v.position), np.array([0, -float(v.mass) * G])) for x, v in at.items()}
    road = (tyre, np.array([own["side_load"], own["wheel_load"]]))
    # Unknown: forces at C on the leg, at the elbow on the lower link, and the moment there.
    moment = lambda arm: [-arm[1], arm[0]]  # noqa: E731
    matrix, right = np.zeros((5, 5)), np.zeros(5)
    matrix[0, :2] = moment(c - a)
    right[0] = -sum(cross(p - a, f) for p, f in (weight["leg"], weight["wheel"], road))
    matrix[1:3, :2], matrix[1:3, 2:4] = -np.eye(2), np.eye(2)
    right[1:3] = -weight["lower link"][1]
    matrix[3, 2:4], matrix[3, 4] = moment(elbow - c), 1
    right[3] = -cross(weight["lower link"][0] - c, weight["lower link"][1])
    matrix[4, 2:4], matrix[4, 4] = moment(elbow - b), 1
    matrix[4] *= -1
    right[4] = -cross(weight["upper link"][0] - b, weight["upper link"][1])
    solution = np.linalg.solve(matrix, right)
    assert_allclose(found.wrench("lower pin").force, solution[:2], rtol=1e-9)
    assert_allclose(float(found.driving("actuator")), solution[4], rtol=1e-9)
    # It keeps the elbow from going further past the line, where its stop is.
    assert solution[4] < 0
    brace = np.linalg.norm(solution[:2])
    assert_allclose(-solution[4], brace * own["past"], rtol=0.06)
    says("landing_gear", f"{brace / 1e3:.1f} kN", f"{-solution[4]:.0f} N m")
    model, run = moving("landing_gear", np.linspace(0.0, 6.0, 25))
    turned = np.degrees(places(model, run.q, "leg")[1][-1])
    says("landing_gear", f"{abs(turned):.0f} degrees")


@pytest.mark.thorough
def test_desk_lamp():
    model = read_model(GALLERY / "desk_lamp.toml")
    own = parameters(model)
    spring: Any = model.forces[0]
    expected = (mass(model, "lower bar") + 0.6) * G * own["L"] / (own["above"] * own["along"])
    assert_allclose(spring.stiffness, expected, rtol=1e-12)
    says("desk_lamp", f"{expected:.0f} N/m")
    for angle in (-0.3, 0.2, 1.2):
        system = jm.vary(model, {"parameters.angle": angle}).system()
        equations = system.equations(system.reference_q, jnp.zeros(system.structure.nv), 0.0)
        found = jm.formulations.MinimumNorm().solve(equations)
        assert_allclose(found.acceleration, 0, atol=1e-9)


@pytest.mark.thorough
def test_umbrella():
    model, _, found = held("umbrella")
    own = parameters(model)
    crown, joint, rod, rib = (own[x] for x in ("crown", "joint", "stretcher", "rib"))

    def heights(angle: float) -> np.ndarray:
        """Of the runner and of the centres of a rib and a stretcher."""
        x, z = crown + joint * np.cos(angle), own["top"] - joint * np.sin(angle)
        runner = z - np.sqrt(rod**2 - (x - crown) ** 2)
        return np.array([runner, own["top"] - rib / 2 * np.sin(angle), (z + runner) / 2])

    step = 1e-5
    slopes = (heights(own["angle"] + step) - heights(own["angle"] - step)) / (2 * step)
    # Virtual work.
    expected = G * (0.03 + 8 * (0.04 * slopes[1] + 0.012 * slopes[2]) / slopes[0])
    assert_allclose(float(found.driving("hand")), expected, rtol=1e-8)
    says("umbrella", f"{expected:.2f} N")


@pytest.mark.thorough
def test_planetary_gear():
    own = at_rest("planetary_gear")
    ratio = 1 + 60 / 24
    # The sun floats between the planets, and a torque drives it.
    own["driver"], own["joint"] = [], own["joint"][1:]
    own["force"].append({"name": "motor", "type": "applied", "body": "sun", "torque": 70 / ratio})
    model, system, found = solved(own)
    report = jm.analyze(system, system.reference_q)
    assert (int(report.mobility), int(report.redundancy)) == (1, 0)
    arm = parameters(model)["arm"]
    for k in range(1, 4):
        pin = np.asarray(found.wrench(f"planet {k} pin").force)
        turn = 2 * np.pi * (k - 1) / 3
        assert_allclose(pin @ [-np.sin(turn), np.cos(turn)], -70 / 3 / arm, rtol=1e-9)
        assert_allclose(pin @ [np.cos(turn), np.sin(turn)], 0, atol=1e-8)
    says("planetary_gear", f"{70 / 3 / arm:.0f} N", f"{ratio:g}")
    _, run = moving("planetary_gear", [0.0, 0.01])
    sun, carrier = (np.asarray(run.v).reshape(2, -1, 3)[:, k, 2] for k in (0, 1))
    assert_allclose(sun / carrier, ratio, rtol=1e-12)
    _, _, still = held("planetary_gear")
    assert_allclose(float(still.driving("motor")), 70 / ratio, rtol=1e-9)
    says("planetary_gear", f"{70 / ratio:g} N m")
    del report


# ---------------------------------------------------------------------------------------------
# Each of them: motion
# ---------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_geneva_drive():
    times = np.linspace(0.0, 0.25, 51)
    _, run = moving("geneva_drive", times)
    angle = -np.pi / 4 + 2 * np.pi * times
    ratio = np.sin(np.pi / 4)
    speed = 2 * np.pi
    below = 1 - 2 * ratio * np.cos(angle) + ratio**2
    law = speed * (ratio * np.cos(angle) - ratio**2) / below
    v = np.asarray(run.v).reshape(len(times), -1, 3)
    # (The crank turns the wheel the other way.)
    assert_allclose(v[:, 1, 2], -law, atol=1e-9 * speed)
    says("geneva_drive", f"{ratio / (1 - ratio):.2f}")
    acceleration = -(speed**2) * ratio * (1 - ratio**2) * np.sin(angle) / below**2
    torque = np.asarray(run.reactions().driving("motor"))
    assert_allclose(torque, 0.02 * acceleration * law / speed, atol=1e-9)
    says("geneva_drive", f"{np.abs(torque).max():.2f} N m")


def compass(a: Any, b: Any, ra: float, rb: float, side: int) -> np.ndarray:
    """The point at distances ra and rb from a and b, to the left (1) of the way from a to b."""
    d = np.linalg.norm(b - a)
    u = (b - a) / d
    x = (ra**2 - rb**2 + d**2) / (2 * d)
    y = np.sqrt(ra**2 - x**2)
    return a + x * u + side * y * np.array([-u[1], u[0]])


def jansen(turn: float) -> dict[str, np.ndarray]:
    """Points of Jansen's leg (cm) by his numbers."""
    b = np.array([-38.0, -7.8])
    x = 15.0 * np.array([np.cos(turn), np.sin(turn)])
    y = compass(x, b, 50.0, 41.5, -1)
    u = compass(x, b, 61.9, 39.3, 1)
    w = compass(y, b, 55.8, 40.1, -1)
    v = compass(w, u, 39.4, 36.7, -1)
    f = compass(v, u, 65.7, 49.0, -1)
    return {"B": b, "X": x, "Y": y, "U": u, "W": w, "V": v, "F": f}


@pytest.mark.thorough
def test_jansen_leg():
    times = np.linspace(0.0, 2.0, 101)
    model, run = moving("jansen_leg", times)
    foot = carried(model, run.q, "foot", jansen(0.0)["F"] / 100)
    expected = np.array([jansen(-np.pi * t)["F"] for t in times]) / 100
    assert_allclose(foot, expected, atol=1e-9)
    # The step: the half turn in which the foot is lowest.
    ground = expected[expected[:, 1] < expected[:, 1].min() + 0.02]
    says(
        "jansen_leg",
        f"{100 * np.ptp(ground[:, 0]):.0f} cm",
        f"{100 * np.ptp(expected[:, 1]):.0f} cm",
    )

    model, _, found = held("jansen_leg")
    at = bodies(model)

    def potential(turn: float) -> float:
        p = {k: x / 100 for k, x in jansen(turn).items()}
        o = np.zeros(2)
        centres = {
            "crank": (o + p["X"]) / 2,
            "upper rod": (p["X"] + p["Y"]) / 2,
            "lower rod": (p["X"] + p["U"]) / 2,
            "thigh": (p["B"] + p["Y"] + p["W"]) / 3,
            "rocker": (p["B"] + p["U"]) / 2,
            "calf rod": (p["W"] + p["V"]) / 2,
            "foot": (p["U"] + p["V"] + p["F"]) / 3,
        }
        return sum(float(at[name].mass) * G * centre[1] for name, centre in centres.items())

    slope = (potential(1e-5) - potential(-1e-5)) / 2e-5
    assert_allclose(float(found.driving("motor")), slope, rtol=1e-7)
    steady = [(potential(x + 1e-5) - potential(x - 1e-5)) / 2e-5 for x in np.linspace(0, 6.28, 200)]
    says("jansen_leg", f"{np.abs(steady).max():.1f} N m")


@pytest.mark.thorough
def test_windscreen_wiper():
    times = np.linspace(0.0, 60 / 45, 401)
    model, run = moving("windscreen_wiper", times)
    first, second = (places(model, run.q, f"{x} wiper")[1] for x in ("first", "second"))
    assert_allclose(first, second, atol=1e-9)
    sweep = 2 * np.arcsin(0.055 / 0.08)
    assert_allclose(np.ptp(first), sweep, rtol=1e-4)
    # As fast there as back: half a turn of the crank between the ends.
    ends = times[np.argmax(first)], times[np.argmin(first)]
    assert_allclose(abs(ends[0] - ends[1]), 30 / 45, atol=2 * times[1])
    says("windscreen_wiper", f"{np.degrees(sweep):.1f} degrees")


@pytest.mark.thorough
def test_v_engine():
    times = np.linspace(0.0, 0.02, 129)[:-1]
    _, run = moving("v_engine", times)
    found = run.reactions()
    force = sum(
        np.asarray(found.on("ground").wrench(x).force)
        for x in ("main bearing", "left cylinder", "right cylinder")
    )
    harmonics = 2 * np.abs(np.fft.rfft(force, axis=0)) / len(times)
    speed, r, rod = 2 * np.pi * 50, 0.05, 0.17
    mass_there = 0.4 + 0.3 * 0.5
    # First order: none is left. Second: across alone, sqrt(2) m r w^2 times the second harmonic of
    # a piston's acceleration, here without its series in r / rod.
    primary = mass_there * r * speed**2
    assert_allclose(harmonics[1], 0, atol=1e-9 * primary)
    angles = np.linspace(0, 2 * np.pi, 4096, endpoint=False)
    along = np.cos(angles) + np.sqrt((rod / r) ** 2 - np.sin(angles) ** 2)
    second = 4 * 2 * np.abs(np.fft.rfft(along)[2]) / len(angles)
    assert_allclose(harmonics[2], [np.sqrt(2) * primary * second, 0], atol=1e-7 * primary)
    assert_allclose(second, r / rod, rtol=0.05)
    says("v_engine", f"{primary / 1e3:.1f} kN", f"{harmonics[2][0] / 1e3:.2f} kN")


@pytest.mark.thorough
def test_pantograph():
    model, run = moving("pantograph", np.linspace(0.0, 2.0, 21))
    own = parameters(model)
    e1, e2 = (np.array([np.cos(a), np.sin(a)]) for a in (own["first"], own["second"]))
    k, p, q = (own[x] for x in "kpq")
    tracer = carried(model, run.q, "tracer bar", p * e1 + q * e2)
    pen = carried(model, run.q, "pen bar", k * (p * e1 + q * e2))
    assert np.ptp(tracer, axis=0).min() > 0.03
    assert_allclose(pen, k * tracer, atol=1e-10)
    # The hand alone holds it.
    _, _, found = held("pantograph")
    assert_allclose([float(found.driving(x)) for x in ("turn", "fold")], 0, atol=1e-12)
    says("pantograph", f"{k:g}", f"{np.linalg.norm(k * own['friction']):g} N")


@pytest.mark.thorough
def test_peaucellier():
    model, run = moving("peaucellier", np.linspace(0.0, 1.0, 21))
    model, _, found = held("peaucellier")
    own = parameters(model)
    line = (own["long"] ** 2 - own["side"] ** 2) / (2 * own["c"])
    half = own["angle"] / 2
    path = carried(model, run.q, "bar PB", [line, line * np.tan(half)])
    assert np.ptp(path[:, 1]) > 0.25
    assert_allclose(path[:, 0], line, atol=1e-10)
    torque = own["force"] * line / (2 * np.cos(half) ** 2)
    assert_allclose(float(found.driving("motor")), torque, rtol=1e-9)
    says("peaucellier", f"{torque:.1f} N m", f"{1e3 * line:.0f} mm")


@pytest.mark.thorough
def test_beam_engine():
    times = np.linspace(0.0, 4.0, 161)
    model, run = moving("beam_engine", times)
    model, _, found = held("beam_engine")
    own = parameters(model)
    half, r, drop = own["half"], own["r"], own["drop"]
    head = carried(model, run.q, "main link", [-half, -drop])
    # The linkage in NumPy: the beam by its angle, the corner by a compass, the head as the fourth
    # corner of the parallelogram.
    beam = places(model, run.q, "beam")[1]
    for angle, point in zip(beam, head, strict=True):
        d = -half / 2 * np.array([np.cos(angle), np.sin(angle)])
        e = compass(d, np.array([-half, -drop]), drop, half / 2, 1)
        assert_allclose(point, 2 * d + (e - d), atol=1e-9)
    stroke, off = np.ptp(head[:, 1]), np.abs(head[:, 0] + half).max()
    says("beam_engine", f"{stroke:.2f} m", f"{1e3 * off:.1f} mm")
    # The beam is level: its ends move as fast as the crank pin, what hangs between by its share.
    weights = mass(model, "main link") + 0.5 * mass(model, "back link") - mass(model, "connecting")
    weights += 0.75 * mass(model, "parallel") + 0.25 * mass(model, "radius")
    torque = -r * (own["steam"] + G * weights)
    assert_allclose(float(found.driving("speed")), torque, rtol=1e-9)
    says("beam_engine", f"{-torque / 1e3:.2f} kN m")


@pytest.mark.thorough
def test_universal_joint():
    times = np.linspace(0.0, 0.04, 41)
    _, run = moving("universal_joint", times)
    turn, bend = 2 * np.pi * 25 * times, np.radians(30)
    # Of a fork that begins normal to the plane of the shafts.
    law = np.cos(bend) / (1 - (np.sin(bend) * np.sin(turn)) ** 2)
    v = np.asarray(run.v).reshape(len(times), 2, 6)
    rates = v[:, :, 3:] @ np.array([1.0, 0.0, 0.0])
    axis = np.array([np.cos(bend), np.sin(bend), 0])
    driven = v[:, 1, 3:] @ axis
    assert_allclose(driven / rates[:, 0], law, rtol=1e-9)
    says("universal_joint", f"{np.cos(bend):.3f}", f"{1 / np.cos(bend):.3f}")
    _, _, found = held("universal_joint")
    assert_allclose(float(found.driving("motor")), 100 * np.cos(bend), rtol=1e-9)
    says("universal_joint", f"{100 * np.cos(bend):.1f} N m")
