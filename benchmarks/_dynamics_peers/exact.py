"""Exact motions of the two mechanisms: each has a law of one degree of freedom.

Nothing here knows a simulator. The laws follow from Lagrange's equation of the second kind for
the one angle; they are integrated by SciPy's DOP853 at a tolerance near rounding, in one go.
"""

from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp


GRAVITY = 9.81
# First time (s) at which the parallelogram's angle turns back; used to check its law.
TURNING_POINT = 0.239682187
# Moment of inertia (kg m^2) that all bodies of the parallelogram together oppose to the angle.
_PARALLELOGRAM_INERTIA = 10.0455
_TOLERANCE = 1e-13


def chain_stiffness(windows: int) -> float:
    """The factor k (1/s^2) in theta'' = k sin theta of a four-bar chain.

    Of N + 1 vertical bars each has the energy theta'^2 / 6 + (g / 2) cos theta, of N horizontal
    ones each theta'^2 / 2 + g cos theta (bars of 1 m and 1 kg).
    """
    uprights = windows + 1
    return GRAVITY * (uprights / 2 + windows) / (uprights / 3 + windows)


def chain_motion(windows: int, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angle of the vertical bars and its rate, from upright with the tops at 1 m/s along +x.

    **Arguments:** `windows`: N; `times`: increasing from 0 on (s).

    **Returns:** the angle from the vertical towards +x (rad, not wrapped) and its rate (rad/s).
    """
    stiffness = chain_stiffness(windows)
    return _integrate(lambda angle: stiffness * np.sin(angle), 1.0, times)


def parallelogram_motion(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angle of the parallelogram's links and its rate, from rest under the constant load.

    The platform only translates, in a horizontal plane: neither its weight nor the torque does
    work. **Arguments:** `times`: increasing from 0 on (s).

    **Returns:** the angle (rad) and its rate (rad/s).
    """
    return _integrate(parallelogram_acceleration, 0.0, times)


def parallelogram_acceleration(angle: np.ndarray) -> np.ndarray:
    """Second derivative (rad/s^2) of the parallelogram's angle (rad)."""
    return (1000.0 * np.cos(angle) - 1500.0 * np.sin(angle)) / _PARALLELOGRAM_INERTIA


def platform_centre(times: np.ndarray) -> np.ndarray:
    """Centre of the parallelogram's platform in the world (m), a row for each time (s)."""
    angle, _ = parallelogram_motion(times)
    height = np.full_like(angle, 0.5)
    return np.stack([0.25 + 0.5 * np.sin(angle), 0.25 + 0.5 * np.cos(angle), height], axis=1)


def chain_error(windows: int, times: np.ndarray, angles: np.ndarray) -> float:
    """Largest deviation of any vertical bar from the exact angle at any time.

    **Arguments:** `times` (n,) in s; `angles` (n, bars) in rad, not wrapped.
    """
    exact, _ = chain_motion(windows, times)
    return _largest(np.abs(angles - exact[:, None]))


def parallelogram_error(times: np.ndarray, centres: np.ndarray) -> float:
    """Largest distance (m) of the platform's centre (n, 3) from the exact path at its time."""
    return _largest(np.linalg.norm(centres - platform_centre(times), axis=1))


def _largest(deviations: np.ndarray) -> float:
    # A motion that has left for infinity or NaN is infinitely wrong.
    return float(np.max(np.where(np.isfinite(deviations), deviations, np.inf)))


def _integrate(
    acceleration: Callable[[np.ndarray], np.ndarray], rate: float, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    solution = solve_ivp(
        lambda t, y: [y[1], acceleration(y[0])],
        (0.0, float(times[-1])),
        [0.0, rate],
        method="DOP853",
        t_eval=times,
        rtol=_TOLERANCE,
        atol=_TOLERANCE,
    )
    return solution.y[0], solution.y[1]
