from equinox.internal import Enumeration


class RESULTS(Enumeration):
    """What a run-time computation ended with; each text says what to try next.

    Failures that only the numbers reveal are members here, so that they work under `jit` and
    `vmap`; the caller's edge turns the first of them into an exception.
    """

    successful = ""
    assembly_did_not_close = (
        "The mechanism did not close: no configuration near the start satisfies the geometric "
        "constraints and drivers. Start closer to a closed configuration, move the drivers "
        "in smaller steps, or check the marker points of the joint named."
    )
    assembly_not_nearest = (
        "The mechanism closed, but the closed configuration nearest to the start was not "
        "found: the closest point is not unique or the start is too far away. Start closer."
    )
