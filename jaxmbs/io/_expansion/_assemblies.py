"""Sub-assemblies: parts that are declared once and used several times."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ... import _checks
from ..._checks import listed, shown
from ..._errors import ModelError
from ..._fields import keys_of, Moves
from ..._parameters import Moved, Number, Pose, QuaternionOf, reserved, TurnedTo
from ._collection import Collection, Place
from ._parts import check_keys, entry_text
from ._scope import RELATIVE, Scope
from ._tables import Assembly, USES


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


def assemblies_of(given: Any, kinds: tuple[str, ...]) -> Templates:
    """The assemblies of a file.

    **Raises:** `ModelError` for one that is none, that uses itself, or that makes too many parts.
    """
    found: dict[str, dict[str, Any]] = {}
    for index, entry in enumerate(tables_of(given, "assembly", "")):
        where = called("assembly", entry, index)
        keys = {**keys_of(Assembly), **dict.fromkeys((*kinds, "cylinder", "use"))}
        check_keys(keys, entry, where)
        name = checked_name(entry["name"], "an assembly", where)
        if name in found:
            raise ModelError(f"{where}: the name is used twice; choose another one.")
        for key in ("outer", "required"):
            try:
                _checks.name_list(entry.get(key, []), key)
            except ValueError as error:
                raise ModelError(f"{where}: {error}") from None
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
    cylinders = tables_of(entry.get("cylinder"), "cylinder", f"assembly {shown(name, 60)}, ")
    total += _PARTS_OF_CYLINDER * len(cylinders)
    for use in tables_of(entry.get("use"), "use", f"assembly {shown(name, 60)}, "):
        inner = use.get("assembly")
        if isinstance(inner, str) and inner in templates.assemblies:
            total += 1 + _count(inner, templates, counts, (*above, name))
    counts[name] = total
    return total


def add_uses(
    given: Any,
    scope: Scope,
    globally: Mapping[str, str],
    templates: Templates,
    found: Collection,
    expand: Callable[[Mapping[str, Any], Scope], None],
) -> None:
    """The parts of each use. `expand` adds the tables of one assembly in its scope."""
    for index, use in enumerate(tables_of(given, "use", "")):
        where = called("use", use, index, scope)
        keys = keys_of(USES[scope.dimension])
        check_keys(keys, use, where)
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


def tables_of(given: Any, kind: str, where: str) -> list[dict[str, Any]]:
    """The tables of one kind; none where they are left out."""
    if given is None:
        return []
    if not isinstance(given, list):
        raise ModelError(f"{where}[{kind}] must be written [[{kind}]], as there may be several.")
    for index, entry in enumerate(given):
        if not isinstance(entry, dict):
            raise ModelError(
                f"{where}{kind} number {index + 1} must be a table of keys and values, got "
                f"{shown(entry)}."
            )
    return given


def called(kind: str, entry: Mapping[str, Any], index: int, scope: Scope | None = None) -> str:
    """Name of a table in messages."""
    name = entry.get("name")
    if not isinstance(name, str):
        return f"{kind} number {index + 1}"
    return f"{kind} {shown(name if scope is None else scope.called(name), 60)}"


def checked_name(name: Any, what: str, where: str) -> str:
    """**Raises:** `ModelError` for what cannot be a name."""
    try:
        return _checks.name(name, what)
    except ValueError as error:
        raise ModelError(f"{where}: {error}") from None
