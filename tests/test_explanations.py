"""Dependent sets, releases, singular configurations."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives

import jaxmbs as jm
from jaxmbs import planar, spatial
from jaxmbs._constraints import RowKind
from jaxmbs._solvability import reason, sharing


def report_of(model):
    system = model.system()
    return system, jm.analyze(system, system.reference_q)


def test_single_window_chain_depends_window_by_window():
    _, report = report_of(jm.mechanisms.four_bar_chain_spatial(3))
    found = jm.dependent_sets(report)
    assert found.complete
    # A loop runs through any contiguous range of windows.
    expected = set()
    for first, last in itertools.combinations_with_replacement(range(1, 4), 2):
        bars = [f"{k}{i}" for i in range(first, last + 1) for k in "LR"]
        expected.add(frozenset([f"G{first - 1}", f"G{last}", *bars]))
    assert {frozenset(s) for s in found.sets} == expected


def test_search_for_dependent_sets_says_when_it_was_cut_off():
    _, report = report_of(jm.mechanisms.four_bar_chain_spatial(3))
    complete = jm.dependent_sets(report)
    cut = jm.dependent_sets(report, work=2e5)
    assert not cut.complete
    assert set(cut.sets) < set(complete.sets)


def test_complete_removal_leaves_full_row_rank():
    system, report = report_of(jm.mechanisms.three_crank_parallelogram())
    dropped = jm.criteria.complete_removal(report)
    matrix = np.asarray(system.constraint_matrix(system.reference_q, jnp.zeros(24), 0.0))
    kept = [i for i, n in enumerate(system.structure.row_names) if n not in dropped]
    assert len(dropped) == 7
    assert np.linalg.matrix_rank(matrix[kept]) == len(kept) == 23


def released(system, report, **options):
    return jm.releases(system, system.reference_q, report=report, **options)


def test_robot_needs_a_pair_of_releases():
    system, report = report_of(jm.mechanisms.mobile_robot())
    found = released(system, report)
    assert found.complete
    assert found.searched == 2
    names = {frozenset(o.constraint for o in chosen) for chosen in found.sets}
    steering = ("B", "C", "W1", "W2")
    pairs = {frozenset(p) for p in itertools.product(steering, ("W3", "W4"))}
    assert names == pairs | {frozenset(("W3", "W4"))}


@pytest.mark.thorough
def test_released_door_is_a_door_without_redundancy():
    """The replacement found, built from the public joints, determines every reaction."""
    model = jm.mechanisms.door()
    system, report = report_of(model)
    found = released(system, report)
    wanted = {("lower", "spherical"), ("upper", "point_on_line")}
    chosen = next(s for s in found.sets if {(o.constraint, o.to) for o in s} == wanted)
    assert "; ".join(map(str, chosen)) == (
        "lower: revolute -> spherical; upper: revolute -> point_on_line, axis (0, 0, 1)"
    )
    axis = next(o.axis for o in chosen if o.axis is not None)
    np.testing.assert_allclose(axis, (0.0, 0.0, 1.0), atol=1e-12)
    lower, upper = model.joints
    joints = [
        spatial.Spherical("lower", lower.bodies, vars(lower)["at"]),
        spatial.PointOnLine("upper", upper.bodies, vars(upper)["at"], axis),
    ]
    _, repaired = report_of(jm.Model("door", 3, bodies=model.bodies, joints=joints))
    assert int(repaired.redundancy) == 0
    assert int(repaired.mobility) == int(report.mobility)
    assert bool(repaired.reaction_unique.all())


def test_lines_along_both_axes_are_told_apart():
    """A beam on two pins, one hole of which may become a slot in either direction."""
    beam = planar.Body("beam", mass=1.0, inertia=0.1, position=(0.5, 0.0))
    joints = [
        planar.Revolute(n, ("ground", "beam"), at)
        for n, at in (("left", (0.0, 0.0)), ("right", (1.0, 1.0)))
    ]
    system, report = report_of(jm.Model("beam", 2, bodies=[beam], joints=joints))
    assert str(released(system, report)).splitlines() == [
        f"{name}: revolute -> point_on_line, axis {axis}"
        for name in ("left", "right")
        for axis in ("(1, 0)", "(0, 1)")
    ]


@pytest.mark.parametrize(
    "name", representatives(["bennett", "sarrus", "table", "three-crank-parallelogram"], "table")
)
def test_every_release_found_leaves_full_row_rank(name):
    system, report = report_of(jm.mechanisms.get(name))
    found = released(system, report)
    assert found.sets
    # No two ways read the same: many differ in the direction of an axis alone.
    lines = str(found).splitlines()
    assert len(set(lines)) == len(lines) == len(found.sets)
    q, v = system.reference_q, jnp.zeros_like(system.initial_v)
    matrix = np.asarray(system.constraint_matrix(q, v, 0.0))
    for chosen in found.sets[:20]:
        replaced = {o.constraint: o.rows for o in chosen}
        rows = np.concatenate(
            [replaced.get(c.name, matrix[c.start : c.stop]) for c in system.structure.constraints]
        )
        assert np.linalg.matrix_rank(rows, tol=1e-9) == rows.shape[0] == int(report.rank)


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (
            jm.mechanisms.door,
            "if 'lower' (revolute) becomes a spherical bearing and 'upper' (revolute) becomes a "
            "spherical bearing that slides along (0, 0, 1)",
        ),
        (jm.mechanisms.table, "if 'leg1' (point on plane) is left out"),
        (jm.mechanisms.slider_crank, ""),
    ],
)
def test_what_workshops_would_build_comes_first(mechanism, words):
    system, report = report_of(mechanism())
    found = released(system, report)
    said = "every reaction becomes unique, and the motion stays, "
    assert found.advice() == (words and said + words)


def test_nothing_to_release_where_nothing_is_redundant():
    system, report = report_of(jm.mechanisms.slider_crank())
    found = released(system, report)
    assert found.sets == ()
    assert str(found) == "nothing to release: every reaction is unique"


def test_search_for_releases_says_when_it_was_cut_off():
    system, report = report_of(jm.mechanisms.door())
    found = released(system, report, most=3)
    assert not found.complete
    assert found.searched < 2
    assert str(found).endswith("the search was cut off after all sets of 1")


def singular(model):
    system = model.system()
    return jm.singularity(system, system.reference_q, key=jax.random.key(1))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.thorough
def test_flat_parallelogram_is_singular(sign):
    model = jm.mechanisms.parallelogram(sign * np.pi / 2)
    found = singular(model)
    # Near a singular configuration not every neighbour closes to rounding.
    assert int(jnp.sum(found.closed)) >= 4
    assert (int(found.rank), int(found.generic_rank), bool(found.singular)) == (34, 35, True)
    _, report = report_of(model)
    assert not bool(report.reaction_unique.any())


def test_upright_parallelogram_is_permanently_redundant():
    found = singular(jm.mechanisms.parallelogram(0.3))
    assert (int(found.rank), int(found.generic_rank), bool(found.singular)) == (35, 35, False)


@pytest.mark.thorough
def test_flat_four_bar_is_singular_and_not_redundant_elsewhere():
    """A four-bar parallelogram in one line: two branches meet."""
    at = [(0.0, 0.0), (1.0, 0.0), (3.0, 0.0), (2.0, 0.0)]
    names = ("ground", "a", "b", "c", "ground")
    bodies = [
        planar.Body(names[i], mass=1.0, inertia=0.1, position=np.mean([at[i - 1], at[i]], axis=0))
        for i in (1, 2, 3)
    ]
    joints = [planar.Revolute(f"J{i}", (names[i], names[i + 1]), at[i]) for i in range(4)]
    found = singular(jm.Model("flat", 2, bodies=bodies, joints=joints))
    assert (int(found.rank), int(found.generic_rank), bool(found.singular)) == (7, 8, True)


def test_mechanism_that_cannot_move_is_compared_with_itself():
    found = singular(jm.mechanisms.table())
    assert (int(found.rank), int(found.generic_rank), bool(found.singular)) == (6, 6, False)


def as_generalized(system):
    """The same planar system written in generalized coordinates."""
    structure = system.structure

    def rows(info):
        geometric = list(structure.geometric_rows)
        own = np.arange(info.start, info.stop)
        if structure.rows[info.start].kind is RowKind.position:
            kept = np.array([geometric.index(r) for r in own])
            return jm.generalized.PositionConstraint(
                lambda q, t, kept=kept: system.position_residual(q, t)[kept], len(own)
            )
        return jm.generalized.VelocityConstraint(
            lambda q, v, t, own=own: system.velocity_residual(q, v, t)[own], len(own)
        )

    names = [f"{b.name} {k}" for b in structure.bodies for k in ("x", "y", "angle")]
    lengths = [n for n in names if not n.endswith("angle")]
    return jm.GeneralizedSystem(
        names,
        mass_matrix=system.mass_matrix,
        force=system.force,
        constraints={info.name: rows(info) for info in structure.constraints},
        lengths=lengths,
        length=system.characteristic_length(),
        bodies={
            b.name: ([f"{b.name} x", f"{b.name} y"], [f"{b.name} angle"]) for b in structure.bodies
        },
    )


def assert_alike(mine, theirs):
    for field in ("reaction_unique", "combination_unique", "subset_unique"):
        np.testing.assert_array_equal(getattr(mine, field), getattr(theirs, field))
    assert jm.dependent_sets(mine) == jm.dependent_sets(theirs)


def test_every_question_can_be_asked_of_a_generalized_cart():
    """With two wheels on one axle, and a trailer."""
    bodies = [
        planar.Body("cart", mass=2.0, inertia=0.3, position=(0.0, 0.0)),
        planar.Body("trailer", mass=1.0, inertia=0.1, position=(-1.0, 0.0)),
    ]
    wheels = {"W1": ("cart", (0.0, 0.3)), "W2": ("cart", (0.0, -0.3)), "W3": ("trailer", (-1.2, 0))}
    edges = [planar.KnifeEdge(name, on, at, (1.0, 0.0)) for name, (on, at) in wheels.items()]
    hitch = planar.Revolute("hitch", ("cart", "trailer"), (-0.5, 0.0))
    system = jm.MultibodySystem(bodies, [*edges, hitch])
    general, q = as_generalized(system), system.reference_q
    options = {"subsets": [("W1", "W2")], "combinations": ["W1 - W2", "W1 + W2"]}
    theirs, mine = (jm.analyze(either, q, **options) for either in (system, general))
    assert int(mine.rank) == int(theirs.rank) == 4
    assert mine.combination_unique.tolist() == [False, True]
    assert_alike(mine, theirs)
    assert bool(mine.on_body("hitch", "trailer").all())
    assert not bool(mine.on_body("W1", "cart")[0])
    # Of a function it is not known what else it could be: only one-row constraints may go.
    found = jm.releases(general, q, report=mine)
    names = {frozenset(o.constraint for o in chosen) for chosen in found.sets}
    assert names == {frozenset(("W1",)), frozenset(("W2",))}
    near = jm.singularity(general, q, key=jax.random.key(0), samples=4)
    assert (int(near.rank), int(near.generic_rank)) == (4, 4)


@pytest.mark.thorough
def test_every_question_can_be_asked_of_a_generalized_system():
    system = jm.mechanisms.mobile_robot().system()
    general = as_generalized(system)
    q = system.reference_q
    options = {"subsets": [("B", "W1")], "combinations": ["W1 - W2", "W1 + W2"]}
    theirs = jm.analyze(system, q, **options)
    for criterion in (jm.criteria.RankComparison(), jm.criteria.QR()):
        mine = jm.analyze(general, q, criterion=criterion, **options)
        assert int(mine.rank) == int(theirs.rank) == 20
        assert_alike(mine, theirs)
        assert bool(mine.on_body("A", "trolley").all())
        assert not bool(mine.on_body("B", "platform")[0])
    # Of a function it is not known what else it could be: only one-row constraints may go.
    found = jm.releases(general, q, report=mine)
    names = {frozenset(o.constraint for o in chosen) for chosen in found.sets}
    assert frozenset(("W1", "W3")) in names
    near = jm.singularity(general, q, key=jax.random.key(0), samples=4)
    assert (int(near.rank), int(near.generic_rank)) == (20, 20)


SIZES = (1, 2, 3, 1, 2, 1, 2)


@functools.cache
def seven_conditions():
    """A report on seven constraints of these sizes, whose null space tests replace."""

    def rows(count):
        return jm.generalized.VelocityConstraint(lambda q, v, t: jnp.tile(v[0], count), count)

    system = jm.GeneralizedSystem(
        ["x"],
        mass_matrix=jnp.eye(1),
        force=jnp.zeros(1),
        constraints={f"c{k}": rows(size) for k, size in enumerate(SIZES)},
    )
    return jm.analyze(system, jnp.zeros(1))


def with_null_space(basis):
    report = seven_conditions()
    rows, count = basis.shape
    whole = np.concatenate([np.zeros((rows, rows - count)), np.linalg.qr(basis)[0]], axis=1)
    rank = jnp.asarray(rows - count, report.rank.dtype)
    return eqx.tree_at(lambda r: (r.null_space, r.rank), report, (jnp.asarray(whole), rank))


def separated(basis):
    """By definition: constraints are apart if the null space is the sum of what lies on both sides
    of some division between them. All divisions are tried."""
    owner = np.repeat(np.arange(len(SIZES)), SIZES)

    def dimension(side):
        outside = basis[~np.isin(owner, side)]
        return basis.shape[1] - (np.linalg.matrix_rank(outside, tol=1e-9) if len(outside) else 0)

    groups = [set(range(len(SIZES)))]
    for size in range(1, len(SIZES)):
        for side in itertools.combinations(range(len(SIZES)), size):
            other = [k for k in range(len(SIZES)) if k not in side]
            if dimension(side) + dimension(other) == basis.shape[1]:
                groups = [p for g in groups for p in (g & {*side}, g - {*side}) if p]
    return {tuple(f"c{k}" for k in sorted(g)) for g in groups if len(g) > 1}


@pytest.mark.parametrize("seed", range(12))
def test_who_shares_is_what_no_division_separates(seed):
    """Random null spaces: of few circuits, of chains of them, of what is redundant in itself."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(len(SIZES)), SIZES)
    vectors = []
    for _ in range(rng.integers(1, 5)):
        inside = rng.choice(len(SIZES), size=rng.integers(1, 4), replace=False)
        free = rng.normal(size=len(owner))
        vectors.append(np.where(np.isin(owner, inside) & (rng.random(len(owner)) < 0.8), free, 0))
    basis = np.stack([x / np.linalg.norm(x) for x in vectors if np.any(x)], axis=1)
    basis = np.linalg.svd(basis, full_matrices=False)[0][:, : np.linalg.matrix_rank(basis)]
    found = sharing(with_null_space(basis @ rng.normal(size=(basis.shape[1],) * 2)))
    assert {*found} == separated(basis)


THREE_HINGES = [0.2, 1.0, 1.8]


class TestWhoShares:
    def test_all_three_hinges_of_a_door(self):
        door = spatial.Body("door", mass=20.0, inertia=(5.0, 2.0, 4.0), position=(0.4, 0.0, 1.0))
        names = ("bottom", "middle", "top")
        hinges = [
            spatial.Revolute(name, ("ground", "door"), (0.0, 0.0, z), axis=(0.0, 0.0, 1.0))
            for name, z in zip(names, THREE_HINGES, strict=True)
        ]
        _, report = report_of(jm.Model("door", 3, bodies=[door], joints=hinges))
        assert sharing(report) == (names,)
        assert reason(report, sharing(report), "bottom") == "shares its load with middle, top"

    @pytest.mark.parametrize(
        "make",
        [
            jm.mechanisms.mobile_robot,
            jm.mechanisms.three_crank_parallelogram,
            jm.mechanisms.table,
            lambda: jm.mechanisms.four_bar_chain_spatial(3),
        ],
    )
    def test_it_joins_the_dependent_sets_that_overlap(self, make):
        _, report = report_of(make())
        groups: list[set[str]] = []
        for names in jm.dependent_sets(report).sets:
            touched = [group for group in groups if group & {*names}]
            groups = [group for group in groups if group not in touched]
            groups.append({*names}.union(*touched))
        assert {*map(frozenset, sharing(report))} == {frozenset(g) for g in groups if len(g) > 1}
        for own in sharing(report):
            for name in own:
                text = reason(report, sharing(report), name)
                others = [other for other in own if other != name]
                assert text.startswith("shares its load with " + ", ".join(others[:12]))
                assert (f" and {len(others) - 12} more" in text) == (len(others) > 12)


@pytest.mark.thorough
def test_search_for_releases_ends_with_many_redundant_rows():
    """Of 36 redundant rows at 37 joints, sets that cannot save as many are not tried: there are
    some 1e10 of nine joints or fewer, with several replacements each."""
    system = jm.mechanisms.four_bar_chain_spatial(12).system()
    report = jm.analyze(system, system.reference_q)
    assert int(report.redundancy) == 36
    found = jm.releases(system, system.reference_q, report=report, most=3)
    assert not found.complete
    assert found.searched >= 8
