"""The state from which a motion starts, and at which ranges are asked for."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._dynamics import consistent_state
from .._dynamics._initial import check_state
from .._errors import ModelError
from .._system import MultibodySystem
from ._analyze import configuration_at
from ._output import AnalysisFailed
from ._requests import Analyze


def initial_state(
    system: MultibodySystem, start: float, assemble: bool
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """The state of the model file, or the nearest one that the constraints allow.

    **Raises:** `ModelError` for one that they do not allow, `AnalysisFailed` if none is found.
    """
    q = configuration_at(system, Analyze(time=start, assemble=assemble))
    v = system.initial_v
    if assemble:
        try:
            return consistent_state(system, q, v, start)
        except ValueError as error:
            raise AnalysisFailed(str(error)) from None
    try:
        check_state(system, q, v, jnp.asarray(start, q.dtype))
    except ValueError as error:
        # What follows the semicolon is advice for Python.
        what = str(error).rsplit(";", 1)[0]
        raise ModelError(
            f"{what}; correct them, or let --assemble move to the nearest that the constraints "
            "allow."
        ) from None
    return q, v
