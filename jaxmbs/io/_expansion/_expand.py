"""From a file with parameters, shapes, sub-assemblies and cylinders to tables of parts."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ... import _checks
from ..._checks import listed, shown
from ..._errors import ModelError
from ..._fields import Field, fields_of, GRAVITY, keys_of, Moves, two_points
from ..._parameters import (
    AbstractFormula,
    Definitions,
    InBarrel,
    MassOf,
    MomentsOf,
    Moved,
    Number,
    Parameters,
    Pose,
    QuaternionOf,
    reserved,
    TurnedTo,
)
from .._registry import (
    BODIES,
    called,
    check_keys_of,
    class_of,
    placed,
    tables_of,
)
from ._scope import Assembly, Collection, Cylinder, Pending, Place, RELATIVE, Scope, SHAPES, USES


# --------------------------------------------------------------------------------------------------
# Tables of parts, with names and numbers as a model without sub-assemblies has them.
# --------------------------------------------------------------------------------------------------


# From the table of a file to the group of a model.
GROUPS: Mapping[str, str] = {
    "body": "bodies",
    "joint": "joints",
    "driver": "drivers",
    "force": "forces",
    "compliance": "compliances",
    "element": "elements",
    "visual": "visuals",
}


# Numbers of the shapes of bodies as visual ones, while they are expanded.
_LOOKS = "looks"


def add_part(kind: str, entry: dict[str, Any], index: int, scope: Scope, found: Collection) -> None:
    """One table of a part. One of unknown type is left to the reader, which refuses it."""
    cls = class_of(kind, entry, scope.dimension)
    if cls is None:
        found.tables[kind].append(entry)
        return
    made = dict(entry)
    if "name" in entry:
        made["name"] = scope.called(entry["name"])
    name = made.get("name")
    if kind == "visual":
        # They have no names; numbers of theirs are known by their place until they are set.
        name = str(len(found.tables[kind]))
    where = called(kind, made.get("name"), index)
    owner = f"{GROUPS[kind]}.{name}"
    if kind == "body":
        _add_pose(made, scope)
        if "shape" in made:
            if cls is not BODIES[scope.dimension]:
                raise ModelError(
                    f"{where}: a body of type {shown(entry['type'], 60)} has no mass and no "
                    "inertia, so no `shape`; leave out the one or the other."
                )
            _add_shape(made, where, owner, scope, found)
        found.bodies.setdefault(str(name), made)
    _set_keys(cls, made, where, owner, scope, found)
    for key, own in keys_of(cls).items():
        table = made.get(key)
        if own.said.holds and isinstance(table, dict):
            made[key] = table = dict(table)
            held = class_of(own.said.holds, table, scope.dimension)
            if held is not None:
                _set_keys(held, table, f"{where}, {key}", f"{owner}.{key}", scope, found)
    found.tables[kind].append(made)


def _set_keys(
    cls: type[Any],
    made: dict[str, Any],
    where: str,
    owner: str,
    scope: Scope,
    found: Collection,
) -> None:
    """References by full names, and formulas for what is not given as it is."""
    for key, own in keys_of(cls).items():
        if key not in made or key == "name":
            continue
        if own.said.refers:
            made[key] = scope.referred(made[key])
        if not is_numeric(own.said):
            continue
        place = Place(where, key, entry_text(made[key]))
        formula = scope.formula(made[key], own.said, place)
        if formula is None:
            continue
        set_key(cls, key, formula, place, made, owner, found)


def set_key(
    cls: type[Any],
    key: str,
    formula: AbstractFormula,
    place: Place,
    made: dict[str, Any],
    owner: str,
    found: Collection,
) -> None:
    """A formula for a key of a part's table."""
    field = next(f for f, said in fields_of(cls).items() if key in [k.key for k in said.keys])
    written = key
    if field == "orientation" and key == "rotation":
        # A part holds the quaternion, whichever of the two is given.
        del made[key]
        formula, written = QuaternionOf(formula), field
    # Set when formulas are evaluated; the key is there, so that nothing misses it.
    made[written] = None
    found.set_later(f"{owner}.{field}", Pending(place, made, written, formula))


def is_numeric(said: Field) -> bool:
    """Does the key hold numbers?"""
    return "float" in str(said.form)


def entry_text(value: Any) -> Any:
    """The value quoted in a message; None for values that the expansion itself inserted."""
    return None if isinstance(value, AbstractFormula) else value


def _add_pose(made: dict[str, Any], scope: Scope) -> None:
    """The orientation of a body that has none, in axes that have one."""
    if scope.pose is None or {"angle", "orientation", "rotation"} & set(made):
        return
    if scope.dimension == 2:
        made["angle"] = 0.0
    else:
        made["orientation"] = [1.0, 0.0, 0.0, 0.0]


def _add_shape(
    made: dict[str, Any], where: str, owner: str, scope: Scope, found: Collection
) -> None:
    """Mass and inertia from the shape of a body."""
    if "inertia" in made:
        raise ModelError(f"{where}: give `inertia` or `shape`, one of the two.")
    shape, pairs = shape_numbers(
        made.pop("shape"), f"{where}, shape", f"{owner}.shape", scope, found
    )
    given = {"mass", "density"} & {word for word, _ in pairs}
    if ("mass" in made) == bool(given):
        raise ModelError(f"{where}: give `mass`, or `density` or `mass` in its shape, one of them.")
    cls = BODIES[scope.dimension]
    if given:
        place = Place(where, "mass", None)
        set_key(cls, "mass", MassOf(shape, pairs), place, made, owner, found)
    else:
        pairs = (*pairs, ("mass", Number(f"{owner}.mass")))
    place = Place(where, "inertia", None)
    formula = MomentsOf(shape, pairs, scope.dimension)
    set_key(cls, "inertia", formula, place, made, owner, found)
    _add_look(made, shape, where, owner, pairs, found)


def _add_look(
    made: dict[str, Any],
    shape: type[Any],
    where: str,
    owner: str,
    pairs: tuple[tuple[str, AbstractFormula], ...],
    found: Collection,
) -> None:
    """The body's shape as a visual one, which `expand` leaves out where others are declared."""
    word = next(word for word, cls in SHAPES.items() if cls is shape)
    look: dict[str, Any] = {"type": word, "body": made.get("name")}
    for key, formula in pairs:
        if key not in ("mass", "density"):
            look[key] = None
            place = Place(where, key, None)
            found.set_later(f"{_LOOKS}.{owner}.{key}", Pending(place, look, key, formula))
    found.looks.append(look)


def shape_numbers(
    table: Any, where: str, owner: str, scope: Scope, found: Collection
) -> tuple[type[Any], tuple[tuple[str, AbstractFormula], ...]]:
    """The class of a shape's table, and its numbers by key."""
    if not isinstance(table, dict) or table.get("type") not in tuple(SHAPES):
        got = table.get("type") if isinstance(table, dict) else table
        raise ModelError(
            f"{where} must be a table with a `type`, one of {', '.join(SHAPES)}; got {shown(got)}."
        )
    cls = SHAPES[table["type"]]
    keys = check_keys_of(cls, table, where, "type")
    pairs = []
    for key in (key for key in keys if key in table):
        place = Place(where, key, entry_text(table[key]))
        formula = scope.plain(table[key], place)
        if isinstance(table[key], AbstractFormula):
            pairs.append((key, formula))
            continue
        found.define(f"{owner}.{key}", formula, place, keys[key].said)
        pairs.append((key, Number(f"{owner}.{key}")))
    return cls, tuple(pairs)


# --------------------------------------------------------------------------------------------------
# Sub-assemblies: parts that are declared once and used several times.
# --------------------------------------------------------------------------------------------------


# A short file could make any number of parts, by uses within uses.
_MOST_PARTS = 100_000
# Two bodies, three joints, and a driver or forces.
_PARTS_OF_CYLINDER = 8
_DEEPEST = 16

# What gives the parameters of an assembly.
_WORDS = ("parameters", "required")
# The ways to turn a use; one of them at most is given.
TURNS = ("angle", "orientation", "rotation", "direction")


class Templates(NamedTuple):
    """The assemblies of a file by name, and what else their tables may hold."""

    assemblies: Mapping[str, dict[str, Any]]
    kinds: tuple[str, ...]


def assemblies_of(content: Mapping[str, Any], kinds: tuple[str, ...]) -> Templates:
    """The assemblies of a file.

    **Raises:** `ModelError` for one that is none, that uses itself, or that makes too many parts.
    """
    found: dict[str, dict[str, Any]] = {}
    for index, entry in enumerate(tables_of(content, "assembly")):
        where = called("assembly", entry.get("name"), index)
        check_keys_of(Assembly, entry, where, *kinds, "cylinder", "use")
        name = checked_name(entry["name"], "an assembly", where)
        if name in found:
            raise ModelError(f"{where}: the name is used twice; choose another one.")
        for key in ("outer", "required"):
            with placed(where):
                _checks.name_list(entry.get(key, []), key)
        found[name] = entry
    templates = Templates(found, kinds)
    counts: dict[str, int] = {}
    for name in found:
        _count(name, templates, counts, ())
    return templates


def check_count(uses: list[Any], templates: Templates) -> None:
    """**Raises:** `ModelError` if the uses of a file make too many parts."""
    counts: dict[str, int] = {}
    total = 0
    for use in uses:
        name = use.get("assembly") if isinstance(use, dict) else None
        if isinstance(name, str) and name in templates.assemblies:
            total += 1 + _count(name, templates, counts, ())
    if total > _MOST_PARTS:
        raise ModelError(
            f"the uses of assemblies make {total:.6g} parts, uses among them; a file may make "
            f"{_MOST_PARTS}."
        )


def _count(name: str, templates: Templates, counts: dict[str, int], above: tuple[str, ...]) -> int:
    """Number of parts that an assembly makes. Uses and parameters are work as well, also where they
    have no part."""
    if name in above:
        way = " uses ".join([*above[above.index(name) :], name])
        raise ModelError(
            f"assembly {shown(name, 60)} uses itself ({way}); leave one of these uses out."
        )
    if len(above) >= _DEEPEST:
        raise ModelError(
            f"assembly {shown(above[0], 60)}: assemblies use one another {len(above)} deep; "
            f"{_DEEPEST} are allowed."
        )
    if name in counts:
        return counts[name]
    entry = templates.assemblies[name]
    total = sum(len(entry[kind]) for kind in templates.kinds if isinstance(entry.get(kind), list))
    total += sum(len(entry[key]) for key in _WORDS if isinstance(entry.get(key), list | dict))
    cylinders = tables_of(entry, "cylinder", f"assembly {shown(name, 60)}, ")
    total += _PARTS_OF_CYLINDER * len(cylinders)
    for use in tables_of(entry, "use", f"assembly {shown(name, 60)}, "):
        inner = use.get("assembly")
        if isinstance(inner, str) and inner in templates.assemblies:
            total += 1 + _count(inner, templates, counts, (*above, name))
    counts[name] = total
    return total


def add_uses(
    tables: Mapping[str, Any],
    scope: Scope,
    globally: Mapping[str, str],
    templates: Templates,
    found: Collection,
    expand: Callable[[Mapping[str, Any], Scope], None],
) -> None:
    """The parts of each use. `expand` adds the tables of one assembly in its scope."""
    for index, use in enumerate(tables_of(tables, "use")):
        where = called("use", scope.called(use.get("name")), index)
        check_keys_of(USES[scope.dimension], use, where)
        name = scope.called(checked_name(use["name"], "a use", where))
        if not isinstance(use["assembly"], str) or use["assembly"] not in templates.assemblies:
            raise ModelError(
                f"{where}: there is no assembly {shown(use['assembly'])}; the assemblies are "
                f"{listed(templates.assemblies)}."
            )
        assembly = templates.assemblies[use["assembly"]]
        inner = Scope(
            scope.dimension,
            {},
            prefix=name,
            outer=_outer(use, assembly, scope, where),
            pose=_pose(use, name, scope, where, found),
        )
        words = _words(use, assembly, name, inner, scope, globally, where, found)
        expand(assembly, inner._replace(words=words))


def _outer(
    use: Mapping[str, Any], assembly: Mapping[str, Any], scope: Scope, where: str
) -> dict[str, str]:
    """The bodies denoted by the outer names of an assembly."""
    wanted, given = list(assembly.get("outer", [])), use.get("bodies", {})
    if not isinstance(given, dict) or set(given) != set(wanted):
        raise ModelError(
            f"{where}: bodies must name a body for each outer name of the assembly "
            f"({listed(wanted)}); got {shown(given)}."
        )
    for word, body in given.items():
        if not isinstance(body, str):
            raise ModelError(f"{where}: bodies, {shown(word)}, must be a name, got {shown(body)}.")
    return {word: scope.referred(body) for word, body in given.items()}


def _pose(
    use: Mapping[str, Any], name: str, scope: Scope, where: str, found: Collection
) -> Pose | None:
    """The pose of the assembly's axes; that of the axes around it where none is given."""
    turns = [key for key in TURNS if key in use]
    if len(turns) > 1:
        raise ModelError(f"{where}: give one of {' and '.join(turns)}.")
    if not turns and "position" not in use:
        return scope.pose
    keys = keys_of(USES[scope.dimension])
    zero = [0.0] * scope.dimension
    place = Place(where, "position", entry_text(use.get("position")))
    formula = scope.in_axes(use.get("position", zero), Moves.point, place)
    position = found.define(f"uses.{name}.position", formula, place, keys["position"].said)
    return Pose(position, _turn(use, turns, name, scope, where, found))


def _turn(
    use: Mapping[str, Any],
    turns: list[str],
    name: str,
    scope: Scope,
    where: str,
    found: Collection,
) -> str:
    """The name of the angle or quaternion of a use."""
    planar = scope.dimension == 2
    turn, moves = ("angle", Moves.angle) if planar else ("orientation", Moves.orientation)
    own = f"uses.{name}.{turn}"
    key = turns[0] if turns else turn
    place = Place(where, key, entry_text(use.get(key)))
    value = use.get(key, 0.0 if planar else [1.0, 0.0, 0.0, 0.0])
    said = keys_of(USES[scope.dimension])[key].said
    if key in ("angle", "orientation"):
        return found.define(own, scope.in_axes(value, moves, place), place, said)
    # The given value is in the axes around it, and the quaternion follows from it.
    pose, value = _axes(value, said.moves, scope, place)
    given = found.define(f"uses.{name}.{key}", scope.plain(value, place), place, said)
    make = TurnedTo if key == "direction" else QuaternionOf
    formula = make(Number(given))
    return found.define(own, formula if pose is None else Moved(pose, moves, formula), place)


def _axes(value: Any, moves: Moves, scope: Scope, place: Place) -> tuple[Pose | None, Any]:
    """The pose of the axes in which a value is given, and the value."""
    if not isinstance(value, dict):
        return scope.pose, value
    # Refuses a value that is not a table of that form.
    scope.in_axes(value, moves, place)
    return scope.pose_of(value["body"]), value[RELATIVE[moves]]


def _words(
    use: Mapping[str, Any],
    assembly: Mapping[str, Any],
    name: str,
    inner: Scope,
    scope: Scope,
    globally: Mapping[str, str],
    where: str,
    found: Collection,
) -> dict[str, str]:
    """The parameters of an assembly in one use, mapped to names of the file; those of the file
    included."""
    defaults = table_of(assembly, "parameters", f"assembly {shown(assembly['name'], 60)}")
    given = table_of(use, "parameters", where)
    known = [*defaults, *(word for word in assembly.get("required", []) if word not in defaults)]
    for word in given:
        if word not in known:
            raise ModelError(
                f"{where}: {shown(word)} is no parameter of the assembly; they are {listed(known)}."
            )
    for word in known:
        check_word(word, f"assembly {shown(assembly['name'], 60)}")
        if word not in given and word not in defaults:
            raise ModelError(f"{where}: the parameter {word!r} is missing; the assembly needs it.")
    own = {word: f"uses.{name}.parameters.{word}" for word in known}
    words = {**globally, **own}
    for word in known:
        place = Place(where, f"the parameter {word}", None)
        value = given.get(word, defaults.get(word))
        place = place._replace(written=entry_text(value))
        # A value given in a use is resolved in the scope of the use, a default in that of the
        # assembly.
        around = scope if word in given else inner._replace(words=words)
        found.define(own[word], around.plain(value, place), place)
    return words


def add_parameters(given: Any, found: Collection) -> dict[str, str]:
    """The parameters of a file: the values of their names."""
    if not isinstance(given, dict):
        raise ModelError(f"[parameters] must be a table of names and numbers, got {shown(given)}.")
    for word in given:
        check_word(word, "[parameters]")
    words = {word: f"parameters.{word}" for word in given}
    for word, value in given.items():
        place = Place("[parameters]", word, entry_text(value))
        found.define(words[word], Scope(2, words).plain(value, place), place)
    return words


# The longest unit of a parameter, so that tables which show it stay tables.
_UNIT_LENGTH = 20


def add_units(given: Any, words: Mapping[str, str], found: Collection) -> None:
    """The units of parameters: texts that are shown, and not computed with.

    **Raises:** `ModelError` for a name that is not a parameter, and for what is not a unit.
    """
    if not isinstance(given, dict):
        raise ModelError(f"[units] must be a table of parameters and units, got {shown(given)}.")
    for word, unit in given.items():
        if word not in words:
            raise ModelError(
                f"[units]: {shown(word)} is not one of the file's parameters; declare it under "
                "[parameters], or leave its unit out."
            )
        short = isinstance(unit, str) and 0 < len(unit) <= _UNIT_LENGTH and unit.isprintable()
        if not short or not unit.strip():
            raise ModelError(
                f"[units]: {word} must be a text of 1 to {_UNIT_LENGTH} characters, such as "
                f"'N m', got {shown(unit)}."
            )
        found.units[words[word]] = unit


def check_word(word: Any, where: str) -> None:
    """**Raises:** `ModelError` for what cannot be the name of a parameter."""
    why = reserved(word) if isinstance(word, str) else "is no text"
    if why is not None:
        raise ModelError(f"{where}: the name {shown(word)} of a parameter {why}.")


def table_of(entry: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    """A table within a table; empty where it is left out."""
    found = entry.get(key, {})
    if not isinstance(found, dict):
        raise ModelError(f"{where}: {key} must be a table, got {shown(found)}.")
    return found


def checked_name(name: Any, what: str, where: str) -> str:
    """**Raises:** `ModelError` for what cannot be a name."""
    with placed(where):
        return _checks.name(name, what)


# --------------------------------------------------------------------------------------------------
# Cylinders: a barrel and a rod between two bodies, and what moves them.
# --------------------------------------------------------------------------------------------------


_ALONG = "points[1] - points[0]"
_UNIT = f"unit({_ALONG})"
# The axis of a shape has three numbers in the plane as well.
_SHAPE_AXIS = {
    2: ["points[1][0] - points[0][0]", "points[1][1] - points[0][1]", 0.0],
    3: _ALONG,
}
_ENDS = {2: ("revolute", "revolute"), 3: ("universal", "spherical")}
_KNOWN_ENDS = {
    2: ("revolute", "fixed", "none"),
    3: ("universal", "spherical", "revolute", "fixed", "none"),
}
_SHAPES = ("cylinder", "tube")


def add_cylinders(tables: Mapping[str, Any], scope: Scope, found: Collection) -> None:
    """Two bodies, the joints between them and at both ends, and a driver or forces."""
    for index, entry in enumerate(tables_of(tables, "cylinder")):
        where = called("cylinder", scope.called(entry.get("name")), index)
        check_keys_of(Cylinder, entry, where)
        name = scope.called(checked_name(entry["name"], "a cylinder", where))
        bodies = _two_names(entry["bodies"], where)
        words = _numbers(entry, name, where, scope, found)
        # Its points are along the world's axes already, and its names are full ones.
        inner = Scope(scope.dimension, words)
        into: dict[str, Number] = {}
        for word, end in (("barrel", "points[0] + barrel_length / 2"), ("rod", "")):
            kind, numbers = _shape(entry, word, name, where, scope, found)
            inner = inner._replace(words={**inner.words, f"{word}_length": numbers["length"].name})
            middle = inner.plain(
                f"{end or 'points[1] - rod_length / 2'} * {_UNIT}", Place(where, word, None)
            )
            if into:
                middle = _in_barrel(middle, words["points"], into, numbers)
            into = numbers
            axis = inner.plain(_SHAPE_AXIS[scope.dimension], Place(where, word, None))
            shape = {"type": kind, **numbers, "axis": axis}
            body = {"name": f"{name} {word}", "position": middle, "shape": shape}
            add_part("body", body, index, inner, found)
        referred = [scope.referred(body) for body in bodies]
        for joint in _joints(entry, name, referred, where, inner):
            add_part("joint", joint, index, inner, found)
        if "motion" in entry:
            driver = {
                "name": f"{name} drive",
                "joint": f"{name} slide",
                "coordinate": "translation",
                "motion": entry["motion"],
            }
            add_part("driver", driver, index, scope._replace(prefix="", outer={}), found)
        for force in _forces(entry, name, where):
            add_part("force", force, index, inner, found)


def _two_names(bodies: Any, where: str) -> list[str]:
    right = isinstance(bodies, list) and len(bodies) == 2
    if not right or not all(isinstance(body, str) for body in bodies):
        raise ModelError(f"{where}: bodies must name 2 bodies, got {shown(bodies)}.")
    return bodies


def _numbers(
    entry: Mapping[str, Any], name: str, where: str, scope: Scope, found: Collection
) -> dict[str, str]:
    """The numbers of a cylinder, by the words that its parts use."""
    keys = {key: own.said for key, own in keys_of(Cylinder).items()}
    keys["points"] = _apart(two_points("points", keys["points"].meaning, scope.dimension))  # pyright: ignore[reportArgumentType]
    words = {}
    for key in ("points", "axis", "force", "stiffness", "damping", "length"):
        if key in entry:
            place = Place(where, key, entry_text(entry[key]))
            moves = {"points": Moves.point, "axis": Moves.vector}.get(key, Moves.nothing)
            formula = scope.in_axes(entry[key], moves, place)
            words[key] = found.define(f"cylinders.{name}.{key}", formula, place, keys[key])
    return words


def _apart(points: Field) -> Field:
    """Two points that define a direction."""

    def check(value: Any, what: str) -> Any:
        pair = points.check(value, what)
        if not np.any(pair[1] - pair[0]):
            raise ValueError(
                f"{what} are one place, {shown(np.asarray(pair[0]).tolist())}, so that there is no "
                "direction from one to the other; move one of them."
            )
        return pair

    return points._replace(check=check)


def _shape(
    entry: Mapping[str, Any],
    word: str,
    name: str,
    where: str,
    scope: Scope,
    found: Collection,
) -> tuple[str, dict[str, Number]]:
    """The type of a barrel's or a rod's shape, and its numbers."""
    table = entry[word]
    kind = table.get("type") if isinstance(table, dict) else None
    if kind not in _SHAPES or "axis" in table:
        raise ModelError(
            f"{where}: {word} must be a table with the type {' or '.join(_SHAPES)} and without an "
            f"axis, got {shown(table)}."
        )
    owner = f"cylinders.{name}.{word}"
    _, pairs = shape_numbers(table, f"{where}, {word}", owner, scope, found)
    return kind, {key: number for key, number in pairs if isinstance(number, Number)}


def _in_barrel(
    place: AbstractFormula, points: str, barrel: Mapping[str, Number], rod: Mapping[str, Number]
) -> InBarrel:
    """The place of the rod, if it goes into the barrel and reaches it."""
    bore = barrel.get("inner_radius", barrel["radius"])
    names = (barrel["length"], rod["length"], rod["radius"], bore)
    return InBarrel(place, points, *(own.name for own in names))


def _joints(
    entry: Mapping[str, Any],
    name: str,
    bodies: list[str],
    where: str,
    inner: Scope,
) -> list[dict[str, Any]]:
    """The joint between barrel and rod, and those at the ends."""
    ends = entry.get("ends", list(_ENDS[inner.dimension]))
    known = _KNOWN_ENDS[inner.dimension]
    if not isinstance(ends, list) or len(ends) != 2 or not all(end in known for end in ends):
        raise ModelError(f"{where}: ends must be two of {', '.join(known)}, got {shown(ends)}.")
    if inner.dimension == 3 and "revolute" in ends and "axis" not in entry:
        raise ModelError(f"{where}: a revolute end needs `axis`, the direction of its pin.")
    slide: dict[str, Any] = {
        "name": f"{name} slide",
        "type": "translational",
        "bodies": [f"{name} barrel", f"{name} rod"],
        "at": "points[0]",
        "axis": _ALONG,
    }
    pins = [
        _end(ends[0], f"{name} foot", [bodies[0], f"{name} barrel"], "points[0]", inner),
        _end(ends[1], f"{name} head", [f"{name} rod", bodies[1]], "points[1]", inner),
    ]
    return [slide, *(pin for pin in pins if pin is not None)]


def _end(kind: str, name: str, bodies: list[str], at: str, inner: Scope) -> dict[str, Any] | None:
    """The joint at one end; None where there is none."""
    if kind == "none":
        return None
    joint: dict[str, Any] = {"name": name, "type": kind, "bodies": bodies, "at": at}
    if kind == "universal":
        joint["axes"] = [f"across({_ALONG})", f"cross({_UNIT}, across({_ALONG}))"]
    if kind == "revolute" and inner.dimension == 3:
        joint["axis"] = "axis"
    return joint


def _forces(entry: Mapping[str, Any], name: str, where: str) -> list[dict[str, Any]]:
    """A push on both ends along the axis, and a spring and damper."""
    forces: list[dict[str, Any]] = []
    barrel, rod = f"{name} barrel", f"{name} rod"
    if "force" in entry and "motion" in entry:
        raise ModelError(
            f"{where}: give `motion` or `force`, one of the two; where the motion is prescribed, "
            "the drive exerts what it takes."
        )
    if "force" in entry:
        for body, at, sign in ((barrel, "points[0]", "-"), (rod, "points[1]", "")):
            forces.append(
                {
                    "name": f"{body} thrust",
                    "type": "applied",
                    "body": body,
                    "at": at,
                    "force": f"{sign}force * {_UNIT}",
                    "follows": "body",
                }
            )
    law = [key for key in ("stiffness", "damping", "length") if key in entry]
    if law:
        if law == ["length"]:
            raise ModelError(f"{where}: `length` is that of a spring; give `stiffness` as well.")
        spring = {"name": f"{name} spring", "type": "spring_damper", "bodies": [barrel, rod]}
        forces.append(spring | {"points": "points", "stiffness": 0.0} | {key: key for key in law})
    return forces


class Expanded(NamedTuple):
    """Tables of parts with nothing but numbers, and what they follow from; None where the file has
    nothing of that kind."""

    tables: dict[str, Any]
    parameters: Parameters | None


# The keys of a file that are expanded.
KEYS = ("parameters", "units", "assembly", "use", "cylinder")


def expand(content: Mapping[str, Any], dimension: int) -> Expanded:
    """The tables of all parts: first the file's own, then those of cylinders, then those of uses,
    each in file order.

    **Raises:** `ModelError` with one sentence that names the table, the key and its value.
    """
    found = Collection(tuple(GROUPS))
    words = add_parameters(content.get("parameters", {}), found)
    add_units(content.get("units", {}), words, found)
    templates = assemblies_of(content, tuple(GROUPS))
    check_count(tables_of(content, "use"), templates)

    def add_tables(tables: Mapping[str, Any], scope: Scope) -> None:
        for kind in GROUPS:
            for index, entry in enumerate(tables_of(tables, kind)):
                add_part(kind, entry, index, scope, found)
        add_cylinders(tables, scope, found)
        add_uses(tables, scope, words, templates, found, add_tables)

    scope = Scope(dimension, words)
    add_tables(content, scope)
    tables: dict[str, Any] = {**found.tables}
    if "gravity" in content:
        tables["gravity"] = content["gravity"]
        place = Place("the file", "gravity", content["gravity"])
        formula = scope.formula(content["gravity"], GRAVITY, place)  # pyright: ignore[reportArgumentType]
        if formula is not None:
            found.set_later("gravity", Pending(place, tables, "gravity", formula))
    shown = {entry.get("body") for entry in found.tables["visual"]}
    found.tables["visual"] += [look for look in found.looks if look["body"] not in shown]
    # What is only looked at is no number that could be varied.
    looks = (f"{_LOOKS}.", f"{GROUPS['visual']}.")
    definitions = {
        name: formula for name, formula in found.evaluate().items() if not name.startswith(looks)
    }
    return Expanded(tables, _parameters(content, found, definitions))


def _parameters(
    content: Mapping[str, Any], found: Collection, definitions: Mapping[str, Any]
) -> Parameters | None:
    if not (found.formulas or found.values or definitions or set(KEYS) & set(content)):
        return None
    return Parameters(
        values={name: jnp.asarray(value, float) for name, value in found.values.items()},
        definitions=Definitions(definitions),
        units=tuple(sorted(found.units.items())),
        source=json.dumps(content, ensure_ascii=False, default=str),
    )
