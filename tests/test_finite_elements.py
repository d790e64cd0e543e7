"""Finite elements: matrices, meshes, frequencies of beams and plates, and what is refused."""

import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import scipy.io
import scipy.linalg
import scipy.sparse
import skfem
from frame_elements import beam
from numpy.polynomial import Legendre
from scipy.spatial.transform import Rotation

from jaxmbs import finite_elements as fem
from jaxmbs._errors import ModelError


# Type checkers know most of what is refused here. SciPy's own annotations take these for functions
# of JAX arrays, or leave shapes undecided.
ANY: Any = fem
block_diag: Any = scipy.linalg.block_diag
SPARSE: Any = scipy.sparse

STEEL = fem.Material(young=2e11, poisson=0.3, density=8000)
ALUMINIUM = fem.Material(young=6.9e10, poisson=0.33, density=2700)

# The link of the parallelogram (Wojtyra & Fraczek 2012), and an equal one of few elements.
LENGTH = np.sqrt(0.5)
INNER, OUTER = 0.026, 0.03
AREA = np.pi / 4 * (OUTER**2 - INNER**2)


def small_tube(around: int = 4, along: int = 4, **sizes: float) -> fem.FiniteElements:
    given = {"inner_diameter": 0.6, "outer_diameter": 1.0, "length": 3.0} | sizes
    return ANY.tube(**given, material=STEEL, around=around, along=along)


def free_frequencies(elements: fem.FiniteElements, count: int) -> np.ndarray:
    return np.asarray(fem.frequencies(fem.reduce(elements, [], modes=count)))


class TestMatrices:
    def test_one_brick_is_the_product_of_line_elements(self):
        """Mass and stiffness of a rectangular element of 27 nodes are products of the exact
        integrals of quadratic polynomials along its edges."""
        sizes = (0.5, 0.3, 0.2)
        elements = fem.plate(*sizes, STEEL, across=1, deep=1)
        place = [np.round(2 * elements.points[:, a] / sizes[a] + 1).astype(int) for a in range(3)]
        values = [h / 30 * np.array([[4, 2, -1], [2, 16, 2], [-1, 2, 4]]) for h in sizes]
        slopes = [np.array([[7, -8, 1], [-8, 16, -8], [1, -8, 7]]) / (3 * h) for h in sizes]
        # The derivative of the first times the second.
        mixed = np.array([[-3, -4, 1], [4, 0, -4], [-1, 4, 3]]) / 6

        def integral(a: int | None, b: int | None) -> np.ndarray:
            """Of dN_k/dx_a dN_l/dx_b."""
            whole = np.ones((27, 27))
            for axis in range(3):
                factor = {
                    (False, False): values[axis],
                    (True, True): slopes[axis],
                    (True, False): mixed,
                    (False, True): mixed.T,
                }[axis == a, axis == b]
                whole = whole * factor[np.ix_(place[axis], place[axis])]
            return whole

        mass = np.kron(STEEL.density * integral(None, None), np.eye(3))
        shear = 2e11 / 2.6
        lame = 2 * shear * 0.3 / 0.4
        stiffness = np.zeros((27, 3, 27, 3))
        for a in range(3):
            for b in range(3):
                stiffness[:, a, :, b] += lame * integral(a, b) + shear * integral(b, a)
                stiffness[:, a, :, a] += shear * integral(b, b)
        stiffness = stiffness.reshape(81, 81)
        np.testing.assert_allclose(
            elements.mass.toarray(), mass, rtol=0, atol=1e-13 * float(np.max(mass))
        )
        np.testing.assert_allclose(
            elements.stiffness.toarray(), stiffness, rtol=0, atol=1e-13 * float(np.max(stiffness))
        )

    def test_uniform_strain_of_curved_elements(self):
        """The patch test: a displacement that is linear in the place stores the energy of uniform
        strain, strain energy density times volume."""
        elements = small_tube(around=5)
        gradient = np.array([[1.0, 0.4, -0.2], [0.1, -0.7, 0.5], [0.3, 0.2, 0.6]])
        displacement = (elements.points @ gradient.T).ravel()
        strain = (gradient + gradient.T) / 2
        shear = 2e11 / 2.6
        lame = 2 * shear * 0.3 / 0.4
        density = lame * np.trace(strain) ** 2 / 2 + shear * np.sum(strain**2)
        energy = displacement @ (elements.stiffness @ displacement) / 2
        volume = elements.total_mass / 8000
        # Three Gauss points integrate the Jacobian of an arc exactly.
        np.testing.assert_allclose(energy, density * volume, rtol=1e-12)

    def test_tetrahedra_of_ten_nodes(self):
        """Any mesh of scikit-fem: a brick of tetrahedra has the mass properties of the brick."""
        mesh = skfem.MeshTet2.from_mesh(skfem.MeshTet.init_tensor(*[np.array([0.0, 1.0])] * 3))
        elements = fem.solid(mesh, STEEL)
        np.testing.assert_allclose(elements.total_mass, 8000, rtol=1e-13)
        np.testing.assert_allclose(elements.centre_of_mass, np.full(3, 0.5), rtol=1e-13)
        np.testing.assert_allclose(elements.inertia, 8000 / 6 * np.eye(3), rtol=0, atol=1e-9)


class TestMeshes:
    def test_mass_of_a_tube_converges_with_fourth_order(self):
        inner, outer, length = 0.6, 1.0, 3.0
        mass = 8000 * length * np.pi / 4 * (outer**2 - inner**2)
        polar = mass * (outer**2 + inner**2) / 8
        across = polar / 2 + mass * length**2 / 12
        exact = np.array([mass, across, across, polar])
        errors = []
        for around in (8, 16):
            elements = small_tube(around, along=2)
            found = np.array([elements.total_mass, *np.diag(elements.inertia)])
            errors.append(np.abs(found / exact - 1))
        order = np.log2(errors[0] / errors[1])
        assert np.all(np.abs(order - 4) < 0.1), order
        assert np.max(errors[1]) < 2e-4

    def test_a_tube_is_centred(self):
        elements = small_tube()
        np.testing.assert_allclose(elements.centre_of_mass, 0, atol=1e-14)
        radius = np.hypot(*elements.points[:, :2].T)
        np.testing.assert_allclose(np.unique(np.round(radius, 12)), [0.3, 0.4, 0.5], atol=1e-12)
        assert len(elements.points) == 8 * 3 * 9

    def test_mass_properties_are_those_of_the_mesh(self):
        """By quadrature of the density over a mesh that was turned and moved."""
        turn = Rotation.from_rotvec([0.3, -0.5, 0.8]).as_matrix()
        mesh = skfem.MeshHex2.from_mesh(
            skfem.MeshHex.init_tensor(*(np.linspace(0, size, 3) for size in (1.0, 0.5, 0.2)))
        )
        places = turn @ mesh.doflocs + np.array([[3.0], [-2.0], [1.0]])
        mesh = skfem.MeshHex2(np.ascontiguousarray(places), mesh.t)
        elements = fem.solid(mesh, STEEL)
        basis = skfem.Basis(mesh, skfem.ElementHex2(), intorder=8)
        x = np.asarray(basis.global_coordinates()).reshape(3, -1)
        weights = 8000 * np.asarray(basis.dx).ravel()
        mass = np.sum(weights)
        centre = x @ weights / mass
        r = x - centre[:, None]
        inertia = np.sum(weights * np.sum(r**2, axis=0)) * np.eye(3) - (weights * r) @ r.T
        np.testing.assert_allclose(elements.total_mass, mass, rtol=1e-12)
        np.testing.assert_allclose(elements.centre_of_mass, centre, rtol=1e-12)
        np.testing.assert_allclose(elements.inertia, inertia, rtol=0, atol=1e-10 * mass)


def timoshenko_free(stiffness: float, shear: float, mass: float, turning: float) -> np.ndarray:
    """Frequencies (Hz) of a free beam on (-1, 1) by the Ritz method with polynomials.

    Of the energies EI theta'^2 + kappa G A (w' - theta)^2 and rho A (dw/dt)^2 + rho I
    (dtheta/dt)^2, in units of half the length.
    """
    count = 24
    points, weights = np.polynomial.legendre.leggauss(2 * count)
    shapes = np.array([Legendre.basis(k)(points) for k in range(count)])
    slopes = np.array([Legendre.basis(k).deriv()(points) for k in range(count)])

    def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (a * weights) @ b.T

    k = np.block(
        [
            [shear * product(slopes, slopes), -shear * product(slopes, shapes)],
            [
                -shear * product(shapes, slopes),
                shear * product(shapes, shapes) + stiffness * product(slopes, slopes),
            ],
        ]
    )
    m = block_diag(mass * product(shapes, shapes), turning * product(shapes, shapes))
    squares = scipy.linalg.eigh(k, m, eigvals_only=True)
    # Besides a translation and a rotation.
    return np.sqrt(squares[2:6]) / (2 * np.pi)


class TestBeams:
    def test_timoshenko_of_the_test_is_euler_bernoulli_in_the_slender_limit(self):
        roots = np.array([4.730040745, 7.853204624, 10.995607838])
        # Length 2, EI = rho A = 1; shear and rotary inertia take some 1e-5 (k l)^2 of it.
        found = timoshenko_free(1.0, 3e5, 1.0, 3e-6)
        np.testing.assert_allclose(found[:3], (roots / 2) ** 2 / (2 * np.pi), rtol=1e-3)

    def test_slender_bar_bends_as_euler_and_bernoulli_say(self):
        """A bar 80 times as long as thick: shear and rotary inertia take 0.05 % and 0.15 % of the
        first two frequencies, and the 32 elements add as much."""
        size = 1 / 80
        elements = fem.plate(1.0, size, size, STEEL, across=32, deep=1)
        roots = np.array([4.730040745, 7.853204624])
        exact = roots**2 / (2 * np.pi) * np.sqrt(2e11 * size**2 / 12 / 8000)
        found = free_frequencies(elements, 4)
        np.testing.assert_allclose(found, np.repeat(exact, 2), rtol=5e-3)

    def test_free_link_bends_as_timoshenko_says(self):
        """kappa of Cowper (1966) for a hollow circle."""
        elements = fem.tube(INNER, OUTER, LENGTH, ALUMINIUM, around=8, along=24)
        ratio = (1 + (INNER / OUTER) ** 2) ** 2
        hollow = (20 + 12 * 0.33) * (INNER / OUTER) ** 2
        kappa = 6 * 1.33 * ratio / ((7 + 6 * 0.33) * ratio + hollow)
        second = np.pi / 64 * (OUTER**4 - INNER**4)
        half = LENGTH / 2
        exact = timoshenko_free(
            6.9e10 * second / half**3,
            kappa * 6.9e10 / 2.66 * AREA / half,
            2700 * AREA * half,
            2700 * second / half,
        )
        found = free_frequencies(elements, 6)
        # Both planes.
        np.testing.assert_allclose(found[:2], np.full(2, exact[0]), rtol=5e-3)
        np.testing.assert_allclose(found[2:4], np.full(2, exact[1]), rtol=5e-3)


class TestPlates:
    def test_thin_free_plate_against_the_published_frequencies(self):
        """NAFEMS FV12: 10 m x 10 m x 0.05 m, E = 200 GPa, nu = 0.3, 8000 kg/m^3. The frequencies
        are those of thin plates: Leissa (1973) gives omega a^2 sqrt(rho h / D) = 13.468, 19.596,
        24.270, 34.801, 34.801 for the completely free square. 16 elements across are 0.3 % too
        stiff in the third; the sixth and seventh would need more.
        """
        elements = fem.plate(10.0, 10.0, 0.05, STEEL, across=16)
        published = np.array([1.622, 2.360, 2.922, 4.190, 4.190])
        rigidity = 2e11 * 0.05**3 / 12 / (1 - 0.3**2)
        factors = np.array([13.468, 19.596, 24.270, 34.801, 34.801])
        leissa = factors / 100 * np.sqrt(rigidity / (8000 * 0.05)) / (2 * np.pi)
        # The two tables agree to their digits.
        np.testing.assert_allclose(published, leissa, rtol=5e-4)
        np.testing.assert_allclose(free_frequencies(elements, 5), leissa, rtol=5e-3)

    def test_the_platform(self):
        """0.5 x 0.5 x 0.02 m: thickness 0.04 of the width lowers the frequencies of thin plates, by
        0.5 % to 2 % of these five (Mindlin); so they lie below, and not farther than 2.5 %."""
        steel = fem.Material(young=2.1e11, poisson=0.3, density=7800)
        found = free_frequencies(fem.plate(0.5, 0.5, 0.02, steel, across=8), 5)
        rigidity = 2.1e11 * 0.02**3 / 12 / (1 - 0.3**2)
        factors = np.array([13.468, 19.596, 24.270, 34.801, 34.801])
        thin = factors / 0.25 * np.sqrt(rigidity / (7800 * 0.02)) / (2 * np.pi)
        assert np.all(found < thin)
        np.testing.assert_allclose(found, thin, rtol=2.5e-2)


ACROSS = fem.NodesOnPlane([1, 0, 0])


@pytest.fixture(scope="module")
def brick() -> fem.FiniteElements:
    return fem.plate(1.0, 0.4, 0.3, STEEL, across=2, deep=1)


def brick_ends(**options: Any) -> list[fem.Attachment]:
    return [
        fem.Attachment(name, [x, 0, 0], ACROSS, **options) for name, x in (("A", -0.5), ("B", 0.5))
    ]


def exported(
    folder: Path, elements: fem.FiniteElements, names: dict[int, str]
) -> tuple[Path, Path, Path]:
    """The files of another program."""
    mass, stiffness, table = folder / "m.mtx", folder / "k.mtx", folder / "nodes.csv"
    scipy.io.mmwrite(mass, SPARSE.coo_array(elements.mass), symmetry="symmetric")
    scipy.io.mmwrite(stiffness, SPARSE.coo_array(elements.stiffness))
    lines = ["name, x, y, z, dof"]
    for k, (x, y, z) in enumerate(elements.points.tolist()):
        lines.append(f"{names.get(k, '')}, {x!r}, {y!r}, {z!r}, {elements.first_dof[k]}")
    table.write_text("\n".join(lines) + "\n")
    return mass, stiffness, table


class TestImport:
    def test_matrices_of_files_make_the_same_body(self, brick, tmp_path):
        again = fem.read_matrices(*exported(tmp_path, brick, {0: "corner"}))
        assert again.names[:2] == ("corner", "")
        # Matrices of solids do not say how displacements of second order strain them.
        assert fem.reduce(again, brick_ends(), modes=4).second_order is None
        direct, read = (
            fem.reduce(x, brick_ends(), modes=4, stiffening=False) for x in (brick, again)
        )
        for a, b in zip(jax.tree.leaves(direct), jax.tree.leaves(read), strict=True):
            # Numbers are written with all their digits; the mean of equal ones rounds.
            np.testing.assert_allclose(b, a, rtol=0, atol=1e-9 * max(1e-9, np.max(np.abs(a))))

    def test_a_beam_whose_nodes_turn(self, tmp_path):
        """Bending, stretching and twisting of a free Euler-Bernoulli beam; its end nodes are the
        attachments, without a tie."""
        length, side = 2.0, 0.05
        given = {"young": 2e11, "shear": 8e10, "density": 8000.0}
        mass, stiffness, points = beam(length, 12, side=side, **given)
        elements = fem.FiniteElements(mass, stiffness, points)
        files = exported(tmp_path, elements, {0: "tail", 12: "tip"})
        read = fem.read_matrices(*files)
        assert np.all(read.rotating)
        reduced = fem.reduce(
            read,
            [fem.Attachment(n.upper(), nodes=fem.NodesNamed([n])) for n in ("tail", "tip")],
            modes=20,
        )
        assert reduced.nodes == ("TAIL", "TIP")
        np.testing.assert_allclose(reduced.points, [[-1, 0, 0], [1, 0, 0]], atol=1e-12)
        found = np.asarray(fem.frequencies(reduced))
        bending = np.array([4.730040745, 7.853204624]) ** 2 / length**2
        bending = bending / (2 * np.pi) * np.sqrt(2e11 * side**2 / 12 / 8000)
        np.testing.assert_allclose(found[:4], np.repeat(bending, 2), rtol=1e-3)
        # The ends' rotations are the slopes: a stretched beam turns nowhere.
        longer = np.asarray(reduced.translations[1, 0] - reduced.translations[0, 0])
        compliance = longer @ np.linalg.solve(reduced.stiffness, longer)
        np.testing.assert_allclose(compliance, length / (2e11 * side**2), rtol=1e-8)
        turned = np.asarray(reduced.rotations[1, 0] - reduced.rotations[0, 0])
        compliance = turned @ np.linalg.solve(reduced.stiffness, turned)
        np.testing.assert_allclose(compliance, length / (0.141 * 8e10 * side**4), rtol=1e-8)
        # M itself says the modal mass, the momenta and the angular momenta.
        products = np.einsum("aaij->ij", np.asarray(reduced.mode_products))
        np.testing.assert_allclose(products, np.eye(len(found)), atol=1e-9)
        second = np.asarray(reduced.mode_second_moment)
        np.testing.assert_allclose(second, second.transpose(1, 0, 2), atol=1e-9)
        polar = 8000 * side**4 / 6 * length
        np.testing.assert_allclose(reduced.inertia[0, 0], polar, rtol=1e-10)

    def test_an_attachment_beside_a_node_that_turns(self):
        """It is the end of a rigid arm: u + theta x r of the node's motion."""
        matrices = beam(2.0, 6, young=2e11, shear=8e10, density=8e3, side=0.05)
        elements = fem.FiniteElements(*matrices)
        here = fem.NodeNumbers([6])
        arm = np.array([0.3, -0.2, 0.1])
        at_node, beside = (
            fem.reduce(elements, [fem.Attachment("A", point, here)], modes=10)
            for point in (None, np.array([1.0, 0, 0]) + arm)
        )
        np.testing.assert_allclose(fem.frequencies(beside), fem.frequencies(at_node))
        moved = at_node.translations[0] + np.cross(at_node.rotations[0].T, arm).T
        size = float(np.max(np.abs(moved)))
        np.testing.assert_allclose(beside.translations[0], moved, rtol=0, atol=1e-6 * size)
        np.testing.assert_allclose(beside.rotations, at_node.rotations, rtol=0, atol=1e-6 * size)

    @pytest.mark.parametrize(
        ("table", "says"),
        [
            ("x,y,z\n0,0,0\n", r"has no column dof; its first line must name"),
            ("", r"has no column x, y, z, dof"),
            ("x,y,z,dof\n", r"names no node"),
            ("x,y,z,dof\n0,0,zero,0\n", r"line 2, must hold numbers x, y, z and a whole number"),
            ("x,y,z,dof\n0,0,0\n", r"line 2, must hold numbers"),
            ("x,y,z,dof\n0,0,0,1\n", r"first_dof must begin at 0"),
            ("x,y,z,dof\n0,0,0,0\n", r"leave each node 3 or 6 rows"),
            ("x,y,z,dof\n0,0,inf,0\n", r"points must be finite; those of the nodes 0 are not"),
        ],
    )
    def test_tables_that_are_none(self, brick, tmp_path, table, says):
        mass, stiffness, nodes = exported(tmp_path, brick, {})
        nodes.write_text(table)
        with pytest.raises(ModelError, match=says):
            fem.read_matrices(mass, stiffness, nodes)

    def test_files_that_are_none(self, brick, tmp_path):
        mass, stiffness, nodes = exported(tmp_path, brick, {})
        with pytest.raises(ModelError, match=r"nodes\.csv' is no Matrix Market file"):
            fem.read_matrices(mass, nodes, nodes)
        with pytest.raises(ModelError, match=r"there is no file .*none\.mtx"):
            fem.read_matrices(tmp_path / "none.mtx", stiffness, nodes)
        with pytest.raises(ModelError, match=r"there is no file .*none\.csv"):
            fem.read_matrices(mass, stiffness, tmp_path / "none.csv")
        with pytest.raises(TypeError, match="nodes must be a text such as"):
            ANY.read_matrices(mass, stiffness, 3)


def remade(elements: fem.FiniteElements, **changed: Any) -> fem.FiniteElements:
    given = {"mass": elements.mass, "stiffness": elements.stiffness, "points": elements.points}
    return fem.FiniteElements(**(given | changed))


def at(matrix: Any, row: int, column: int, value: float) -> Any:
    changed = matrix.tolil()
    changed[row, column] = value
    return changed


class TestRefusals:
    def test_without_scikit_fem(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "skfem", None)
        for call in (small_tube, lambda: fem.plate(1, 1, 1, STEEL)):
            with pytest.raises(
                ModelError, match=r"needs skfem, .* pip install 'jaxmbs\[elastic\]'"
            ):
                call()

    @pytest.mark.parametrize(
        ("changed", "says"),
        [
            ({"young": 0.0}, r"young must be greater than zero, got 0; of steel"),
            ({"young": -1.0}, r"young must be greater than zero, got -1"),
            ({"poisson": 0.5}, r"poisson must be greater than -1 and less than 0\.5, got 0\.5"),
            ({"poisson": -1.0}, r"poisson must be greater than -1 and less than 0\.5, got -1"),
            ({"density": 0.0}, r"density must be greater than zero"),
            ({"density": np.nan}, r"density must be a finite number"),
        ],
    )
    def test_materials(self, changed, says):
        with pytest.raises(ValueError, match=says):
            fem.Material(**({"young": 2e11, "poisson": 0.3, "density": 8000} | changed))

    @pytest.mark.parametrize(
        ("call", "error", "says"),
        [
            (lambda: small_tube(inner_diameter=1.0), ValueError, r"inner_diameter must be greater"),
            (lambda: small_tube(length=-1.0), ValueError, r"length must be greater than zero"),
            (lambda: small_tube(around=3), ValueError, r"around must be at least 4, got 3"),
            (lambda: fem.plate(1, 1, 0, STEEL), ValueError, r"thickness must be greater than"),
            (lambda: ANY.plate(1, 1, 1, "steel"), TypeError, r"material must be Material"),
            (lambda: fem.solid(skfem.MeshTri(), STEEL), ModelError, r"solid elements in space"),
            (lambda: fem.solid("mesh", STEEL), TypeError, r"mesh must be a mesh of scikit-fem"),
        ],
    )
    def test_meshes(self, call, error, says):
        with pytest.raises(error, match=says):
            call()

    def test_free_nodes_of_a_mesh(self):
        mesh = skfem.MeshTet()
        lonely = np.ascontiguousarray(np.hstack([mesh.p, [[7.0], [7.0], [7.0]]]))
        with pytest.raises(ModelError, match=r"the nodes 8 of the mesh are free: they belong to"):
            fem.solid(skfem.MeshTet(lonely, mesh.t), STEEL)

    def test_meshes_that_fall_apart(self):
        one = skfem.MeshHex()
        with pytest.raises(ModelError, match="falls into 2 parts that nothing connects"):
            fem.solid(one + one.translated([5.0, 0.0, 0.0]), STEEL)

    def test_matrices(self, brick):
        m, k, points = brick.mass, brick.stiffness, brick.points
        wide = SPARSE.block_diag([k, SPARSE.eye_array(3)])
        empty = k.toarray()
        empty[6:9] = empty[:, 6:9] = 0
        held = at(k, 0, 0, 1.01 * k[0, 0])
        for changed, says in (
            ({"stiffness": at(k, 0, 1, 2 * k[0, 1])}, r"stiffness must be symmetric; its entries"),
            ({"mass": at(m, 0, 3, 2 * m[0, 3])}, r"mass must be symmetric; its entries \["),
            ({"mass": -m}, r"mass is not positive definite"),
            ({"mass": at(m, 4, 4, 0.1 * m[4, 4])}, r"mass is not positive definite"),
            ({"stiffness": empty}, r"the nodes 2 are free: their rows of the stiffness are zero"),
            ({"mass": at(m, 0, 0, np.nan)}, r"mass must be finite; it holds nan"),
            ({"stiffness": wide}, r"mass has 135 rows and stiffness 138"),
            ({"stiffness": k[:4]}, r"stiffness must be a square matrix, got shape \[4, 135\]"),
            ({"mass": "m"}, r"mass must be a square matrix of real numbers, got 'm'"),
            ({"stiffness": held}, r"stiffness resists translations of the whole body"),
            ({"points": 1000 * points**2}, r"stiffness resists rotations of the whole body"),
            ({"points": points[:3]}, r"135 rows, which is neither 3 nor 6 for each of 3 points"),
            ({"points": points[:, :2]}, r"points must have shape \[nodes, 3\]"),
            ({"points": np.full_like(points, np.inf)}, r"points must be finite"),
            ({"points": "p"}, r"points must be numbers, three for each node"),
            ({"first_dof": [0, 3]}, r"first_dof must be one whole number for each of 45 points"),
            ({"first_dof": np.arange(45)}, r"leave each node 3 or 6 rows"),
            ({"names": ["A"]}, r"names must be one text for each of 45 points"),
            ({"names": ["A"] * 45}, r"names must differ; A stands more than once"),
        ):
            with pytest.raises(ModelError, match=says):
                remade(brick, **changed)

    @pytest.mark.parametrize(
        ("nodes", "point", "says"),
        [
            (ACROSS, [3, 0, 0], r"the attachment 'A' finds no nodes at \[3\.0, 0\.0, 0\.0\]"),
            (fem.NodesWithin(1e-3), [0.1, 0, 0], r"'A' finds no nodes at"),
            (fem.NodeNumbers([0, 999]), None, r"the nodes 999 are not among .* 0 to 44"),
            (fem.NodesNamed(["tip"]), None, r"no node is called tip; there are none"),
            (fem.NodesWithin(0.1), None, r"need the attachment's point"),
            (fem.NodeNumbers([0]), None, r"'A' is tied to the nodes 0, all on one line"),
            (fem.NodesWithin(0.16), [0.5, 0.2, 0], r"tied to the nodes .* all on one line"),
        ],
    )
    def test_attachments_that_find_no_hold(self, brick, nodes, point, says):
        with pytest.raises(ModelError, match=says):
            fem.reduce(brick, [fem.Attachment("A", point, nodes)])

    def test_attachments_that_get_into_each_other_s_way(self, brick):
        here = fem.Attachment("A", [0.5, 0, 0], ACROSS)
        with pytest.raises(ModelError, match="two attachments are called A"):
            fem.reduce(brick, [here, fem.Attachment("A", [-0.5, 0, 0], ACROSS)])
        with pytest.raises(ModelError, match="'A' and 'B' are both tied to the nodes"):
            fem.reduce(brick, [here, fem.Attachment("B", [0.5, 0, 0], ACROSS)])

    def test_arguments_of_attachments(self):
        for make, error, says in (
            (lambda: fem.Attachment("", [0, 0, 0], ACROSS), ValueError, "name must be a text"),
            (lambda: fem.Attachment("A", [0, 0], ACROSS), ValueError, "point must be a vector"),
            (lambda: fem.Attachment("A", [0, 0, 0]), TypeError, "nodes must be NodesOnPlane"),
            (
                lambda: ANY.Attachment("A", [0, 0, 0], ACROSS, fem.RigidConnection),
                TypeError,
                r"put brackets behind it: RigidConnection\(...\)",
            ),
            (lambda: fem.NodesOnPlane([0, 0, 0]), ValueError, "normal has zero length"),
            (lambda: fem.NodesOnPlane([0, 0, 1], radius=0.0), ValueError, "radius must be"),
            (lambda: fem.NodesWithin(-1.0), ValueError, "radius must be greater than zero"),
            (lambda: fem.NodeNumbers([0.5]), TypeError, "numbers must be a list of whole"),
        ):
            with pytest.raises(error, match=says):
                make()

    def test_none_and_all_modes_are_no_error(self, brick):
        rigid = fem.reduce(brick, brick_ends()[:1], modes=0)
        assert fem.frequencies(rigid).shape == (0,)
        assert rigid.mode_products.shape == (3, 3, 0, 0)
        assert fem.frequencies(fem.reduce(brick, [], modes=129)).shape == (129,)

    def test_more_modes_than_degrees_of_freedom(self, brick):
        # 45 nodes; 9 in each end follow the attachments.
        with pytest.raises(ModelError, match=r"modes must be at most 81, .* are held, got 82"):
            fem.reduce(brick, brick_ends(), modes=82)
        with pytest.raises(ModelError, match=r"modes must be at most 129, .* rigid motions"):
            fem.reduce(brick, [], modes=130)
        with pytest.raises(ValueError, match="modes must be at least 0, got -1"):
            fem.reduce(brick, brick_ends(), modes=-1)
        with pytest.raises(TypeError, match="elements must be FiniteElements"):
            fem.reduce(brick.mass, brick_ends())
        with pytest.raises(TypeError, match="attachments must be a list, each of its entries"):
            ANY.reduce(brick, brick_ends()[0])

    def test_weak_springs_to_the_ground(self):
        """Of a bar a thousand times as long as thick: 1 N/m is 1e-10 of the matrix, and more than
        bending."""
        bar = fem.plate(1.0, 1e-3, 1e-3, STEEL, across=20, deep=1)
        # The bar itself is no matter.
        assert fem.reduce(bar, [], modes=2).stiffness.shape == (2, 2)
        springs = np.zeros(bar.stiffness.shape[0])
        springs[:6] = 1.0
        held = remade(bar, stiffness=bar.stiffness + SPARSE.diags_array(springs))
        with pytest.raises(ModelError, match=r"rigid motions of the body up to .* Hz, beside"):
            fem.reduce(held, [], modes=2)

    def test_a_hinge_in_the_body(self):
        """Two beams, one behind the other, whose meeting ends are joined but for the rotation about
        y: seven motions of frequency zero, with attachments at both ends, at one, and at none."""
        mass, stiffness, points = beam(1.0, 2, young=2e11, shear=8e10, density=8e3, side=0.1)
        both = block_diag(mass, mass)
        joined = block_diag(stiffness, stiffness)
        # The last node of the first and the first of the second.
        rows = np.delete(np.arange(6), 4) + 12
        spring = 1e9 * np.array([[1, -1], [-1, 1]])
        for row in rows:
            joined[np.ix_([row, row + 6], [row, row + 6])] += spring
        half = np.array([0.5, 0, 0])
        places = np.vstack([points - half, points + half])
        elements = fem.FiniteElements(both, joined, places, names=[*"abcdef"])
        hold = [fem.Attachment(n, nodes=fem.NodesNamed([n])) for n in "af"]
        for attachments, says in (
            (hold, r"the body has 7 motions of frequency zero, where a free body has six"),
            (hold[:1], r"leaves some part free to move though all attachments are held"),
            ([], r"the body has 7 motions of frequency zero"),
        ):
            with pytest.raises(ModelError, match=says):
                fem.reduce(elements, attachments, modes=3)
