from typing import Any

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int

from .. import _settings
from .._checks import listed, shown
from .._custom_types import Setting
from .._errors import ModelError
from .._extras import optional
from ._elements import FiniteElements
from ._material import Material
from ._sparse import SparseMatrix
from ._strains import SolidStrains


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
