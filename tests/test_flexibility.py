"""Studies of flexibility: which elastic parts decide reactions, and which of them are enough."""

import itertools
import json
from typing import Any, cast

import equinox as eqx
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from refusing import assert_says, refusal
from representatives import representatives
from typer.testing import CliRunner

import jaxmbs as jm
from jaxmbs import elastic, forces, planar
from jaxmbs._elastic import _flexibility
from jaxmbs.cli._app import app
from jaxmbs.plot import draw_flexibility


LOWER, ALL = ("AB", "CD", "EF", "GH"), ("AB", "CD", "EF", "GH", "KL", "MN")
BASES = tuple("ABCDEFGH")

# Mean axial forces at the start, compression positive (N), by elastic links; computed beforehand by
# other means. KL and MN carry 568.3031 and -845.9105 always.
KNOWN = {
    ("AB",): (0.0, -1133.9885, -1555.6349, -1275.4098),
    ("AB", "CD"): (-566.9942, -566.9942, -2122.6292, -708.4156),
    ("AB", "CD", "EF"): (140.5488, -1274.5373, -1415.0861, -1415.9587),
    LOWER: (-213.4409, -920.5476, -1769.0758, -1061.9690),
}


@pytest.fixture(scope="module")
def mechanism():
    return jm.mechanisms.elastic_parallelogram()


@pytest.fixture(scope="module")
def study(mechanism):
    return elastic.flexibility(mechanism)


def with_stiffness(model, values):
    """Rods of other stiffnesses: other numbers of the same program."""
    rods = [
        eqx.tree_at(lambda r: r.stiffness, rod, jnp.asarray(value, float))
        for rod, value in zip(model.compliances, values, strict=True)
    ]
    return eqx.tree_at(lambda m: m.compliances, model, tuple(rods))


class Dense:
    """An independent oracle in NumPy: lambda minimises 1/2 lambda^T K lambda - lambda^T D misfit
    over lambda with M a + C^T lambda = F, C a = Gamma, by singular value decompositions."""

    def __init__(self, model):
        system = model.system()
        q, v, t = system.reference_q, system.initial_v, 0.0
        mass, force = np.asarray(system.mass_matrix(q)), np.asarray(system.force(q, v, t))
        matrix = np.asarray(system.constraint_matrix(q, v, t))
        gamma = -np.asarray(system.acceleration_offset(q, v, t))
        assert np.all(gamma == 0)  # At rest, so that its sign does not matter.
        self.D = np.asarray(system.deformation_matrix(q, v, t))
        self.matrix = matrix
        inverse = np.linalg.inv(mass)
        schur = matrix @ inverse @ matrix.T
        self.some = np.linalg.pinv(schur, rcond=1e-11) @ (matrix @ inverse @ force)
        u, s, _ = np.linalg.svd(matrix)
        self.N = u[:, int(np.sum(s > 1e-9 * s[0])) :]

    def multipliers(self, compliance, misfit):
        """And the basis of what is still undecided."""
        along = self.N.T @ self.D
        stiff = (along * compliance) @ along.T
        right = along @ (misfit - compliance * (self.D.T @ self.some))
        u, s, w = np.linalg.svd(stiff)
        rank = int(np.sum(s > 1e-9 * max(np.max(compliance, initial=0.0), 1e-300)))
        z = w[:rank].T @ ((u[:, :rank].T @ right) / s[:rank])
        return self.some + self.N @ z, self.N @ w[rank:].T


class TestParallelogram:
    @pytest.mark.thorough
    def test_forces_of_the_links(self, study):
        for parts, expected in KNOWN.items():
            found = study.answer(*parts)
            assert found.deformation_forces[:4] == pytest.approx(expected, abs=1e-4)
            assert found.deformation_forces[4:] == pytest.approx([568.3031, -845.9105], abs=1e-4)

    def test_no_new_program_for_other_subsets_and_numbers(self, study, mechanism, monkeypatch):
        traces, masked = [], _flexibility._masked
        monkeypatch.setattr(
            _flexibility, "_masked", lambda *own: traces.append(own) or masked(*own)
        )
        other = with_stiffness(mechanism, [17e6] * 3 + [34e6] + [17e6] * 2)
        found = elastic.flexibility(other, subsets=[LOWER, ["KL"], ["AB", "KL"]])
        # The stiffer fourth link takes more.
        expected = (-61.7310, -1072.2575, -1617.3659, -1213.6788)
        assert found.answer(*LOWER).deformation_forces[:4] == pytest.approx(expected, abs=1e-4)
        assert traces == []

    def test_upper_links_decide_nothing(self, mechanism, study):
        assert (study.candidates, study.skipped) == (LOWER, ("KL", "MN"))
        found = elastic.flexibility(mechanism, subsets=[["KL", "MN"], ALL])
        upper, every = found.answers
        assert (upper.redundancy, upper.undecided, upper.disguised) == (1, BASES, ())
        assert np.isnan(upper.difference)
        assert not upper.agrees
        assert every.deformation_forces[:4] == pytest.approx(KNOWN[LOWER], abs=1e-4)
        assert every.agrees
        assert every.redundancy == 0

    def test_one_link_is_an_elimination_in_disguise(self, study):
        for size in range(5):
            for parts in itertools.combinations(LOWER, size):
                found = study.answer(*parts)
                assert found.disguised == (parts if size == 1 else ())
                assert found.undecided == (BASES if size == 0 else ())
                assert found.redundancy == (1 if size == 0 else 0)
        for name in LOWER:
            carried = dict(
                zip(study.deformations, study.answer(name).deformation_forces, strict=True)
            )
            assert abs(carried[name]) < 1e-9 * 2995.5

    def test_smallest_subset(self, study):
        assert [own.elastic for own in study.smallest] == [LOWER]
        assert study.answer(*LOWER).difference < 1e-10
        # Of three elastic links the best is 4 % off.
        three = [study.answer(*parts).difference for parts in itertools.combinations(LOWER, 3)]
        assert min(three) == pytest.approx(0.0402, abs=1e-4)
        assert "depends on the choice" in study.answer("AB", "CD").verdict

    def test_tolerance_decides_what_agrees(self, mechanism):
        found = elastic.flexibility(mechanism, tolerance=0.05)
        assert [own.elastic for own in found.smallest] == [("CD", "EF", "GH")]

    def test_forces_of_joints_move_the_links(self, study):
        """m (a - g) is the force at the start of a link less what its end exerts on the platform.
        The platform's acceleration is half of theta'' = 1000 / 10.0455 along x, a link's the half
        of that (MECHANISMS.md section 2)."""
        acceleration = np.array([0.25 * 1000 / 10.0455, 0.0, 0.0])
        needed = 0.34 * (acceleration + np.array([0.0, 0.0, 9.81]))
        for own in (study.everything, study.answer("AB", "EF")):
            force = dict(zip(study.reactions, own.force, strict=True))
            for start, end in LOWER:
                assert force[start] - force[end] == pytest.approx(needed, abs=1e-5)

    @pytest.mark.parametrize(("theta", "redundancy"), [(0.3, 1), (np.pi / 2, 2)])
    def test_against_dense_matrices(self, theta, redundancy, rng):
        """All subsets, with other stiffnesses and links of other lengths; also where all links lie
        in parallel planes and the rank is 34."""
        stiffness, misfits = rng.uniform(5e6, 4e7, 6), rng.uniform(-1e-4, 1e-4, 6)
        model = with_stiffness(jm.mechanisms.elastic_parallelogram(theta), stiffness)
        rods = [
            eqx.tree_at(lambda r: r.misfit, rod, jnp.asarray(m))
            for rod, m in zip(model.compliances, misfits, strict=True)
        ]
        model = eqx.tree_at(lambda m: m.compliances, model, tuple(rods))
        subsets = [own for n in range(7) for own in itertools.combinations(ALL, n)]
        found = elastic.flexibility(model, subsets=subsets)
        dense = Dense(model)
        assert dense.N.shape[1] == redundancy
        checked = 0
        for own in found.answers:
            mask = np.array([name in own.elastic for name in ALL])
            expected, left = dense.multipliers(mask / stiffness, misfits)
            assert own.redundancy == left.shape[1]
            if own.redundancy:
                # Misfits of rigid links in the same loop are taken up by nothing.
                assert own.failed
                continue
            assert not own.failed
            # Solutions are exact to about 1e-8 of the largest force, of some kN.
            assert own.deformation_forces == pytest.approx(dense.D.T @ expected, abs=1e-4)
            loads, _ = dense.multipliers(mask / stiffness, np.zeros(6))
            rest = [mask * (np.array(ALL) != name) / stiffness for name in own.elastic]
            needed = [
                name
                for name, others in zip(own.elastic, rest, strict=True)
                if dense.multipliers(others, misfits)[1].size
            ]
            assert list(own.disguised) == needed
            for name in needed:
                assert abs(dense.D[:, ALL.index(name)] @ loads) < 1e-6
            checked += 1
        # Not the upper links alone; there not one link, and of the pairs not three.
        assert checked == (60 if redundancy == 1 else 54)


def beam(low=0.0, stiffness=(1e6, 1e6, 1e6)):
    """On three supports in a line, 1 m apart, of these stiffnesses; the middle one is too low."""
    body = planar.Body("beam", mass=30.0, inertia=1.0, position=(1.0, 0.0))
    joints = [
        planar.Revolute("left", ("ground", "beam"), (0.0, 0.0)),
        planar.PointOnLine("middle", ("ground", "beam"), (1.0, 0.0), axis=(1.0, 0.0)),
        planar.PointOnLine("right", ("ground", "beam"), (2.0, 0.0), axis=(1.0, 0.0)),
    ]
    soft = [
        elastic.JointCompliance(
            f"soft {name}",
            name,
            # Along the axes of the markers: those of the sliding ones begin with the axis.
            compliance=(0.0, 1 / k),
            misfit=(0.0, off),
        )
        for name, k, off in zip(
            ("left", "middle", "right"), stiffness, (0.0, low, 0.0), strict=True
        )
    ]
    load = forces.Applied("load", "beam", force=(0.0, -60.0), at=(0.5, 0.0))
    return jm.Model(
        "beam", 2, bodies=[body], joints=joints, forces=[load], compliances=soft,
        gravity=(0.0, -10.0),
    )  # fmt: skip


class TestBeamOnThreeSupports:
    """A rigid beam on springs has a closed form: three forces s_i = -k_i (a + b x_i)."""

    @staticmethod
    def supports(stiffness, low):
        """Upward forces on the beam (N)."""
        k, x = np.array(stiffness), np.array([0.0, 1.0, 2.0])
        drop = np.array([0.0, low, 0.0])
        total, moment = 360.0, 300.0 * 1.0 + 60.0 * 0.5
        rows = np.array([[k.sum(), k @ x], [k @ x, k @ x**2]])
        right = [total + k @ drop, moment + k @ (x * drop)]
        a, b = np.linalg.solve(rows, right)
        return k * (a + b * x - drop)

    @pytest.mark.parametrize("low", representatives([0.0, 1e-4], 1e-4))
    def test_everything_elastic(self, low):
        stiffness = (1e6, 2e6, 3e6)
        found = elastic.flexibility(beam(low, stiffness))
        expected = self.supports(stiffness, low)
        assert found.everything.force[:, 1] == pytest.approx(expected, abs=1e-4)
        assert found.deformations[:3] == ("soft left.x", "soft left.y", "soft left.r")
        if low == 0.0:
            # One support that gives way carries nothing; two decide, and wrongly.
            assert found.answer("soft middle").force[:, 1] == pytest.approx([195, 0, 165], abs=1e-5)
            assert [own.disguised for own in found.answers[1:4]] == [
                ("soft left",), ("soft middle",), ("soft right",)
            ]  # fmt: skip
            assert [len(own.elastic) for own in found.smallest] == [3]

    def test_a_misfit_is_no_load(self):
        """The middle support alone gives way and is too low: it pulls by k times that, whatever the
        load is, and is in disguise still."""
        found = elastic.flexibility(beam(1e-4, (1e6, 2e6, 1e6)), subsets=[["soft middle"]])
        (own,) = found.answers
        assert own.force[1, 1] == pytest.approx(-2e6 * 1e-4, abs=1e-5)
        assert own.disguised == ("soft middle",)

    def test_reactions_that_matter(self):
        """Only the horizontal reaction of the left support is unique, so that all three matter."""
        found = elastic.flexibility(beam(), reactions=["right"], candidates=["soft right"])
        assert (found.reactions, found.candidates) == (("right",), ("soft right",))
        assert [own.elastic for own in found.answers] == [(), ("soft right",)]
        assert found.smallest == ()
        assert "No subset agrees" in str(found)


class TestRefusals:
    def test_of_systems(self):
        plain = jm.mechanisms.door()
        with pytest.raises(ValueError, match=r"^a study of flexibility needs compliances, .*Rod"):
            elastic.flexibility(plain)
        with pytest.raises(TypeError, match=r"^system must be a Model or a system of equations"):
            elastic.flexibility(cast(Any, 3))

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ({"candidates": ["XY"]}, "candidates: there is no compliance 'XY'; there are AB, CD"),
            ({"subsets": [["AB"], ["XY"]]}, "each of subsets: there is no compliance 'XY'"),
            ({"reactions": ["Z"]}, "there is no joint or driver 'Z'; there are A, B, C"),
            ({"reactions": []}, "reactions names no joint; leave it out"),
            ({"tolerance": 0.0}, "tolerance must be greater than zero and less than 1, got 0"),
        ],
    )
    def test_of_names_and_numbers(self, mechanism, given, says):
        with pytest.raises(ValueError, match=f"^{says}"):
            elastic.flexibility(mechanism, **given)

    @pytest.mark.thorough
    def test_where_nothing_is_asked(self):
        model = beam()
        model = eqx.tree_at(lambda m: m.joints, model, model.joints[:2])
        model = eqx.tree_at(lambda m: m.compliances, model, model.compliances[:2])
        with pytest.raises(ValueError, match="every reaction of this system is unique"):
            elastic.flexibility(model)

    def test_of_a_subset_that_was_not_studied(self, study):
        with pytest.raises(ValueError, match=r"^the subset KL was not studied; there are none; AB"):
            study.answer("KL")


def run(*arguments):
    return CliRunner().invoke(app, ["flexibility", *arguments], catch_exceptions=False)


class TestCommandLine:
    def test_document(self, study):
        done = run("elastic-parallelogram", "--json", "--subset", "AB, CD", "--subset", "KL")
        assert (done.exit_code, done.stderr) == (0, "")
        found = json.loads(done.stdout)
        assert found["skipped"] == ["KL", "MN"]
        two, upper = found["subsets"]
        assert two["elastic"] == ["AB", "CD"]
        assert not two["agrees"]
        assert list(two["forces"].values())[:4] == pytest.approx(KNOWN["AB", "CD"], abs=1e-4)
        assert two["joints"]["A"]["force"] == pytest.approx(
            study.answer("AB", "CD").force[0].tolist()
        )
        assert upper["undecided"] == list(BASES)
        assert "forces" not in upper
        assert upper["difference"] is None
        assert found["smallest"] == []
        assert found["remark"].startswith("Chosen")

    def test_table_and_picture(self, tmp_path):
        path = tmp_path / "links.png"
        done = run(
            "elastic-parallelogram", "--reaction", "A", "--reaction", "C", "--plot", str(path)
        )
        assert (done.exit_code, done.stderr) == (0, "")
        assert path.read_bytes().startswith(b"\x89PNG")
        (line,) = [x for x in done.stdout.splitlines() if x.startswith("│AB, CD, EF, GH ")]
        assert line.rstrip(" │").endswith("agrees")
        assert (
            "Smallest subset that agrees with everything elastic within 0.5 %: AB," in done.stdout
        )

    @pytest.mark.parametrize(
        ("options", "fragments"),
        [
            (("parallelogram",), ("needs compliances", "Rod")),
            (("elastic-parallelogram", "--elastic", "XY"), ("no compliance 'XY'", "AB, CD")),
            (("elastic-parallelogram", "--subset", "AB,,CD"), ("--subset", "empty name")),
            (("elastic-parallelogram", "--reaction", "Z"), ("no joint or driver 'Z'",)),
            (("elastic-parallelogram", "--tolerance", "2"), ("--tolerance", "less than 1")),
            (("elastic-parallelogram", "--plot", "x.txt"), ("--plot writes .png, .pdf or .svg",)),
        ],
    )
    def test_refusals(self, options, fragments):
        assert_says(refusal("flexibility", *options), *fragments)


class TestPicture:
    def test_bars_are_the_forces(self, study):
        figure = draw_flexibility(study, ["AB", "GH"])
        (axes,) = figure.axes
        # One container of bars for each part, one bar for each subset that decides.
        heights = [[bar.get_height() for bar in part] for part in axes.containers]
        decided = [own for own in study.answers if not own.undecided]
        assert heights[0] == pytest.approx([own.deformation_forces[0] for own in decided])
        assert heights[1] == pytest.approx([own.deformation_forces[3] for own in decided])
        assert axes.get_ylabel() == "generalized force of the part (N)"
        plt.close(figure)

    def test_refusals(self, study):
        with pytest.raises(ValueError, match=r"^parts: there is no 'XY'; there are AB, CD"):
            draw_flexibility(study, ["XY"])
        with pytest.raises(TypeError, match=r"^parts must be a list of names"):
            draw_flexibility(study, "AB")
