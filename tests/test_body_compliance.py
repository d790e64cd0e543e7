"""Elasticity of finite elements without their dynamics."""

from typing import Any, cast

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from elastic_mechanisms import elastic_parallelogram, joint_points, numbers, resolved

import jaxmbs as jm
from jaxmbs import elastic, finite_elements as fem, spatial


LENGTH = np.sqrt(0.5)
ENDS = ("bottom", "top")


@pytest.fixture(scope="module")
def link():
    """The link of the parallelogram, in few elements."""
    aluminium = fem.Material(young=6.9e10, poisson=0.33, density=2700)
    tube = fem.tube(0.026, 0.030, LENGTH, aluminium, around=4, along=4)
    ends = [
        fem.Attachment(name, [0, 0, z], fem.NodesOnPlane([0, 0, 1]))
        for name, z in zip(ENDS, (-LENGTH / 2, LENGTH / 2), strict=True)
    ]
    return fem.reduce(tube, ends, modes=4)


def axial_stiffness(link):
    """Between the two ends (N/m): forces of 1 N that pull them apart, by dense algebra."""
    apart = np.asarray(link.translations[1, 2] - link.translations[0, 2])
    return 1 / (apart @ np.linalg.solve(np.asarray(link.stiffness), apart))


@pytest.fixture(scope="module")
def rods(link):
    """The same mechanism with rods as stiff as that link, and with that link itself."""
    model = elastic_parallelogram()
    points = joint_points(model)
    names = ("AB", "CD", "EF", "GH")
    stiff = float(axial_stiffness(link))
    made = [
        [
            elastic.Rod(n, f"link {n}", points=[points[n[0]], points[n[1]]], stiffness=k * stiff)
            for n, k in zip(names, (1.0, 1.0, 1.0, 2.0), strict=True)
        ],
        [
            elastic.BodyCompliance(n, f"link {n}", stiffer(link, k))
            for n, k in zip(names, (1.0, 1.0, 1.0, 2.0), strict=True)
        ],
    ]
    return [eqx.tree_at(lambda m: m.compliances, model, tuple(own)).system() for own in made]


def stiffer(link, factor):
    return eqx.tree_at(lambda b: b.stiffness, link, factor * link.stiffness)


def test_the_stiffness_is_that_of_a_rod(link):
    area = np.pi / 4 * (0.030**2 - 0.026**2)
    # Coarse elements, whose ends cannot thin: half a percent more.
    assert 0 < axial_stiffness(link) / (6.9e10 * area / LENGTH) - 1 < 0.02


def test_reactions_are_those_of_rods(rods):
    """Spherical joints bend nothing that the load does not: axial stiffness alone shares it."""
    forces = []
    for system in rods:
        q, v = system.reference_q, system.initial_v
        found, _ = resolved(system, *numbers(system), q, v)
        assert found.result == jm.results.RESULTS.successful
        forces.append(found.multipliers)
    size = float(jnp.max(jnp.abs(forces[0])))
    np.testing.assert_allclose(forces[1], forces[0], atol=1e-8 * size)


@pytest.mark.thorough
def test_scales_of_modes_mean_nothing(link, rods):
    """The same body in other modal coordinates: eta = T z."""
    count = link.stiffness.shape[0]
    mixed = np.linalg.qr(np.random.default_rng(0).normal(size=(count, count)))[0]
    t = mixed * 10.0 ** np.linspace(-3, 3, count)[None]
    other = eqx.tree_at(
        lambda b: (b.stiffness, b.translations, b.rotations),
        link,
        (t.T @ link.stiffness @ t, link.translations @ t, link.rotations @ t),
    )
    model = elastic_parallelogram()
    soft = [elastic.BodyCompliance("AB", "link AB", x) for x in (link, other)]
    systems = [eqx.tree_at(lambda m: m.compliances, model, (x,)).system() for x in soft]
    strains = []
    for system in systems:
        columns = system.deformation_matrix(system.reference_q, system.initial_v, 0.0)
        strains.append((columns * numbers(system)[0][None]) @ columns.T)
    size = np.max(np.abs(strains[0]))
    np.testing.assert_allclose(strains[1], strains[0], atol=1e-6 * size)


def test_refusals(link):
    with pytest.raises(TypeError, match=r"reduced must be a ReducedBody"):
        elastic.BodyCompliance("soft", "link", cast(Any, "tube"))
    loose = eqx.tree_at(lambda b: b.stiffness, link, 0 * link.stiffness)
    with pytest.raises(ValueError, match=r"positive definite"):
        elastic.BodyCompliance("soft", "link", loose)
    body = spatial.Body("link", mass=1.0, inertia=[0.1] * 3, position=[0, 0, 0])
    joint = spatial.Spherical("A", ("ground", "link"), at=[0, 0, 0.3])
    soft = elastic.BodyCompliance("soft", "link", link)
    with pytest.raises(
        ValueError, match=r"compliance 'soft': a joint lies at .* 'top', is 0\.0535"
    ):
        jm.MultibodySystem([body], [joint], compliances=[soft])
    flat = jm.planar.Body("link", mass=1.0, inertia=0.1, position=[0, 0])
    pin = jm.planar.Revolute("A", ("ground", "link"), at=[0, 0])
    with pytest.raises(ValueError, match=r"a reduced body is one in space"):
        jm.MultibodySystem([flat], [pin], compliances=[soft])
