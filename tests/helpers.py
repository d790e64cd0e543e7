"""What the tests share: derivative checks, models from tables, and the lists of all members.

The lists at the end decide what `parametrize` runs over: a new joint, motion or mechanism is
covered by one line there (and a test says so where the line is missing).
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from draw import Draw as Draw

import jaxmbs as jm
from jaxmbs import AbstractSystem, Driver, Model, motions, planar, spatial


# ---------------------------------------------------------------------------------------------
# Comparisons and derivatives
# ---------------------------------------------------------------------------------------------

# Seven-point central differences. Relative errors with the step h: h^6 times the seventh
# (eighth) derivative over 140 (560) from truncation, and about 2 eps / h (6 eps / h^2) from
# rounding: 1e-13 (1e-10) with the step below. Truncation is the larger one where a residual
# bends within a tenth of the mechanism's size, and is below 1e-7 then.
_NODES = np.arange(-3, 4)
_FIRST = np.array([-1 / 60, 3 / 20, -3 / 4, 0, 3 / 4, -3 / 20, 1 / 60])
_SECOND = np.array([1 / 90, -3 / 20, 3 / 2, -49 / 18, 3 / 2, -3 / 20, 1 / 90])
STEP = 4e-3
TOLERANCE = 1e-7


def tree_allclose(actual: Any, expected: Any, *, rtol: float = 0.0, atol: float = 0.0) -> bool:
    """Same structure, static parts, shapes and dtypes, and arrays that agree."""
    arrays, static = eqx.partition(actual, eqx.is_array)
    wanted, wanted_static = eqx.partition(expected, eqx.is_array)
    if jax.tree.structure(actual) != jax.tree.structure(expected):
        return False
    if jax.tree.leaves(static) != jax.tree.leaves(wanted_static):
        return False
    return all(
        x.shape == y.shape and x.dtype == y.dtype and np.allclose(x, y, rtol=rtol, atol=atol)
        for x, y in zip(jax.tree.leaves(arrays), jax.tree.leaves(wanted), strict=True)
    )


def first_difference(function: Callable[[Any], Any], step: float = STEP) -> Any:
    """d function(s) / ds at s = 0."""
    values = jax.vmap(function)(step * _NODES)
    return jax.tree.map(lambda x: jnp.tensordot(_FIRST, x, 1) / step, values)


def move(tree: Any, direction: Any, s: Any) -> Any:
    """tree + s direction on the arrays of `tree`; `direction` has the same arrays."""
    arrays, static = eqx.partition(tree, eqx.is_inexact_array)
    moved = jax.tree.map(lambda x, d: x + s * d, arrays, eqx.filter(direction, eqx.is_array))
    return eqx.combine(moved, static)


def random_direction(tree: Any, rng: np.random.Generator) -> Any:
    """Normally distributed numbers in the place of every inexact array of `tree`."""
    arrays = eqx.filter(tree, eqx.is_inexact_array)
    return jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), arrays)


@eqx.filter_jit
def forward_and_reverse(function: Callable[[Any], Any], x: Any, d: Any, w: Any) -> tuple[Any, Any]:
    """J d and J^T w of `function` at x."""
    arrays, static = eqx.partition(x, eqx.is_inexact_array)
    _, push = jax.linearize(lambda a: function(eqx.combine(a, static)), arrays)
    return push(d), jax.linear_transpose(push, arrays)(w)[0]


def dot_product_gap(pushed: Any, pulled: Any, d: Any, w: Any) -> float:
    """|<w, J d> - <J^T w, d>|, relative to |w| |J d|: rounding, if one transposes the other."""
    pairs = jax.tree.map(lambda a, b: jnp.sum(a * b), pulled, d)
    gap = w @ pushed - sum(jax.tree.leaves(pairs))
    return float(jnp.abs(gap) / (jnp.linalg.norm(w) * jnp.linalg.norm(pushed)))


class Derivatives(NamedTuple):
    """C, C v + b and -Gamma of all rows, without units."""

    matrix: Any
    rate: Any
    change: Any


# Both loop over states with `lax.map`: a batched trace costs several times an unbatched one, and
# compiling is all that these cost.


@eqx.filter_jit
def analytic(system: AbstractSystem, q: Any, v: Any, t: Any, size: Any) -> tuple[Derivatives, Any]:
    """What the system says at a batch of states (one leading axis), and the residuals of its
    geometric rows; lengths over `size`."""
    row, column = scales(system, size)

    def one(state):
        derivatives = Derivatives(
            system.constraint_matrix(*state) * column[None] / row[:, None],
            system.velocity_residual(*state) / row,
            -system.acceleration_offset(*state) / row,
        )
        q, _, t = state
        residual = system.position_residual(q, t)
        return derivatives, residual / row[system.structure.geometric_rows]

    return jax.lax.map(one, (q, v, t))


@eqx.filter_jit
def differences(
    system: AbstractSystem, q: Any, v: Any, t: Any, size: Any, periods: Any
) -> Derivatives:
    """The same from differences of residuals alone, those of geometric rows up to whole `periods`.

    Geometric rows: along the retraction, whose curve s -> retract(q, s v) is the motion with v
    held constant, and time. Velocity rows: their own value, and its differences in v and along
    the motion.
    """
    row, column = scales(system, size)
    nv = column.shape[0]
    geometric = system.structure.geometric
    # Each residual at the nodes along every column, and then along the motion.
    s = jnp.asarray(STEP * _NODES)
    moving = jnp.repeat(jnp.append(jnp.zeros(nv), 1.0), s.size)
    nodes = jnp.tile(s, nv + 1)
    columns = jnp.concatenate([jnp.diag(column), jnp.zeros((1, nv))])
    along_columns = jnp.repeat(columns, s.size, axis=0) * nodes[:, None]

    def one(state):
        q, v, t = state

        def position(node):
            s, moves, step = node
            return system.position_residual(system.retract(q, step + s * moves * v), t + s * moves)

        def velocity(node):
            s, moves, step = node
            moved = system.retract(q, s * moves * v)
            return system.velocity_residual(moved, v + step, t + s * moves)[
                np.flatnonzero(~geometric)
            ]

        def over_nodes(function):
            values = jax.lax.map(function, (nodes, moving, along_columns))
            return values.reshape(nv + 1, s.size, -1)

        positions = over_nodes(position)
        positions = _unwrapped(positions, periods[None, None])
        velocities = jnp.zeros((nv + 1, s.size, 0)) if all(geometric) else over_nodes(velocity)
        slope = [jnp.tensordot(_FIRST, x, (0, 1)) / STEP for x in (positions, velocities)]
        bend = jnp.tensordot(_SECOND, positions[-1], 1) / STEP**2
        join = _Join(geometric)
        return Derivatives(
            join(slope[0][:-1].T, slope[1][:-1].T) / row[:, None],
            join(slope[0][-1], velocities[-1, s.size // 2]) / row,
            join(bend, slope[1][-1]) / row,
        )

    return jax.lax.map(one, (q, v, t))


def _unwrapped(values: Any, period: Any) -> Any:
    """`values` (columns, nodes, rows) without the jumps from node to node by whole periods."""
    jumps = jnp.where(jnp.isfinite(period), jnp.round(jnp.diff(values, axis=1) / period), 0.0)
    wound = jnp.cumsum(jnp.pad(jumps, ((0, 0), (1, 0), (0, 0))), axis=1)
    return values - jnp.where(jnp.isfinite(period), period, 0.0) * wound


class _Join(NamedTuple):
    """Puts geometric and velocity rows in row order."""

    geometric: np.ndarray

    def __call__(self, positions: Any, velocities: Any) -> Any:
        order = np.argsort(np.argsort(~self.geometric, stable=True))
        return jnp.concatenate([positions, velocities])[order]


def scales(system: AbstractSystem, size: Any) -> tuple[Any, Any]:
    """Unit of each row and of each column: `size` for lengths, 1 for angles."""
    structure = system.structure
    return (
        structure.residual_scale(size),
        structure.column_scale(size),
    )


def assert_derivatives(
    system: AbstractSystem,
    states: tuple[Any, Any, Any],
    size: float,
    tolerance: float = TOLERANCE,
    periods: Any = None,
) -> None:
    """`analytic` and `differences` agree to `tolerance` (second differences: 10 times that),
    relative to the largest entry of the row where that exceeds 1. `periods`: of the residuals of
    geometric rows, if teeth or turns are not told apart."""
    q, v, t = states
    actual, _ = analytic(system, q, v, t, jnp.asarray(size))
    if periods is None:
        periods = jnp.full(len(system.structure.geometric_rows), jnp.inf)
    expected = differences(system, q, v, t, jnp.asarray(size), periods)
    names = system.structure.row_names
    for what, *pair in zip(Derivatives._fields, actual, expected, strict=True):
        x, y = (np.array(z).reshape(*z.shape[:2], -1) for z in pair)
        assert np.all(np.isfinite(x)), f"{what} is not finite"
        scale = np.maximum(1.0, np.max(np.abs(y), axis=-1, keepdims=True))
        gap = np.max(np.abs(x - y) / scale, axis=(0, 2))
        allowed = tolerance * (10 if what == "change" else 1)
        wrong = {n: f"{g:.1e}" for n, g in zip(names, gap, strict=True) if not g <= allowed}
        assert not wrong, f"{what} differs by more than {allowed:.0e} in {wrong}"


# ---------------------------------------------------------------------------------------------
# Models from tables, as a model file has them
# ---------------------------------------------------------------------------------------------

NAMESPACES = {2: planar, 3: spatial}
MOTION_CLASSES = {
    "linear": motions.Linear,
    "polynomial": motions.Polynomial,
    "sine": motions.Sine,
    "step": motions.Step,
    "table": motions.Table,
}


def joint_class(table: Mapping[str, Any], dimension: int) -> Any:
    """`point_on_line` is the word of `PointOnLine`."""
    word = "translational" if table["type"] == "prismatic" else str(table["type"])
    return getattr(NAMESPACES[dimension], "".join(part.capitalize() for part in word.split("_")))


def keeps_points_in_at(cls: Any) -> bool:
    """Are the `points` of the table of such a joint its argument `at`?"""
    return "at" in {field.name for field in dataclasses.fields(cls)}


def joint_of(table: Mapping[str, Any], dimension: int) -> Any:
    """A joint from its table (`io/REFERENCE.md`); user-written ones hold a function."""
    cls = joint_class(table, dimension)
    rest = {k: x for k, x in table.items() if k not in ("name", "type", "bodies")}
    if "function" in rest:
        return cls(table["name"], rest.pop("function"), rest.pop("markers"), **rest)
    if "points" in rest and keeps_points_in_at(cls):
        rest["at"] = rest.pop("points")
    return cls(table["name"], tuple(table["bodies"]), **rest)


def motion_of(table: Mapping[str, Any]) -> Any:
    """A motion from its table."""
    return MOTION_CLASSES[table["type"]](**{k: x for k, x in table.items() if k != "type"})


def model_of(table: Mapping[str, Any]) -> Model:
    """A model from its tables."""
    dimension = table["dimension"]
    return Model(
        table["name"],
        dimension,
        bodies=[NAMESPACES[dimension].Body(**body) for body in table["body"]],
        joints=[joint_of(joint, dimension) for joint in table.get("joint", ())],
        drivers=[
            Driver(d["name"], d["joint"], d["coordinate"], motion_of(d["motion"]))
            for d in table.get("driver", ())
        ],
        gravity=table.get("gravity"),
    )


def configuration_of(table: Mapping[str, Any], q: Any) -> dict[str, dict[str, Any]]:
    """Poses by body, as the oracle reads them, from the coordinates of `model_of(table)`."""
    q, width = np.asarray(q), 3 if table["dimension"] == 2 else 7
    poses = {}
    for k, body in enumerate(table["body"]):
        own = q[width * k : width * (k + 1)]
        turned = {"angle": own[2]} if width == 3 else {"orientation": own[3:]}
        poses[body["name"]] = {"position": own[: table["dimension"]], **turned}
    return poses


def plain(table: dict[str, Any]) -> dict[str, Any]:
    """A table with lists and floats for NumPy's, as a model file gives it."""

    def convert(x: Any) -> Any:
        return x.tolist() if isinstance(x, np.ndarray | np.generic) else x

    return jax.tree.map(convert, table)


def states_of(
    system: Any, rng: np.random.Generator, size: float, turn: float, count: int = 4
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """q, v, t: the reference at rest, the reference in motion, and `count` states far from it.

    Bodies move by about `size` (m) and turn by up to `turn` (rad).
    """
    lengths = system.structure.length_columns
    nv = lengths.size

    def step() -> np.ndarray:
        turns = rng.normal(size=nv)
        for k in range(0, nv, 3):
            turns[k : k + 3] *= turn * rng.uniform(0.3, 1.0) / np.linalg.norm(turns[k : k + 3])
        return np.where(lengths, size * rng.uniform(-1, 1, nv), turns)

    steps = jnp.asarray(np.stack([np.zeros(nv), np.zeros(nv), *(step() for _ in range(count))]))
    speeds = rng.normal(size=steps.shape) * np.where(lengths, size, 1.0)[None]
    speeds[0] = 0.0
    q = jax.vmap(system.retract, (None, 0))(system.reference_q, steps)
    return q, jnp.asarray(speeds), jnp.asarray(rng.uniform(0.2, 0.8, steps.shape[0]))


# ---------------------------------------------------------------------------------------------
# Every joint
# ---------------------------------------------------------------------------------------------


def _on(*bodies: str, **keys: Any) -> dict[str, Any]:
    return {"bodies": list(bodies), **keys}


# Between two moving bodies, with the ground in the first and with it in the second place.
_PAIRS = (_on("a", "b"), _on("ground", "b"), _on("a", "ground"))


@dataclass(frozen=True)
class JointCase:
    """One type of joint. `rows`: suffixes of its row names, "" for one row. `keys`: its table
    from random numbers. `variants`: the bodies that it is tried on, all in one model. `turn`:
    how far (rad) bodies may turn before its residual is not smooth any more. `oracle`: its
    rows are known to the oracle. `smooth`: false of splines, whose third derivatives jump, so that
    long differences do not show derivatives (`test_curves.py` takes short ones)."""

    type: str
    dimension: int
    rows: str
    keys: Callable[[Draw], dict[str, Any]]
    variants: tuple[dict[str, Any], ...] = _PAIRS
    turn: float = 2.5
    oracle: bool = True
    smooth: bool = True

    def __str__(self) -> str:
        return f"{self.type}-{self.dimension}d"

    def table(self, seed: int, size: float = 1.0, origin: float = 0.0) -> dict[str, Any]:
        """The model: joints J0, J1 ... of this type, each on its own variant of bodies."""
        draw = Draw(seed, self.dimension, size, origin)
        named = [name for v in self.variants for name in (*v["bodies"], v.get("carrier", ""))]
        bodies = sorted(set(named) - {"ground", ""})
        table = {
            "name": self.type,
            "dimension": self.dimension,
            "body": [draw.body(name, turned=name != "a") for name in bodies],
            "joint": [
                {"name": f"J{k}", "type": self.type, **self.keys(draw), **variant}
                for k, variant in enumerate(self.variants)
            ],
        }
        return plain(table)

    def row_names(self) -> tuple[str, ...]:
        """Names of all rows, from `io/REFERENCE.md`."""
        suffixes = self.rows.split() or [""]
        return tuple(f"J{k}{s}" for k in range(len(self.variants)) for s in suffixes)


class OnSphere(eqx.Module):
    """Distance from the second marker grows with time: a user's geometric constraint."""

    radius: jax.Array
    growth: jax.Array

    def __call__(self, frames, t):
        first, second = frames
        apart = first.origin - second.origin
        wanted = self.radius + self.growth * t
        return (apart @ apart - wanted**2) / (2 * self.radius)


class Pursuit(eqx.Module):
    """Speed of the first marker's body (nonlinear), and approach to the second's (affine)."""

    speed: jax.Array

    def __call__(self, frames, twists, t):
        first, second = frames
        towards = second.origin - first.origin
        own = twists[0].linear
        approach = own @ towards / self.speed - (1 + t) * self.speed
        return jnp.stack([own @ own / self.speed - self.speed * jnp.cos(t), approach])


def _sphere(draw: Draw) -> dict[str, Any]:
    function = OnSphere(jnp.asarray(draw.length()), jnp.asarray(draw.length()))
    points = draw.points()
    return {"function": function, "markers": [("a", points[0]), ("b", points[1])]}


def _pursuit(draw: Draw) -> dict[str, Any]:
    points = draw.points()
    return {
        "function": Pursuit(jnp.asarray(draw.length())),
        "markers": [("a", points[0]), ("b", points[1])],
        "rows": ("speed", "approach"),
    }


def _at(draw: Draw) -> dict[str, Any]:
    return {"points": draw.points()}


def _at_axis(draw: Draw) -> dict[str, Any]:
    return {"points": draw.points(), "axis": draw.direction()}


def _axes(draw: Draw) -> dict[str, Any]:
    return {"axes": np.stack([draw.direction(), draw.direction()])}


def _at_axes(draw: Draw) -> dict[str, Any]:
    return {"points": draw.points(), **_axes(draw)}


def _screw(draw: Draw) -> dict[str, Any]:
    # A pitch so long that no state of the test is near the boundary between two threads.
    return {**_at_axis(draw), "pitch": draw.length(12.0, 14.0)}


def _gear(draw: Draw) -> dict[str, Any]:
    return {"ratio": draw.number(-2.0, -0.5)}


def _pair(draw: Draw) -> dict[str, Any]:
    # Teeth so large that no state of the test is near the middle between two of them.
    return {"points": draw.points(), "teeth": [3, 2], **_flank(draw)}


def _flank(draw: Draw) -> dict[str, Any]:
    return {"pressure_angle": draw.number(0.2, 0.5), "flank": -1}


def _pair_in_space(draw: Draw) -> dict[str, Any]:
    return {**_pair(draw), "axis": draw.direction(), "helix_angle": draw.number(-0.5, 0.5)}


def _rack(draw: Draw) -> dict[str, Any]:
    return {"points": draw.points(), **_flank(draw)}


def _rack_in_space(draw: Draw) -> dict[str, Any]:
    return {**_rack(draw), "axis": draw.direction(), "helix_angle": draw.number(-0.5, 0.5)}


def _bevel(draw: Draw) -> dict[str, Any]:
    radius = {"apex": draw.point(), "radius": draw.length()}
    return {**_axes(draw), **radius, "teeth": [2, 3], **_flank(draw)}


def _worm(draw: Draw) -> dict[str, Any]:
    axis = draw.direction()
    across = np.cross(axis, draw.direction())
    lead = {"lead_angle": draw.number(0.3, 0.6), "teeth": [2, 3]}
    return {"points": draw.points(), "axes": np.stack([axis, across]), **lead, **_flank(draw)}


def _edge(draw: Draw) -> dict[str, Any]:
    return {"at": draw.point(), "direction": draw.direction()}


def _disk(draw: Draw) -> dict[str, Any]:
    tilt, heading = draw.number(-0.3, 0.3), draw.number(-3, 3)
    flat = np.array([np.cos(heading), np.sin(heading), np.tan(tilt)])
    return {"axis": flat * draw.number(0.5, 2.0), "radius": draw.length()}


def _coefficients(draw: Draw) -> dict[str, Any]:
    one = [1.0, 1.0, draw.size] if draw.dimension == 2 else [1.0] * 3 + [draw.size] * 3
    return {"coefficients": draw.rng.normal(size=(2, 2 * len(one))) * np.tile(one, 2)}


def _coupling(draw: Draw) -> dict[str, Any]:
    # An angle is far from half a turn away from what it should be.
    own = {"coefficients": [0.0, 0.01 / draw.size, 0.01 / draw.size**2]}
    measures = ["rotation", "translation"]
    return own | {"measures": measures, "points": draw.points(), "axes": _axes(draw)["axes"]}


def _oval(draw: Draw) -> np.ndarray:
    """Points of a convex outline, nearly a circle, so that few points have no nearest one."""
    angle = 2 * np.pi * np.arange(14) / 14
    radius = 3 * draw.size * (1 + 0.01 * np.cos(2 * angle + draw.number(-3, 3)))
    return draw.point() + radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _curve(draw: Draw) -> dict[str, Any]:
    if draw.dimension == 2:
        return {"at": draw.point(), "curve": _oval(draw), "closed": True}
    # A helix that begins and ends beyond whatever a body may reach.
    angle = np.linspace(-3.0, 3.0, 40)
    radius, rise = draw.length(0.1, 0.3), draw.length(2.8, 3.2)
    helix = [radius * np.cos(angle), radius * np.sin(angle), rise * angle]
    return {"at": draw.point(), "curve": draw.point() + np.stack(helix, axis=1)}


def _cam(draw: Draw) -> dict[str, Any]:
    own = {"at": draw.point(), "profile": _oval(draw)}
    followers = ({}, {"radius": draw.length(0.1, 0.5)}, {"face": draw.direction()})
    return own | followers[int(draw.rng.integers(3))]


def _way(draw: Draw) -> np.ndarray:
    """Three points so far apart that they stay so where bodies turn by 0.3 rad."""
    along = 6.0 * np.arange(-1, 2)[:, None] * np.eye(draw.dimension)[0]
    return np.stack([draw.point() for _ in range(3)]) + draw.size * along


def _rope(draw: Draw) -> dict[str, Any]:
    if draw.dimension == 3:
        return {"points": _way(draw)}
    sense = draw.rng.choice([-1.0, 1.0])
    return {"points": _way(draw), "radii": [0, draw.length(0.1, 0.3), 0], "senses": [0, sense, 0]}


def _belt(draw: Draw) -> dict[str, Any]:
    radii = [draw.length(0.1, 0.3), draw.length(0.1, 0.3)]
    return {"points": _way(draw)[:2], "radii": radii, "senses": draw.rng.choice([-1.0, 1.0], 2)}


# Residuals with a pole or a jump at half a turn of one body against the other.
HALF = 1.2

_CARRIED = (*_PAIRS, _on("a", "b", carrier="c"), _on("ground", "b", carrier="c"))
_ALONE = (_on("a"), _on("b"))
_MOVING = (_on("a", "b"), _on("b", "a"))
_WAYS = (_on("a", "b", "a"), _on("ground", "b", "a"), _on("a", "ground", "b"))

JOINTS: tuple[JointCase, ...] = (
    JointCase("revolute", 2, ".x .y", _at),
    JointCase("translational", 2, ".n .r", _at_axis),
    JointCase("fixed", 2, ".x .y .r", _at),
    JointCase("point_on_line", 2, "", _at_axis),
    JointCase("distance", 2, "", _at),
    JointCase(
        "gear",
        2,
        "",
        _gear,
        _CARRIED,
    ),
    JointCase("rope", 2, "", _rope, _WAYS, turn=0.3, oracle=False),
    JointCase(
        "belt",
        2,
        ".1 .2",
        _belt,
        (*_PAIRS, _on("a", "b", carrier="c"), _on("ground", "b", carrier="c")),
        turn=0.3,
        oracle=False,
    ),
    JointCase("gear_pair", 2, "", _pair, _CARRIED),
    JointCase("rack_and_pinion", 2, "", _rack, _CARRIED),
    JointCase("knife_edge", 2, "", _edge, _ALONE),
    JointCase("pfaffian", 2, ".1 .2", _coefficients, _MOVING),
    JointCase("geometric", 2, "", _sphere, _MOVING, oracle=False),
    JointCase("velocity", 2, ".speed .approach", _pursuit, _MOVING, oracle=False),
    JointCase("point_on_curve", 2, "", _curve, smooth=False),
    JointCase("cam", 2, "", _cam, smooth=False),
    JointCase("revolute", 3, ".x .y .z .a1 .a2", _at_axis),
    JointCase("translational", 3, ".n1 .n2 .rx .ry .rz", _at_axis, turn=HALF),
    JointCase("fixed", 3, ".x .y .z .rx .ry .rz", _at, turn=HALF),
    JointCase("spherical", 3, ".x .y .z", _at),
    JointCase("cylindrical", 3, ".n1 .n2 .a1 .a2", _at_axis),
    JointCase("universal", 3, ".x .y .z .a", _at_axes),
    JointCase("planar", 3, ".n .a1 .a2", _at_axis),
    JointCase("screw", 3, ".n1 .n2 .a1 .a2 .s", _screw, turn=HALF),
    JointCase("point_on_line", 3, ".n1 .n2", _at_axis),
    JointCase("point_on_curve", 3, ".n1 .n2", _curve, smooth=False),
    JointCase("point_on_plane", 3, "", _at_axis),
    JointCase("parallel_axes", 3, ".a1 .a2", _axes),
    JointCase("perpendicular_axes", 3, "", _axes),
    JointCase("distance", 3, "", _at),
    JointCase("rope", 3, "", _rope, _WAYS, turn=0.3, oracle=False),
    JointCase(
        "coupling",
        3,
        "",
        _coupling,
        (_on("a", "b", "b", "c"), _on("ground", "a", "a", "b"), _on("a", "b", "c", "ground")),
        turn=HALF,
        oracle=False,
    ),
    JointCase("gear_pair", 3, "", _pair_in_space, _CARRIED, turn=HALF, oracle=False),
    JointCase("bevel_pair", 3, "", _bevel, _CARRIED, turn=HALF, oracle=False),
    JointCase("worm_pair", 3, "", _worm, _CARRIED, turn=HALF, oracle=False),
    JointCase("rack_and_pinion", 3, "", _rack_in_space, _CARRIED, turn=HALF, oracle=False),
    JointCase("rolling_disk", 3, ".x .y .z", _disk, _ALONE, turn=1.0),
    JointCase("pfaffian", 3, ".1 .2", _coefficients, _MOVING),
    JointCase("geometric", 3, "", _sphere, _MOVING, oracle=False),
    JointCase("velocity", 3, ".speed .approach", _pursuit, _MOVING, oracle=False),
)


# ---------------------------------------------------------------------------------------------
# Every driver: all motions on all coordinates; every mechanism
# ---------------------------------------------------------------------------------------------

# Defined and smooth between t = 0 and 1, at most 0.5 for `scale` 1.
MOTIONS: dict[str, Callable[[float], dict[str, Any]]] = {
    "linear": lambda scale: {"offset": 0.1 * scale, "rate": 0.3 * scale},
    "polynomial": lambda scale: {
        "coefficients": scale * np.array([0.1, -0.2, 0.3, 0.1]),
    },
    "sine": lambda scale: {
        "offset": 0.1 * scale,
        "amplitude": 0.3 * scale,
        "frequency": 0.7,
        "phase": 0.4,
    },
    "table": lambda scale: {
        "times": [-1.0, 0.0, 0.9, 1.1, 2.0],
        "values": scale * np.array([0.2, 0.0, 0.4, 0.3, 0.1]),
    },
    "step": lambda scale: {"times": [-0.5, 1.5], "values": [0.1 * scale, 0.5 * scale]},
}

# (joint, coordinate) that a driver may prescribe, by dimension.
COORDINATES: dict[int, tuple[tuple[str, str], ...]] = {
    2: (("revolute", "rotation"), ("translational", "translation")),
    3: (
        ("revolute", "rotation"),
        ("cylindrical", "rotation"),
        ("translational", "translation"),
        ("cylindrical", "translation"),
    ),
}


def driven_table(
    dimension: int, seed: int, size: float = 1.0, origin: float = 0.0
) -> dict[str, Any]:
    """Every coordinate and every motion, once or more; joints on every pair of bodies."""
    draw = Draw(seed, dimension, size, origin)
    joints, drivers = [], []
    for k, (word, numbers) in enumerate(MOTIONS.items()):
        joint, coordinate = COORDINATES[dimension][k % len(COORDINATES[dimension])]
        scale = size if coordinate == "translation" else 1.0
        keys = _at(draw) if (joint, dimension) == ("revolute", 2) else _at_axis(draw)
        joints.append({"name": f"J{k}", "type": joint, **keys, **_PAIRS[k % len(_PAIRS)]})
        drivers.append(
            {
                "name": f"{word} {coordinate}",
                "joint": f"J{k}",
                "coordinate": coordinate,
                "motion": {"type": word, **numbers(scale)},
            }
        )
    table = {
        "name": "driven",
        "dimension": dimension,
        "body": [draw.body(name, turned=name != "a") for name in "ab"],
        "joint": joints,
        "driver": drivers,
    }
    return plain(table)


class Mechanism(NamedTuple):
    """A built-in mechanism: rows, columns, rank (MECHANISMS.md); can a model file hold it?"""

    name: str
    rows: int
    columns: int
    rank: int
    in_files: bool = True


MECHANISMS: tuple[Mechanism, ...] = (
    Mechanism("mobile-robot", 22, 21, 20),
    Mechanism("parallelogram", 36, 42, 35),
    Mechanism("elastic-parallelogram", 36, 42, 35),
    Mechanism("slider-crank", 8, 9, 8),
    Mechanism("driven-slider-crank", 9, 9, 9),
    Mechanism("door", 10, 6, 5),
    Mechanism("bennett", 20, 18, 17),
    Mechanism("sarrus", 30, 30, 29),
    Mechanism("three-crank-parallelogram", 30, 24, 23),
    Mechanism("table", 7, 6, 6),
    Mechanism("whipple-bicycle", 21, 24, 21),
    Mechanism("spiral", 2, 2, 2, in_files=False),
    Mechanism("swarm", 10, 10, 10, in_files=False),
    Mechanism("flexible-joint-manipulator", 1, 4, 1, in_files=False),
    Mechanism("four-bar-chain", 26, 27, 26),
    Mechanism("four-bar-chain-spatial", 65, 54, 53),
)


def everything_public() -> dict[str, Any]:
    """The names of the root and of the namespaces of formulations, criteria, runs, sweeps, results
    and constraints that are functions."""
    spaces = (jm, jm.formulations, jm.criteria, jm.runs, jm.sweeps, jm.results)
    found = {name: getattr(space, name) for space in spaces for name in dir(space)}
    written = {n: x for n, x in vars(jm.generalized).items() if n.endswith("Constraint")}
    return {name: x for name, x in (found | written).items() if not name.startswith("_")}
