"""`jaxmbs demo`: the mobile robot of Wojtyra & Fraczek (2013) as in the paper."""

from pathlib import Path

import jax.numpy as jnp
import matplotlib
import numpy as np

from .. import mechanisms
from .._errors import ModelError
from .._linalg._concrete_rank import values_and_rank
from .._system import Model
from ._analyze import Analysis, analysis, described
from ._output import show
from ._requests import Analyze


def run(*, every: bool, quiet: bool) -> list[Path]:
    """Print the reports and write the pictures; returns the pictures' paths."""
    names = mechanisms.names() if every else ("mobile-robot",)
    paths = []
    for model in map(mechanisms.get, names):
        paths.append(_one(model, quiet))
        if every:
            paths += _motion(model, quiet)
    return paths


def _motion(model: Model, quiet: bool) -> list[Path]:
    """The figures of the motion that a paper shows."""
    # pyplot is slow to import, and other commands draw nothing.
    from ._papers import write_figures

    written = write_figures(model)
    if written and not quiet:
        print(f"motion: {', '.join(map(str, written))}\n")
    return written


def _one(model: Model, quiet: bool) -> Path:
    robot = model.name == "mobile-robot"
    request = Analyze(
        model.name,
        subset=("B,W1",) if robot else (),
        combination=("W1 - W2", "W1 + W2") if robot else (),
    )
    found = analysis(model, request)
    path = _picture(found)
    if not quiet:
        told = described(found)
        more = [*(_eliminations(found) if robot else []), f"picture: {path}"]
        show(told._replace(notes=[*told.notes, *more]))
        print()
    return path


def _eliminations(found: Analysis) -> list[str]:
    """The rank that is left when the paper's rows are dropped."""
    from ._papers import ROBOT_ELIMINATIONS

    structure = found.report.structure
    matrix = np.asarray(
        found.system.constraint_matrix(jnp.asarray(found.q), found.system.initial_v, 0.0)
    )
    lines = []
    for dropped in ROBOT_ELIMINATIONS:
        kept = [i for i, name in enumerate(structure.row_names) if name not in dropped]
        rank = values_and_rank(matrix[kept])[1]
        lines.append(f"without {' and '.join(dropped)} (an elimination of the paper): rank {rank}")
    return lines


def _picture(found: Analysis) -> Path:
    # No window is wanted, and on many machines none can be opened.
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from ..plot import draw_mechanism

    figure = draw_mechanism(found.model, found.system, found.report, found.q)
    path = Path(f"{found.model.name}.png")
    try:
        figure.savefig(path, dpi=130)
    except OSError as error:
        raise ModelError(f"cannot write the picture {str(path)!r}: {error.strerror}.") from None
    finally:
        plt.close(figure)
    return path
