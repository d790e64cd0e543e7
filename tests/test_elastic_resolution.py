"""Reactions that elastic bodies and joints decide, along the motion of rigid ones."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from elastic_mechanisms import (
    cart,
    door,
    elastic_parallelogram,
    joint_points,
    least_strain,
    LINKS,
    numbers,
    raft,
    resolved,
    STIFFNESS,
    three_cranks,
    with_compliances,
)

import jaxmbs as jm
from jaxmbs import elastic, planar, spatial


PARALLELOGRAM = elastic_parallelogram()
SYSTEM = PARALLELOGRAM.system()
Q, V = SYSTEM.reference_q, SYSTEM.initial_v
# Forces that no elasticity changes.
UPPER = (568.3031, -845.9105)
# All lower links, each alike.
SHARED = (-213.4409, -920.5476, -1769.0758, -1061.9690)


def _soft(*names: str) -> np.ndarray:
    return np.isin(LINKS, names) / STIFFNESS


def _axial(compliance, misfit=None):
    """Mean axial forces of the links (N, compression positive), and the answer."""
    misfit = jnp.zeros(6) if misfit is None else jnp.asarray(misfit)
    found, forces = resolved(SYSTEM, jnp.asarray(compliance), misfit, Q, V)
    return np.asarray(forces), found


@eqx.filter_jit
def _least_norm(system, q, v):
    """The answer of the pseudoinverse, and mean axial forces of the links."""
    found = jm.formulations.MinimumNorm().solve(system.equations(q, v, 0.0))
    return found, system.deformation_matrix(q, v, 0.0).T @ found.multipliers


class TestParallelogram:
    """Numbers of an independent computation; four digits behind the point."""

    @pytest.mark.parametrize(
        ("soft", "lower"),
        [
            (["AB"], (0.0, -1133.9885, -1555.6349, -1275.4098)),
            (["AB", "CD"], (-566.9942, -566.9942, -2122.6292, -708.4156)),
            (["AB", "CD", "EF"], (140.5488, -1274.5373, -1415.0861, -1415.9587)),
            (["AB", "CD", "EF", "GH"], SHARED),
            ([*LINKS], SHARED),
        ],
    )
    def test_forces_of_the_links(self, soft, lower):
        forces, found = _axial(_soft(*soft))
        assert found.result == jm.results.RESULTS.successful
        np.testing.assert_allclose(forces, (*lower, *UPPER), atol=6e-5)

    def test_unlike_links_share_by_their_stiffness(self):
        compliance = _soft("AB", "CD", "EF", "GH") / np.array([1, 1, 1, 2, 1, 1])
        forces, _ = _axial(compliance)
        expected = (-61.7310, -1072.2575, -1617.3659, -1213.6788, *UPPER)
        np.testing.assert_allclose(forces, expected, atol=6e-5)
        # The pseudoinverse knows of no stiffness: with links alike it happens to agree.
        plain = np.asarray(_least_norm(SYSTEM, Q, V)[1])
        np.testing.assert_allclose(plain, (*SHARED, *UPPER), atol=6e-5)
        assert np.max(np.abs(plain - forces)) > 150

    def test_elongations_fit_together(self):
        """Closing the loop: the elongations of the lower links, in turn, add up to nothing."""
        compliance = _soft("AB", "CD", "EF", "GH") * np.array([1.0, 0.3, 2.0, 0.7, 1, 1])
        misfit = np.array([1e-4, 0.0, -3e-5, 0.0, 0.0, 0.0])
        forces, _ = _axial(compliance, misfit)
        elongation = misfit - compliance * forces
        assert abs(elongation[:4] @ (1, -1, 1, -1)) < 1e-9 * np.max(np.abs(elongation))

    def test_a_link_that_is_too_long(self):
        """Self-stress (1, -1, 1, -1) of the lower links: 4 s / k takes up 0.1 mm."""
        misfit = np.zeros(6)
        misfit[0] = 1e-4
        compliance = _soft("AB", "CD", "EF", "GH")
        forces, _ = _axial(compliance, misfit)
        without, _ = _axial(compliance)
        stress = STIFFNESS * 1e-4 / 4
        expected = stress * np.array([1, -1, 1, -1, 0, 0])
        np.testing.assert_allclose(forces - without, expected, atol=1e-8 * stress)

    def test_a_misfit_that_nothing_takes_up_is_told(self):
        misfit = np.zeros(6)
        misfit[0] = 1e-4
        _, found = _axial(_soft("KL", "MN"), misfit)
        assert found.result == jm.results.RESULTS.misfit_not_taken_up
        # One of a link that nothing constrains beside it is no misfit at all.
        misfit = np.zeros(6)
        misfit[4] = 1e-4
        forces, found = _axial(_soft("AB", "KL"), misfit)
        assert found.result == jm.results.RESULTS.successful
        np.testing.assert_allclose(forces[4:], UPPER, atol=6e-5)

    def test_nothing_soft_is_least_norm(self):
        _, found = _axial(np.zeros(6))
        plain, _ = _least_norm(SYSTEM, Q, V)
        np.testing.assert_allclose(found.multipliers, plain.multipliers, atol=1e-4)
        np.testing.assert_allclose(found.acceleration, plain.acceleration, rtol=1e-8, atol=1e-8)

    def test_stiffness_over_six_orders(self):
        """The softer of two carries next to nothing."""
        compliance = _soft("AB", "CD") * np.array([1.0, 1e-6, 1, 1, 1, 1])
        forces, found = _axial(compliance)
        assert found.result == jm.results.RESULTS.successful
        # By hand: with N = N0 + s (1, -1, 1, -1) the strain is least where c N sums up to zero.
        zero, _ = _axial(_soft("AB"))
        s = 1e-6 * zero[1] / (1 + 1e-6)
        np.testing.assert_allclose(forces[:4], zero[:4] + s * np.array([1, -1, 1, -1]), atol=1e-6)

    def test_a_column_is_the_change_of_the_rows(self):
        """From a model whose link has its joint points apart by a little more."""
        stretch, name = 1e-4, "CD"
        link = f"link {name}"
        ends = joint_points(PARALLELOGRAM)
        along = ends["D"] - ends["C"]
        along = along / np.linalg.norm(along)
        joints = []
        for joint in PARALLELOGRAM.joints:
            points = np.array([ends[joint.name]] * 2)
            if link in joint.bodies:
                side = 0.5 if joint.name == "D" else -0.5
                points[joint.bodies.index(link)] += side * stretch * along
            joints.append(spatial.Spherical(joint.name, joint.bodies, at=points))
        longer = eqx.tree_at(lambda m: m.joints, PARALLELOGRAM, tuple(joints)).system()
        change = np.asarray(longer.position_residual(Q, 0.0)) / stretch
        column = np.asarray(SYSTEM.deformation_matrix(Q, V, 0.0))[:, LINKS.index(name)]
        np.testing.assert_allclose(column, change, atol=1e-10)

    def test_new_numbers_compile_nothing(self):
        traces = []

        @eqx.filter_jit
        def counted(*arguments):
            traces.append(None)
            return resolved(*arguments)[1]

        for compliance in (_soft("AB"), 3 * _soft("CD")):
            counted(SYSTEM, jnp.asarray(compliance), jnp.zeros(6), Q, V)
        assert len(traces) == 1


class TestVerdicts:
    @pytest.mark.thorough
    def test_which_rods_decide(self):
        rods = {rod.name: rod for rod in PARALLELOGRAM.compliances}
        for names, unique, redundancy in ((("KL", "MN"), False, 1), (("AB",), True, 0)):
            model = with_compliances(PARALLELOGRAM, [rods[name] for name in names])
            found = jm.analyze(model.system(), Q, elastic=True)
            assert int(found.redundancy) == redundancy
            assert int(found.mobility) == 7
            assert (int(found.rank_geometric), int(found.rank_velocity)) == (35, 0)
            for joint in "ABCDEFGH":
                assert bool(found.unique(joint)) == unique
            assert all(bool(found.unique(joint)) for joint in "KLMN")
            assert "depends on which parts are elastic" in str(found)
            assert ", ".join(names) in str(found)

    @pytest.mark.thorough
    def test_reactions_tell_by_whom_they_are_decided(self):
        model = with_compliances(PARALLELOGRAM, PARALLELOGRAM.compliances[:2])
        system = model.system()
        for asked, unique in ((False, False), (True, True)):
            verdicts = jm.reactions(system, Q, V, 0.0, jnp.zeros(36), elastic=asked)
            assert bool(verdicts.unique("A")) == unique
            assert bool(verdicts.unique("K"))

    def test_compliances_of_zero_decide_nothing(self):
        soft = elastic.JointCompliance("soft", "lower", compliance=(0.0, 0.0, 1e-8))
        system = door(soft).system()
        q = system.reference_q
        rigid, found = jm.analyze(system, q), jm.analyze(system, q, elastic=True)
        assert (int(rigid.redundancy), int(found.redundancy)) == (5, 4)
        # Along the axis alone: that row of both hinges is decided and nothing else.
        unique = [bool(x) for x in found.multiplier_unique.unique]
        rows = system.structure.row_names
        assert [n for n, u in zip(rows, unique, strict=True) if u] == ["lower.z", "upper.z"]

    def test_without_compliances_it_is_refused(self):
        system = door().system()
        with pytest.raises(ValueError, match=r"nothing of this system gives way.*elastic\.Rod"):
            jm.analyze(system, system.reference_q, elastic=True)
        equations = system.equations(system.reference_q, system.initial_v, 0.0)
        with pytest.raises(ValueError, match=r"give compliances, such as"):
            jm.formulations.ElasticResolution().solve(equations)


class TestDoor:
    """Two hinges a metre apart, alike in all but what is said."""

    c, tilt, apart = 2e-8, 3e-7, 1.0

    def _hinges(self, **upper):
        both = {"compliance": (self.c,) * 3, "tilt_compliance": (self.tilt,) * 3}
        return (
            elastic.JointCompliance("soft lower", "lower", **both),
            elastic.JointCompliance("soft upper", "upper", **both, **upper),
        )

    def _forces(self, *compliances, gravity=(0.0, 0.0, -9.81)):
        system = door(*compliances, gravity=gravity).system()
        q, v = system.reference_q, system.initial_v
        return jm.reactions(system, q, v, elastic=True)

    def test_weight_and_its_moment_by_hand(self):
        """The weight halves; its moment is carried by a pair of forces F and by a moment M in each
        hinge: the energy c F^2 + tilt M^2 is least where F apart + 2 M is that moment."""
        found = self._forces(*self._hinges())
        weight, h = 20.0 * 9.81, self.apart
        moment = weight * 0.4
        pair = self.tilt * h * moment / 2 / (2 * self.c + self.tilt * h**2 / 2)
        own = (moment - pair * h) / 2
        lower, upper = found.wrench("lower"), found.wrench("upper")
        np.testing.assert_allclose(lower.force, [pair, 0.0, weight / 2], atol=1e-6)
        np.testing.assert_allclose(upper.force, [-pair, 0.0, weight / 2], atol=1e-6)
        np.testing.assert_allclose(np.abs(upper.torque), [0.0, own, 0.0], atol=1e-6)
        assert bool(found.unique("upper"))

    def test_verdicts_are_those_of_the_formulation(self):
        system = door(*self._hinges(), gravity=(0.0, 0.0, -9.81)).system()
        found = jm.reactions(
            system, system.reference_q, formulation=jm.formulations.ElasticResolution()
        )
        assert bool(found.unique("upper"))

    def test_misaligned_hinge(self):
        """Without any load: the upper hinge is d off along x on the door. The pair of forces F
        bends both hinges, 2 c F + tilt F apart^2 / 2 = d."""
        d = 3e-4
        found = self._forces(*self._hinges(misfit=(d, 0.0, 0.0)), gravity=None)
        force = d / (2 * self.c + self.tilt * self.apart**2 / 2)
        np.testing.assert_allclose(found.wrench("upper").force, [-force, 0, 0], atol=1e-6)
        np.testing.assert_allclose(found.wrench("lower").force, [force, 0, 0], atol=1e-6)

    def test_axes_askew(self):
        """The upper axis is turned on the door by an angle about x. A pair of forces F along y, and
        moments in both hinges, M1 + M2 + F apart = 0, make c F^2 + tilt (M1^2 + M2^2) / 2 +
        M2 angle least."""
        angle = 2e-4
        found = self._forces(*self._hinges(tilt_misfit=(angle, 0.0, 0.0)), gravity=None)
        h, c, t = self.apart, self.c, self.tilt
        a = np.array([[2 * c + t * h * h, t * h], [t * h, 2 * t]])
        pair, moment = np.linalg.solve(a, [0.0, angle])
        upper = found.wrench("upper")
        np.testing.assert_allclose(np.abs(upper.force), [0, abs(pair), 0], atol=1e-6)
        np.testing.assert_allclose(np.abs(upper.torque), [abs(moment), 0, 0], atol=1e-6)

    @pytest.mark.thorough
    def test_weights_are_compliances(self):
        """A compliance for each row: the pseudoinverse with these weights."""
        system = door(*self._hinges()).system()
        q, v = system.reference_q, system.initial_v.at[5].set(0.7)
        weights = np.where([n[-2:] in ("a1", "a2") for n in system.structure.row_names], 3e-7, 2e-8)
        expected = eqx.filter_jit(jm.formulations.MinimumNorm(weights).solve)(
            system.equations(q, v, 0.0)
        )
        found, _ = resolved(system, *numbers(system), q, v)
        np.testing.assert_allclose(found.multipliers, expected.multipliers, atol=1e-7)
        np.testing.assert_allclose(found.acceleration, expected.acceleration, atol=1e-9)


class TestLoadsOnElasticBodies:
    """What acts on an elastic body strains it, as what joints exert does."""

    def _bar(self, push_at):
        """Pinned at 0 and 1 m, and pushed along itself with 1000 N."""
        body = planar.Body("bar", mass=1.0, inertia=0.1, position=(0.5, 0.0))
        pins = [
            planar.Revolute(n, ("ground", "bar"), (x, 0.0)) for n, x in (("L", 0.0), ("R", 1.0))
        ]
        push = jm.forces.Applied("push", "bar", at=(push_at, 0.0), force=(1000.0, 0.0))
        rod = elastic.Rod("rod", "bar", points=[(0.0, 0.0), (1.0, 0.0)], stiffness=1e6)
        system = jm.MultibodySystem([body], pins, forces=[push], compliances=[rod])
        q, v = system.reference_q, system.initial_v
        found, _ = resolved(system, *numbers(system), q, v)
        assert found.result == jm.results.RESULTS.successful
        np.testing.assert_allclose(found.multipliers, least_strain(system, q, v), atol=1e-8)
        return found.multipliers[::2]

    def test_a_bar_between_two_pins(self):
        """Each part of it is a spring: near one end the pin there holds nearly all."""
        for place in (0.0, 0.25, 1.0):
            expected = 1000 * np.array([1 - place, place])
            np.testing.assert_allclose(np.abs(self._bar(place)), expected, atol=1e-7)

    @pytest.mark.thorough
    def test_a_pin_does_not_know_on_which_body_it_is_pushed(self):
        forces = []
        for body in ("coupler", "crank 0"):
            push = jm.forces.Applied("push", body, at=(0.3, 0.5), force=(700.0, 300.0))
            model = eqx.tree_at(lambda m: m.forces, three_cranks([1e5, 3e5, 2e5]), (push,))
            system = model.system()
            q, v = system.reference_q, system.initial_v
            found, _ = resolved(system, *numbers(system), q, v)
            forces.append(system.elasticity(q, v, 0.0).deformation_forces(found.multipliers))
        size = float(jnp.max(jnp.abs(forces[0])))
        np.testing.assert_allclose(forces[1], forces[0], atol=1e-9 * size)

    @pytest.mark.thorough
    def test_a_split_bar_starts_at_rest(self):
        push = jm.forces.Applied("push", "crank 0", at=(0.3, 0.5), force=(700.0, 300.0))
        model = eqx.tree_at(lambda m: m.forces, three_cranks([1e5, 3e5, 2e5]), (push,))
        halves = elastic.split_rods(model, [elastic.SplitRod(f"crank {k}") for k in range(3)])
        system = halves.system()
        found = (
            jm.formulations.MinimumNorm()
            .solve(system.equations(system.reference_q, system.initial_v, 0.0))
            .acceleration
        )
        names = [body.name for body in system.structure.bodies]
        for k in range(3):
            own = [names.index(f"crank {k} {side}") for side in ("start", "end")]
            first, second = (found[3 * i : 3 * i + 3] for i in own)
            np.testing.assert_allclose(first, second, atol=1e-8 * float(jnp.max(jnp.abs(found))))


@pytest.mark.thorough
def test_a_wheel_beside_its_place_is_free_of_stress():
    model = cart({"front": 1e-6, "middle": 3e-6, "back": 2e-6})
    aside = elastic.JointCompliance("aside", "middle", compliance=(0.0, 3e-6), misfit=(0.0, 1e-3))
    front, _, back = model.compliances
    system = with_compliances(model, [front, aside, back]).system()
    v = system.initial_v.at[0].set(1.0)
    found, _ = resolved(system, *numbers(system), system.reference_q, v)
    np.testing.assert_allclose(found.multipliers, 0.0, atol=1e-9)


def test_wheels_in_one_line_share_by_their_compliance():
    """Rows of velocities: a side force at the middle, and no way to turn: three springs in a row
    on a rigid beam."""
    compliance = {"front": 1e-6, "middle": 3e-6, "back": 2e-6}
    model = cart(compliance)
    push = jm.forces.Applied("push", "cart", force=(0.0, 90.0), at=(0.1, 0.0))
    system = eqx.tree_at(lambda m: m.forces, model, (push,)).system()
    q, v = system.reference_q, system.initial_v.at[0].set(1.3)
    found, _ = resolved(system, *numbers(system), q, v)
    # The edges along x lie above each other: sideways they are one line, and none holds turning.
    np.testing.assert_allclose(np.sum(found.multipliers), 90.0, rtol=1e-9)
    c = np.array([*compliance.values()])
    np.testing.assert_allclose(found.multipliers, 90.0 / c / np.sum(1 / c), rtol=1e-8)


class TestAgainstDenseAlgebra:
    @pytest.mark.parametrize(
        ("system", "turning"),
        [
            (three_cranks([1e5, 3e5, 2e5]).system(), 0.0),
            pytest.param(raft(10).system(), 0.0, marks=pytest.mark.thorough),
            (SYSTEM, 0.8),
        ],
        ids=["plane", "hub", "moving"],
    )
    def test_multipliers(self, system, turning):
        q = system.reference_q
        v = _allowed(system, q) * turning
        found, _ = resolved(system, *numbers(system), q, v)
        expected = least_strain(system, q, v)
        assert found.result == jm.results.RESULTS.successful
        size = np.max(np.abs(expected))
        np.testing.assert_allclose(found.multipliers, expected, atol=1e-8 * size)


def _allowed(system, q):
    """A velocity that the constraints allow."""
    C = np.asarray(system.constraint_matrix(q, jnp.zeros(system.structure.nv), 0.0))
    some = np.random.default_rng(3).normal(size=C.shape[1])
    return jnp.asarray(some - np.linalg.pinv(C, rcond=1e-9) @ (C @ some))


class TestDerivatives:
    """At redundant points, by stiffness, misfit, load and configuration."""

    def test_against_differences_forward_and_reverse(self):
        system = three_cranks([1e5, 3e5, 2e5]).system()
        v = _allowed(system, system.reference_q)

        def forces(x):
            compliance, misfit, gravity, angle = x
            # All cranks turn alike about their feet, so that the mechanism stays closed.
            turn = jnp.array([[jnp.cos(angle), -jnp.sin(angle)], [jnp.sin(angle), jnp.cos(angle)]])
            tip = turn @ jnp.array([0.3, 0.5])
            moved = tip - jnp.array([0.3, 0.5])
            step = jnp.concatenate(
                [*(jnp.append(moved / 2, angle) for _ in range(3)), jnp.append(moved, 0.0)]
            )
            own = eqx.tree_at(lambda s: s.gravity, system, gravity)
            q = system.reference_q + step
            equations = own.equations(q, 0 * v, 0.0)
            equations = eqx.tree_at(
                lambda e: (e.elasticity.compliance, e.elasticity.misfit),
                equations,
                (compliance * 1e-5, misfit * 1e-4),
            )
            return jm.formulations.ElasticResolution().solve(equations).multipliers

        x = (
            jnp.array([1.0, 0.3, 0.5]),
            jnp.array([0.5, -0.2, 0.1]),
            jnp.array([0.5, -9.81]),
            jnp.asarray(0.2),
        )
        rng = np.random.default_rng(2)
        d = jax.tree.map(lambda a: jnp.asarray(rng.normal(size=a.shape)), x)
        w = jnp.asarray(rng.normal(size=12))

        @jax.jit
        def both(x, d, w):
            value, push = jax.linearize(forces, x)
            return value, push(d), jax.linear_transpose(push, x)(w)[0]

        h = 1e-3
        values = [
            both(jax.tree.map(lambda a, b, s=s: a + s * h * b, x, d), d, w)[0]
            for s in (-2, -1, 1, 2)
        ]
        slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h)
        _, pushed, pulled = both(x, d, w)
        size = np.max(np.abs(slope))
        # Differences of fourth order; forces are good to 1e-10.
        np.testing.assert_allclose(pushed, slope, atol=1e-6 * size)
        dot = sum(jnp.vdot(a, b) for a, b in zip(pulled, d, strict=True))
        np.testing.assert_allclose(dot, w @ pushed, rtol=1e-8)


@pytest.fixture(scope="module")
def moved():
    """Along the rigid motion, the four lower links elastic."""
    model = with_compliances(PARALLELOGRAM, PARALLELOGRAM.compliances[:4])
    return jm.simulate(
        model.system(),
        Q,
        V,
        0.5,
        times=[0.0, 0.1, 0.5],
        formulation=jm.formulations.ElasticResolution(),
        monitor=False,
    )


class TestMotion:
    @pytest.mark.thorough
    def test_multipliers_along_a_motion(self, moved):
        """Published computation."""
        columns = eqx.filter_jit(lambda q, v: SYSTEM.deformation_matrix(q, v, 0.0))
        states = zip(moved.q, moved.v, moved.multipliers, strict=True)
        forces = np.stack([columns(q, v).T @ multipliers for q, v, multipliers in states])
        expected = [
            (*SHARED, *UPPER),
            (-375.027, -1352.567, -2201.095, -1223.555, 242.908, -1712.172),
            (-230.732, -946.942, -1795.470, -1079.260, 533.557, -898.863),
        ]
        # Three digits behind the point, and the motion is good to 1e-7.
        np.testing.assert_allclose(forces, expected, atol=2e-3)
        assert moved.elastic

    @pytest.mark.thorough
    def test_reactions_along_a_motion_are_unique(self, moved):
        assert bool(jnp.all(moved.reactions().unique("A").unique))


class TestRefusals:
    @pytest.mark.parametrize(
        ("make", "said"),
        [
            (lambda: elastic.Rod("r", "box", points=np.eye(3)[:2], stiffness=1.0), "'box' was nev"),
            (lambda: elastic.JointCompliance("r", "hinge"), "joint 'hinge' was never declared"),
            (lambda: elastic.Rod("r", "door", points=np.eye(2), stiffness=1.0), "dimension 2"),
            (
                lambda: elastic.JointCompliance("r", "upper", compliance=(1.0, 1.0)),
                "compliance must hold 3 numbers",
            ),
        ],
    )
    def test_what_does_not_belong_to_the_system(self, make, said):
        with pytest.raises(ValueError, match=f"compliance 'r': .*{said}"):
            door(make()).system()

    @pytest.mark.parametrize(
        ("make", "said"),
        [
            (lambda: elastic.Rod("r", "b", points=np.eye(3)[:2], stiffness=0.0), "stiffness must"),
            (lambda: elastic.Rod("r", "b", points=np.ones((2, 3)), stiffness=1.0), "coincide"),
            (
                lambda: elastic.JointCompliance("r", "b", compliance=(1.0, -1.0, 0.0)),
                "at least zero",
            ),
            (
                lambda: elastic.JointCompliance(
                    "r", "b", compliance=(1.0, 1.0), tilt_misfit=[1.0] * 3
                ),
                "tilt_misfit is not of dimension 2",
            ),
        ],
    )
    def test_what_is_no_compliance(self, make, said):
        with pytest.raises(ValueError, match=said):
            make()

    def test_names_are_used_once(self):
        soft = [elastic.JointCompliance("soft", name) for name in ("lower", "upper")]
        with pytest.raises(ValueError, match="compliance name 'soft' is used twice"):
            door(*soft).system()
