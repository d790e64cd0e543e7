"""The command `jaxmbs` (extra `cli`)."""

import atexit
import gc
import os
import sys
from importlib.util import find_spec


# Packages of the extra, which are loaded where they are used.
_NEEDED = ("filelock", "matplotlib", "platformdirs", "rich", "tomlkit", "typer")


def main() -> None:
    """Entry point. Commands load what they need: JAX, where something is computed."""
    # Nothing but the standard library, so that it is there before all others are loaded.
    from ._interrupt import ending_promptly

    try:
        with ending_promptly():
            _run()
    except KeyboardInterrupt:
        # `refusing` has the rest: this is what comes before and after.
        print("jaxmbs: stopped.", file=sys.stderr)
        _leave(130)
    except SystemExit as left:
        if left.code != 130:
            raise
        _leave(130)


def _leave(status: int) -> None:
    """End this process at once: what is being computed in other threads would be torn down under
    them."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _run() -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        print(
            f"The command line needs {missing[0]}, which is not installed; install the extra "
            "with: python -m pip install 'jaxmbs[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(1)

    # Small matrices do not gain from threads within one decomposition; with them, parallel
    # decompositions wait for each other. It must be said before the library is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    # Loading and tracing make many objects that live on, through which the collector would look
    # again and again: a twentieth of the time of a run. It is at rest until a command computes
    # (`_computing.py`).
    gc.disable()
    gc.set_threshold(100_000, 20, 20)
    # At the end the system takes all memory back. To look first for what could be collected of JAX
    # and of this package would take 0.3 s.
    atexit.register(gc.freeze)

    from ._app import app, with_common_options_first
    from ._computing import want_progress

    arguments = with_common_options_first(sys.argv[1:])
    want_progress(arguments)
    app(arguments)
