"""Every joint and every driver: rows, derivatives, the oracle, zero rotation and full turns."""

import equinox as eqx
import helpers
import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from helpers import (
    COORDINATES,
    driven_table,
    joint_class,
    JOINTS,
    keeps_points_in_at,
    model_of,
    MOTION_CLASSES,
    MOTIONS,
    states_of,
)
from representatives import representatives, representatives_at
from scipy.spatial.transform import Rotation

import jaxmbs
from jaxmbs import Driver, motions, planar, spatial
from jaxmbs._constraints import (
    _curves,
    _gears,
    _primitives,
    _ropes,
    _spatial_gears,
    AbstractJoint,
    AbstractMotion,
    AbstractPrimitive,
    RowKind,
)
from jaxmbs._geometry import PlanarFrame, SpatialFrame


joints = pytest.mark.parametrize("case", JOINTS, ids=str)
dimensions = pytest.mark.parametrize("dimension", [2, 3])

# Each is a program of its own. In the usual run `test_reactions.py` compares the rows of all others
# that the oracle knows, in one program.
USUAL = {
    *("revolute-2d", "distance-2d", "gear-2d", "knife_edge-2d", "velocity-2d"),
    *("revolute-3d", "fixed-3d", "universal-3d", "screw-3d"),
    *("coupling-3d", "rolling_disk-3d", "geometric-3d"),
}


def _of_usual_run(cases):
    own = [k for k, case in enumerate(cases) if str(case) in USUAL]
    return pytest.mark.parametrize("case", representatives_at(cases, *own), ids=str)


usual_joints = _of_usual_run([case for case in JOINTS if case.smooth])
compared = _of_usual_run([case for case in JOINTS if case.oracle])


# (size, origin) in m: of the order of one, in millimetres, in kilometres, far from the origin.
PLACES = ((1.0, 0.0), (1e-3, 0.0), (1e3, 0.0), (1.0, 1e3))
# Joints at one point of both bodies.
PLACED = [
    case
    for case in JOINTS
    if "points" in (table := case.table(0)["joint"][0])
    and keeps_points_in_at(joint_class(table, case.dimension))
]

# The oracle's rows of relative rotations and of screws hold for bodies turned alike only.
ALIKE = [case for case in JOINTS if ".rx" in case.rows or ".s" in case.rows.split()]


def members(module, base):
    """Concrete classes of a module that derive from `base`."""
    found = {x for x in vars(module).values() if isinstance(x, type) and issubclass(x, base)}
    return {x for x in found if not x.__name__.startswith("Abstract")}


def place(origin, case):
    """A rolling disk stays over its plane z = 0; everything else may be anywhere."""
    return origin * np.array([1.0, 1.0, 0.0]) if case.type == "rolling_disk" else origin


class TestLists:
    @dimensions
    def test_every_joint_is_listed(self, dimension):
        namespace = {2: planar, 3: spatial}[dimension]
        listed = {
            type(joint)
            for case in JOINTS
            if case.dimension == dimension
            for joint in model_of(case.table(0)).joints
        }
        # Tendons have no rows (`test_tendons.py`).
        assert listed == {x for x in members(namespace, AbstractJoint) if x.constrains}

    def test_every_joint_that_the_oracle_knows_is_compared(self):
        compared = {case.type for case in JOINTS if case.oracle}
        assert compared == set(oracle.JOINTS) - {"prismatic"}

    def test_every_primitive_is_used(self):
        tables = [case.table(0) for case in JOINTS] + [driven_table(2, 0), driven_table(3, 0)]
        groups = [g for table in tables for g in model_of(table).system().constraint_groups]
        used = {type(p) for group in groups for p in group.primitives}
        modules = (_curves, _gears, _primitives, _ropes, _spatial_gears)
        assert used == {x for own in modules for x in members(own, AbstractPrimitive)}

    @dimensions
    def test_every_coordinate_is_driven(self, dimension):
        tables = [case.table(0) for case in JOINTS if case.dimension == dimension]
        offered = {
            (joint.kind, coordinate)
            for table in tables
            for joint in model_of(table).joints
            for coordinate in joint.coordinates()
        }
        assert offered == set(COORDINATES[dimension])

    def test_every_motion_drives(self):
        assert set(MOTION_CLASSES.values()) == members(motions, AbstractMotion)
        assert set(MOTIONS) == set(MOTION_CLASSES)


class TestJoints:
    @joints
    def test_row_names(self, case, seed):
        assert model_of(case.table(seed)).system().structure.row_names == case.row_names()

    @usual_joints
    def test_derivatives(self, case, seed, rng):
        for size, origin in PLACES:
            model = model_of(case.table(seed, size, place(origin, case)))
            system = model.system()
            states = states_of(system, rng, size, case.turn)
            helpers.assert_derivatives(system, states, size, periods=periods_of(model))

    @compared
    def test_rows_are_those_of_the_oracle(self, case, seed, rng):
        for size, origin in PLACES:
            table = case.table(seed, size, place(origin, case))
            system = model_of(table).system()
            states = states_of(system, rng, size, case.turn)
            # Positions are rounded to eps times the distance from the origin.
            tolerance = 1e-14 * (10 + float(np.max(origin)) / size)
            # See the next test for bodies that have turned.
            compared = 2 if case in ALIKE else None
            assert_rows_of_oracle(system, table, states, size, tolerance, compared)

    @pytest.mark.parametrize("case", ALIKE, ids=str)
    def test_rows_of_bodies_turned_alike_are_those_of_the_oracle(self, case, seed, rng):
        table = case.table(seed)
        system = model_of(table).system()
        _, v, t = states_of(system, rng, 1.0, case.turn)
        q = jnp.stack([turned_alike(system, rng) for _ in t])
        # The ground has not turned with the others: its joints are left out.
        table["joint"] = table["joint"][:1]
        assert_rows_of_oracle(system, table, (q, v, t), 1.0, 1e-13)

    @pytest.mark.parametrize("case", PLACED, ids=str)
    def test_one_point_stands_for_both_bodies(self, case, seed):
        table = case.table(seed)
        point = table["joint"][0]["points"][0]
        for joint in table["joint"]:
            joint["points"] = [point, point]
        twice = model_of(table)
        for joint in table["joint"]:
            joint["at"] = joint.pop("points")[0]
        assert helpers.tree_allclose(model_of(table), twice)

    @joints
    def test_numbers_come_as_lists_or_arrays(self, case, seed):
        table = case.table(seed)
        from_lists = model_of(table)
        for joint in table["joint"]:
            for key in {"points", "axis", "axes", "at", "direction", "coefficients"} & set(joint):
                joint[key] = np.array(joint[key])
        assert helpers.tree_allclose(model_of(table), from_lists)

    @joints
    def test_rows_of_nonholonomic_joints_are_velocities(self, case, seed):
        geometric = model_of(case.table(seed)).system().structure.geometric
        velocity = {"knife_edge": "all", "pfaffian": "all", "velocity": "all"}
        expected = np.full(geometric.size, case.type not in velocity)
        if case.type == "rolling_disk":
            expected[:] = [False, False, True] * len(case.variants)
        assert np.array_equal(geometric, expected)


class TestDrivers:
    @pytest.mark.parametrize("dimension", representatives([2, 3], 3))
    def test_derivatives(self, dimension, seed, rng):
        for size, origin in PLACES:
            system = model_of(driven_table(dimension, seed, size, origin)).system()
            states = states_of(system, rng, size, helpers.HALF)
            helpers.assert_derivatives(system, states, size)

    @dimensions
    def test_rows_are_those_of_the_oracle(self, dimension, seed, rng):
        table = driven_table(dimension, seed)
        system = model_of(table).system()
        states = states_of(system, rng, 1.0, helpers.HALF)
        # The oracle's rows of spatial coordinates hold for bodies turned alike, so that the
        # two reference states remain; derivatives carry the comparison to all others.
        assert_rows_of_oracle(system, table, states, 1.0, 1e-13, 2 if dimension == 3 else None)

    @pytest.mark.parametrize(
        ("dimension", "word"),
        representatives(
            [(dimension, word) for dimension in (2, 3) for word in MOTIONS],
            *((3, word) for word in MOTIONS),
        ),
    )
    def test_every_motion_moves_every_coordinate(self, dimension, word, seed, rng):
        """The row is coordinate - motion(t): its derivatives in time are those of -motion."""
        motion = helpers.motion_of({"type": word, **MOTIONS[word](1.0)})
        for joint in joints_with_coordinates(dimension, seed):
            for coordinate, measure in joint.coordinates().items():
                primitive = Driver("D", joint.name, coordinate, motion).primitive(
                    joint.name, joint.coordinates()
                )
                frames = random_frames(dimension, rng)
                for t in (0.3, 0.7):
                    actual = time_derivatives(lambda s, p=primitive, f=frames: p.position(f, s), t)
                    expected = -np.array(time_derivatives(lambda s: motion(s)[None], t))
                    expected[0] += measure.excess(frames, jnp.asarray(0.0))
                    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-14)

    @pytest.mark.parametrize("pair", [("ground", "b"), ("b", "ground")])
    def test_rotation_is_followed_over_full_turns(self, pair, rng):
        axis = np.array([2.0, -1.0, 2.0]) / 3
        system = jaxmbs.MultibodySystem(
            [spatial_body("b", rng)],
            [spatial.Revolute("R", pair, (0.1, 0.2, 0.3), axis)],
            [Driver("D", "R", "rotation", motions.Linear(offset=0.2, rate=2.0))],
        )
        t = jnp.linspace(0.0, 3 * np.pi, 25)
        angle = (1.0 if pair[0] == "ground" else -1.0) * (0.2 + 2.0 * t)
        states = turned_about(system, axis, np.array([0.1, 0.2, 0.3]), angle, 2 * np.sign(angle[0]))
        # Rounding of an angle of 20 rad, and of its products with velocities of that order.
        assert_all_close(along_motion(system, *states, t), 0.0, 1e-13)
        late = along_motion(system, *states, t - 0.05)[0]
        assert_all_close(late[:, 5], 0.1, 1e-13)

    def test_planar_rotation_counts_turns(self):
        system = jaxmbs.MultibodySystem(
            [planar.Body("b", mass=1.0, inertia=1.0, position=(1.0, 0.0), angle=0.5)],
            [planar.Revolute("R", ("ground", "b"), (0.0, 0.0))],
            [Driver("D", "R", "rotation", motions.Linear(rate=2.0))],
        )
        t = jnp.linspace(0.0, 3 * np.pi, 13)
        q = jnp.stack([jnp.cos(2 * t), jnp.sin(2 * t), 0.5 + 2 * t], axis=1)
        residual = jax.vmap(system.position_residual)(q, t)
        assert_all_close(residual, 0.0, 1e-13)
        one_turn_more = q.at[:, 2].add(2 * np.pi)
        residual = jax.vmap(system.position_residual)(one_turn_more, t)
        assert_all_close(residual[:, 2], 2 * np.pi, 1e-13)


class TestScrew:
    @pytest.mark.parametrize("pair", [("ground", "b"), ("b", "ground")])
    @pytest.mark.parametrize("pitch", [0.3, -0.02, 0.0])
    def test_thread_is_followed_over_full_turns(self, pair, pitch, rng):
        axis, point = np.array([2.0, -1.0, 2.0]) / 3, np.array([0.1, 0.2, 0.3])
        system = jaxmbs.MultibodySystem(
            [spatial_body("b", rng)], [spatial.Screw("S", pair, point, axis, pitch)]
        )
        angle = jnp.linspace(-6 * np.pi, 6 * np.pi, 25)
        q, v, a = turned_about(system, axis, point, angle, 2.0)
        lead = jnp.asarray(pitch * axis / (2 * np.pi))
        q = q.at[:, :3].add(angle[:, None] * lead[None])
        v = v.at[:, :3].add(2.0 * lead[None])
        t = jnp.zeros_like(angle)
        assert_all_close(along_motion(system, q, v, a, t), 0.0, 1e-13)
        # Off the thread by less than half a pitch, whatever the number of turns.
        off = 0.1 * pitch if pitch else 0.02
        q = q.at[:, :3].add(off * jnp.asarray(axis)[None])
        sign = 1.0 if pair[0] == "ground" else -1.0
        residual = along_motion(system, q, v, a, t)[0]
        assert_all_close(residual[:, :4], 0.0, 1e-13)
        assert_all_close(residual[:, 4], sign * off, 1e-13)


def periods_of(model):
    """Periods of the residuals of its geometric rows: frames count neither teeth nor turns."""
    primitives = [p for joint in model.joints for p in joint.primitives()]
    geometric = [p for p in primitives if p.row_kind is RowKind.position]
    return 2 * jnp.concatenate([p.unambiguous() for p in geometric] or [jnp.zeros(0)])


def turned_alike(system, rng):
    """Coordinates of spatial bodies that moved anywhere, all turned by one rotation."""
    poses = np.array(system.reference_q).reshape(-1, 7)
    turn = Rotation.from_quat(rng.normal(size=4))
    for pose in poses:
        pose[:3] += rng.uniform(-1, 1, 3)
        pose[3:] = (turn * Rotation.from_quat(pose[3:], scalar_first=True)).as_quat(
            scalar_first=True
        )
    return jnp.asarray(poses.ravel())


def assert_rows_of_oracle(system, table, states, size, tolerance, compared=None):
    """C, C v and residuals of the first `compared` states, without units. Rows of the system
    that come after those of the table are left out."""
    q, v, t = states
    actual, residual = helpers.analytic(system, q, v, t, jnp.asarray(size))
    row, column = (np.asarray(x) for x in helpers.scales(system, size))
    for k in range(len(t) if compared is None else compared):
        at = helpers.configuration_of(table, q[k])
        matrix, names, geometric = oracle.constraint_matrix(table, at, float(t[k]))
        count = len(names)
        assert tuple(names) == system.structure.row_names[:count]
        assert np.array_equal(geometric, system.structure.geometric[:count])
        expected = matrix * column / row[:count, None]
        np.testing.assert_allclose(actual.matrix[k][:count], expected, rtol=0, atol=tolerance * 10)
        expected = oracle.position_residual(table, at, float(t[k])) / row[:count][geometric]
        actual_residual = residual[k][: np.sum(geometric)]
        np.testing.assert_allclose(actual_residual, expected, rtol=0, atol=tolerance * 10)
        # Drivers move on their own; all other rows are at rest where the bodies are.
        still = slice(0, count - len(table.get("driver", ())))
        expected = (matrix @ v[k])[still] / row[still]
        np.testing.assert_allclose(actual.rate[k][still], expected, rtol=0, atol=tolerance * 100)


def joints_with_coordinates(dimension, seed):
    cases = [case for case in JOINTS if case.dimension == dimension]
    tables = [case.table(seed) for case in cases]
    return [j for j in (model_of(table).joints[0] for table in tables) if j.coordinates()]


def random_frames(dimension, rng):
    """Two frames a metre and 0.4 rad apart, far from where an angle jumps by a turn."""
    if dimension == 2:
        return tuple(
            PlanarFrame(jnp.asarray(rng.normal(size=2)), jnp.asarray(rng.uniform(-0.2, 0.2)))
            for _ in range(2)
        )
    turns = Rotation.from_rotvec(rng.uniform(-0.2, 0.2, (2, 3))).as_matrix()
    return tuple(SpatialFrame(jnp.asarray(rng.normal(size=3)), jnp.asarray(r)) for r in turns)


def time_derivatives(function, t):
    """Value, first and second derivative in time."""
    one = jnp.ones(())

    def slope(s):
        return jax.jvp(function, (s,), (one,))

    value_and_rate, (_, second) = jax.jvp(slope, (jnp.asarray(t),), (one,))
    return [*value_and_rate, second]


def spatial_body(name, rng):
    return spatial.Body(
        name,
        mass=1.0,
        inertia=(1.0, 1.2, 1.4),
        position=rng.uniform(-1, 1, 3),
        orientation=rng.normal(size=4),
    )


def turned_about(system, axis, point, angle, rate):
    """q, v and dv/dt of a body that turns about a fixed axis, at each angle since the
    reference."""
    start = np.array(system.reference_q)
    turns = Rotation.from_rotvec(np.array(angle)[:, None] * axis[None])
    arm = turns.apply(start[:3] - point)
    rotation = turns * Rotation.from_quat(start[3:], scalar_first=True)
    spin = np.tile(rate * axis, (len(arm), 1))
    q = np.concatenate([point + arm, rotation.as_quat(scalar_first=True)], axis=1)
    v = np.concatenate([np.cross(spin, arm), rotation.inv().apply(spin)], axis=1)
    a = np.concatenate([np.cross(spin, np.cross(spin, arm)), np.zeros_like(arm)], axis=1)
    return jnp.asarray(q), jnp.asarray(v), jnp.asarray(a)


@eqx.filter_jit
def along_motion(system, q, v, a, t):
    """Phi, C v + b and C dv/dt - Gamma at each time; all vanish along an allowed motion."""

    def one(state):
        q, v, a, t = state
        matrix = system.constraint_matrix(q, v, t)
        acceleration = matrix @ a - system.acceleration_offset(q, v, t)
        return system.position_residual(q, t), system.velocity_residual(q, v, t), acceleration

    return jax.lax.map(one, (q, v, a, t))


def assert_all_close(tree, value, atol):
    for x in jax.tree.leaves(tree):
        np.testing.assert_allclose(x, value, rtol=0, atol=atol)


class TestRefusals:
    """One sentence that names the part, what was given, and what to do."""

    JOINTS = (
        (
            lambda: planar.Revolute("A", ("a", "a"), (0, 0)),
            r"bodies joins 'a' with itself; .* different bodies",
        ),
        (
            lambda: planar.Revolute("A", ("a",), (0, 0)),
            r"bodies must name 2 bodies, got \['a'\]\.",
        ),
        (
            lambda: planar.KnifeEdge("A", ("a", "b"), (0, 0), (1, 0)),
            r"bodies must name one body, got \['a', 'b'\]\.",
        ),
        (
            lambda: planar.Revolute("A", ("a", "b"), (0, 0, 0)),
            r"at must be a vector of 2 numbers, got",
        ),
        (
            lambda: spatial.Spherical("A", ("a", "b"), (0, 0)),
            r"at must be a vector of 3 numbers, got",
        ),
        (
            lambda: planar.Revolute("A", ("a", "b"), (0, np.inf)),
            r"at, entry 2 must be a finite number, got inf\.",
        ),
        (
            lambda: planar.Translational("A", ("a", "b"), (0, 0), (0, 0)),
            r"axis has zero length; give a vector along the direction meant\.",
        ),
        (
            lambda: spatial.Revolute("A", ("a", "b"), (0, 0, 0), (0, 0, 0)),
            r"axis has zero length; give a vector along the direction meant\.",
        ),
        (
            lambda: spatial.Universal("A", ("a", "b"), (0, 0, 0), ((1, 0, 0), (0, 0, 0))),
            r"axes, entry 2, has zero length",
        ),
        (
            lambda: planar.KnifeEdge("A", "a", (0, 0), (0, 0)),
            r"direction has zero length; give a vector along the direction meant\.",
        ),
        (
            lambda: spatial.RollingDisk("A", "a", axis=(0, 0, 2), radius=1.0),
            r"axis is vertical: the disk lies flat and has no single point of contact; tilt it\.",
        ),
        (
            lambda: spatial.RollingDisk("A", "a", axis=(1, 0, 0), radius=0.0),
            r"radius must be greater than zero, got 0\.",
        ),
        (
            lambda: spatial.Screw("A", ("a", "b"), (0, 0, 0), (0, 0, 1), np.nan),
            r"pitch must be a finite number, got nan\.",
        ),
        (
            lambda: planar.Distance("A", ("a", "b"), points=[(1, 2), (1, 2)]),
            r"the two points coincide, so the distance has no direction; use a revolute or",
        ),
        (
            lambda: planar.Distance("A", ("a", "b"), points=[(0, 0), (1, 0)], length=-1),
            r"length must be greater than zero, got -1\.",
        ),
        (
            lambda: planar.Gear("A", ("a", "b"), ratio=2.0, carrier="b"),
            r"carrier 'b' is one of the two geared bodies itself; name the body that carries",
        ),
        (
            lambda: planar.Gear("A", ("a", "b"), ratio=np.nan),
            r"ratio must be a finite number, got nan\.",
        ),
        (
            lambda: planar.Pfaffian("A", ("a", "ground"), coefficients=[1.0] * 6),
            r"bodies names the ground, which has no velocity; leave it out\.",
        ),
        (
            lambda: planar.Pfaffian("A", ("a",), coefficients=[[1.0, 2.0, 3.0], [1.0]]),
            r"coefficients must be one row of numbers, or several rows of equal length\.",
        ),
        (
            lambda: planar.Revolute("A,B", ("a", "b"), (0, 0)),
            r"the name 'A,B' holds ,; commas, full stops and quotes are kept for lists",
        ),
        (
            lambda: Driver("", "A", "rotation", motions.Linear(rate=1.0)),
            r"a driver needs a name, got ''\.",
        ),
    )

    @pytest.mark.parametrize(("make", "sentence"), JOINTS)
    def test_by_themselves(self, make, sentence):
        with pytest.raises(ValueError, match=sentence):
            make()
