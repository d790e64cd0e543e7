"""Time and configuration of a command's question."""

from typing import Any

from .._checks import as_array, shown
from .._errors import ModelError
from .._kinematics import assemble, is_closed, open_constraints
from .._programs import Compiling, program
from .._system import LARGEST, Model, MultibodySystem
from ._output import AnalysisFailed
from ._requests import Analyze as Request


def check_time(model: Model, time: float) -> None:
    """Refuse a time that is not finite, or outside the table of a driver."""
    if not abs(time) <= LARGEST:
        raise ModelError(
            f"--time must be a finite number of seconds (at most {LARGEST:g}), got {time:g}."
        )
    for driver in model.drivers:
        domain = driver.motion.domain()
        if domain is not None and not float(domain[0]) <= time <= float(domain[1]):
            raise ModelError(
                f"driver {shown(driver.name)}: time {time:g} s is outside its table, which runs "
                f"from {float(domain[0]):g} s to {float(domain[1]):g} s; choose --time within "
                "it or extend the table."
            )


@program(compiling=Compiling.ONCE)
def _scaled_residual(system: MultibodySystem, q: Any, t: Any) -> Any:
    """As one program; operation by operation they are forty."""
    return system.scaled_residual(q, t)


def configuration_at(system: MultibodySystem, request: Request):
    """The reference configuration, or the assembled one."""
    q, t = system.reference_q, request.time
    if request.assemble:
        try:
            return assemble(system, q, t).q
        except RuntimeError as error:
            raise AnalysisFailed(str(error)) from None
    residual = _scaled_residual(system, q, as_array(t))
    if bool(is_closed(residual, system.precision)):
        return q
    name, amount, unit = open_constraints(system, residual)[0]
    kind = "driver" if system.structure.constraint(name).kind == "driver" else "joint"
    raise ModelError(
        f"the reference configuration is not closed at time {t:g} s: {kind} {shown(name)} is open "
        f"by {amount:.3g} {unit}; correct the points, or let --assemble close it."
    )
