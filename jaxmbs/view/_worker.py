"""One thread that does what pages ask for, one thing after the other."""

import functools
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence

from ._session import Session


# Frames of a motion that is played, at most so many a second.
_RATE = 30.0


class Worker:
    """Changes a session, and has it shown after every change.

    Values that come faster than a mechanism is closed replace each other: the last one counts.

    **Arguments:** `refresh`: shows the session. It is called in the thread.
    """

    def __init__(self, session: Session, refresh: Callable[[], None]):
        self._session, self._refresh = session, refresh
        self._values: dict[str, float] = {}
        self._tasks: list[Callable[[], None]] = []
        self._changed, self._ended = threading.Condition(), False
        self._clock = Clock()
        self._thread = threading.Thread(target=self._run, name="jaxmbs view", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def set(self, values: Mapping[str, float]) -> None:
        """Have controls set."""
        with self._changed:
            self._values |= values
            self._changed.notify()

    def do(self, task: Callable[[], None]) -> None:
        """Have something else done to the session."""
        with self._changed:
            self._tasks.append(task)
            self._changed.notify()

    @property
    def waiting(self) -> frozenset[str]:
        """Controls with values that are not set yet."""
        with self._changed:
            return frozenset(self._values)

    @property
    def plays(self) -> bool:
        """Is a motion being played?"""
        return self._clock.runs

    def play(self, runs: bool, speed: float) -> None:
        """Play the motion from the state that is shown, from the start where that is its last, or
        stop. For tasks."""
        motion = self._session.motion
        if motion is None or not runs:
            self._clock.stop()
            return
        times = motion.times
        at_end = self._session.state >= len(times) - 1 or self._session.picture is not motion
        begin = 0 if at_end else self._session.state
        self._session.show(begin)
        self._clock.begin(float(times[begin]), speed)

    def end(self) -> None:
        """Stop after the current task."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        if threading.current_thread() is not self._thread and self._thread.is_alive():
            self._thread.join(timeout=1.0)

    def _run(self) -> None:
        while True:
            with self._changed:
                wait = 1.0 / _RATE if self._clock.runs else None
                self._changed.wait_for(self._has_work, wait)
                if self._ended:
                    return
                values, tasks = self._values, self._tasks
                self._values, self._tasks = {}, []
            for step in (functools.partial(self._work, values, tasks), self._refresh):
                try:
                    step()
                except Exception as error:
                    # Nobody waits for an answer: the page says it, and goes on.
                    traceback.print_exc()
                    self._session.message = f"Internal error: {error}"

    def _work(self, values: Mapping[str, float], tasks: Sequence[Callable[[], None]]) -> None:
        for task in tasks:
            task()
        if values:
            self._clock.stop()
            self._session.set(values)
        if self._clock.runs:
            self._advance()

    def _has_work(self) -> bool:
        return self._ended or bool(self._values or self._tasks)

    def _advance(self) -> None:
        motion = self._session.motion
        if motion is None:
            self._clock.stop()
            return
        state = int(motion.times.searchsorted(self._clock.now(), side="right")) - 1
        self._session.show(max(state, 0))
        if self._session.state == len(motion.times) - 1:
            self._clock.stop()


class Clock:
    """The time of a motion that is played."""

    def __init__(self) -> None:
        self.runs, self._begin, self._speed, self._since = False, 0.0, 1.0, 0.0

    def begin(self, time_of_motion: float, speed: float) -> None:
        """Run from that time (s), so many seconds of the motion in a second."""
        self.runs, self._begin, self._speed = True, time_of_motion, speed
        self._since = time.monotonic()

    def now(self) -> float:
        """The time of the motion (s)."""
        return self._begin + self._speed * (time.monotonic() - self._since)

    def stop(self) -> None:
        """Run no longer."""
        self.runs = False
