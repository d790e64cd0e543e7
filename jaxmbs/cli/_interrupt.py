"""Ctrl-C: one line and status 130, also while a compiled program runs.

Python raises KeyboardInterrupt when it is back at its own code, and a compiled motion may take
minutes until then. So a thread hears of the signal as well, and ends the process where Python has
not ended it by itself.
"""

import os
import signal
import socket
import sys
import threading


STATUS = 130

# So long (s) may what is being written take to come to an end.
_PATIENCE = 1.0


def stop() -> None:
    """What is said of Ctrl-C, once by all processes together."""
    if "--worker" not in sys.argv:
        print("jaxmbs: stopped.", file=sys.stderr)


def end_promptly() -> None:
    """Have Ctrl-C end this process soon, whatever it is at. For the main thread."""
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reading, writing), daemon=True).start()


def _watch(reading: socket.socket, writing: socket.socket) -> None:
    # `writing` is held, since the signal's handler knows its number alone.
    while signal.SIGINT not in reading.recv(1):
        pass
    threading.Event().wait(_PATIENCE)
    # Python did not come back, or it would have ended this process.
    stop()
    sys.stderr.flush()
    del writing
    os._exit(STATUS)
