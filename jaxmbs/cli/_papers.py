"""The motions of the two papers, and their figures."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array, Float
from matplotlib.figure import Figure

from .._dynamics import simulate, solve_with_friction, Trajectory
from .._errors import ModelError
from .._formulations import AbstractFormulation, Elimination
from .._programs import program
from .._reactions import Reactions
from .._system import AbstractSystem, Model
from ..io._trajectory import body_motions, BodyMotion
from ..plot import draw_curve, draw_force, draw_reactions
from ..plot._history import label_curves, NOT_UNIQUE, remark


# The paper's eliminations (its row numbers 6 and 21, 18 and 21, 19 and 21) by row names.
ROBOT_ELIMINATIONS = (("C.y", "W4"), ("W1", "W4"), ("W2", "W4"))
PARALLELOGRAM_ELIMINATIONS = (("B.z",), ("C.z",), ("F.z",))

# The robot's manoeuvre ends half a second after its last steering.
_ROBOT_END = 4.77121615
_PARALLELOGRAM_END = 0.5

Figures: TypeAlias = dict[str, Figure]


def write_figures(model: Model) -> list[Path]:
    """Run the motion of a paper's mechanism and write its figures into the current directory;
    none for other models.

    **Raises:** `ModelError` for a file that cannot be written.
    """
    if model.name not in _MOTIONS:
        return []
    paths = []
    for name, figure in _MOTIONS[model.name](model).items():
        path = Path(f"{model.name}-{name}.png")
        try:
            figure.savefig(path, dpi=130)
        except OSError as error:
            raise ModelError(f"cannot write the picture {str(path)!r}: {error.strerror}.") from None
        finally:
            plt.close(figure)
        paths.append(path)
    return paths


def _motion(model: Model, end: float, count: int) -> Trajectory:
    system = model.system()
    times = np.linspace(0.0, end, count)
    return simulate(system, system.reference_q, system.initial_v, end, times=times)


def _eliminated(
    trajectory: Trajectory, eliminations: tuple[tuple[str, ...], ...]
) -> dict[str, Reactions]:
    """Reactions along the motion as each elimination finds them; the motion itself is the same
    for all."""
    found = {}
    for drop in eliminations:
        arrays = (trajectory.q, trajectory.v, trajectory.times)
        multipliers = _multipliers(trajectory.system, Elimination(drop), *arrays)
        # A call of its own, since reactions make a decomposition too.
        other = eqx.tree_at(lambda x: x.multipliers, trajectory, multipliers)
        found[f"without {', '.join(drop)}"] = other.reactions()
    return found


@program
def _multipliers(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    q: Float[Array, "n nq"],
    v: Float[Array, "n nv"],
    times: Float[Array, " n"],
) -> Float[Array, "n rows"]:
    def one(state: tuple) -> Float[Array, " rows"]:
        return solve_with_friction(system, *state, formulation=formulation).multipliers

    return jax.lax.map(one, (q, v, jnp.asarray(times)))


def _bodies(trajectory: Trajectory) -> dict[str, BodyMotion]:
    arrays = (trajectory.q, trajectory.v, trajectory.acceleration)
    return body_motions(trajectory.system.structure, *map(np.asarray, arrays))


def _robot(model: Model) -> Figures:
    """Figs. 2, 3 and 4 of Wojtyra & Fraczek (2013)."""
    trajectory = _motion(model, _ROBOT_END, 240)
    times, bodies = np.asarray(trajectory.times), _bodies(trajectory)
    found = _eliminated(trajectory, ROBOT_ELIMINATIONS)
    names = ("A", "H", "W5", "C", "W1", "W3")
    reactions = draw_reactions(trajectory, names, compared=found)
    figures = {
        "rack": _rack(times, bodies["platform"], bodies["rack"]),
        "paths": _paths(times, bodies),
        "reactions": reactions,
    }
    for figure in figures.values():
        remark(figure, model.remark, 110 if figure is reactions else 90)
    return figures


def _rack(times: np.ndarray, platform: BodyMotion, rack: BodyMotion) -> Figure:
    """Displacement of the rack along the platform's lateral axis."""
    angle = platform.states["angle"]
    lateral = np.stack([-np.sin(angle), np.cos(angle)], axis=1)
    apart = np.sum(lateral * (rack.states["position"] - platform.states["position"]), axis=1)
    figure, axes = plt.subplots(figsize=(7.0, 3.8), layout="constrained")
    draw_curve(axes, times, 1000 * (apart - apart[0]), "rack", place=2)
    axes.set_xlabel("time (s)")
    axes.set_ylabel("rack displacement d (mm)")
    axes.set_title("mobile-robot: steering manoeuvre")
    axes.grid(alpha=0.3)
    return figure


def _paths(times: np.ndarray, bodies: Mapping[str, BodyMotion]) -> Figure:
    figure, axes = plt.subplots(figsize=(8.5, 5.6), layout="constrained")
    seconds = [int(np.argmin(np.abs(times - t))) for t in range(int(times[-1]) + 1)]
    styles = (("platform", "#2a6f97", "solid", 1, "o"), ("trolley", "#111111", "dashed", -1, "s"))
    for name, color, style, side, marker in styles:
        x, y = bodies[name].states["position"].T
        axes.plot(x, y, color=color, linestyle=style, linewidth=2.0, label=name)
        axes.plot(x[seconds], y[seconds], linestyle="none", marker=marker, color=color)
        # Numbers are printed next to the path: the platform's on its left, the trolley's on its
        # right.
        rates = bodies[name].states["velocity"][seconds]
        across = np.stack([-rates[:, 1], rates[:, 0]], axis=1)
        across = 14 * side * across / np.linalg.norm(across, axis=1, keepdims=True)
        for t, k in enumerate(seconds):
            axes.annotate(
                f"{t}",
                (x[k], y[k]),
                xytext=tuple(across[t]),
                textcoords="offset points",
                ha="center",
                va="center",
                color=color,
                fontsize=9,
            )
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.1)
    axes.set_xlabel("x (m)")
    axes.set_ylabel("y (m)")
    axes.set_title("mobile-robot: paths of the centres of mass, marked at whole seconds")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def _parallelogram(model: Model) -> Figures:
    """Figs. 2, 3 and 4 of Wojtyra & Fraczek (2012)."""
    trajectory = _motion(model, _PARALLELOGRAM_END, 201)
    times = np.asarray(trajectory.times)
    position = _bodies(trajectory)["platform"].states["position"]
    motion, axes = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
    for k, letter in enumerate("xy"):
        draw_curve(axes, times, position[:, k], letter, place=k + 1)
    axes.set_xlabel("time (s)")
    axes.set_ylabel("platform centre (m)")
    axes.set_title(f"parallelogram: platform centre (z stays at {position[0, 2]:g} m)")
    axes.grid(alpha=0.3)
    axes.legend()
    found = trajectory.reactions()
    links = _components(times, {name: {name: found} for name in ("K", "M")})
    compared = _eliminated(trajectory, PARALLELOGRAM_ELIMINATIONS)
    figures = {
        "motion": motion,
        "links": links,
        "eliminations": _components(times, {"G": compared}),
    }
    for name, figure in figures.items():
        chosen = " The dropped rows are chosen." if name == "eliminations" else ""
        remark(figure, model.remark + chosen, 90 if name == "motion" else 130)
    return figures


def _components(times: np.ndarray, joints: Mapping[str, Mapping[str, Reactions]]) -> Figure:
    """x, y and z of the force of each joint, a row of panels for each."""
    figure, grid = plt.subplots(
        len(joints),
        3,
        figsize=(11.0, 1.4 + 2.4 * len(joints)),
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    for line, (name, compared) in zip(grid, joints.items(), strict=True):
        for k, axes in enumerate(line):
            # A single curve is a thin dark one.
            first_place = 2 if len(compared) == 1 else 0
            for place, (label, found) in enumerate(compared.items(), first_place):
                draw_force(axes, times, found.wrench(name), label, component=k, place=place)
            verdicts = [found.wrench(name).force_unique[:, k] for found in compared.values()]
            unique = bool(np.all(np.asarray(verdicts)))
            axes.set_title(f"{name}, {'xyz'[k]}: {'unique' if unique else NOT_UNIQUE}")
            axes.set_ylabel("force (N)")
            axes.grid(alpha=0.3)
    for axes in grid[-1]:
        axes.set_xlabel("time (s)")
    if max(map(len, joints.values())) > 1:
        label_curves(figure, list(grid[0]))
    return figure


_MOTIONS: Mapping[str, Callable[[Model], Figures]] = MappingProxyType(
    {"mobile-robot": _robot, "parallelogram": _parallelogram}
)
