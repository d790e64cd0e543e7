"""Rows that depend on each other and ask for a motion: velocities that they allow are found from
rest to rounding, however many there are, and are those of dense algebra; kinematics follows them,
assembly closes them; what contradicts itself is refused by name.

Bodies with more than eight joints, as a carrier or a platform has, are eliminated after their
joints: the carrier of a planetary gear, which holds more rows than it needs, is one from three
planets on.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives

import jaxmbs as jm
from jaxmbs import motions, planar, spatial


class _Speed(eqx.Module):
    """A multiple of the speed along x, which is to be 2 m/s and `more`."""

    factor: jax.Array
    more: jax.Array

    def __call__(self, frames, twists, t):
        del frames, t
        return (self.factor * (twists[0].linear[0] - 2.0 - self.more))[None]


def _wheel(name: str, at: tuple[float, float], mass: float = 1.0) -> planar.Body:
    return planar.Body(name, mass=mass, inertia=0.5 * mass, position=at)


def _driver(joint: str, rate: float = 1.0) -> jm.Driver:
    return jm.Driver(f"drive of {joint}", joint, "rotation", motion=motions.Linear(rate=rate))


def planets(count: int, ratios: tuple[float, ...] = ()) -> jm.MultibodySystem:
    """Sun, carrier, ring (the ground) and planets, the sun driven. `ratios`: of the last planets'
    gears with the ring, in the place of 3."""
    return stages(count, 1, ratios)


def stages(count: int, many: int, ratios: tuple[float, ...] = ()) -> jm.MultibodySystem:
    """Planetary gears one behind the other: each sun is on the carrier before."""
    bodies, joints = [_wheel("sun", (0.0, 0.0))], [planar.Revolute("A", ("ground", "sun"), (0, 0))]
    usual = [3.0] * (count - len(ratios))
    sun = "sun"
    for stage in range(many):
        carrier = f"carrier {stage}"
        bodies.append(_wheel(carrier, (0.0, 0.0), 2.0))
        joints.append(planar.Revolute(f"{carrier} bearing", ("ground", carrier), (0, 0)))
        for k, ratio in enumerate([*usual, *ratios]):
            angle = 2 * np.pi * k / count + 0.3 * stage
            at, name = (2 * np.cos(angle), 2 * np.sin(angle)), f"planet {stage} {k}"
            bodies.append(_wheel(name, at, 0.3))
            joints += [
                planar.Revolute(f"{name} pin", (carrier, name), at),
                planar.Gear(f"{name} in", (sun, name), ratio=-1.0, carrier=carrier),
                planar.Gear(f"{name} out", (name, "ground"), ratio=ratio, carrier=carrier),
            ]
        sun = carrier
    return jm.MultibodySystem(bodies, joints, [_driver("A")])


def cranks(count: int) -> jm.MultibodySystem:
    """A parallelogram of many cranks, the first of which is driven."""
    arm = np.array([0.3, 0.5])
    bodies = [_wheel("coupler", (0.5 * count, 0.5))]
    joints = []
    for k in range(count):
        foot = np.array([1.1 * k, 0.0])
        bodies.append(_wheel(f"crank {k}", tuple(foot + arm / 2)))
        joints += [
            planar.Revolute(f"G{k}", ("ground", f"crank {k}"), foot),
            planar.Revolute(f"P{k}", (f"crank {k}", "coupler"), foot + arm),
        ]
    return jm.MultibodySystem(bodies, joints, [_driver("G0")])


def legs(count: int) -> jm.MultibodySystem:
    """A plate on parallel legs with hinges at both ends, in space; the first leg is driven."""
    arm = np.array([0.0, 0.3, 0.5])
    inertia = [0.1, 0.1, 0.1]
    bodies = [spatial.Body("plate", mass=3.0, inertia=inertia, position=[0.0, 0.3, 0.5])]
    joints: list = []
    for k in range(count):
        angle = 2 * np.pi * k / count
        foot = np.array([np.cos(angle), np.sin(angle), 0.0])
        name = f"leg {k}"
        bodies.append(spatial.Body(name, mass=0.5, inertia=inertia, position=foot + arm / 2))
        axis = [1.0, 0.0, 0.0]
        joints += [
            spatial.Revolute(f"foot {k}", ("ground", name), at=foot, axis=axis),
            spatial.Revolute(f"head {k}", (name, "plate"), at=foot + arm, axis=axis),
        ]
    return jm.MultibodySystem(bodies, joints, [_driver("foot 0")])


def belts(count: int, wrong: float = 1.0) -> jm.MultibodySystem:
    """Wheels of which each is coupled to every other, as by belts; the first is driven. `wrong`:
    times the ratio of the last one."""
    radii = 0.2 + 0.05 * np.arange(count)
    bodies, joints = [], []
    for k in range(count):
        at = [1.3 * k, 0.0, 0.0]
        bodies.append(spatial.Body(f"w{k}", mass=1.0, inertia=[0.1, 0.1, 0.1], position=at))
        joints.append(spatial.Revolute(f"R{k}", ("ground", f"w{k}"), at=at, axis=[0, 0, 1]))
    for k in range(count):
        for j in range(k):
            ratio = radii[j] / radii[k] * (wrong if (k, j) == (count - 1, count - 2) else 1.0)
            joints.append(
                spatial.Coupling(
                    f"belt {j}-{k}",
                    ("ground", f"w{k}", "ground", f"w{j}"),
                    measures=("rotation", "rotation"),
                    points=[[1.3 * k, 0, 0], [1.3 * j, 0, 0]],
                    axes=[[0, 0, 1], [0, 0, 1]],
                    coefficients=[0.0, ratio],
                )
            )
    return jm.MultibodySystem(bodies, joints, [_driver("R0")])


def blades(count: int, wrong: float = 0.0) -> jm.MultibodySystem:
    """A sled with many blades side by side, one behind each of two lines, pushed forward by a row
    that prescribes its speed several times over. `wrong`: what the last of these asks for more."""
    sled = planar.Body("sled", mass=2.0, inertia=1.0, position=(0.0, 0.0))
    joints = [
        planar.KnifeEdge(f"blade {k}", "sled", at=(0.0, 0.3 * k), direction=(1.0, 0.0))
        for k in range(count)
    ]
    joints += [
        planar.Velocity(
            f"speed {k}",
            _Speed(jnp.asarray(1.0 + k), jnp.asarray(wrong if k == count - 1 else 0.0)),
            [("sled", (0.0, 0.0))],
        )
        for k in range(count)
    ]
    return jm.MultibodySystem([sled], joints)


CASES: dict[str, Callable[[], jm.MultibodySystem]] = {
    **{f"{n} planets": lambda n=n: planets(n) for n in range(1, 9)},
    "two stages": lambda: stages(3, 2),
    "three stages": lambda: stages(4, 3),
    **{f"{n} cranks": lambda n=n: cranks(n) for n in (3, 8, 12)},
    **{f"{n} legs": lambda n=n: legs(n) for n in (3, 6, 10)},
    **{f"{n} belts": lambda n=n: belts(n) for n in (3, 6, 9)},
    **{f"{n} blades": lambda n=n: blades(n) for n in (2, 5, 12)},
}
TAKEN = ("5 planets", "12 cranks", "12 blades")
DRIVEN = [name for name in CASES if "blades" not in name]


def dense_velocities(system: jm.MultibodySystem) -> np.ndarray:
    """Those next to rest in the mass metric, and whether there are any."""
    q, rest = system.reference_q, jnp.zeros(system.structure.nv)
    mass = np.asarray(system.mass_matrix(q))
    rows = np.asarray(system.constraint_matrix(q, rest, 0.0))
    wanted = -np.asarray(system.velocity_residual(q, rest, 0.0))
    lower = np.linalg.inv(np.linalg.cholesky(mass))
    return lower.T @ (np.linalg.pinv(rows @ lower.T, rcond=1e-9) @ wanted)


@pytest.mark.parametrize("name", representatives(CASES, *TAKEN))
def test_velocities_from_rest(name: str):
    system = CASES[name]()
    found = jm.consistent_state(system, system.reference_q, jnp.zeros(system.structure.nv))
    left = np.asarray(system.velocity_residual(found.q, found.v, 0.0))
    speed = np.max(np.abs(np.asarray(found.v)))
    assert speed > 0.1
    assert np.max(np.abs(left)) <= 1e-12 * max(1.0, speed)
    np.testing.assert_allclose(found.v, dense_velocities(system), rtol=0, atol=1e-11 * speed)


@pytest.mark.parametrize("name", representatives(DRIVEN, "6 planets"))
def test_kinematics(name: str):
    system = CASES[name]()
    found = jm.kinematics(system, system.reference_q, np.linspace(0.0, 0.6, 4))
    speed = float(np.max(np.abs(np.asarray(found.v))))
    assert np.max(np.asarray(found.velocity_error)) <= 1e-12 * max(1.0, speed)
    np.testing.assert_allclose(found.v[0], dense_velocities(system), rtol=0, atol=1e-11 * speed)


@pytest.mark.parametrize("name", representatives(DRIVEN, "4 planets"))
def test_assembly(name: str):
    system = CASES[name]()
    change = 0.02 * np.random.default_rng(3).normal(size=system.structure.nv)
    found = jm.assemble(system, system.retract(system.reference_q, jnp.asarray(change)), 0.0)
    left = np.asarray(system.position_residual(found.q, 0.0))
    assert np.max(np.abs(left)) <= 1e-12


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["6 planets", "two stages", "12 cranks", "10 legs"])
def test_runs(name: str):
    """Driven from rest, which is led to what the drivers ask for."""
    system = CASES[name]()
    rest = jnp.zeros(system.structure.nv)
    motion = jm.simulate(system, system.reference_q, rest, 0.2, consistent=True, monitor=False)
    expected = jm.kinematics(system, system.reference_q, np.array([0.0, 0.2]))
    assert np.max(np.asarray(motion.velocity_error)) <= 1e-11
    np.testing.assert_allclose(motion.v[-1], expected.v[-1], rtol=0, atol=1e-7)


CONTRADICTIONS: dict[str, Callable[[], jm.MultibodySystem]] = {
    "a planet of another size": lambda: planets(5, (3.001,)),
    "a planet hardly of another size": lambda: planets(4, (3 + 1e-5,)),
    "one belt of another ratio": lambda: belts(5, 1.0002),
    "one speed of many": lambda: blades(9, 1e-5),
}


@pytest.mark.parametrize("name", representatives(CONTRADICTIONS, "a planet hardly of another size"))
def test_contradictions_are_refused(name: str):
    """By the row that is broken, and not by a larger tolerance."""
    system = CONTRADICTIONS[name]()
    expected = dense_velocities(system)
    left = np.asarray(system.velocity_residual(system.reference_q, jnp.asarray(expected), 0.0))
    assert np.max(np.abs(left)) > 1e-7, "they contradict each other"
    with pytest.raises(ValueError, match="no state nearby satisfies them"):
        jm.consistent_state(system, system.reference_q, jnp.zeros(system.structure.nv))
