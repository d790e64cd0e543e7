"""Parts of a benchmark that share a limited time, in a file that is whole after each row.

A part that raises leaves its message, and the next one goes on. What a part does not use of its
share of the time goes to those after it.
"""

import contextlib
import json
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple


# Characters that are kept of a message.
_LONGEST = 300

# The innermost calls of an exception that are printed.
_FRAMES = -4

NO_TIME = "no time was left"


class Results:
    """A result file, replaced as a whole whenever something is entered."""

    def __init__(self, path: Path, contents: dict[str, Any]):
        self._path, self._contents = path, contents
        self._lock = threading.Lock()
        self.write()

    def write(self) -> None:
        """Write all that there is: a file that is read, or a process that ends, meanwhile finds
        the former one."""
        with self._lock:
            self._replace()

    def enter(self, name: str, value: dict[str, Any]) -> None:
        """Write the results of one part; what is added to `value` later needs `write`."""
        self._contents[name] = value
        self.write()

    def cut_off(self, part: dict[str, Any]) -> None:
        """Write that this part was not finished, and end the process."""
        with self._lock:
            part["cut_off"] = "the time was used up"
            self._replace()
            os._exit(0)

    def _replace(self) -> None:
        beside = self._path.with_name(f"{self._path.name}.part")
        beside.write_text(json.dumps(self._contents, indent=1) + "\n")
        beside.replace(self._path)


class Record:
    """The rows of one part, and the time (s) that is left to it."""

    def __init__(
        self,
        rows: list[dict[str, Any]],
        seconds: float,
        write: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ):
        self._rows, self._write, self._clock = rows, write, clock
        self._end = clock() + seconds

    @property
    def left(self) -> float:
        """Seconds; negative when the time is used up."""
        return self._end - self._clock()

    def share(self, fraction: float) -> "Record":
        """A record of the same rows, with this fraction of the time that is left."""
        return Record(self._rows, fraction * self.left, self._write, self._clock)

    def keep(self, **row: Any) -> None:
        """Write a row into the file, and print it."""
        self._rows.append(row)
        print(json.dumps(row), flush=True)
        self._write()

    def has_time(self, seconds: float, **what: Any) -> bool:
        """May something start that is expected to take this long? If not, a row says so."""
        if 0.0 < self.left >= seconds:
            return True
        self.keep(**what, skipped=f"{seconds:.0f} s expected, {max(self.left, 0.0):.0f} s left")
        return False

    @contextlib.contextmanager
    def guarded(self, **what: Any) -> Iterator[None]:
        """An exception within becomes a row with its message."""
        try:
            yield
        except Exception as error:
            traceback.print_exc(limit=_FRAMES)
            self.keep(**what, error=one_line(error))


class Part(NamedTuple):
    """A part of a benchmark; `share`: of the time, in proportion to those of the others."""

    name: str
    function: Callable[[Record], None]
    share: float


def one_line(error: BaseException) -> str:
    """The kind of an exception, and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:_LONGEST].rstrip(": ")


def run_parts(
    parts: Sequence[Part],
    path: Path,
    contents: dict[str, Any],
    seconds: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    strict: bool = False,
) -> None:
    """Run the parts one after the other, and enter their rows into the file beside `contents`.

    No part starts when the `seconds` are used up; `strict`: then the process ends, too, within
    whatever it is doing (a program that compiles cannot be stopped otherwise).
    """
    end = clock() + seconds
    results = Results(path, contents)
    for k, part in enumerate(parts):
        left = end - clock()
        if left <= 0.0:
            results.enter(part.name, {"skipped": NO_TIME})
            continue
        budget = left * part.share / sum(x.share for x in parts[k:])
        rows: list[dict[str, Any]] = []
        entry: dict[str, Any] = {"budget_seconds": round(budget, 1), "rows": rows}
        print(f"{part.name}: {budget:.0f} s", flush=True)
        results.enter(part.name, entry)
        watch = threading.Timer(left, results.cut_off, [entry])
        watch.daemon = True
        if strict:
            watch.start()
        began = clock()
        try:
            part.function(Record(rows, budget, results.write, clock))
        except Exception as error:
            traceback.print_exc(limit=_FRAMES)
            entry["error"] = one_line(error)
        finally:
            watch.cancel()
            entry["seconds"] = round(clock() - began, 1)
            results.write()
