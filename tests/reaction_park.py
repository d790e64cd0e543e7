"""One system for each dimension that shows all reactions, since compiling is all that costs.

Every type of joint on every pair of three bodies, which are far from closed, and beside them
mechanisms in motion, whose multipliers are known up to what does not change the motion.
"""

import copy
import functools
import tomllib

import jax.numpy as jnp
import numpy as np
import oracle
import oracle_reactions as newton
import random_mechanisms
from helpers import configuration_of, Draw, JOINTS, model_of, plain

import jaxmbs as jm
from jaxmbs.io import model_from_tables, write_model
from jaxmbs.mechanisms._parallelogram import parallelogram


DRIVEN = {
    2: (("revolute0", "rotation"), ("translational1", "translation")),
    3: (
        ("revolute0", "rotation"),
        ("cylindrical1", "rotation"),
        ("cylindrical2", "translation"),
        ("translational0", "translation"),
    ),
}
# Constraints of the plane that are functions of a user, which the oracle does not know.
FUNCTIONS = ("geometric", "velocity")
# Rows of relative rotations, which the oracle knows where axes are parallel, or nothing is turned.
TURNED = ("fixed", "translational", "screw", "driver")
PENDULUM = {
    "body": [{"name": "bob", "mass": 2.0, "inertia": 0.3, "position": [0.3, -0.4]}],
    "joint": [{"name": "pivot", "type": "revolute", "bodies": ["ground", "bob"], "at": [0.0, 0.0]}],
}
RANDOM = {
    2: ("planetary-with-two-planets", "truck-with-two-axles", "doubled-weld"),
    3: (
        "cart-with-three-wheels",
        "cardan-shaft",
        "screw-in-sleeve",
        "door-with-sleeve",
        "pfaffian-echo-in-space",
        "carriage-on-two-rods",
    ),
}
BUILT_IN = {
    2: ("robot", "pendulum", "crank"),
    3: ("door", "table", "bennett", "parallelogram"),
}


def driver(name, joint, coordinate, offset, rate):
    motion = {"type": "linear", "offset": offset, "rate": rate}
    return {"name": name, "joint": joint, "coordinate": coordinate, "motion": motion}


def table_of(model):
    return tomllib.loads(write_model(model))


def mechanism(dimension, name):
    """Its table, closed at time 0 or nearly so."""
    if name in RANDOM[dimension]:
        drawn = next(s for s in random_mechanisms.STRUCTURES if s.name == name)
        table = drawn(np.random.default_rng(1))
        # A speed that is known without the package.
        for entry in table.get("driver", []):
            entry["motion"] = {"type": "linear", "offset": 0.0, "rate": 0.2}
        return table
    if name == "pendulum":
        return PENDULUM
    if name == "robot":
        table = table_of(jm.mechanisms.get("mobile-robot"))
        return {**table, "driver": [driver("steering", "H", "translation", 0.025, 0.1)]}
    if name == "crank":
        # Held at rest, against the weight of crank, rod and slider.
        table = table_of(jm.mechanisms.get("slider-crank"))
        return {**table, "driver": [driver("stop", "A", "rotation", 0.0, 0.0)]}
    if name == "parallelogram":
        return table_of(parallelogram(0.4))
    return table_of(jm.mechanisms.get(name))


def renamed(table, prefix):
    """The same tables with a prefix to every name."""
    changed = copy.deepcopy({k: table.get(k, []) for k in ("body", "joint", "driver", "force")})
    for entry in (x for entries in changed.values() for x in entries):
        for key in {"name", "body", "joint", "carrier"} & set(entry):
            entry[key] = entry[key] if entry[key] == "ground" else f"{prefix} {entry[key]}"
        if "bodies" in entry:
            entry["bodies"] = [b if b == "ground" else f"{prefix} {b}" for b in entry["bodies"]]
    return changed


class Park:
    """The system, four states of it, and their reactions.

    `table`: all of it that the oracle knows. Bodies a, b and c, which only single joints hold,
    are elsewhere in each state, and their multipliers are random; the mechanisms stay, with the
    multipliers of their motion, with two other ones of the same motion, and once more with the
    first.
    """

    def __init__(self, dimension):
        self.dimension, self.rng = dimension, np.random.default_rng(5)
        self.table, self.joints, model = self._built()
        self.system = model.system()
        self.rows = self.system.structure.row_names
        self.loose = np.arange(self.system.structure.nv) < 3 * (3 if dimension == 2 else 6)
        closed = self._closed()
        self.q = [newton.advanced(closed, self._step(s), dimension) for s in range(4)]
        self.poses = [configuration_of(self.table, q) for q in self.q]
        self.typed = [newton.HandTyped(self._table_of(s), self.poses[s], 0.0) for s in range(4)]
        speed = self._consistent(np.where(self.loose, 0.0, self.rng.normal(size=len(self.loose))))
        self.v = [np.where(self.loose, self.rng.normal(size=speed.shape), speed) for _ in range(4)]
        self.multipliers = self.rng.normal(size=(4, len(self.rows)))
        solved, self.null = self._solved(speed)
        moving = np.array([self._of_mechanism(row) for row in self.rows])
        others = self.null @ self.rng.normal(size=(self.null.shape[1], 2))
        self.scale = np.max(np.abs(solved[moving]))
        others = self.scale * others / np.max(np.abs(others), axis=0)
        zero = np.zeros(len(solved))
        choices = solved + np.stack([zero, *others.T, zero])
        self.multipliers = jnp.asarray(np.where(moving, choices, self.multipliers))
        arrays = (np.array(x) for x in (self.q, self.v, self.multipliers))
        states = zip(*map(jnp.asarray, arrays), strict=True)
        self.reports = [jm.reactions(self.system, q, v, 0.0, m) for q, v, m in states]
        self.wrenches = [wrenches_of(report) for report in self.reports]

    def _built(self):
        draw = Draw(3, self.dimension, 1.0, 0.0)
        # Constraints that are functions are the same in space as in the plane.
        cases = [
            c
            for c in JOINTS
            if c.dimension == self.dimension
            and (c.oracle or (c.dimension == 2 and c.type in FUNCTIONS))
        ]
        joints = [
            {"name": f"{case.type}{k}", "type": case.type, **case.keys(draw), **variant}
            for case in cases
            for k, variant in enumerate(case.variants)
        ]
        alone = {
            "name": "loose",
            "dimension": self.dimension,
            "body": [draw.body(name, turned=True) for name in "abc"],
            "driver": [
                driver(f"driver {joint}", joint, coordinate, 0.1, 0.3)
                for joint, coordinate in DRIVEN[self.dimension]
            ],
        }
        known = [joint for joint in joints if joint["type"] in oracle.JOINTS]
        names = (*BUILT_IN[self.dimension], *RANDOM[self.dimension])
        tables = [plain({**alone, "joint": known})]
        tables += [renamed(mechanism(self.dimension, name), name) for name in names]
        table = {"schema": 1, "name": "park", "dimension": self.dimension}
        table["gravity"] = [0.0, -9.81] if self.dimension == 2 else [0.0, 0.0, -9.81]
        for key in ("body", "joint", "driver", "force"):
            table[key] = [entry for part in tables for entry in part.get(key, [])]
        first = model_of({**alone, "joint": joints})
        rest = {key: table[key][len(tables[0].get(key, [])) :] for key in ("body", "joint")}
        rest["driver"] = table["driver"][len(alone["driver"]) :]
        second = model_from_tables({**table, **rest})
        model = jm.Model(
            "park",
            self.dimension,
            bodies=(*first.bodies, *second.bodies),
            joints=(*first.joints, *second.joints),
            drivers=(*first.drivers, *second.drivers),
            forces=second.forces,
            gravity=table["gravity"],
        )
        return table, {joint["name"]: joint for joint in joints}, model

    def _step(self, s):
        """None, or of all loose bodies by up to 1 m and 0.8 rad."""
        if s < 2:
            return np.zeros(self.loose.shape)
        step = self.rng.uniform(-1, 1, self.loose.shape) * self.loose
        turns = ~self.system.structure.length_columns
        return np.where(turns, 0.45 * step, step)

    def _table_of(self, s):
        """What the oracle knows of a state far from closed."""
        if self.dimension == 2 or s < 2:
            return self.table
        hidden = {n for n, joint in self.joints.items() if joint["type"] in TURNED}
        joints = [joint for joint in self.table["joint"] if joint["name"] not in hidden]
        drivers = [d for d in self.table["driver"] if d["joint"] not in self.joints]
        return {**self.table, "joint": joints, "driver": drivers}

    def _of_mechanism(self, row):
        return " " in row and not row.startswith("driver ")

    def _closed(self):
        """The reference, with the planar drivers at their values of time 0 (Newton)."""
        q = np.array(self.system.reference_q)
        for _ in range(8 if self.dimension == 2 else 0):
            poses = configuration_of(self.table, q)
            C, rows, geometric = oracle.constraint_matrix(self.table, poses)
            residual = oracle.position_residual(self.table, poses)
            kept = [self._of_mechanism(row) for row in np.array(rows)[geometric]]
            q = q - np.linalg.pinv(C[geometric][kept], rcond=1e-10) @ residual[kept]
        return q

    def _mechanisms(self, poses):
        """The oracle's rows of the mechanisms."""
        C, rows, _ = oracle.constraint_matrix(self.table, poses)
        kept = [k for k, row in enumerate(rows) if self._of_mechanism(row)]
        return C[kept], [rows[k] for k in kept]

    def _consistent(self, v):
        """The nearest velocity that the mechanisms allow: C v = rate of the drivers."""
        C, rows = self._mechanisms(self.poses[0])
        rates = {d["name"]: d["motion"]["rate"] for d in self.table["driver"]}
        wanted = np.array([rates.get(row, 0.0) for row in rows])
        return v - np.linalg.pinv(C, rcond=1e-10) @ (C @ v - wanted)

    def _solved(self, v):
        """Multipliers of the mechanisms in the motion v, and what may be added to them, in the
        system's rows. Gamma is minus the change of C along the motion with v held constant."""
        C, rows = self._mechanisms(self.poses[0])
        step = 1e-4
        weights = {1: 45.0, 2: -9.0, 3: 1.0}
        change = np.zeros(len(rows))
        for k, weight in weights.items():
            for sign in (1, -1):
                moved = newton.advanced(self.q[0], sign * k * step * v, self.dimension)
                there, _ = self._mechanisms(configuration_of(self.table, moved))
                change += sign * weight * (there @ v) / (60 * step)
        q, speed = jnp.asarray(self.q[0]), jnp.asarray(v)
        mass = np.asarray(self.system.mass_matrix(q))
        force = np.asarray(self.system.force(q, speed, 0.0))
        _, found = newton.solve(mass, C, force, -change)
        places = [self.rows.index(row) for row in rows]
        null = newton.left_null_space(C)
        multipliers, basis = np.zeros(len(self.rows)), np.zeros((len(self.rows), null.shape[1]))
        multipliers[places], basis[places] = found, null
        return multipliers, basis

    def of(self, name):
        """The joints and drivers of one mechanism."""
        return [x for x in self.system.structure.constraint_names if x.startswith(f"{name} ")]

    @functools.cached_property
    def acceleration(self):
        """M dv/dt = F - C^T lambda, for any multipliers."""
        found = []
        for q, v, report in zip(self.q, self.v, self.reports, strict=True):
            force = self.system.force(jnp.asarray(q), jnp.asarray(v), 0.0)
            force = force - sum(report.generalized(name) for name in report.names)
            mass = np.asarray(self.system.mass_matrix(jnp.asarray(q)))
            found.append(np.linalg.solve(mass, np.asarray(force)))
        return found


def wrenches_of(report, state=()):
    """All wrenches of one state (a number, where there are several) in the oracle's form, those on
    the ground too."""
    found = {}
    for body in dict.fromkeys(report.layout.bodies):
        on = report.on(body)
        for name in on.names:
            w = on.wrench(name)
            three = (np.asarray(x)[state] for x in (w.force, w.torque, w.point))
            found[name, body] = newton.wrench(body, *three)
    return found


park = functools.cache(Park)
