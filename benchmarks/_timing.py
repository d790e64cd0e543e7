import time
from collections.abc import Callable
from typing import Any


def best(function: Callable[[], Any], repeats: int = 5) -> float:
    """Shortest wall-clock time of a call (s), after one call that is not counted."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)
