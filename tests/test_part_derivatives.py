"""Derivatives by the numbers of every part, and of random mechanisms whose redundancy is kept."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivative_checks import assert_slopes, check, difference, NODES, slopes
from helpers import (
    dot_product_gap,
    Draw,
    driven_table,
    joint_class,
    JOINTS,
    keeps_points_in_at,
    model_of,
    MOTIONS,
    plain,
)
from mechanism_builder import Builder
from random_mechanisms import STRUCTURES
from representatives import representatives, representatives_at

import jaxmbs as jm
from jaxmbs._linalg import correction, ProximalCholesky
from jaxmbs.design import Study
from jaxmbs.io import model_from_tables


# ---------------------------------------------------------------------------------------------
# Every part
# ---------------------------------------------------------------------------------------------


def on_its_own(table, prefix):
    """The tables of a model whose names begin with a prefix."""
    renamed = {"body": [], "joint": [], "driver": []}
    for kind, entries in renamed.items():
        for entry in table.get(kind, []):
            changed = entry | {"name": f"{prefix}-{entry['name']}"}
            for key in {"joint", "carrier"} & set(entry):
                changed[key] = f"{prefix}-{entry[key]}"
            if "bodies" in entry:
                own = [b if b == "ground" else f"{prefix}-{b}" for b in entry["bodies"]]
                changed["bodies"] = own
            if "markers" in entry:
                changed["markers"] = [(f"{prefix}-{b}", point) for b, point in entry["markers"]]
            entries.append(changed)
    return renamed


def one_joint(case):
    """A joint between two bodies, closed where it is drawn unless its axes say otherwise."""
    draw = Draw(7, case.dimension, 1.0, 0.0)
    variant = case.variants[-2] if "carrier" in case.variants[-2] else case.variants[0]
    names = sorted({*variant["bodies"], variant.get("carrier", "ground")} - {"ground"})
    joint = {"name": "J", "type": case.type, **case.keys(draw), **variant}
    if case.type == "distance":
        joint["length"] = 1.05 * float(np.linalg.norm(np.diff(joint["points"], axis=0)))
    elif "points" in joint and keeps_points_in_at(joint_class(joint, case.dimension)):
        joint["at"] = joint.pop("points")[0]
    bodies = [draw.body(name, turned=name != "a") for name in names]
    return plain({"dimension": case.dimension, "body": bodies, "joint": [joint]})


def one_driver_each(dimension, motions):
    """Every one of these motions, on a joint between bodies of its own."""
    table = driven_table(dimension, 11)
    found = []
    for joint, driver in zip(table["joint"], table["driver"], strict=True):
        if driver["motion"]["type"] not in motions:
            continue
        if "points" in joint:
            joint["at"] = joint.pop("points")[0]
        bodies = [body for body in table["body"] if body["name"] in joint["bodies"]]
        own = {"body": bodies, "joint": [joint], "driver": [driver]}
        found.append(on_its_own(own, driver["motion"]["type"]))
    return found


def sprung(dimension):
    """Bodies a and b, a hinge and every spring."""
    draw, pair = Draw(9, dimension, 1.0, 0.0), ("sprung-a", "sprung-b")
    bodies = [plain(draw.body(name, turned=True)) for name in pair]
    hinge = {"name": "hinge", "type": "revolute", "bodies": ["ground", pair[0]], "at": draw.point()}
    if dimension == 3:
        hinge["axis"] = draw.direction()
    forces = (
        jm.forces.SpringDamper(
            "spring", pair, points=draw.points(), stiffness=20.0, damping=0.5, length=0.8
        ),
        jm.forces.TorsionSpring("twist", "hinge", stiffness=3.0, damping=0.2, rest=0.1, torque=0.5),
        jm.forces.Bushing("rubber", pair, at=draw.point(), stiffness=[5.0] * (3 * dimension - 3)),
    )
    return {"body": bodies, "joint": [plain(hinge)], "driver": []}, forces


def park(dimension, joints, motions):
    """Each of these joints on bodies of its own, every driver of these motions, every spring."""
    cases = [c for c in JOINTS if c.dimension == dimension and c.type in joints]
    parts = [on_its_own(one_joint(case), case.type) for case in cases]
    parts += one_driver_each(dimension, motions)
    last, forces = sprung(dimension)
    parts.append(last)
    table = {"name": "park", "dimension": dimension}
    for kind in ("body", "joint", "driver"):
        table[kind] = [entry for part in parts for entry in part[kind]]
    model = model_of(table)
    return jm.Model(
        "park",
        dimension,
        bodies=model.bodies,
        joints=model.joints,
        drivers=model.drivers,
        forces=forces,
        gravity=[0.5, -9.81, 0.3][:dimension],
    )


SYMMETRIC = ("inertia", "stiffness", "damping")

# Follows from the values of a table.
DERIVED = ("slope_weights",)


def numbers(part, name):
    """Names of the single numbers of a part, also of each marker by itself; of symmetric
    matrices those on and above the diagonal."""
    for field, value in vars(part).items():
        if isinstance(value, eqx.Module):
            yield from numbers(value, f"{name}.{field}")
        elif eqx.is_inexact_array(value) and field not in DERIVED:
            for place in np.ndindex(value.shape):
                if field not in SYMMETRIC or list(place) == sorted(place):
                    yield ".".join(map(str, (name, field, *place)))


def names_of(model, masses):
    """Numbers of all joints, motions and forces, and, if they are wanted, those of bodies that have
    no state."""
    found = []
    for body in model.bodies if masses else ():
        found.append(f"bodies.{body.name}.mass")
        if body.name.startswith("sprung"):
            own = list(numbers(body, f"bodies.{body.name}"))
            found += [name for name in own if ".inertia" in name or ".position" in name]
        else:
            found.append(f"bodies.{body.name}.inertia{'' if model.dimension == 2 else '.xz'}")
    for joint in model.joints:
        found += numbers(joint, f"joints.{joint.name}")
    for force in model.forces:
        found += numbers(force, f"forces.{force.name}")
    for driver in model.drivers:
        found += numbers(driver, f"drivers.{driver.name}")
    return found


class Answer(eqx.Module):
    """dv/dt and multipliers, in motion where the parts are drawn: no row is redundant there."""

    study: Study

    def __call__(self, x):
        system, _, q, v, t = self.study.place_parts(x)
        found = jm.formulations.MinimumNorm().solve(system.equations(q, v, t))
        return jnp.concatenate([found.acceleration, found.multipliers])


# (Numbers of curves, whose third derivatives jump: `test_curves.py`.)
ALL = tuple(case.type for case in JOINTS if case.smooth)
# In space, beside the hinge and the springs: points, axes and a pitch.
SOME = ("screw",)


# Where masses are traced, programs are ready for parts that are light beside others, and larger; in
# the usual run those of the shaft below, in space, whose numbers are traced as well.
@pytest.mark.parametrize(
    ("dimension", "joints", "motions", "masses"),
    representatives_at(
        [
            (2, ALL, MOTIONS, False),
            (3, SOME, (), True),
            (2, ALL, MOTIONS, True),
            (3, ALL, MOTIONS, True),
        ],
        0,
    ),
    ids=["2-known-masses", "3-some", "2", "3"],
)
@pytest.mark.thorough
def test_every_number_of_every_part(dimension, joints, motions, masses):
    model = park(dimension, joints, motions)
    v = np.random.default_rng(3).normal(size=model.system().structure.nv)
    study = Study(model, names_of(model, masses), v=jnp.asarray(v), t=0.3)
    check(Answer(study), study.design, np.diag(np.maximum(np.abs(study.design), 0.3)))


# ---------------------------------------------------------------------------------------------
# Random mechanisms, along curves that keep their redundancy
# ---------------------------------------------------------------------------------------------


class Moved:
    """Draws the numbers of a seed, each moved by s along a direction of its own. The mechanism
    that is built of them is redundant for the reason of its structure, whatever they are."""

    def __init__(self, seed, s):
        self.drawn, self.directions = (np.random.default_rng([seed, k]) for k in (0, 1))
        self.s = 0.1 * s

    def uniform(self, low, high, size=None):
        drawn = self.drawn.uniform(low, high, size)
        return drawn + self.s * (high - low) * self.directions.normal(size=size)

    def normal(self, size=None):
        return self.drawn.normal(size=size) + self.s * self.directions.normal(size=size)

    def choice(self, options):
        return self.drawn.choice(options)


class Loads(eqx.Module):
    """v next to a given one, dv/dt and the multipliers that are unique, as drawn."""

    near: jax.Array
    unique: jax.Array

    def __call__(self, system):
        q, t = system.reference_q, jnp.zeros(())
        left = system.velocity_residual(q, self.near, t)
        v = self.near - correction(system.descriptor(q, self.near, t), left, ProximalCholesky())
        found = jm.formulations.MinimumNorm().solve(system.equations(q, v, t))
        loads = jnp.where(self.unique, found.multipliers, 0.0)
        return jnp.concatenate([v, found.acceleration, loads])


def left_null_space(system):
    """Dense, of rows of unit length, linear columns times a length."""
    structure = system.structure
    matrix = np.asarray(
        system.constraint_matrix(system.reference_q, jnp.zeros(structure.nv), jnp.zeros(()))
    )
    unit = np.where(structure.length_columns, float(system.characteristic_length()), 1.0)
    matrix = matrix * unit
    matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    left, values, _ = np.linalg.svd(matrix)
    return left[:, int(np.sum(values > 1e-9 * values[0])) :]


def condition_number(system):
    """Of C M^-1 C^T with unit diagonal, null space left out."""
    structure, q = system.structure, system.reference_q
    matrix = system.constraint_matrix(q, jnp.zeros(structure.nv), jnp.zeros(()))
    root = np.linalg.cholesky(np.asarray(system.mass_matrix(q)))
    scaled = np.linalg.solve(root, np.asarray(matrix).T).T
    scaled = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    values = np.linalg.svd(scaled, compute_uv=False)
    return (values[0] / np.min(values[values > 1e-9 * values[0]])) ** 2


# One in the plane, with knife edges, and one in space, whose redundancy is that of axes.
REDUNDANT = ("truck-with-two-axles", "cardan-shaft")


@pytest.mark.parametrize("name", representatives(REDUNDANT, "cardan-shaft"))
@pytest.mark.thorough
def test_random_redundant_mechanisms(name):
    structure = next(s for s in STRUCTURES if s.name == name)

    def drawn(seed, s):
        builder = Builder(Moved(seed, s), name, structure.dimension)
        structure.build(builder)
        return model_from_tables(builder.model).system()

    rng, step = np.random.default_rng(0), 2e-3
    for seed in range(5):
        system = drawn(seed, 0.0)
        null_space = left_null_space(system)
        assert null_space.shape[1] == structure.redundancy
        unique = np.linalg.norm(null_space, axis=1) < 1e-6
        function = Loads(jnp.asarray(rng.normal(size=system.structure.nv)), jnp.asarray(unique))
        nearby = [drawn(seed, n * step) for n in NODES]
        arrays = [eqx.filter(x, eqx.is_inexact_array) for x in nearby]
        direction = jax.tree.map(lambda *x: difference(x, step), *arrays)
        weight = jnp.asarray(rng.normal(size=2 * system.structure.nv + len(unique)))
        found = slopes(function, system, direction, weight)
        gap = dot_product_gap(found.pushed, found.pulled, direction, weight)
        # Each rounding in the derivative of a pseudoinverse is multiplied by its square.
        allowed = max(1e-10, 4 * np.finfo(float).eps * condition_number(system) ** 2)
        assert gap <= allowed, f"seed {seed}: forward and reverse differ by {gap:.1e}"
        ends = [slopes(function, x, direction, weight).value for x in nearby]
        expected = np.asarray(difference(ends, step))
        size = 1e-3 * np.max(np.abs(np.asarray(found.value)))
        assert_slopes(
            np.asarray(found.pushed)[None],
            expected[None],
            np.maximum(size, np.max(np.abs(expected))),
        )
