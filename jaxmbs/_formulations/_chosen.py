from typing import Any

from .. import _settings
from .._system import Structure
from ._elastic_resolution import ElasticResolution
from ._minimum_norm import MinimumNorm
from ._udwadia_kalaba import UdwadiaKalaba
from .base import AbstractFormulation, check_mass


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
