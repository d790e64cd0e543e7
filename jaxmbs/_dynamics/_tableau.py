"""Coefficients of explicit Runge-Kutta methods, with the end of a step as their last stage."""

from typing import Any, NamedTuple

import numpy as np

from ._interpolation import InsideStages


class Tableau(NamedTuple):
    """The tableau of a method whose last stage is its end. `weights` (stages, stages) lead to each
    stage's state, `nodes` (stages,) to its time, `error` (stages,) to the error; `own`: stages of
    the method itself, without an end added to it; `inside`: the number of stages before the end
    that only its interpolant uses."""

    weights: np.ndarray
    nodes: np.ndarray
    error: np.ndarray
    own: int
    inside: int


def tableau_of(solver: Any, inside: InsideStages | None = None) -> Tableau:
    """The tableau of a Diffrax method, with stages of its interpolant."""
    given = solver.tableau
    own = given.num_stages
    stages = own if given.ssal else own + 1
    weights, nodes, error = np.zeros((stages, stages)), np.zeros(stages), np.zeros(stages)
    for stage, row in enumerate(given.a_lower, start=1):
        weights[stage, : len(row)] = row
    weights[-1, :own] = given.b_sol
    nodes[1:own] = given.c
    nodes[-1] = 1.0
    error[:own] = given.b_error
    tableau = Tableau(weights, nodes, error, own, 0)
    return tableau if inside is None else _with_inside_stages(tableau, inside)


def _with_inside_stages(tableau: Tableau, inside: InsideStages) -> Tableau:
    """Before the end: they do not need its slope, and so the end stays the last."""
    count, last = len(inside.nodes), len(tableau.nodes) - 1
    weights, nodes, error = (
        np.insert(x, [last] * count, 0.0, axis=0)
        for x in (tableau.weights, tableau.nodes, tableau.error)
    )
    weights = np.insert(weights, [last] * count, 0.0, axis=1)
    weights[last : last + count, : last + count] = inside.weights
    nodes[last : last + count] = inside.nodes
    return Tableau(weights, nodes, error, tableau.own, count)
