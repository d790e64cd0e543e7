"""`jaxmbs holonomy`: which constraints are holonomic."""

import jax

from .._errors import ModelError
from .._holonomy import holonomy
from .._printing import Description
from . import _load
from ._given_state import check_time, configuration_at, of_model
from ._requests import Holonomy as Request


def answer(request: Request) -> Description:
    """Analyse the reference configuration, which must be closed.

    **Raises:** `ModelError` for bad input; `AnalysisError` if it cannot be assembled.
    """
    model = _load.load(request.model)
    check_time(model, request.time)
    system = model.system()
    q = configuration_at(system, request.time, request.assemble)
    try:
        found = holonomy(
            system,
            q,
            request.time,
            key=jax.random.key(0),
            samples=request.samples,
            spread=request.spread,
            tolerance=request.tolerance,
        )
    except ValueError as error:
        raise ModelError(str(error)) from None
    told = found.described()
    return of_model(model, told._replace(data=lambda: {"time": request.time, **told.data()}))
