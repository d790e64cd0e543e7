import abc
from typing import NamedTuple

import equinox as eqx
from jaxtyping import Array, Float

from .._variables import Variables


class Inequalities(NamedTuple):
    """`matrix` x <= `limit` for the variables x (`Variables`)."""

    matrix: Float[Array, "n variables"]
    limit: Float[Array, " n"]


class AbstractBound(eqx.Module):
    """Prior knowledge of reactions: inequalities, linear in multipliers and components of wrenches,
    that the forces of the real mechanism satisfy.

    Numbers in it are array leaves; what it is about is static.
    """

    @abc.abstractmethod
    def inequalities(self, variables: Variables) -> Inequalities:
        """The bound as inequalities in the variables of a system.

        **Raises:** `ValueError` for a name that the system does not have.
        """

    @abc.abstractmethod
    def words(self) -> str:
        """The bound in one line, as it is named where loads cannot be carried."""
