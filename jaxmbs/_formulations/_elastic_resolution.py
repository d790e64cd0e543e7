from typing import ClassVar

import jax.numpy as jnp

from .._solution import RESULTS
from .._system import Equations, Structure
from .base import AbstractFormulation, Accelerations, check_mass, outcome


class ElasticResolution(AbstractFormulation):
    """The multipliers that strain what is elastic least, along the motion of the rigid system:

        minimise 1/2 lambda^T K lambda - lambda^T delta   over all lambda with C^T lambda = f.

    K holds the compliances of the system (`jaxmbs.elastic`), delta what their misfits make of the
    rows: so reactions that rigid bodies leave undecided are those of the elastic ones, and what
    loads alone do not explain is the stress of parts that do not fit. Deformations are small and
    have no mass. What the compliances do not decide either has least norm, is not unique
    (`analyze(..., elastic=True)`) and has no derivative. Which bodies are elastic decides the
    answer with it: a single one carries no load (Wojtyra & Fraczek 2012).

    Applied forces strain the bodies on which they act; friction in joints does not. With a
    compliance for each multiplier, no misfits and no forces on elastic bodies this is
    `MinimumNorm(weights=compliances)`. One
    factorisation of S + mu K, on the graph of the mechanism, and a few steps of the proximal method
    of multipliers (Rockafellar 1976).
    """

    word: ClassVar[str] = "elastic"

    @property
    def elastic(self) -> bool:
        return True

    @property
    def inverts_mass(self) -> bool:
        return True

    def solve(self, equations: Equations) -> Accelerations:
        if equations.descriptor.semidefinite:
            check_mass(self, equations.structure)
        check_compliances(self, equations.structure)
        elasticity = equations.elasticity
        assert elasticity is not None
        descriptor, force = equations.descriptor, equations.force
        right = descriptor.apply_C(descriptor.inverse_mass(force)) - equations.offset
        multipliers, found = elasticity.multipliers(descriptor, right, elasticity.gap())
        acceleration = descriptor.inverse_mass(force - descriptor.apply_CT(multipliers))
        return outcome(
            acceleration, multipliers, (~jnp.asarray(found), RESULTS.misfit_not_taken_up)
        )


def check_compliances(formulation: AbstractFormulation, structure: Structure) -> None:
    """
    **Raises:** `ValueError` for an elastic formulation of a system without compliances.
    """
    if formulation.elastic and not structure.compliances:
        raise ValueError(
            "ElasticResolution needs something that gives way, and nothing of this system does; "
            "give compliances, such as jaxmbs.elastic.Rod."
        )
