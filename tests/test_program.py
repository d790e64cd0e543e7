"""What a user expects of any program: its version, completion, progress, silence, Ctrl-C."""

import io
import logging
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import jax.numpy as jnp
import pytest
from rich.console import Console
from typer.testing import CliRunner

import jaxmbs
import jaxmbs_program
from jaxmbs import cli
from jaxmbs._dynamics import _chunks
from jaxmbs.cli import _computing, _interrupt, _load
from jaxmbs.cli._app import app, with_common_options_first
from jaxmbs.cli._interrupt import ending_promptly
from jaxmbs.cli._options import complete_built_in, complete_model


def run(*arguments: str, status: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(app, [*arguments], catch_exceptions=False)
    assert result.exit_code == status, result.stderr
    return result.stdout, result.stderr


# ---------------------------------------------------------------------------------------------
# Namespaces
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["finite_elements", "io", "plot", "report", "view"])
def test_what_needs_extras_is_there_when_it_is_asked_for(name: str):
    assert getattr(jaxmbs, name).__name__ == f"jaxmbs.{name}"
    assert name in dir(jaxmbs)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    for name in [*sys.modules]:
        if name == "jaxmbs.plot" or name.startswith("jaxmbs.plot."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(jaxmbs, "plot", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(jaxmbs.io.ModelError, match=r"needs matplotlib.*'jaxmbs\[cli\]'"):
        _ = jaxmbs.plot


def test_other_names_are_none():
    with pytest.raises(AttributeError, match="'jaxmbs' has no attribute 'plots'"):
        _ = jaxmbs.plots  # pyright: ignore[reportAttributeAccessIssue]


# ---------------------------------------------------------------------------------------------
# Options of all commands
# ---------------------------------------------------------------------------------------------


def test_version():
    assert run("--version") == (f"jaxmbs {jaxmbs.__version__}\n", "")


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("analyze door --quiet", "--quiet analyze door"),
        ("list -q --no-cache --json", "-q --no-cache list --json"),
        ("analyze -- --quiet", "analyze -- --quiet"),
    ],
)
def test_common_options_stand_anywhere(given: str, taken: str):
    assert with_common_options_first(given.split()) == taken.split()


def test_quiet_says_nothing_of_the_cache(monkeypatch: pytest.MonkeyPatch):
    def warn() -> None:
        warnings.warn("no folder", stacklevel=1)

    monkeypatch.delenv("JAXMBS_NO_CACHE")
    monkeypatch.setattr("jaxmbs._programs.keep_programs", warn)
    assert run("lint", "--rules")[1] == "jaxmbs: no folder\n"
    assert run("--quiet", "lint", "--rules")[1] == ""


# ---------------------------------------------------------------------------------------------
# Completion
# ---------------------------------------------------------------------------------------------


def test_completion_offers_mechanisms_files_and_folders(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    for name in ("door.toml", "dot.csv", ".hidden.toml"):
        (tmp_path / name).touch()
    (tmp_path / "doors").mkdir()
    (tmp_path / "doors" / "one.toml").touch()
    monkeypatch.chdir(tmp_path)
    assert [name for name, _ in complete_built_in("doo")] == ["door"]
    assert [name for name, _ in complete_model("do")] == ["door", "door.toml", "doors/"]
    assert [name for name, _ in complete_model("doors/")] == ["doors/one.toml"]
    assert [name for name, _ in complete_model("./doors/o")] == ["./doors/one.toml"]
    assert complete_model("nowhere/") == []
    hidden = [name for name, _ in complete_model("")]
    assert {"mobile-robot", "door.toml", "doors/"} <= {*hidden}
    assert ".hidden.toml" not in hidden


def test_the_shell_is_told():
    script = run("--show-completion", "bash")[0]
    assert "_COMPLETE" in script


# ---------------------------------------------------------------------------------------------
# Progress
# ---------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Terminal:
    """Standard error of a command, on which the line is written at once."""
    written = Terminal()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(_computing, "_PATIENCE", 0.0)
    monkeypatch.setattr(_computing, "_EVERY", 0.005)
    monkeypatch.setattr(_computing, "_wanted", [])
    _computing.want_progress(arguments)
    return written


def wait_for(terminal: Terminal, words: str) -> None:
    for _ in range(1000):
        if words in terminal.getvalue():
            return
        time.sleep(0.005)
    raise AssertionError(f"{terminal.getvalue()!r} does not say {words!r}")


def test_progress_says_what_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    terminal = terminal_of(monkeypatch, "simulate", "door")
    output = sys.stdout
    with _computing.progress():
        wait_for(terminal, "simulate ... 0 s")
        _computing.say("simulate: integrating")
        wait_for(terminal, "simulate: integrating ... 0 s")
        log = logging.getLogger("jax._src.interpreters.pxla")
        log.warning("Compiling jit(_run) with global shapes")
        wait_for(terminal, "compiling program 1 (run)")
        log.warning("Finished XLA compilation of jit(_run) in 1 sec")
        # A real program, in whose log the same words must stand.
        jnp.zeros(3).at[1].add(jnp.arange(3.0)[2]).block_until_ready()
        assert _computing._lines[0].programs > 1
        _computing.advance("simulate: at 3 of 10 s", 0.3)
        wait_for(terminal, "simulate: at 3 of 10 s [######--------------] ... ")
        print("answer")
    assert sys.stdout is output
    assert capsys.readouterr().out == "answer\n"
    # The last that was written wipes the line out.
    assert terminal.getvalue().rstrip("\n").endswith("\x1b[2K")


def test_another_meter_has_the_line(monkeypatch: pytest.MonkeyPatch):
    terminal = terminal_of(monkeypatch, "sweep")
    with _computing.progress():
        wait_for(terminal, "sweep")
        with _computing.silence() as shown:
            assert shown
            before = terminal.getvalue()
            time.sleep(0.05)
            assert terminal.getvalue() == before
        terminal.truncate(0)
        wait_for(terminal, "sweep")


@pytest.mark.parametrize("option", ["--json", "--quiet", "-q"])
def test_nothing_is_said_where_nothing_is_wanted(monkeypatch: pytest.MonkeyPatch, option: str):
    terminal = terminal_of(monkeypatch, "analyze", "door", option)
    with _computing.progress(), _computing.silence() as shown:
        time.sleep(0.03)
        assert not shown
    assert terminal.getvalue() == ""


def test_lines_are_no_longer_than_the_terminal():
    written = Terminal()
    console = Console(file=written, force_terminal=True, width=20)
    line = _computing._Line(console, "a text that is longer than the terminal is wide")
    with line._lock:
        line._draw()
    line.end()
    assert max(map(len, written.getvalue().split("\r"))) < 20


# ---------------------------------------------------------------------------------------------
# Ctrl-C
# ---------------------------------------------------------------------------------------------


def test_an_interrupted_command_says_one_line(monkeypatch: pytest.MonkeyPatch):
    def interrupted(model: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_load, "load", interrupted)
    assert run("analyze", "door", status=130) == ("", "jaxmbs: stopped.\n")


def test_a_simulation_that_is_stopped_keeps_what_it_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    told: list[tuple[str, float]] = []

    def tell(what: str, part: float) -> None:
        told.append((what, part))
        if len(told) > 5:
            raise KeyboardInterrupt

    for name, value in (("_FIRST_STATES", 5), ("_FIRST_STEPS", 2), ("_SHORT", 0.0)):
        monkeypatch.setattr(_chunks, name, value)
    monkeypatch.setattr("jaxmbs.cli._simulate.advance", tell)
    out = tmp_path / "part.npz"
    arguments = ["simulate", "slider-crank", "--end", "100", "--every", "0.01", "--out", str(out)]
    shown, said = run(*arguments, status=130)
    part = jaxmbs.io.load_trajectory(out, jaxmbs.mechanisms.get("slider-crank").system())
    last = float(part.times[-1])
    assert 0 < last < 100
    assert said == (
        f"jaxmbs: stopped at {last:.9g} s, before the end at 100 s. What was computed until then "
        f"is in {str(out)!r}.\n"
    )
    assert f"state at {last:.9g} s" in shown
    assert "crank" in shown
    what, part = told[-1]
    assert what.startswith("simulate: at ")
    assert what.endswith(" of 100 s")
    assert part == pytest.approx(last / 100, abs=0.01)
    told.clear()
    assert run(*arguments, "--json", status=130)[0] == ""


_BUSY = """
import hashlib, runpy, sys
with runpy.run_path(sys.argv[1])["ending_promptly"]():
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
"""


def test_a_compiled_loop_is_interrupted_too():
    """As one that runs for minutes without coming back to Python."""
    path = Path(cli.__file__).parent / "_interrupt.py"
    with subprocess.Popen(
        [sys.executable, "-c", _BUSY, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        # Until it is in the loop.
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "jaxmbs: stopped.\n")


def test_a_command_that_keeps_what_it_has_takes_its_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_interrupt, "_PATIENCE", 0.01)
    left: list[int] = []
    monkeypatch.setattr("os._exit", left.append)
    before = signal.getsignal(signal.SIGINT)
    with ending_promptly(), _interrupt.keeping():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        time.sleep(0.1)
    assert left == []
    assert signal.getsignal(signal.SIGINT) == before
    assert not _interrupt._keeping.is_set()


def test_what_hears_of_ctrl_c_ends_with_the_command():
    before = threading.active_count()
    with ending_promptly():
        assert threading.active_count() == before + 1
        # Python comes back at once.
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert threading.active_count() == before
    assert signal.set_wakeup_fd(-1) == -1


def test_before_and_after_commands_ctrl_c_says_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def interrupted() -> None:
        raise KeyboardInterrupt

    left = []
    monkeypatch.setattr(cli, "_run", interrupted)
    monkeypatch.setattr("os._exit", left.append)
    cli.main()
    assert left == [130]
    assert capsys.readouterr().err == "jaxmbs: stopped.\n"


_LOADING = """
import signal, sys, types
loads = types.ModuleType("jaxmbs.cli")
loads.__getattr__ = lambda name: signal.raise_signal(signal.SIGINT)
sys.modules["jaxmbs"], sys.modules["jaxmbs.cli"] = types.ModuleType("jaxmbs"), loads
import jaxmbs_program
jaxmbs_program.main()
"""


def test_ctrl_c_while_the_package_is_loaded():
    done = subprocess.run(
        [sys.executable, "-c", _LOADING],
        cwd=Path(jaxmbs_program.__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "jaxmbs: stopped.\n")


# ---------------------------------------------------------------------------------------------
# Mistakes
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("simulate slider-crank --end 1e-320", "too close to the start"),
        ("kinematics slider-crank --end 1e-320 --every 1", "too close to the start"),
        (
            "sweep slider-crank --over bodies.crank.mass=1:2:2 --random 2 --seed -1 --out x.zarr",
            "--seed must be at least 0",
        ),
        ("analyze .", "nor a built-in mechanism"),
    ],
)
def test_mistakes_are_told_in_a_sentence(arguments: str, words: str):
    out, said = run(*arguments.split(), status=2)
    assert out == ""
    assert words in said
    assert len(said.splitlines()) == 1
