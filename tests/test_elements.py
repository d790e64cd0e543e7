"""Elements between bodies: masses that couple them, against dense linear algebra, the equations of
Lagrange, and what is known of beams in closed form."""

import functools

import beam
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from representatives import representatives

import jaxmbs as jm
from jaxmbs import generalized, planar, spatial
from jaxmbs._errors import ModelError
from jaxmbs._sweep._subjects import ModelSubject
from jaxmbs.io import write_model


def redundant() -> jm.MultibodySystem:
    """A beam of four elements, clamped, with a rod at its end that is held twice."""
    nodes, elements = beam.beam_of(4)
    rod = planar.Body("rod", mass=0.4, inertia=0.02, position=(1.2, 0.0))
    joints = [
        beam.clamped("clamp", "0.end", (0.0, 0.0)),
        planar.Revolute("pin", ("4.end", "rod"), (1.0, 0.0)),
        planar.Revolute("base", ("rod", "ground"), (1.4, 0.0)),
        planar.Revolute("again", ("rod", "ground"), (1.4, 0.0)),
        planar.Distance("across", ("1.end", "3.end"), points=((0.25, 0.1), (0.75, -0.2))),
    ]
    return jm.MultibodySystem([*nodes, rod], joints, elements=elements, gravity=(0.0, -9.81))


def unlike_nodes() -> jm.MultibodySystem:
    """Elements of two and three nodes between a particle, a body and nodes of one and of four
    coordinates, two of them between the same bodies; a joint between nodes; a crowded node."""
    rng = np.random.default_rng(4)

    def element(name, bodies, size):
        half = jnp.asarray(rng.normal(size=(size, size)))

        def mass(q, t):
            return half @ half.T * (1 + 0.1 * jnp.sum(jnp.sin(q[0])) ** 2 + t)

        return generalized.Element(name, bodies, mass_matrix=mass, first_moment=np.zeros_like)

    def node(name, count):
        names = [f"x{k}" for k in range(count)]
        return generalized.Body(name, names, lengths=names, force=lambda q, v, t: -q)

    bodies = [
        planar.Particle("point", mass=0.5, position=(1.0, 0.0)),
        planar.Body("plate", mass=1.0, inertia=0.3, position=(0.0, 1.0)),
        planar.Body("apart", mass=1.0, inertia=0.2, position=(2.0, 1.0)),
        node("one", 1),
        node("four", 4),
        node("eight", 8),
    ]
    elements = [
        element("a", ("point", "four"), 6),
        element("b", ("plate", "one", "four"), 8),
        element("c", ("four", "point"), 6),
        element("d", ("eight", "one"), 9),
    ]
    joints = [
        planar.Distance("link", ("point", "plate"), points=((1.0, 0.0), (0.0, 1.0))),
        planar.Revolute("far", ("plate", "apart"), (1.0, 1.0)),
        generalized.Condition(
            "tie", ("one", "four"), lambda q, t: q[0][0] - q[1][2] * (1 + q[1][3])
        ),
        *(
            generalized.Condition(
                f"pin {k}", "eight", lambda q, t, k=k: jnp.sin(q[k % 4]) + q[7] * k
            )
            for k in range(10)
        ),
    ]
    return jm.MultibodySystem(bodies, joints, elements=elements)


SYSTEMS = {"redundant": redundant, "unlike nodes": unlike_nodes}


def state(system, seed=1):
    rng = np.random.default_rng(seed)
    q = system.reference_q + 0.1 * rng.normal(size=system.structure.nq)
    return jnp.asarray(q), jnp.asarray(rng.normal(size=system.structure.nv))


@functools.cache
def matrices(name):
    """What the descriptor says, and M and C as they are."""
    system = SYSTEMS[name]()
    q, v = state(system)
    x = jnp.asarray(np.random.default_rng(2).normal(size=system.structure.nv))
    y = jnp.asarray(np.random.default_rng(3).normal(size=len(system.structure.rows)))

    @eqx.filter_jit
    def all_of(system, q, v):
        d = system.descriptor(q, v, 0.2)
        one = tuple((k,) for k in range(len(system.structure.rows)))
        null = d.null_projector(system.column_scale(), one, 1e-9)
        solved = d.factor(1e-6).solve(y)
        products = d.mass(x), d.inverse_mass(x), d.row_scale(), solved, null.projector[1, 0, 0]
        return products, d.mass_matrix(), d.constraint_matrix()

    products, mass, rows = all_of(system, q, v)
    return system, (q, v), (x, y), products, np.asarray(mass), np.asarray(rows)


@pytest.mark.parametrize("name", representatives(SYSTEMS, "redundant"))
@pytest.mark.thorough
def test_products_and_solutions_equal_dense_ones(name):
    system, _, (x, y), products, mass, rows = matrices(name)
    product, solution, scale, solved, null = map(np.asarray, products)
    assert np.linalg.eigvalsh(mass)[0] > 0
    np.testing.assert_allclose(mass, mass.T, atol=1e-15)
    np.testing.assert_allclose(product, mass @ x, atol=1e-13)
    np.testing.assert_allclose(mass @ solution, x, atol=1e-12)
    schur = rows @ np.linalg.solve(mass, rows.T)
    np.testing.assert_allclose(scale, np.sqrt(np.diag(schur)), rtol=1e-12)
    shifted = schur / np.outer(scale, scale) + 1e-6 * np.eye(len(rows))
    expected = np.linalg.solve(shifted, y)
    np.testing.assert_allclose(solved, expected, atol=1e-9 * np.abs(expected).max())
    unit = rows * np.asarray(system.column_scale())
    unit = unit / np.linalg.norm(unit, axis=1)[:, None]
    left = scipy.linalg.null_space(unit.T, rcond=1e-9)
    np.testing.assert_allclose(null, np.sum(left**2, axis=1), atol=1e-6)


def test_mass_is_the_sum_over_bodies_and_elements():
    _, (q, _), _, _, mass, _ = matrices("redundant")
    part = beam.part_of(4)
    expected = np.zeros_like(mass)
    expected[15:, 15:] = np.diag([0.4, 0.4, 0.02])
    for k in range(4):
        own = slice(3 * k, 3 * k + 6)
        expected[own, own] += part.mass_matrix((q[own][:3], q[own][3:]), 0.0)
    np.testing.assert_allclose(mass, expected, atol=1e-15)


def test_forces_are_those_of_lagrange():
    """For the sum of all energies."""
    system, (q, v), _, _, mass, _ = matrices("redundant")
    part = beam.part_of(4)

    def lagrangian(q, v):
        total = 0.5 * v[15:] @ (jnp.array([0.4, 0.4, 0.02]) * v[15:]) - 0.4 * 9.81 * q[16]
        for k in range(4):
            two, rate = (q[3 * k : 3 * k + 3], q[3 * k + 3 : 3 * k + 6]), v[3 * k : 3 * k + 6]
            total += 0.5 * rate @ part.mass_matrix(two, 0.0) @ rate - part.energy(two)
            total -= 9.81 * part.first_moment(two)[1]
        return total

    @jax.jit
    def force(q, v):
        change = jax.jvp(lambda q: jax.grad(lagrangian, 1)(q, v), (q,), (v,))[1]
        return jax.grad(lagrangian)(q, v) - change

    expected = np.asarray(force(q, v))
    np.testing.assert_allclose(system.force(q, v, 0.0), expected, atol=1e-9)
    np.testing.assert_allclose(
        system.free_acceleration(q, v, 0.0), np.linalg.solve(mass, expected), atol=1e-7
    )


@functools.cache
def closed():
    """In its reference configuration, in which everything closes."""
    system = SYSTEMS["redundant"]()
    return system, system.reference_q


def with_factor(factor):
    """The redundant system with all numbers of its elements multiplied."""
    system, _ = closed()

    def multiplied(x):
        return x * factor if eqx.is_inexact_array(x) else x

    groups = jax.tree.map(multiplied, system.element_groups)
    return eqx.tree_at(lambda s: s.element_groups, system, groups)


def at(factor):
    """One acceleration at rest; all of them, and the multipliers."""
    system, q = closed()
    v = jnp.zeros((system.structure.nv,))
    found = jm.runs.solve_with_friction(
        with_factor(factor), q, v, 0.0, formulation=jm.formulations.MinimumNorm()
    )
    return found.acceleration[10], (found.acceleration, found.multipliers)


@functools.cache
def solved():
    """Accelerations and multipliers, and the derivative of one acceleration by that factor. One
    program is enough."""

    @jax.jit
    def everything(factor):
        _, slope, both = jax.jvp(at, (factor,), (jnp.ones(()),), has_aux=True)
        return *both, slope

    return everything(jnp.asarray(1.0))


def test_accelerations_and_reactions_are_those_of_dense_equations():
    system, q = closed()
    v = jnp.zeros((system.structure.nv,))
    mass, rows = np.asarray(system.mass_matrix(q, 0.0)), system.constraint_matrix(q, v, 0.0)
    force = np.asarray(system.force(q, v, 0.0))
    scale = np.sqrt(np.diag(rows @ np.linalg.solve(mass, rows.T)))
    unit = rows / scale[:, None]
    schur = unit @ np.linalg.solve(mass, unit.T)
    scaled = np.linalg.pinv(schur, rcond=1e-10) @ (unit @ np.linalg.solve(mass, force))
    expected = scaled / scale
    acceleration, multipliers, _ = solved()
    np.testing.assert_allclose(multipliers, expected, atol=1e-8 * abs(expected).max())
    expected = np.linalg.solve(mass, force - rows.T @ expected)
    np.testing.assert_allclose(acceleration, expected, atol=1e-7 * abs(expected).max())


@functools.cache
def by_dense_equations():
    """That acceleration and its derivative, without the rows that are written twice."""
    system, q = closed()
    v = jnp.zeros((system.structure.nv,))

    @jax.jit
    def dense(factor):
        other = with_factor(factor)
        mass, force = other.mass_matrix(q, 0.0), other.force(q, v, 0.0)
        rows = other.constraint_matrix(q, v, 0.0)[jnp.array([0, 1, 2, 3, 4, 5, 6, 9])]
        whole = jnp.block([[mass, rows.T], [rows, jnp.zeros((8, 8))]])
        return jnp.linalg.solve(whole, jnp.concatenate([force, jnp.zeros(8)]))[10]

    return jax.jvp(dense, (1.0,), (1.0,))


def test_derivatives_with_respect_to_elements():
    """Of an acceleration at a redundant state."""
    value, expected = by_dense_equations()
    found, _, slope = solved()
    np.testing.assert_allclose(found[10], value, rtol=1e-8)
    np.testing.assert_allclose(slope, expected, rtol=1e-7)


@pytest.mark.thorough
def test_derivatives_in_reverse():
    # Made outside of what is traced.
    closed()
    slope, _ = jax.jit(jax.grad(at, has_aux=True))(jnp.asarray(1.0))
    np.testing.assert_allclose(slope, by_dense_equations()[1], rtol=1e-7)


LENGTH, MASS, BENDING = 1.3, 0.7, 2.0


def of_beam(count, ends, axial=500.0):
    nodes, elements = beam.beam_of(count, LENGTH, MASS, BENDING, axial)
    return jm.MultibodySystem(nodes, ends(count), elements=elements)


@eqx.filter_jit
def matrices_at_rest(system):
    """M, the second derivative of the potential energy, and C."""
    q, v = system.reference_q, system.initial_v
    stiffness = jax.hessian(lambda q: system.energy(q, v, 0.0)[1])(q)
    return system.mass_matrix(q, 0.0), stiffness, system.constraint_matrix(q, v, 0.0)


def frequencies(system):
    """Of small motions (rad/s), of velocities that the constraints allow."""
    mass, stiffness, rows = map(np.asarray, matrices_at_rest(system))
    basis = scipy.linalg.null_space(rows)
    squares = scipy.linalg.eigh(
        basis.T @ stiffness @ basis, basis.T @ mass @ basis, eigvals_only=True
    )
    return np.sqrt(squares)


def cantilever(count):
    return [beam.clamped("clamp", "0.end", (0.0, 0.0))]


def on_two_supports(count):
    return [
        planar.Revolute("left", ("ground", "0.end"), (0.0, 0.0)),
        planar.PointOnLine("right", ("ground", f"{count}.end"), (LENGTH, 0.0), axis=(1.0, 0.0)),
    ]


UNIT = np.sqrt(BENDING / MASS) / LENGTH**2


@pytest.mark.parametrize("ends", [cantilever, on_two_supports])
def test_frequencies_of_one_element(ends):
    np.testing.assert_allclose(frequencies(of_beam(1, ends)), by_hand(ends), rtol=1e-8)


@pytest.mark.thorough
def test_small_motions_of_one_element():
    system = of_beam(1, cantilever)
    found = np.asarray(jm.linearise(system, system.reference_q).eigenvalues.imag)
    np.testing.assert_allclose(np.sort(found[found > 0]), by_hand(cantilever), rtol=1e-8)


def by_hand(ends):
    """With matrices 2 x 2: the deflection and the angle of the free end, the angles of both."""
    if ends is cantilever:
        stiffness, mass = [[12.0, -6.0], [-6.0, 4.0]], [[156.0, -22.0], [-22.0, 4.0]]
    else:
        stiffness, mass = [[4.0, 2.0], [2.0, 4.0]], [[4.0, -3.0], [-3.0, 4.0]]
    squares = scipy.linalg.eigh(stiffness, np.array(mass) / 420, eigvals_only=True)
    axial = np.sqrt(3 * 500.0 / MASS) / LENGTH
    return np.sort([*np.sqrt(squares) * UNIT, axial])


def test_frequencies_of_many_elements_are_those_of_the_continuous_beam():
    """cos x cosh x = -1; the error of cubic elements goes with the fourth power of their length."""
    roots = np.array([1.8751040687119611, 4.694091132974175])
    bending = [frequencies(of_beam(n, cantilever, axial=1e6))[:2] for n in (4, 8)]
    errors = np.array(bending) / (roots**2 * UNIT) - 1
    assert np.all(errors[1] > 0)
    np.testing.assert_allclose(errors[0] / errors[1], 16.0, rtol=0.12)
    np.testing.assert_allclose(errors[1], 0.0, atol=1e-4)


def on_three_supports():
    """Statically indeterminate, and decided by the bending of the beam."""
    nodes, elements = beam.beam_of(2, 2.0, mass=0.7, bending=1e7, axial=1e9)
    joints = [
        planar.Revolute("left", ("ground", "0.end"), (0.0, 0.0)),
        planar.PointOnLine("middle", ("ground", "1.end"), (1.0, 0.0), axis=(1.0, 0.0)),
        planar.PointOnLine("right", ("ground", "2.end"), (2.0, 0.0), axis=(1.0, 0.0)),
    ]
    return jm.MultibodySystem(nodes, joints, elements=elements, gravity=(0.0, -9.81))


def test_what_three_supports_carry_is_unique():
    system = on_three_supports()
    report = jm.analyze(system, system.reference_q)
    assert all(report.unique(name) for name in ("left", "middle", "right"))


@pytest.mark.thorough
def test_a_beam_on_three_supports():
    """3/8, 10/8, 3/8 of the weight of a span (three-moment equation)."""
    system = on_three_supports()
    found = jm.equilibrium(system, system.reference_q).reactions()
    forces = [found.wrench(name).force[1] for name in ("left", "middle", "right")]
    shares = np.array(forces) / (0.7 * 9.81)
    np.testing.assert_allclose(shares, [3 / 8, 10 / 8, 3 / 8], rtol=1e-8)


@pytest.mark.thorough
def test_motion_keeps_energy_and_momentum():
    """A beam that flies, turns and bends, with a rod on a hinge at its end."""
    nodes, elements = beam.beam_of(2)
    rod = planar.Body("rod", mass=0.4, inertia=0.02, position=(1.2, 0.0))
    pin = planar.Revolute("pin", ("2.end", "rod"), (1.0, 0.0))
    system = jm.MultibodySystem([*nodes, rod], [pin], elements=elements)
    v = jnp.asarray(np.random.default_rng(5).normal(size=12))
    run = jm.simulate(
        system,
        system.reference_q,
        v,
        0.3,
        every=0.15,
        consistent=True,
        rtol=1e-9,
        atol=1e-11,
        monitor=False,
    )
    states = list(zip(run.q, run.v, run.times, strict=True))
    energies = [sum(system.energy(*state)) for state in states]
    np.testing.assert_allclose(energies, energies[0], rtol=1e-7)

    def momentum(q, v, t):
        along = [np.tile(np.eye(3)[k], 4) for k in range(2)]
        about = np.concatenate([[-y, x, 1.0] for x, y, _ in np.reshape(q, (4, 3))])
        return np.stack([*along, about]) @ system.mass_matrix(q, t) @ v

    found = [momentum(*state) for state in states]
    np.testing.assert_allclose(found, np.broadcast_to(found[0], (3, 3)), atol=1e-7)


@pytest.mark.thorough
def test_an_element_between_bodies_in_space():
    """A spring-like energy and a mass between two rigid bodies, in velocities along world axes and
    body axes."""
    bodies = [
        spatial.Body("a", mass=1.0, inertia=(0.1, 0.2, 0.3), position=(0.0, 0.0, 0.0)),
        spatial.Body("b", mass=2.0, inertia=(0.2, 0.2, 0.4), position=(1.0, 0.0, 0.0)),
    ]

    def mass(q, t):
        moving = jnp.concatenate([jnp.eye(3), jnp.zeros((3, 3)), -jnp.eye(3), jnp.zeros((3, 3))], 1)
        return 0.3 * moving.T @ moving

    def energy(q):
        first, second = (x[3:] for x in q)
        return 2.0 * jnp.sum((q[0][:3] - q[1][:3]) ** 2) + 5.0 * (1 - (first @ second) ** 2)

    link = generalized.Element("link", ("a", "b"), mass_matrix=mass, energy=energy)
    system = jm.MultibodySystem(bodies, elements=[link])
    turn = np.array([np.cos(0.2), 0.0, 0.0, np.sin(0.2)])
    q = jnp.asarray(np.concatenate([[0, 0, 0], turn, [1.0, 0.5, 0.0], [1.0, 0, 0, 0]]))
    v = jnp.zeros(12)
    # 5 sin^2(angle / 2) has the torque 2.5 sin(angle).
    torque = 2.5 * np.sin(0.4)
    force = np.array([4.0, 2.0, 0.0, 0, 0, -torque, -4.0, -2.0, 0, 0, 0, torque])
    np.testing.assert_allclose(system.force(q, v, 0.0), force, atol=1e-12)
    dense = np.diag([1.3] * 3 + [0.1, 0.2, 0.3] + [2.3] * 3 + [0.2, 0.2, 0.4])
    dense[[0, 1, 2, 6, 7, 8], [6, 7, 8, 0, 1, 2]] = -0.3
    np.testing.assert_allclose(
        system.free_acceleration(q, v, 0.0), np.linalg.solve(dense, force), atol=1e-12
    )


@pytest.mark.thorough
def test_programs_grow_with_the_logarithm_of_the_number_of_elements():
    def equations(count):
        nodes, elements = beam.beam_of(count)
        system = jm.MultibodySystem(nodes, cantilever(count), elements=elements)
        q, v = system.reference_q, system.initial_v
        program = jax.make_jaxpr(
            lambda q: jm.runs.solve_with_friction(
                system, q, v, 0, formulation=jm.formulations.MinimumNorm()
            )
        )
        return sum(1 for _ in walk(program(q).jaxpr))

    few, some, many = equations(4), equations(16), equations(64)
    assert many - some < 1.3 * (some - few)


def walk(jaxpr):
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from walk(inner)


REFUSED = {
    "a body that is not there": (
        ["0", "nobody"],
        "there is no moving body 'nobody'; its nodes may be 0, 1",
    ),
    "the ground": (["0", "ground"], "there is no moving body 'ground'"),
    "one body": (["0"], "bodies must name at least two different bodies"),
    "no function": (["0", "1"], "an element needs a mass_matrix, a force or an energy"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    bodies, said = REFUSED[case]
    nodes, elements = beam.beam_of(1)

    def build():
        force = None if case == "no function" else lambda q, v, t: jnp.zeros(6)
        element = generalized.Element("e", bodies, force=force)
        return jm.MultibodySystem(nodes, elements=[*elements, element])

    with pytest.raises(ValueError, match=said):
        build()


def test_no_model_file_holds_elements():
    nodes, elements = beam.beam_of(1)
    model = jm.Model("beam", 2, bodies=nodes, elements=elements)
    assert model.system().structure.nv == 6
    with pytest.raises(
        ValueError, match="'e0' is an element of functions, which model files do not know"
    ):
        write_model(model)


def test_a_sweep_of_a_model_keeps_its_elements():
    """A driver and a number of a body, beside nodes whose mass is that of an element."""
    nodes, elements = beam.beam_of(1)
    rod = planar.Body("rod", mass=0.4, inertia=0.02, position=(1.2, 0.0))
    pin = planar.Revolute("pin", ("1.end", "rod"), (1.0, 0.0))
    model = jm.Model("beam", 2, bodies=[*nodes, rod], joints=[pin], elements=elements)
    subject = ModelSubject(model, None)
    for name, number in (
        ("bodies.rod.mass", 0.4),
        ("joints.pin.rotation", 0.1),
        ("gravity.y", 0.0),
    ):
        placed = subject.place({name: number})
        for system in (placed.system, placed.held):
            np.testing.assert_array_equal(
                system.mass_matrix(placed.q, 0.0), model.system().mass_matrix(placed.q, 0.0)
            )
    with pytest.raises(ModelError, match="numbers of this element are those of its functions"):
        subject.name("elements.e0.mass")


def test_a_mass_that_is_not_definite_is_told():
    bodies = [
        planar.Body(name, mass=1.0, inertia=1.0, position=(x, 0.0))
        for name, x in (("a", 0.0), ("b", 1.0))
    ]
    wrong = generalized.Element("e", ("a", "b"), mass_matrix=lambda q: -5.0 * jnp.eye(6))
    system = jm.MultibodySystem(bodies, elements=[wrong])
    q, v = system.reference_q, system.initial_v
    assert np.all(np.isnan(system.free_acceleration(q, v, 0.0)))
    found = jm.runs.solve_with_friction(
        system, q, v, 0.0, formulation=jm.formulations.MinimumNorm()
    )
    assert found.result == jm.results.RESULTS.acceleration_not_finite


def test_a_matrix_of_a_wrong_shape_is_refused():
    nodes, elements = beam.beam_of(1)
    wrong = generalized.Element("e", ("0", "1"), mass_matrix=lambda q, t: jnp.eye(2))
    system = jm.MultibodySystem(nodes, elements=[*elements, wrong])
    with pytest.raises(ValueError, match=r"shape \[6, 6\]"):
        system.mass_matrix(system.reference_q, 0.0)


@pytest.mark.thorough
def test_a_node_without_mass_is_refused_by_name():
    nodes, (element,) = beam.beam_of(1)
    spring = generalized.Element("spring", ("0", "1"), energy=lambda q: q[0][0] ** 2)
    with pytest.raises(ValueError, match="body '0' has no mass"):
        jm.MultibodySystem(nodes, elements=[spring])
    with pytest.raises(ValueError, match="element name 'e0' is used twice"):
        jm.MultibodySystem(nodes, elements=[element, element])
    weightless = generalized.Element("e", ("0", "1"), mass_matrix=lambda q, t: jnp.eye(6))
    with pytest.raises(ValueError, match="element 'e' does not say how gravity acts on it"):
        jm.MultibodySystem(nodes, elements=[weightless], gravity=(0.0, -9.81))
