"""Which motions rows of C leave free, and who makes them. Concrete numbers, dense."""

import numpy as np

from .._linalg._concrete_rank import null_spaces, RANK_TOLERANCE
from .._system import Structure


def null_space(
    matrix: np.ndarray, structure: Structure, length: float, tolerance: float = RANK_TOLERANCE
) -> np.ndarray:
    """Velocities (nv, k) that span the null space of rows of C, orthonormal with lengths
    relative to the characteristic length."""
    unit = structure.column_scale(length)
    scaled = matrix * unit
    sizes = np.linalg.norm(scaled, axis=1)
    scaled = scaled[sizes > 0] / sizes[sizes > 0, None]
    return null_spaces(scaled, tolerance).right * unit[:, None]


def movers(free: np.ndarray, structure: Structure, length: float) -> list[str]:
    """One body for each motion in the span of the columns of `free` (nv, k), and its kind of
    motion: "'rod' (turning)". No two are the same coordinate."""
    rest = free / structure.column_scale(length)[:, None]
    names = []
    for _ in range(free.shape[1]):
        # Pivoting: the coordinate that moves most, and what is left when it is held.
        column = int(np.argmax(np.linalg.norm(rest, axis=1)))
        names.append(_mover(column, structure))
        along = rest[column] / np.linalg.norm(rest[column])
        rest = rest - np.outer(rest @ along, along)
    return names


def look_at_drivers(structure: Structure) -> str:
    """Advice where constraints cannot be satisfied."""
    drivers = ", ".join(c.name for c in structure.constraints if c.kind == "driver")
    if not drivers:
        return "End the run before that, or look at the constraints that open."
    return (
        f"Look whether a driver ({drivers}) asks for more than the mechanism can reach; end before "
        "that, or let it ask for less."
    )


def _mover(column: int, structure: Structure) -> str:
    name = structure.velocities[column].name.removesuffix(".rate")
    for body in structure.bodies:
        if column not in body.columns:
            continue
        if body.posed and column in body.force:
            return f"{body.name!r} (moving along {'xyz'[body.force.index(column)]})"
        if body.posed and column in body.torque:
            return f"{body.name!r} (turning)"
        return f"{body.name!r} ({name.removeprefix(f'{body.name}.')})"
    return repr(name)
