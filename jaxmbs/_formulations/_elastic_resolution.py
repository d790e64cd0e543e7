"""Multipliers that elasticity decides, and the formulation that is chosen where the user names
none.
"""

from typing import Any, ClassVar

import jax.numpy as jnp

from .. import _settings
from .._solution import RESULTS
from .._system import AbstractSystem, Equations, Structure
from ._minimum_norm import MinimumNorm, UdwadiaKalaba
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

    def motion_only(self, system: AbstractSystem) -> AbstractFormulation:
        return self if system.frictional_joints else MinimumNorm(clean=False)

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


# What a message offers.
SUCH_AS = "MinimumNorm(), UdwadiaKalaba(), NullSpace() or another of the formulations"


def given_formulation(formulation: Any) -> AbstractFormulation | None:
    """The formulation that a user gave, if any.

    **Raises:** `TypeError` for a value that is not a formulation.
    """
    if formulation is None:
        return None
    return _settings.instance(formulation, AbstractFormulation, "formulation", SUCH_AS)


def chosen_formulation(formulation: Any, structure: Structure) -> AbstractFormulation:
    """The formulation that a user gave; for None `MinimumNorm()`, and where the mass matrix need
    only be positive semidefinite `UdwadiaKalaba(semidefinite=True)`.

    **Raises:** `TypeError` for a value that is not a formulation, `ValueError` for one that needs
    M^-1 where M is singular.
    """
    given = given_formulation(formulation)
    if given is None:
        return UdwadiaKalaba(semidefinite=True) if structure.semidefinite else MinimumNorm()
    check_mass(given, structure)
    return given


def elastic_formulation(structure: Structure) -> AbstractFormulation:
    """`ElasticResolution()` where there are compliances and mass matrices have an inverse, which it
    needs; else as `chosen_formulation(None, structure)`."""
    if structure.compliances and not structure.semidefinite:
        return ElasticResolution()
    return chosen_formulation(None, structure)
