"""A system that the user writes in generalized coordinates."""

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._constraints import RowKind
from .._custom_types import Numbers, RealScalarLike, Scalar
from .._geometry import ANGLE, LENGTH
from .._linalg import cholesky, cholesky_solve, DenseKKTMatrices, scatter_add
from ._equations import Evaluation
from ._jitted import jitted
from ._places import Attachments, no_places
from ._states import state_method
from ._structure import BodyInfo, ColumnInfo, ConstraintInfo, RowInfo, Structure
from .base import AbstractSystem, ReleaseOption


class AbstractCondition(eqx.Module):
    """Rows of one name; `position` and `velocity` both give all of them, zero where not meant."""

    row_kind: ClassVar[RowKind]
    rows: eqx.AbstractVar[int]

    @abc.abstractmethod
    def position(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, " rows"]:
        """The geometric residual."""

    @abc.abstractmethod
    def velocity(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " rows"]:
        """The velocity residual."""


class PositionConstraint(AbstractCondition):
    """Named rows `function(q, t) = 0` (rows,). `rows`: their number."""

    row_kind: ClassVar[RowKind] = RowKind.position
    function: Callable[[Float[Array, " nq"], RealScalarLike], Float[Array, " ..."]]
    rows: int = eqx.field(static=True)

    def __init__(
        self,
        function: Callable[[Float[Array, " nq"], RealScalarLike], Float[Array, " ..."]],
        rows: int = 1,
    ):
        self.function = function
        self.rows = rows

    def position(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, " rows"]:
        result = self.function(q, t)
        return _checks.rows_of_function(result, self.rows, "a constraint function")

    def velocity(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " rows"]:
        del v, t
        return jnp.zeros((self.rows,), q.dtype)


class VelocityConstraint(AbstractCondition):
    """Named rows `function(q, v, t) = 0` (rows,), linear or not in v. `rows`: their number."""

    row_kind: ClassVar[RowKind] = RowKind.velocity
    function: Callable[
        [Float[Array, " nq"], Float[Array, " nv"], RealScalarLike], Float[Array, " ..."]
    ]
    rows: int = eqx.field(static=True)

    def __init__(
        self,
        function: Callable[
            [Float[Array, " nq"], Float[Array, " nv"], RealScalarLike], Float[Array, " ..."]
        ],
        rows: int = 1,
    ):
        self.function = function
        self.rows = rows

    def position(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, " rows"]:
        del t
        return jnp.zeros((self.rows,), q.dtype)

    def velocity(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " rows"]:
        result = self.function(q, v, t)
        return _checks.rows_of_function(result, self.rows, "a constraint function")


class GeneralizedSystem(AbstractSystem):
    """A system given by its M, F and named constraint functions, with v = qdot.

    **Arguments:**

    - `coordinates`: names of the generalized coordinates, in order.
    - `mass_matrix(q)`: (n, n), symmetric positive definite. `force(q, v, t)`: (n,).
    - `constraints`: name -> `PositionConstraint` or `VelocityConstraint`, in row order.
    - `lengths`: names of the coordinates that are lengths (the others count as angles or pure
      numbers), and `length`: the characteristic length (m) that makes both comparable.
    - `bodies`: name -> (force coordinates, torque coordinates), for body-wise verdicts.

    Functions may be `eqx.Module`s; their array fields are parameters of the system.
    """

    mass_function: Callable[[Float[Array, " nq"]], Float[Array, "nv nv"]]
    force_function: Callable[
        [Float[Array, " nq"], Float[Array, " nv"], RealScalarLike], Float[Array, " nv"]
    ]
    conditions: tuple[AbstractCondition, ...]
    length: Scalar
    structure: Structure = eqx.field(static=True)

    def __init__(
        self,
        coordinates: Sequence[str],
        *,
        mass_matrix: Callable[[Float[Array, " nq"]], Float[Array, "nv nv"]],
        force: Callable[
            [Float[Array, " nq"], Float[Array, " nv"], RealScalarLike], Float[Array, " nv"]
        ],
        constraints: Mapping[str, AbstractCondition],
        lengths: Sequence[str] = (),
        length: Numbers = 1.0,
        bodies: Mapping[str, tuple[Sequence[str], Sequence[str]]] | None = None,
    ):
        names = [
            _checks.name(c, "a coordinate") for c in _checks.name_list(coordinates, "coordinates")
        ]
        if len(set(names)) != len(names):
            raise ValueError(f"coordinates must have different names, got {names!r}.")
        self.mass_function = mass_matrix
        self.force_function = force
        self.conditions = tuple(constraints.values())
        self.length = _checks.positive(length, "length")
        own = _checks.name_list(lengths, "lengths")
        self.structure = _structure(names, constraints, own, bodies or {})

    @jitted
    def mass_matrix(
        self, q: Float[Array, " nq"], t: RealScalarLike | None = None
    ) -> Float[Array, "nv nv"]:
        del t
        return self.mass_function(q)

    @jitted
    def force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " nv"]:
        return self.force_function(q, v, t)

    @jitted
    def free_acceleration(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " nv"]:
        return cholesky_solve(cholesky(self.mass_function(q)), self.force(q, v, t))

    @jitted
    def position_residual(
        self, q: Float[Array, " nq"], t: RealScalarLike
    ) -> Float[Array, " geometric"]:
        t = jnp.asarray(t, q.dtype)
        return self._positions(q, t)[self.structure.geometric_rows]

    @state_method()
    def driver_readings(self, q: Float[Array, " nq"], t: RealScalarLike) -> Float[Array, "3 rows"]:
        # What depends on time here is part of a function of the user's, whose value is unknown.
        del t
        return jnp.zeros((3, len(self.structure.rows)), q.dtype)

    @jitted
    def constraint_matrix(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, "rows nv"]:
        t = jnp.asarray(t, q.dtype)
        geometric = jax.jacfwd(lambda x: self._positions(x, t))(q)
        return geometric + jax.jacfwd(lambda u: self._velocities(q, u, t))(v)

    @jitted
    def velocity_residual(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " rows"]:
        t = jnp.asarray(t, q.dtype)
        _, change = jax.jvp(self._positions, (q, t), (v, jnp.ones_like(t)))
        return change + self._velocities(q, v, t)

    @jitted
    def acceleration_offset(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " rows"]:
        t = jnp.asarray(t, q.dtype)
        _, change = jax.jvp(
            lambda x, s: self.velocity_residual(x, v, s), (q, t), (v, jnp.ones_like(t))
        )
        return -change

    @state_method()
    def descriptor(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> DenseKKTMatrices:
        return DenseKKTMatrices(self.mass_matrix(q), self.constraint_matrix(q, v, t))

    @state_method()
    def evaluation(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Evaluation:
        structure = self.structure
        gap = scatter_add(
            [self.position_residual(q, t)], [structure.geometric_rows], len(structure.rows)
        )
        return Evaluation(self.equations(q, v, t), gap, self.velocity_residual(q, v, t))

    @state_method(multipliers="rows")
    def friction(
        self,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        t: RealScalarLike,
        multipliers: Float[Array, " rows"],
    ) -> Float[Array, " nv"]:
        del q, t, multipliers
        return jnp.zeros_like(v)

    @property
    def frictional_joints(self) -> tuple[str, ...]:
        return ()

    @jitted
    def kinetic_energy(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike | None = None
    ) -> Scalar:
        del t
        return 0.5 * v @ self.mass_function(q) @ v

    @state_method()
    def places(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Attachments:
        del q, v, t
        return no_places(self.structure)

    @state_method()
    def rate(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nq"]:
        del q
        return v

    @state_method()
    def flow(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " nq"]:
        del q, t
        return v

    @state_method(step="v")
    def retract(self, q: Float[Array, " nq"], step: Float[Array, " nv"]) -> Float[Array, " nq"]:
        return q + step

    @state_method(end="q")
    def difference(self, q: Float[Array, " nq"], end: Float[Array, " nq"]) -> Float[Array, " nv"]:
        return end - q

    @state_method()
    def world_axes(self, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        return jnp.eye(self.structure.nv, dtype=q.dtype)

    def turning(self, rate: Float[Array, "3"]) -> Float[Array, "nv nv"]:
        return jnp.zeros((self.structure.nv,) * 2, rate.dtype)

    @state_method()
    def steady(
        self,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        rate: Float[Array, "3"],
        t: RealScalarLike,
    ) -> Float[Array, " nq"]:
        del rate
        return q + v * t

    def knots(self) -> Float[Array, " knots"]:
        return jnp.zeros((0,))

    def characteristic_length(self) -> Scalar:
        return jax.lax.stop_gradient(self.length)

    @state_method()
    def release_options(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> tuple[ReleaseOption, ...]:
        del q, v, t
        return tuple(
            ReleaseOption(c.name, c.kind, "none", None, np.zeros((0, self.structure.nv)))
            for c in self.structure.constraints
            if c.stop - c.start == 1
        )

    def _positions(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, " rows"]:
        parts = [condition.position(q, t) for condition in self.conditions]
        return jnp.concatenate([jnp.zeros((0,), q.dtype), *parts])

    def _velocities(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " rows"]:
        parts = [condition.velocity(q, v, t) for condition in self.conditions]
        return jnp.concatenate([jnp.zeros((0,), q.dtype), *parts])


def _structure(
    names: Sequence[str],
    constraints: Mapping[str, AbstractCondition],
    lengths: Sequence[str],
    bodies: Mapping[str, tuple[Sequence[str], Sequence[str]]],
) -> Structure:
    def columns(given: Sequence[str], what: str) -> tuple[int, ...]:
        for name in given:
            if name not in names:
                raise ValueError(
                    f"{what} names the coordinate {name!r}; there are {', '.join(names)}."
                )
        return tuple(names.index(name) for name in given)

    length_columns = set(columns(lengths, "lengths"))
    measures = [LENGTH if i in length_columns else ANGLE for i in range(len(names))]
    infos, rows = [], []
    for name, condition in constraints.items():
        _checks.name(name, "a constraint")
        start = len(rows)
        for k in range(condition.rows):
            label = name if condition.rows == 1 else f"{name}.{k + 1}"
            rows.append(RowInfo(label, condition.row_kind, ANGLE))
        kind = "geometric" if condition.row_kind is RowKind.position else "velocity"
        everything = tuple(range(len(names)))
        touched = tuple(range(len(bodies)))
        infos.append(ConstraintInfo(name, kind, start, len(rows), touched, everything))
    return Structure(
        constraints=tuple(infos),
        rows=tuple(rows),
        bodies=tuple(
            BodyInfo(
                name,
                False,
                columns((*force, *torque), f"body {name!r}"),
                columns(force, f"body {name!r}"),
                columns(torque, f"body {name!r}"),
                columns((*force, *torque), f"body {name!r}"),
            )
            for name, (force, torque) in bodies.items()
        ),
        coordinates=tuple(map(ColumnInfo, names, measures)),
        velocities=tuple(
            ColumnInfo(f"{name}.rate", m) for name, m in zip(names, measures, strict=True)
        ),
    )
