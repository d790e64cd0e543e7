"""The mass matrix of a bent body whose displacements of second order are given by hand: definite
whatever its shapes are, and to second order that of the displaced mass."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from modal_bodies import body_of, cantilever, Cloud

import jaxmbs as jm
from jaxmbs import spatial


def block(thickness, modes=2, *, turn=None, origin=(0.0, 0.0, 0.0), unit=1.0):
    """A clamped bar of point masses along x, one metre long, that bends along z by shapes x^2, x^3,
    ...: sections turn, and become shorter by the second order of that. `turn`: of its axes in those
    of the frame; `origin`: of the bar there; `unit`: one metre."""
    x = np.linspace(0.025, 0.975, 20)
    across = thickness / np.sqrt(12) * np.array([-1.0, 1.0])
    points = np.array([(a, y, z) for a in x for y in across for z in across])
    n = np.arange(2, 2 + modes)

    def fields(points):
        x, z = points[:, :1], points[:, 2]
        slope = n * x ** (n - 1)
        phi = np.stack([-z[:, None] * slope, 0 * slope, x**n], axis=1)
        gamma = np.zeros((len(points), 3, modes, modes))
        powers = n[:, None] + n[None] - 1
        gamma[:, 0] = -(n[:, None] * n[None] / powers) * x[:, None] ** powers
        gamma[:, 2] = -z[:, None, None] * slope[:, :, None] * slope[:, None]
        return phi, gamma

    def nodes(place):
        phi, gamma = (own[0] for own in fields(np.array([place])))
        psi = np.stack([0 * n, -n * place[0] ** (n - 1.0), 0 * n])
        return phi, psi, gamma

    axes = np.eye(3) if turn is None else turn
    phi, gamma = fields(points)
    curvature = (n * (n - 1) * x[:, None] ** (n - 2)) / 20**0.5
    ends, second = {}, {}
    for name, place in (("A", [0.0, 0.0, 0.0]), ("B", [1.0, 0.0, 0.0])):
        moved, turned, bent = nodes(np.array(place))
        point = unit * (axes @ place + origin)
        ends[name] = (point, unit * axes @ moved, axes @ turned)
        bent = unit * np.einsum("ab,bij->aij", axes, bent)
        second[name] = (bent, 0 * bent)
    return Cloud(
        np.full(len(points), 1.0 / len(points)),
        unit * (points @ axes.T + origin),
        unit * np.einsum("ab,nbk->nak", axes, phi),
        50.0 * unit**2 * curvature.T @ curvature,
        ends,
        second=(unit * np.einsum("ab,nbij->naij", axes, gamma), second),
    )


def drawn_rotation():
    axes = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    return axes * np.sign(np.linalg.det(axes))


CASES = {
    "one shape": lambda: cantilever(1, shortening=True),
    "three shapes": lambda: cantilever(3, shortening=True),
    "nearly dependent shapes": lambda: cantilever(5, shortening=True),
    "bar": lambda: block(0.02),
    "skew bar": lambda: block(0.02, turn=drawn_rotation()),
    "thick bar": lambda: block(0.2, 3),
    "block": lambda: block(0.7),
    "far from the frame": lambda: block(0.05, turn=drawn_rotation(), origin=(0.0, 20.0, 5.0)),
    "millimetres": lambda: block(0.05, 3, unit=1000.0),
}


def bent(body, parts):
    """Configurations in which a force across its end bends the body by these parts of its length,
    and as much the other way."""
    end = np.asarray(body.reduced.translations[1]) / np.asarray(body.modal_scale)
    stiffness = np.asarray(body.inertia_properties().stiffness)
    across = np.linalg.svd(end)[0][:, 0]
    eta = np.linalg.solve(stiffness, end.T @ across)
    length = np.linalg.norm(body.reduced.points[1] - body.reduced.points[0])
    eta = eta * np.sign(eta[np.argmax(np.abs(eta))]) * length / np.linalg.norm(end @ eta)
    rigid = [0.0, 0, 0, 1, 0, 0, 0]
    return np.array([[*rigid, *(s * part * eta)] for part in parts for s in (1, -1)])


def mass_matrices(body, states):
    def matrices(inertia, states):
        return jax.vmap(lambda q: inertia.mass_matrix(q, jnp.zeros(())))(states)

    return np.asarray(eqx.filter_jit(matrices)(body.inertia_properties(), jnp.asarray(states)))


def least_eigenvalues(matrices):
    size = np.sqrt(np.abs(np.diagonal(matrices, axis1=1, axis2=2)))
    return np.linalg.eigvalsh(matrices / (size[:, :, None] * size[:, None]))[:, 0]


@pytest.mark.parametrize("case", CASES)
def test_bent_bodies_keep_a_mass_matrix(case):
    body = body_of(CASES[case]())
    found = least_eigenvalues(mass_matrices(body, bent(body, (0.0, 0.003, 0.03, 0.1, 0.3, 0.6))))
    assert found[0] > 0
    assert np.min(found) > 0.4 * found[0]


@pytest.mark.parametrize("case", ["three shapes", "thick bar", "far from the frame"])
def test_the_mass_matrix_is_that_of_the_displaced_mass(case):
    """Of all points with the displacements they have, by sums in NumPy: kinetic energy differs by
    what is of third order in modes and their rates."""
    cloud = CASES[case]()
    body = body_of(cloud)
    parts = (0.02, 0.04)
    states = bent(body, parts)
    found = mass_matrices(body, states)
    scale, masses = cloud.scale(), cloud.masses
    assert cloud.second is not None
    shapes, gamma = cloud.shapes / scale, cloud.second[0] / np.outer(scale, scale)
    left, second = [], []
    for part, q, matrix in zip(np.repeat(parts, 2), states, found, strict=True):
        eta = q[7:]
        modal = shapes + gamma @ eta
        u = cloud.points + shapes @ eta + 0.5 * (gamma @ eta) @ eta
        turning = np.cross(np.eye(3), u[:, None]).swapaxes(1, 2)
        rigid = np.concatenate([np.repeat(np.eye(3)[None], len(u), axis=0), turning], axis=2)
        exact, linear = (
            np.einsum("n,nai,naj->ij", masses, moves, moves)
            for moves in (np.concatenate([rigid, x], axis=2) for x in (modal, shapes))
        )
        exact[3:6, 3:6] += cloud.twist
        # Rates of modes are as small as what they bend.
        size = 1 / np.sqrt(np.diag(exact))
        size[6:] *= part
        left.append(np.max(np.abs(matrix - exact) * np.outer(size, size)))
        second.append(np.max(np.abs(linear - exact) * np.outer(size, size)))
    assert left[0] < 0.1 * second[0]
    # The order, measured: twice the deflection, eight times as much, where what is of second order
    # would be four times.
    assert left[2] > 6.5 * left[0] > 1e-9


def test_bodies_in_other_axes_and_units_are_the_same_body():
    """Accelerations of the modes under a force at the end: rotated, far from the frame's origin, in
    millimetres."""

    def accelerations(cloud, axes, unit):
        body = body_of(cloud)
        q = jnp.asarray(bent(body, (0.1,))[0])
        inertia, t = body.inertia_properties(), jnp.zeros(())
        v = np.concatenate([np.zeros(3), axes @ [0.3, -0.5, 0.2], 0.2 * unit * np.ones(2)])

        def both(inertia, q, v):
            force = inertia.inertia_force(q, v, t) + inertia.internal_force(q, v, t)
            return inertia.inverse_mass_matrix(q, t) @ force

        return np.asarray(eqx.filter_jit(both)(inertia, q, jnp.asarray(v)))[6:] / unit

    plain = accelerations(block(0.2), np.eye(3), 1.0)
    turn = drawn_rotation()
    cases = (
        (block(0.2, turn=turn), turn, 1.0),
        (block(0.2, origin=(0.0, 20.0, 5.0)), np.eye(3), 1.0),
        (block(0.2, unit=1000.0), np.eye(3), 1000.0),
    )
    for case in cases:
        np.testing.assert_allclose(accelerations(*case), plain, rtol=1e-7)


@pytest.mark.thorough
@pytest.mark.parametrize("make", [lambda: cantilever(3, shortening=True), lambda: block(0.05, 3)])
def test_a_clamped_body_vibrates_far(make):
    """Released where it is bent by a tenth of its length: energy is kept, and it comes back."""
    cloud = make()
    body = body_of(cloud)
    eta = bent(body, (0.1,))[0][7:]
    body = body_of(cloud, modal_coordinates=eta)
    weld = spatial.Fixed("clamp", ("ground", "link.A"), at=cloud.nodes["A"][0])
    system = jm.MultibodySystem([body], [weld])
    motion = jm.simulate(
        system, system.reference_q, system.initial_v, 1.0, every=0.05, rtol=1e-8, monitor=False
    )
    energies = jax.vmap(lambda q, v, t: jnp.stack(system.energy(q, v, t)))
    energy = np.sum(np.asarray(energies(motion.q, motion.v, motion.times)), axis=1)
    np.testing.assert_allclose(energy, energy[0], rtol=1e-5)
    place = int(np.argmax(np.abs(eta)))
    back = np.asarray(motion.q)[:, 7 + place] / eta[place]
    assert np.min(back) < -0.9
    assert not motion.message


class TestIntegralsThatDoNotBelongTogether:
    """Definite at rest, and not where the body bends."""

    def test_told_when_the_body_is_made(self):
        wrong = eqx.tree_at(lambda r: r.mode_products, block(0.05).reduced(), replace_fn=_one_axis)
        with pytest.warns(UserWarning, match=r"'link' has no mass matrix where it bends by 20 %"):
            spatial.ModalBody("link", wrong, position=(0.0, 0.0, 0.0))

    @pytest.mark.parametrize("case", ["one shape", "skew bar", "block", "far from the frame"])
    def test_what_belongs_together_is_not_told(self, case):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            body_of(CASES[case]())
        assert not told


def _one_axis(products):
    """The modal mass as if all moved along x, where the body bends along z: its trace is right."""
    return jnp.zeros_like(products).at[0, 0].set(jnp.einsum("aaij->ij", products))
