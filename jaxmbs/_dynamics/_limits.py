"""Forces of servos, compared with the limits of their actuators."""

import numpy as np
from jaxtyping import Array, Float

from .._geometry import ANGLE, LENGTH, Quantity
from .._system import AbstractSystem


def exceeded_limits(
    system: AbstractSystem, times: Float[Array, " n"], multipliers: Float[Array, "n rows"]
) -> list[str]:
    """A sentence for each row of a servo constraint that needs more than its limit."""
    limits, found = np.asarray(system.servo_limits()), []
    for k in np.flatnonzero(np.isfinite(limits)):
        row, values = system.structure.rows[k], np.asarray(multipliers)[:, k]
        if np.any(np.abs(values) > limits[k]):
            unit = force_unit(row.quantity)
            found.append(
                limit_line(f"servo {row.name}: ", unit, np.asarray(times), values, limits[k])
            )
    return found


def force_unit(quantity: Quantity) -> str:
    """The unit of the force that does work along this quantity."""
    return {LENGTH: "N", ANGLE: "N m"}.get(quantity, f"J/{quantity.unit}")


def limit_line(
    start: str, unit: str, times: np.ndarray, values: np.ndarray, limit: np.floating
) -> str:
    """The largest size of a control, and when it is larger than its limit."""
    unit = f" {unit}" if unit else ""
    if not values.size:
        return f"{start}no state"
    most = int(np.argmax(np.abs(values)))
    text = f"{start}up to {abs(values[most]):.6g}{unit} (at {times[most]:g} s)"
    over = np.flatnonzero(np.abs(values) > limit)
    if not over.size:
        return text
    return (
        f"{text}, more than its limit of {limit:g}{unit} in {over.size} of {values.size} states, "
        f"from {times[over[0]]:g} to {times[over[-1]]:g} s"
    )
