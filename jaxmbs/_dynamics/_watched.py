"""Properties of a formulation that a run needs besides accelerations."""

import functools

import numpy as np
from jaxtyping import Bool

from .._formulations import (
    AbstractFormulation,
    ElasticResolution,
    Elimination,
    MinimumNorm,
    NonIdeal,
)
from .._formulations._independent_coordinates import NumberedElimination
from .._system import AbstractSystem, Structure


@functools.singledispatch
def kept_rows(formulation: AbstractFormulation, structure: Structure) -> Bool[np.ndarray, " rows"]:
    """The rows on whose rank the formulation relies: all, unless it drops some by name."""
    del formulation
    return np.ones(len(structure.rows), dtype=bool)


@kept_rows.register
def _(formulation: Elimination, structure: Structure) -> Bool[np.ndarray, " rows"]:
    return np.array([name not in formulation.drop for name in structure.row_names], dtype=bool)


@kept_rows.register
def _(formulation: NonIdeal, structure: Structure) -> Bool[np.ndarray, " rows"]:
    return kept_rows(formulation.formulation, structure)


@functools.singledispatch
def motion_only(formulation: AbstractFormulation, system: AbstractSystem) -> AbstractFormulation:
    """The same, or a cheaper one where multipliers need not be exact: without friction, which
    does not converge onto rounding in them."""
    del system
    return formulation


@motion_only.register
def _(formulation: ElasticResolution, system: AbstractSystem) -> AbstractFormulation:
    return formulation if system.frictional_joints else MinimumNorm(clean=False)


@motion_only.register
def _(formulation: MinimumNorm, system: AbstractSystem) -> AbstractFormulation:
    rounded = formulation.weights is None and not system.frictional_joints
    return MinimumNorm(clean=False) if rounded else formulation


@motion_only.register
def _(formulation: NonIdeal, system: AbstractSystem) -> AbstractFormulation:
    return NonIdeal(motion_only(formulation.formulation, system), formulation.work_force)


@motion_only.register
def _(formulation: NumberedElimination, system: AbstractSystem) -> AbstractFormulation:
    del system
    return NumberedElimination(formulation.rows, off=True)


@functools.singledispatch
def numbered(formulation: AbstractFormulation, structure: Structure) -> AbstractFormulation:
    """The formulation as runs use it: new names of dropped rows need no compilation."""
    del structure
    return formulation


@numbered.register
def _(formulation: Elimination, structure: Structure) -> AbstractFormulation:
    return formulation.numbered(structure) if formulation.drop else formulation


@numbered.register
def _(formulation: NonIdeal, structure: Structure) -> AbstractFormulation:
    return NonIdeal(numbered(formulation.formulation, structure), formulation.work_force)
