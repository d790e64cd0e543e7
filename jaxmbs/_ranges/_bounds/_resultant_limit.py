from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ... import _settings
from ..._custom_types import Numbers, Setting
from .._variables import Variables
from ._linear import _shown
from ._polyhedra import directions
from .base import AbstractBound, Inequalities


# A polyhedron of fewer sides is hardly round.
_LEAST_SIDES = 4


class ResultantLimit(AbstractBound):
    """The magnitude of a joint's force, or of its torque, is at most so much.

    A ball is not a polyhedron. The polyhedron used circumscribes it, so that no range is narrower
    than with the ball; with `inside` it is inscribed, so that none is wider. In the plane a regular
    polygon (16 sides: 2 % around it), in space 16 faces around the equator and as fine towards the
    poles.

    **Arguments:** `name`: of a joint or driver; `force`: N, `torque`: N m about the joint's point,
    one of them or both; `sides`: even, at least 4; `inside`.
    """

    name: str = eqx.field(static=True)
    force: Float[Array, ""] | None
    torque: Float[Array, ""] | None
    sides: int = eqx.field(static=True)
    inside: bool = eqx.field(static=True)

    def __init__(
        self,
        name: Setting[str],
        *,
        force: Setting[Numbers | None] = None,
        torque: Setting[Numbers | None] = None,
        sides: Setting[int] = 16,
        inside: Setting[bool] = False,
    ):
        self.name = _settings.text(name, "name", "'B'")
        if force is None and torque is None:
            raise ValueError(
                "ResultantLimit needs a force (N) or a torque (N m); give one of them."
            )
        self.force = None if force is None else _settings.between(force, "force", least=0)
        self.torque = None if torque is None else _settings.between(torque, "torque", least=0)
        self.sides = even_sides(sides)
        self.inside = _settings.flag(inside, "inside")

    def inequalities(self, variables: Variables) -> Inequalities:
        matrices, limits = [], []
        asked = ((variables.force, self.force), (variables.torque, self.torque))
        for places_of, value in asked:
            if value is None:
                continue
            places = places_of(self.name)
            round_ = directions(len(places), self.sides)
            rows = round_.vectors @ variables.unit_vectors(places)
            matrices.append(jnp.asarray(rows))
            limits.append(jnp.full(len(rows), round_.inner if self.inside else 1.0) * value)
        return Inequalities(jnp.concatenate(matrices), jnp.concatenate(limits))

    def words(self) -> str:
        parts = [("force", self.force), ("torque", self.torque)]
        return " and ".join(
            f"|{self.name}.{what}| <= {_shown(value)}" for what, value in parts if value is not None
        )


def even_sides(sides: Any) -> int:
    """
    **Raises:** `TypeError` for no whole number, `ValueError` for an odd one or one that is too
    small.
    """
    count = _settings.whole_number(sides, "sides", least=_LEAST_SIDES, most=1000)
    if count % 2:
        raise ValueError(f"sides must be even, got {count}; 16 is usual.")
    return count
