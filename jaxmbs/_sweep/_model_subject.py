"""A model with other numbers.

A model is varied where it is written down: its part is made anew with the numbers of the case, by
the same checks and conversions as the user's own, and the system follows. So every number means
what it means in a model file, and takes along what is derived from it.
"""

import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._constraints import AbstractCoordinate, AbstractJoint, Driver, Polynomial
from .._custom_types import RealScalarLike, Setting
from .._errors import ModelError
from .._fields import fields_of, given_or_left_out, Naming, naming_of, unit_of
from .._parameters import of_part
from .._system import AbstractSystem, Model, MultibodySystem, takes_state
from ._entries import entry_of, with_entry
from ._free_numbers import (
    derived_numbers,
    FREE_GROUPS,
    free_names,
    free_number,
    free_unit,
    free_words,
    with_free_numbers,
    without_source,
)
from ._subjects import (
    AbstractSubject,
    Placed,
    said_of,
    STATE,
    State,
    SystemSubject,
    Values,
)


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
        driven = _driven_unit(self.model, part) if isinstance(part, Driver) else ""
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


def _driven_unit(model: Model, driver: Driver) -> str:
    """The unit of the coordinate that a driver prescribes."""
    joint = _part(model, "joints", driver.joint)
    if joint is not None:
        return joint.coordinates()[driver.coordinate].quantity.unit
    kind = _part(model, "bodies", driver.joint).inertia_properties().coordinates
    return kind.measures[kind.names.index(driver.coordinate)].unit


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
