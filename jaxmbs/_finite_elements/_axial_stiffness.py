import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _settings
from .._bodies import ReducedBody
from .._checks import listed
from .._custom_types import Setting


def axial_stiffness(
    reduced: Setting[ReducedBody], nodes: Setting[list[str] | tuple[str, ...]]
) -> Float[Array, ""]:
    """The stiffness (N/m) of a reduced body between two of its nodes, along the line through both:
    that of the rod (`elastic.Rod`) which takes its place.

    Opposite forces F on the nodes, along the line, bring them nearer by u; then F = k u, with

        1 / k = d^T K^-1 d,   d = e . (phi_2 - phi_1),

    K the stiffness of the modes, phi their displacements of both nodes, e the line's direction.
    Craig-Bampton modes hold this deformation whatever the number of normal modes.

    **Arguments:** `reduced`: of `reduce` or `load`. `nodes`: two names.

    **Raises:** `TypeError` or `ValueError` for a value that is not a reduced body, and for names
    that are not two of its nodes.
    """
    reduced = _settings.instance(reduced, ReducedBody, "reduced", "what reduce(...) returns")
    names = _settings.names(nodes, "nodes", '["A", "B"]')
    if len({*names}) != 2 or len(names) != 2 or not {*names} <= {*reduced.nodes}:
        raise ValueError(
            f"nodes must be two nodes of the reduced body, which are {listed(reduced.nodes)}, got "
            f"{listed(names)}."
        )
    first, second = (reduced.nodes.index(name) for name in names)
    line = np.asarray(reduced.points[second] - reduced.points[first], float)
    moved = np.asarray(reduced.translations[second] - reduced.translations[first], float)
    along = (line / np.linalg.norm(line)) @ moved
    return jnp.asarray(1 / (along @ np.linalg.solve(np.asarray(reduced.stiffness, float), along)))
