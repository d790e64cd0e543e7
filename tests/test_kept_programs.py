"""Compiled programs on disk: found again by another process, safe where several write at once or
one was killed, and never where the user has settled it otherwise. Each test has a home of its
own."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pytest
from typer.testing import CliRunner

import jaxmbs as jm
from jaxmbs._compiler_flags import compile_small_loops_whole
from jaxmbs._programs import _options, Compiling
from jaxmbs._programs._options import compiler_options
from jaxmbs.cli._app import app


# It tells how many of its programs were found, and how many written.
PROBE = """
import jax
import jaxmbs as jm
from jax import numpy
events = []
jax.monitoring.register_event_listener(lambda name, **_: events.append(name.split("/")[-1]))
print(jm.keep_programs({settings}))
for function in {functions}:
    jax.jit(function)(1.0)
print(events.count("cache_hits"), events.count("cache_misses"))
"""


def start(
    home: Path, settings: str = "", functions: str = "[lambda x: x + 1, lambda x: x * 3]"
) -> subprocess.Popen[str]:
    """A process of a user with this home, who has settled nothing else."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "JAXMBS", "XDG"))}
    own = {"JAX_PLATFORMS": "cpu", "HOME": str(home), "XDG_CACHE_HOME": str(home / "caches")}
    return subprocess.Popen(
        [sys.executable, "-c", PROBE.format(settings=settings, functions=functions)],
        env=kept | own,
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> tuple[str, int, int]:
    """The folder, programs found and programs written. No process complains of anything."""
    out, complaints = process.communicate()
    assert (process.returncode, complaints) == (0, "")
    folder, counts = out.splitlines()
    found, written = map(int, counts.split())
    return folder, found, written


def programs(home: Path) -> list[Path]:
    return sorted(home.rglob("*-cache"))


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """A home in which three processes kept the same programs at once."""
    home = tmp_path_factory.mktemp("home")
    for folder, found, missed in map(end, [start(home) for _ in range(3)]):
        assert Path(folder).parent == home / "caches" / "jaxmbs"
        assert Path(folder).stat().st_mode & 0o077 == 0
        assert found + missed >= 2
    return home


@pytest.fixture
def home(written, tmp_path) -> Iterator[Path]:
    """The same for one test, at the same place: JAX's keys know their folder."""
    shutil.copytree(written, tmp_path / "copy")
    yield written
    shutil.rmtree(written)
    shutil.copytree(tmp_path / "copy", written)


class TestProcesses:
    def test_what_several_wrote_at_once_is_found_by_the_next(self, home):
        count = len(programs(home))
        assert end(start(home))[1:] == (count, 0)

    def test_what_a_killed_one_left_is_written_anew(self, home):
        """JAX writes a program first, and then the time of its use: half a program has none. A
        time without its program keeps it from removing anything."""
        count = len(programs(home))
        for path in programs(home):
            path.write_bytes(path.read_bytes()[:100])
            path.with_name(path.name.removesuffix("-cache") + "-atime").unlink()
        (programs(home)[0].parent / "jit_gone-atime").write_bytes(bytes(8))
        assert end(start(home))[1:] == (0, count)
        assert not list(home.rglob("jit_gone*"))

    def test_a_folder_that_cannot_be_written_is_read(self, home):
        """The lock cannot be opened, as where the folder belongs to another user."""
        count = len(programs(home))
        lock = next(home.rglob(".lockfile"))
        lock.unlink()
        lock.mkdir()
        both = "[lambda x: x + 1, lambda x: x * 3, lambda x: x - 7]"
        _, found, missed = end(start(home, functions=both))
        assert (found, missed) == (count, 0)
        assert len(programs(home)) == count

    def test_the_largest_size_holds(self, tmp_path):
        """Programs with 80,000 random numbers take 0.3 MB each."""
        noise = "__import__('numpy').random.default_rng({}).random(80_000)"
        functions = ", ".join(f"lambda x: x + {noise.format(seed)}" for seed in range(4))
        settings = f"{str(tmp_path / 'own')!r}, megabytes=1"
        folder, _, missed = end(start(tmp_path, settings, f"[{functions}]"))
        assert missed >= 4
        sizes = [path.stat().st_size for path in programs(Path(folder))]
        assert 0.5e6 < sum(sizes) <= 1e6


CACHE = "jax_compilation_cache_dir"
SIZE = "jax_compilation_cache_max_size"
SETTINGS: dict[str, Any] = {
    CACHE: None,
    SIZE: -1,
    "jax_enable_compilation_cache": True,
    "jax_persistent_cache_min_compile_time_secs": 1.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
}


@pytest.fixture
def untouched(tmp_path, monkeypatch) -> Iterator[Path]:
    """JAX as it is imported, for a user with this folder for caches. (No test with it compiles
    anything: JAX's cache is that of all tests.)"""
    before = {name: getattr(jax.config, name) for name in SETTINGS}
    for name, value in SETTINGS.items():
        monkeypatch.delenv(name.upper(), raising=False)
        jax.config.update(name, value)
    monkeypatch.delenv("JAXMBS_NO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    yield tmp_path
    for name, value in before.items():
        jax.config.update(name, value)


class TestSettings:
    def test_a_folder_of_ones_own_and_a_second_call(self, untouched):
        folder = jm.keep_programs(untouched / "own", megabytes=7)
        assert folder is not None
        assert folder.parent == untouched / "own"
        assert getattr(jax.config, CACHE) == str(folder)
        assert getattr(jax.config, SIZE) == 7_000_000
        assert jm.keep_programs() is None
        assert getattr(jax.config, CACHE) == str(folder)
        assert not (untouched / "caches").exists()

    @pytest.mark.parametrize(
        ("name", "value"), [(CACHE, "/elsewhere"), ("jax_enable_compilation_cache", False)]
    )
    def test_what_jax_was_told_of_its_cache_stands(self, untouched, name, value):
        jax.config.update(name, value)
        now = {name: getattr(jax.config, name) for name in SETTINGS}
        assert jm.keep_programs() is None
        assert {name: getattr(jax.config, name) for name in SETTINGS} == now
        assert not any(untouched.iterdir())

    def test_and_so_does_what_it_was_told_of_size_and_time(self, untouched, monkeypatch):
        monkeypatch.setenv(SIZE.upper(), "-1")
        seconds = "jax_persistent_cache_min_compile_time_secs"
        jax.config.update(seconds, 0.25)
        assert jm.keep_programs() is not None
        assert getattr(jax.config, SIZE) == -1
        assert getattr(jax.config, seconds) == 0.25

    def test_without_a_folder_there_is_a_warning(self, untouched):
        (untouched / "file").write_text("no folder")
        with pytest.warns(UserWarning, match="not kept: the folder .* cannot be made"):
            assert jm.keep_programs(untouched / "file") is None
        assert getattr(jax.config, CACHE) is None


class TestCommandLine:
    """By a command that loads JAX and compiles nothing."""

    RULES = ("lint", "--rules")

    def test_it_keeps_programs(self, untouched):
        assert CliRunner().invoke(app, self.RULES).exit_code == 0
        assert getattr(jax.config, CACHE).startswith(str(untouched / "caches" / "jaxmbs"))

    @pytest.mark.parametrize("option", [["--no-cache"], []])
    def test_an_option_and_a_variable_turn_that_off(self, untouched, monkeypatch, option):
        if not option:
            monkeypatch.setenv("JAXMBS_NO_CACHE", "1")
        assert CliRunner().invoke(app, [*option, *self.RULES]).exit_code == 0
        assert getattr(jax.config, CACHE) is None
        assert not (untouched / "caches").exists()

    def test_without_a_folder_it_says_so_and_goes_on(self, untouched):
        (untouched / "caches").write_text("no folder")
        result = CliRunner().invoke(app, [*self.RULES, "--json"])
        assert result.exit_code == 0
        assert result.stderr.startswith("jaxmbs: compiled programs are not kept: the folder ")
        assert result.stderr.count("\n") == 1
        assert result.stdout.startswith('{"rules"')


class TestCompiler:
    LOOPS = "xla_cpu_small_while_loop_byte_threshold"

    @pytest.fixture(autouse=True)
    def _nothing_is_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("XLA_FLAGS", raising=False)

    def test_small_loops_are_one_function_each_where_motions_only_run(self):
        assert CliRunner().invoke(app, ["simulate", "no.toml", "--end", "1"]).exit_code == 2
        assert self.LOOPS in os.environ["XLA_FLAGS"]
        # It is not the user who says so.
        assert compiler_options(Compiling.QUICK)

    def test_other_questions_set_nothing(self):
        assert CliRunner().invoke(app, ["analyze", "no.toml"]).exit_code == 2
        assert "XLA_FLAGS" not in os.environ

    def test_options_belong_to_programs(self, monkeypatch: pytest.MonkeyPatch):
        assert set(compiler_options(Compiling.QUICK)) < set(compiler_options(Compiling.ONCE))
        monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
        assert compiler_options(Compiling.ONCE) == {}

    def test_a_compiler_that_does_not_know_an_option_gets_none(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(_options, "_unknown", [])
        lowered = jax.jit(lambda x: x + 1).lower(1.0)
        for _ in range(2):
            program = _options.compiled(lowered, {"xla_no_such_option": True})
            assert float(program(1.0)) == 2.0
        assert _options._unknown == [{"xla_no_such_option": True}]

    def test_settings_of_the_user_stand(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
        assert CliRunner().invoke(app, ["simulate", "no.toml", "--end", "1"]).exit_code == 2
        assert os.environ["XLA_FLAGS"] == "--xla_cpu_enable_fast_math=false"

    def test_motions_that_are_differentiated_are_left_alone(self):
        assert CliRunner().invoke(app, ["design", "no.toml"]).exit_code == 2
        assert "XLA_FLAGS" not in os.environ

    @pytest.mark.parametrize("version", ["0.5.3", "0.11.0", "1.0.0.dev1"])
    def test_versions_that_may_not_know_the_flags_get_none(
        self, version: str, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(importlib.metadata, "version", lambda _: version)
        compile_small_loops_whole()
        assert "XLA_FLAGS" not in os.environ

    def test_the_compiler_knows_the_flags(self):
        """One that does not ends the process."""
        program = (
            "from jaxmbs._compiler_flags import compile_small_loops_whole as set_flags; "
            "set_flags(); import jax; print(jax.jit(lambda x: x + 1)(1.0))"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
        assert float(done.stdout) == 2.0
