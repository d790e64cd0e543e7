"""Light parts that are not known when a program is made: a model that is made, varied, swept or
designed inside a transformation, and masses that were replaced. Each answer is that of a system
made of the same numbers outside, which `test_light_parts.py` holds against extended precision."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives
from test_light_parts import chain, exact, four_bar, solve

import jaxmbs as jm
from jaxmbs import design, planar
from jaxmbs._dynamics import solve_with_friction
from jaxmbs._system import _light_parts, MultibodySystem


G = 9.81

solved = eqx.filter_jit(solve_with_friction)


def two_slides(ratio, angle):
    """Heavy slides on one line, joined by two light rods and a pin between them."""
    at = np.array([np.cos(angle), np.sin(angle)])
    points = [np.zeros(2), at, np.array([2 * at[0], 0.0])]
    light = 1 / ratio
    bodies = [planar.Body(n, mass=1.0, inertia=0.1, position=points[k]) for n, k in SLIDES]
    bodies += [
        planar.Body(n, mass=light, inertia=light / 12, position=(points[k] + points[k + 1]) / 2)
        for n, k in (("first", 0), ("second", 1))
    ]
    joints = [
        planar.Translational("left guide", ("ground", "left"), points[0], (1.0, 0.0)),
        planar.Revolute("A", ("left", "first"), points[0]),
        planar.Revolute("B", ("first", "second"), points[1]),
        planar.Revolute("C", ("second", "right"), points[2]),
        planar.Translational("right guide", ("ground", "right"), points[2], (1.0, 0.0)),
    ]
    return jm.MultibodySystem(bodies, joints, gravity=(1.0, -G))


SLIDES = (("left", 0), ("right", 2))

MECHANISMS = {
    "four-bar": lambda ratio: four_bar([2.0, 2.0 / ratio, 1.5]),
    "chain": lambda ratio: chain(8, ratio),
    "slides": lambda ratio: two_slides(ratio, 0.4),
}
RATIOS = (1.0, 1e3, 1e6, 1e9)


def answer(make):
    def asked(ratio):
        system = make(ratio)
        q, v = system.reference_q, system.initial_v
        found = solve_with_friction(system, q, v, 0.0)
        return found.acceleration, found.multipliers

    return asked


def compiled(make):
    one = jax.jit(answer(make))
    return [one(ratio) for ratio in RATIOS]


def mapped(make):
    accelerations, multipliers = jax.jit(jax.vmap(answer(make)))(jnp.array(RATIOS))
    return list(zip(accelerations, multipliers, strict=True))


def one_by_one_in_a_loop(make):
    accelerations, multipliers = jax.jit(lambda r: jax.lax.map(answer(make), r))(jnp.array(RATIOS))
    return list(zip(accelerations, multipliers, strict=True))


def batch_of_systems(make):
    systems = eqx.filter_jit(eqx.filter_vmap(make))(jnp.array(RATIOS))
    accelerations, multipliers = eqx.filter_jit(eqx.filter_vmap(lambda s: answer(lambda _: s)(0)))(
        systems
    )
    return list(zip(accelerations, multipliers, strict=True))


def replaced(make):
    system = make(1.0)

    def with_others(ratio):
        other = make(ratio)
        return eqx.tree_at(lambda s: s.body_groups[0].inertia, system, other.body_groups[0].inertia)

    return [answer(with_others)(ratio) for ratio in RATIOS]


def replaced_while_traced(make):
    system = make(1.0)

    def with_others(ratio):
        inertia = make(ratio).body_groups[0].inertia
        return eqx.tree_at(lambda s: s.body_groups[0].inertia, system, inertia)

    one = jax.jit(answer(with_others))
    return [one(ratio) for ratio in RATIOS]


WAYS = [compiled, mapped, one_by_one_in_a_loop, batch_of_systems, replaced, replaced_while_traced]


@pytest.mark.parametrize(
    ("name", "way"),
    representatives(
        [(name, way) for name in MECHANISMS for way in WAYS],
        ("chain", mapped),
        ("four-bar", replaced_while_traced),
    ),
)
def test_every_way_of_asking(name, way):
    make = MECHANISMS[name]
    for ratio, found in zip(RATIOS, way(make), strict=True):
        system = make(ratio)
        _, known = solve(system, None, system.reference_q, system.initial_v)
        acceleration, reaction = exact(known)
        largest = np.max(np.abs(reaction))
        np.testing.assert_allclose(known[1].T @ found[1], reaction, atol=1e-9 * largest)
        least = float(np.min(np.diagonal(known[0])))
        allowed = 1e-9 * np.max(np.abs(acceleration)) + 1e-13 * largest / least
        np.testing.assert_allclose(found[0], acceleration, atol=allowed)


@pytest.mark.thorough
def test_places_that_are_traced():
    """Of bodies whose masses are known."""

    @eqx.filter_jit
    def loads(system):
        equations = system.equations(system.reference_q, system.initial_v, 0.0)
        return jm.formulations.MinimumNorm().solve(equations).multipliers

    def placed(angle):
        at = jnp.stack([jnp.cos(angle), jnp.sin(angle)])
        points = [jnp.zeros(2), at]
        bodies = [
            planar.Body("upper", mass=1e-6, inertia=1e-7, position=at / 2),
            planar.Body("lower", mass=2.0, inertia=0.1, position=at * 3 / 2),
        ]
        joints = [
            planar.Revolute("A", ("ground", "upper"), points[0]),
            planar.Revolute("B", ("upper", "lower"), points[1]),
        ]
        system = jm.MultibodySystem(bodies, joints, gravity=(0.0, -G))
        return loads(system)

    np.testing.assert_allclose(jax.jit(placed)(0.3), placed(0.3), rtol=1e-9, atol=1e-12)

    def held(length):
        slide = jm.generalized.Body(
            "slide",
            ["place"],
            mass_matrix=lambda q, t: jnp.full((1, 1), 3.0),
            first_moment=lambda q: jnp.stack([3.0 * q[0], 0.0]),
            frames={
                "tip": lambda q: jm.generalized.PlanarFrame(jnp.stack([q[0], -1.0]), 0.0 * q[0])
            },
            lengths=["place"],
        )
        rod = planar.Body("rod", mass=1.0, inertia=0.1, position=(0.0, -1.5))
        pin = planar.Revolute("pin", ("slide.tip", "rod"), jnp.stack([0.0, -length]))
        system = jm.MultibodySystem([slide, rod], [pin], gravity=(1.0, -G))
        return loads(system)

    np.testing.assert_allclose(jax.jit(held)(1.0), held(1.0), rtol=1e-9, atol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("name", MECHANISMS)
def test_derivatives_by_a_traced_mass(name):
    """In both modes, against differences of systems that are made outside."""
    make = MECHANISMS[name]

    def tension(mass):
        return answer(make)(1 / mass)[1]

    forward, reverse = jax.jit(jax.jacfwd(tension)), jax.jit(jax.jacrev(tension))
    for mass, h in ((0.5, 1e-4), (1e-8, 1e-5)):
        # Forces are linear in a mass that is as small.
        ahead, behind = mass + h, max(mass - h, mass / 2)
        known = (tension(ahead) - tension(behind)) / (ahead - behind)
        size = np.max(np.abs(known))
        np.testing.assert_allclose(forward(mass), known, atol=1e-4 * size)
        np.testing.assert_allclose(reverse(mass), forward(mass), atol=1e-6 * size)


def model(names=("crank", "coupler", "rocker")):
    points = np.array([[0.0, 0.0], [0.3, 0.9], [2.0, 1.4], [2.5, 0.0]])
    bodies = [
        planar.Body(name, mass=2.0, inertia=0.2, position=(a + b) / 2)
        for name, a, b in zip(names, points, points[1:], strict=False)
    ]
    ends = ["ground", *names, "ground"]
    joints = [
        planar.Revolute(f"J{k}", (a, b), p)
        for k, (a, b, p) in enumerate(zip(ends, ends[1:], points, strict=False))
    ]
    return jm.Model("four-bar", 2, bodies=bodies, joints=joints, gravity=(0.0, -G))


def varied(mass):
    return jm.vary(model(), numbers(mass)).system()


def numbers(mass):
    return {"bodies.crank.mass": mass, "bodies.crank.inertia": 0.1 * mass}


def test_sweeps_look_at_each_case():
    """Ordinary cases beside light ones, whichever comes first."""
    for masses in (np.array([2.0, 1e-8, 1e-2, 2e-6]), np.array([1e-8, 2.0])):
        swept = jm.sweep(
            lambda system, q, v, t: solve_with_friction(system, q, v, t).multipliers,
            model(),
            jm.Cases(numbers(masses)),
        )
        assert not swept.failures()
        for mass, found in zip(masses, swept.answers(), strict=True):
            system = varied(mass)
            _, known = solve(system, None, system.reference_q, system.initial_v)
            _, reaction = exact(known)
            size = np.max(np.abs(reaction))
            np.testing.assert_allclose(known[1].T @ found, reaction, atol=1e-9 * size)


def test_studies_look_at_each_design():
    """Programs for one design know whether its parts are light; those for many find it out."""
    by_masses = design.Study(model(), [*numbers(1.0)])
    assert by_masses.light is None
    for mass, light in ((2.0, False), (1e-8, True)):
        assert by_masses.settled(jnp.array([mass, 0.1 * mass])).light is light
    seen = []
    jax.jit(lambda x: seen.append(by_masses.settled(x).light))(jnp.ones(2))
    assert seen == [None]
    # Geometry decides nothing where masses are alike, and may where they are not.
    for name in ("bodies.crank.position.x", "joints.J1.at.x"):
        assert design.Study(model(), [name]).light is False
        heavy = jm.vary(model(), {"bodies.rocker.mass": 2e9})
        light = design.Study(heavy, [name])
        assert light.light is not False
        assert light.settled(light.design).light is heavy.system().structure.light


@pytest.mark.thorough
def test_designs_by_a_mass():
    """Value and gradient of a design whose crank is light, against systems made outside."""
    study = design.Study(model(), [*numbers(1.0)])
    place = jnp.array([1e-8, 1e-9])

    def first(point):
        return study.respond(point).multipliers[0]

    def outside(mass):
        return jm.reactions(varied(mass), *start(varied(mass))).multipliers

    value, slope = jax.jit(lambda x: (first(x), jax.jacfwd(first)(x)))(place)
    known = np.asarray(outside(1e-8))
    size = np.max(np.abs(known))
    np.testing.assert_allclose(value, known, atol=1e-9 * size)
    # Along the direction in which all of the crank grows forces are linear in it.
    change = np.asarray(outside(1e-4)) - known
    along = slope @ np.array([1.0, 0.1]) * 1e-4
    np.testing.assert_allclose(along, change, atol=1e-3 * np.max(np.abs(change)))


def start(system):
    return system.reference_q, system.initial_v


@pytest.mark.thorough
def test_a_singular_reference_hides_nothing():
    """At their dead point light rods move nothing: what they lose elsewhere is looked at there."""
    system = two_slides(1e8, 0.0)
    assert system.structure.light
    assert not two_slides(10.0, 0.0).structure.light
    q = jm.assemble(system, two_slides(1e8, 0.4).reference_q).q
    found, known = solve(system, None, q, system.initial_v)
    _, reaction = exact(known)
    size = np.max(np.abs(reaction))
    np.testing.assert_allclose(known[1].T @ found.multipliers, reaction, atol=1e-9 * size)


def generalized(ratio):
    """Three masses in a row on one line, held together by rods: coordinates of one body."""
    along = [
        jm.generalized.PfaffianConstraint(np.array([row]))
        for row in ([1.0, -1.0, 0.0], [0.0, 1.0, -1.0])
    ]
    return jm.GeneralizedSystem(
        ["a", "b", "c"],
        mass_matrix=np.diag([1.0, 1 / ratio, 3.0]),
        force=np.array([8.0, 0.0, 0.0]),
        constraints=dict(zip(("first", "second"), along, strict=True)),
        lengths=["a", "b", "c"],
    )


@pytest.mark.parametrize("ratio", [1.0, 1e9])
def test_generalized_coordinates(ratio):
    system = generalized(ratio)
    found = solved(system, *start(system), 0.0)
    acceleration = 8 / (4 + 1 / ratio)
    np.testing.assert_allclose(found.acceleration, acceleration, rtol=1e-6)
    pulled = [8 - acceleration, 3 * acceleration]
    np.testing.assert_allclose(found.multipliers, pulled, rtol=1e-6)


def by_functions(ratio):
    """The same, whose inertia holds no array that would tell it from another."""
    own = np.diag([1.0, 1 / ratio, 3.0])
    along = [
        jm.generalized.PfaffianConstraint(np.array([row]))
        for row in ([1.0, -1.0, 0.0], [0.0, 1.0, -1.0])
    ]
    return jm.GeneralizedSystem(
        ["a", "b", "c"],
        mass_matrix=lambda q: jnp.asarray(own),
        force=lambda q, v, t: jnp.array([8.0, 0.0, 0.0]),
        constraints=dict(zip(("first", "second"), along, strict=True)),
        lengths=["a", "b", "c"],
    )


@pytest.mark.thorough
def test_masses_by_functions_are_looked_at_once(monkeypatch):
    systems = [by_functions(ratio) for ratio in (1.0, 1e9, 1.0)]
    calls, look = [], _light_parts._looked_at
    monkeypatch.setattr(_light_parts, "_looked_at", lambda own: calls.append(own) or look(own))
    known = [system.with_light_parts_looked_at() for system in systems]
    known = [system.with_light_parts_looked_at() for system in known]
    assert calls == []
    assert all(own.looked_at and own.light is None for own in known)
    assert [own.structure.light for own in known] == [False, True, False]
    light, function = systems[1], lambda system: system.body_groups[0].inertia.mass_function
    replaced = eqx.tree_at(function, systems[0], function(light))
    assert replaced.with_light_parts_looked_at().structure.light
    assert len(calls) == 1
    again = replaced.with_light_parts_looked_at().with_light_parts_looked_at()
    assert again.structure.light
    assert len(calls) == 1
    found = solve_with_friction(replaced, *start(replaced), 0.0)
    np.testing.assert_allclose(found.multipliers, [6.0, 6.0], rtol=1e-6)


@pytest.mark.thorough
def test_what_is_too_large_is_told():
    """More velocities than are decomposed: chains that are light fail, and others do not."""
    for ratio, word in (
        (1e7, jm.results.RESULTS.light_parts_lost),
        (10.0, jm.results.RESULTS.successful),
    ):
        system = chain(340, ratio)
        found = solved(system, *start(system), 0.0)
        assert bool(found.result == word)


@pytest.mark.thorough
def test_runs_of_systems_made_inside():
    """A light crank, and an ordinary one beside it in the same batch, as those made outside."""

    def last(mass):
        system = varied(mass)
        run = jm.simulate(system, *start(system), 0.1, every=0.1, throw=False)
        return run.q[-1], run.multipliers[-1], run.position_error[-1], run.result

    masses = jnp.array([2.0, 1e-8])
    q, multipliers, error, result = jax.jit(jax.vmap(last))(masses)
    assert bool(jnp.all(result == jm.results.RESULTS.successful))
    assert float(jnp.max(error)) < 1e-12
    for k, mass in enumerate(masses):
        alone = last(float(mass))
        np.testing.assert_allclose(q[k], alone[0], atol=1e-8)
        size = np.max(np.abs(alone[1]))
        np.testing.assert_allclose(multipliers[k], alone[1], atol=1e-6 * size)


def test_systems_that_were_looked_at_hold_no_data():
    """As arguments of a program they are what they were; those made in it hold one number."""
    system = four_bar([2.0, 2.0, 1.5])
    seen: list[MultibodySystem] = []

    def look(system):
        seen.append(system.with_light_parts_looked_at())
        return system.gravity

    eqx.filter_jit(look)(system)
    jax.jit(lambda mass: look(varied(mass)))(1.0)
    assert [own.looked_at for own in seen] == [True, False]
    assert [own.light is None for own in seen] == [True, False]
