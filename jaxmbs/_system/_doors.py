"""Argument checks of all functions of a system at a state."""

import functools
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ._states import described, precision, with_checks
from ._structure import Structure
from .base import AbstractSystem


P = ParamSpec("P")
T = TypeVar("T")


def takes_state(
    *, decides_rank: bool = False, **arguments: str
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator for functions of a `system` and a state: checks both (see `state_method`), and
    looks at masses that were not known when the system was made.

    `decides_rank`: without double precision the function warns, before it computes anything, of the
    consequences.

    **Raises:** `TypeError` or `ValueError`, one sentence of what was given and what is wanted.
    """
    admitted = _admitted_for_rank if decides_rank else _admitted
    return functools.partial(with_checks, admitted, arguments)


def refuse_internal(structure: Structure, what: str, advice: str) -> None:
    """Refuse a system with states that have no velocities.

    **Raises:** `ValueError` that names them.
    """
    if structure.internal.size:
        names = ", ".join(repr(structure.coordinates[k].name) for k in structure.internal)
        raise ValueError(f"{what} does not know of states of forces ({names}); {advice}.")


def refuse_acceleration_level(structure: Structure, what: str, advice: str) -> None:
    """Refuse a system with constraints that no position or velocity satisfies.

    **Raises:** `ValueError` that names them.
    """
    owners = {*structure.row_owner[~structure.velocity_level].tolist()}
    if owners:
        names = ", ".join(repr(structure.constraints[k].name) for k in sorted(owners))
        raise ValueError(
            f"{what} does not know of constraints that accelerations alone satisfy, as those of "
            f"servos ({names}); {advice}."
        )


def _admitted_for_rank(system: Any) -> AbstractSystem:
    _warn_single_precision()
    return _admitted(system)


def _admitted(system: Any) -> AbstractSystem:
    if not isinstance(system, AbstractSystem):
        raise TypeError(
            "system must be a system of equations, such as a MultibodySystem or what "
            f"Model.system() returns, got {described(system)}."
        )
    if system.reference_q.dtype != precision():
        raise TypeError(
            f"system was made in {system.reference_q.dtype} and {precision()} is in use now. "
            'Switch double precision on (jax.config.update("jax_enable_x64", True)) before the '
            "first part is made, and make all parts and the system anew."
        )
    return system.with_light_parts_looked_at()


def _warn_single_precision() -> None:
    if precision() == np.float64:
        return
    warnings.warn(
        "A rank is being decided in single precision (float32), where a redundant row and a "
        "nearly redundant one look alike. Switch double precision on with "
        'jax.config.update("jax_enable_x64", True) before the first array is made.',
        stacklevel=4,
    )
