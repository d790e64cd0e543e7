import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ... import _checks, _settings
from ..._checks import listed, shown
from ..._custom_types import Numbers, Setting
from .._variables import Variables
from ._linear import _shown
from ._polyhedra import directions
from ._resultant_limit import even_sides
from .base import AbstractBound, Inequalities


class FrictionCone(AbstractBound):
    """Coulomb's law for what sticks: the force pushes along the normal, and its part across is at
    most the coefficient times that along.

    In the plane these are two inequalities, and exact. In space the cone becomes a pyramid of
    `sides` faces around it, so that no range is narrower than with the cone; with `inside` the one
    within it, so that none is wider.

    **Arguments:** `name`: of a joint that acts at a point; `coefficient`: of friction, not
    negative; `normal`: the direction (world) in which the joint pushes `body`; `body`: default the
    joint's second body (its only one); `sides`: even, at least 4; `inside`.
    """

    name: str = eqx.field(static=True)
    coefficient: Float[Array, ""]
    normal: Float[Array, " dim"]
    body: str | None = eqx.field(static=True)
    sides: int = eqx.field(static=True)
    inside: bool = eqx.field(static=True)

    def __init__(
        self,
        name: Setting[str],
        coefficient: Setting[Numbers],
        normal: Setting[Numbers],
        *,
        body: Setting[str | None] = None,
        sides: Setting[int] = 16,
        inside: Setting[bool] = False,
    ):
        self.name = _settings.text(name, "name", "'foot'")
        self.coefficient = _settings.between(coefficient, "coefficient", least=0)
        self.normal = _settings.vector(normal, "normal")
        if self.normal.shape[0] not in (2, 3):
            raise ValueError(
                f"normal must be a direction of two or three components, got {shown(normal)}."
            )
        known = _settings.known_numbers(normal)
        if known is not None:
            _checks.nonzero(known, "normal", "give a direction such as (0, 0, 1)")
        self.body = None if body is None else _settings.text(body, "body", "'leg'")
        self.sides = even_sides(sides)
        self.inside = _settings.flag(inside, "inside")

    def inequalities(self, variables: Variables) -> Inequalities:
        places = variables.force(self.name)
        dimension = len(places)
        if self.normal.shape[0] != dimension:
            raise ValueError(
                f"normal of the friction cone of {shown(self.name)} must have {dimension} "
                f"components, got {self.normal.shape[0]}."
            )
        normal = self.normal / jnp.linalg.norm(self.normal)
        across = _tangents(normal)
        round_ = directions(dimension - 1, self.sides)
        coefficient = self.coefficient * (round_.inner if self.inside else 1.0)
        along = jnp.asarray(round_.vectors) @ across - coefficient * normal[None]
        # Where the coefficient is zero the faces alone would allow it to pull.
        faces = jnp.concatenate([along, -normal[None]])
        rows = self._sign(variables) * faces @ jnp.asarray(variables.unit_vectors(places))
        return Inequalities(rows, jnp.zeros(rows.shape[0]))

    def _sign(self, variables: Variables) -> float:
        """Sign of the force: that on the first of two bodies is opposite to that on the second."""
        second = variables.second_body(self.name)
        if self.body is None or self.body == second:
            return 1.0
        bodies = variables.bodies(self.name)
        named = [site for site, owner in bodies.items() if self.body in (site, owner)]
        if len(named) != 1 or (named != [second] and len(bodies) != 2):
            raise ValueError(
                f"the friction cone of {shown(self.name)} is about its force on "
                f"{shown(self.body)}; it may be that on {listed(bodies)}."
            )
        return 1.0 if named == [second] else -1.0

    def words(self) -> str:
        return f"friction cone of {self.name} (coefficient {_shown(self.coefficient)})"


def _tangents(normal: Float[Array, " dim"]) -> Float[Array, "_ dim"]:
    """Orthonormal directions across a normal, from the axis that is least aligned with it."""
    if normal.shape[0] == 2:
        return jnp.stack([-normal[1], normal[0]])[None]
    known = _settings.known_numbers(normal)
    axis = jnp.eye(3)[jnp.argmin(jnp.abs(normal)) if known is None else np.argmin(np.abs(known))]
    first = axis - (axis @ normal) * normal
    first = first / jnp.linalg.norm(first)
    return jnp.stack([first, jnp.cross(normal, first)])
