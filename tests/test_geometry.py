"""Quaternions, frames, twists and retractions against closed forms and SciPy's rotations."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import first_difference, TOLERANCE
from scipy.spatial.transform import Rotation

from jaxmbs import _geometry as geometry
from jaxmbs._geometry import PlanarFrame, SpatialFrame


# Products of a few numbers of order one, each rounded.
ROUNDING = 1e-14

FLAT = geometry.FlatCoordinates(("lift", "bend"), (geometry.LENGTH, geometry.NUMBER))
COORDINATES = [
    geometry.PlanarPose(),
    geometry.PlanarPoint(),
    geometry.SpatialPose(),
    geometry.SpatialPoint(),
    FLAT,
    geometry.ProductCoordinates((geometry.PlanarPose(), FLAT)),
    geometry.ProductCoordinates((FLAT, geometry.SpatialPose(), geometry.SpatialPose())),
]


def quaternions(rng, count=20):
    return Rotation.from_quat(rng.normal(size=(count, 4))).as_quat(scalar_first=True)


def matrix(quaternion):
    return Rotation.from_quat(np.array(quaternion), scalar_first=True).as_matrix()


def batched(function):
    return jax.jit(jax.vmap(function))


def assert_close(actual, expected, atol=ROUNDING):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


class TestQuaternions:
    def test_rotation_matrix(self, rng):
        q = quaternions(rng)
        lengths = rng.uniform(1e-3, 1e3, (len(q), 1))
        actual = batched(geometry.rotation_from_quaternion)(jnp.asarray(q * lengths))
        assert_close(actual, matrix(q))

    def test_product_applies_the_second_first(self, rng):
        a, b = quaternions(rng), quaternions(rng)
        product = batched(geometry.quaternion_product)(jnp.asarray(a), jnp.asarray(b))
        assert_close(matrix(product), matrix(a) @ matrix(b))
        assert_close(jnp.linalg.norm(product, axis=1), 1.0)

    def test_from_rotation_inverts(self, rng):
        # Half turns about each axis leave a single entry to divide by.
        q = np.concatenate([quaternions(rng), np.eye(4), [[0.0, 0.6, 0.0, 0.8]]])
        actual = batched(geometry.quaternion_from_rotation)(jnp.asarray(matrix(q)))
        assert np.all(actual[:, 0] >= 0)
        sign = np.where(q[:, :1] < 0, -1.0, 1.0)
        rest = np.sign(np.sum(actual * q, axis=1, keepdims=True))
        assert_close(actual, q * np.where(q[:, :1] == 0, rest, sign))

    def test_exponential(self, rng):
        axes = rng.normal(size=(9, 3))
        axes /= np.linalg.norm(axes, axis=1, keepdims=True)
        # On both sides of the Taylor branch (angle 1e-4), and beyond full turns.
        angles = np.array([0.0, 1e-12, 9.9e-5, 1.01e-4, 1e-2, 1.0, np.pi, 6.0, 20.0])
        vectors = axes * angles[:, None]
        actual = batched(geometry.quaternion_exponential)(jnp.asarray(vectors))
        half = angles[:, None] / 2
        assert_close(actual, np.concatenate([np.cos(half), np.sin(half) * axes], axis=1))
        relative = np.linalg.norm(actual[1:4, 1:], axis=1) / (angles[1:4] / 2)
        assert_close(relative, np.sinc(angles[1:4] / 2 / np.pi))

    def test_exponential_is_smooth_at_zero(self):
        zero = jnp.zeros(3)
        slope = jax.jit(jax.jacfwd(geometry.quaternion_exponential))(zero)
        assert_close(slope, np.vstack([np.zeros(3), 0.5 * np.eye(3)]))
        bend = jax.jit(jax.jacfwd(jax.jacfwd(geometry.quaternion_exponential)))(zero)
        assert_close(bend, np.stack([-0.25 * np.eye(3), *np.zeros((3, 3, 3))]))
        reverse = jax.jit(jax.jacrev(geometry.quaternion_exponential))(zero)
        assert_close(reverse, slope)

    def test_relative_rotation_vector(self, rng):
        axes = rng.normal(size=(6, 3))
        axes /= np.linalg.norm(axes, axis=1, keepdims=True)
        angles = np.array([0.0, 1e-9, 1e-3, 1.0, -2.0, 3.0])[:, None]
        turns = Rotation.from_rotvec(axes * angles).as_matrix()
        actual = batched(geometry.relative_rotation_vector)(jnp.asarray(turns))
        # Near half a turn the divisor 1 + trace = 4 cos^2(angle / 2) = 0.02 costs two digits.
        assert_close(actual, 2 * np.tan(angles / 2) * axes, 1e-12)


class TestTriads:
    # Axis, and the world axis of which n1 is made (`io/REFERENCE.md`: the first on a tie).
    AXES = (
        ((0, 0, 1), 0),
        ((0, 0, -3), 0),
        ((1, 0, 0), 1),
        ((0, -2, 0), 0),
        ((1, 1, 0), 2),
        ((1, 1, 1), 0),
        ((-1, 1, 1), 0),
        ((3, 1, 1), 1),
        ((3, 2, -1), 2),
        ((0.2, 0.9, -0.1), 2),
    )

    @pytest.mark.parametrize(("axis", "least"), AXES)
    def test_directions_across_an_axis(self, axis, least):
        axis = np.array(axis, float)
        n1, n2, unit = np.array(geometry.axis_triad(jnp.asarray(axis))).T
        expected = axis / np.linalg.norm(axis)
        across = np.eye(3)[least] - expected[least] * expected
        across /= np.linalg.norm(across)
        assert_close(unit, expected)
        assert_close(n1, across)
        assert_close(n2, np.cross(expected, across))

    @pytest.mark.parametrize(
        ("axis", "normal"),
        [
            ((2, 0), (0, 1)),
            ((-2, 0), (0, 1)),
            ((0, 1), (1, 0)),
            ((0, -1), (1, 0)),
            ((3, 4), (4, -3)),
            ((4, 3), (-3, 4)),
            ((1, 1), (1, -1)),
            ((-1, 1), (1, 1)),
        ],
    )
    def test_direction_across_a_line(self, axis, normal):
        actual = geometry.across_line(jnp.asarray(axis, float))
        assert_close(actual, np.array(normal) / np.linalg.norm(normal))


class TestFrames:
    def frames(self, rng, dimension) -> Any:
        if dimension == 2:
            return PlanarFrame(jnp.asarray(rng.normal(size=2)), jnp.asarray(rng.normal() * 5))
        (q,) = quaternions(rng, 1)
        return SpatialFrame(jnp.asarray(rng.normal(size=3)), jnp.asarray(matrix(q)))

    @pytest.mark.parametrize("dimension", [2, 3])
    def test_relative_undoes_after(self, dimension, rng):
        outer, inner = self.frames(rng, dimension), self.frames(rng, dimension)
        world = outer.compose(inner)
        assert_close(world.origin, outer.origin + outer.rotation @ inner.origin)
        assert_close(world.rotation, outer.rotation @ inner.rotation)
        back = world.relative(outer)
        for actual, expected in zip(jax.tree.leaves(back), jax.tree.leaves(inner), strict=True):
            assert_close(actual, expected)

    def test_planar_angle_is_never_wrapped(self):
        turned = PlanarFrame(jnp.zeros(2), jnp.asarray(4.0))
        assert_close(turned.compose(turned).angle, 8.0)

    def test_spatial_twist(self, rng):
        frame = self.frames(rng, 3)
        spin, drift = rng.normal(size=(2, 3))
        rate = SpatialFrame(
            jnp.asarray(drift), jnp.asarray(np.cross(spin, np.array(frame.rotation).T).T)
        )
        twist = frame.twist(rate)
        assert_close(twist.linear, drift)
        assert_close(twist.angular, spin)
        expected = np.concatenate([drift, np.array(frame.rotation).T @ spin])
        assert_close(frame.components(twist), expected)

    @pytest.mark.parametrize("dimension", [2, 3])
    def test_wrench_is_the_covector_of_a_twist(self, dimension, rng):
        frame, rate = self.frames(rng, dimension), self.frames(rng, dimension)
        force, torque = rng.normal(size=dimension), rng.normal(size=1 if dimension == 2 else 3)
        wrench = frame.wrench(jnp.asarray(force), jnp.asarray(np.squeeze(torque)))
        twist = frame.twist(rate)
        power = sum(
            jnp.sum(a * b)
            for a, b in zip(jax.tree.leaves(wrench), jax.tree.leaves(twist), strict=True)
        )
        angular = np.atleast_1d(np.array(twist.angular))
        assert_close(power, force @ np.array(twist.linear) + torque @ angular)


class TestCoordinates:
    def state(self, kind, rng):
        q, v = rng.normal(size=kind.nq), rng.normal(size=kind.nv)
        for places in kind.quaternions:
            q[list(places)] /= np.linalg.norm(q[list(places)])
        return jnp.asarray(q), jnp.asarray(v)

    @pytest.mark.parametrize("kind", COORDINATES)
    def test_retraction_along_a_velocity_is_the_motion_with_it_constant(self, kind, rng):
        """d retract(q, s v) / ds = N(retract(q, s v)) v at every s, not at s = 0 alone."""
        q, v = self.state(kind, rng)
        s = jnp.asarray([0.0, 0.3, 1.0, 4.0])

        def along(s):
            reached, speed = jax.jvp(lambda x: kind.retract(q, x * v), (s,), (jnp.ones(()),))
            return speed, kind.rate(reached, v)

        speed, expected = batched(along)(s)
        assert_close(speed, expected)

    @pytest.mark.parametrize("kind", COORDINATES)
    def test_no_step_stays(self, kind, rng):
        q, v = self.state(kind, rng)
        assert_close(kind.retract(q, jnp.zeros(kind.nv)), q, 4e-16)
        assert_close(kind.retract(jnp.asarray(kind.origin), 0 * v), kind.origin, 0.0)

    def test_angular_velocity_is_in_body_axes(self, rng):
        q, v = self.state(geometry.SpatialPose(), rng)

        def rotation(s):
            moved = q + s * geometry.SpatialPose().rate(q, v)
            return geometry.rotation_from_quaternion(moved[3:])

        w = np.array(v[3:])
        expected = matrix(q[3:]) @ np.cross(np.eye(3), w)
        assert_close(jax.jit(lambda: first_difference(rotation))(), expected, TOLERANCE)

    def test_finite_step_turns_in_body_axes(self, rng):
        q, v = self.state(geometry.SpatialPose(), rng)
        reached = geometry.SpatialPose().retract(q, v)
        turn = Rotation.from_rotvec(np.array(v[3:])).as_matrix()
        assert_close(matrix(reached[3:]), matrix(q[3:]) @ turn)
        assert_close(reached[:3], q[:3] + v[:3])
        assert_close(jnp.linalg.norm(reached[3:]), 1.0)


def test_a_planar_frame_turns_with_all_its_derivatives():
    """Its sine and cosine are computed apart from what reads them."""
    angles = jnp.asarray([0.0, 0.3, -2.0, 40.0])

    def turned(angle):
        frame = PlanarFrame(jnp.zeros(2), angle)
        return frame.compose(PlanarFrame(jnp.asarray([2.0, 0.0]), jnp.asarray(0.0))).origin

    expected = 2 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    across = 2 * np.stack([-np.sin(angles), np.cos(angles)], axis=1)
    np.testing.assert_allclose(jax.vmap(turned)(angles), expected, atol=1e-14)
    for first in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(jax.vmap(first(turned))(angles), across, atol=1e-14)
        for second in (jax.jacfwd, jax.jacrev):
            found = jax.vmap(second(first(turned)))(angles)
            np.testing.assert_allclose(found, -expected, atol=1e-14)
