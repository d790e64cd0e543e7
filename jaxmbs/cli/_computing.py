"""Preparation of the first computation of a command. JAX is loaded here, and not earlier."""

import gc
import importlib
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ._progress import progress


class _Common(NamedTuple):
    """Options of all commands."""

    no_cache: bool = False
    quiet: bool = False


_chosen = [_Common()]


def choose(no_cache: bool, quiet: bool) -> None:
    """Options of the command that comes now."""
    _chosen[:] = [_Common(no_cache, quiet)]


@contextmanager
def computing(verb: str) -> Iterator[Any]:
    """Within the block a command computes: in double precision, as every rank decision needs it,
    with the programs of earlier calls, and with progress where a person waits for it.

    **Returns:** the module of the command (`verb`), which is loaded now.
    """
    import jax

    jax.config.update("jax_enable_x64", True)
    module = importlib.import_module(f"._{verb}", __package__)
    # The program starts with the collector at rest. What has been loaded stays: the collector need
    # not look through it while programs are traced.
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
    (common,) = _chosen
    if not common.no_cache:
        _keep_programs(common.quiet)
    with progress():
        yield module


def _keep_programs(quiet: bool) -> None:
    """Keep compiled programs in the platform's cache folder; one sentence on standard error if that
    fails, unless quiet."""
    from .. import _programs

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _programs.keep_programs()
    for warning in [] if quiet else caught:
        print(f"jaxmbs: {warning.message}", file=sys.stderr)
