"""Existence and uniqueness of frictional accelerations: the proof against counted solutions."""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives
from scipy.optimize import fsolve

from jaxmbs import certify, forces, MultibodySystem, planar, reactions, spatial
from jaxmbs._dynamics._friction import critical_coefficients, critical_factor, one_solution
from jaxmbs.results import RESULTS
from jaxmbs.runs import solve_with_friction


solve = eqx.filter_jit(solve_with_friction)


def block_gains(sizes, rng):
    """Random gains of laws of these sizes, padded as the library's are."""
    gains = np.zeros((len(sizes), 3, len(sizes), 3))
    for i, (_, pressing) in enumerate(sizes):
        for j, (slip, _) in enumerate(sizes):
            gains[i, :pressing, j, :slip] = rng.normal(size=(pressing, slip))
    return gains


def solutions(matrix, loads):
    """How many x solve x = a + B |x| for each column a: each sign pattern is a linear system."""
    count = np.zeros(loads.shape[1], dtype=int)
    for signs in itertools.product((-1.0, 1.0), repeat=len(matrix)):
        x = np.linalg.solve(np.eye(len(matrix)) - matrix * np.array(signs), loads)
        count += np.all(x * np.array(signs)[:, None] > 0, axis=0)
    return count


@pytest.mark.parametrize("laws", representatives([1, 2, 3, 4], 1, 2))
def test_one_component_each_is_exact(laws, rng):
    """Proved: each load has one solution in every direction of slip. Not proved: some load has
    none, or several."""
    sizes = ((1, 1),) * laws
    told = set()
    for _ in range(60):
        gains = block_gains(sizes, rng)
        factor = critical_factor(gains, np.ones(laws), sizes)
        scale = factor * rng.choice([0.5, 0.97, 1.1, 2.0])
        proved = bool(one_solution(gains, np.full(laws, scale), sizes, np))
        assert proved == (scale < factor)
        loads = rng.normal(size=(laws, 2000))
        counts = [
            solutions(gains[:, 0, :, 0] * scale * np.array(slips), loads)
            for slips in itertools.product((-1.0, 1.0), repeat=laws)
        ]
        single = all(np.all(own == 1) for own in counts)
        if proved:
            assert single
        elif scale > 1.5 * factor:
            told.add(single)
    # Where it is not proved by far, random loads find it out, but for the rarest.
    assert False in told


@pytest.mark.parametrize(
    "sizes",
    representatives(
        [
            [(1, 2)],
            [(3, 3)],
            [(1, 1), (1, 2)],
            [(1, 2), (1, 2), (2, 2)],
            [(1, 1), (3, 3), (1, 2)],
        ],
        [(1, 1), (1, 2)],
    ),
)
def test_several_components_never_prove_too_much(sizes, rng):
    """A matrix I - G diag(mu s g^T) of random directions is never singular on the way to one that
    is proved: its determinant is positive."""
    sizes = tuple(sizes)
    for _ in range(40):
        gains = block_gains(sizes, rng)
        factor = critical_factor(gains, np.ones(len(sizes)), sizes)
        matrix = gains.reshape(3 * len(sizes), -1)
        least = np.inf
        for _ in range(300):
            turned = np.zeros((3 * len(sizes), 3 * len(sizes)))
            for k, (slip, pressing) in enumerate(sizes):
                s, g = rng.normal(size=slip), rng.normal(size=pressing)
                block = np.outer(s / np.linalg.norm(s), g / np.linalg.norm(g))
                turned[3 * k : 3 * k + slip, 3 * k : 3 * k + pressing] = block
            values = np.linalg.eigvals(matrix @ turned)
            real = values.real[(np.abs(values.imag) < 1e-9) & (values.real > 1e-9)]
            least = min(least, *(1 / real)) if real.size else least
        # The first scale at which the determinant vanishes in one of these directions.
        assert factor <= least * (1 + 1e-6)


def test_one_joint_of_several_components_is_exact(rng):
    for slip, pressing in ((1, 2), (2, 2), (3, 3)):
        sizes = ((slip, pressing),)
        gains = block_gains(sizes, rng)
        size = np.linalg.norm(gains[0, :, 0], 2)
        assert critical_factor(gains, np.ones(1), sizes) == pytest.approx(1 / size, rel=1e-6)
        # The worst directions, of which two solutions are found: P = a + mu G s |P|.
        left, _, right = np.linalg.svd(gains[0, :pressing, 0, :slip])
        load = -left[:, 0]

        def missing(x, mu, gains=gains, load=load, right=right, shape=(slip, pressing)):
            slip, pressing = shape
            push = mu * gains[0, :pressing, 0, :slip] @ right[0] * np.linalg.norm(x)
            return x - load - push

        mu = 1.3 / size
        along = [1 / (0.3 * 1.0), -1 / 2.3]
        for value in along:
            x = fsolve(missing, value * left[:, 0] * 0.99, args=(mu,))
            solved = np.allclose(missing(x, mu), 0, atol=1e-9)
            # -1 = x - 1.3 |x| along the worst direction: x = 1 / 0.3 and x = -1 / 2.3.
            assert solved
            assert float(x @ left[:, 0]) == pytest.approx(value)


def test_many_joints_are_taken_by_their_norms(rng):
    sizes = ((1, 1),) * 12
    gains = block_gains(sizes, rng)
    factor = critical_factor(gains, np.ones(12), sizes)
    radius = np.max(np.abs(np.linalg.eigvals(np.abs(gains[:, 0, :, 0]))))
    # The eight that are looked at exactly leave more room than norms alone.
    assert factor >= 1 / radius - 1e-9
    assert bool(one_solution(gains, np.full(12, 0.5 / radius), sizes, np))


def test_jax_and_numpy_agree(rng):
    sizes = ((1, 1), (1, 2), (1, 1), (3, 3))
    gains = block_gains(sizes, rng)
    factor = critical_factor(gains, np.ones(4), sizes)
    scales = factor * np.array([0.3, 0.9, 0.999, 1.001, 1.5, 4.0])[:, None] * np.ones(4)
    expected = one_solution(gains, scales, sizes, np)
    found = jax.vmap(lambda x: one_solution(jnp.asarray(gains), x, sizes))(jnp.asarray(scales))
    assert expected.tolist() == np.asarray(found).tolist() == [True] * 3 + [False] * 3
    assert not np.any(critical_coefficients(gains * np.nan, np.ones(4), sizes))


# ---------------------------------------------------------------------------------------------
# Mechanisms
# ---------------------------------------------------------------------------------------------


def two_sliders(coefficients, angle=60.0, masses=(1.0, 1.0), push=0.0, unit=1.0, turned=0.0):
    """Sliders along two lines at right angles, joined by a rod that stands at `angle` (deg) to the
    first line; a push along the first."""
    a, b = np.radians(angle), np.radians(turned)
    turn = np.array([[math.cos(b), -math.sin(b)], [math.sin(b), math.cos(b)]])
    points = unit * np.array([[math.cos(a), 0.0], [0.0, math.sin(a)]]) @ turn.T
    bodies = [
        planar.Body(name, mass=mass, inertia=unit**2, position=point)
        for name, mass, point in zip("ab", masses, points, strict=True)
    ]
    guides = [
        planar.Translational(name, ("ground", body), point, axis)
        for name, body, point, axis in zip("AB", "ab", points, turn.T, strict=True)
    ]
    loads = [
        forces.CoulombFriction(f"in {name}", name, coefficient=mu, velocity=1e-3 * unit)
        for name, mu in zip("AB", coefficients, strict=True)
        if mu
    ]
    pushing = forces.Applied("push", "a", force=push * turn[:, 0])
    rod = planar.Distance("rod", ("a", "b"), points=tuple(points))
    return MultibodySystem(bodies, [*guides, rod], forces=[*loads, pushing])


def critical(angle, masses):
    """N = |sin| times the rod's force, which friction f of slider a changes by
    f (cos/m_a) / (cos^2/m_a + sin^2/m_b)."""
    c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    return (c**2 / masses[0] + s**2 / masses[1]) * masses[0] / (c * s)


@pytest.mark.parametrize(
    ("angle", "masses", "unit", "turned"),
    representatives(
        [
            (60.0, (1.0, 1.0), 1.0, 0.0),
            (60.0, (1.0, 1e3), 1.0, 35.0),
            (20.0, (2.0, 0.1), 1e-3, 0.0),
            (85.0, (1e-3, 5.0), 1e3, -70.0),
        ],
        (60.0, (1.0, 1e3), 1.0, 35.0),
    ),
)
def test_one_rough_guide(angle, masses, unit, turned):
    expected = critical(angle, masses)
    for factor, sound in ((0.98, True), (1.02, False)):
        system = two_sliders((factor * expected, 0.0), angle, masses, unit=unit, turned=turned)
        certificate = certify(system, system.reference_q)
        assert bool(certificate.certified) is sound
        assert certificate.critical_coefficients()["A"] == pytest.approx(expected, rel=1e-6)
    text = str(certificate)
    assert text.startswith("not certified: with the friction in A (coefficient")
    assert f"certified up to {expected:.4g})" in text


def test_the_run_agrees_with_the_certificate():
    """Beyond the critical coefficient one push has no acceleration and the other has two."""
    expected, counts = critical(60.0, (1.0, 1e3)), {}
    for factor, sound in ((0.9, True), (1.5, False)):
        for push in (10.0, -10.0):
            for way in (1.0, -1.0):
                system = two_sliders((factor * expected, 0.0), 60.0, (1.0, 1e3), push)
                v = jnp.array([way, 0, 0, 0, -way / math.tan(math.radians(60)), 0])
                found = solve(system, system.reference_q, v, 0.0)
                met = bool(found.result == RESULTS.successful)
                assert found.solutions is not None
                counts.setdefault(sound, set()).add((int(found.solutions), met))
    assert counts == {True: {(1, True)}, False: {(0, False), (2, True)}}


def test_two_rough_guides_bound_each_other():
    system = two_sliders((1.5, 1.5))
    certificate = certify(system, system.reference_q)
    assert not bool(certificate.certified)
    # Pressed by the rod alone: 1 - mu_1 c s - mu_2 c s = 0 at the worst signs, c s = sqrt(3) / 4.
    room = 4 / math.sqrt(3) - 1.5
    limits = certificate.critical_coefficients()
    assert limits["A"] == pytest.approx(room, rel=1e-6)
    assert limits["B"] == pytest.approx(room, rel=1e-6)
    sound = two_sliders((1.5, 0.98 * room))
    assert bool(certify(sound, sound.reference_q).certified)


def ray(angle):
    return np.array([math.cos(angle), math.sin(angle)])


def slider_crank(rng):
    pin, slider, along = ray(0.7), ray(0.7) + 1.7 * ray(-0.3), ray(rng.uniform(-1, 1))
    centres = {"crank": pin / 2, "rod": (pin + slider) / 2 + rng.normal(size=2) / 5, "end": slider}
    pins = [(("ground", "crank"), (0, 0)), (("crank", "rod"), pin), (("rod", "end"), slider)]
    return centres, pins, [(("ground", "end"), slider, along)]


def trammel(rng):
    angle = rng.uniform(1.0, 2.0)
    first, second = np.array([1.0, 0.0]), 0.8 * ray(angle)
    centres = {"a": first, "b": second, "rod": (first + second) / 2}
    guides = [(("ground", "a"), first, ray(0.0)), (("ground", "b"), second, ray(angle))]
    return centres, [(("a", "rod"), first), (("b", "rod"), second)], guides


def inverted_slider_crank(rng):
    pin, pivot = ray(rng.uniform(0.3, 1.2)), np.array([1.5, -0.3])
    centres = {"crank": pin / 2, "block": pin, "rocker": (pin + pivot) / 2}
    pins = [(("ground", "crank"), (0, 0)), (("crank", "block"), pin), (("ground", "rocker"), pivot)]
    return centres, pins, [(("rocker", "block"), pin, (pin - pivot) / np.linalg.norm(pin - pivot))]


def cross_table(rng):
    """Two sliders in series, from which a rod drives a third."""
    first, third = np.array([0.6, 0.4]), np.array([2.0, 0.1])
    across, along = ray(0.2 + rng.uniform(0.8, 2.2)), ray(rng.uniform(-1, 1))
    centres = {"x": first, "y": first, "rod": (first + third) / 2, "end": third}
    guides = [
        (("ground", "x"), first, ray(0.2)),
        (("x", "y"), first, across),
        (("ground", "end"), third, along),
    ]
    return centres, [(("y", "rod"), first), (("rod", "end"), third)], guides


MECHANISMS = (slider_crank, trammel, inverted_slider_crank, cross_table)


@pytest.mark.parametrize(
    ("mechanism", "unit", "away"),
    representatives(
        [(m, *where) for m in MECHANISMS for where in ((1.0, 0.0), (1e-3, 1e2), (1e3, 0.0))],
        (cross_table, 1e-3, 1e2),
    ),
)
def test_mechanisms_against_counted_solutions(mechanism, unit, away, rng):
    """What friction does to the pressing forces is taken from reactions under forces along the
    guides, and the solutions are counted, over all signs of slip and of pressing force."""
    centres, pins, guides = mechanism(rng)

    def at(point):
        return unit * (np.array(point) + away)

    bodies = [
        planar.Body(
            name,
            mass=10 ** rng.uniform(-1, 1),
            inertia=10 ** rng.uniform(-2, 0) * unit**2,
            position=at(centre),
        )
        for name, centre in centres.items()
    ]
    joints = [planar.Revolute(f"P{i}", pair, at(point)) for i, (pair, point) in enumerate(pins)]
    joints += [
        planar.Translational(f"G{i}", pair, at(point), along)
        for i, (pair, point, along) in enumerate(guides)
    ]

    def pressing(pushed):
        pair, point, along = guides[pushed]
        pushes = [
            forces.Applied(f"on {body}", body, at=at(point), force=sign * along)
            for sign, body in zip((1.0, -1.0), pair, strict=True)
            if body != "ground"
        ]
        system = MultibodySystem(bodies, joints, forces=pushes)
        found = reactions(system, system.reference_q)
        return [
            float(np.asarray(found.wrench(f"G{i}").force) @ (-along[1], along[0]))
            for i, (_, _, along) in enumerate(guides)
        ]

    gains = np.array([pressing(i) for i in range(len(guides))]).T
    shares = rng.uniform(0.5, 1.0, len(guides))
    corners = [np.array(c) for c in itertools.product((-1.0, 1.0), repeat=len(guides))]
    # The first scale of the coefficients at which a corner is singular.
    values = np.concatenate([np.linalg.eigvals(gains * shares * c) for c in corners])
    size = np.max(np.abs(values))
    limit = 1 / np.max(np.real(values)[np.abs(np.imag(values)) < 1e-9 * size])
    for factor in (0.95, 1.05, 3.0):
        coefficients = factor * limit * shares
        rough = [
            forces.CoulombFriction(f"F{i}", f"G{i}", coefficient=mu, velocity=1e-3 * unit)
            for i, mu in enumerate(coefficients)
        ]
        system = MultibodySystem(bodies, joints, forces=rough)
        assert bool(certify(system, system.reference_q).certified) is (factor < 1)
        loads = rng.normal(size=(len(guides), 2000)) * rng.normal(size=(len(guides), 1)) ** 2
        counts = [solutions(gains * coefficients * slips, loads) for slips in corners]
        if factor < 1:
            assert np.all(np.array(counts) == 1)
        if factor > 2:
            assert np.any(np.array(counts) != 1)


def test_batches_of_configurations():
    """Whether it is certified may depend on where the mechanism stands."""
    system = two_sliders((1.0, 0.0), 45.0, (1.0, 1e3))

    def state(angle):
        c, s = jnp.cos(angle), jnp.sin(angle)
        return system.reference_q.at[0].set(c).at[4].set(s)

    angles = jnp.radians(jnp.array([20.0, 40.0, 50.0, 80.0]))
    found = jax.jit(jax.vmap(lambda a: certify(system, state(a)).certified))(angles)
    expected = [critical(math.degrees(float(a)), (1.0, 1e3)) > 1.0 for a in angles]
    assert found.tolist() == expected
    assert set(expected) == {True, False}


def test_pins_in_space_and_units():
    """The friction of a hinge acts by its radius over the lever arm of what presses it."""

    def pendulum(coefficient, unit):
        body = spatial.Body(
            "rod", mass=1.0, inertia=np.array([0.1, 0.1, 0.1]) * unit**2, position=(unit, 0, 0)
        )
        hinge = spatial.Revolute("O", ("ground", "rod"), (0, 0, 0), (0, 0, 1))
        rub = forces.CoulombFriction(
            "rub", "O", coefficient=coefficient, velocity=1e-3, radius=0.05 * unit
        )
        return MultibodySystem([body], [hinge], forces=[rub])

    for unit in (1e-3, 1.0):
        system = pendulum(0.3, unit)
        certificate = certify(system, system.reference_q)
        # A torque T turns the rod by T / (J + m l^2); the pin holds m l times that.
        assert bool(certificate.certified)
        limit = certificate.critical_coefficients()["O"]
        assert limit == pytest.approx(1.1 / 0.05, rel=1e-6)
        rough = pendulum(1.01 * limit, unit)
        assert not bool(certify(rough, rough.reference_q).certified)


def test_what_is_not_unique_has_no_critical_coefficient():
    block = planar.Body("block", mass=2.0, inertia=0.1, position=(0.0, 0.1))
    rails = [
        planar.Translational(name, ("ground", "block"), (x, 0.0), (1.0, 0.0))
        for name, x in (("left", -0.2), ("right", 0.2))
    ]
    rub = forces.CoulombFriction("rub", "left", coefficient=0.3, velocity=1e-3)
    system = MultibodySystem([block], rails, forces=[rub])
    certificate = certify(system, system.reference_q)
    assert not bool(certificate.solvable)
    assert np.isnan(certificate.critical_coefficients()["left"])
