"""Meshes of quadratic hexahedra of 27 nodes (scikit-fem's `MeshHex2`)."""

import math
from typing import Any

import numpy as np

from .. import _settings
from .._custom_types import Setting
from .._extras import optional
from ._assembly import solid
from ._elements import FiniteElements
from ._material import Material


def tube(
    inner_diameter: Setting[float],
    outer_diameter: Setting[float],
    length: Setting[float],
    material: Setting[Material],
    *,
    around: Setting[int] = 12,
    along: Setting[int | None] = None,
    across: Setting[int] = 1,
) -> FiniteElements:
    """A round tube along z, centred at its centre of mass, of quadratic hexahedra with 27 nodes.

    The nodes lie on the exact circles and the elements are isoparametric, so mass and inertia
    converge to the exact tube's with the fourth power of the elements' size.

    **Arguments:**

    - `inner_diameter`, `outer_diameter`, `length`: m, > 0. `material`: its `Material`.
    - `around`, `along`, `across`: elements around the circle (at least 4; multiples of 4 keep the
      bending frequencies in x and y equal), along the length (None: no longer than two thirds of
      the outer diameter, at least 4), and across the wall.

    **Returns:** the finite elements; the ends lie at z = -length / 2 and length / 2.

    **Raises:** `ValueError` for an impossible size, `TypeError` for an invalid number or
    material, `ModelError` if scikit-fem is not installed (extra `elastic`).
    """
    skfem = optional("skfem", "elastic")
    outer = _settings.known_number(outer_diameter, "outer_diameter", above=0)
    inner = _settings.known_number(
        inner_diameter, "inner_diameter", above=0, below=outer, advice="the wall lies between both"
    )
    long = _settings.known_number(length, "length", above=0)
    around = _settings.whole_number(around, "around", least=4)
    across = _settings.whole_number(across, "across", least=1)
    along = _count(along, "along", max(4, math.ceil(round(1.5 * long / outer, 6))))
    step = 2 * np.pi / around
    block = skfem.MeshHex.init_tensor(
        np.linspace(inner / 2, outer / 2, across + 1),
        np.arange(around + 1.0),
        np.linspace(-long / 2, long / 2, along + 1),
    )
    radius, turn, height = block.p
    straight = np.stack([radius * np.cos(turn * step), radius * np.sin(turn * step), height])
    # The first and the last angle are one.
    place = np.stack([radius, turn % around, height])
    _, first, number = np.unique(place, axis=1, return_index=True, return_inverse=True)
    chords = np.ascontiguousarray(straight[:, first]), np.ascontiguousarray(number.ravel()[block.t])
    mesh = skfem.MeshHex2.from_mesh(skfem.MeshHex(*chords))
    # Nodes halfway between two angles lie on the chords so far.
    x, y, z = mesh.doflocs
    halfway = np.round(2 * np.arctan2(y, x) / step).astype(int) % 2 == 1
    out = np.where(halfway, 1 / np.cos(step / 2), 1.0)
    return solid(skfem.MeshHex2(np.stack([out * x, out * y, z]), mesh.t), material)


def plate(
    width: Setting[float],
    depth: Setting[float],
    thickness: Setting[float],
    material: Setting[Material],
    *,
    across: Setting[int] = 10,
    deep: Setting[int | None] = None,
    through: Setting[int] = 1,
) -> FiniteElements:
    """A rectangular plate (or a bar) centred at its centre of mass, of quadratic hexahedra with 27
    nodes.

    Elements of 27 nodes bend well up to lengths of some five thicknesses, and are too stiff beyond:
    of a plate 0.005 of its width thick, the first frequency is 0.2 % too high with 8 elements
    across and 0.06 % with 12, the third 1.2 % and 0.5 %.

    **Arguments:**

    - `width` along x, `depth` along y, `thickness` along z: m, > 0. `material`: its `Material`.
    - `across`, `deep`, `through`: elements along x, y (None: as long as those along x) and z.

    **Returns:** the finite elements.

    **Raises:** `ValueError` for an impossible size, `TypeError` for an invalid number or
    material, `ModelError` if scikit-fem is not installed (extra `elastic`).
    """
    skfem = optional("skfem", "elastic")
    sizes = [
        _settings.known_number(value, what, above=0)
        for value, what in ((width, "width"), (depth, "depth"), (thickness, "thickness"))
    ]
    across = _settings.whole_number(across, "across", least=1)
    deep = _count(deep, "deep", max(1, round(across * sizes[1] / sizes[0])))
    through = _settings.whole_number(through, "through", least=1)
    edges = [
        np.linspace(-size / 2, size / 2, count + 1)
        for size, count in zip(sizes, (across, deep, through), strict=True)
    ]
    return solid(skfem.MeshHex2.from_mesh(skfem.MeshHex.init_tensor(*edges)), material)


def _count(value: Any, what: str, default: int) -> int:
    return default if value is None else _settings.whole_number(value, what, least=1)
