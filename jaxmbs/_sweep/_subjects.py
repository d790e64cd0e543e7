"""Subjects of variation: from the names and values of one case to a system and a state."""

import abc
import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import equinox as eqx
from jaxtyping import Array, Float

from .._custom_types import Scalar
from .._errors import ModelError
from .._fields import Naming, unit_of
from .._system import AbstractSystem
from ._entries import entry_of, overlap, places_of, with_entry


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
