"""Order conditions of Runge-Kutta methods by rooted trees, and an interpolant by them (NumPy only).

A tree is the tuple of the trees on its root. With A the weights of the stages, a state
y0 + h sum_i w_i k_i belongs to the part x of a step, up to order p, iff for all trees of at most p
nodes (Butcher 2016, Numerical Methods for Ordinary Differential Equations, section 31)

    sum_i w_i Phi_i(tree) = x^size / density,    Phi_i(tree) = prod over parts of (A Phi(part))_i.

What is left of a condition counts in the error with one over the tree's symmetry.

    python tests/oracle_order_conditions.py    # prints jaxmbs/_dynamics/_runge_kutta.py
"""

import functools
import math
from collections import Counter

import numpy as np


# Conditions beyond the order of the interpolant count as for steps of this length, relative to the
# time in which a solution changes by as much as it has; and weights count a little, as large ones
# bring rounding.
LENGTH, SMALL_WEIGHTS = 0.15, 1e-6

MOST = 8


@functools.cache
def trees(size):
    """All of so many nodes."""
    found = set()

    def grow(left, largest, parts):
        if not left:
            found.add(tuple(sorted(parts, key=repr)))
        for n in range(min(left, largest), 0, -1):
            for part in trees(n):
                grow(left - n, n, (*parts, part))

    grow(size - 1, size - 1, ())
    return sorted(found, key=repr)


@functools.cache
def size(tree):
    return 1 + sum(map(size, tree))


@functools.cache
def density(tree):
    return size(tree) * math.prod(map(density, tree))


@functools.cache
def symmetry(tree):
    parts = Counter(tree).items()
    return math.prod(math.factorial(n) * symmetry(part) ** n for part, n in parts)


ALL = [tree for n in range(1, MOST + 1) for tree in trees(n)]
SIZES = np.array([size(tree) for tree in ALL])
DENSITIES = np.array([float(density(tree)) for tree in ALL])
SYMMETRIES = np.array([float(symmetry(tree)) for tree in ALL])


def elementary(weights):
    """Phi (trees, stages)."""

    @functools.cache
    def phi(tree):
        return math.prod((weights @ phi(part) for part in tree), start=np.ones(len(weights)))

    return np.array([phi(tree) for tree in ALL])


def exact(x):
    """Right sides (trees, len(x)) at these parts of a step."""
    return np.asarray(x)[None] ** SIZES[:, None] / DENSITIES[:, None]


def satisfying(phi, order, right):
    """Weights (stages, k) for right sides (trees, k): conditions up to that order are fulfilled, of
    the others the sum of squares is the least. None if there are no such weights for all x."""
    low = order >= SIZES
    pseudoinverse = np.linalg.pinv(phi[low], rcond=1e-10)
    # Fulfilled for all x if for as many as a polynomial has coefficients.
    every = exact(np.linspace(0.1, 1.0, MOST))[low]
    if np.max(np.abs(phi[low] @ pseudoinverse @ every - every)) > 1e-10:
        return None
    _, values, rows = np.linalg.svd(phi[low])
    free = rows[np.sum(values > 1e-10 * values[0]) :].T
    first = pseudoinverse @ right[low]
    counts = (LENGTH ** (SIZES - order - 1.0) / SYMMETRIES)[~low, None]
    goal = np.concatenate([counts * (right - phi @ first)[~low], -SMALL_WEIGHTS * first])
    tangent = np.concatenate([counts * (phi[~low] @ free), SMALL_WEIGHTS * free])
    found = first + free @ np.linalg.lstsq(tangent, goal, rcond=None)[0]
    # Once more, for the sake of rounding.
    return found + pseudoinverse @ (right - phi @ found)[low]


def best(weights, used, right):
    """`satisfying` (stages, k) of the highest order that stages have, without stages that are not
    used."""
    phi = elementary(weights)[:, used]
    for order in range(MOST, 0, -1):
        found = satisfying(phi, order, right)
        if found is not None:
            whole = np.zeros((len(weights), right.shape[1]))
            whole[used] = found
            return whole
    raise AssertionError("any method has order one")


def inside_stages(weights, end, nodes, used):
    """Of a method whose stages are led to by `weights` (stages, stages), and whose end by `end`
    (stages,): weights (len(nodes), stages and nodes) of stages at these nodes, and coefficients
    (stages, nodes and end, 5) of the polynomials q of `jaxmbs/_dynamics/_runge_kutta.py`, highest
    power of x - 1/2 first. `used`: stages of the method that are used."""
    count, used = len(weights), list(used)
    for node in nodes:
        row = best(weights, used, exact([node]))[:, 0]
        weights = np.pad(weights, ((0, 1), (0, 1)))
        weights[-1, :-1] = row
        used.append(len(weights) - 1)
    inside = weights[count:, :-1]
    weights = np.pad(weights, ((0, 1), (0, 1)))
    weights[-1, :count] = end
    used.append(len(weights) - 1)
    phi, first, last = elementary(weights), *np.eye(len(weights))[[0, -1]]
    hermite = np.stack([first, 3 * weights[-1] - 2 * first - last, last + first - 2 * weights[-1]])
    left = np.zeros((len(ALL), MOST + 1))
    left[np.arange(len(ALL)), SIZES] = 1 / DENSITIES
    left[:, 1:4] -= phi @ hermite.T
    quartics = []
    for row in left:
        # By x^2 (1 - x)^2.
        quotient, rest = np.polydiv(row[::-1], [1.0, -2.0, 1.0, 0.0, 0.0])
        assert np.max(np.abs(rest)) < 1e-10
        shifted = np.poly1d(quotient)(np.poly1d([1.0, 0.5])).coeffs
        quartics.append(np.pad(shifted, (5 - len(shifted), 0)))
    return inside, best(weights, used, np.array(quartics))


def dopri8():
    """Weights and end of the method of Dormand and Prince (1981), stages before the end."""
    # Nothing else here needs it.
    import diffrax

    tableau = diffrax.Dopri8().tableau
    count = tableau.num_stages - 1
    weights = np.zeros((count, count))
    for stage, row in enumerate(tableau.a_lower[:-1], start=1):
        weights[stage, : len(row)] = row
    return weights, np.array(tableau.b_sol[:count])


# Found by a search for the least error. Stages 1 to 4 are exact to a low order alone.
DOPRI8_NODES = (0.26, 0.45, 0.67)
DOPRI8_USED = (0, *range(5, 13))


if __name__ == "__main__":
    found, quartics = inside_stages(*dopri8(), DOPRI8_NODES, DOPRI8_USED)
    used = [*DOPRI8_USED, *range(13, len(quartics))]
    with np.printoptions(floatmode="unique", threshold=1000, linewidth=96):
        for name, x in {
            "NODES": np.array(DOPRI8_NODES),
            "USED": np.array(used),
            "WEIGHTS": found[:, used[:-2]],
            "QUARTICS": quartics[used],
        }.items():
            print(f"DOPRI8_{name} = np.array({x.tolist()})")
