"""Parts of a benchmark that share a limited time, and the one for a GPU in small."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def parts(monkeypatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("_parts")


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def failing(record: Any) -> None:
    record.keep(number=1)
    raise ValueError("out of memory\nand more about it")


def test_a_part_that_raises_is_recorded_and_the_others_go_on(parts, tmp_path):
    path = tmp_path / "out.json"
    chosen = [parts.Part("bad", failing, 1.0), parts.Part("good", lambda r: r.keep(number=2), 1.0)]
    parts.run_parts(chosen, path, {"hardware": "here"}, 100.0, clock=Clock())
    found = read(path)
    assert found["hardware"] == "here"
    assert found["bad"]["rows"] == [{"number": 1}]
    assert found["bad"]["error"] == "ValueError: out of memory"
    assert found["good"]["rows"] == [{"number": 2}]
    assert "error" not in found["good"]
    assert sorted(tmp_path.iterdir()) == [path]


def test_the_file_is_whole_after_each_row(parts, tmp_path):
    path = tmp_path / "out.json"
    seen = []

    def steps(record: Any) -> None:
        seen.append(read(path)["part"]["rows"])
        for k in range(2):
            record.keep(number=k)
            seen.append(read(path)["part"]["rows"])

    def after(record: Any) -> None:
        seen.append(read(path)["part"]["seconds"])

    chosen = [parts.Part("part", steps, 1.0), parts.Part("after", after, 1.0)]
    parts.run_parts(chosen, path, {}, 100.0, clock=Clock())
    rows = [{"number": 0}, {"number": 1}]
    assert seen == [[], rows[:1], rows, 0.0]


def test_nothing_starts_after_the_time_is_used_up(parts, tmp_path):
    """What one part takes too long is taken from the others; what it leaves goes to them."""
    path, clock = tmp_path / "out.json", Clock()

    def lasting(seconds: float) -> Any:
        def part(record: Any) -> None:
            clock.now += seconds

        return part

    times = {"short": 10.0, "long": 80.0, "late": 10.0, "never": 0.0}
    chosen = [parts.Part(name, lasting(seconds), 1.0) for name, seconds in times.items()]
    parts.run_parts(chosen, path, {}, 100.0, clock=clock)
    found = read(path)
    budgets = [found[name].get("budget_seconds") for name in times]
    assert budgets == [25.0, 30.0, 5.0, None]
    assert found["never"] == {"skipped": parts.NO_TIME}


def test_what_takes_longer_than_is_left_is_not_tried(parts):
    clock, rows = Clock(), []
    record = parts.Record(rows, 60.0, lambda: None, clock)
    assert record.has_time(60.0, runs=8)
    half = record.share(0.5)
    assert not half.has_time(31.0, runs=64)
    clock.now += 60.0
    assert not record.has_time(0.0, runs=128)
    assert [row["runs"] for row in rows] == [64, 128]
    assert rows[0]["skipped"] == "31 s expected, 30 s left"


def test_a_row_that_raises_is_recorded_and_the_next_one_goes_on(parts):
    rows = []
    record = parts.Record(rows, 1.0, lambda: None, Clock())
    for runs in (8, 64):
        with record.guarded(runs=runs):
            record.keep(rate=1 / (64 - runs))
    assert rows == [{"rate": 1 / 56}, {"runs": 64, "error": "ZeroDivisionError: division by zero"}]


def test_a_process_that_uses_up_its_time_is_ended_with_what_it_has(parts, tmp_path):
    """As a program that compiles cannot be stopped otherwise."""
    path = tmp_path / "out.json"
    program = f"""
import pathlib, sys, time
sys.path.insert(0, {str(BENCHMARKS)!r})
from _parts import Part, run_parts
def lasting(record):
    record.keep(number=1)
    time.sleep(60.0)
run_parts([Part("lasting", lasting, 1.0)], pathlib.Path({str(path)!r}), {{}}, 2.0, strict=True)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=50)
    found = read(path)["lasting"]
    assert found["rows"] == [{"number": 1}]
    assert found["cut_off"]
    assert "seconds" not in found


def test_the_output_of_tests_is_counted(gpu):
    text = """
tests/test_a.py::test_one PASSED                                         [ 25%]
tests/test_a.py::test_two[a - b] FAILED                                  [ 50%]
tests/test_a.py::test_three SKIPPED                                      [ 75%]
tests/test_b.py::test_four ERROR                                         [100%]
FAILED tests/test_a.py::test_two[a - b] - AssertionError: 1 is not 2
"""
    assert gpu.outcomes(text) == {
        "passed": 1,
        "failed": 2,
        "failures": {
            "tests/test_a.py::test_two[a - b]": "AssertionError: 1 is not 2",
            "tests/test_b.py::test_four": "",
        },
    }


def test_tests_of_the_sample_are_there(gpu):
    for plan in (gpu.FULL, gpu.SMALL):
        for name in plan.tests:
            file, *test = name.split("::")
            text = (Path(__file__).parent / file).read_text()
            assert all(re.search(rf"(def|class) {x}\b", text) for x in test), name


@pytest.fixture
def gpu(monkeypatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("gpu")


@pytest.mark.thorough
def test_a_small_run_measures_every_part(tmp_path):
    path = tmp_path / "out.json"
    command = [sys.executable, str(BENCHMARKS / "gpu.py"), "--small", "--out", str(path)]
    root = os.pathsep.join([str(BENCHMARKS.parent), os.environ.get("PYTHONPATH", "")])
    subprocess.run(command, env=os.environ | {"PYTHONPATH": root}, check=True, timeout=480)
    found = read(path)
    assert found["hardware"]["cores"]
    for name in ("verdicts", "sweeps", "motions", "multistart", "tests"):
        assert "error" not in found[name], name
        assert found[name]["rows"]
        assert not any("error" in row or "skipped" in row for row in found[name]["rows"]), name
    ends = [row for row in found["motions"]["rows"] if "duration" in row]
    assert all(row["succeeded"] == row["runs"] for row in ends)
    assert all(row["closure_error"] < 1e-12 for row in ends)
    (counted,) = found["tests"]["rows"]
    assert (counted["passed"], counted["failed"]) == (1, 0)
