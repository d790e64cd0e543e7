"""Ctrl-C: one line and status 130, also while a compiled program runs.

Python raises KeyboardInterrupt when it is back at its own code, and a compiled motion may take
minutes until then. So a thread receives the signal as well, and ends the process where Python has
not done so. A command that keeps what it has computed takes the time for that (`Stopped`,
`keeping`).
"""

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


STATUS = 130

# So long (s) may what is being written take to come to an end.
_PATIENCE = 1.0


_keeping = threading.Event()


class Stopped(KeyboardInterrupt):
    """Ctrl-C in a command that has kept what it had computed; the text says where."""


def stop(said: str = "") -> None:
    """Message after Ctrl-C, printed once for all processes."""
    if "--worker" not in sys.argv:
        print(f"jaxmbs: {said or 'stopped.'}", file=sys.stderr)


@contextmanager
def keeping() -> Iterator[None]:
    """Keep what a command has computed: after Ctrl-C within the block it is written first, and a
    second Ctrl-C ends the command. Threads other than the main one receive no Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def arrived(number: int, frame: FrameType | None) -> None:
        _keeping.set()
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, arrived)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _keeping.clear()


@contextmanager
def ending_promptly() -> Iterator[None]:
    """Within the block Ctrl-C ends this process soon, whatever it is at. For the main thread."""
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    left = threading.Event()
    thread = threading.Thread(target=_watch, args=(reading, left), daemon=True)
    thread.start()
    try:
        yield
    finally:
        left.set()
        signal.set_wakeup_fd(before)
        # What is read then is empty, and ends the thread.
        writing.close()
        thread.join()
        reading.close()


def _watch(reading: socket.socket, left: threading.Event) -> None:
    signals = reading.recv(1)
    while signals and signal.SIGINT not in signals:
        signals = reading.recv(1)
    # Python comes back in time, or not.
    if not signals or left.wait(_PATIENCE):
        return
    while _keeping.is_set():
        if left.wait(_PATIENCE):
            return
    stop()
    sys.stderr.flush()
    os._exit(STATUS)
