"""Subjects of variation: from names and values of one case to a system and a state, or to a
model with other numbers.
"""

import abc
import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._checks import concrete, known_array, shown
from .._constraints import AbstractCoordinate, AbstractJoint, Driver, Polynomial
from .._custom_types import Numbers, RealScalarLike, Scalar, Setting
from .._errors import ModelError
from .._fields import fields_of, given_or_left_out, Naming, naming_of, unit_of
from .._forces import Motor
from .._parameters import Definitions, of_part, Parameters
from .._system import AbstractSystem, Model, MultibodySystem, takes_state


# --------------------------------------------------------------------------------------------------
# Single numbers of arrays, by their names.
# --------------------------------------------------------------------------------------------------


_LETTERS = ("x", "y", "z")
_ROWS = ("first", "second")

# So many numbered places are listed one by one; letters always are.
_LISTED = 3

Shape = tuple[int, ...]
Attachments = tuple[tuple[Any, ...], ...]


def with_entry(old: Any, entry: str, value: Any, name: str, naming: Naming | None = None) -> Any:
    """An array with a new value, or with a new entry (see `places_of`).

    **Raises:** `ModelError` if it has no such entry, or the value is of another shape.
    """
    known = concrete(value)
    value = jnp.asarray(value) if known is None else known_array(known)
    if not entry:
        if value.shape != old.shape:
            raise ModelError(
                f"{name!r} is of shape {list(old.shape)}, got values of shape {list(value.shape)}."
            )
        return value.astype(old.dtype)
    places = places_of(old.shape, entry, name, naming)
    if value.shape != ():
        raise ModelError(f"{name!r} is one number, got values of shape {list(value.shape)}.")
    there = np.zeros(old.shape, bool)
    for place in places:
        there[place] = True
    if known is not None and not isinstance(old, Tracer):
        return known_array(np.where(there, known, np.asarray(old)).astype(old.dtype))
    # A choice is fused with what follows, a scatter would be a loop for each parameter.
    return jnp.where(there, value.astype(old.dtype), old)


def entry_of(array: Any, entry: str, name: str, naming: Naming | None = None) -> Array:
    """An array, or its entry (see `places_of`).

    **Raises:** `ModelError` if it has no such entry, or rows differ and none is named.
    """
    if not entry:
        return jnp.asarray(array)
    given = np.asarray(array)
    places = places_of(given.shape, entry, name, naming)
    found = np.concatenate([given[place].ravel() for place in places])
    if not bool(np.all(found == found[0])):
        stem, _, last = name.rpartition(".")
        rows = _words(given.shape[0], _preferred_row(given.shape[0]))
        ways = ", ".join(f"{stem}.{row}.{last}" for row in rows)
        raise ModelError(
            f"{name!r} stands for several numbers, {found.tolist()}; name one of them: {ways}."
        )
    return known_array(found[0])


def places_of(shape: Shape, entry: str, name: str, naming: Naming | None = None) -> Attachments:
    """Indices of the entry of that name in an array.

    A word for each axis; in a matrix that is not symmetric the row may be omitted, which means
    every row. In a symmetric matrix an entry has two places, and letters of row and column
    may follow one another (`xy`).

    **Raises:** `ModelError` if there is none.
    """
    naming = Naming() if naming is None else naming
    words = tuple(entry.split("."))
    if naming.symmetric:
        found = _of_symmetric(shape[-1], naming.letters, words)
    else:
        found = _of_rows(shape, naming.letters, words)
    if found is None:
        told = offer(shape, naming)
        raise ModelError(f"{name!r}: there is no entry {entry!r}; the entries are {told}.")
    return found


def offer(shape: Shape, naming: Naming | None = None) -> str:
    """The names of an array's entries, in words."""
    naming = Naming() if naming is None else naming
    if not shape:
        return "none, as it is one number"
    last = _words(shape[-1], _letters(shape[-1], naming.letters))
    if naming.symmetric:
        dot = "." if any(len(word) > 1 for word in last) else ""
        pairs = [f"{a}{dot}{b}" for k, a in enumerate(last) for b in last[k:]]
        return ", ".join(pairs)
    if len(shape) == 1:
        return _listed(last)
    rows = _words(shape[0], _preferred_row(shape[0]))
    single = [_listed(tuple(f"{row}.{word}" for word in last)) for row in rows]
    return f"{', '.join(single)}, and of all rows at once {_listed(last)}"


def overlap(shape: Shape, first: Attachments, second: Attachments) -> bool:
    """Have two names a number in common?"""
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    one, other = ({int(k) for p in ps for k in numbers[p].flat} for ps in (first, second))
    return bool(one & other)


def _of_rows(shape: Shape, letters: tuple[str, ...], words: tuple[str, ...]) -> Attachments | None:
    """Indices for the last word along the last axis, and for a word before it along the first."""
    if not shape or len(words) > len(shape):
        return None
    column = _place(shape[-1], _letters(shape[-1], letters), words[-1])
    row = ... if len(words) == 1 else _place(shape[0], _preferred_row(shape[0]), words[0])
    if column is None or row is None:
        return None
    return ((..., column),) if row is ... else ((..., row, column),)


def _of_symmetric(
    size: int, letters: tuple[str, ...], words: tuple[str, ...]
) -> Attachments | None:
    own = _letters(size, letters)
    joined = {a + b: (a, b) for a in own for b in own}
    pair = joined.get(words[0], ()) if len(words) == 1 else words
    if len(pair) != 2:
        return None
    row, column = (_place(size, own, word) for word in pair)
    if row is None or column is None:
        return None
    return ((..., row, column), (..., column, row))


def _letters(size: int, given: tuple[str, ...]) -> tuple[str, ...]:
    """Letters of the places along an axis; none where they only have numbers."""
    if len(given) == size:
        return given
    return _LETTERS[:size] if size in (2, 3) else ()


def _preferred_row(count: int) -> tuple[str, ...]:
    return _ROWS if count == len(_ROWS) else ()


def _words(size: int, letters: tuple[str, ...]) -> tuple[str, ...]:
    return letters or tuple(map(str, range(size)))


def _place(size: int, letters: tuple[str, ...], word: str) -> int | None:
    for words in (letters, tuple(map(str, range(size)))):
        if word in words:
            return words.index(word)
    return None


def _listed(words: tuple[str, ...]) -> str:
    if len(words) > _LISTED and words[-1][-1].isdigit():
        return f"{words[0]} to {words[-1]}"
    return ", ".join(words)


# --------------------------------------------------------------------------------------------------
# Subjects of variation: from the names and values of one case to a system and a state.
# --------------------------------------------------------------------------------------------------


# Names of the state, and their units.
STATE: Mapping[str, str] = MappingProxyType({"q": "", "v": "", "time": "s"})

Values = Mapping[str, Any]

# What the names of numbers begin with that may change masses: of models, and of systems.
_MASSIVE = (
    "bodies",
    "elements",
    "parameters",
    "uses",
    "cylinders",
    "body_groups",
    "element_groups",
)


# Of a body: where it is and how it moves.
_POSES = ("position", "orientation", "angle", "velocity", "angular_velocity")


class Placed(NamedTuple):
    """One case before it is assembled: the system, the same with what is held while it is
    assembled, and the state to start from."""

    system: AbstractSystem
    held: AbstractSystem
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    t: Scalar

    def with_light_parts(self, light: bool | None) -> "Placed":
        """The same where it is known whether parts are so light that solves lose them; None: it is
        looked at."""

        def known(own: AbstractSystem) -> AbstractSystem:
            return (
                own.with_light_parts_looked_at() if light is None else own.with_light_parts(light)
            )

        system = known(self.system)
        held = system if self.held is self.system else known(self.held)
        return self._replace(system=system, held=held)


class State(eqx.Module):
    """The state (q, v, t) from which every case starts, unless its own names give another."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    t: Scalar

    def value(self, word: str, entry: str, name: str) -> Array:
        """One of q, v and time, or an entry of it."""
        return entry_of({"q": self.q, "v": self.v, "time": self.t}[word], entry, name)

    def changed(self, values: Values) -> "State":
        """The same with what a case names."""
        fields = {"q": self.q, "v": self.v, "time": self.t}
        for name, value in values.items():
            word, _, entry = name.partition(".")
            if word in fields:
                fields[word] = with_entry(fields[word], entry, value, name)
        return State(fields["q"], fields["v"], fields["time"])


class AbstractSubject(eqx.Module):
    """Subject of variation, by names."""

    @abc.abstractmethod
    def name(self, given: str) -> str:
        """The full name of what the user calls `given`.

        **Raises:** `ModelError` if there is nothing of that name.
        """

    @abc.abstractmethod
    def unit(self, name: str) -> str:
        """The unit of the number of that full name; empty where it is not known."""

    @abc.abstractmethod
    def parted(self, name: str) -> tuple[str, str]:
        """The full name of a whole number or array, and the entry of it that `name` selects."""

    @abc.abstractmethod
    def naming(self, name: str) -> Naming:
        """Names of the entries of the whole array of a full name."""

    @abc.abstractmethod
    def value(self, name: str) -> Array:
        """The value before anything is varied.

        **Raises:** `ModelError` for a number that is not given.
        """

    @abc.abstractmethod
    def check(self, values: Values) -> None:
        """Refuse values that cannot be. Concrete ones only.

        **Raises:** `ValueError`.
        """

    @abc.abstractmethod
    def place(self, values: Values) -> Placed:
        """One case. Works under `jit` and `vmap`."""


class SystemSubject(AbstractSubject):
    """A system that no model describes: its arrays by the way to them (`gravity`,
    `body_groups.0.inertia.mass_function.length.0`), and its state."""

    system: AbstractSystem
    start: State

    def name(self, given: str) -> str:
        if given.split(".")[0] not in STATE:
            self._way(given)
        return given

    def unit(self, name: str) -> str:
        *way, word = self.parted(name)[0].split(".")
        return STATE[word] if word in STATE else unit_of(_follow(self.system, way), word)

    def parted(self, name: str) -> tuple[str, str]:
        words = name.split(".")
        whole = 1 if words[0] in STATE else len(self._way(name))
        return ".".join(words[:whole]), ".".join(words[whole:])

    def naming(self, name: str) -> Naming:
        del name
        return Naming()

    def value(self, name: str) -> Array:
        whole, entry = self.parted(name)
        if whole in STATE:
            return self.start.value(whole, entry, name)
        return entry_of(_follow(self.system, whole.split(".")), entry, name)

    def check(self, values: Values) -> None:
        self.place(values)

    def place(self, values: Values) -> Placed:
        start, system = self.start.changed(values), self.system
        for name, value in values.items():
            whole, entry = self.parted(name)
            if whole not in STATE:
                follow = functools.partial(_follow, way=tuple(whole.split(".")))
                new = with_entry(follow(system), entry, value, name)
                system = eqx.tree_at(follow, system, new)
        return Placed(system, system, start.q, start.v, start.t)

    def _way(self, name: str) -> tuple[str, ...]:
        """The words of the path to an array; further words select an entry."""
        words = tuple(name.split("."))
        for count in range(1, len(words) + 1):
            try:
                found = _follow(self.system, words[:count])
            except (AttributeError, LookupError, ValueError):
                break
            if eqx.is_inexact_array(found):
                return words[:count]
        raise ModelError(
            f"{name!r} is no array of floating-point numbers of the system; name one by the way to "
            "it, such as gravity, or q, v or time."
        )


def _follow(tree: Any, way: Sequence[str]) -> Any:
    """The object at the end of the path: attributes, keys and indices of a sequence."""
    for word in way:
        if isinstance(tree, Mapping):
            tree = tree[word]
        elif isinstance(tree, Sequence):
            tree = tree[int(word)]
        else:
            tree = getattr(tree, word)
    return tree


def may_change_masses(names: Sequence[str]) -> bool:
    """Do masses depend on one of the numbers of these full names?"""
    return any(name.split(".")[0] in _MASSIVE for name in names)


def only_scales_masses(names: Sequence[str]) -> bool:
    """Do systems differ, by the numbers of these full names, in masses alone, not in moments and
    products of inertia, where parts are, or how they are connected? (Drivers and the state say
    where each of them is.)"""
    return all(
        name.split(".")[0] in ("drivers", "gravity", "forces", *STATE)
        or (name.startswith("bodies.") and name.split(".")[2:] == ["mass"])
        for name in names
    )


def is_pose(name: str) -> bool:
    """Is a number of this full name where a body is, or how it moves?"""
    words = name.split(".")
    return words[0] == "bodies" and words[2:3] != [] and words[2] in _POSES


def said_of(name: str, make: Callable[[], Any]) -> Any:
    """The result of `make` from a case's values; an error in it quotes the name."""
    try:
        return make()
    except ModelError:
        raise
    except ValueError as error:
        raise ModelError(f"{name!r}: {error}") from None


def doubled(subject: AbstractSubject, names: Sequence[str]) -> str | None:
    """The first of the full names that denotes a number which an earlier one denotes."""
    met: dict[str, list[str]] = {}
    for name in names:
        whole, entry = subject.parted(name)
        others = met.setdefault(whole, [])
        if any(_meet(subject, whole, entry, other) for other in others):
            return name
        others.append(entry)
    return None


def _meet(subject: AbstractSubject, whole: str, first: str, second: str) -> bool:
    """Have two entries of one array a number in common? The whole has all."""
    if not first or not second:
        return True
    shape, naming = subject.value(whole).shape, subject.naming(whole)
    one, other = (places_of(shape, entry, f"{whole}.{entry}", naming) for entry in (first, second))
    return overlap(shape, one, other)


# --------------------------------------------------------------------------------------------------
# Numbers of a model that no part holds (parameters, places of sub-assemblies, shapes), and what
# follows from them.
# --------------------------------------------------------------------------------------------------


# With what their names begin, besides those of shapes (`bodies.NAME.shape.WORD`).
FREE_GROUPS = ("parameters", "uses", "cylinders")


def without_source(model: Model) -> Model:
    """The model without the tables of its file, on which no program depends."""
    own = model.parameters
    if own is None or not own.source:
        return model
    return _with_parameters(model, dataclasses.replace(own, source=""))


def free_words(model: Model, words: Sequence[str]) -> int:
    """Number of words that name a whole number that no part holds; 0 if they name none."""
    own = model.parameters
    if own is None:
        return 0
    counts = range(len(words), 1, -1)
    return next((n for n in counts if own.holds(".".join(words[:n]))), 0)


def free_names(model: Model, group: str) -> list[str]:
    """The names of such numbers that begin with a word."""
    own = model.parameters
    return [] if own is None else [name for name in own.names() if name.split(".")[0] == group]


def free_unit(model: Model, whole: str) -> str:
    """The unit of such a number; empty where none is declared."""
    return "" if model.parameters is None else dict(model.parameters.units).get(whole, "")


def free_number(model: Model, whole: str, part_number: Callable[[str], Any]) -> Any:
    """The number before anything is varied."""
    assert model.parameters is not None
    return jnp.asarray(model.parameters.numbers(part_number)[whole], float)


def derived_numbers(
    model: Model,
    direct: Mapping[str, Callable[[Any], Any]],
    part_number: Callable[[str], Any],
) -> dict[str, Any]:
    """New numbers and what follows from them, by the name of the whole number."""
    if model.parameters is None:
        return {name: new(part_number(name)) for name, new in direct.items()}
    return model.parameters.derive(direct, part_number)


def with_free_numbers(model: Model, changed: Mapping[str, Any], named: Set[str]) -> Model:
    """The model with the new numbers that no part holds. What is named itself follows from nothing
    any more: whole numbers, and drivers that hold at a value."""
    own = model.parameters
    if own is None:
        return model
    formulas = own.definitions.formulas
    given = {n for n in formulas if n in named or ".".join(n.split(".")[:2]) in named}
    free = [*own.values, *(n for n in formulas if n in given and not of_part(n))]
    new = {n: jnp.asarray(changed[n], float) if n in changed else own.values[n] for n in free}
    left = own.definitions
    if given:
        left = Definitions({n: formula for n, formula in formulas.items() if n not in given})
    return _with_parameters(model, dataclasses.replace(own, values=new, definitions=left))


def _with_parameters(model: Model, parameters: Parameters) -> Model:
    return eqx.tree_at(
        lambda m: m.parameters, model, parameters, is_leaf=lambda x: isinstance(x, Parameters)
    )


# --------------------------------------------------------------------------------------------------
# A model with other numbers.
#
# A model is varied where it is written down: its part is made anew with the numbers of the case, by
# the same checks and conversions as the user's own, and the system follows. So every number means
# what it means in a model file, and takes along what is derived from it.
# --------------------------------------------------------------------------------------------------


_GROUPS = ("bodies", "joints", "drivers", "forces", "compliances", "elements")


class ModelSubject(AbstractSubject):
    """A model, its parts by their names. `start`: its reference configuration if none."""

    model: Model = eqx.field(converter=without_source)
    start: State | None

    def name(self, given: str) -> str:
        return _resolve(self.model, given)

    def unit(self, name: str) -> str:
        words = name.split(".")
        if words[0] in STATE:
            return STATE[words[0]]
        if free_words(self.model, words):
            return free_unit(self.model, self.parted(name)[0])
        if words[0] not in _GROUPS:
            return unit_of(self.model, words[0])
        part = _part(self.model, words[0], words[1])
        driven = _driven_unit(part, self.model, words[2:])
        if len(words) == 2:
            return driven
        coordinates = _coordinates(part)
        if words[2] in coordinates:
            return coordinates[words[2]].quantity.unit
        owner, (word, *_) = _owner(part, words[2:])
        return unit_of(owner, word, driven)

    def parted(self, name: str) -> tuple[str, str]:
        words = name.split(".")
        # What names the number itself: a part's word, the word of what that holds (a driver's
        # motion), or gravity and the state.
        whole = free_words(self.model, words) or 1
        if words[0] in _GROUPS and not free_words(self.model, words):
            whole = 3 + _nested(_part(self.model, words[0], words[1]), words[2:])
        return ".".join(words[:whole]), ".".join(words[whole:])

    def naming(self, name: str) -> Naming:
        words = name.split(".")
        if words[0] not in _GROUPS or free_words(self.model, words):
            return Naming()
        part = _part(self.model, words[0], words[1])
        return _naming(part, words[2:])

    def value(self, name: str) -> Array:
        words = name.split(".")
        whole, entry = self.parted(name)
        if whole in STATE:
            return self._begin(self.model.system()).value(whole, entry, name)
        if whole == "gravity":
            given = self.model.gravity
            old = jnp.zeros(self.model.dimension) if given is None else given
            return entry_of(old, entry, name)
        if free_words(self.model, words):
            return entry_of(
                free_number(self.model, whole, functools.partial(_number, self.model)), entry, name
            )
        return _value(_part(self.model, words[0], words[1]), words, name)

    def check(self, values: Values) -> None:
        with_values(self.model, values)

    def place(self, values: Values) -> Placed:
        model, holders = with_values(self.model, values)
        system = held = model.system()
        if holders:
            drivers = (*model.drivers, *holders)
            held = eqx.tree_at(lambda m: m.drivers, model, drivers).system()
        start = self._begin(system).changed(values)
        return Placed(system, held, start.q, start.v, start.t)

    def _begin(self, system: MultibodySystem) -> State:
        if self.start is not None:
            return self.start
        return State(system.reference_q, system.initial_v, _checks.known_array(np.zeros(())))


def subject_of(
    system: Setting[Model | AbstractSystem],
    q: Setting[Float[Array, " nq"] | None],
    v: Setting[Float[Array, " nv"] | None],
    t: Setting[RealScalarLike],
) -> AbstractSubject:
    """The subject of variation, and the state from which cases start."""
    start = None
    if isinstance(system, Model):
        if q is not None or v is not None or np.ndim(t) or t != 0.0:
            own = system.system()
            start = _start(
                own, own.reference_q if q is None else q, own.initial_v if v is None else v, t
            )
        return ModelSubject(system, start)
    if q is None:
        raise ModelError("a system needs a configuration to start from; give q.")
    return _system_subject(system, q, v, t)


@takes_state(decides_rank=True)
def _system_subject(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    t: RealScalarLike = 0.0,
) -> SystemSubject:
    # (Masses may have been replaced since the system was made.)
    return SystemSubject(system, _state(system, q, v, t))


@takes_state(decides_rank=True)
def _start(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    t: RealScalarLike = 0.0,
) -> State:
    return _state(system, q, v, t)


def _state(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"] | None, t: Any
) -> State:
    velocity = jnp.zeros((system.structure.nv,), q.dtype) if v is None else v
    return State(q, velocity, jnp.asarray(t, q.dtype))


@functools.singledispatch
def _driven_unit(part: Any, model: Model, words: Sequence[str]) -> str:
    """The unit of what the motion prescribes that a part holds under the first word."""
    del part, model, words
    return ""


@_driven_unit.register
def _(part: Driver, model: Model, words: Sequence[str]) -> str:
    del words
    joint = _part(model, "joints", part.joint)
    if joint is not None:
        return joint.coordinates()[part.coordinate].quantity.unit
    kind = _part(model, "bodies", part.joint).inertia_properties().coordinates
    return kind.measures[kind.names.index(part.coordinate)].unit


@_driven_unit.register
def _(part: Motor, model: Model, words: Sequence[str]) -> str:
    del model
    return part.command_unit if words[:1] == ["command"] else part.quantity.unit


def _part(model: Model, group: str, name: str) -> Any:
    """The part of that name; None if there is none."""
    return next((part for part in getattr(model, group) if part.name == name), None)


# ---------------------------------------------------------------------------------------------
# Names
# ---------------------------------------------------------------------------------------------


def _resolve(model: Model, given: str) -> str:
    words, drivers = given.split("."), [driver.name for driver in model.drivers]
    if words[0] in (*STATE, "gravity") or free_words(model, words):
        return given
    if given in drivers:
        return f"drivers.{given}"
    if words[0] in FREE_GROUPS:
        names = _checks.listed(free_names(model, words[0]))
        raise ModelError(
            f"{given!r}: there is no such number; those of {words[0]!r} in the model are {names}."
        )
    if words[0] not in _GROUPS or len(words) < 2:
        raise ModelError(
            f"{given!r} names nothing that can be varied: give a driver "
            f"({', '.join(drivers) or 'there is none'}), a number of a part such as "
            "bodies.NAME.mass, a coordinate of a joint such as joints.NAME.rotation, gravity or "
            "time."
        )
    part = _part(model, words[0], words[1])
    if part is None:
        names = ", ".join(p.name for p in getattr(model, words[0]))
        raise ModelError(
            f"{given!r}: there is no {words[1]!r} among the {words[0]}, which are "
            f"{names or 'none'}."
        )
    if words[0] == "elements" and not any(said.unit for said in fields_of(part).values()):
        raise ModelError(
            f"{given!r}: the numbers of this element are those of its functions, and may stand in "
            "several; write a function that builds the system from the number, and map that."
        )
    return _resolve_number(model, part, given, words[2:])


def _resolve_number(model: Model, part: Any, given: str, words: Sequence[str]) -> str:
    coordinates, numbers = _coordinates(part), _numbers(part)
    offer = ", ".join((*numbers, *coordinates)) or "none"
    if not words:
        if isinstance(part, Driver):
            return given
        raise ModelError(f"{given!r} is a whole part; add one of its numbers: {offer}.")
    if words[0] in coordinates and len(words) == 1:
        for driver in model.drivers:
            if (driver.joint, driver.coordinate) == (part.name, words[0]):
                raise ModelError(f"{given!r} is driven; vary the driver {driver.name!r}.")
        return given
    if ".".join(words[: 1 + _nested(part, words)]) not in numbers:
        raise ModelError(f"{given!r}: {part.name!r} has no such number; it has {offer}.")
    return given


def _numbers(part: Any) -> tuple[str, ...]:
    """The words of a part's fields that are numbers, also of the Modules that it holds."""
    fields = vars(part)
    words = fields if _made_of_more(part) else _made_of(part)
    inner = {word: fields[word] for word in words if _holds(part, word)}
    absent = () if _made_of_more(part) else (None,)
    found = [word for word in words if eqx.is_array(fields[word]) or fields[word] in absent]
    found += [f"{word}.{own}" for word, held in inner.items() for own in _numbers(held)]
    return tuple(found)


def _made_of(part: Any) -> list[str]:
    """The words with which a part is made and which are its fields."""
    return [word for word in inspect.signature(type(part)).parameters if word in vars(part)]


def _made_of_more(part: Any) -> bool:
    """Does a part require arguments that are not its fields (a user-written joint its markers)?"""
    given = inspect.signature(type(part)).parameters.values()
    return any(x.default is x.empty and x.name not in vars(part) for x in given)


def _holds(part: Any, word: str) -> bool:
    """Is a field of the part a Module with numbers of its own (a driver's motion, a user's
    function)?"""
    return isinstance(vars(part).get(word), eqx.Module)


def _nested(part: Any, words: Sequence[str]) -> int:
    """1 if the words lead into a Module that the part holds, otherwise 0."""
    return int(len(words) > 0 and _holds(part, words[0]))


def _owner(part: Any, words: Sequence[str]) -> tuple[Any, Sequence[str]]:
    """Whose field the words name, the part's or that of a Module that it holds, and the words from
    there."""
    return (getattr(part, words[0]), words[1:]) if _nested(part, words) else (part, words)


def _naming(part: Any, words: Sequence[str]) -> Naming:
    """Names of the entries of the array at the end of the path."""
    owner, words = _owner(part, words)
    return naming_of(owner, words[0]) if words else Naming()


def _coordinates(part: Any) -> Mapping[str, AbstractCoordinate]:
    """The relative coordinates of a part, if it is a joint."""
    return part.coordinates() if isinstance(part, AbstractJoint) else {}


# ---------------------------------------------------------------------------------------------
# Numbers
# ---------------------------------------------------------------------------------------------


def _value(part: Any, words: Sequence[str], name: str) -> Array:
    """A number of a part, as the model gives it; where coordinates are held, zero, their value
    in the reference configuration; the value at which a driver holds."""
    if len(words) == 2:
        return part.motion(jnp.zeros(()))
    if words[2] in _coordinates(part):
        return jnp.zeros(())
    owner, (word, *entry) = _owner(part, words[2:])
    given = given_or_left_out(owner, word)
    if given is None:
        raise ModelError(f"{name!r}: it is not given in the model; give it a number there first.")
    return entry_of(given, ".".join(entry), name, naming_of(owner, word))


def with_values(model: Model, values: Values) -> tuple[Model, tuple[Driver, ...]]:
    """The model with the numbers of a case, and drivers that hold the coordinates of joints."""
    groups = {group: {p.name: p for p in getattr(model, group)} for group in _GROUPS}
    given: dict[str, list[tuple[str, Any, str]]] = {}
    holders, held = [], set()
    for name, value in values.items():
        words = name.split(".")
        if words[0] in STATE:
            continue
        free = free_words(model, words)
        part = None if free or words[0] not in _GROUPS else groups[words[0]][words[1]]
        if part is not None and len(words) == 2:
            groups[words[0]][words[1]] = _remade(part, {"motion": _constant(value, name)})
            held.add(name)
        elif part is not None and words[2] in _coordinates(part):
            holder = f"{words[1]} {words[2]}"
            holders.append(Driver(holder, words[1], words[2], _constant(value, name)))
        else:
            whole = free or (3 + _nested(part, words[2:]) if part is not None else 1)
            entry = (".".join(words[whole:]), value, name)
            given.setdefault(".".join(words[:whole]), []).append(entry)
    direct = {whole: functools.partial(_given, model, whole, own) for whole, own in given.items()}
    every = ", ".join(n for own in given.values() for *_, n in own)
    derive = functools.partial(derived_numbers, model, direct, functools.partial(_number, model))
    changed = said_of(every, derive)
    gravity = changed.pop("gravity", model.gravity)
    for key, numbers in _by_owner(changed, groups, held).items():
        group, part = groups[key[0]], groups[key[0]][key[1]]
        said = ", ".join(n for w in numbers for *_, n in given.get(".".join((*key, w)), ()))
        said = said or every
        whole = len(key) == 2
        owner = part if whole else getattr(part, key[2])
        made = said_of(said, functools.partial(_remade, owner, numbers))
        group[key[1]] = made if whole else _remade(part, {key[2]: made})
    parts = [tuple(groups[group].values()) for group in _GROUPS]
    new = eqx.tree_at(
        lambda m: (*(getattr(m, group) for group in _GROUPS), m.gravity),
        model,
        (*parts, gravity),
        is_leaf=lambda x: x is None,
    )
    return with_free_numbers(new, changed, {*given, *held}), tuple(holders)


def _by_owner(
    changed: Mapping[str, Any], groups: Mapping[str, Any], held: set[str]
) -> dict[tuple[str, ...], dict[str, Any]]:
    """New numbers of parts, and of what parts hold, by owner: what belongs to one part is changed
    at once, as an inertia may be that of no body until its last entry has changed as well. Motions
    before the drivers that hold them; none of drivers that hold at a value."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for name, value in changed.items():
        *owner, word = name.split(".")
        here = len(owner) > 1 and of_part(name) and owner[1] in groups[owner[0]]
        if here and ".".join(owner[:2]) not in held:
            found.setdefault(tuple(owner), {})[word] = value
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))


def _number(model: Model, name: str) -> Any:
    """The model's value under the name of a whole number; None where it is omitted."""
    if name == "gravity":
        return jnp.zeros(model.dimension) if model.gravity is None else model.gravity
    group, part, *words = name.split(".")
    owner = _part(model, group, part)
    for word in words:
        owner = getattr(owner, word)
    return owner


def _given(model: Model, whole: str, entries: list[tuple[str, Any, str]], old: Any) -> Any:
    """A number with what is given of it: itself, or some of its entries."""
    words = whole.split(".")
    if not of_part(whole) or words[0] not in _GROUPS:
        for entry, value, name in entries:
            old = with_entry(jnp.asarray(old, float), entry, value, name)
        return old
    owner, (word, *_) = _owner(_part(model, words[0], words[1]), words[2:])
    formulas = {} if model.parameters is None else model.parameters.definitions.formulas
    if whole in formulas:
        # In the form in which the part holds it: formulas leave that to the part.
        old = fields_of(owner)[word](old)
    for entry, value, name in entries:
        old = _with_entry(old, entry, value, name, naming_of(owner, word))
    return old


def _with_entry(old: Any, entry: str, value: Any, name: str, naming: Naming) -> Any:
    """A whole number or array is left to the part's own checks."""
    if not entry:
        return value
    if old is None:
        raise ModelError(f"{name!r}: it is not given in the model, so it has no entry to vary.")
    return with_entry(old, entry, value, name, naming)


def _remade(part: Any, changes: dict[str, Any]) -> Any:
    """A part of the same class, made with its own numbers except for the changes."""
    fields = vars(part)
    if not _made_of_more(part):
        return type(part)(**({word: fields[word] for word in _made_of(part)} | changes))
    # There is nothing in the numbers of such a part that could be checked or follows from them.
    checked = {
        word: new if _holds(part, word) else with_entry(fields[word], "", new, word)
        for word, new in changes.items()
    }
    return eqx.tree_at(
        lambda p: [getattr(p, word) for word in checked], part, list(checked.values())
    )


def _constant(value: Any, name: str) -> Polynomial:
    """A driver that holds at a value."""
    value = jnp.asarray(value)
    if value.shape != ():
        raise ModelError(f"{name!r} is one number, got values of shape {list(value.shape)}.")
    return Polynomial(coefficients=value[None])


def vary(model: Setting[Model], values: Setting[Mapping[str, Numbers]]) -> Model:
    """The model with other numbers, as a case of a sweep or a design has them.

    What follows from a number follows: a parameter of a model file takes along all that is an
    expression of it. The result is written with its parameters by `jaxmbs.io.write_model`.

    **Arguments:** `values`: by name, as in `Cases`: `bodies.crank.mass`, `parameters.length`,
    `uses.leg 1.position.x`. The value of a driver holds it there; coordinates of joints and of the
    state are none of a model.

    **Returns:** the model. Works under `jit`, `vmap` and differentiation.

    **Raises:** `ModelError` for a name that means nothing or a number that cannot be.
    """
    _settings.instance(model, Model, "model", "jaxmbs.mechanisms.door()")
    _settings.mapping(values, "values", '{"bodies.crank.mass": 1.0}')
    subject = subject_of(model, None, None, 0.0)
    for name, value in values.items():
        if not _checks.holds_numbers(value):
            raise ModelError(f"{name!r} needs a number or an array, got {shown(value)}.")
    full = {subject.name(name): value for name, value in values.items()}
    twice = doubled(subject, list(full))
    if twice is not None or len(full) < len(values):
        raise ModelError(f"{twice or next(iter(full))!r} is given twice.")
    changed, holders = with_values(model, full)
    strange = [name for name in full if name.split(".")[0] in STATE]
    strange += [f"joints.{own.joint}.{own.coordinate}" for own in holders]
    if strange:
        raise ModelError(
            f"{strange[0]!r} is a number of the state and none of the model; assemble it there."
        )
    return changed
