"""A straight beam along x of two-node elements with six degrees of freedom at each node, by the
textbook: cubic bending, linear stretching and twisting, consistent mass."""

import numpy as np


def beam(
    length: float, elements: int, *, young: float, shear: float, density: float, side: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mass, stiffness and nodes of a square section; the node's displacements come first, then its
    rotations."""
    h, area = length / elements, side**2
    second = side**4 / 12
    mass = density * area * h / 420
    cubic_mass = mass * np.array(
        [
            [156, 22 * h, 54, -13 * h],
            [22 * h, 4 * h**2, 13 * h, -3 * h**2],
            [54, 13 * h, 156, -22 * h],
            [-13 * h, -3 * h**2, -22 * h, 4 * h**2],
        ]
    )
    cubic = (
        young
        * second
        / h**3
        * np.array(
            [
                [12, 6 * h, -12, 6 * h],
                [6 * h, 4 * h**2, -6 * h, 2 * h**2],
                [-12, -6 * h, 12, -6 * h],
                [6 * h, 2 * h**2, -6 * h, 4 * h**2],
            ]
        )
    )
    linear_mass = np.array([[2.0, 1.0], [1.0, 2.0]]) * density * h / 6
    linear = np.array([[1.0, -1.0], [-1.0, 1.0]]) / h
    m, k = np.zeros((12, 12)), np.zeros((12, 12))
    for rows, mass_block, stiff_block in (
        ([0, 6], area * linear_mass, young * area * linear),
        ([3, 9], 2 * second * linear_mass, 0.141 * shear * side**4 * linear),
        ([1, 5, 7, 11], cubic_mass, cubic),
    ):
        m[np.ix_(rows, rows)] += mass_block
        k[np.ix_(rows, rows)] += stiff_block
    # Along z a rotation about y is the negative slope.
    flip = np.diag([1.0, -1.0, 1.0, -1.0])
    rows = [2, 4, 8, 10]
    m[np.ix_(rows, rows)] += flip @ cubic_mass @ flip
    k[np.ix_(rows, rows)] += flip @ cubic @ flip
    count = elements + 1
    whole_m, whole_k = np.zeros((6 * count,) * 2), np.zeros((6 * count,) * 2)
    for e in range(elements):
        rows = slice(6 * e, 6 * e + 12)
        whole_m[rows, rows] += m
        whole_k[rows, rows] += k
    points = np.zeros((count, 3))
    points[:, 0] = np.linspace(-length / 2, length / 2, count)
    return whole_m, whole_k, points
