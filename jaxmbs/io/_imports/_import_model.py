"""From a file of another program to a model."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import equinox as eqx

from ... import _settings
from ..._checks import PATH, shown
from ..._custom_types import Setting
from ..._errors import ModelError
from ..._fields import PRECISION
from ..._limits import LARGEST_PRECISION
from ..._system import Model, MultibodySystem
from .._digits import Digits, with_digits
from ._agreement import agreed
from ._description import Description, Omission
from ._loops import closed
from ._masses import Masses
from ._mujoco import read_mujoco
from ._precision import digits_of_file
from ._sdf import read_sdf
from ._state import State
from ._translation import Selection, translated
from ._usd import read_usd


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
    the precision of the file's numbers."""

    model: Model
    omissions: tuple[Omission, ...]
    bodies: Mapping[str, str]
    masses: Masses
    moved: float = 0.0

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
        return "\n".join([head, *self.masses.lines(), *omission_lines(self.omissions)])


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
) -> Imported:
    """The mechanism in a file of another program, in absolute coordinates: MJCF (`.xml`, `.mjcf`),
    URDF (`.urdf`), SDF (`.sdf`, `.world`) and USD physics (`.usd`, `.usda`, `.usdc`).

    Each body of the file that moves is a body, each joint a joint by its name; links that are
    welded together are one body, and one that is welded to the world is part of the ground. Of a
    body with several joints there are links without mass between them, so that each stays what it
    is. Equality constraints and mimic joints are joints and couplings, held exactly; springs,
    dampers, motors (at constant control inputs) and armature become forces and reflected inertias.
    What is not carried (contact, limits, dry friction, tendons, sensors, pictures) is listed with
    its name.

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
    )
    loops = tuple(_settings.names(close, "close", "['tip=crank:spherical']"))
    stated = None
    if precision is not None:
        advice = "1e-5 is that of numbers of five digits, and 0 says that they are exact"
        limits = {"least": 0.0, "most": LARGEST_PRECISION}
        stated = float(_settings.between(precision, "precision", **limits, advice=advice))
    return _imported(path, state, loops, selection, stated)[0]


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
    return Imported(model, omissions, found.bodies, found.masses, met.moved), found.impossible


def _precision(model: Model, digits: Digits, moved: float) -> Iterator[Omission]:
    """The displacements that closed the joints."""
    if moved > _MOVED * max(float(model.system().characteristic_length()), 1e-300):
        why = (
            f"joints were closed within the precision of the file's numbers "
            f"({digits.length:.2g} m, {digits.angle:.2g} rad), by moving points by at most "
            f"{moved:.3g} m"
        )
        yield Omission("precision", model.name, why)
