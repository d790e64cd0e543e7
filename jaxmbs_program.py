"""The program `jaxmbs`. Outside of the package, since that takes seconds to load: whoever presses
Ctrl-C meanwhile sees one line too."""

import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Entry point of the command line."""
    before = signal.signal(signal.SIGINT, _stop)
    # Only what ends the process: the compiler tells of slow programs as of errors ("E1126 ... slow
    # compile"). It is read when JAX is loaded.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from jaxmbs.cli import main as run

    signal.signal(signal.SIGINT, before)
    run()


def _stop(number: int, frame: FrameType | None) -> None:
    """Leave at once: an exception in the middle of an import may come out as another one, and
    nothing has been begun that could be left half done."""
    print("jaxmbs: stopped.", file=sys.stderr)
    sys.stderr.flush()
    os._exit(130)
