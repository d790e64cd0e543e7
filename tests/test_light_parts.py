"""Light parts under heavy loads: accelerations and reactions against a dense oracle in extended
precision, in the descriptor form, which has no limit of this kind; runs, batches, derivatives."""

import itertools
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives

import jaxmbs as jm
from jaxmbs import planar, spatial
from jaxmbs._dynamics import solve_with_friction
from jaxmbs._system import _light_parts


G = 9.81


def four_bar(masses):
    points = np.array([[0.0, 0.0], [0.3, 0.9], [2.0, 1.4], [2.5, 0.0]])
    names, bodies = ["crank", "coupler", "rocker"], []
    for name, mass, a, b in zip(names, masses, points, points[1:], strict=False):
        inertia = mass * np.sum((b - a) ** 2) / 12
        bodies.append(planar.Body(name, mass=mass, inertia=inertia, position=tuple((a + b) / 2)))
    ends = ["ground", *names, "ground"]
    pairs = zip(ends, ends[1:], points, strict=False)
    joints = [planar.Revolute(f"J{k}", (a, b), p) for k, (a, b, p) in enumerate(pairs)]
    return jm.MultibodySystem(bodies, joints, gravity=(0.0, -G))


def chain(links, ratio, angle=0.3, branch=False):
    """Links of 0.1 m and 1 kg over `ratio`, and a load of 1 kg at the end, hanging askew; with a
    second one in the middle."""
    step, mass = 0.1 * np.array([np.sin(angle), -np.cos(angle)]), 1 / ratio
    inertia = mass * 0.01 / 12
    bodies = [
        planar.Body(f"link {k}", mass=mass, inertia=inertia, position=step * (k + 0.5))
        for k in range(links)
    ]
    names = ["ground", *(body.name for body in bodies), "load"]
    joints = [
        planar.Revolute(f"J{k}", pair, step * k) for k, pair in enumerate(itertools.pairwise(names))
    ]
    bodies.append(planar.Body("load", mass=1.0, inertia=0.01, position=step * links))
    if branch:
        at = step * (links // 2)
        bodies.append(planar.Body("other", mass=0.7, inertia=0.01, position=at - (0.1, 0.1)))
        joints.append(planar.Revolute("branch", (f"link {links // 2}", "other"), at))
    return jm.MultibodySystem(bodies, joints, gravity=(0.0, -G))


def platform(ratio):
    """The published parallelogram, with links as light: redundant, in space."""
    model = jm.mechanisms.parallelogram()
    given: list[Any] = list(model.bodies)
    bodies = [body if body.mass > 1 else lighter(body, ratio) for body in given]
    return jm.MultibodySystem(bodies, model.joints, forces=model.forces, gravity=(0.0, 0.0, -G))


def lighter(body, ratio):
    numbers = body.mass / ratio, body.inertia / ratio
    return eqx.tree_at(lambda b: (b.mass, b.inertia), body, numbers)


def hinged(ratio):
    """A heavy door on a light frame, each on two hinges: redundant twice."""
    bodies = [
        spatial.Body(name, mass=mass, inertia=np.array([0.3, 0.2, 0.15]) * mass, position=place)
        for name, mass, place in (
            ("frame", 1 / ratio, (0.2, 0.0, 0.5)),
            ("door", 1.0, (0.9, 0.1, 0.5)),
        )
    ]
    joints = [
        spatial.Revolute(f"{first} {number}", (first, second), (x, 0.0, z), (0.0, 0.0, 1.0))
        for first, second, x in (("ground", "frame", 0.0), ("frame", "door", 0.4))
        for number, z in enumerate((0.1, 0.9))
    ]
    return jm.MultibodySystem(bodies, joints, gravity=(0.0, 1.0, -G))


def light_four_bar(place, ratio):
    masses = [2.0, 2.0, 1.5]
    masses[place] = masses[place] / ratio
    return four_bar(masses)


MECHANISMS = {
    "crank": lambda ratio: light_four_bar(0, ratio),
    "coupler": lambda ratio: light_four_bar(1, ratio),
    "rocker": lambda ratio: light_four_bar(2, ratio),
    "chain 2": lambda ratio: chain(2, ratio),
    "chain 20": lambda ratio: chain(20, ratio),
    "chain 100": lambda ratio: chain(100, ratio),
    "tree 30": lambda ratio: chain(30, ratio, branch=True),
    "parallelogram": platform,
    "frame and door": hinged,
}


def eliminated(matrix, right):
    """Gauss with complete pivoting in extended precision; what is redundant gets zero."""
    a = np.column_stack([matrix, right]).astype(np.longdouble)
    a = a / np.max(np.abs(a[:, :-1]), axis=1)[:, None]
    size = len(a)
    columns, rank = np.arange(size), 0
    for k in range(size):
        rows, place = np.unravel_index(np.argmax(np.abs(a[k:, k:size])), (size - k, size - k))
        if abs(a[k + rows, k + place]) < 1e-15:
            break
        a[[k, k + rows]] = a[[k + rows, k]]
        a[:, [k, k + place]] = a[:, [k + place, k]]
        columns[[k, k + place]] = columns[[k + place, k]]
        a[k] = a[k] / a[k, k]
        others = np.arange(size) != k
        a[others] -= np.outer(a[others, k], a[k])
        rank = k + 1
    found = np.zeros(size)
    found[columns[:rank]] = a[:rank, -1].astype(float)
    return found


def masses_of(system: Any) -> Any:
    return system.body_groups[0].inertia.mass


@eqx.filter_jit
def solve(system, formulation, q, v):
    found = solve_with_friction(system, q, v, 0.0, formulation=formulation)
    equations = system.equations(q, v, jnp.asarray(0.0))
    descriptor = equations.descriptor
    matrices = descriptor.mass_matrix(), descriptor.constraint_matrix()
    return found, (*matrices, equations.force, equations.offset)


def exact(known):
    """Accelerations and generalized reactions C^T lambda, of which both are unique."""
    mass, rows, force, offset = map(np.asarray, known)
    # Multipliers in the units of forces that a heavy body feels: rows of one size.
    none = np.zeros((len(rows), len(rows)))
    both = np.block([[mass, rows.T], [rows, none]])
    found = eliminated(both, np.concatenate([force, offset]))
    acceleration, multipliers = found[: len(mass)], found[len(mass) :]
    return acceleration, rows.T @ multipliers


FORMULATIONS = [
    None,
    jm.formulations.MinimumNorm(clean=False),
    jm.formulations.NullSpace(),
    jm.formulations.UdwadiaKalaba(),
]
CASES = [
    (name, ratio, k)
    for name in MECHANISMS
    for ratio in (1e3, 1e6, 1e9)
    for k in range(len(FORMULATIONS))
]


@pytest.mark.parametrize(
    ("name", "ratio", "k"),
    representatives(
        CASES,
        ("crank", 1e9, 0),
        ("crank", 1e3, 1),
        ("chain 20", 1e6, 0),
        ("frame and door", 1e6, 0),
    ),
)
def test_against_extended_precision(name, ratio, k):
    system = MECHANISMS[name](ratio)
    q, v = system.reference_q, system.initial_v
    found, known = solve(system, FORMULATIONS[k], q, v)
    acceleration, reaction = exact(known)
    assert bool(found.result == jm.results.RESULTS.successful)
    largest = np.max(np.abs(reaction))
    np.testing.assert_allclose(known[1].T @ found.multipliers, reaction, atol=1e-9 * largest)
    # The acceleration of a light part keeps what rounding of its reactions leaves.
    least = float(np.min(np.diagonal(known[0])))
    allowed = 1e-9 * np.max(np.abs(acceleration)) + 1e-13 * largest / least
    np.testing.assert_allclose(found.acceleration, acceleration, atol=allowed)


def test_only_what_loses_something_is_decomposed():
    """Light parts at the end of a branch, or beside each other alone, lose nothing."""
    assert chain(20, 1e6).structure.light
    assert light_four_bar(1, 1e9).structure.light
    assert not light_four_bar(1, 1e3).structure.light
    assert not chain(20, 1.0).structure.light
    rod = planar.Body("rod", mass=10.0, inertia=1.0, position=(0.5, 0.0))
    tip = planar.Body("tip", mass=1e-6, inertia=1e-9, position=(1.1, 0.0))
    pins = [
        planar.Revolute("A", ("ground", "rod"), (0.0, 0.0)),
        planar.Revolute("B", ("rod", "tip"), (1.0, 0.0)),
    ]
    assert not jm.MultibodySystem([rod, tip], pins).structure.light
    for name in ("mobile-robot", "parallelogram", "door"):
        assert not jm.mechanisms.get(name).system().structure.light


def test_reactions_name_no_drivers():
    """The tension of a hanging chain is that of its load alone."""
    system = chain(20, 1e6)
    found = jm.reactions(system, system.reference_q, system.initial_v)
    _, known = solve(system, None, system.reference_q, system.initial_v)
    _, reaction = exact(known)
    multipliers = np.asarray(found.multipliers)
    np.testing.assert_allclose(
        known[1].T @ multipliers, reaction, atol=1e-10 * np.max(np.abs(reaction))
    )


@pytest.mark.thorough
def test_batches_and_derivatives():
    """Of states, and by gravity and a mass, in both modes, against differences."""
    system = light_four_bar(0, 1e8)
    q, v = system.reference_q, system.initial_v

    def answer(gravity, mass):
        changed = eqx.tree_at(
            lambda s: (s.gravity, masses_of(s)),
            system,
            (system.gravity * gravity, masses_of(system).at[1].multiply(mass)),
        )
        return solve_with_friction(changed, q, v, 0.0).multipliers

    answer = jax.jit(answer)
    forward = jax.jit(jax.jacfwd(answer, argnums=(0, 1)))(1.0, 1.0)
    reverse = jax.jit(jax.jacrev(answer, argnums=(0, 1)))(1.0, 1.0)
    h = 1e-4
    expected = (
        (answer(1 + h, 1.0) - answer(1 - h, 1.0)) / (2 * h),
        (answer(1.0, 1 + h) - answer(1.0, 1 - h)) / (2 * h),
    )
    for one, other, known in zip(forward, reverse, expected, strict=True):
        size = np.max(np.abs(known))
        np.testing.assert_allclose(one, known, atol=1e-7 * size)
        np.testing.assert_allclose(other, one, atol=1e-10 * size)
    many = jax.vmap(lambda g: answer(g, 1.0))(jnp.array([0.0, 1.0, 2.0]))
    np.testing.assert_allclose(many[2] - many[0], 2 * (many[1] - many[0]), atol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["crank", "frame and door"])
def test_runs_keep_energy_and_constraints(name):
    system = MECHANISMS[name](1e8)
    run = jm.simulate(system, system.reference_q, system.initial_v, 0.3, every=0.1)
    energies = [
        float(np.sum(system.energy(q, v, t)))
        for q, v, t in zip(run.q, run.v, run.times, strict=True)
    ]
    assert np.ptp(energies) < 1e-8 * G * 3
    assert float(jnp.max(run.position_error)) < 1e-12
    assert float(jnp.max(run.velocity_error)) < 1e-10


@pytest.mark.thorough
def test_generalized_alpha_holds_a_light_chain():
    """Steps of 2 ms are long beside the 0.1 ms of its fastest vibration."""
    system = chain(2, 1e6)
    run = jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        0.1,
        solver=jm.runs.GeneralizedAlpha(),
        first_step=2e-3,
        controller=dfx.ConstantStepSize(),
    )
    assert bool(run.result == jm.results.RESULTS.successful)
    assert float(jnp.max(run.position_error)) < 1e-10


@pytest.mark.parametrize("name", ["parallelogram", "door"])
def test_masses_within_the_margin_lose_nothing(name):
    """What a look at a system says of others, against a look at these."""
    system = jm.mechanisms.get(name).system()
    margin: Any = _light_parts._margin(system)
    assert margin > 1
    rng = np.random.default_rng(5)
    for part in (0.5, 1.0):
        factor = margin**part
        inertias = [
            scaled(group.inertia, factor ** rng.uniform(-1, 1, len(group.indices["v"])))
            for group in system.body_groups
        ]
        others = eqx.tree_at(lambda s: [g.inertia for g in s.body_groups], system, inertias)
        left: Any = _light_parts._margin(others)
        assert left >= margin / factor * (1 - 1e-9)
        assert not others.with_light_parts_looked_at().structure.light


def scaled(inertia, factors):
    """All masses and moments of a stack of bodies times the factors."""
    return jax.tree.map(
        lambda x: x * factors.reshape(-1, *[1] * (x.ndim - 1)) if eqx.is_inexact_array(x) else x,
        inertia,
    )
