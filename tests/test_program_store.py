"""Executables on disk: the same answers without tracing, and nothing loaded that is not whole, of
this code and the user's own."""

import contextlib
import errno
import functools
import operator
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs import _geometry
from jaxmbs._programs import _program, Compiling, forget_programs, sealed
from jaxmbs._programs._options import compiler_options
from jaxmbs._programs._program import program, use_store
from jaxmbs._programs._store import Identity, Store, Unnameable


MEGABYTE = 1_000_000


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the functions that were traced to be compiled."""
    names: list[str] = []
    kind = _program._Function
    before = kind._traced_anew

    def noting(self: Any, *args: Any) -> Any:
        names.append(self._function.__name__)
        return before(self, *args)

    monkeypatch.setattr(kind, "_traced_anew", noting)
    return names


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in which programs are kept for the time of a test."""
    place = tmp_path / "kept"
    place.mkdir(mode=0o700)
    anew(place)
    yield place
    use_store(None)
    forget_programs()


def anew(place: Path) -> None:
    """What another process begins with."""
    forget_programs()
    use_store(Store(place, 100 * MEGABYTE))


def kept(place: Path) -> list[Path]:
    return sorted(place.glob("*.program"))


def turned() -> jax.Array:
    """The answer of a small program of the package."""
    return _geometry.rotation_from_quaternion(jnp.asarray([1.0, 2.0, 3.0, 4.0]))


def test_a_second_process_traces_nothing(folder: Path, traced: list[str]):
    first, other = (jm.mechanisms.get("door").system() for _ in range(2))
    report = jm.analyze(first, first.reference_q)
    assert traced == ["_analyze"] or "_analyze" in traced
    anew(folder)
    traced.clear()
    found = jm.analyze(other, other.reference_q)
    assert traced == []
    assert found.structure is other.structure
    assert eqx.tree_equal(found, report)
    assert str(found) == str(report)


def test_other_numbers_are_the_same_program(folder: Path, traced: list[str]):
    system = jm.mechanisms.get("door").system()
    energy = system.energy(system.reference_q, system.initial_v, 0.0)
    anew(folder)
    traced.clear()
    heavier = eqx.tree_at(lambda s: s.gravity, system, 2 * system.gravity)
    doubled = heavier.energy(system.reference_q, system.initial_v, 0.0)
    assert traced == []
    assert np.asarray(doubled[1]) == 2 * np.asarray(energy[1])


def test_numbers_on_the_default_device_are_the_same_program(folder: Path, traced: list[str]):
    q = jnp.asarray([1.0, 2.0, 3.0, 4.0])
    turn = _geometry.rotation_from_quaternion
    anywhere = turn(q)
    there = turn(jax.device_put(q, jax.devices()[0]))
    assert len(traced) == 1
    assert np.array_equal(anywhere, there)
    assert len(kept(folder)) == 1


def test_a_second_sweep_compiles_nothing(folder: Path, traced: list[str]):
    cases = jm.Cases({"gravity.2": np.linspace(-9.81, 9.81, 3)})
    sweep = functools.partial(jm.sweep, jm.sweeps.Certification(), jm.mechanisms.get("door"), cases)
    first = sweep(assemble=False)
    assert "run_batches" in traced
    anew(folder)
    traced.clear()
    second = sweep(assemble=False)
    assert traced == []
    assert eqx.tree_equal(second.answers(), first.answers())


def test_what_a_program_depends_on():
    def name(*arguments: Any) -> bytes:
        return Identity().arguments(arguments)

    door, again, other = (
        jm.mechanisms.get(word).system() for word in ("door", "door", "parallelogram")
    )
    assert name(door) == name(again) != name(other)
    # Used properties of a structure are no part of it.
    assert door.structure.geometric.any()
    assert name(door) == name(again)
    q = door.reference_q
    assert name(q) == name(2 * q) != name(q[:-1])
    assert name(q) != name(q.astype(int))
    assert name(1.0) != name(2.0)
    assert name(1) != name(1.0) != name("1.0")
    assert name(("a", "b")) != name(("ab", ""))
    assert name(jm.formulations.NullSpace()) != name(jm.formulations.UdwadiaKalaba())
    made = Identity().value
    powers = [functools.partial(jnp.roll, shift=k) for k in (2, 2, 3)]
    assert made(powers[0]) == made(powers[1]) != made(powers[2])
    assert made({1, 2, 3}) == made({3, 2, 1}) != made({1, 2})
    # What transforms a function has its name.
    turn = _geometry.rotation_from_quaternion
    assert len({made(f) for f in (jnp.sum, turn, jm.analyze, jm.simulate)}) == 4
    for transformed in (jax.vmap(jnp.sum), jax.grad(jnp.sum), jax.checkpoint(jnp.sum)):
        # (Some hold what has no name.)
        with contextlib.suppress(Unnameable):
            assert made(transformed) != made(jnp.sum)
    # Two functions that are made in one line.
    first, second = pair_of_functions(2.0)
    assert made(first) == made(pair_of_functions(2.0)[0]) != made(pair_of_functions(3.0)[0])
    assert made(first) != made(second)
    for nameless in (object(), iter(()), jax.devices()[0]):
        with pytest.raises(Unnameable):
            made(nameless)


def pair_of_functions(factor: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """As if they were made in a function of the package."""
    pair = (lambda x: factor * x, lambda x: factor + x)
    for function in pair:
        function.__module__ = "jaxmbs.somewhere"
    return pair


def test_equal_settings_of_other_types_are_other_programs():
    @program
    def kind(x: jax.Array, setting: Any) -> tuple[jax.Array, str]:
        return x, type(setting).__name__

    x = jnp.zeros(2)
    assert [kind(x, own)[1] for own in (True, 1, 1.0)] == ["bool", "int", "float"]


@pytest.mark.parametrize(
    "own", [lambda x: x, turned, type("Own", (), {}), type("Own", (), {})(), iter([])]
)
def test_code_of_the_users_own_has_no_name(own: Any):
    with pytest.raises(Unnameable):
        Identity().arguments((jnp.zeros(2), own))


def test_what_has_no_name_is_compiled_and_not_kept(folder: Path):
    body = jm.planar.Body("a", mass=1.0, inertia=1.0, position=(0.0, 0.0))
    on_line = jm.planar.Geometric("G", lambda frames, t: frames[0].origin[:1], [("a", (0.0, 0.0))])
    system = jm.MultibodySystem([body], [on_line])
    own = kept(folder)
    assert int(jm.analyze(system, system.reference_q).rank) == 1
    assert kept(folder) == own


@program
def _shown(x: jax.Array) -> jax.Array:
    jax.debug.print("{}", x[0])
    return 2 * x


def test_programs_that_call_back_are_not_kept(folder: Path, monkeypatch, capfd):
    own: Any = _shown
    # As if it were one of the package.
    monkeypatch.setattr(own._function, "__module__", "jaxmbs.somewhere")
    assert _shown(jnp.ones(2)).tolist() == [2.0, 2.0]
    jax.effects_barrier()
    assert kept(folder) == []
    assert "1.0" in capfd.readouterr().out


class Own(eqx.Module):
    """A class of no package, as users write them."""

    x: jax.Array
    name: str = eqx.field(static=True)


@pytest.mark.parametrize(
    "own",
    [
        Own(jnp.ones(2), "a"),
        (jnp.ones(2), "a", None, dfx.Dopri8()),
        # Read again, its function would be another one.
        jax.tree_util.Partial(operator.itemgetter(0), jnp.ones(2)),
    ],
)
def test_what_goes_round_has_one_form(own: Any):
    first = sealed(own)
    assert eqx.tree_equal(first.opened(), own)
    assert isinstance(first.form, bytes) == isinstance(own, tuple)
    doubled = jax.tree.map(lambda x: 2 * x if eqx.is_array(x) else x, own)
    second = first.with_arrays_of(doubled)
    assert second.form is first.form
    assert eqx.tree_equal(second.opened(), doubled)
    # What has another form gets one.
    assert eqx.tree_equal(first.with_arrays_of([jnp.zeros(3)]).opened(), [jnp.zeros(3)])


def test_a_users_function_is_compiled_like_the_packages_own(
    folder: Path, traced: list[str], monkeypatch
):
    asked: list[Any] = []
    before = _program.compiled

    def noting(lowered: Any, options: Any) -> Any:
        asked.append(options)
        return before(lowered, options)

    monkeypatch.setattr(_program, "compiled", noting)
    held = jnp.asarray([1.0, 2.0])

    def power(x: jax.Array, scale: float = 2.0, *, name: str = "") -> tuple[jax.Array, str]:
        return jnp.sum(scale * held * x**2), name

    own, x = jm.jit(power), jnp.asarray([3.0, 4.0])
    assert (float(own(x, name="a")[0]), own(x, name="a")[1]) == (82.0, "a")
    assert float(own(x, 3.0)[0]) == 123.0
    assert traced == ["power", "power"]
    slope = jm.jit(jax.grad(lambda x: own(x)[0]))
    assert slope(x).tolist() == [12.0, 32.0]
    assert jax.grad(lambda y: jm.jit(lambda x: power(x, y)[0])(x))(1.0) == 41.0
    assert asked == 3 * [compiler_options(Compiling.QUICK)]
    # The code is the user's own.
    assert kept(folder) == []


def test_transformations_ask_nobody(folder: Path):
    q = jnp.asarray([1.0, 2.0, 3.0, 4.0])
    turn = _geometry.rotation_from_quaternion
    jax.block_until_ready((jax.jacobian(turn)(q), jax.vmap(turn)(q[None]), jax.jit(turn)(q)))
    assert kept(folder) == []


# How a file may be bad, and so that nobody but this user made it so.
BAD: dict[str, Callable[[Path], Any]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "changed": lambda path: path.write_bytes(path.read_bytes()[:-1] + b"?"),
    "of another format": lambda path: path.write_bytes(
        path.read_bytes().replace(b"1\n", b"0\n", 1)
    ),
    "writable by others": lambda path: path.chmod(0o666),
    "a link": lambda path: (
        path.rename(path.with_name("elsewhere")) and path.symlink_to(path.with_name("elsewhere"))
    ),
}


@pytest.mark.parametrize("how", BAD)
def test_bad_files_are_computed_anew_and_replaced(how: str, folder: Path, traced: list[str]):
    expected = turned()
    (path,) = kept(folder)
    good = path.read_bytes()
    BAD[how](path)
    for again in (["rotation_from_quaternion"], []):
        traced.clear()
        anew(folder)
        assert np.array_equal(turned(), expected)
        assert traced == again
        assert kept(folder) == [path]
        assert not path.is_symlink()
        assert path.stat().st_mode & 0o777 == 0o600
        assert len(path.read_bytes()) > len(good) // 2


def test_files_of_another_user_are_not_loaded(folder: Path, traced: list[str], monkeypatch):
    turned()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    traced.clear()
    anew(folder)
    turned()
    assert traced == ["rotation_from_quaternion"]


def test_programs_of_other_code_are_not_found(folder: Path, traced: list[str], monkeypatch):
    turned()
    monkeypatch.setattr(_program, "_own_code", lambda: "changed")
    _program._surroundings.cache_clear()
    traced.clear()
    anew(folder)
    turned()
    assert traced == ["rotation_from_quaternion"]
    assert len(kept(folder)) == 2
    _program._surroundings.cache_clear()


def test_settings_of_jax_are_part_of_it(folder: Path, traced: list[str]):
    turned()
    with jax.default_matmul_precision("float32"):
        turned()
    assert traced == ["rotation_from_quaternion"] * 2


def test_a_full_disk(folder: Path, monkeypatch):
    real = Path.open

    def opened(self: Path, mode: str = "r", *rest: Any, **named: Any) -> Any:
        if "x" in mode:
            # What is there is half a file.
            real(self, mode, *rest, **named).close()
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, mode, *rest, **named)

    monkeypatch.setattr(Path, "open", opened)
    assert turned().shape == (3, 3)
    assert list(folder.iterdir()) == []


def test_a_folder_that_may_only_be_read_or_is_gone(tmp_path: Path):
    forget_programs()
    use_store(Store(tmp_path / "never", MEGABYTE))
    assert turned().shape == (3, 3)
    use_store(None)
    assert not (tmp_path / "never").exists()


def test_halves_of_killed_processes(folder: Path):
    turned()
    (path,) = kept(folder)
    old, new = path.with_suffix(".1.0.half"), path.with_suffix(".2.0.half")
    for half in (old, new):
        half.write_bytes(path.read_bytes()[:1000])
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    anew(folder)
    # Another process may be writing the new one.
    assert not old.exists()
    assert new.exists()


def test_those_not_used_for_longest_make_room(folder: Path):
    turned()
    (first,) = kept(folder)
    use_store(Store(folder, first.stat().st_size * 2))
    os.utime(first, (0, 0))
    _geometry.quaternion_from_rotation(jnp.eye(3))
    (left,) = kept(folder)
    assert left != first


PROBE = """
import jax
jax.config.update("jax_enable_x64", True)
import jaxmbs as jm
from jaxmbs._programs import _program
before, traced = _program._Function._traced_anew, []
_program._Function._traced_anew = lambda self, *x: (traced.append(self), before(self, *x))[1]
jm.keep_programs()
system = jm.mechanisms.get("door").system()
print(jm.analyze(system, system.reference_q))
print("traced", len(traced) > 0)
"""


def own_environment(home: Path) -> dict[str, str]:
    """Environment of a user who keeps programs in this folder."""
    left_out = ("JAX_", "JAXMBS", "XDG")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
    return environment | {"JAX_PLATFORMS": "cpu", "XDG_CACHE_HOME": str(home)}


def test_processes(tmp_path: Path):
    """Two begin at once and a third comes later: one answer, of which the last traces nothing. (It
    calls routines of LAPACK that nothing has looked up.)"""
    start = functools.partial(
        subprocess.Popen,
        [sys.executable, "-c", PROBE],
        env=own_environment(tmp_path),
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
        out, complaints = process.communicate()
        assert (process.returncode, complaints) == (0, "")
        answer, _, said = out.rpartition("traced ")
        return answer, said.strip()

    (one, first), (two, _) = map(ended, [start(), start()])
    three, last = ended(start())
    assert one == two == three
    assert (first, last) == ("True", "False")


TURNED = """
import jax
jax.config.update("jax_enable_x64", True)
import jaxmbs as jm
from jaxmbs import _geometry
from jaxmbs._programs import _program
before, traced = _program._Function._traced_anew, []
_program._Function._traced_anew = lambda self, *x: (traced.append(self), before(self, *x))[1]
jm.keep_programs()
q = jax.numpy.asarray([1.0, 2.0, 3.0, 4.0])
turn = _geometry.rotation_from_quaternion
print(len(jax.devices()), turn(q).ravel())
print([turn(jax.device_put(q, device)).devices() == {device} for device in jax.devices()])
print("traced", len(traced))
"""


def test_a_program_is_one_of_one_device(tmp_path: Path):
    """With two devices, the program of the default device is stored."""
    environment = own_environment(tmp_path)
    environment["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    first, second = (
        subprocess.run(
            [sys.executable, "-c", TURNED],
            env=environment,
            cwd=Path(__file__).parent.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        for _ in range(2)
    )
    assert (first.returncode, first.stderr) == (second.returncode, second.stderr) == (0, "")
    answer, _, count = first.stdout.rpartition("traced ")
    assert answer.startswith("2 [")
    assert "[True, True]" in answer
    assert second.stdout.rpartition("traced ")[0] == answer
    # The program of the other device is compiled again.
    assert (int(count), int(second.stdout.rpartition(" ")[2])) == (2, 1)


def test_a_run_is_found_again_without_what_it_was_made_by(
    folder: Path, traced: list[str], monkeypatch: pytest.MonkeyPatch
):
    system = jm.mechanisms.get("slider-crank").system()
    q, v = jm.consistent_state(system, system.reference_q, system.initial_v)
    options: dict[str, Any] = {"end": 0.1, "every": 0.05}
    first = jm.simulate(system, q, v, **options, solver=dfx.Dopri8())
    anew(folder)
    traced.clear()
    monkeypatch.setattr("jaxmbs._dynamics._chunks.programs", None)
    second = jm.simulate(system, q, v, **options)
    assert traced == []
    assert np.array_equal(first.q, second.q)
    assert np.array_equal(first.multipliers, second.multipliers)
    assert second.system.structure is system.structure
    jm.reactions(system, q, v)
