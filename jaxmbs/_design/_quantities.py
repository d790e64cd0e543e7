"""What an objective is made of: numbers of every state of a run."""

import abc
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import RealScalarLike, Scalar, Setting
from .._dynamics import Trajectory
from .._solvability._expression import parse_combination


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


class Force(AbstractQuantity):
    """The magnitude of the resultant force (N) of joints on a body, |sum of H_i C_X^T lambda_X|.

    **Arguments:** `joints`: their names, or one; `body`: on which they act, default the first
    moving body of the first of them.

    **Raises:** (when called) `ValueError` for names that mean nothing.
    """

    joints: tuple[str, ...] = eqx.field(static=True)
    body: str | None = eqx.field(static=True)

    def __init__(self, joints: Setting[str | Sequence[str]], body: Setting[str | None] = None):
        given = (joints,) if isinstance(joints, str) else joints
        self.joints = _settings.names(given, "joints", '("A", "B")')
        if not self.joints:
            raise ValueError("joints must name at least one joint or driver, got none.")
        self.body = None if body is None else _settings.text(body, "body", '"crank"')

    def __call__(self, response: Trajectory) -> Float[Array, " n"]:
        system = response.system
        structure = system.structure
        infos = [structure.constraint(name) for name in self.joints]
        rows = np.concatenate([np.arange(c.start, c.stop) for c in infos])
        bodies = {structure.bodies[k].name: structure.bodies[k] for c in infos for k in c.bodies}
        body = next(iter(bodies)) if self.body is None else self.body
        if body not in bodies:
            raise ValueError(
                f"{', '.join(self.joints)} act on {', '.join(bodies)}, not on {body!r}."
            )
        columns = np.array(bodies[body].force, dtype=int)
        if not columns.size:
            raise ValueError(
                f"body {body!r} has coordinates of its own and no resultant force; name another "
                "body of the joint, or use Combination."
            )

        def magnitude(state: tuple[Array, Array, Array, Array]) -> Scalar:
            q, v, t, multipliers = state
            matrix = system.constraint_matrix(q, v, t)[rows][:, columns]
            square = jnp.sum((matrix.T @ multipliers[rows]) ** 2)
            # The root of zero has no derivative; that of a force which is zero is taken as zero.
            # (NaN is not zero: the best of all objectives.)
            acting = square != 0
            return jnp.where(acting, jnp.sqrt(jnp.where(acting, square, 1.0)), 0.0)

        states = (response.q, response.v, response.times, response.multipliers)
        return lax.map(magnitude, states)

    def unit(self, response: Trajectory) -> str:
        del response
        return "N"


def _quantity(value: Any) -> AbstractQuantity:
    such_as = 'Force("A") or Combination("W1 - W2")'
    return _settings.instance(value, AbstractQuantity, "quantity", such_as)


class AbstractObjective(eqx.Module):
    """An objective that knows its unit. (Any function of the states to a number is one.)"""

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
        # Below 1 it is no norm, and its slope at a value of zero is infinite.
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
