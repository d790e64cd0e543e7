"""How heavy a program is: CPU seconds of making it, equations, and kernels."""

import gc
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
from jax.extend import core


_PROGRAMS = (core.Jaxpr, core.ClosedJaxpr)


def equations(jaxpr: Any) -> Iterator[core.JaxprEqn]:
    """The equations of a program, and of all programs in it."""
    for equation in jaxpr.eqns:
        yield equation
        parameters = list(equation.params.values())
        for inner in jax.tree.leaves(parameters, is_leaf=lambda x: isinstance(x, _PROGRAMS)):
            if isinstance(inner, _PROGRAMS):
                yield from equations(getattr(inner, "jaxpr", inner))


def weight(
    function: Callable[..., Any], *arguments: Any, options: dict[str, Any] | None = None
) -> dict[str, float]:
    """Of one program: CPU seconds, equations, and kernels (fusions in the compiled program), by
    default with the options that `jax.jit` has by default."""
    numbers, rest = eqx.partition(arguments, eqx.is_array)
    program = jax.jit(lambda x: eqx.filter(function(*eqx.combine(x, rest)), eqx.is_array))
    jax.clear_caches()
    gc.collect()
    times = [time.process_time()]
    traced = program.trace(numbers)
    times.append(time.process_time())
    lowered = traced.lower()
    times.append(time.process_time())
    compiled = lowered.compile(compiler_options=options)
    times.append(time.process_time())
    trace, lower, compile_ = (b - a for a, b in itertools.pairwise(times))
    return {
        "trace": trace,
        "lower": lower,
        "compile": compile_,
        "seconds": times[-1] - times[0],
        "equations": sum(1 for _ in equations(traced.jaxpr.jaxpr)),
        "kernels": (compiled.as_text() or "").count(" fusion("),
    }
