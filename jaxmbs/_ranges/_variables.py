"""Variables of bounds and combinations: multipliers, and components of wrenches."""

import numpy as np
from jaxtyping import Float

from .._checks import listed, shown
from .._solvability import parse_linear
from .._system import Structure
from .._system._places import PlaceLayout


_AXES = "xyz"


class Variables:
    """The linear functions of multipliers that have names of their own.

    First each multiplier, by the name of its row (`B.y`, `W1`); then, for each joint and driver
    that acts at a point, the components of its wrench on its second body (its only one) along the
    world's axes, the torque about the joint's point: `B.force.x`, in the plane `B.torque`, in space
    `B.torque.z`. `names`: of all, in that order; `units`: N or N m, empty for multipliers.
    """

    def __init__(self, structure: Structure, layout: PlaceLayout):
        self.structure = structure
        self.layout = layout
        # The columns of a frame: two and one in the plane, three and three in space.
        self.dimension = {3: 2, 6: 3}.get(layout.indices["columns"].shape[-1], 0)
        names, units = [*structure.row_names], [""] * len(structure.rows)
        self._force: dict[str, tuple[int, ...]] = {}
        self._torque: dict[str, tuple[int, ...]] = {}
        for info, place in zip(structure.constraints, layout.seconds, strict=True):
            if place < 0:
                continue
            force = [f"{info.name}.force.{axis}" for axis in _AXES[: self.dimension]]
            torque = [f"{info.name}.torque.{axis}" for axis in _AXES]
            torque = torque if self.dimension == 3 else [f"{info.name}.torque"]
            self._force[info.name] = tuple(range(len(names), len(names) + len(force)))
            names += force
            self._torque[info.name] = tuple(range(len(names), len(names) + len(torque)))
            names += torque
            units += ["N"] * len(force) + ["N m"] * len(torque)
        self.names = tuple(names)
        self.units = tuple(units)

    def __len__(self) -> int:
        return len(self.names)

    def force(self, name: str) -> tuple[int, ...]:
        """Places of the components of the force of the joint or driver of that name.

        **Raises:** `ValueError` for a name that there is not, or of what acts at no point.
        """
        self._must_act_at_a_point(name)
        return self._force[name]

    def torque(self, name: str) -> tuple[int, ...]:
        """The torque, as `force`."""
        self._must_act_at_a_point(name)
        return self._torque[name]

    def has_wrench(self, name: str) -> bool:
        """Is there a joint or driver of that name that acts at a point?"""
        return name in self._force

    def row(self, name: str) -> int:
        """The row of that name, or the only row of the joint or driver of that name.

        **Raises:** `ValueError` for a name that there is not, or a joint of several rows.
        """
        rows = [*self.structure.rows_of(name)]
        if len(rows) > 1:
            own = listed([self.structure.row_names[k] for k in rows])
            raise ValueError(f"{shown(name)} has {len(rows)} rows; name one of {own}.")
        return rows[0]

    def linear(self, expression: str) -> tuple[float, np.ndarray]:
        """The constant and the coefficients (variables,) of a linear expression.

        **Raises:** `ValueError` that shows where the expression stops making sense.
        """
        return parse_linear(expression, self.names, self._hint())

    def combination(self, expression: str) -> np.ndarray:
        """The coefficients (variables,) of a linear expression without a constant.

        **Raises:** `ValueError`, also for one that is zero.
        """
        constant, coefficients = self.linear(expression)
        if constant or not np.any(coefficients):
            raise ValueError(
                f"combination {shown(expression)} must be a sum of multiples of names, with no "
                "constant, and not zero."
            )
        return coefficients

    def _hint(self) -> str:
        own = f"The rows are {', '.join(self.structure.row_names)}"
        if not self._force:
            return f"{own}."
        first = next(iter(self._force.values()))[0]
        return f"{own}; components of wrenches are written as {self.names[first]!r}."

    def unit_vectors(self, places: tuple[int, ...]) -> np.ndarray:
        """One row (variables,) for each place, with a one there."""
        rows = np.zeros((len(places), len(self)))
        rows[np.arange(len(places)), list(places)] = 1.0
        return rows

    def second_body(self, name: str) -> str:
        """The body on which that joint's wrench acts."""
        self._must_act_at_a_point(name)
        index = self.structure.constraints.index(self.structure.constraint(name))
        return self.layout.bodies[self.layout.seconds[index]]

    def bodies(self, name: str) -> dict[str, str]:
        """Bodies that the joint acts on, the ground among them, by the names that the joint uses
        for them: the names of the bodies themselves ("bar" for "bar.A")."""
        index = self.structure.constraints.index(self.structure.constraint(name))
        sites = zip(self.layout.constraints, self.layout.bodies, self.layout.owners, strict=True)
        return {site: owner for k, site, owner in sites if k == index}

    def _must_act_at_a_point(self, name: str) -> None:
        self.structure.constraint(name)
        if name not in self._force:
            raise ValueError(
                f"{shown(name)} acts on coordinates and at no point, so that it has no force and "
                "torque; name its rows."
            )


Coefficients = Float[np.ndarray, "n variables"]
