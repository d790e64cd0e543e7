import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.io

from .. import _settings
from .._checks import listed, PATH, shown
from .._custom_types import Setting
from .._errors import ModelError
from ._elements import FiniteElements


_COLUMNS = ("x", "y", "z", "dof")


class _Table(NamedTuple):
    """The nodes of a table, in its order."""

    names: list[str]
    points: list[list[float]]
    first_dof: list[int]


def read_matrices(
    mass: Setting[str | Path], stiffness: Setting[str | Path], nodes: Setting[str | Path]
) -> FiniteElements:
    """Finite elements of another program: its matrices and a table of its nodes.

    **Arguments:**

    - `mass`, `stiffness`: files in Matrix Market format (`.mtx`), real, general or symmetric; of
      the free body, in SI units, without conditions eliminated.
    - `nodes`: a table with commas between its columns and a first line that names them, in any
      order: `x,y,z` (m), `dof`, and `name` if any node is to be called by one (by `NodesNamed`). A
      line for each node; `dof` is the row of its displacement along x in the matrices, counted from
      zero. The rows of its displacements along y and z follow, then those of its rotations about x,
      y and z where it has any: from one `dof` to the next they are 3 or 6, and every row belongs to
      a node. A beam from a to b, for example:

          name,x,y,z,dof
          a,0,0,0,0
          ,0.5,0,0,6
          b,1,0,0,12

    A node with rotations needs no tie: `Attachment("A", nodes=NodesNamed(["a"]))` is that node.

    **Returns:** the finite elements, whose nodes are in the order of the table.

    **Raises:** `ModelError` for files that are not there or hold something else, and whatever
    `FiniteElements` refuses.
    """
    table = _table(Path(_settings.path(nodes, "nodes")))
    return FiniteElements(
        _matrix(Path(_settings.path(mass, "mass"))),
        _matrix(Path(_settings.path(stiffness, "stiffness"))),
        np.array(table.points),
        np.array(table.first_dof),
        table.names,
    )


def _matrix(path: Path) -> Any:
    quoted = shown(str(path), PATH)
    if not path.is_file():
        raise ModelError(f"there is no file {quoted}; give the path of a Matrix Market file.")
    try:
        return scipy.io.mmread(str(path))
    except (ValueError, OSError, OverflowError, TypeError) as error:
        raise ModelError(f"{quoted} is no Matrix Market file: {error}.") from None


def _table(path: Path) -> _Table:
    quoted = shown(str(path), PATH)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            columns = [name.strip() for name in reader.fieldnames or []]
            reader.fieldnames = columns
            lines = list(reader)
    except FileNotFoundError:
        raise ModelError(f"there is no file {quoted}; give the path of a table of nodes.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ModelError(f"{quoted} cannot be read as a table of nodes: {error}.") from None
    missing = [name for name in _COLUMNS if name not in columns]
    if missing:
        raise ModelError(
            f"{quoted} has no column {listed(missing)}; its first line must name the columns "
            "x, y, z, dof, and name if there is one."
        )
    if not lines:
        raise ModelError(f"{quoted} names no node; give each node a line.")
    table = _Table([], [], [])
    for number, line in enumerate(lines, start=2):
        try:
            point = [float(line[axis]) for axis in "xyz"]
            first = int(line["dof"])
        except (TypeError, ValueError):
            raise ModelError(
                f"{quoted}, line {number}, must hold numbers x, y, z and a whole number dof, got "
                f"{shown([line[name] for name in _COLUMNS])}."
            ) from None
        table.names.append((line.get("name") or "").strip())
        table.points.append(point)
        table.first_dof.append(first)
    return table
