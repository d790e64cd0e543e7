"""Split rods: bodies of two halves and a spring, against what is known without them."""

import functools
import itertools
from typing import Any, cast, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import jaxmbs as jm
from jaxmbs import elastic, forces, planar, spatial
from jaxmbs.elastic import SplitRod, StaticStart, SuddenStart


STIFFNESS, LENGTH, BETA = 17e6, np.sqrt(0.5), 5e-4
LOWER, UPPER = ("AB", "CD", "EF", "GH"), ("KL", "MN")
LARGEST = 2995.5  # N, the largest force of a link in a second (MECHANISMS.md section 2).


def split(names, model=None, *, start=None, damping_time=BETA) -> Any:
    """The parallelogram with these links split."""
    rods = [
        SplitRod(f"link {name}", stiffness=STIFFNESS, damping_time=damping_time) for name in names
    ]
    return elastic.split_rods(model or jm.mechanisms.parallelogram(), rods, start=start)


def axial_forces(model):
    """Of the springs where they are as long as in the reference configuration, compression
    positive (N)."""
    springs: list[Any] = [own for own in model.forces if isinstance(own, forces.SpringDamper)]
    return np.array([float(s.stiffness * (s.length - s.natural_length())) for s in springs])


def moving(theta, rate):
    """The parallelogram in its motion from rest, at another angle (rad) with its rate (rad/s).
    The links do not spin about their axes."""
    model = jm.mechanisms.parallelogram(theta)
    along = rate * np.array([np.cos(theta), -np.sin(theta), 0.0])
    up = {name: 1.0 if name in LOWER else -1.0 for name in (*LOWER, *UPPER)}
    bodies = []
    for body in model.bodies:
        name = body.name.removeprefix("link ")
        velocity, spin = 0.5 * along, np.zeros(3)
        if name in up:
            line = 0.5 * np.array([np.sin(theta), np.cos(theta), up[name]])
            spin = np.cross(line, 0.5 * along) / (line @ line)
            velocity = 0.25 * along
        bodies.append(
            eqx.tree_at(
                lambda b: (b.velocity, b.angular_velocity),
                body,
                (jnp.array(velocity), jnp.array(spin)),
            )
        )
    return eqx.tree_at(lambda m: m.bodies, model, tuple(bodies))


@functools.cache
def rigid_motion():
    """theta and its rate at times: 10.0455 theta'' = 1000 cos theta - 1500 sin theta."""

    def slope(t, y):
        return [y[1], (1000 * np.cos(y[0]) - 1500 * np.sin(y[0])) / 10.0455]

    return solve_ivp(slope, (0.0, 0.1), [0.0, 0.0], rtol=1e-11, atol=1e-12, dense_output=True).sol


class Run(NamedTuple):
    """A motion of a split model at times: the mean axial forces of its rods, compression positive
    (N), which the spring and the damper carry together; and its states."""

    axial: np.ndarray
    q: np.ndarray
    v: np.ndarray


@eqx.filter_jit
def slope(system, formulation, y, t):
    nq = system.structure.nq
    q, v = y[:nq], y[nq:]
    found = formulation.solve(system.equations(q, v, t))
    return jnp.concatenate([system.rate(q, v), found.acceleration])


def integrate(model, names, times, formulation: Any = None) -> Run:
    """By SciPy's Runge-Kutta method of order 8, no projection: the drift of a tenth of a second is
    below the tolerance."""
    system, formulation = model.system(), formulation or jm.formulations.MinimumNorm()
    y0 = np.concatenate([system.reference_q, system.initial_v])
    found = solve_ivp(
        lambda t, y: np.asarray(slope(system, formulation, jnp.asarray(y), jnp.asarray(t))),
        (0.0, times[-1]),
        y0,
        t_eval=times,
        method="DOP853",
        rtol=1e-8,
        atol=1e-10,
    )
    assert found.success
    q, v = found.y[: system.structure.nq].T, found.y[system.structure.nq :].T
    start = {body.name: k for k, body in enumerate(model.bodies)}
    springs = {force.name: force for force in model.forces}
    axial = []
    for name in names:
        first, second = (start[f"link {name} {end}"] for end in ("start", "end"))
        w, x, y, z = q[:, 7 * first + 3 : 7 * first + 7].T
        line = np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x**2 + y**2)], axis=1)
        apart = q[:, 7 * second : 7 * second + 3] - q[:, 7 * first : 7 * first + 3]
        speed = v[:, 6 * second : 6 * second + 3] - v[:, 6 * first : 6 * first + 3]
        spring = springs[f"link {name} spring"]
        longer = LENGTH - float(spring.length) + np.sum(apart * line, axis=1)
        rate = np.sum(speed * line, axis=1)
        axial.append(-(float(spring.stiffness) * longer + float(spring.damping) * rate))
    return Run(np.stack(axial, axis=1), q, v)


class TestModel:
    def test_halves_and_their_joints(self):
        model = split(["AB"], start=SuddenStart())
        names = [body.name for body in model.bodies]
        assert names[:3] == ["link AB start", "link AB end", "link CD"]
        first, second = model.bodies[:2]
        assert float(first.mass) == float(second.mass) == 0.17
        assert np.array_equal(first.inertia, np.diag([28e-3, 28e-3, 0.04e-3]))
        assert np.array_equal(first.position, second.position)
        joints = {joint.name: joint for joint in model.joints}
        assert joints["A"].bodies == ("ground", "link AB start")
        assert joints["B"].bodies == ("link AB end", "platform")
        assert joints["link AB slide"].bodies == ("link AB start", "link AB end")
        spring = model.forces[-1]
        assert spring.name == "link AB spring"
        assert float(spring.stiffness) == STIFFNESS
        assert float(spring.damping) == pytest.approx(BETA * STIFFNESS, rel=1e-15)
        assert float(spring.length) == pytest.approx(LENGTH, rel=1e-15)

    def test_mass_and_weight_are_kept(self):
        models: tuple[Any, ...] = (jm.mechanisms.parallelogram(), split(LOWER, start=SuddenStart()))
        rigid, whole = (sum(float(body.mass) for body in model.bodies) for model in models)
        assert whole == pytest.approx(rigid, rel=1e-15)

    def test_stiffness_of_a_tube(self):
        """E A / l with the diameters of 30 and 26 mm, to which the paper's mass belongs."""
        area = np.pi / 4 * (0.030**2 - 0.026**2)
        model: Any = elastic.split_rod(
            jm.mechanisms.parallelogram(), "link AB", young=6.9e10, area=area, start=SuddenStart()
        )
        assert float(model.forces[-1].stiffness) == pytest.approx(6.9e10 * area / LENGTH, rel=1e-14)
        assert float(model.forces[-1].stiffness) == pytest.approx(17e6, rel=0.02)

    def test_a_rod_becomes_the_spring(self):
        model = jm.mechanisms.elastic_parallelogram(stiffness=2e7)
        model = eqx.tree_at(lambda m: m.compliances[0].misfit, model, jnp.asarray(1e-4))
        made: Any = elastic.split_rod(model, "link AB", start=SuddenStart())
        assert [part.name for part in made.compliances] == ["CD", "EF", "GH", "KL", "MN"]
        assert float(made.forces[-1].stiffness) == 2e7
        assert float(made.forces[-1].length) == pytest.approx(LENGTH + 1e-4, rel=1e-14)

    def test_parts_of_other_constructors(self):
        """A user's joint at one end and his force at the other."""
        bar = spatial.Body("bar", mass=2.0, inertia=(1.0, 1.0, 0.1), position=(0.0, 0.0, 0.5))
        joints = [
            spatial.Geometric(
                "G",
                lambda frames, t: frames[0].origin - frames[1].origin,
                [("ground", (0.0, 0.0, 0.0)), ("bar", (0.0, 0.0, 0.0))],
                rows=3,
            )
        ]
        pull = forces.UserForce(
            "pull", lambda f, w, t: [(jnp.ones(3), jnp.zeros(3))], [("bar", (0.0, 0.0, 1.0))]
        )
        model = jm.Model("bar", 3, bodies=[bar], joints=joints, forces=[pull])
        made: Any = elastic.split_rod(
            model, "bar", stiffness=1e6, points=[(0, 0, 0), (0, 0, 1.0)], start=SuddenStart()
        )
        assert made.joints[0].bodies == ("ground", "bar start")
        assert made.forces[0].bodies == ("bar end",)
        system = made.system()
        residual = system.position_residual(system.reference_q, 0.0)
        assert np.max(np.abs(residual)) < 1e-15


class TestRanks:
    def test_all_subsets_of_links(self):
        """n = 42 + 6 (l + u), rows 36 + 5 (l + u), redundancy 1 for l = 0 and none otherwise. All
        from C of the mechanism in which every link is split: halves that are one body have the sum
        of their columns, and no rows of a slide."""
        model = split([*LOWER, *UPPER], start=SuddenStart())
        system = model.system()
        matrix = system.constraint_matrix(system.reference_q, system.initial_v, 0.0)
        matrix = np.asarray(matrix) * np.tile([0.35] * 3 + [1.0] * 3, 13)
        row_names = system.structure.row_names
        for size in range(7):
            for parts in itertools.combinations((*LOWER, *UPPER), size):
                columns = []
                for k, name in enumerate((*LOWER, *UPPER)):
                    first, second = (
                        matrix[:, 12 * k : 12 * k + 6],
                        matrix[:, 12 * k + 6 : 12 * k + 12],
                    )
                    columns += [first, second] if name in parts else [first + second]
                merged = np.concatenate([*columns, matrix[:, 72:]], axis=1)
                whole = [f"link {name} slide" for name in (*LOWER, *UPPER) if name not in parts]
                kept = [row.partition(".")[0] not in whole for row in row_names]
                own = merged[kept]
                assert np.max(np.abs(merged[~np.array(kept)]), initial=0.0) < 1e-12
                assert own.shape == (36 + 5 * size, 42 + 6 * size)
                values = np.linalg.svd(own, compute_uv=False)
                rank = int(np.sum(values > 1e-9 * values[0]))
                assert len(own) - rank == (0 if set(parts) & set(LOWER) else 1)

    @pytest.mark.parametrize(("parts", "redundancy"), [(UPPER, 1), (("AB", "MN"), 0)])
    def test_verdicts(self, parts, redundancy):
        """Upper links alone leave the joints of the lower ones undecided."""
        system = split(parts, start=SuddenStart()).system()
        report = jm.analyze(system, system.reference_q)
        assert (report.structure.nv, len(report.structure.rows)) == (54, 46)
        assert int(report.redundancy) == redundancy
        assert int(report.mobility) == 54 - int(report.rank)
        undecided = {
            info.name for info in report.structure.constraints if not report.unique(info.name)
        }
        assert undecided == (set("ABCDEFGH") if redundancy else set())


# Mean axial forces of the elastic resolution at the start and at t = 0.1 s (MECHANISMS.md section
# 2), compression positive (N).
START = (-213.4409, -920.5476, -1769.0758, -1061.9690)
LATER = (-375.027, -1352.567, -2201.095, -1223.555)
UPPER_START, UPPER_LATER = (568.3031, -845.9105), (242.908, -1712.172)
TIMES = np.array([0.0, 0.03, 0.06, 0.1])


@functools.cache
def resolved(names):
    """The elastic resolution along the rigid motion, at TIMES: what static starts there carry."""
    return np.array([axial_forces(split(names, moving(*rigid_motion()(t)))) for t in TIMES])


class TestStaticStart:
    def test_forces_are_those_of_the_elastic_resolution(self):
        assert resolved(LOWER)[0] == pytest.approx(START, abs=1e-4)
        assert resolved(LOWER)[-1] == pytest.approx(LATER, abs=1e-3)
        assert resolved(UPPER)[0] == pytest.approx(UPPER_START, abs=1e-4)
        assert resolved(UPPER)[-1] == pytest.approx(UPPER_LATER, abs=1e-3)

    def test_halves_do_not_accelerate_against_each_other(self):
        """And the platform as the rigid one does: theta'' / 2 = 500 / 10.0455 along x."""
        model = split(LOWER)
        system = model.system()
        y = jnp.concatenate([system.reference_q, system.initial_v])
        found = np.asarray(slope(system, jm.formulations.MinimumNorm(), y, jnp.asarray(0.0)))
        acceleration = found[system.structure.nq :].reshape(-1, 6)
        halves = acceleration[:8].reshape(4, 2, 6)
        # A newton too much would be 6 m/s^2.
        assert np.max(np.abs(halves[:, 0] - halves[:, 1])) < 1e-5
        assert acceleration[-1, :3] == pytest.approx([500 / 10.0455, 0, 0], abs=1e-6)

    @pytest.mark.thorough
    def test_derivative_by_the_stiffness(self):
        """Of the force of a spring: against a central difference."""

        def force(stiffness):
            rods = [SplitRod(f"link {name}", stiffness=STIFFNESS) for name in LOWER[:3]]
            rods.append(SplitRod("link GH", stiffness=stiffness))
            model: Any = elastic.split_rods(jm.mechanisms.parallelogram(), rods)
            spring = model.forces[1]
            return spring.stiffness * (spring.length - spring.natural_length())

        step = 1e3
        expected = (force(2 * STIFFNESS + step) - force(2 * STIFFNESS - step)) / (2 * step)
        # Truncation (step / stiffness)^2 = 1e-9; rounding 1e-8 of a force of 100 N is 1e-6 N, to
        # 2e3 N of which the difference is 0.004 N.
        assert float(jax.grad(force)(2 * STIFFNESS)) == pytest.approx(float(expected), rel=1e-4)
        assert abs(float(expected)) > 1e-7


class TestMotion:
    @pytest.mark.thorough
    def test_four_lower_links(self):
        """Against the elastic resolution along the rigid motion: 1 % of the largest force."""
        found = integrate(split(LOWER), LOWER, TIMES)
        assert np.max(np.abs(found.axial - resolved(LOWER))) < 0.01 * LARGEST
        # It moves.
        assert np.max(np.abs(found.axial[-1] - found.axial[0])) > 0.1 * LARGEST

    def test_sudden_start_without_damping(self):
        """The elongations fit together at every instant: that of the self-stress (1, -1, 1, -1),
        though the forces vibrate as much as they are large."""
        model = split(LOWER, start=SuddenStart(), damping_time=0.0)
        found = integrate(model, LOWER, np.linspace(0.0, 0.01, 21))
        mismatch = np.abs(found.axial @ [1.0, -1.0, 1.0, -1.0])
        assert np.max(mismatch) < 1e-3 * np.max(np.abs(found.axial))
        assert np.max(np.ptp(found.axial, axis=0)) > 1000

    def test_energy_without_damping(self):
        """Kinetic, of gravity and of the springs: it grows by the work of the load, a constant
        force on the platform's centre, here without its torque."""
        model = split(LOWER, start=SuddenStart(), damping_time=0.0)
        model = eqx.tree_at(lambda m: m.forces[0].torque, model, jnp.zeros(3))
        found, system = integrate(model, LOWER, np.linspace(0.0, 0.01, 5)), model.system()
        energy = eqx.filter_jit(jax.vmap(lambda q, v: sum(system.energy(q, v, 0.0))))
        gained = np.asarray(energy(jnp.asarray(found.q), jnp.asarray(found.v)))
        work = (found.q[:, -7:-4] - found.q[0, -7:-4]) @ [2000.0, 3000.0, 3000.0]
        assert gained - gained[0] == pytest.approx(work, abs=1e-6 * np.max(np.abs(work)))
        assert np.max(np.abs(work)) > 1.0

    @pytest.mark.thorough
    def test_upper_links_alone(self):
        """The rank test would contradict itself, as the four rigid lower links no longer fit once
        the upper ones have stretched: one row is left out throughout."""
        found = integrate(split(UPPER), UPPER, TIMES, jm.formulations.Elimination(drop=("B.z",)))
        assert np.max(np.abs(found.axial - resolved(UPPER))) < 1e-3 * LARGEST


class TestPlanar:
    """A hanging bar between two pins, too long by delta: the compression k delta, and a half of
    its weight at each end."""

    @staticmethod
    def bar(at=(0.0, -0.5)):
        body = planar.Body("bar", mass=4.0, inertia=0.4, position=(0.0, -0.5))
        joints = [
            planar.Revolute("top", ("ground", "bar"), (0.0, 0.0)),
            planar.Revolute("foot", ("ground", "bar"), (0.0, -1.0)),
        ]
        rod = elastic.Rod(
            "bar", "bar", points=[(0.0, 0.0), (0.0, -1.0)], stiffness=1e6, misfit=1e-4
        )
        return jm.Model(
            "bar", 2, bodies=[body], joints=joints, compliances=[rod], gravity=(0.0, -10.0)
        )

    def test_static_start(self):
        model = elastic.split_rod(self.bar(), "bar")
        assert axial_forces(model) == pytest.approx([1e6 * 1e-4], abs=1e-6)
        system = model.system()
        q, v = system.reference_q, system.initial_v
        assert len(system.structure.rows) == system.structure.nv == 6
        matrix = np.asarray(system.constraint_matrix(q, v, 0.0))
        assert np.linalg.matrix_rank(matrix) == 6
        # In equilibrium: C^T lambda = F. On the bar the top pulls by 20 - 100 N, and the foot
        # pushes by 20 + 100 N; rows are ground minus bar.
        multipliers = np.linalg.solve(matrix.T, np.asarray(system.force(q, v, 0.0)))
        assert multipliers[:4] == pytest.approx([0.0, -80.0, 0.0, 120.0], abs=1e-6)


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ({"body": "link XY", "stiffness": 1.0}, "there is no body 'link XY' to split; there"),
            ({"body": "link AB"}, "body 'link AB' needs a stiffness to be split: give"),
            ({"body": "platform", "stiffness": 1.0}, "body 'platform' has 6 joints at points"),
            ({"body": "link AB", "stiffness": 0.0}, "stiffness must be greater than zero, got 0"),
            ({"body": "link AB", "young": 7e10}, "the stiffness must be given once"),
            (
                {"body": "link AB", "stiffness": 1.0, "young": 7e10, "area": 1e-4},
                "the stiffness must be given once",
            ),
            (
                {"body": "link AB", "stiffness": 1.0, "damping_time": -1.0},
                "damping_time must be at least 0, got -1",
            ),
            (
                {"body": "link AB", "stiffness": 1.0, "points": [(0, 0, 0), (0, 0, 0)]},
                "a rod has zero length; give two different points",
            ),
            (
                {"body": "link AB", "stiffness": 1.0, "points": [(0, 0), (0, 1)]},
                "points of body 'link AB' must be of dimension 3, got 2",
            ),
            (
                {"body": "link AB", "stiffness": 1.0, "points": [(0, 0, 0), (0, 1, 1)]},
                "joint 'B' acts in the middle of the body 'link AB', on neither half of it",
            ),
        ],
    )
    def test_of_rods(self, given, says):
        with pytest.raises(ValueError, match=f"^{says}"):
            elastic.split_rod(jm.mechanisms.parallelogram(), **given)

    def test_of_parts_on_neither_half(self):
        model = jm.mechanisms.parallelogram()
        load = forces.Applied("wind", "link AB", force=(1.0, 0.0, 0.0))
        pushed = eqx.tree_at(lambda m: m.forces, model, (*model.forces, load))
        with pytest.raises(ValueError, match=r"^force 'wind' acts in the middle of the body"):
            split(["AB"], pushed)

    def test_of_lists_and_starts(self):
        model: Any = jm.mechanisms.parallelogram()
        rod: Any = SplitRod("link AB", stiffness=1.0)
        with pytest.raises(ValueError, match=r"^rods splits the body 'link AB' twice"):
            elastic.split_rods(model, [rod, rod])
        with pytest.raises(ValueError, match=r"^rods holds no SplitRod"):
            elastic.split_rods(model, [])
        with pytest.raises(TypeError, match=r"^start must be StaticStart"):
            elastic.split_rods(model, [rod], start=cast(Any, "static"))
        with pytest.raises(TypeError, match=r"brackets behind it: StaticStart\(...\)"):
            elastic.split_rods(model, [rod], start=cast(Any, StaticStart))

    def test_of_bodies_that_are_no_rods(self):
        point = planar.Particle("point", mass=1.0, position=(0.0, 0.0))
        model = jm.Model("point", 2, bodies=[point])
        with pytest.raises(ValueError, match=r"^body 'point' is no rigid body of two halves"):
            elastic.split_rod(model, "point", stiffness=1.0, points=[(0.0, 0.0), (0.0, 1.0)])
