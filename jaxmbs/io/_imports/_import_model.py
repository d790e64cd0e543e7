"""From a file of another program to a model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import equinox as eqx

from ... import _settings
from ..._checks import PATH, shown
from ..._custom_types import Setting
from ..._errors import ModelError
from ..._fields import LARGEST_PRECISION, PRECISION
from ..._system import Model, MultibodySystem
from .._digits import Digits, with_digits
from ._agreement import agreed
from ._description import Description, Omission
from ._mujoco import read_mujoco
from ._precision import digits_of_file
from ._sdf import read_sdf
from ._state import State
from ._translation import Selection, translated
from ._usd import read_usd


# What is moved by less, relative to the characteristic length, is not told.
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
    `omissions`, each with a kind, a name and why. `bodies`: by the name of each link of the file
    that of its body ("ground" for what stands still). `moved`: by how much (m) points of joints
    were moved at most, so that these are closed within the precision of the file's numbers."""

    model: Model
    omissions: tuple[Omission, ...]
    bodies: Mapping[str, str]
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
        return "\n".join([head, *omission_lines(self.omissions)])


def omission_lines(omissions: Sequence[Omission]) -> list[str]:
    """Omissions of one kind and for one reason on one line, every one by name."""
    if not omissions:
        return ["everything in the file is carried"]
    grouped: dict[tuple[str, str], list[str]] = {}
    for own in omissions:
        grouped.setdefault((own.kind, own.why), []).append(own.name)
    lines = [_line(kind, names, why) for (kind, why), names in grouped.items()]
    return ["not carried, or carried otherwise:", *(f"  {line}" for line in lines)]


def _line(kind: str, names: Sequence[str], why: str) -> str:
    """A name that begins with the kind of its part says it already."""
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
    - `outside`: may the file name others outside of its folder?
    - `balance`: replace moments of inertia that no body can have by their mean, as MuJoCo does if
      told to; each is listed.
    - `precision`: how exact the file's positions and directions are, lengths relative to the
      characteristic length and angles in rad, 0 for exact ones; default by the format (USD is of
      single precision) or by the digits of its numbers. Joints are closed within that of the file,
      `.moved` says by how much, and ranks and verdicts follow it.

    **Returns:** `Imported`: `.model`, `.system()`, `.omissions`.

    **Raises:** `ModelError` (a `ValueError`) with one sentence for a file that is none, that is not
    safe, or that holds what no model can.
    """
    path = Path(_settings.path(path, "path"))
    reader = MODEL_FORMATS.get(path.suffix.lower())
    if reader is None:
        raise ModelError(
            f"{shown(str(path), PATH)} ends in none of {', '.join(MODEL_FORMATS)}, the formats "
            "that are read."
        )
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
    description = reader(path, state)
    stated = None
    if precision is not None:
        advice = "1e-5 is that of numbers of five digits, and 0 says that they are exact"
        limits = {"least": 0.0, "most": LARGEST_PRECISION}
        stated = PRECISION(_settings.between(precision, "precision", **limits, advice=advice))
    exact = precision is not None and stated is None
    digits = Digits() if exact else digits_of_file(path, description)
    closed = agreed(description, digits)
    found = translated(closed.description, selection)
    model = found.model
    if stated is not None:
        model = eqx.tree_at(lambda m: m.precision, model, stated, is_leaf=lambda x: x is None)
    elif not exact:
        model = with_digits(model, digits)
    told = _precision(model, digits, closed.moved)
    return Imported(model, (*told, *closed.omissions, *found.omissions), found.bodies, closed.moved)


def _precision(model: Model, digits: Digits, moved: float) -> Iterator[Omission]:
    """What was moved so that joints are closed."""
    if moved > _MOVED * max(float(model.system().characteristic_length()), 1e-300):
        why = (
            f"joints were closed within the precision of the file's numbers "
            f"({digits.length:.2g} m, {digits.angle:.2g} rad), by moving points by at most "
            f"{moved:.3g} m"
        )
        yield Omission("precision", model.name, why)
