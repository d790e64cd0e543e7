import itertools
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from jaxtyping import Float
from scipy.sparse.linalg import eigsh, LinearOperator

from .._errors import ModelError
from ._elements import FiniteElements
from ._factor import Factor
from ._interface import Interface
from ._sparse import SparseMatrix


# Below this the few degrees of freedom are quicker to solve at once.
_DENSE = 150

# A frequency counts as zero if its square is below this part of the largest one's: those of hinges
# come out at 1e-15 and less, and of a bar a thousand times as long as thick the first is at 1e-6.
_ZERO = 1e-13

# The squares of the rigid motions' frequencies, as the stiffness has them, are at most this part of
# the first elastic one's. Rounding leaves 1e-9 in a bar a hundred times as long as thick, 1e-5 in
# one of a thousand; the elastic frequencies have errors as large.
_RIGID = 1e-2

# Frequencies count as one where their squares differ by less, relative to themselves: rounding of
# the stiffness, whose entries are those of the stiffest direction, is at 1e-9 of the squares of
# slender bodies.
_EQUAL = 1e-7


class ElasticModes(NamedTuple):
    """Orthogonal modes of a free body, of unit modal mass, without the six rigid motions.

    `squares`: of the angular frequencies (rad^2/s^2), ascending. `shapes`: displacements of all
    nodes (kg^-1/2 and 1/(m kg^1/2)). `held`: those of the attachments, displacements and rotations.
    `rigid_squares`: quadratic forms of the stiffness in the rigid motions: zero up to rounding.
    """

    squares: Float[np.ndarray, " modes"]
    shapes: Float[np.ndarray, "dof modes"]
    held: Float[np.ndarray, "held modes"]
    rigid_squares: Float[np.ndarray, "6"]


def craig_bampton(elements: FiniteElements, tied: Interface, count: int) -> ElasticModes:
    """Orthogonalised Craig-Bampton modes.

    The body is held at its attachments (index b, the rest i). *Constraint modes* are the static
    displacements for a unit displacement of each degree of freedom of the attachments,
    -K_ii^-1 K_ib, *normal modes* the `count` lowest vibrations with all attachments held,
    K_ii phi = omega^2 M_ii phi (shift-invert about zero, with the same factor of K_ii). They span a
    space that holds every static displacement by loads on the attachments, and all rigid motions.
    The eigenvectors of the body's mass and stiffness in that space diagonalise both, and the rigid
    motions, which are known, are taken out exactly: the eigenproblem is solved in their complement.
    With no attachments these are the lowest vibrations of the free body.

    **Raises:** `ModelError` for more modes than degrees of freedom, and for parts that move without
    resistance.

    Craig & Bampton (1968); orthogonalised as Wojtyra & Fraczek (2012, section 5.1) use them.
    """
    mass: SparseMatrix = sp.csc_array(tied.expansion.T @ elements.mass @ tied.expansion)
    stiffness: SparseMatrix = sp.csc_array(tied.expansion.T @ elements.stiffness @ tied.expansion)
    held = tied.held
    # A free body has rigid motions in addition.
    most = mass.shape[0] - held if held else mass.shape[0] - 6
    if count > most:
        why = "when the attachments are held" if held else "besides the rigid motions"
        raise ModelError(
            f"modes must be at most {most}, the degrees of freedom that remain {why}, got {count}."
        )
    basis = _basis(mass, stiffness, held, count)
    origin = elements.centre_of_mass
    if held:
        rigid = np.zeros((basis.shape[1], 6))
        rigid[:held] = tied.rigid_motions(origin)
    else:
        rigid = basis.T @ (mass @ elements.rigid_motions(origin))
    small = basis.T @ (mass @ basis), basis.T @ (stiffness @ basis)
    squares, vectors, left = _elastic(*small, rigid)
    _check_zeros(squares, left)
    reduced = basis @ vectors
    shapes = tied.expansion @ reduced
    squares, groups = _grouped(squares)
    turn = _orientation(elements, groups, shapes)
    return ElasticModes(squares, shapes @ turn, reduced[:held] @ turn, left)


def _basis(
    mass: SparseMatrix, stiffness: SparseMatrix, held: int, count: int
) -> Float[np.ndarray, "dof basis"]:
    """Constraint modes and normal modes, concatenated."""
    inner_mass = sp.csc_array(mass[held:, held:])
    inner = sp.csc_array(stiffness[held:, held:])
    shift = 0.0
    if held == 0:
        # The free body's stiffness is singular. A shift far below all frequencies, and far above
        # the rounding of those that are zero.
        shift = 1e-10 * float(np.max(np.divide(stiffness.diagonal(), mass.diagonal())))
        count += 6
    factor = Factor(sp.csc_array(inner + shift * inner_mass) if shift else inner)
    if not factor.positive_definite:
        raise ModelError(
            "the stiffness leaves some part free to move though all attachments are held: the body "
            "has more than six motions of frequency zero; join the parts, or leave them out. (Of a "
            "body ten thousand times as long as thick rounding hides the stiffness: use beams.)"
        )
    basis = np.zeros((mass.shape[0], held + count))
    basis[:held, :held] = np.eye(held)
    if held:
        basis[held:, :held] = -factor.solve(stiffness[held:, :held].toarray())
    if count:
        basis[held:, held:] = _normal_modes(inner, inner_mass, factor, count, shift)
    return basis


def _normal_modes(
    stiffness: SparseMatrix, mass: SparseMatrix, factor: Factor, count: int, shift: float
) -> Float[np.ndarray, "dof count"]:
    """The eigenvectors of the lowest eigenvalues."""
    size = mass.shape[0]
    if size <= _DENSE or 2 * count >= size:
        return scipy.linalg.eigh(
            stiffness.toarray(), mass.toarray(), subset_by_index=[0, count - 1]
        )[1]
    # A reproducible start without a symmetry that would hide a mode.
    start = np.random.default_rng(0).standard_normal(size)
    operator: Any = LinearOperator
    inverse = operator((size, size), matvec=factor.solve, dtype=float)
    return eigsh(stiffness, k=count, M=mass, sigma=-shift, OPinv=inverse, v0=start)[1]


def _elastic(
    mass: Float[np.ndarray, "n n"],
    stiffness: Float[np.ndarray, "n n"],
    rigid: Float[np.ndarray, "n 6"],
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, "n m"], Float[np.ndarray, "6"]]:
    """Eigenvalues and eigenvectors in the complement of the rigid motions, orthogonal by mass; and
    what of stiffness the rigid motions have left."""
    # In units in which the mass is the identity.
    unit = 1 / np.sqrt(np.diag(mass))
    lower = scipy.linalg.cholesky(unit[:, None] * mass * unit, lower=True)

    def divided(x: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
        return scipy.linalg.solve_triangular(lower, unit[:, None] * x, lower=True)

    whole = divided(divided(stiffness).T)
    whole = (whole + whole.T) / 2
    directions, _ = np.linalg.qr(lower.T @ (rigid / unit[:, None]), mode="complete")
    left, free = directions[:, :6], directions[:, 6:]
    squares, vectors = np.linalg.eigh(free.T @ whole @ free)
    back = unit[:, None] * scipy.linalg.solve_triangular(lower.T, free @ vectors)
    return squares, back, np.linalg.eigvalsh(left.T @ whole @ left)


def _check_zeros(squares: Float[np.ndarray, " modes"], rigid: Float[np.ndarray, "6"]) -> None:
    if squares.size == 0:
        return
    zeros = int(np.sum(squares <= _ZERO * squares[-1]))
    if zeros:
        raise ModelError(
            f"the body has {6 + zeros} motions of frequency zero, where a free body has six; some "
            "part moves without resistance: join it to the rest, or leave it out."
        )
    if np.max(np.abs(rigid)) > _RIGID * squares[0]:
        hertz = np.sqrt([np.max(np.abs(rigid)), squares[0]]) / (2 * np.pi)
        raise ModelError(
            f"the stiffness gives rigid motions of the body up to {hertz[0]:.3g} Hz, beside "
            f"{hertz[1]:.3g} Hz of its first elastic mode: a node is held by a spring, or the body "
            "is so slender that rounding hides its stiffness; give the matrix of the free body, or "
            "use beams."
        )


def _grouped(
    squares: Float[np.ndarray, " modes"],
) -> tuple[Float[np.ndarray, " modes"], list[slice]]:
    """Groups of modes of one frequency, and the squares of frequencies with a common value in
    each."""
    apart = np.diff(squares) > _EQUAL * squares[1:]
    ends = [0, *(np.flatnonzero(apart) + 1), len(squares)]
    groups = [slice(a, b) for a, b in itertools.pairwise(ends) if b > a]
    means = [np.full(g.stop - g.start, np.mean(squares[g])) for g in groups]
    return np.concatenate([np.zeros(0), *means]), groups


def _orientation(
    elements: FiniteElements, groups: list[slice], shapes: Float[np.ndarray, "dof modes"]
) -> Float[np.ndarray, "modes modes"]:
    """The orthogonal matrix that makes modes reproducible.

    Modes of one frequency may be mixed at will, as the two bending modes of a tube. Of such the
    first moves most along x, weighing y half; then the first of the largest displacements of each
    mode is made positive.
    """
    turn = np.eye(shapes.shape[1])
    x, y, _ = elements.displacements.T
    scalar = elements.node_mass
    for group in groups:
        if group.stop - group.start > 1:
            mixed = shapes[:, group]
            along = [mixed[rows].T @ (scalar @ mixed[rows]) for rows in (x, y)]
            turn[group, group] = np.linalg.eigh(-along[0] - along[1] / 2)[1]
    moved = (shapes @ turn)[elements.displacements.ravel()]
    large = np.abs(moved) >= 0.99 * np.max(np.abs(moved), axis=0, initial=0.0)
    first = np.take_along_axis(moved, np.argmax(large, axis=0)[None], axis=0)[0]
    return turn * np.where(first < 0, -1.0, 1.0)
