"""The numbers that a page sets: values of drivers, coordinates of joints, and parameters."""

import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from .._checks import known_array
from .._programs import Compiling, program
from .._sweep._subjects import ModelSubject, Placed
from .._system import AbstractSystem, Model


class Kind(enum.Enum):
    """The kinds of controls, with the titles of their groups."""

    DRIVER = "Drivers"
    COORDINATE = "Coordinates of joints"
    PARAMETER = "Parameters"
    SHAPE = "Shapes and places"


class Control(NamedTuple):
    """A number that is set between `low` and `high` in steps.

    `name`: in full, as `Cases` takes it; `label`: as the page shows it; `unit`: empty where none is
    known.
    """

    name: str
    kind: Kind
    label: str
    unit: str
    low: float
    high: float
    step: float

    @property
    def title(self) -> str:
        """The label with the unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


# So many steps from one end of a control to the other, at least.
_STEPS = 1000

# A coordinate is taken as independent of those before it where it keeps this part of its change, or
# this if there is no such.
_CLEAR, _LEAST = 0.1, 1e-6

# Singular values of the rows of C below this part of the largest are zero. (It selects which
# coordinates have sliders; no verdict depends on it.)
_RANK = 1e-9


def control(
    name: str, kind: Kind, label: str, unit: str, value: float, reach: float | None = None
) -> Control:
    """A control around a value.

    **Arguments:** `reach`: how far it goes to each side; None: half of the value, or one.
    """
    if reach is None:
        reach = math.pi if unit == "rad" else 0.5 * abs(value) or 1.0
    low, high = value - reach, value + reach
    step = 10.0 ** math.floor(math.log10((high - low) / _STEPS))
    # Ends of few digits, and no more for the rounding of a quotient.
    low = math.floor(round(low / step, 6)) * step
    high = math.ceil(round(high / step, 6)) * step
    digits = max(0, -round(math.log10(step)))
    return Control(name, kind, label, unit, round(low, digits), round(high, digits), step)


def driver_controls(subject: ModelSubject, reach: float) -> dict[Control, float]:
    """Controls of all drivers, with their values at the time 0, or next to it where there is none.
    `reach`: of lengths (m)."""
    found = {}
    for driver in subject.model.drivers:
        name = f"drivers.{driver.name}"
        begin, end = driver.motion.domain() or (-np.inf, np.inf)
        time = known_array(np.clip(np.zeros(()), float(begin), float(end)))
        value, unit = float(driver.motion(time)), subject.unit(name)
        own = None if unit == "rad" else reach
        found[control(name, Kind.DRIVER, driver.name, unit, value, own)] = value
    return found


def parameter_controls(subject: ModelSubject) -> dict[Control, float]:
    """Controls of all numbers of the model file that belong to no part and follow from no other,
    entry by entry, with their values: its parameters first."""
    own = subject.model.parameters
    if own is None:
        return {}
    found = {}
    for whole, array in own.values.items():
        for name in _entries(whole, np.shape(array)):
            value = float(subject.value(name))
            parameter = whole.startswith("parameters.") or ".parameters." in whole
            kind = Kind.PARAMETER if parameter else Kind.SHAPE
            label = name.removeprefix("parameters.")
            found[control(name, kind, label, subject.unit(name), value)] = value
    return found


def _entries(whole: str, shape: Sequence[int]) -> Iterator[str]:
    """Names of the single numbers of an array."""
    for place in np.ndindex(*shape):
        words = list(map(str, place))
        if len(shape) == 1 and shape[0] in (2, 3):
            words = ["xyz"[place[0]]]
        yield ".".join([whole, *words])


# --------------------------------------------------------------------------------------------------
# Coordinates of joints that move the mechanism.
# --------------------------------------------------------------------------------------------------


def joint_coordinates(model: Model) -> list[tuple[str, str]]:
    """Joint and coordinate of every relative coordinate that no driver prescribes: those of joints
    on the ground first."""
    driven = {(driver.joint, driver.coordinate) for driver in model.drivers}
    grounded = sorted(model.joints, key=lambda joint: "ground" not in joint.bodies)
    return [
        (joint.name, word)
        for joint in grounded
        for word in joint.coordinates()
        if (joint.name, word) not in driven
    ]


def independent_coordinates(
    system: AbstractSystem,
    everything: Placed,
    candidates: Sequence[tuple[str, str]],
    q: Float[Array, " nq"],
) -> tuple[list[tuple[str, str]], int]:
    """Coordinates that may be set independently of each other, as many as there are, and the number
    of independent motions that change none of them.

    **Arguments:** `everything`: the system with a driver of each candidate; `q`: a closed
    configuration of `system`.
    """
    held = everything.held
    rest = known_array(np.zeros(system.structure.nv))
    matrix = np.asarray(held.constraint_matrix(q, rest, 0.0)) * np.asarray(held.column_scale())
    structure = held.structure
    names = [structure.constraint_names[owner] for owner in structure.row_owner]
    wanted = [held_name(joint, word) for joint, word in candidates]
    own = [k for k in structure.geometric_rows if names[k] not in wanted]
    motions = _null_space(matrix[own])
    chosen, basis = [], np.zeros((0, motions.shape[1]))
    changes = [matrix[names.index(name)] @ motions for name in wanted]
    for least in (_CLEAR, _LEAST):
        for candidate, change in zip(candidates, changes, strict=True):
            size = np.linalg.norm(change)
            left = change - basis.T @ (basis @ change)
            if candidate in chosen or not np.linalg.norm(left) > least * max(size, _LEAST):
                continue
            chosen.append(candidate)
            basis = np.concatenate([basis, left[None] / np.linalg.norm(left)])
    ordered = [candidate for candidate in candidates if candidate in chosen]
    return ordered, motions.shape[1] - len(chosen)


def _null_space(matrix: Float[np.ndarray, "rows nv"]) -> Float[np.ndarray, "nv motions"]:
    sizes = np.linalg.norm(matrix, axis=1, keepdims=True)
    _, values, vectors = np.linalg.svd(matrix / np.where(sizes > 0, sizes, 1.0))
    rank = int(np.sum(values > _RANK * np.max(values, initial=0.0)))
    return vectors[rank:].T


def held_name(joint: str, coordinate: str) -> str:
    """The name of the driver that holds a coordinate of a joint (`with_values`)."""
    return f"{joint} {coordinate}"


def coordinate_controls(
    subject: ModelSubject,
    chosen: Sequence[tuple[str, str]],
    values: Mapping[str, np.ndarray],
    reach: float,
) -> dict[Control, float]:
    """Controls of coordinates of joints. `values`: by the names of what holds them."""
    found = {}
    for joint, word in chosen:
        name = f"joints.{joint}.{word}"
        unit, value = subject.unit(name), float(values[held_name(joint, word)][0])
        own = None if unit == "rad" else reach
        label = f"{joint}: {word}"
        found[control(name, Kind.COORDINATE, label, unit, value, own)] = value
    return found


def readings(held: AbstractSystem, q: Any) -> dict[str, np.ndarray]:
    """Values (n,) of the coordinates of all drivers of a system in one or n configurations, by
    name."""
    structure = held.structure
    if not structure.driven.any():
        return {}
    found = np.asarray(_readings(held, known_array(np.atleast_2d(np.asarray(q)))))
    return {
        structure.constraint_names[structure.row_owner[row]]: found[:, row]
        for row in np.flatnonzero(structure.driven)
    }


@program(compiling=Compiling.ONCE)
def _readings(held: AbstractSystem, q: Array) -> Float[Array, "n rows"]:
    return jax.lax.map(lambda own: held.driver_readings(own, 0.0)[1], q)
