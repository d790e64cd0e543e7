"""Quantities that make up an objective: numbers of every state of a run, and those that are zero
by what a joint is.
"""

import abc
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import RealScalarLike, Scalar, Setting
from .._dynamics import Trajectory
from .._programs import program
from .._reactions import wrench_maps
from .._solvability._expression import parse_combination
from .._system import AbstractSystem, Structure
from .._system._places import moments, PlaceLayout


# --------------------------------------------------------------------------------------------------
# Quantities that make up an objective: numbers of every state of a run.
# --------------------------------------------------------------------------------------------------


class AbstractQuantity(eqx.Module):
    """A number at every state of a run."""

    @abc.abstractmethod
    def __call__(self, response: Trajectory) -> Float[Array, " n"]:
        """The number at each of the states."""

    @abc.abstractmethod
    def unit(self, response: Trajectory) -> str:
        """Its unit; empty where it has none of its own."""


class Combination(AbstractQuantity):
    """c^T lambda, a linear combination of multipliers (N, N m).

    **Arguments:** `expression`: in row names, such as `"W1 - W2"` (see `analyze`).
    """

    expression: str = eqx.field(static=True)

    def __init__(self, expression: Setting[str]):
        self.expression = _settings.text(expression, "expression", '"W1 - W2"')

    def __call__(self, response: Trajectory) -> Float[Array, " n"]:
        names = response.system.structure.row_names
        return response.multipliers @ jnp.asarray(parse_combination(self.expression, names))

    def unit(self, response: Trajectory) -> str:
        structure = response.system.structure
        named = parse_combination(self.expression, structure.row_names) != 0
        units = {structure.rows[row].quantity.force_unit for row in np.flatnonzero(named)}
        return units.pop() if len(units) == 1 else ""


class AbstractResultant(AbstractQuantity):
    """The magnitude of a resultant of joints on one body."""

    joints: eqx.AbstractVar[tuple[str, ...]]
    body: eqx.AbstractVar[str | None]

    @abc.abstractmethod
    def resultant(self, at: "Attachment") -> Callable[..., Float[Array, "n rows"]]:
        """The resultant's map from all multipliers, as a function of q, v and t."""

    def __call__(self, response: Trajectory) -> Float[Array, " n"]:
        at = attachment(response, self.joints, self.body)
        return magnitudes(response, self.resultant(at))


class Force(AbstractResultant):
    """The magnitude of the resultant force (N) of joints on a body, |sum of H_i C_X^T lambda_X|.

    **Arguments:** `joints`: their names, or one; `body`: on which they act, default the first
    moving body of the first of them. Of a body that joints hold at several frames also the name of
    one of these ("bar.A").

    **Raises:** (when called) `ValueError` for names that mean nothing.
    """

    joints: tuple[str, ...] = eqx.field(static=True)
    body: str | None = eqx.field(static=True)

    def __init__(self, joints: Setting[str | Sequence[str]], body: Setting[str | None] = None):
        self.joints, self.body = _joints_and_body(joints, body)

    def resultant(self, at: "Attachment") -> Callable[..., Float[Array, "n rows"]]:
        return at.force

    def unit(self, response: Trajectory) -> str:
        del response
        return "N"


class Torque(AbstractResultant):
    """The magnitude of the resultant torque (N m) of joints on a body, about the joint's point on
    it (of several joints: about that of the first).

    **Arguments:** as for `Force`.

    **Raises:** (when called) `ValueError` for names that mean nothing.
    """

    joints: tuple[str, ...] = eqx.field(static=True)
    body: str | None = eqx.field(static=True)

    def __init__(self, joints: Setting[str | Sequence[str]], body: Setting[str | None] = None):
        self.joints, self.body = _joints_and_body(joints, body)

    def resultant(self, at: "Attachment") -> Callable[..., Float[Array, "n rows"]]:
        return at.torque

    def unit(self, response: Trajectory) -> str:
        del response
        return "N m"


class Attachment(NamedTuple):
    """Points where joints act on one body: `places` (n,) of `layout`."""

    system: AbstractSystem
    layout: PlaceLayout
    places: np.ndarray

    def force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, "dim rows"]:
        """Their resultant force as a function of all multipliers."""
        indices = self.layout.indices
        if np.isin(self.places, indices["unposed"]).any() or self._on_ground:
            return self._resultant(q, v, t)[0]
        # A displacement of the whole body determines it; its position is not needed.
        rows = np.unique(indices["rows"][self.places])
        columns = indices["columns"][self.places[0]]
        dim = {3: 2, 6: 3}[columns.shape[0]]
        matrix = self.system.constraint_matrix(q, v, t)
        rows = rows[rows < matrix.shape[0]]
        own = jnp.zeros_like(matrix).at[rows].set(matrix[rows])
        return -own[:, columns[:dim]].T

    def torque(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, "turns rows"]:
        """The torque, likewise, about the first joint's point."""
        return self._resultant(q, v, t)[1]

    @property
    def _on_ground(self) -> bool:
        return self.layout.bodies[self.places[0]] == self.layout.ground

    def _resultant(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> tuple[Float[Array, "dim rows"], Float[Array, "turns rows"]]:
        matrix, attached = self.system.constraint_matrix(q, v, t), self.system.places(q, v, t)
        maps, points = wrench_maps(attached, matrix), attached.point[self.places]
        own = maps.force[self.places]
        arms = points - points[:1]
        turning = maps.torque[self.places] + jax.vmap(moments)(arms, own)
        return self._of_all(own, len(matrix)), self._of_all(turning, len(matrix))

    def _of_all(self, parts: Float[Array, "n k width"], count: int) -> Float[Array, "k rows"]:
        rows = self.layout.indices["rows"][self.places][:, None, :]
        columns = np.broadcast_to(rows, parts.shape)
        lines = np.broadcast_to(np.arange(parts.shape[1])[None, :, None], parts.shape)
        # The padding of a joint's rows follows the last row.
        found = jnp.zeros((parts.shape[1], count + 1), parts.dtype)
        return found.at[lines, columns].add(parts)[:, :count]


def attachment(response: Trajectory, joints: tuple[str, ...], body: str | None) -> Attachment:
    """
    **Raises:** `ValueError` for names that mean nothing.
    """
    system = response.system
    structure = system.structure
    state = jnp.zeros(structure.nq), jnp.zeros(structure.nv), jnp.zeros(())
    # It follows from the structure alone: nothing is computed.
    layout = eqx.filter_eval_shape(system.places, *state).layout
    return Attachment(system, layout, _places_on(structure, layout, joints, body))


def magnitudes(
    response: Trajectory, function: Callable[..., Float[Array, "n rows"]]
) -> Float[Array, " n"]:
    """The magnitude of a quantity that is linear in the multipliers, at each state; `function`
    gives its matrix."""

    def magnitude(state: tuple[Array, Array, Array, Array]) -> Scalar:
        *where, multipliers = state
        square = jnp.sum((function(*where) @ multipliers) ** 2)
        # The root of zero has no derivative; that of a force which is zero is taken as zero.
        # (NaN is not zero: the best of all objectives.)
        acting = square != 0
        return jnp.where(acting, jnp.sqrt(jnp.where(acting, square, 1.0)), 0.0)

    return lax.map(magnitude, (response.q, response.v, response.times, response.multipliers))


def _joints_and_body(joints: Any, body: Any) -> tuple[tuple[str, ...], str | None]:
    given = (joints,) if isinstance(joints, str) else joints
    names = _settings.names(given, "joints", '("A", "B")')
    if not names:
        raise ValueError("joints must name at least one joint or driver, got none.")
    return names, None if body is None else _settings.text(body, "body", '"crank"')


def _places_on(
    structure: Structure, layout: PlaceLayout, joints: tuple[str, ...], body: str | None
) -> np.ndarray:
    """Places (n,) at which these joints act on that body, or on the first moving one of the first
    of them.

    **Raises:** `ValueError` for names that mean nothing.
    """
    found: list[int] = []
    for name in joints:
        constraint = structure.constraints.index(structure.constraint(name))
        own = {b: k for k, b in enumerate(layout.bodies) if layout.constraints[k] == constraint}
        if not own:
            raise ValueError(
                f"{name!r} acts on coordinates and at no point, so that it has no force and no "
                "torque; use Combination, of its multipliers."
            )
        if body is None:
            body = next(layout.owners[k] for b, k in own.items() if b != layout.ground)
        named = [k for b, k in own.items() if body in (b, layout.owners[k])]
        if len(named) > 1 and body in own:
            named = [own[body]]
        if len(named) != 1:
            raise ValueError(
                f"{name} acts on {' and '.join(own)}, not on {body!r}; name one of these."
                if not named
                else f"{name} acts on {body!r} at several of its frames, where its forces add up "
                f"to nothing; name one of {', '.join(layout.bodies[k] for k in named)}."
            )
        found += named
    return np.array(found)


def _quantity(value: Any) -> AbstractQuantity:
    such_as = 'Force("A") or Combination("W1 - W2")'
    return _settings.instance(value, AbstractQuantity, "quantity", such_as)


class AbstractObjective(eqx.Module):
    """An objective with a unit. (Any function of the states to a number is one.)"""

    @abc.abstractmethod
    def __call__(self, response: Trajectory) -> Scalar:
        """Its value."""

    @abc.abstractmethod
    def unit(self, response: Trajectory) -> str:
        """Its unit; empty where it has none of its own."""


class Peak(AbstractObjective):
    """An objective: the largest absolute value of a quantity over the states.

    **Arguments:** `quantity`; `exponent`: in the place of the maximum, which bends sharply where
    two states are equally large, the smooth norm (mean |x|^exponent)^(1/exponent), which is at
    most the maximum and comes close to it; 1 or more, default the maximum itself.
    """

    quantity: AbstractQuantity
    exponent: Scalar | None

    def __init__(
        self,
        quantity: Setting[AbstractQuantity],
        exponent: Setting[RealScalarLike | None] = None,
    ):
        self.quantity = _quantity(quantity)
        # Below 1 it is not a norm, and its slope at zero is infinite.
        self.exponent = (
            None if exponent is None else _settings.between(exponent, "exponent", least=1)
        )

    def __call__(self, response: Trajectory) -> Scalar:
        values = jnp.abs(self.quantity(response))
        largest = jnp.max(values)
        if self.exponent is None:
            return largest
        # Relative to a constant, so that no power overflows.
        scale = lax.stop_gradient(jnp.where(largest != 0, largest, 1.0))
        mean = jnp.mean((values / scale) ** self.exponent)
        some = mean != 0
        return jnp.where(some, scale * jnp.where(some, mean, 1.0) ** (1 / self.exponent), 0.0)

    def unit(self, response: Trajectory) -> str:
        return self.quantity.unit(response)


class Final(AbstractObjective):
    """An objective: the value of a quantity at the last state (of `AtState`: the only one)."""

    quantity: AbstractQuantity

    def __init__(self, quantity: Setting[AbstractQuantity]):
        self.quantity = _quantity(quantity)

    def __call__(self, response: Trajectory) -> Scalar:
        return self.quantity(response)[-1]

    def unit(self, response: Trajectory) -> str:
        return self.quantity.unit(response)


class MeanSquare(AbstractObjective):
    """An objective: the mean of the squares of a quantity over the states."""

    quantity: AbstractQuantity

    def __init__(self, quantity: Setting[AbstractQuantity]):
        self.quantity = _quantity(quantity)

    def __call__(self, response: Trajectory) -> Scalar:
        return jnp.mean(self.quantity(response) ** 2)

    def unit(self, response: Trajectory) -> str:
        unit = self.quantity.unit(response)
        squared = f"({unit})^2" if " " in unit else f"{unit}^2"
        return squared if unit else ""


# --------------------------------------------------------------------------------------------------
# Objectives that are zero by what a joint is: the force of a driver of a rotation, the torque of a
# point that is held.
# --------------------------------------------------------------------------------------------------


# Against the other one of force times length, and torque.
_ROUNDING = 1e-9


@functools.singledispatch
def zero_words(objective: Any, response: Trajectory) -> str:
    """The reason why an objective, or a quantity, is zero in every state of a run for any
    multipliers, and a better choice; empty if it is not zero, as far as that can be decided."""
    del objective, response
    return ""


@zero_words.register(Peak)
@zero_words.register(Final)
@zero_words.register(MeanSquare)
def _(objective: Peak | Final | MeanSquare, response: Trajectory) -> str:
    return zero_words(objective.quantity, response)


@zero_words.register
def _(objective: Force, response: Trajectory) -> str:
    at, sizes = _sizes(objective.joints, objective.body, response)
    if sizes[0] > _ROUNDING * sizes[1]:
        return ""
    return _words(objective.joints, at, "force", "torque", exerts=sizes[1] > 0)


@zero_words.register
def _(objective: Torque, response: Trajectory) -> str:
    at, sizes = _sizes(objective.joints, objective.body, response)
    if sizes[1] > _ROUNDING * sizes[0]:
        return ""
    return _words(objective.joints, at, "torque", "force", exerts=sizes[0] > 0)


def _words(joints: tuple[str, ...], at: Attachment, zero: str, other: str, *, exerts: bool) -> str:
    structure, names = at.system.structure, ", ".join(joints)
    kinds = {structure.constraint(name).kind.replace("_", " ") for name in joints}
    where = f"on {at.layout.bodies[at.places[0]]!r}"
    if not exerts:
        return (
            f"{names} ({', '.join(sorted(kinds))}) exerts no force and no torque {where}; ask for "
            "another body, or for a combination of its multipliers."
        )
    given = f"{joints[0]!r}" if len(joints) == 1 else repr(joints)
    written = f'"{joints[0]}"' if len(joints) == 1 else str([*joints]).replace("'", '"')
    point = " about its point" if zero == "torque" else ""
    return (
        f"{names} ({', '.join(sorted(kinds))}) exerts a {other} {where} and no {zero}{point}; ask "
        f"for its {other}, {other.capitalize()}({given}), in a study file {other} = {written}."
    )


def _sizes(
    joints: tuple[str, ...], body: str | None, response: Trajectory
) -> tuple[Attachment, tuple[float, float]]:
    """Bodies on which they act; the largest force times the characteristic length, and the largest
    torque, that multipliers of unit size make in any state."""
    at = attachment(response, joints, body)
    states = response.q, response.v, response.times
    length, *found = map(np.asarray, _maps(response.system, states))
    force, torque, points = (x[:, at.places] for x in found)
    arms = points - points[:, :1]
    if arms.shape[-1] == 2:
        moved = arms[..., :1] * force[:, :, 1] - arms[..., 1:] * force[:, :, 0]
        moved = moved[:, :, None]
    else:
        moved = np.cross(arms[..., None], force, axis=2)
    rows = at.layout.indices["rows"][at.places]
    return at, (float(length) * _largest(force, rows), _largest(torque + moved, rows))


def _largest(maps: np.ndarray, rows: np.ndarray) -> float:
    """The largest coefficient (n, places, components, width), summed over places, of a row."""
    total = np.zeros((*maps.shape[:1], maps.shape[2], int(rows.max()) + 1))
    for k, own in enumerate(rows):
        total[:, :, own] += maps[:, k]
    # What fills up the rows of a joint is zero.
    return float(np.max(np.abs(total), initial=0.0))


@program
def _maps(
    system: AbstractSystem, states: tuple[Array, Array, Array]
) -> tuple[Array, Array, Array, Array]:
    """The characteristic length; at each state from multipliers to forces and torques at all
    places, and their points."""

    def of_state(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        places = system.places(*state)
        maps = wrench_maps(places, system.constraint_matrix(*state))
        return maps.force, maps.torque, places.point

    return system.characteristic_length(), *lax.map(of_state, states)
