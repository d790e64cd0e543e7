"""Slow oracle for accelerations and multipliers, NumPy only.

Every answer follows from its definition by a pseudoinverse; it shares nothing with the package.
"""

from __future__ import annotations

import numpy as np


# Singular values of a matrix in rows of unit length below this are zero.
RANK = 1e-11


def mass_matrix(model):
    """M of a model dict, bodies in file order: (x, y, phi) or linear and body-fixed angular."""
    dimension, parts = model["dimension"], []
    for body in model["body"]:
        inertia = np.array(body["inertia"], dtype=float)
        parts.append(body["mass"] * np.eye(dimension))
        parts.append(np.diag(inertia) if inertia.ndim == 1 else np.atleast_2d(inertia))
    size = sum(len(part) for part in parts)
    matrix, at = np.zeros((size, size)), 0
    for part in parts:
        end = at + len(part)
        matrix[at:end, at:end] = part
        at = end
    return matrix


def weighted(M, C):
    """L with M = L L^T, and C L^-T in rows of unit length, with their lengths."""
    L = np.linalg.cholesky(M)
    J = np.linalg.solve(L, C.T).T
    length = np.linalg.norm(J, axis=1)
    length = np.where(length > 0, length, 1.0)
    return L, J / length[:, None], length


def solve(M, C, F, Gamma):
    """Accelerations, and the multipliers of least sum of d_i lambda_i^2, d_i = (C M^-1 C^T)_ii:
    the least-squares solution of least norm of the whole system."""
    L, J, length = weighted(M, C)
    n, m = len(M), len(C)
    matrix = np.block([[np.eye(n), J.T], [J, np.zeros((m, m))]])
    right = np.concatenate([np.linalg.solve(L, F), Gamma / length])
    x = np.linalg.lstsq(matrix, right, rcond=RANK)[0]
    return np.linalg.solve(L.T, x[:n]), x[n:] / length


def free(M, F):
    """Accelerations without constraints."""
    return np.linalg.solve(M, F)


def null_spaces(M, C):
    """Bases of multipliers that exert no force, and of velocities that break no constraint."""
    L, J, length = weighted(M, C)
    U, s, Vt = np.linalg.svd(J)
    rank = int(np.sum(s > RANK * s[0]))
    return U[:, rank:] / length[:, None], np.linalg.solve(L.T, Vt[rank:].T)


def weighted_multipliers(M, C, F, Gamma, weights):
    """The solution of least sum of w_i lambda_i^2."""
    root = np.sqrt(weights)
    S = C @ np.linalg.solve(M, C.T)
    right = C @ np.linalg.solve(M, F) - Gamma
    S = S / root[:, None] / root[None, :]
    return np.linalg.pinv(S, rcond=RANK, hermitian=True) @ (right / root) / root


def semidefinite(M, C, F, Gamma):
    """Accelerations where M is only semidefinite (Udwadia & Phohomsiri 2006)."""
    n = len(M)
    P = np.eye(n) - np.linalg.pinv(C, rcond=RANK) @ C
    stacked = np.vstack([P @ M, C])
    return np.linalg.pinv(stacked, rcond=RANK) @ np.concatenate([F, Gamma])


def energy_norm(M, a):
    """sqrt(a^T M a)."""
    return float(np.sqrt(a @ M @ a))
