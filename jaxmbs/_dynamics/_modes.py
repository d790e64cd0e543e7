"""Eigenvalues and mode shapes of small motions, and their first derivatives. Dense, in NumPy.

With P the projector onto the eigenvectors of all m eigenvalues equal to s, along those of the
others, and R the inverse of A - s on the others (Kato 1980, chapter 2),

    ds = tr(P dA) / m,    dx = -R dA x,

the mean's derivative where m > 1: equal eigenvalues may part with the root of a change.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float


# Eigenvalues nearer to each other than this, relative to the largest, are equal: multiple ones
# are known to the root of rounding only.
_EQUAL = 1e-6

# How many times the changes that are seen of a matrix its rounding may be.
_ROUNDING = 100.0

# What rounding is at most, relative to the frequencies: a state that is less steady than that hides
# no small eigenvalue.
_NEGLIGIBLE = 1e-10


class SmallMotions(NamedTuple):
    """Y, A and M, or changes of them, Y and M with a block for the states of forces: `position`
    makes modes of the first d rows of an eigenvector, `mass` measures them."""

    position: Float[Array, "steps d"]
    state: Float[Array, "n n"]
    mass: Float[Array, "steps steps"]


def sorted_eigenvalues(
    state: np.ndarray, units: np.ndarray, rounding: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues by frequency, then by decay, with eigenvectors. The first rows and columns are
    those of coordinates, whose units are `units` (d,); where the matrix is known up to `rounding`
    (1/s), eigenvalues within that of zero are zero, with their multiplicity."""
    scale = np.ones(state.shape[0])
    if rounding > 0:
        frequency = frequency_scale(state, units) or 1.0
        scale = rate_scale(state, units, frequency)
        limit = min(_ROUNDING * rounding, _NEGLIGIBLE * frequency)
        values, shapes = _deflated(scale[:, None] * state / scale, limit)
    else:
        values, shapes = np.linalg.eig(state)
    turns = np.imag(values)
    order = np.lexsort((turns, np.real(values), np.abs(turns).round(9)))
    return values[order].astype(complex), (shapes / scale[:, None])[:, order].astype(complex)


def rate_scale(state: np.ndarray, units: np.ndarray, frequency: float) -> np.ndarray:
    """Factors that turn all n components into rates: coordinates times a typical frequency, like
    velocities."""
    scale = np.ones(state.shape[0])
    scale[: len(units)] = frequency / units
    return scale


def frequency_scale(state: np.ndarray, units: np.ndarray) -> float:
    """A typical frequency of small motions (1/s)."""
    p, scale = len(units), rate_scale(state, units, 1.0)
    state = scale[:, None] * state / scale
    blocks = (state[:p, :p], state[p:, p:])
    fastest = max(np.linalg.norm(x, 2) if x.size else 0.0 for x in blocks)
    stiff = state[p:, :p]
    return float(max(fastest, np.sqrt(np.linalg.norm(stiff, 2)) if stiff.size else 0.0))


def _deflated(state: np.ndarray, rounding: float) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors, those that are zero taken out first.

    A null space is split off by an orthogonal change of basis, and that of the rest, until there
    is none: the chains of multiple zeros, which rounding would spread to the root of its size
    (staircase form; Golub & Van Loan 2013, section 7.6.5).
    """
    basis, rest, count = np.eye(state.shape[0]), state, 0
    zeros = []
    while rest.size:
        _, sizes, right = np.linalg.svd(rest)
        null = sizes <= rounding
        if not null.any():
            break
        turn = np.concatenate([right[null], right[~null]]).T
        basis[:, count:] = basis[:, count:] @ turn
        found = basis[:, count : count + int(null.sum())]
        # The eigenvector at the end of each chain.
        for _ in range(len(zeros)):
            found = state @ found
        zeros.append(found)
        rest, count = (turn.T @ rest @ turn)[null.sum() :, null.sum() :], count + int(null.sum())
    values, shapes = np.linalg.eig(rest)
    if not count:
        return values, shapes
    # What the null spaces move along with the others.
    upper = basis.T @ state @ basis
    coupled = upper[:count, count:] @ shapes
    chains = upper[:count, :count]
    own = (
        np.stack(
            [
                np.linalg.solve(value * np.eye(count) - np.triu(chains, 1), column)
                for value, column in zip(values, coupled.T, strict=True)
            ],
            axis=1,
        )
        if values.size
        else np.zeros((count, 0))
    )
    others = basis @ np.concatenate([own, shapes])
    return np.concatenate([np.zeros(count), values]), np.concatenate([*zeros, others], axis=1)


def normalised(modes: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Length 1 in the mass metric; the entry that is largest there real and positive."""
    factors, _ = _factors(modes, mass)
    return modes * factors


def _factors(modes: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The factors that modes are multiplied by, and the indices of their largest entries."""
    if not modes.size:
        return np.ones(modes.shape[1]), np.zeros(modes.shape[1], int)
    weight = np.sqrt(np.diagonal(mass))[:, None]
    largest = np.argmax(np.abs(weight * modes), axis=0)
    phase = np.angle(np.take_along_axis(modes, largest[None], axis=0))[0]
    size = np.sqrt(np.real(np.sum(np.conj(modes) * (mass @ modes), axis=0)))
    return np.exp(-1j * phase) / np.where(size > 0, size, 1.0), largest


def changes_of_modes(
    at: SmallMotions, change: SmallMotions, units: np.ndarray, rounding: float = 0.0
) -> tuple[Complex[Array, " n"], Complex[Array, "steps n"]]:
    """Changes of the eigenvalues and of the normalised modes; linear in the `change`, `at`
    concrete."""
    position, state, mass = (np.asarray(x) for x in at)
    values, shapes = sorted_eigenvalues(state, units, rounding)
    p, n = position.shape[1], len(values)
    if not n:
        return jnp.zeros((0,), complex), jnp.zeros((position.shape[0], 0), complex)
    modes = position @ shapes[:p]
    factors, largest = _factors(modes, mass)
    modes, shapes = modes * factors, shapes * factors
    projectors, inverses = zip(*(_resolved(state, values, k) for k in range(n)), strict=True)
    moved = change.state @ jnp.asarray(shapes)
    slopes = jnp.einsum("kij,ji->k", jnp.asarray(np.stack(projectors)), change.state)
    turned = -jnp.einsum("kij,jk->ik", jnp.asarray(np.stack(inverses)), moved)
    raw = change.position @ jnp.asarray(shapes[:p]) + jnp.asarray(position) @ turned[:p]
    # Any multiple of a mode may be added: that which keeps its length and its phase.
    heavy = np.conj(mass @ modes)
    conjugate = jnp.asarray(np.conj(modes))
    longer = jnp.real(jnp.sum(heavy * raw, axis=0))
    longer += jnp.real(jnp.sum(conjugate * (change.mass @ jnp.asarray(modes)), axis=0)) / 2
    top = np.real(np.take_along_axis(modes, largest[None], axis=0)[0])
    ahead = jnp.imag(jnp.take_along_axis(raw, jnp.asarray(largest)[None], axis=0)[0])
    ahead = ahead / np.where(top > 0, top, 1.0)
    return slopes, raw - jnp.asarray(modes) * (longer + 1j * ahead)[None]


def changes_of_eigenvalues(
    matrix: np.ndarray, values: np.ndarray, change: Float[Array, "n n"]
) -> Complex[Array, " n"]:
    """Changes of the eigenvalues in their order; linear in the `change`, the matrix concrete."""
    if not len(values):
        return jnp.zeros((0,), complex)
    projectors = [_resolved(matrix, values, k)[0] for k in range(len(values))]
    return jnp.einsum("kij,ji->k", jnp.asarray(np.stack(projectors)), change)


def _resolved(state: np.ndarray, values: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """P / m and R of one eigenvalue."""
    scale = np.max(np.abs(values))
    equal = np.abs(values - values[k]) <= _EQUAL * scale
    count = int(np.sum(equal))
    own, one = np.mean(values[equal]), np.eye(len(values))
    shifted = state - own * one
    # Of m equal ones A - s may have fewer eigenvectors, but not its m-th power.
    left, _, right = np.linalg.svd(np.linalg.matrix_power(shifted, count))
    left, right = left[:, -count:], np.conj(right[-count:]).T
    projector = right @ np.linalg.solve(np.conj(left).T @ right, np.conj(left).T)
    others = one - projector
    size = scale if scale > 0 else 1.0
    inverse = others @ np.linalg.solve(shifted + size * projector, others)
    return projector / count, inverse
