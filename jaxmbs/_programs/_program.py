"""Functions that are compiled, and found again.

`program` does for a function of this package what `eqx.filter_jit` does: arrays are traced,
everything else is part of the program. Besides, a call with known numbers compiles in the way that
suits what runs once or a few times (`_options.py`), and asks the store of executables
(`_store.py`) if there is one: what is found there is neither traced nor lowered nor compiled.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import inspect
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, overload, ParamSpec, TypeVar

import equinox as eqx
import jax
from jax.core import Tracer
from jax.extend.core import jaxprs_in_params

from .._loading import late
from ._options import (
    compiled,
    compiler_options,
    Compiling,
    default_device,
    settings_in_force,
)
from ._store import Identity, Place, Program, Store, Unnameable


passes = late("jax.extend.mlir.passmanager")

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Programs depend on the code of these.
_PACKAGES = ("jax", "jaxlib", "equinox", "diffrax", "optax", "optimistix", "lineax", "numpy")


class _Ready(NamedTuple):
    """A compiled program of this process, and the leaves and tree of its answer."""

    compiled: Any
    leaves: tuple[Any, ...]
    tree: Any

    def __call__(self, arrays: Sequence[Any]) -> Any:
        found = self.compiled(*arrays)
        leaves = [found[x.index] if type(x) is Place else x for x in self.leaves]
        return jax.tree_util.tree_unflatten(self.tree, leaves)


# More are not kept at hand: each holds memory mappings, of which a process may have 65530.
_MOST = 1000

# By function, structure and shapes of the arguments, and settings.
_at_hand: dict[Any, _Ready] = {}

_stores: list[Store] = []


def forget_programs() -> None:
    """Forget the programs of this process, as `jax.clear_caches` forgets JAX's own."""
    _at_hand.clear()


def use_store(store: Store | None) -> None:
    """Keep programs there from now on; None: nowhere."""
    _stores[:] = [] if store is None else [store]


class _Function:
    """A function that is compiled when it is called."""

    def __init__(
        self, function: Callable[..., Any], compiling: Compiling, of_arrays: bool, inline: bool
    ):
        self._function, self._compiling = function, compiling
        self._signature = inspect.signature(function)
        self._count = len(self._signature.parameters)
        self._traced: Any = jax.jit(function) if of_arrays else eqx.filter_jit(function)
        if inline:
            self._traced = function
        functools.update_wrapper(self, function)

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def lower(self, *args: Any, **named: Any) -> Any:
        return self._traced.lower(*args, **named)

    def __call__(self, *args: Any, **named: Any) -> Any:
        args, named = self._by_place(args, named)
        leaves, tree = jax.tree_util.tree_flatten((args, named))
        arrays = [x for x in leaves if eqx.is_array(x)]
        ready = self._found(leaves, tree, arrays) if _is_known(arrays) else None
        return self._traced(*args, **named) if ready is None else ready(arrays)

    def prepare(self, *args: Any, **named: Any) -> None:
        """Have the program for such arguments at hand, without calling it."""
        leaves, tree = jax.tree_util.tree_flatten(self._by_place(args, named))
        arrays = [x for x in leaves if eqx.is_array(x)]
        if _is_known(arrays):
            self._found(leaves, tree, arrays)

    def _by_place(self, args: Any, named: Any) -> tuple[Any, Any]:
        """The same arguments, by place or by name, are the same program."""
        if not named and len(args) == self._count:
            return args, named
        bound = self._signature.bind(*args, **named)
        return bound.args, bound.kwargs

    def _found(self, leaves: Sequence[Any], tree: Any, arrays: Sequence[Any]) -> _Ready | None:
        """The program; None where a function among the arguments closes over numbers."""
        static = tuple(None if eqx.is_array(x) else x for x in leaves)
        shapes = tuple((x.shape, x.dtype, getattr(x, "weak_type", False)) for x in arrays)
        # (True, 1 and 1.0 are equal, and make different programs.)
        device = _other_device(arrays)
        key = (self, tree, static, tuple(map(type, static)), shapes, device, settings_in_force())
        ready = _at_hand.get(key)
        if ready is None:
            ready = self._prepared(leaves, tree, arrays)
            if ready is None:
                return None
            while len(_at_hand) >= _MOST:
                _at_hand.pop(next(iter(_at_hand)), None)
            _at_hand[key] = ready
        return ready

    def _prepared(self, leaves: Sequence[Any], tree: Any, arrays: Sequence[Any]) -> _Ready | None:
        """The program from the store, or compiled and stored."""
        options = compiler_options(self._compiling)
        # Stored programs are those of the default device.
        store = _stores[0] if _stores and _other_device(arrays) is None else None
        name, identity = None, Identity()
        if store is not None:
            name = self._name(identity, jax.tree_util.tree_unflatten(tree, leaves), options)
        if store is None or name is None:
            made = self._traced_anew(leaves, tree, arrays)
            if made.closes:
                return None
            kept = made.compiled(options)
        else:
            kept = store.load(name, identity)
            if kept is None:
                # No other program has this name, not even one with the same operations: what JAX's
                # own cache returns has lost the code that is stored.
                made = self._traced_anew(leaves, tree, arrays, f"_{name[:16]}")
                if made.closes:
                    return None
                kept = made.compiled(options, stored=made.storable)
                if made.storable:
                    store.save(name, kept, identity)
        own = jax.tree_util.tree_flatten(kept.answer)
        return _Ready(kept.compiled, tuple(own[0]), own[1])

    def _name(self, identity: Identity, arguments: Any, options: Any) -> str | None:
        """A name for the program that is the same in every process; None if there is none."""
        try:
            parts = (
                identity.value(self._function),
                identity.arguments(arguments),
                identity.value((settings_in_force(), options, _surroundings())),
            )
        except Unnameable:
            return None
        return hashlib.sha256(b"".join(parts)).hexdigest()

    def _traced_anew(
        self, leaves: Sequence[Any], tree: Any, arrays: Sequence[Any], ending: str = ""
    ) -> "_Traced":
        answers: list[Any] = []

        def flat(*given: Any) -> tuple[Any, ...]:
            fed = iter(given)
            own = [next(fed) if eqx.is_array(x) else x for x in leaves]
            args, named = jax.tree_util.tree_unflatten(tree, own)
            found, shape = jax.tree_util.tree_flatten(self._function(*args, **named))
            of_arrays = [x for x in found if eqx.is_array(x)]
            places = iter(map(Place, range(len(of_arrays))))
            filled = [next(places) if eqx.is_array(x) else x for x in found]
            answers.append(jax.tree_util.tree_unflatten(shape, filled))
            return tuple(of_arrays)

        flat.__name__ = flat.__qualname__ = self._function.__name__.strip("_") + ending
        return _Traced(jax.jit(flat).trace(*arrays), len(arrays), answers[-1])


def jit(function: Callable[_P, _T], /) -> Callable[_P, _T]:
    """As `equinox.filter_jit`, compiled on CPUs with the options of this package's own programs:
    the gradient of a motion in half of the time that it takes by default, and what is compiled
    runs 0.9 to 1.2 times as long.

    Arrays among the arguments are traced; everything else is part of the program, as are numbers
    that the function closes over. The options belong to a whole program: within another compiled
    function, `jax.vmap` or `jax.grad` this is `equinox.filter_jit`. Apply it last:

        slope = jm.jit(jax.value_and_grad(objective))

    **Arguments:**

    - `function`: of arrays, systems and other trees of arrays.

    **Returns:** the function, compiled at its first call and for other shapes.
    """
    return _Function(function, Compiling.QUICK, of_arrays=False, inline=False)


class _Traced(NamedTuple):
    """A program before it is compiled, and its answer with places of arrays."""

    traced: Any
    inputs: int
    answer: Any

    @property
    def closes(self) -> bool:
        """Does the program hold numbers that are not arguments? They may be traced, and change."""
        return len(self.traced.jaxpr.in_avals) != self.inputs

    @property
    def storable(self) -> bool:
        """Host callbacks live in this process alone."""
        return not any("callback" in name for name in _primitives(self.traced.jaxpr.jaxpr))

    def compiled(self, options: dict[str, Any], stored: bool = False) -> Program:
        lowered = self.traced.lower()
        if stored:
            _strip_locations(lowered)
        with _unknown_to_jax() if stored else contextlib.nullcontext():
            found = compiled(lowered, options)
        jaxpr = self.traced.jaxpr
        return Program(found, len(jaxpr.in_avals), len(jaxpr.out_avals), self.answer)


def _strip_locations(lowered: Any) -> None:
    """Remove the lines of code that each operation names: a third of the size of a program, and an
    eighth of the time to load it."""
    module = lowered.compiler_ir("stablehlo")
    with module.context:
        passes.PassManager.parse("builtin.module(strip-debuginfo)").run(module.operation)


@contextlib.contextmanager
def _unknown_to_jax() -> Iterator[None]:
    """JAX's own cache keeps nothing for the time of the block: twice on disk is once too often."""
    least = "jax_persistent_cache_min_compile_time_secs"
    before = getattr(jax.config, least)
    jax.config.update(least, float("inf"))
    try:
        yield
    finally:
        jax.config.update(least, before)


def _is_known(arrays: Sequence[Any]) -> bool:
    """True if all arrays are concrete, and committed to one device at most."""
    settings: Any = jax.config
    if settings.jax_disable_jit or settings.jax_debug_nans or settings.jax_debug_infs:
        return False
    return not any(isinstance(x, Tracer) for x in arrays) and len(_devices_of(arrays)) <= 1


def _devices_of(arrays: Sequence[Any]) -> set[Any]:
    """Devices to which arrays are committed."""
    return {device for x in arrays if getattr(x, "committed", False) for device in x.devices()}


def _other_device(arrays: Sequence[Any]) -> Any:
    """The device to which arrays are committed, if it is not the default one."""
    committed = _devices_of(arrays)
    return next(iter(committed - {default_device()}), None) if committed else None


def _primitives(jaxpr: Any) -> Iterator[str]:
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for inner in jaxprs_in_params(equation.params):
            yield from _primitives(inner)


@functools.cache
def _surroundings() -> tuple[str, ...]:
    """The versions of all code that a program is made from, and where it runs."""
    versions = [f"{name} {_version(name)}" for name in _PACKAGES]
    device = default_device()
    # Each process has devices of its own; work is divided among the cores when a program is
    # compiled.
    counts = (str(device.id), str(jax.device_count()), str(os.cpu_count()))
    where = (platform.python_version(), device.platform, device.device_kind, *counts)
    return (*versions, *where, os.environ.get("XLA_FLAGS", ""), _own_code())


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def _own_code() -> str:
    """A digest of all files of this package."""
    folder = Path(__file__).parent.parent
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(str(path.relative_to(folder)).encode())
        found.update(path.read_bytes())
    return found.hexdigest()


@overload
def program(function: Callable[_P, _T], /) -> Callable[_P, _T]: ...


@overload
def program(function: Callable[_P, _T], /, *, compiling: Compiling) -> Callable[_P, _T]: ...


@overload
def program(
    *, compiling: Compiling = Compiling.QUICK, of_arrays: bool = False, inline: bool = False
) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]: ...


def program(
    function: Any = None,
    /,
    *,
    compiling: Compiling = Compiling.QUICK,
    of_arrays: bool = False,
    inline: bool = False,
) -> Any:
    """A function that is compiled when it is called, as by `eqx.filter_jit`; see this module.
    `of_arrays`: it has nothing but arrays as arguments and answers, as for `jax.jit`. `inline`: it
    becomes a part of the program that calls it."""
    if function is None:
        chosen = {"compiling": compiling, "of_arrays": of_arrays, "inline": inline}
        return functools.partial(program, **chosen)
    return _Function(function, compiling, of_arrays, inline)
