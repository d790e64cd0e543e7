"""Preparation of the first computation of a command. JAX is loaded here, and not earlier."""

import gc
import importlib
import logging
import re
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text


# --------------------------------------------------------------------------------------------------
# Progress on one line of standard error, while a person waits.
#
# A thread writes the line: the activity of a command, its duration, and the program that JAX is
# compiling. JAX reports this in its log alone, which is read for that. Whatever a command writes to
# standard output wipes the line out first. Nothing is written where standard error is not a
# terminal, with `--json` or with `--quiet`.
# --------------------------------------------------------------------------------------------------


# Shorter activities (s) are not shown; interval between updates of the line (s).
_PATIENCE = 1.0
_EVERY = 0.5

# Length of a bar.
_BAR = 20

_WIPE = Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))

# (Of a program that is kept without the digits at the end of its name.)
_BEGINS = re.compile(r"Compiling (?:jit\()?<?(\w+?)(?:_[0-9a-f]{16})?\b")
_ENDS = "Finished XLA compilation"


class _Line:
    """The line, and its text. `since`: when standard output was last written."""

    def __init__(self, console: Console, what: str):
        self.what, self.compiled = what, ""
        self.programs = 0
        self._console, self._drawn, self._held = console, False, False
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._began = self._since = time.monotonic()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def say(self, what: str) -> None:
        """Something else is going on from now on."""
        with self._lock:
            self.what, self._began = what, time.monotonic()

    def advance(self, what: str) -> None:
        """The same goes on, and has come further."""
        with self._lock:
            self.what = what

    def compiling(self, name: str) -> None:
        """JAX compiles a program; none if `name` is empty."""
        with self._lock:
            self.programs += bool(name)
            self.compiled = name and f", compiling program {self.programs} ({name.strip('_')})"

    def hold(self, held: bool) -> None:
        """Another meter writes, or does so no longer."""
        with self._lock:
            self._held = held
            self._wipe()

    def wipe(self) -> None:
        """Make room for what is written now."""
        with self._lock:
            self._since = time.monotonic()
            self._wipe()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()
        self.wipe()

    def _run(self) -> None:
        while not self._ended.wait(_EVERY):
            with self._lock:
                if not self._held and time.monotonic() - self._since >= _PATIENCE:
                    self._draw()

    def _draw(self) -> None:
        self._wipe()
        text = f"{self.what} ... {time.monotonic() - self._began:.0f} s{self.compiled}"
        room = max(self._console.width - 1, 10)
        self._console.print(Text(text[:room]), end="", soft_wrap=True)
        self._drawn = True

    def _wipe(self) -> None:
        if self._drawn:
            self._console.control(_WIPE)
            self._drawn = False


class _Output:
    """Standard output, which the line makes room for."""

    def __init__(self, stream: Any, line: _Line):
        self._stream, self._line = stream, line

    def write(self, text: str) -> int:
        self._line.wipe()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Compilations(logging.Handler):
    """Passes the messages of JAX's log on its programs to the line alone."""

    def __init__(self, line: _Line):
        logging.Handler.__init__(self, logging.DEBUG)
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        begins = _BEGINS.match(said)
        if begins:
            self._line.compiling(begins[1])
        elif said.startswith(_ENDS):
            self._line.compiling("")


# The command whose progress is wanted, if any, and the line that shows it.
_wanted: list[str] = []
_lines: list[_Line] = []


def want_progress(arguments: Sequence[str]) -> None:
    """Show progress for this command, unless silence is requested. Called by the program alone, so
    that commands called from Python show nothing."""
    if not {"--json", "--quiet", "-q"} & {*arguments} and sys.stderr.isatty():
        _wanted[:] = [word for word in arguments if not word.startswith("-")][:1]


@contextmanager
def progress() -> Iterator[None]:
    """Show the activity until the end of the block, where a line is shown."""
    if not _wanted or _lines:
        yield
        return
    line = _Line(Console(stderr=True, highlight=False), _wanted[0])
    output: Any = _Output(sys.stdout, line)
    before, sys.stdout = sys.stdout, output
    _lines.append(line)
    try:
        with _listening(_Compilations(line)):
            yield
    finally:
        _lines.remove(line)
        sys.stdout = before
        line.end()


@contextmanager
def _listening(handler: logging.Handler) -> Iterator[None]:
    """JAX's log goes to the handler alone."""
    import jax

    log = logging.getLogger("jax")
    before, log.propagate = log.propagate, False
    log.addHandler(handler)
    try:
        with jax.log_compiles():
            yield
    finally:
        log.removeHandler(handler)
        log.propagate = before


def say(what: str) -> None:
    """Sets the displayed activity, such as "integrating"; nothing where no line is shown."""
    for line in _lines:
        line.say(what)


def advance(what: str, part: float) -> None:
    """Sets the displayed progress of an activity, with a bar of the `part` (0 to 1) of it."""
    done = round(_BAR * min(max(part, 0.0), 1.0))
    for line in _lines:
        line.advance(f"{what} [{'#' * done}{'-' * (_BAR - done)}]")


def is_shown() -> bool:
    """Does somebody read what is going on?"""
    return bool(_lines)


@contextmanager
def silence() -> Iterator[bool]:
    """Another meter has the line for the time of the block, if it was shown."""
    for line in _lines:
        line.hold(True)
    try:
        yield is_shown()
    finally:
        for line in _lines:
            line.hold(False)


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
