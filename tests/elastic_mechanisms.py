"""Mechanisms with compliances, and a slow oracle for what they decide."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import jaxmbs as jm
from jaxmbs import elastic, planar, spatial


LINKS = ("AB", "CD", "EF", "GH", "KL", "MN")
STIFFNESS = 17e6


def with_compliances(model: jm.Model, compliances: Sequence[Any]) -> jm.Model:
    """The model with these in the place of its own."""
    return eqx.tree_at(lambda m: m.compliances, model, tuple(compliances))


def joint_points(model: jm.Model) -> dict[str, np.ndarray]:
    """Where each joint is in the reference configuration."""
    joints: Any = model.joints
    return {joint.name: np.asarray(joint.at[0]) for joint in joints}


def elastic_parallelogram() -> jm.Model:
    """Every link a rod, called by the joints at its ends."""
    model = jm.mechanisms.parallelogram()
    points = joint_points(model)
    rods = [
        elastic.Rod(n, f"link {n}", points=[points[n[0]], points[n[1]]], stiffness=STIFFNESS)
        for n in LINKS
    ]
    return with_compliances(model, rods)


def door(*compliances: Any, gravity: Any = (0.0, 0.0, -9.81)) -> jm.Model:
    """A door on two hinges one metre apart."""
    body = spatial.Body("door", mass=20.0, inertia=(4.0, 6.0, 2.0), position=(0.4, 0.0, 1.0))
    hinges = [
        spatial.Revolute(name, ("ground", "door"), at=(0.0, 0.0, z), axis=(0.0, 0.0, 1.0))
        for name, z in (("lower", 0.5), ("upper", 1.5))
    ]
    return jm.Model(
        "door", 3, bodies=[body], joints=hinges, compliances=compliances, gravity=gravity
    )


def three_cranks(stiffness: Sequence[float]) -> jm.Model:
    """A coupler on three parallel cranks in the plane, one too many, at an angle; cranks are
    rods."""
    x, tip = (0.0, 1.0, 2.2), np.array([0.3, 0.5])
    cranks = [
        planar.Body(f"crank {k}", mass=0.5, inertia=0.02, position=np.array([x[k], 0.0]) + tip / 2)
        for k in range(3)
    ]
    coupler = planar.Body("coupler", mass=3.0, inertia=1.0, position=(0.9 + tip[0], tip[1]))
    joints = []
    for k in range(3):
        foot = np.array([x[k], 0.0])
        joints += [
            planar.Revolute(f"G{k}", ("ground", f"crank {k}"), at=foot),
            planar.Revolute(f"P{k}", (f"crank {k}", "coupler"), at=foot + tip),
        ]
    rods = [
        elastic.Rod(
            f"rod {k}",
            f"crank {k}",
            points=[(x[k], 0.0), np.array([x[k], 0.0]) + tip],
            stiffness=stiffness[k],
        )
        for k in range(3)
    ]
    return jm.Model(
        "three cranks",
        2,
        bodies=[*cranks, coupler],
        joints=joints,
        compliances=rods,
        gravity=(0.0, -9.81),
    )


def cart(compliances: Mapping[str, float]) -> jm.Model:
    """A body on three wheels whose edges lie in one line: two of them hold what one would."""
    body = planar.Body("cart", mass=10.0, inertia=2.0, position=(0.0, 0.0))
    wheels = [
        planar.KnifeEdge(name, "cart", at=at, direction=(1.0, 0.0))
        for name, at in (("front", (0.0, 0.6)), ("middle", (0.0, 0.0)), ("back", (0.0, -0.4)))
    ]
    soft = [
        elastic.JointCompliance(f"{name} soft", name, compliance=(0.0, value))
        for name, value in compliances.items()
    ]
    return jm.Model("cart", 2, bodies=[body], joints=wheels, compliances=soft)


def raft(count: int) -> jm.Model:
    """A plate on many legs: itself one compliance with more joints than a hub has."""
    rng = np.random.default_rng(5)
    plate = spatial.Body("plate", mass=5.0, inertia=(0.4, 0.5, 0.8), position=(0.0, 0.0, 1.0))
    legs, joints, rods = [], [], []
    for k in range(count):
        angle = 2 * np.pi * k / count
        top = np.array([np.cos(angle), np.sin(angle), 1.0])
        foot = top + np.array([*rng.normal(scale=0.3, size=2), -1.0])
        legs.append(
            spatial.Body(f"leg {k}", mass=0.3, inertia=(0.1, 0.1, 0.1), position=(top + foot) / 2)
        )
        joints.append(spatial.Spherical(f"F{k}", ("ground", f"leg {k}"), at=foot))
        joints.append(spatial.Spherical(f"T{k}", (f"leg {k}", "plate"), at=top))
        rods.append(
            elastic.Rod(f"rod {k}", f"leg {k}", points=[foot, top], stiffness=1e6 * (1 + k % 3))
        )
    across = elastic.Rod(
        "across", "plate", points=[(-1.0, 0.0, 1.0), (1.0, 0.0, 1.0)], stiffness=4e5, misfit=1e-4
    )
    return jm.Model(
        "raft",
        3,
        bodies=[*legs, plate],
        joints=joints,
        compliances=[*rods, across],
        gravity=(1.0, 2.0, -9.81),
    )


def least_strain(system: Any, q: Any, v: Any, t: float = 0.0) -> np.ndarray:
    """Multipliers by dense linear algebra: those of one motion, and of all that carry the same load
    the ones that make 1/2 lambda^T K lambda - lambda^T delta least; of these the shortest in rows
    of unit length."""
    C = np.asarray(system.constraint_matrix(q, v, t))
    D = np.asarray(system.deformation_matrix(q, v, t))
    elasticity = system.elasticity(q, v, t)
    M = np.asarray(system.mass_matrix(q, t))
    force = np.asarray(system.force(q, v, t))
    half = np.linalg.solve(np.linalg.cholesky(M), C.T).T
    length = np.sqrt(np.sum(half**2, axis=1))
    J = half / length[:, None]
    right = (
        C @ np.linalg.solve(M, force) - np.asarray(system.acceleration_offset(q, v, t))
    ) / length
    u, s, _ = np.linalg.svd(J)
    rank = int(np.sum(s > 1e-9 * s[0]))
    along, null = u[:, :rank], u[:, rank:]
    carrying = along @ ((along.T @ right) / s[:rank] ** 2)
    root = D * np.sqrt(np.asarray(elasticity.compliance))[None] / length[:, None]
    pushed = np.asarray(elasticity.compliance * elasticity.load)
    gap = D @ (np.asarray(elasticity.misfit) + pushed) / length
    # The strain as a least-squares problem in what the null space leaves open.
    left = null.T @ (gap - root @ (root.T @ carrying))
    pushed = null.T @ root
    z = np.linalg.lstsq(pushed @ pushed.T, left, rcond=1e-11)[0]
    return (carrying + null @ z) / length


@eqx.filter_jit
def resolved(system: Any, compliance: Any, misfit: Any, q: Any, v: Any) -> Any:
    """What `ElasticResolution` says with other numbers of the compliances, and D^T lambda."""
    equations = system.equations(q, v, 0.0)
    equations = eqx.tree_at(
        lambda e: (e.elasticity.compliance, e.elasticity.misfit), equations, (compliance, misfit)
    )
    found = jm.formulations.ElasticResolution().solve(equations)
    return found, system.deformation_matrix(q, v, 0.0).T @ found.multipliers


def numbers(system: Any) -> tuple[Any, Any]:
    """Compliance and misfit of all deformations."""
    found = system.elasticity(system.reference_q, system.initial_v, 0.0)
    return jnp.asarray(found.compliance), jnp.asarray(found.misfit)
