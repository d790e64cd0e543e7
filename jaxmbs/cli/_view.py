"""`jaxmbs view`: a mechanism in the browser."""

import sys
import webbrowser

from .._errors import AnalysisError, ModelError
from .._printing import Description
from .._quoting import shown
from .._ranges import AbstractBound
from .._system import Model
from ..io import load_trajectory
from ..report._contents import check_bounds
from ..view._serve import free_port, open_page
from ..view._session import Session
from . import _load
from ._computing import silence
from ._output import print_answer, with_section
from ._requests import View as Request


def answer(request: Request) -> None:
    """Print the address, and serve the page until Ctrl-C.

    **Raises:** `ModelError` for bad input; `AnalysisError` if the model does not assemble.
    """
    port = free_port(request.port)
    model = _load.load(request.model)
    session = Session(model, _bounds(model, request))
    if request.trajectory is not None:
        try:
            session.play(load_trajectory(request.trajectory, model.system()))
        except OSError as error:
            where = shown(str(request.trajectory))
            raise ModelError(f"cannot read {where}: {error.strerror}.") from None
    if request.end is not None:
        session.simulate(request.end)
        if session.motion is None:
            raise AnalysisError(session.message)
        if session.motion.note:
            # It is played as far as it goes.
            print(f"jaxmbs: {with_section(session.motion.note)}", file=sys.stderr)
    with open_page(session, port) as viewer, silence():
        data = {"model": model.name, "address": viewer.address}
        said = f"{model.name}: {viewer.address} (Ctrl-C ends it)"
        print_answer(Description([said], data=lambda: data), request.json)
        if not request.no_open:
            webbrowser.open(viewer.address)
        viewer.wait()


def _bounds(model: Model, request: Request) -> tuple[AbstractBound, ...]:
    """
    **Raises:** `ModelError` for a bound that means nothing in this system.
    """
    try:
        return check_bounds(model.system(), request.bound)
    except ModelError as error:
        raise ModelError(f"--{str(error).replace('bounds', 'bound', 1)}") from None
