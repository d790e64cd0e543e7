"""Times at which rules look at the motions of drivers."""

import numpy as np
from jaxtyping import Float

from ..._constraints import Driver


# Times (s) at which a motion without an end is looked at: no period has all of them.
_TIMES = (0.0, 0.3137, 1.0, 2.7183, 7.389, 20.0)


def motion_times(driver: Driver) -> Float[np.ndarray, " n"]:
    """Within what a motion is given for, and where its pieces meet."""
    domain = driver.motion.domain()
    times = np.array(_TIMES)
    if domain is not None:
        times = np.linspace(float(domain[0]), float(domain[1]), 17)
    times = np.union1d(times, np.asarray(driver.motion.knots()))
    if domain is not None:
        times = np.clip(times, float(domain[0]), float(domain[1]))
    return times
