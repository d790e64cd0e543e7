"""Checks of the numbers of an elastic body when it is made. Concrete values only."""

import warnings

import numpy as np
from jaxtyping import Float

from .. import _checks
from .._custom_types import Vector3
from ._modal_inertia import ARC, undeformed_mass_matrix
from ._reduced_body import ReducedBody


# A body must have a mass matrix where it bends by this part of its length, along each of the shapes
# by which it is softest; runs say that they leave the theory there.
_BENT = 0.2
_SHAPES = 6


def check_definite(reduced: ReducedBody) -> None:
    """Refuse a mass matrix, of the undeformed body, that has no inverse."""
    # Nothing is known of what is traced, nor while a program is traced of what follows from it.
    products = _checks.concrete(reduced.mode_products)
    if products is None:
        return
    squares = np.diagonal(products[0, 0] + products[1, 1] + products[2, 2])
    if np.any(squares <= 0):
        raise ValueError(
            f"mode {int(np.argmin(squares)) + 1} of reduced moves no mass; leave it out."
        )
    matrix = _checks.concrete(undeformed_mass_matrix(reduced))
    if matrix is None:
        return
    scale = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
    if np.any(scale == 0):
        raise ValueError("reduced.inertia must be positive definite.")
    least = np.linalg.eigvalsh(matrix / np.outer(scale, scale))[0]
    if least < 1e-12:
        raise ValueError(
            "the mass matrix of reduced must be positive definite (its smallest eigenvalue, for a "
            f"unit diagonal, is {least:.2g}): leave out modes that depend on each other or move it "
            "as a rigid body, and check that first_moment and inertia are about one point."
        )


def warn_fast_spin(name: str, reduced: ReducedBody, spin: Vector3) -> None:
    """Warn of a body whose centrifugal force, which does not stiffen its bending, is larger than
    what holds its first mode together."""
    known = _checks.concrete(spin)
    if reduced.second_order is not None or known is None or not np.any(known):
        return
    products, stiffness = (_checks.concrete(x) for x in (reduced.mode_products, reduced.stiffness))
    if products is None or stiffness is None or not stiffness.size:
        return
    inverse = np.linalg.inv(np.linalg.cholesky(np.einsum("aaij->ij", products)))
    lowest = np.sqrt(max(np.linalg.eigvalsh(inverse @ stiffness @ inverse.T)[0], 0.0))
    if np.linalg.norm(known) > lowest:
        warnings.warn(
            f"Body {_checks.shown(name)} begins at {np.linalg.norm(known):.3g} rad/s, above its "
            f"lowest frequency of {lowest:.3g} rad/s, and centrifugal force does not stiffen it. "
            "Give it displacements of second order (reduced.second_order, which "
            "finite_elements.reduce computes for solid meshes and for beams), or let it spin more "
            "slowly.",
            stacklevel=4,
        )


def warn_bent_mass(name: str, reduced: ReducedBody) -> None:
    """Warn of integrals that no displaced mass has: at rest they may be definite, and bent not."""
    known = _checks.concrete(reduced.mode_products)
    if known is None or not known.size:
        return
    shape = _shape_without_mass(reduced)
    if shape is not None:
        warnings.warn(
            f"Body {_checks.shown(name)} has no mass matrix where it bends by "
            f"{100 * _BENT:g} % of its length along its softest shape number {shape + 1}: the "
            "integrals of reduced are not those of one mass that its modes displace. Runs end "
            "there, or before. Compute inertia, mode_first_moment, mode_second_moment and "
            "mode_products by the same quadrature, about the same point.",
            stacklevel=4,
        )


def _shape_without_mass(reduced: ReducedBody) -> int | None:
    """The number of the first of the softest shapes of which, bent along it, the mass matrix of
    linear displacements is not positive definite; those of second order keep it so."""
    mass, first, inertia, mode_first, mode_second, products, stiffness = (
        np.asarray(getattr(reduced, word), float)
        for word in (
            *("mass", "first_moment", "inertia", "mode_first_moment", "mode_second_moment"),
            *("mode_products", "stiffness"),
        )
    )
    second = np.trace(inertia) / 2 * np.eye(3) - inertia

    def matrix(eta: Float[np.ndarray, " modes"]) -> Float[np.ndarray, "nv nv"]:
        modal = mode_second + np.einsum("abjk,j->abk", products, eta)
        moved = second + (mode_second @ eta).T + modal @ eta
        x, y, z = first + mode_first @ eta
        turning = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
        coupling = np.stack([modal[a, b] - modal[b, a] for a, b in ((1, 2), (2, 0), (0, 1))])
        turned = np.trace(moved) * np.eye(3) - moved
        whole = [
            [mass * np.eye(3), turning, mode_first],
            [turning.T, turned, coupling],
            [mode_first.T, coupling.T, np.einsum("aaij->ij", products)],
        ]
        return np.block(whole)

    rest = matrix(np.zeros(len(stiffness)))
    rigid, coupling = rest[:6, :6], rest[:6, 6:]
    apart = rest[6:, 6:] - coupling.T @ np.linalg.solve(rigid, coupling)
    centre = first / mass
    squares = ARC / (np.trace(second) - mass * centre @ centre) * apart
    inverse = np.linalg.inv(np.linalg.cholesky(squares))
    shapes = inverse.T @ np.linalg.eigh(inverse @ stiffness @ inverse.T)[1]
    size = np.sqrt(np.diagonal(rest))
    for k, shape in enumerate(shapes.T[:_SHAPES]):
        for eta in (_BENT * shape, -_BENT * shape):
            scaled = matrix(eta) / np.outer(size, size)
            if np.linalg.eigvalsh(scaled)[0] <= 0:
                return k
    return None
