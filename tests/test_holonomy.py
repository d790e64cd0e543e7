"""Which rows on velocities are holonomic: closed forms, and an oracle in NumPy."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from holonomy_answers import ask, KEY, ROUNDING, verdict

import jaxmbs as jm
from jaxmbs.results import RESULTS


def in_coordinates(function, n, rows, **keys):
    """A system in n coordinates, lengths of 1 m, held by velocity rows."""
    return jm.GeneralizedSystem(
        [f"x{k}" for k in range(n)],
        mass_matrix=lambda q: jnp.eye(n),
        force=lambda q, v, t: jnp.zeros(n),
        constraints={"rows": jm.generalized.VelocityConstraint(function, rows)},
        **keys,
    )


# ---------------------------------------------------------------------------------------------
# Rows whose coefficients are polynomials: other numbers of one program
# ---------------------------------------------------------------------------------------------


class Polynomial(eqx.Module):
    """Forms w = (a + B z + z^T C z) dz in z = (q, t), as rows on v."""

    constant: Any
    linear: Any
    square: Any

    def __call__(self, q, v, t):
        z = jnp.append(q, t)
        form = self.constant + self.linear @ z + jnp.einsum("rijk,j,k->ri", self.square, z, z)
        return form[:, :-1] @ v + form[:, -1]

    def at(self, z):
        """The forms, in NumPy."""
        return self.constant + self.linear @ z + np.einsum("rijk,j,k->ri", self.square, z, z)


def forms(n, rows, *entries):
    """Polynomials from entries (row, place, factors, coefficient), places of coordinates 0 to n - 1
    and of time n: at most two factors."""
    made = Polynomial(*(np.zeros((rows,) + (n + 1,) * k) for k in (1, 2, 3)))
    for row, place, factors, coefficient in entries:
        array = (made.constant, made.linear, made.square)[len(factors)]
        array[(row, place, *factors)] += coefficient
    return made


def random_forms(seed, n, rows, moving=True):
    """With coefficients that depend on time, or do not and leave dt out."""
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal((rows,) + (n + 1,) * k) for k in (1, 2, 3)]
    if not moving:
        arrays[0][:, n] = arrays[1][:, n] = arrays[2][:, n] = 0.0
        arrays[1][..., n] = arrays[2][..., n] = 0.0
        arrays[2][:, :, n] = 0.0
    return Polynomial(*arrays)


def exact_forms(seed, n, rows, moving=True):
    """f dg with f linear and g quadratic: f (b + 2 S z) dz."""
    rng = np.random.default_rng(seed)
    b, symmetric = rng.standard_normal((rows, n + 1)), rng.standard_normal((rows, n + 1, n + 1))
    symmetric = symmetric + np.swapaxes(symmetric, 1, 2)
    slope = 0.3 * rng.standard_normal((rows, n + 1))
    if not moving:
        b[:, n] = slope[:, n] = 0.0
        symmetric[:, n] = symmetric[:, :, n] = 0.0
    product = np.einsum("rij,rk->rijk", 2 * symmetric, slope)
    return Polynomial(b, 2 * symmetric + b[:, :, None] * slope[:, None], product)


def mixed(matrix, *parts):
    """Rows of several, combined by a matrix."""
    stacked = [np.concatenate(arrays) for arrays in zip(*map(arrays_of, parts), strict=True)]
    return Polynomial(*(np.tensordot(matrix, array, 1) for array in stacked))


def arrays_of(form):
    return form.constant, form.linear, form.square


@pytest.fixture(scope="module")
def one_row():
    """One row in three coordinates."""
    return in_coordinates(forms(3, 1), 3, 1)


@pytest.fixture(scope="module")
def three_rows():
    """Three rows in five coordinates."""
    return in_coordinates(forms(5, 3), 5, 3)


def with_forms(system, form):
    def functions(s):
        (group,) = s.constraint_groups
        return group.primitives[0].function

    stacked = jax.tree.map(lambda x: jnp.asarray(x)[None], form)
    return eqx.tree_at(functions, system, stacked)


def frobenius(form, z, step=1e-3):
    """The measure by another way: brackets of a basis of the null space, by central differences
    (exact for quadratic coefficients)."""
    n = z.size
    matrix = form.at(z)
    slope = np.stack(
        [(form.at(z + h) - form.at(z - h)) / (2 * step) for h in step * np.eye(n)], axis=-1
    )
    rank = np.linalg.matrix_rank(matrix, tol=1e-9)
    basis = np.linalg.svd(matrix)[2][rank:]
    inverse = np.linalg.pinv(matrix, rcond=1e-9)
    square = 0.0
    for i, first in enumerate(basis):
        for second in basis[:i]:
            change = slope @ first @ second - slope @ second @ first
            square += np.sum((inverse @ change) ** 2)
    return math.sqrt(square)


class TestOneRow:
    """In three coordinates, where the condition is Lemma 1 of Zhao et al. 2018."""

    @pytest.mark.parametrize(
        ("entries", "expected", "scleronomic"),
        [
            # Their examples 2, 3 and 4: dx + 2 y dy + dz = 0, = dt, and dx + 2 z dy + dz = 0.
            ([(0, 1, (1,), 2.0)], (True, True, 1, 1), True),
            ([(0, 1, (1,), 2.0), (0, 3, (), -1.0)], (True, True, 1, 1), False),
            ([(0, 1, (2,), 2.0)], (False, False, 0, 1), True),
        ],
        ids=["example 2", "example 3", "example 4"],
    )
    def test_examples_of_the_review(self, one_row, entries, expected, scleronomic):
        form = forms(3, 1, (0, 0, (), 1.0), (0, 2, (), 1.0), *entries)
        found = ask(with_forms(one_row, form), [0.3, -0.2, 0.5])
        assert verdict(found) == expected
        assert found.scleronomic.tolist() == [scleronomic]
        assert bool(found.holonomic("rows")) is expected[0]
        assert not bool(found.doubtful)

    @pytest.mark.parametrize("seed", range(4))
    def test_lemma_1(self, one_row, seed):
        """|w . curl w| / |w|^2, of which the lemma asks whether it is zero."""
        form = random_forms(seed, 3, 1, moving=False)
        q = np.random.default_rng(seed).standard_normal(3)
        (alpha, beta, gamma), slope = form.at(np.append(q, 0.0))[0, :3], np.zeros((3, 3))
        for k, h in enumerate(0.5 * np.eye(4)[:3]):
            z = np.append(q, 0.0)
            slope[:, k] = (form.at(z + h) - form.at(z - h))[0, :3]
        lemma = (
            alpha * (slope[1, 2] - slope[2, 1])
            + beta * (slope[2, 0] - slope[0, 2])
            + gamma * (slope[0, 1] - slope[1, 0])
        )
        expected = abs(lemma) / (alpha**2 + beta**2 + gamma**2)
        found = ask(with_forms(one_row, form), q)
        assert expected > 1e-3
        np.testing.assert_allclose(found.together.measure_here, expected, rtol=1e-9)
        assert verdict(found) == (False, False, 0, 1)
        assert found.scleronomic.tolist() == [True]

    @pytest.mark.parametrize("moving", [False, True])
    def test_with_an_integrating_factor(self, one_row, moving):
        """f dg is holonomic, and depends on time where g does."""
        found = ask(
            with_forms(one_row, exact_forms(1, 3, 1, moving)), [0.3, -0.2, 0.5], 0.4 * moving
        )
        assert verdict(found) == (True, True, 1, 1)
        assert found.scleronomic.tolist() == [not moving]
        assert float(found.together.measure) < ROUNDING

    def test_a_factor_of_time_is_no_matter(self, one_row):
        """(1 + t / 2) dx = 0 is as scleronomic as dx = 0, and dx + t dy = 0 is not."""
        common = forms(3, 1, (0, 0, (), 1.0), (0, 0, (3,), 0.5))
        turning = forms(3, 1, (0, 0, (), 1.0), (0, 1, (3,), 1.0))
        assert ask(with_forms(one_row, common), [0.1, 0.2, 0.3]).scleronomic.tolist() == [True]
        found = ask(with_forms(one_row, turning), [0.1, 0.2, 0.3])
        assert found.scleronomic.tolist() == [False]
        # (X, Y) = (d/dt, d/dy): frozen at any time it could be integrated.
        assert verdict(found) == (False, False, 0, 1)

    @pytest.mark.parametrize(
        "entry", [(0, 0, (1, 1), -1.0), (0, 0, (2, 1), -1.0)], ids=["y^2", "z y"]
    )
    def test_integrable_at_a_point_alone(self, one_row, entry):
        """dz - y^2 dx at y = 0; dz - z y dx where z = 0, a surface that it never leaves."""
        found = ask(with_forms(one_row, forms(3, 1, (0, 2, (), 1.0), entry)), [0.3, 0.0, 0.0])
        assert verdict(found) == (False, True, 0, 1)
        assert float(found.together.measure_here) == 0.0
        assert "Integrable in this configuration and not in those nearby: rows" in str(found)

    def test_where_a_row_vanishes(self, one_row):
        """x (dz - y dx) says nothing at x = 0."""
        form = forms(3, 1, (0, 2, (0,), 1.0), (0, 0, (0, 1), -1.0))
        found = ask(with_forms(one_row, form), [0.0, 0.2, 0.3])
        assert verdict(found) == (False, None, 0, 1)
        assert "nonholonomic nearby (singular here)" in str(found)

    def test_by_a_hair(self, one_row):
        """A contact form with a coefficient of 1e-8."""
        form = forms(3, 1, (0, 2, (), 1.0), (0, 0, (1,), -1e-8))
        found = ask(with_forms(one_row, form), [0.1, 0.2, 0.3])
        assert verdict(found)[0] is False
        assert bool(found.doubtful)
        assert "Doubtful" in str(found)
        exact = ask(with_forms(one_row, form), [0.1, 0.2, 0.3], tolerance=1e-6)
        assert verdict(exact)[0] is True

    @pytest.mark.parametrize("factor", [1e-20, 1e20])
    def test_the_size_of_a_row_is_no_matter(self, one_row, factor):
        form, q = random_forms(2, 3, 1), [0.3, -0.2, 0.5]
        scaled = mixed(np.array([[factor]]), form)
        one, other = (ask(with_forms(one_row, f), q, 0.1) for f in (form, scaled))
        np.testing.assert_allclose(one.together.measure, other.together.measure, rtol=1e-9)
        assert verdict(one) == verdict(other)

    def test_batches(self, one_row):
        """Of one program; NaN decides nothing."""
        system = with_forms(one_row, forms(3, 1, (0, 2, (), 1.0), (0, 0, (1, 1), -1.0)))
        q = jnp.array([[0.0, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, jnp.nan, 0.0]])
        found = jax.vmap(lambda q: jm.holonomy(system, q, 0.1, key=KEY))(q)
        assert found.together.here.tolist() == [True, False, None]
        assert found.together.integrable.tolist() == [False, False, None]
        assert found.holonomic("rows").tolist() == [False, False, None]
        assert found.scleronomic.tolist() == [[True], [True], [None]]
        expected = [0.0, 1.0 / (1.0 + 0.5**4)]  # 2 y / (1 + y^4)
        np.testing.assert_allclose(found.together.measure_here[:2], expected, atol=ROUNDING)
        assert str(found) == "3 configurations (index them to print one)"
        last = jax.tree.map(lambda x: x[2], found)
        assert last.result == RESULTS.state_not_valid
        assert str(last).startswith("Nothing was decided.")


class TestSeveralRows:
    """Three rows in five coordinates."""

    Q, T = (0.3, -0.2, 0.5, 0.1, -0.4), 0.2

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.thorough
    def test_measure_against_the_oracle(self, three_rows, seed):
        form = random_forms(seed, 5, 3)
        found = ask(with_forms(three_rows, form), self.Q, self.T)
        expected = frobenius(form, np.append(self.Q, self.T))
        np.testing.assert_allclose(found.together.measure_here, expected, rtol=1e-8)
        assert verdict(found) == (False, False, 0, 3)

    @pytest.mark.parametrize("seed", range(2))
    def test_combinations_of_exact_rows(self, three_rows, seed):
        matrix = np.random.default_rng(seed).standard_normal((3, 3))
        form = mixed(matrix, exact_forms(seed, 5, 3))
        found = ask(with_forms(three_rows, form), self.Q, self.T)
        assert verdict(found) == (True, True, 3, 3)
        assert found.scleronomic.tolist() == [False]
        assert frobenius(form, np.append(self.Q, self.T)) < 1e-9

    @pytest.mark.parametrize("exact", [1, 2])
    def test_some_combinations_are_exact(self, three_rows, exact):
        """Hidden among the others, of which none can be integrated."""
        matrix = np.random.default_rng(exact).standard_normal((3, 3))
        parts = exact_forms(exact, 5, exact), random_forms(exact, 5, 3 - exact)
        found = ask(with_forms(three_rows, mixed(matrix, *parts)), self.Q, self.T)
        assert verdict(found) == (False, False, exact, 3)

    def test_rows_of_which_only_brackets_of_brackets_tell(self, three_rows):
        """dy - z dx, dz - w dx, dw - u dx: the brackets of what two rows leave obey the third, and
        in the end none can be integrated. With w constant all can, with u constant that alone."""
        first = [(0, 1, (), 1.0), (0, 0, (2,), -1.0), (1, 2, (), 1.0), (1, 0, (3,), -1.0)]
        last = [(2, 3, (), 1.0), (2, 0, (4,), -1.0)]
        found = ask(with_forms(three_rows, forms(5, 3, *first, *last)), self.Q)
        assert verdict(found) == (False, False, 0, 3)
        assert "Degrees of freedom: 2 of velocities, 5 of the configurations" in str(found)
        found = ask(with_forms(three_rows, forms(5, 3, *first, (2, 3, (), 1.0))), self.Q)
        assert verdict(found) == (True, True, 3, 3)
        found = ask(with_forms(three_rows, forms(5, 3, *first, (2, 4, (), 1.0))), self.Q)
        assert verdict(found) == (False, False, 1, 3)

    def test_doubled_rows(self, three_rows):
        """Rows that repeat others in other units change nothing."""
        contact = forms(5, 1, (0, 1, (), 1.0), (0, 0, (2,), -1.0))
        exact = exact_forms(4, 5, 1)
        once = ask(with_forms(three_rows, mixed(np.eye(3, 2), contact, exact)), self.Q, self.T)
        matrix = np.array([[1.0, 0.0], [1e-3, 1e-3], [-1e3, 2e3]])
        again = ask(with_forms(three_rows, mixed(matrix, contact, exact)), self.Q, self.T)
        for found in (once, again):
            assert verdict(found) == (False, False, 1, 2)
        measures = [found.together.measure_here for found in (once, again)]
        np.testing.assert_allclose(*measures, rtol=1e-9)

    def test_no_rows_at_all(self, three_rows):
        found = ask(with_forms(three_rows, forms(5, 3)), self.Q)
        assert verdict(found) == (True, True, 0, 0)

    def test_rows_that_contradict_each_other(self, three_rows):
        """dx = 0 and dx = dt."""
        entries = [(0, 0, (), 1.0), (1, 0, (), 1.0), (1, 5, (), -1.0), (2, 1, (), 1.0)]
        found = ask(with_forms(three_rows, forms(5, 3, *entries)), self.Q)
        assert verdict(found)[:2] == (None, None)
        assert "no velocity satisfies it" in str(found)


@pytest.mark.thorough
def test_two_wheels_on_an_axle():
    """Coordinates x, y, heading and the angles of two wheels of radius r at the distance b from the
    middle. The relation r (first - second) = 2 b heading is what can be integrated of three rows;
    of one wheel alone, a coin, nothing."""

    def rows(q, v):
        along = jnp.array([jnp.cos(q[2]), jnp.sin(q[2])])
        across = jnp.array([-along[1], along[0]])
        forward, r, b = along @ v[:2], 0.3, 0.5
        own = [across @ v[:2], forward + b * v[2] - r * v[3], forward - b * v[2] - r * v[4]]
        return jnp.stack(own)

    class Mixed(eqx.Module):
        mixing: Any

        def __call__(self, q, v, t):
            del t
            return self.mixing @ rows(q, v)

    system = in_coordinates(Mixed(jnp.eye(3)), 5, 3, lengths=("x0", "x1"))

    def of(mixing, q=(0.4, 0.3, 0.7, 0.2, 0.1)):
        return ask(with_forms(system, Mixed(np.array(mixing, float))), q)

    axle = of(np.eye(3))
    assert verdict(axle) == (False, False, 1, 3)
    coin = of([[1, 0, 0], [0, 1, 0], [2, 1e3, 0]])
    assert verdict(coin) == (False, False, 0, 2)
    assert verdict(of([[0, 1, -1], [0, 0, 0], [0, 2, -2]])) == (True, True, 1, 1)
    # The edge alone: the way and the turn of unit length make a bracket across of unit length.
    edge = of([[1, 0, 0], [0, 0, 0], [0, 0, 0]])
    np.testing.assert_allclose(edge.together.measure_here, 1.0, rtol=1e-12)
    # Ten thousand kilometres away.
    far = of(np.eye(3), (1e7, -1e7, 0.7, 0.2, 0.1))
    assert verdict(far) == verdict(axle)
    np.testing.assert_allclose(far.together.measure_here, axle.together.measure_here, rtol=1e-9)


# ---------------------------------------------------------------------------------------------
# What is not asked, and what is refused
# ---------------------------------------------------------------------------------------------


def test_rows_that_are_not_linear():
    """A speed of 1, and an edge: the edge is decided, the system is not."""
    system = jm.GeneralizedSystem(
        ["x", "y", "angle"],
        mass_matrix=lambda q: jnp.eye(3),
        force=lambda q, v, t: jnp.zeros(3),
        constraints={
            "speed": jm.generalized.VelocityConstraint(
                lambda q, v, t: jnp.linalg.norm(v[:2]) - 1.0
            ),
            "edge": jm.generalized.VelocityConstraint(
                lambda q, v, t: v[1] * jnp.cos(q[2]) - v[0] * jnp.sin(q[2])
            ),
        },
    )
    found = ask(system, [0.1, 0.2, 0.3])
    assert found.linear.tolist() == [False, True]
    assert found.each.integrable.tolist() == [None, False]
    assert found.scleronomic.tolist() == [None, True]
    assert verdict(found) == (None, None, -1, -1)
    assert "not decided (not linear in the velocities)" in str(found)
    assert "Of all velocity rows together it is not decided." in str(found)


@pytest.mark.thorough
def test_without_velocity_rows():
    """A geometric constraint is scleronomic or rheonomic."""
    system = jm.GeneralizedSystem(
        ["x", "y", "z"],
        mass_matrix=lambda q: jnp.eye(3),
        force=lambda q, v, t: jnp.zeros(3),
        constraints={
            "sphere": jm.generalized.PositionConstraint(lambda q, t: q @ q - 1.0),
            "plane": jm.generalized.PositionConstraint(lambda q, t: q[0] - 0.1 * jnp.sin(t)),
        },
    )
    found = ask(system, [0.0, 0.6, 0.8])
    assert found.names == ()
    assert verdict(found) == (True, True, 0, 0)
    assert found.scleronomic.tolist() == [True, False]
    assert found.holonomic("plane").tolist() is True
    text = str(found)
    assert "The system is holonomic: it has no velocity rows. Rheonomic: plane." in text
    assert not bool(found.doubtful)
