"""`jaxmbs flexibility`: a study of elastic parts."""

from typing import Any

from .._elastic import flexibility
from .._errors import ModelError
from .._printing import Description
from . import _load
from ._given_state import configuration_at, of_model
from ._output import write_figure
from ._requests import Flexibility as Request


def answer(request: Request) -> Description:
    """Make the study at the reference configuration, which must be closed.

    **Raises:** `ModelError` for bad input.
    """
    model = _load.load(request.model)
    system = model.system()
    configuration_at(system)
    try:
        found = flexibility(
            system,
            reactions=request.reaction or None,
            candidates=request.elastic or None,
            subsets=request.subsets() or None,
            tolerance=request.tolerance,
        )
    except ValueError as error:
        raise ModelError(str(error)) from None

    def figure() -> Any:
        from ..plot import draw_flexibility

        return draw_flexibility(found)

    write_figure(figure, request.plot)
    told, plot = found.described(), request.plot and str(request.plot)
    told = told._replace(data=lambda: {**found.described().data(), "plot": plot})
    return of_model(model, told, request.plot)
