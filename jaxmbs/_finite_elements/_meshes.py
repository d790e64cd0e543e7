"""Meshes of solids: materials, assembled matrices, and plates and tubes of quadratic hexahedra
(scikit-fem's `MeshHex2`).
"""

import math
from typing import Any

import equinox as eqx
import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int

from .. import _settings
from .._checks import listed, shown
from .._custom_types import Setting
from .._errors import ModelError, optional
from ._elements import FiniteElements, SolidStrains, SparseMatrix


class Material(eqx.Module):
    """A linear elastic, isotropic material.

    **Arguments:**

    - `young`: modulus of elasticity E (Pa), > 0. `poisson`: Poisson's ratio, between -1 and 0.5.
    - `density`: kg/m^3, > 0.

    **Raises:** `TypeError` for a value that is not a number, `ValueError` for one out of its range.
    """

    young: float
    poisson: float
    density: float

    def __init__(self, *, young: Setting[float], poisson: Setting[float], density: Setting[float]):
        self.young = _settings.known_number(
            young, "young", above=0, advice="of steel it is about 2.1e11 Pa"
        )
        self.poisson = _settings.known_number(
            poisson, "poisson", above=-1, below=0.5, advice="of most metals it is about 0.3"
        )
        self.density = _settings.known_number(
            density, "density", above=0, advice="of steel it is about 7800 kg/m^3"
        )

    @property
    def lame(self) -> tuple[float, float]:
        """Lame's constants lambda and mu (Pa)."""
        mu = self.young / (2 * (1 + self.poisson))
        return 2 * mu * self.poisson / (1 - 2 * self.poisson), mu


# Gauss points along an edge integrate polynomials of degree 2 n - 1. Of a quadratic hexahedron with
# straight edges both integrals are of degree 4. Where edges are arcs the mass is of degree 7 (shape
# functions twice 2, the Jacobian 3), and the stiffness rational.
_MASS_DEGREE = 7
_STIFFNESS_DEGREE = 5


def solid(mesh: Any, material: Setting[Material]) -> FiniteElements:
    """The finite elements of a mesh of scikit-fem in three dimensions.

    The displacements are interpolated as the mesh's geometry is (isoparametric elements), so rigid
    motions are exact also where edges are curved: `MeshHex2` gives hexahedra of 27 nodes,
    `MeshTet2` tetrahedra of 10. Linear ones (`MeshHex`, `MeshTet`) are far too stiff in bending;
    make them quadratic first, by `MeshHex2.from_mesh(mesh)`. Shape functions, geometry and
    quadrature are scikit-fem's.

    **Arguments:** `mesh`: of scikit-fem, in m. `material`: its `Material`.

    **Returns:** three degrees of freedom at each node.

    **Raises:** `ModelError` for a mesh in other than three dimensions or with free nodes, and if
    scikit-fem is not installed (extra `elastic`). `TypeError` for a value that is not a mesh or a
    material.
    """
    skfem = optional("skfem", "elastic")
    material = _settings.instance(
        material, Material, "material", "Material(young=..., poisson=..., density=...)"
    )
    mesh = _settings.instance(
        mesh, skfem.Mesh, "mesh", "a mesh of scikit-fem such as MeshHex2(...)"
    )
    if mesh.p.shape[0] != 3:
        raise ModelError(f"mesh must be one of solid elements in space, got {shown(mesh)}.")
    _check_vertices(mesh)
    element = mesh.elem()
    coarse = skfem.Basis(mesh, element, intorder=_STIFFNESS_DEGREE)
    fine = skfem.Basis(mesh, element, intorder=_MASS_DEGREE)
    nodes = coarse.dofs.element_dofs.T.astype(int)
    mass = _gathered(_masses(fine, material), nodes, int(coarse.N))
    size = 3 * int(coarse.N)
    strains = SolidStrains(nodes, _slopes(coarse), np.asarray(coarse.dx), material.lame, size)
    return FiniteElements(
        sp.kron(mass, sp.eye_array(3)),
        _gathered(_stiffnesses(coarse, material), strains.rows, size),
        coarse.doflocs.T,
        strains=strains,
    )


def _check_vertices(mesh: Any) -> None:
    used = np.zeros(mesh.doflocs.shape[1], bool)
    used[np.unique(mesh.dofs.element_dofs)] = True
    if not used.all():
        raise ModelError(
            f"the nodes {listed(np.flatnonzero(~used))} of the mesh are free: they belong to no "
            "element; leave them out."
        )


def _masses(basis: Any, material: Material) -> Float[np.ndarray, "elements n n"]:
    """The integrals of N_k N_l dm."""
    shapes = np.stack([np.broadcast_to(one[0], basis.dx.shape) for one in basis.basis], axis=1)
    return material.density * (shapes * basis.dx[:, None]) @ shapes.transpose(0, 2, 1)


def _slopes(basis: Any) -> Float[np.ndarray, "elements n 3 points"]:
    """Derivatives of the shape functions along x, y and z."""
    return np.stack([one[0].grad for one in basis.basis]).transpose(2, 0, 1, 3)


def _stiffnesses(basis: Any, material: Material) -> Float[np.ndarray, "elements rows rows"]:
    """Stiffness matrices of isotropic elasticity: the integral of lambda (div u) (div v) + 2 mu
    (sym grad u : grad v), all from the products of the shape functions' derivatives dN_k/dx_a
    dN_l/dx_b."""
    lame, mu = material.lame
    slopes = _slopes(basis)
    elements, count, _, _ = slopes.shape
    flat = slopes.reshape(elements, 3 * count, -1)
    products = (flat * basis.dx[:, None]) @ flat.transpose(0, 2, 1)
    products = products.reshape(elements, count, 3, count, 3)
    laplacian = np.einsum("ekclc,ab->ekalb", products, np.eye(3))
    stiffness = lame * products + mu * products.transpose(0, 1, 4, 3, 2) + mu * laplacian
    return stiffness.reshape(elements, 3 * count, 3 * count)


def _gathered(
    blocks: Float[np.ndarray, "elements n n"], rows: Int[np.ndarray, "elements n"], size: int
) -> SparseMatrix:
    """The sum of the elements' matrices."""
    count = rows.shape[1]
    left = np.repeat(rows, count, axis=1).ravel()
    right = np.tile(rows, (1, count)).ravel()
    return sp.coo_array((blocks.ravel(), (left, right)), shape=(size, size)).tocsc()


# --------------------------------------------------------------------------------------------------
# Meshes of quadratic hexahedra of 27 nodes (scikit-fem's `MeshHex2`).
# --------------------------------------------------------------------------------------------------


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
