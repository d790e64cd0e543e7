"""Craig-Bampton reduction: frequencies, static compliance, inertia integrals, files."""

from typing import Any

import jax
import numpy as np
import pytest
import scipy.linalg
import skfem
from scipy.spatial.transform import Rotation

from jaxmbs import finite_elements as fem
from jaxmbs._errors import ModelError
from jaxmbs._finite_elements import _reduce
from jaxmbs._finite_elements._attachment import interface
from jaxmbs._finite_elements._elements import inertia_integrals
from jaxmbs._finite_elements._storage import digest


STEEL = fem.Material(young=2e11, poisson=0.3, density=8000)
ALUMINIUM = fem.Material(young=6.9e10, poisson=0.33, density=2700)

RIGID = fem.RigidConnection()
AVERAGED = fem.AveragedConnection()
CONNECTIONS = pytest.mark.parametrize("connection", [RIGID, AVERAGED], ids=["RBE2", "RBE3"])

NEAR = fem.NodesWithin(0.2)
DAMPED = fem.ModalDamping(0.1)

# A short, thick tube of few elements: 288 nodes, solved whole by dense algebra.
LONG = 2.0


@pytest.fixture(scope="module")
def tube() -> fem.FiniteElements:
    return fem.tube(0.3, 0.5, LONG, STEEL, around=4, along=4)


def ends(connection: Any, length: float = LONG) -> list[fem.Attachment]:
    across = fem.NodesOnPlane([0, 0, 1])
    return [
        fem.Attachment(name, [0, 0, z], across, connection)
        for name, z in (("A", -length / 2), ("B", length / 2))
    ]


def dense(elements: fem.FiniteElements) -> tuple[np.ndarray, np.ndarray]:
    return elements.mass.toarray(), elements.stiffness.toarray()


def turning(r: np.ndarray) -> np.ndarray:
    """The matrix of theta x r."""
    return np.cross(np.eye(3), r).T


def ring(elements: fem.FiniteElements, z: float) -> np.ndarray:
    return np.flatnonzero(np.abs(elements.points[:, 2] - z) < 1e-9)


def rigid_rings(elements: fem.FiniteElements) -> np.ndarray:
    """Displacements of all nodes (dof, 12 + rest) where both end rings move as rigid bodies."""
    count = 3 * len(elements.points)
    columns = np.zeros((count, 12))
    free = np.ones(count, bool)
    for k, z in enumerate((-LONG / 2, LONG / 2)):
        for node in ring(elements, z):
            rows = slice(3 * node, 3 * node + 3)
            columns[rows, 6 * k : 6 * k + 3] = np.eye(3)
            columns[rows, 6 * k + 3 : 6 * k + 6] = turning(elements.points[node] - [0, 0, z])
            free[rows] = False
    return np.hstack([columns, np.eye(count)[:, free]])


def spread_load(elements: fem.FiniteElements) -> np.ndarray:
    """Loads on all nodes (dof, 12) by unit forces and torques at the ends, spread over the end
    rings by the nodes' masses: f_k = w_k (a + b x r_k) with a and b from the balance."""
    weights = elements.mass.diagonal()[::3]
    loads = np.zeros((3 * len(elements.points), 12))
    for k, z in enumerate((-LONG / 2, LONG / 2)):
        nodes = ring(elements, z)
        motion = np.vstack(
            [np.hstack([np.eye(3), turning(elements.points[n] - [0, 0, z])]) for n in nodes]
        )
        weighted = np.repeat(weights[nodes], 3)[:, None] * motion
        rows = (3 * nodes[:, None] + np.arange(3)).ravel()
        loads[rows, 6 * k : 6 * k + 6] = weighted @ np.linalg.inv(motion.T @ weighted)
    return loads


def held_modes(reduced: Any) -> np.ndarray:
    """Of the attachments: displacements and rotations, one below the other."""
    parts = [np.asarray(reduced.translations), np.asarray(reduced.rotations)]
    return np.stack(parts, axis=1).reshape(-1, reduced.stiffness.shape[0])


def balanced() -> np.ndarray:
    """Loads on both ends (12, 6) that leave the body in balance: unit forces and torques on B, and
    their opposite on A, with the torque of the forces at B about A."""
    there = np.eye(6)
    there[3:, :3] = np.cross([0, 0, LONG], np.eye(3)).T
    return np.vstack([-there, np.eye(6)])


class TestFrequencies:
    @CONNECTIONS
    def test_they_approach_the_full_model_from_above(self, tube, connection):
        """By the minimum-maximum principle, as each basis holds the one before. Rings that stay
        rigid are a condition on the full model, averages are none."""
        basis = rigid_rings(tube) if connection is RIGID else np.eye(3 * len(tube.points))
        mass, stiffness = (basis.T @ x @ basis for x in dense(tube))
        squares = scipy.linalg.eigh(stiffness, mass, eigvals_only=True)[6:13]
        errors = []
        for modes in (10, 20, 60):
            reduced = fem.reduce(tube, ends(connection), modes=modes)
            found = np.asarray(fem.frequencies(reduced))[:7]
            errors.append(2 * np.pi * found / np.sqrt(squares) - 1)
        coarse, usual, fine = errors
        assert np.all(fine > -1e-8)
        assert np.all(usual > fine)
        assert np.all(coarse > usual - 1e-8)
        assert np.max(usual) < 1e-2
        assert np.max(fine) < 2e-3

    @CONNECTIONS
    def test_with_all_modes_they_are_the_full_model_s(self, connection):
        elements = fem.plate(1.0, 0.3, 0.2, STEEL, across=2, deep=1)
        nodes = fem.NodesOnPlane([1, 0, 0])
        attachments = [
            fem.Attachment("A", [-0.5, 0, 0], nodes, connection),
            fem.Attachment("B", [0.5, 0, 0], nodes, connection),
        ]
        tied = interface(elements, attachments)
        most = tied.expansion.shape[1] - 12
        found = np.asarray(fem.frequencies(fem.reduce(elements, attachments, modes=most)))
        basis = tied.expansion.toarray()
        mass, stiffness = (basis.T @ x @ basis for x in dense(elements))
        squares = scipy.linalg.eigh(stiffness, mass, eigvals_only=True)
        assert len(found) == len(squares) - 6
        np.testing.assert_allclose(found, np.sqrt(squares[6:]) / (2 * np.pi), rtol=1e-8)

    def test_few_modes_of_a_large_mesh_are_those_of_dense_algebra(self, tube):
        """Shift-invert finds both of each pair."""
        mass, stiffness = dense(tube)
        full = np.sqrt(scipy.linalg.eigh(stiffness, mass, eigvals_only=True)[6:26]) / (2 * np.pi)
        found = fem.frequencies(fem.reduce(tube, [], modes=20))
        np.testing.assert_allclose(np.asarray(found), full, rtol=1e-8)

    def test_held_at_one_end_a_bar_vibrates_as_a_cantilever(self):
        """Euler-Bernoulli, 1.8751 and 4.6941; a bar 60 times as long as thick, whose shear and
        rotary inertia take 0.02 % and 0.15 %. The attachment A is held in the reduced body."""
        size = 1 / 60
        bar = fem.plate(1.0, size, size, STEEL, across=24, deep=1)
        across = fem.NodesOnPlane([1, 0, 0])
        reduced = fem.reduce(bar, [fem.Attachment("A", [-0.5, 0, 0], across)], modes=10)
        # Motions of the whole: rigid ones, and the modes.
        rigid = np.block(
            [[np.eye(3), turning(np.asarray(reduced.points[0]))], [np.zeros((3, 3)), np.eye(3)]]
        )
        held = scipy.linalg.null_space(np.hstack([rigid, held_modes(reduced)]))
        mass = scipy.linalg.block_diag(
            float(reduced.mass) * np.eye(3), np.asarray(reduced.inertia), np.eye(10)
        )
        stiffness = scipy.linalg.block_diag(np.zeros((6, 6)), np.asarray(reduced.stiffness))
        squares = scipy.linalg.eigh(held.T @ stiffness @ held, held.T @ mass @ held)[0]
        exact = np.array([1.875104, 4.694091]) ** 2 * np.sqrt(2e11 * size**2 / 12 / 8000)
        np.testing.assert_allclose(np.sqrt(squares[:4]), np.repeat(exact, 2), rtol=5e-3)


class TestStatics:
    @CONNECTIONS
    def test_compliance_at_the_attachments_is_the_full_model_s(self, tube, connection):
        """For any number of normal modes, as constraint modes hold all static displacements."""
        _, stiffness = dense(tube)
        loads = balanced()
        if connection is RIGID:
            basis = rigid_rings(tube)
            full = np.zeros((basis.shape[1], 6))
            full[:12] = loads
            stiffness = basis.T @ stiffness @ basis
        else:
            full = spread_load(tube) @ loads
        moved = np.linalg.lstsq(stiffness, full)[0]
        expected = full.T @ moved
        for modes in (0, 5):
            reduced = fem.reduce(tube, ends(connection), modes=modes)
            force = held_modes(reduced).T @ loads
            found = force.T @ np.linalg.solve(reduced.stiffness, force)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * float(np.max(expected)))
            # The small entries by their own size.
            np.testing.assert_allclose(np.diag(found), np.diag(expected), rtol=1e-8)

    def test_rigid_rings_are_stiffer_than_averaged_ones(self, tube):
        compliances = []
        for connection in (RIGID, AVERAGED):
            reduced = fem.reduce(tube, ends(connection), modes=3)
            force = held_modes(reduced).T @ balanced()
            compliances.append(force.T @ np.linalg.solve(reduced.stiffness, force))
        gap = np.linalg.eigvalsh(compliances[1] - compliances[0])
        assert np.min(gap) > -1e-10 * np.max(np.abs(compliances[1]))
        # Of this short tube by much.
        assert compliances[0][2, 2] < 0.99 * compliances[1][2, 2]

    @pytest.mark.parametrize(
        "connection",
        [RIGID, pytest.param(AVERAGED, marks=pytest.mark.thorough)],
        ids=["RBE2", "RBE3"],
    )
    def test_link_stretches_as_a_rod(self, connection):
        """The parallelogram's link: E A / l within 0.5 %. Rings that stay rigid keep the ends from
        thinning, which makes the link 0.3 % stiffer with these elements."""
        length = np.sqrt(0.5)
        link = fem.tube(0.026, 0.03, length, ALUMINIUM, around=8, along=36)
        reduced = fem.reduce(link, ends(connection, length), modes=0)
        longer = np.asarray(reduced.translations[1, 2] - reduced.translations[0, 2])
        compliance = longer @ np.linalg.solve(reduced.stiffness, longer)
        exact = 6.9e10 * np.pi / 4 * (0.03**2 - 0.026**2) / length
        np.testing.assert_allclose(1 / compliance, exact, rtol=5e-3)

    def test_cantilever_deflects_as_timoshenko_says(self):
        """A bar 20 times as long as thick, held at A, loaded by F at B: F l^3 / 3 E I + F l / kappa
        G A, where shear takes 0.2 %. Poisson's ratio is 0 here: with 0.3 the ends, which keep their
        form, add 1 % to the stiffness."""
        size, length = 0.05, 1.0
        material = fem.Material(young=2e11, poisson=0.0, density=8000)
        bar = fem.plate(length, size, size, material, across=12, deep=1)
        across = fem.NodesOnPlane([1, 0, 0])
        reduced = fem.reduce(
            bar,
            [fem.Attachment(n, [x, 0, 0], across) for n, x in (("A", -0.5), ("B", 0.5))],
            modes=0,
        )
        # A force along z at B, and what A takes.
        load = np.array([0, 0, -1, 0, length, 0, 0, 0, 1.0, 0, 0, 0])
        force = held_modes(reduced).T @ load
        deflection = force @ np.linalg.solve(reduced.stiffness, force)
        second = size**4 / 12
        exact = length**3 / (3 * 2e11 * second) + length / (5 / 6 * 1e11 * size**2)
        np.testing.assert_allclose(deflection, exact, rtol=1e-3)


class TestIntegrals:
    def test_of_modes(self, tube):
        shapes = np.asarray(fem.mode_shapes(tube, ends(AVERAGED), modes=4))
        reduced = fem.reduce(tube, ends(AVERAGED), modes=4)
        for name, expected in quadrature(tube, shapes).items():
            scale = max(float(np.max(np.abs(expected))), 1.0)
            found = np.asarray(getattr(reduced, name))
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * scale, err_msg=name)

    def test_of_any_fields(self, tube, rng):
        """Which carry momentum and angular momentum, as modes do not."""
        shapes = rng.standard_normal((len(tube.points), 3, 4))
        found = inertia_integrals(tube, shapes.reshape(-1, 4))
        for name, expected in quadrature(tube, shapes).items():
            scale = float(np.max(np.abs(expected)))
            np.testing.assert_allclose(
                found[name], expected, rtol=0, atol=1e-12 * scale, err_msg=name
            )

    @CONNECTIONS
    def test_mass_properties_are_the_mesh_s(self, tube, connection):
        reduced = fem.reduce(tube, ends(connection), modes=2)
        np.testing.assert_allclose(reduced.mass, tube.total_mass, rtol=1e-12)
        np.testing.assert_allclose(
            reduced.inertia, tube.inertia, rtol=0, atol=1e-12 * np.max(tube.inertia)
        )
        np.testing.assert_allclose(reduced.first_moment, 0, atol=1e-12 * tube.total_mass)

    @CONNECTIONS
    def test_modes_are_orthogonal_and_carry_no_momentum(self, tube, connection):
        reduced = fem.reduce(tube, ends(connection), modes=8)
        second = np.asarray(reduced.mode_second_moment)
        modal_mass = np.einsum("aaij->ij", np.asarray(reduced.mode_products))
        # The reduced mass's condition, some 1e4, times rounding.
        np.testing.assert_allclose(modal_mass, np.eye(14), atol=1e-11)
        size = np.sqrt(tube.total_mass)
        np.testing.assert_allclose(reduced.mode_first_moment, 0, atol=1e-11 * size)
        np.testing.assert_allclose(second, second.transpose(1, 0, 2), atol=1e-11 * size)
        assert np.all(np.diff(np.diag(reduced.stiffness)) >= 0)


def quadrature(tube: fem.FiniteElements, shapes: np.ndarray) -> dict[str, np.ndarray]:
    """The integrals over the mesh of fields with these values at the nodes (nodes, 3, fields),
    which scikit-fem interpolates."""
    basis = fields_of(tube)
    weights = 8000 * np.asarray(basis.dx).ravel()
    place = np.asarray(basis.global_coordinates()).reshape(3, -1)
    field = np.stack(
        [
            [
                np.asarray(basis.interpolate(np.ascontiguousarray(shapes[:, a, i]))).ravel()
                for i in range(shapes.shape[2])
            ]
            for a in range(3)
        ]
    )
    moments = np.einsum("q,aq,bq->ab", weights, place, place)
    return {
        "mass": np.sum(weights),
        "inertia": np.trace(moments) * np.eye(3) - moments,
        "mode_first_moment": np.einsum("q,aiq->ai", weights, field),
        "mode_second_moment": np.einsum("q,aq,biq->abi", weights, place, field),
        "mode_products": np.einsum("q,aiq,bjq->abij", weights, field, field, optimize=True),
    }


def fields_of(tube: fem.FiniteElements) -> Any:
    """Quadratic fields on the tube's mesh, which is put together once more."""
    block = skfem.MeshHex.init_tensor(
        np.array([0.15, 0.25]), np.arange(5.0), np.linspace(-LONG / 2, LONG / 2, 5)
    )
    # Radius, quarter and height; the last quarter's end is the first's begin.
    labels = np.round(np.stack([block.p[0] * 100, block.p[1] % 4, block.p[2] * 100])).astype(int)
    _, first, number = np.unique(labels, axis=1, return_index=True, return_inverse=True)
    radius, quarter, height = block.p[:, first]
    turn = quarter * np.pi / 2
    straight = np.ascontiguousarray([radius * np.cos(turn), radius * np.sin(turn), height])
    mesh = skfem.MeshHex2.from_mesh(
        skfem.MeshHex(straight, np.ascontiguousarray(number.ravel()[block.t]))
    )
    mesh = skfem.MeshHex2(np.ascontiguousarray(tube.points.T), mesh.t)
    basis = skfem.Basis(mesh, skfem.ElementHex2(), intorder=9)
    np.testing.assert_allclose(basis.doflocs.T, tube.points, atol=1e-12)
    return basis


class TestInvariance:
    @CONNECTIONS
    def test_a_turned_and_moved_mesh_makes_the_same_body(self, connection):
        mesh = skfem.MeshHex2.from_mesh(
            skfem.MeshHex.init_tensor(*(np.linspace(0, s, 3) for s in (1.0, 0.4, 0.3)))
        )
        turn = Rotation.from_rotvec([0.4, 0.9, -0.7]).as_matrix()
        shift = np.array([5.0, -3.0, 2.0])
        bodies = []
        for r, s in ((np.eye(3), np.zeros(3)), (turn, shift)):
            places = np.ascontiguousarray(r @ mesh.doflocs + s[:, None])
            elements = fem.solid(skfem.MeshHex2(places, mesh.t), STEEL)
            across = fem.NodesOnPlane(r[:, 0])
            attachments = [
                fem.Attachment(name, r @ np.array([x, 0.2, 0.1]) + s, across, connection)
                for name, x in (("A", 0.0), ("B", 1.0))
            ]
            bodies.append(fem.reduce(elements, attachments, modes=5))
        one, other = bodies
        np.testing.assert_allclose(fem.frequencies(other), fem.frequencies(one), rtol=1e-9)
        np.testing.assert_allclose(other.points, one.points @ turn.T, atol=1e-12)
        np.testing.assert_allclose(
            other.inertia, turn @ one.inertia @ turn.T, atol=1e-10 * np.max(one.inertia)
        )
        # Modes may change sign, what they are joined to in pairs does not.
        whole = np.kron(np.eye(4), turn)
        first, second = held_modes(one), held_modes(other)
        np.testing.assert_allclose(
            second @ second.T, whole @ first @ first.T @ whole.T, atol=1e-8 * np.max(first**2)
        )

    def test_twice_the_same(self, tube):
        """Bending modes of a tube come in pairs, the first of each along x; numbers repeat."""
        one, other = (fem.reduce(tube, ends(RIGID), modes=6) for _ in range(2))
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
            np.testing.assert_array_equal(a, b)
        first, second = np.asarray(one.translations[0, :, 0]), np.asarray(one.translations[0, :, 1])
        assert one.stiffness[0, 0] == one.stiffness[1, 1]
        np.testing.assert_allclose(first / first[0], [1, 0, 0], atol=1e-8)
        np.testing.assert_allclose(second / second[1], [0, 1, 0], atol=1e-8)
        assert first[0] > 0
        assert second[1] > 0


class TestDamping:
    def test_ratios_and_stiffness(self, tube):
        omega = 2 * np.pi * np.asarray(fem.frequencies(fem.reduce(tube, [], modes=4)))
        ratios = [0.01, 0.02, 0.0, 0.1]
        for damping, expected in (
            (fem.ModalDamping(), 0 * omega),
            (fem.ModalDamping(0.02), 0.04 * omega),
            (fem.ModalDamping(ratios), 2 * np.array(ratios) * omega),
            (fem.StiffnessDamping(1e-4), 1e-4 * omega**2),
        ):
            reduced = fem.reduce(tube, [], modes=4, damping=damping)
            np.testing.assert_allclose(reduced.damping, np.diag(expected), rtol=1e-9)

    def test_refusals(self, tube):
        with pytest.raises(ValueError, match=r"one for each of 4 modes, got 2\."):
            fem.reduce(tube, [], modes=4, damping=fem.ModalDamping([0.1, 0.2]))
        with pytest.raises(ValueError, match=r"ratio must be at least 0, got -0\.1"):
            fem.ModalDamping(-0.1)
        with pytest.raises(ValueError, match="ratio must be at least 0, got"):
            fem.ModalDamping([0.1, -0.1])
        with pytest.raises(ValueError, match="beta must be at least 0"):
            fem.StiffnessDamping(-1.0)


class TestFiles:
    def test_round_trip(self, tube, tmp_path):
        reduced = fem.reduce(tube, ends(RIGID), modes=3, damping=fem.ModalDamping(0.01))
        fem.save(reduced, tmp_path / "link.npz")
        again = fem.load(tmp_path / "link.npz")
        assert again.nodes == ("A", "B")
        assert jax.tree.structure(again) == jax.tree.structure(reduced)
        for a, b in zip(jax.tree.leaves(reduced), jax.tree.leaves(again), strict=True):
            np.testing.assert_array_equal(a, b)
        assert [p.name for p in tmp_path.iterdir()] == ["link.npz"]

    def test_cache_computes_once(self, tube, tmp_path, monkeypatch):
        calls = []
        inner = _reduce.craig_bampton

        def counted(*given: Any) -> Any:
            calls.append(given)
            return inner(*given)

        monkeypatch.setattr(_reduce, "craig_bampton", counted)
        path = tmp_path / "link.npz"

        def reduced(connection: Any = RIGID, **options: Any) -> Any:
            return fem.reduce(tube, ends(connection), modes=2, cache=path, **options)

        first = reduced()
        again = reduced()
        assert len(calls) == 1
        for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
            np.testing.assert_array_equal(a, b)
        # Anything else is computed anew.
        reduced(AVERAGED)
        reduced(AVERAGED, damping=fem.ModalDamping(0.01))
        assert len(calls) == 3
        lighter = fem.Material(young=2e11, poisson=0.3, density=7999)
        other = fem.tube(0.3, 0.5, LONG, lighter, around=4, along=4)
        fem.reduce(other, ends(AVERAGED), modes=2, cache=path)
        assert len(calls) == 4
        np.testing.assert_allclose(fem.load(path).mass, other.total_mass, rtol=1e-12)

    def test_whatever_goes_in_counts_in_the_fingerprint(self):
        def key(
            material: tuple[float, float, float] = (2e11, 0.3, 8000.0),
            length: float = 1.0,
            modes: int = 2,
            name: str = "A",
            point: Any = (0.5, 0, 0),
            nodes: Any = NEAR,
            connection: Any = RIGID,
            damping: Any = DAMPED,
        ) -> str:
            young, poisson, density = material
            steel = fem.Material(young=young, poisson=poisson, density=density)
            bar = fem.plate(length, 0.1, 0.1, steel, across=1, deep=1)
            attachment = fem.Attachment(name, point, nodes, connection)
            return digest(bar, (attachment,), modes, damping)

        keys = [
            key(),
            key(material=(3e11, 0.3, 8000.0)),
            key(material=(2e11, 0.2, 8000.0)),
            key(material=(2e11, 0.3, 8001.0)),
            key(length=1.1),
            key(modes=3),
            key(name="B"),
            key(point=(0.5, 0, 0.01)),
            key(point=None),
            key(nodes=fem.NodesWithin(0.21)),
            key(nodes=fem.NodesOnPlane([1, 0, 0])),
            key(nodes=fem.NodesOnPlane([1, 0, 0], radius=0.1)),
            key(nodes=fem.NodeNumbers([0, 1, 2])),
            key(connection=AVERAGED),
            key(damping=fem.ModalDamping(0.2)),
            key(damping=fem.ModalDamping([0.1])),
            key(damping=fem.StiffnessDamping(0.1)),
        ]
        assert len(set(keys)) == len(keys)
        assert key() == keys[0]

    def test_other_files_are_refused_and_kept(self, tube, tmp_path):
        words = tmp_path / "words.npz"
        words.write_text("no archive")
        numbers = tmp_path / "numbers.npz"
        np.savez(numbers, mass=np.ones(3))
        lone = tmp_path / "lone.npy"
        np.save(lone, np.ones(3))
        for path in (words, numbers, lone):
            before = path.read_bytes()
            with pytest.raises(ModelError, match=r"holds no reduced body; give a file that"):
                fem.load(path)
            with pytest.raises(ModelError, match="holds no reduced body"):
                fem.reduce(tube, [], modes=1, cache=path)
            assert path.read_bytes() == before
        with pytest.raises(ModelError, match="there is no file"):
            fem.load(tmp_path / "none.npz")
        with pytest.raises(ModelError, match="cannot be written: No such file or directory"):
            fem.reduce(tube, [], modes=1, cache=tmp_path / "none" / "link.npz")
