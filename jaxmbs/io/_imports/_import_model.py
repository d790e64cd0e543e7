"""From a file of another program to a model."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

import equinox as eqx
import numpy as np

from ... import _settings
from ..._checks import listed, PATH, shown
from ..._custom_types import Setting
from ..._errors import ModelError
from ..._fields import PRECISION
from ..._limits import LARGEST_PRECISION, NumberRange
from ..._system import Model, MultibodySystem
from .._digits import Digits, numbers_in, of_numbers, with_digits, Written
from ._description import (
    agreed,
    Description,
    GROUND,
    Joint,
    Link,
    Matrix,
    Omission,
    rotation_vector,
    size_of,
    State,
    Vector,
)
from ._masses import Masses
from ._mujoco import read_mujoco
from ._sdf import read_sdf
from ._translation import Selection, translated
from ._usd import read_usd
from ._xml import read_xml


# --------------------------------------------------------------------------------------------------
# Joints that close loops, given in addition to a file whose format has trees alone.
# --------------------------------------------------------------------------------------------------


# Joints that a loop may be closed by, and how many axes each has.
_KINDS = {
    "spherical": 0,
    "fixed": 0,
    "revolute": 1,
    "cylindrical": 1,
    "translational": 1,
    "universal": 2,
}
_APART = 1e-9


class _Frame(NamedTuple):
    """The frame of a link in the world."""

    origin: Vector
    axes: Matrix


def closed(description: Description, loops: Sequence[str]) -> Description:
    """A description with a joint for each loop, `a=b:joint` or `a=b:joint:axis`, between the frames
    of two links.

    **Raises:** `ModelError` for a link or a joint that there is not.
    """
    joints, told = [], []
    for loop in loops:
        joint, own = _joint(description, loop)
        joints.append(joint)
        told.extend(own)
    return description._replace(
        joints=(*description.joints, *joints), omissions=(*description.omissions, *told)
    )


def _joint(description: Description, loop: str) -> tuple[Joint, list[Omission]]:
    pair, _, rest = loop.partition(":")
    kind, _, axis = rest.partition(":")
    first, equals, second = pair.partition("=")
    if not equals or not kind:
        raise ModelError(
            f"loop {shown(loop)} is not FIRST=SECOND:JOINT, such as tip=crank:spherical, or "
            "tip=crank:revolute:y with an axis of FIRST."
        )
    if kind not in _KINDS:
        raise ModelError(f"loop {shown(loop)}: joint {shown(kind)} is none of {listed(_KINDS)}.")
    if axis not in ("", "x", "y", "z"):
        raise ModelError(f"loop {shown(loop)}: axis {shown(axis)} must be x, y or z of {first!r}.")
    links = {link.name: link for link in description.links}
    one, other = (_frame(links, name, loop) for name in (first, second))
    if first == second:
        raise ModelError(f"loop {shown(loop)} joins {shown(first)} with itself.")
    place = "xyz".index(axis or "z")
    axes = [one.axes[:, (place + k) % 3] for k in range(_KINDS[kind])]
    points = np.stack([one.origin, other.origin])
    name = f"{first}={second}"
    told = []
    apart = float(np.linalg.norm(one.origin - other.origin))
    if apart > _APART and kind != "translational":
        why = f"is open by {apart:.3g} m in the file's configuration; --assemble closes it"
        told.append(Omission("loop", name, why))
    turned = float(np.linalg.norm(rotation_vector(one.axes.T @ other.axes)))
    if turned > _APART and kind != "spherical":
        why = (
            f"takes its axes from {first!r}, and holds {second!r} as it is turned in the file's "
            f"configuration, {turned:.3g} rad away from it"
        )
        told.append(Omission("loop", name, why))
    return Joint(name, kind, first, second, points, tuple(axes)), told


def _frame(links: dict[str, Link], name: str, loop: str) -> _Frame:
    if name == GROUND:
        return _Frame(np.zeros(3), np.eye(3))
    if name not in links:
        raise ModelError(
            f"loop {shown(loop)}: there is no link {shown(name)}; there are {listed(links)}."
        )
    return _Frame(links[name].position, links[name].rotation)


# --------------------------------------------------------------------------------------------------
# Precision of the numbers in a file of another program.
# --------------------------------------------------------------------------------------------------


# What the largest numbers of single precision are rounded by, relative to them.
_SINGLE = 2.0**-24

_DEGREE = np.pi / 180

# Attributes of MJCF that locate joints and links: places, directions and angles.
_PLACES = ("pos", "anchor", "relpose")
_DIRECTIONS = ("axis", "quat", "zaxis", "xyaxes", "axisangle")
_TAGS = ("body", "frame", "joint", "site", "connect", "weld", "freejoint", "replicate")


def digits_of_file(path: Path, description: Description) -> Digits:
    """Digits of a file, by its format and by the numbers in it."""
    return _FORMATS[path.suffix.lower()](path, description)


def _of_usd(path: Path, description: Description) -> Digits:
    """Frames of joints are of single precision, and most orientations of links."""
    del path
    return Digits(_SINGLE * size_of(description), _SINGLE)


def _of_xml(path: Path, description: Description) -> Digits:
    """A file that cannot be read any more has no digits."""
    del description
    try:
        root = read_xml(path).root
    except ModelError:
        return Digits()
    return {"robot": _of_urdf, "mujoco": _of_mjcf, "sdf": _of_sdf}.get(root.tag, _of_none)(root)


def _of_none(root: Element) -> Digits:
    del root
    return Digits()


def _of_mjcf(root: Element) -> Digits:
    degrees = not any(own.get("angle") == "radian" for own in root.iter("compiler"))
    unit = _DEGREE if degrees else 1.0
    elements = [own for own in root.iter() if own.tag in _TAGS]
    return _digits(
        (own.get(key, "") for own in elements for key in _PLACES),
        (own.get(key, "") for own in elements for key in _DIRECTIONS),
        (own.get("euler", "") for own in elements),
        unit,
    )


def _of_urdf(root: Element) -> Digits:
    """Joints alone: the origins of an inertia and of shapes close no loop."""
    origins = [own for joint in root.iter("joint") for own in joint.findall("origin")]
    axes = [own for joint in root.iter("joint") for own in joint.findall("axis")]
    return _digits(
        (own.get("xyz", "") for own in origins),
        (own.get("xyz", "") for own in axes),
        (own.get("rpy", "") for own in origins),
    )


def _of_sdf(root: Element) -> Digits:
    """Poses of models, links, frames and joints: three lengths, then three angles."""
    poses = [
        pose
        for tag in ("model", "link", "frame", "joint")
        for own in root.iter(tag)
        for pose in own.findall("pose")
    ]
    words = [(pose.text or "").split() for pose in poses]
    axes = (own.text or "" for own in root.iter("xyz"))
    degrees = [pose.get("degrees", "").strip().lower() in ("true", "1") for pose in poses]
    found = _digits((" ".join(own[:3]) for own in words), axes, ())
    turned = [
        of_numbers((), (), numbers_in(" ".join(text[3:6])), _DEGREE if own else 1.0)
        for text, own in zip(words, degrees, strict=True)
    ]
    return Digits(*(max(own) for own in zip(found, *turned, strict=True)))


def _digits(
    places: Iterable[str], directions: Iterable[str], angles: Iterable[str], unit: float = 1.0
) -> Digits:
    return of_numbers(
        [number for text in places for number in numbers_in(text)],
        [part for text in directions for part in _vectors(text)],
        [number for text in angles for number in numbers_in(text)],
        unit,
    )


def _vectors(text: str) -> Iterator[list[Written]]:
    """`xyaxes` contains two axes."""
    found = numbers_in(text)
    yield from (found[:3], found[3:]) if len(found) == 6 else (found,)


_FORMATS: Mapping[str, Callable[[Path, Description], Digits]] = MappingProxyType(
    {
        ".xml": _of_xml,
        ".mjcf": _of_xml,
        ".urdf": _of_xml,
        ".sdf": _of_xml,
        ".world": _of_xml,
        ".usd": _of_usd,
        ".usda": _of_usd,
        ".usdc": _of_usd,
    }
)


# Smaller displacements, relative to the characteristic length, are not reported.
_MOVED = 1e-13

# Who reads a file, by its ending.
MODEL_FORMATS: Mapping[str, Callable[[Path, State], Description]] = MappingProxyType(
    {
        ".xml": read_mujoco,
        ".mjcf": read_mujoco,
        ".urdf": read_mujoco,
        ".sdf": read_sdf,
        ".world": read_sdf,
        ".usd": read_usd,
        ".usda": read_usd,
        ".usdc": read_usd,
    }
)


class Imported(NamedTuple):
    """A `model` that was read from another program's file, and what it does not hold of that:
    `omissions`, each with a kind, a name and why. `bodies`: for each link of the file, by name, the
    name of its body ("ground" for fixed links). `masses` (kg): of the model and of the file,
    `.moving`, `.ground`, `.stated`, and `.derived`, each that the file does not give in numbers.
    `moved`: by how much (m) points of joints were moved at most, so that these are closed within
    the precision of the file's numbers. `inputs`: the control input of each actuator that the model
    has, by name, at which it is held."""

    model: Model
    omissions: tuple[Omission, ...]
    bodies: Mapping[str, str]
    masses: Masses
    moved: float = 0.0
    inputs: Mapping[str, float] = MappingProxyType({})

    def system(self) -> MultibodySystem:
        """The equations of the model.

        **Raises:** `ValueError`, as `Model.system`.
        """
        return self.model.system()

    def __str__(self) -> str:
        model = self.model
        head = (
            f"{model.name}: {len(model.bodies)} bodies, {len(model.joints)} joints, "
            f"{len(model.drivers)} drivers, {len(model.forces)} forces, "
            f"{len(model.elements)} inertias of drives"
        )
        lines = [*self.masses.lines(), *input_lines(self.inputs), *omission_lines(self.omissions)]
        return "\n".join([head, *lines])


# More control inputs are counted.
_MOST_INPUTS = 8


def input_lines(inputs: Mapping[str, float], *, names: Setting[bool] = False) -> list[str]:
    """The control inputs at which actuators are held; many that are the same on one line, unless
    with `names`."""
    names = _settings.flag(names, "names")
    if not inputs:
        return []
    values = {*inputs.values()}
    if len(inputs) > _MOST_INPUTS and not names:
        some = f"{min(values):g}" if len(values) == 1 else f"{min(values):g} to {max(values):g}"
        given = f"{some} for {len(inputs)} actuators"
    else:
        given = ", ".join(f"{name} {value:g}" for name, value in inputs.items())
    return [f"constant control inputs: {given} (jaxmbs import --control NAME=VALUE for another)"]


def omission_lines(omissions: Sequence[Omission], *, names: Setting[bool] = False) -> list[str]:
    """Omissions of one kind on one line with their number; with `names`, those of one kind and for
    one reason on one, every one by name."""
    names = _settings.flag(names, "names")
    if not omissions:
        return ["everything in the file is carried"]
    grouped: dict[tuple[str, ...], list[Omission]] = {}
    for own in omissions:
        grouped.setdefault((own.kind, own.why) if names else (own.kind,), []).append(own)
    lines = [
        _line(kind[0], [own.name for own in each], each[0].why)
        if names or len(each) == 1
        else _count(kind[0], each)
        for kind, each in grouped.items()
    ]
    more = "" if names or len(lines) == len(omissions) else " (jaxmbs import --names tells which)"
    return [f"not carried, or carried otherwise{more}:", *(f"  {line}" for line in lines)]


# What differs between reasons of one kind: names and numbers.
_OWN = re.compile(r"'[^']*'|(?<![\w-])-?\d[\d.]*(?:e[+-]?\d+)?")


def _count(kind: str, each: Sequence[Omission]) -> str:
    """So many of a kind, and their reasons without what is each one's own."""
    reasons = list(dict.fromkeys(_OWN.sub("...", own.why) for own in each))
    whys = [own.why for own in each]
    if len({*whys}) == 1:
        reasons = whys[:1]
    return f"{len(each)} x {kind}: {'; '.join(reasons)}"


def _line(kind: str, names: Sequence[str], why: str) -> str:
    """A name that begins with the kind of its part needs no further kind."""
    said = "" if names[0].startswith(f"{kind} ") else f"{kind} "
    return f"{said}{', '.join(names)}: {why}"


def import_model(
    path: Setting[str | Path],
    *,
    keyframe: Setting[str | None] = None,
    controls: Setting[Mapping[str, float] | None] = None,
    floating: Setting[bool] = False,
    ground: Setting[Sequence[str]] = (),
    keep: Setting[Sequence[str]] = (),
    drop: Setting[Sequence[str]] = (),
    close: Setting[Sequence[str]] = (),
    outside: Setting[bool] = False,
    balance: Setting[bool] = False,
    precision: Setting[float | None] = None,
    stops: Setting[bool] = False,
    stop_stiffness: Setting[float | None] = None,
) -> Imported:
    """The mechanism in a file of another program, in absolute coordinates: MJCF (`.xml`, `.mjcf`),
    URDF (`.urdf`), SDF (`.sdf`, `.world`) and USD physics (`.usd`, `.usda`, `.usdc`).

    Each body of the file that moves is a body, each joint a joint by its name; links that are
    welded together are one body, and one that is welded to the world is part of the ground. Of a
    body with several joints there are links without mass between them, so that each stays what it
    is. Equality constraints and mimic joints are joints and couplings, held exactly; springs,
    dampers, dry friction, motors (at constant control inputs, `.inputs`; a `forces.Motor` where
    their force is limited) and armature become forces and reflected inertias.
    What is not carried (contact, limits, tendons, sensors, pictures) is listed with its name.

    MJCF and URDF are read by MuJoCo's own compiler (extra `import`), which nothing but MuJoCo
    agrees with in all defaults. Nothing is fetched or executed, and no file outside of the
    model's folder is read.

    **Arguments:**

    - `path`: the file.
    - `keyframe`: the name of that which is the reference configuration and gives initial
      velocities and control inputs; default: the file's initial configuration, at rest.
    - `controls`: control inputs of actuators by name; default: the keyframe's, else zero.
    - `floating`: the root link of a URDF moves freely; default: it is part of the ground.
    - `ground`: names of links that are part of the ground. `keep`, `drop`: patterns of names
      (`*`, `?`) of links, for parts of huge files: those that are made bodies (default all), less
      those that are not; with a link goes all that holds it, listed.
    - `close`: loops that the file has no place for, as of URDF, each `"a=b:joint"`: between the
      frames of links `a` and `b` a spherical, revolute, cylindrical, universal, translational or
      fixed joint, such as `"tip=crank:revolute:y"`; the axis is x, y or z of `a` (default z).
    - `outside`: may the file name others outside of its folder?
    - `balance`: replace moments of inertia that no body can have by their mean, as MuJoCo's option
      does; each is listed. Moments of exactly zero stay.
    - `precision`: how exact the file's positions and directions are, lengths relative to the
      characteristic length and angles in rad, 0 for exact ones; default by the format (USD is of
      single precision) or by the digits of its numbers. Joints are closed within that of the file,
      `.moved` gives the largest displacement, and ranks and verdicts use the precision.
    - `stops`: make stops (`forces.JointStop`, linear and without damping) of the ranges of hinges
      and slides; default: ranges are not kept, and listed. `stop_stiffness` (N m/rad, N/m): of the
      stops of which the file gives none, as MJCF and URDF never do (`solref` is no stiffness);
      SDF and USD (PhysX) may.

    **Returns:** `Imported`: `.model`, `.system()`, `.omissions`, `.masses`.

    **Raises:** `ModelError` (a `ValueError`) with one sentence for a file that is none, that is not
    safe, or that holds what no model can.
    """
    path = Path(_settings.path(path, "path"))
    given = {} if controls is None else dict(_settings.mapping(controls, "controls", "{'m': 1.0}"))
    state = State(
        keyframe=None if keyframe is None else _settings.text(keyframe, "keyframe", "'home'"),
        controls={
            name: _settings.known_number(value, f"controls[{name!r}]")
            for name, value in given.items()
        },
        floating=_settings.flag(floating, "floating"),
        outside=_settings.flag(outside, "outside"),
    )
    selection = Selection(
        tuple(_settings.names(ground, "ground", "['base']")),
        tuple(_settings.names(keep, "keep", "['left*']")),
        tuple(_settings.names(drop, "drop", "['head*']")),
        _settings.flag(balance, "balance"),
        stops=_settings.flag(stops, "stops"),
        stop_stiffness=_stiffness(stop_stiffness, stops),
    )
    loops = tuple(_settings.names(close, "close", "['tip=crank:spherical']"))
    stated = None
    if precision is not None:
        advice = "1e-5 is that of numbers of five digits, and 0 says that they are exact"
        bounds = NumberRange(least=0.0, most=LARGEST_PRECISION, advice=advice)
        stated = float(_settings.between(precision, "precision", bounds))
    return _imported(path, state, loops, selection, stated)[0]


def _stiffness(given: Any, stops: bool) -> float | None:
    """
    **Raises:** `ValueError` for one that is not above zero, and for one without stops.
    """
    if given is None:
        return None
    found = float(_settings.between(given, "stop_stiffness", NumberRange(above=0)))
    if not stops:
        raise ValueError("stop_stiffness is that of stops, and none are made; give stops=True.")
    return found


def import_possible(path: Path) -> tuple[Imported, Mapping[str, str]]:
    """`import_model`, with others in the place of bodies that no body can be, and what is wrong
    with these, by name.

    **Raises:** `ModelError`.
    """
    return _imported(path, State(), (), Selection(mend=True), None)


def _imported(
    path: Path, state: State, loops: Sequence[str], selection: Selection, precision: float | None
) -> tuple[Imported, Mapping[str, str]]:
    """The model, and what is wrong with bodies that no body can be, by name. `precision`: of its
    numbers, 0 for exact ones; None: that of the format, or of the digits."""
    reader = MODEL_FORMATS.get(path.suffix.lower())
    if reader is None:
        raise ModelError(
            f"{shown(str(path), PATH)} ends in none of {', '.join(MODEL_FORMATS)}, the formats "
            "that are read."
        )
    description = closed(reader(path, state), loops)
    stated = None if precision is None else PRECISION(precision)
    exact = precision is not None and stated is None
    digits = Digits() if exact else digits_of_file(path, description)
    met = agreed(description, digits)
    found = translated(met.description, selection)
    model = found.model
    if stated is not None:
        model = eqx.tree_at(lambda m: m.precision, model, stated, is_leaf=lambda x: x is None)
    elif not exact:
        model = with_digits(model, digits)
    told = _precision(model, digits, met.moved)
    omissions = (*told, *met.omissions, *found.omissions)
    imported = Imported(
        model, omissions, found.bodies, found.masses, met.moved, dict(description.inputs)
    )
    return imported, found.impossible


def _precision(model: Model, digits: Digits, moved: float) -> Iterator[Omission]:
    """The displacements that closed the joints."""
    if moved > _MOVED * max(float(model.system().characteristic_length()), 1e-300):
        why = (
            f"joints were closed within the precision of the file's numbers "
            f"({digits.length:.2g} m, {digits.angle:.2g} rad), by moving points by at most "
            f"{moved:.3g} m"
        )
        yield Omission("precision", model.name, why)
