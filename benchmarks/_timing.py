import time
from collections.abc import Callable
from typing import Any


def best_in_turn(functions: dict[str, Callable[[], Any]], rounds: int = 20) -> dict[str, float]:
    """Shortest wall-clock time of each (s), each after one call that is not counted. They take
    turns, so that none has a quieter machine than the others."""
    times = [{name: best(call, 1) for name, call in functions.items()} for _ in range(rounds)]
    return {name: min(row[name] for row in times) for name in functions}


def best(function: Callable[[], Any], repeats: int = 5, seconds: float = 0.0) -> float:
    """Shortest wall-clock time of a call (s), after one call that is not counted. Calls are
    repeated so many times at least, and for so many `seconds` in all."""
    function()
    times = []
    while len(times) < repeats or sum(times) < seconds:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)
