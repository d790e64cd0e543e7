"""Stores of sweeps: what stands in them, kills, processes, devices, refusals."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import sweep_program
import xarray
import zarr
from representatives import representatives

import jaxmbs as jm


SCRIPT = Path(sweep_program.__file__)
COUNT = 203

# Chunks enough for every kill to find some that are left.
# Cases in chunks of 8, how often their sweep is killed, and how many of these kills come first.
MANY = {"twenty times": (1603, 20, 5), "twice": (403, 2, 1)}

# Files written before the store of a sweep of 20 cases is one; more are written then.
MAKING = 12


class Killed(BaseException):
    """Nothing catches it, as nothing catches a kill."""


class Programs:
    """Sweeps in processes of their own (see `sweep_program.serve`)."""

    def __init__(self, folder):
        environment = os.environ | {
            "JAX_PLATFORMS": "cpu",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPATH": str(Path(jm.__file__).parent.parent),
        }
        self.errors = folder / "errors.txt"
        self.folder, self.started = folder, 0
        with self.errors.open("w") as errors:
            self.server = subprocess.Popen(
                [sys.executable, str(SCRIPT)],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def ask(self, *request):
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())

    def start(self, store, count=COUNT, devices=1, *shared):
        self.started += 1
        told = self.folder / f"told-{self.started}"
        return self.ask("start", str(store), count, devices, str(told), *shared), told

    def finish(self, program):
        process, told = program
        assert self.ask("wait", process) == 0, self.errors.read_text()
        return int(told.read_text())

    def kill(self, program):
        os.kill(program[0], signal.SIGKILL)
        assert self.ask("wait", program[0]) == -signal.SIGKILL, self.errors.read_text()

    def close(self):
        self.server.communicate(timeout=60)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    found = Programs(tmp_path_factory.mktemp("programs"))
    yield found
    found.close()


def group_of(store, mode: Any = "r") -> Any:
    return zarr.open_group(str(store), mode=mode)


def arrays(store):
    return {name: x[:] for name, x in group_of(store).arrays()}


def files_of(store):
    """How many files there are."""
    return sum(len(files) for _, _, files in os.walk(store))


def chunks_of(store):
    """How many chunks are done: each has a file of its own, which appears as a whole."""
    return files_of(store / "done" / "c")


def same(one, other):
    """Every array of two stores, bit for bit."""
    first, second = arrays(one), arrays(other)
    assert first.keys() == second.keys()
    for name in first:
        assert first[name].tobytes() == second[name].tobytes(), name


@pytest.fixture(scope="module")
def whole(programs, tmp_path_factory):
    """The store of an undisturbed sweep by a process with one device."""
    store = tmp_path_factory.mktemp("whole") / "store.zarr"
    assert programs.finish(programs.start(store)) == COUNT
    return store


def own(store, count=COUNT, model=None, question=sweep_program.question, **options):
    options = {"assemble": False, "chunk": 8, "width": 8} | options
    model = sweep_program.model() if model is None else model
    return jm.sweep(question, model, sweep_program.cases(count), store=store, **options)


class TestContents:
    def test_xarray_reads_names_dimensions_and_units(self, whole):
        data = xarray.open_zarr(whole)
        assert data["force"].dims == ("case", "force_0")
        assert data["configuration"].dims == ("case", "coordinate")
        assert data["bodies.arm.mass"].attrs["units"] == "kg"
        assert data["gravity.y"].attrs["units"] == "m/s2"
        assert data.sizes["case"] == COUNT
        assert data.sizes["chunk"] == 26
        assert bool(data["done"].all())
        assert data.attrs["constraints"] == ["pin"]
        assert data["result"].attrs["flag_meanings"].split()[0] == "successful"

    def test_units_of_answers_are_those_given(self, tmp_path):
        found = own(tmp_path / "s.zarr", 20, units={"force": "N, N m"})
        assert found.dataset()["force"].attrs["units"] == "N, N m"

    def test_numbers_against_a_loop(self, whole):
        cases, data = sweep_program.cases(COUNT), xarray.open_zarr(whole)
        mass, gravity, angle = cases.values
        force = np.stack([0 * mass, mass * gravity, 0 * mass], axis=1)
        np.testing.assert_allclose(data["force"].values, force, rtol=1e-14)
        # C = -[1 0 sin(a)/2; 0 1 -cos(a)/2].
        lever = np.sin(0.5 * np.sin(angle)) + np.sin(-0.5 * np.cos(angle))
        wanted = -np.sin(1.0) * (np.exp(0.5) + 1.0) - lever * np.exp(angle)
        np.testing.assert_allclose(data["sum"].values, wanted, rtol=1e-12, atol=1e-12)

    def test_what_was_asked_comes_back(self, whole, tmp_path):
        found = own(tmp_path / "s.zarr", 20)
        assert set(found.answers()) == {"force", "sum"}
        assert found.answers()["force"].shape == (20, 3)
        assert found.configuration.shape == (20, 3)
        again = own(tmp_path / "s.zarr", 20)
        assert (found.computed, again.computed) == (20, 0)
        np.testing.assert_array_equal(found.answers()["sum"], again.answers()["sum"])

    def test_an_address_of_fsspec(self):
        found = own("memory://sweep-test/s.zarr", 20)
        assert own("memory://sweep-test/s.zarr", 20).computed == 0
        np.testing.assert_array_equal(found.answers()["sum"], own(None, 20).answers()["sum"])


class TestResuming:
    @pytest.mark.parametrize("times", representatives(MANY, "twice"))
    def test_killed_at_random_moments(self, times, programs, tmp_path, rng):
        """The first kills may fall into the making of the store, the others fall among chunks."""
        whole, store = tmp_path / "whole.zarr", tmp_path / "store.zarr"
        many, kills, early = MANY[times]
        chunks = -(-many // 8)
        assert programs.finish(programs.start(whole, many)) == many
        for k, delay in enumerate(rng.uniform(0.0, 0.05, kills)):
            seen = files_of if k < early else chunks_of
            before = seen(store)
            program, limit = programs.start(store, many), time.monotonic() + 300
            while seen(store) == before:
                assert time.monotonic() < limit, programs.errors.read_text()
                time.sleep(0.003)
            time.sleep(delay)
            programs.kill(program)
        sizes = np.full(chunks, 8)
        sizes[-1] = many - (chunks - 1) * 8
        ended = arrays(store)["done"].astype(bool)
        assert kills - early <= ended.sum() < chunks
        assert programs.finish(programs.start(store, many)) == sizes[~ended].sum()
        same(whole, store)

    def test_a_half_written_chunk_is_computed_again(self, programs, whole, tmp_path):
        store = tmp_path / "store.zarr"
        shutil.copytree(whole, store)
        group = group_of(store, "r+")
        group["done"][7] = 0
        group["force"][56:60] = 77.0
        (store / "force" / "c" / "x.partial").write_bytes(b"half")
        assert programs.finish(programs.start(store)) == 8
        same(whole, store)
        assert not list(store.rglob("*.partial"))

    def test_a_store_that_was_being_made_is_made_again(self, tmp_path):
        store = tmp_path / "store.zarr"
        own(store, 20)
        group = group_of(store, "r+")
        group.attrs["jaxmbs_sweep"] = dict(group.attrs["jaxmbs_sweep"]) | {"ready": False}
        assert own(store, 20).computed == 20

    def test_killed_in_each_file_of_the_making(self, tmp_path, monkeypatch):
        """Another sweep, half made, is in the way of the first one; no kill leaves a stranger."""
        whole, store = tmp_path / "whole.zarr", tmp_path / "store.zarr"
        own(whole, 20)
        opened = Path.open
        for before_it in range(MAKING):
            left = [before_it]

            def dies(path, mode="r", *arguments, left=left, **options):
                if path.suffix == ".partial":
                    left[0] -= 1
                    if left[0] < 0:
                        opened(path, mode, *arguments, **options).close()
                        raise Killed
                return opened(path, mode, *arguments, **options)

            with monkeypatch.context() as patch:
                patch.setattr(Path, "open", dies)
                with pytest.raises(Killed):
                    own(store, 20, chunk=4 + before_it % 2)
            assert any(store.rglob("*.partial"))
        assert own(store, 20).computed == 20
        same(whole, store)
        assert not list(store.rglob("*.partial"))


class TestSharing:
    def test_two_processes(self, programs, whole, tmp_path):
        store = tmp_path / "store.zarr"
        with socket.socket() as probe:
            probe.bind(("localhost", 0))
            port = probe.getsockname()[1]
        both = [programs.start(store, COUNT, 1, index, 2, port) for index in range(2)]
        assert [programs.finish(program) for program in both] == [COUNT, COUNT]
        same(whole, store)

    def test_eight_devices(self, programs, whole, tmp_path):
        assert programs.finish(programs.start(tmp_path / "store.zarr", COUNT, 8)) == COUNT
        same(whole, tmp_path / "store.zarr")


class TestRefusals:
    def test_other_cases_models_and_questions(self, tmp_path):
        store = tmp_path / "s.zarr"
        own(store, 20)
        heavier = jm.Model(
            "arm",
            2,
            bodies=[jm.planar.Body("arm", mass=1.0, inertia=0.2, position=(0.5, 0.0))],
            joints=[jm.planar.Revolute("pin", ("ground", "arm"), (0.0, 0.0))],
            gravity=(0.0, -9.81),
        )
        before = arrays(store)
        for changed in (
            lambda: own(store, 21),
            lambda: own(store, 20, heavier),
            lambda: own(store, 20, question=lambda s, q, v, t: {"force": 2 * s.force(q, v, t)}),
            lambda: own(store, 20, width=16, chunk=16),
        ):
            with pytest.raises(ValueError, match="holds another sweep"):
                changed()
        after = arrays(store)
        assert all(np.array_equal(before[name], after[name]) for name in before)

    def test_other_chunks(self, tmp_path):
        own(tmp_path / "s.zarr", 20)
        with pytest.raises(ValueError, match="chunks of 8 cases, not 16"):
            own(tmp_path / "s.zarr", 20, chunk=16)

    def test_a_folder_that_holds_something_else(self, tmp_path):
        (tmp_path / "letter.txt").write_text("dear")
        with pytest.raises(ValueError, match="is no store of a sweep"):
            own(tmp_path, 20)
        assert [x.name for x in tmp_path.iterdir()] == ["letter.txt"]

    def test_an_address_that_holds_other_arrays(self):
        address = "memory://sweep-test/others.zarr"
        group_of(address, "w").create_array("letter", data=np.arange(3.0))
        for other in (address, f"{address}/letter"):
            with pytest.raises(ValueError, match="is no store of a sweep"):
                own(other, 20)
        np.testing.assert_array_equal(arrays(address)["letter"], np.arange(3.0))

    def test_bad_input_leaves_nothing(self, tmp_path):
        store = tmp_path / "s.zarr"
        with pytest.raises(ValueError, match="mass must be greater than zero"):
            jm.sweep(
                sweep_program.question,
                sweep_program.model(),
                jm.Cases({"bodies.arm.mass": [1.0, -1.0]}),
                store=store,
            )
        assert not store.exists()

    def test_a_question_that_cannot_be_asked_leaves_nothing(self, tmp_path):
        def wrong(system, q, v, t):
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            own(tmp_path / "s.zarr", 20, question=wrong)
        assert not (tmp_path / "s.zarr").exists()


def test_the_digest_sees_what_a_function_closes_over():
    from jaxmbs._sweep._running import digest

    def times(factor):
        return lambda x: factor * x

    assert digest(times(2.0)) == digest(times(2.0))
    assert digest(times(2.0)) != digest(times(3.0))
    assert digest(times(np.ones(3))) != digest(times(np.zeros(3)))
    assert digest(jax.jit(times(2.0))) != digest(jax.jit(times(3.0)))
    assert digest({"a": 1}) != digest({"a": 1.5})
