"""Does a motion, or a state, stay within the theory of its elastic bodies? (And do ropes stay on
their pulleys?)

They deform little beside their size. Where displacements of second order are not known, forces
along a body do not act on its bending; what they would do is measured against the stiffness that
the body has: a force N along a rod changes the square of its lowest frequency by N / P, with the
buckling load P = omega^2 m l / pi^2 of a rod with hinged ends, which is of the right size for
others too (a spin Omega across it by Omega^2 / omega^2). omega is the lowest frequency of the body
as its joints hold it, with what they hold it to at rest.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from .._bodies import ModalElasticity
from .._geometry import rotation_from_quaternion
from .._limits import EXACT
from .._programs import Compiling, program
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem
from ._ropes_left import ropes_left
from ._trajectory import Trajectory


# Deflections beside the length that are told. A cantilever that a force bends by a fifth of its
# length is 4 % stiffer than the linear theory says.
_BENT = 0.2

# Changes of the square of the lowest frequency that are left out, and told.
_STIFFENED = 0.1

# Directions along which a body is shorter than this part of its length do not bend it.
_SLENDER = 0.3

# Frequencies whose squares are below this part of those with the frame held are rigid motions.
_RIGID = 1e-8


def largest_deflection(system: AbstractSystem, q: Float[Array, "n nq"]) -> Float[Array, ""] | None:
    """The largest deflection of any elastic body in these states, beside its length; None if no
    body is elastic. Without derivative."""
    found = [jnp.max(bent) for bent, _ in _deflections(*stop_gradient((system, q)))]
    return jnp.max(jnp.stack(found)) if found else None


def _deflections(
    system: AbstractSystem, q: Float[Array, "n nq"]
) -> list[tuple[Float[Array, "n k"], tuple[int, ...]]]:
    found = []
    for elasticity, bodies in system.elasticities():
        places = np.array([system.structure.bodies[k].coordinates[7:] for k in bodies])
        eta = q[:, places]
        squares = jnp.einsum("nki,kij,nkj->nk", eta, elasticity.deflections, eta)
        found.append((jnp.sqrt(jnp.maximum(squares, 0.0)), bodies))
    return found


class _States(NamedTuple):
    """Concrete states, along a first axis; `multipliers` where loads are known."""

    system: AbstractSystem
    times: Float[Array, " n"]
    q: Float[Array, "n nq"]
    v: Float[Array, "n nv"]
    multipliers: Float[Array, "n rows"] | None


class _Body(NamedTuple):
    """One elastic body in the states (n,), along its own axes. Without `force`, its loads are not
    known."""

    name: str
    times: Float[np.ndarray, " n"]
    bent: Float[np.ndarray, " n"]
    elasticity: ModalElasticity
    spins: Float[np.ndarray, "n 3"]
    force: Float[np.ndarray, "n 3"] | None
    moment: Float[np.ndarray, "n 3 3"]
    held: Float[np.ndarray, "rows nv"]


def limits_left(trajectory: Trajectory) -> list[str]:
    """A sentence for each elastic body of which a run leaves the theory, with the time at which
    that begins, and what to do. Concrete numbers of one run."""
    if trajectory.times.ndim != 1:
        return []
    system, loads = trajectory.system, trajectory.multipliers
    return _sentences(_States(system, trajectory.times, trajectory.q, trajectory.v, loads))


def limits_left_by_motion(
    system: AbstractSystem,
    times: Float[Array, " n"],
    q: Float[Array, "n nq"],
    v: Float[Array, "n nv"],
) -> list[str]:
    """`limits_left` of a motion of which forces are not known."""
    return _sentences(_States(system, times, q, v, None))


def limits_left_by_state(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
    multipliers: Float[Array, " rows"] | None,
) -> str:
    """Lines of `limits_left` for one state. Empty for traced numbers, of which nothing is known."""
    known = None if multipliers is None else multipliers[None]
    return "\n".join(_sentences(_States(system, jnp.asarray(t)[None], q[None], v[None], known)))


def _sentences(states: _States) -> list[str]:
    system = states.system
    traced = any(isinstance(x, Tracer) for x in jax.tree.leaves(states))
    if traced or not len(states.times):
        return []
    if not (system.elasticities() or system.structure.one_sided_rows):
        return []
    if not all(bool(jnp.all(jnp.isfinite(x))) for x in (states.q, states.v)):
        return []
    found = [_sentence(body) for body in _bodies(states)] if system.elasticities() else []
    return [*filter(None, found), *ropes_left(system, states.times, states.q)]


def _bodies(states: _States) -> list[_Body]:
    system, structure = states.system, states.system.structure
    t, q, v = (np.asarray(x) for x in (states.times, states.q, states.v))
    kinds = _kinds(system, states.q)
    soft = tuple(k for (e, bent), bodies in kinds if not e.stiffened for k in bodies)
    loads, matrix = None, np.zeros((0, structure.nv))
    if soft:
        if states.multipliers is not None:
            given = (states.q, states.v, states.times, states.multipliers)
            loads = [np.asarray(x) for x in _loads(system, soft, given)]
        if structure.rows:
            matrix = np.asarray(system.constraint_matrix(q[0], v[0], t[0]))
    found = []
    for (elasticity, bent), bodies in kinds:
        for j, k in enumerate(bodies):
            info = structure.bodies[k]
            own = jax.tree.map(
                lambda x, j=j: np.asarray(x)[j] if eqx.is_array(x) else x, elasticity
            )
            axes = np.asarray(
                jax.vmap(rotation_from_quaternion)(jnp.asarray(q[:, info.coordinates[3:7]]))
            )
            columns = np.array(info.columns)
            held = matrix[:, columns]
            held = np.concatenate([held[:, :3] @ axes[0], held[:, 3:]], axis=1)
            force, moment = None, np.zeros((len(t), 3, 3))
            if loads is not None and k in soft:
                force, moment = (x[:, soft.index(k)] for x in loads)
                force = np.einsum("nab,na->nb", axes, force)
                moment = np.einsum("nab,nac,ncd->nbd", axes, moment, axes)
            spins = v[:, columns[3:6]]
            name, size = info.name, np.asarray(bent)[:, j]
            found.append(_Body(name, t, size, own, spins, force, moment, held))
    return found


@program(compiling=Compiling.ONCE)
def _kinds(system: AbstractSystem, q: Float[Array, "n nq"]) -> Any:
    """Elasticities, deflections and places of each kind of elastic bodies."""
    pairs = zip(system.elasticities(), _deflections(system, q), strict=True)
    return [((elasticity, bent), bodies) for (elasticity, bodies), (bent, _) in pairs]


@program(compiling=Compiling.ONCE)
def _loads(system: AbstractSystem, bodies: tuple[int, ...], states: Any) -> Any:
    return jax.lax.map(lambda state: system.body_loads(bodies, *state), states)


class _Finding(NamedTuple):
    """A sentence: which limit is exceeded from `time` (s) on, and what to do."""

    time: float
    what: str
    advice: str


_STIFFENING = (
    "Give it displacements of second order, by which forces along a body act on its bending "
    "(finite_elements.reduce computes them for solid meshes and for beams; then leave out "
    "stiffening=False), make it stiffer, or make several bodies of it."
)
_LESS_BENDING = "Reduce the load, make it stiffer, or make several bodies of it."


def _sentence(body: _Body) -> str:
    """The limits that are exceeded, in order of time."""
    findings = [] if body.elasticity.stiffened else [*_spin(body), *_forces_along(body)]
    large = ~(body.bent <= _BENT)
    if large.any():
        what = (
            f"it bends by {100 * body.bent[np.argmax(large)]:.3g} % of its length"
            f"{_later(body, f'by up to {100 * np.max(body.bent):.3g} %')}"
        )
        findings.append(_Finding(_first(body, large), what, _LESS_BENDING))
    if not findings:
        return ""
    findings.sort(key=lambda one: one.time)
    # Of one state there is no time to tell.
    when = [f"from {one.time:.6g} s on " if len(body.times) > 1 else "" for one in findings]
    text = "; ".join(word + one.what for word, one in zip(when, findings, strict=True))
    advice = " ".join(dict.fromkeys(one.advice for one in findings[:1]))
    return f"Elastic body {body.name!r} leaves the theory of small deformations: {text}. {advice}"


def _later(body: _Body, what: str) -> str:
    return f" (later {what})" if len(body.times) > 1 else ""


def _later_too(body: _Body, what: str) -> str:
    return f"; later {what}" if len(body.times) > 1 else ""


def _first(body: _Body, where: Bool[np.ndarray, " n"]) -> float:
    return float(body.times[np.argmax(where)])


def _spin(body: _Body) -> Iterator[_Finding]:
    """The limit of centrifugal force."""
    lowest = held_frequency(body.elasticity, body.held)
    across = np.array([_spin_across(w, body.elasticity) for w in body.spins])
    fast = across**2 > _STIFFENED * lowest**2
    if lowest > 0 and fast.any():
        what = (
            f"it spins across its length at {across[np.argmax(fast)]:.3g} rad/s"
            f"{_later(body, f'at up to {np.max(across):.3g} rad/s')}, where its lowest frequency, "
            f"as its joints hold it, is "
            f"{lowest:.3g} rad/s, and centrifugal force does not stiffen its bending here"
        )
        yield _Finding(_first(body, fast), what, _STIFFENING)


def _forces_along(body: _Body) -> Iterator[_Finding]:
    """The limit of forces along the body."""
    lowest, own = held_frequency(body.elasticity, body.held), body.elasticity
    if lowest == 0 or body.force is None:
        return
    w, second, mass = body.spins, own.second_moment, own.mass_matrix[0, 0]
    # Of the stress the integral over the body: what acts at its points, and minus what accelerates
    # it, both about its centre of mass.
    inner = body.moment - np.einsum("na,b->nab", body.force, own.centre)
    squares = np.einsum("nc,nc,ab->nab", w, w, np.eye(3)) - np.einsum("na,nb->nab", w, w)
    inner = inner + squares @ second
    sizes, directions = np.linalg.eigh(second)
    lengths = np.sqrt(12 * np.maximum(sizes, 0.0) / mass)
    for length, e in zip(lengths, directions.T, strict=True):
        if length <= _SLENDER * lengths[-1]:
            continue
        along = np.einsum("a,nab,b->n", e, inner, e) / length
        limit = lowest**2 * mass * length / np.pi**2
        large = np.abs(along) > _STIFFENED * limit
        if large.any():
            value = along[np.argmax(large)]
            kind = "compression" if value < 0 else "tension"
            what = (
                f"a {kind} of {abs(value):.3g} N acts along it (the mean over its length"
                f"{_later_too(body, f'up to {np.max(np.abs(along)):.3g} N')}), where its buckling "
                f"load is about "
                f"{limit:.3g} N (from its lowest frequency, {lowest:.3g} rad/s), and does not act "
                "on its bending here"
            )
            yield _Finding(_first(body, large), what, _STIFFENING)


def _spin_across(w: Float[np.ndarray, "3"], elasticity: ModalElasticity) -> float:
    """The spin (rad/s) that would pull as much at a rod across its axis: a shaft that turns about
    its own axis is not pulled."""
    sizes, directions = np.linalg.eigh(elasticity.second_moment)
    if sizes[-1] <= 0:
        return 0.0
    root = directions * np.sqrt(np.maximum(sizes, 0.0) / sizes[-1])
    pulled = root.T @ (w @ w * np.eye(3) - np.outer(w, w)) @ root
    return float(np.sqrt(max(np.linalg.eigvalsh(pulled)[-1], 0.0)))


def held_frequency(elasticity: ModalElasticity, held: Float[np.ndarray, "rows nv"]) -> float:
    """The lowest frequency (rad/s) of the undeformed body whose velocities along its own axes
    satisfy `held` v = 0; zero if it cannot deform."""
    mass = np.asarray(elasticity.mass_matrix, float)
    stiffness = np.zeros_like(mass)
    stiffness[6:, 6:] = elasticity.stiffness
    lower = np.linalg.cholesky(mass)
    inverse = np.linalg.inv(lower)
    whole = inverse @ stiffness @ inverse.T
    modal = np.linalg.inv(np.linalg.cholesky(mass[6:, 6:]))
    fixed = np.linalg.eigvalsh(modal @ stiffness[6:, 6:] @ modal.T)
    rows = held @ inverse.T
    size = np.linalg.norm(rows, axis=1)
    rows = rows[size > 1e-12 * np.max(size, initial=0.0)]
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    _, values, right = np.linalg.svd(rows, full_matrices=True)
    rank = int(np.sum(values > EXACT.rank * max(np.max(values, initial=0.0), 1.0)))
    free = right[rank:]
    if not free.size:
        return 0.0
    squares = np.linalg.eigvalsh(free @ whole @ free.T)
    elastic = squares[squares > _RIGID * fixed[0]]
    return float(np.sqrt(elastic[0])) if elastic.size else 0.0
