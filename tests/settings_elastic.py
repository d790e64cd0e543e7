"""What the functions and classes of elastic bodies refuse, as in `settings_table.py`."""

from collections.abc import Callable
from typing import Any

from settings_values import (
    INF,
    NAN,
    NO_COUNT,
    NO_FLAG,
    NO_NAMES,
    NO_NUMBER,
    NO_OBJECT,
    NO_PATH,
    NO_TEXT,
    NO_VECTOR,
    with_defaults,
)

import jaxmbs as jm
from jaxmbs import elastic, finite_elements


_COUNT = (*NO_COUNT, None, 0)

STEEL = finite_elements.Material(young=2e11, poisson=0.3, density=7800.0)
BAR = finite_elements.plate(1.0, 0.1, 0.1, STEEL, across=1, deep=1)
_HERE = finite_elements.NodesOnPlane([1, 0, 0])
_TUBE = with_defaults(
    finite_elements.tube,
    inner_diameter=0.1,
    outer_diameter=0.2,
    length=1.0,
    material=STEEL,
    along=1,
)
_PLATE = with_defaults(
    finite_elements.plate, width=1.0, depth=1.0, thickness=0.1, material=STEEL, across=1
)
_ATTACHED = with_defaults(finite_elements.Attachment, name="A", point=[0, 0, 0], nodes=_HERE)
_SIZE = (*NO_NUMBER, None, 0.0, -1.0)
_MAYBE_SIZE = tuple(x for x in _SIZE if x is not None)
_ELEMENTS = (*NO_OBJECT, None, finite_elements.FiniteElements)
_PLACE = (*NO_VECTOR, [1.0, 0.0])

ELASTIC: dict[str, tuple[Callable[..., Any], dict[str, tuple[Any, ...]]]] = {
    "finite_elements.Material": (
        with_defaults(finite_elements.Material, young=2e11, poisson=0.3, density=7800.0),
        {"young": _SIZE, "poisson": (*NO_NUMBER, None, -1.0, 0.5), "density": _SIZE},
    ),
    "finite_elements.tube": (
        _TUBE,
        {
            "inner_diameter": (*_SIZE, 0.2),
            "outer_diameter": _SIZE,
            "length": _SIZE,
            "material": (*NO_OBJECT, None, finite_elements.Material),
            "around": (*_COUNT, 3),
            "along": tuple(x for x in _COUNT if x is not None),
            "across": _COUNT,
        },
    ),
    "finite_elements.plate": (
        _PLATE,
        {
            "width": _SIZE,
            "depth": _SIZE,
            "thickness": _SIZE,
            "material": (*NO_OBJECT, None, finite_elements.Material),
            "across": _COUNT,
            "deep": tuple(x for x in _COUNT if x is not None),
            "through": _COUNT,
        },
    ),
    "finite_elements.FiniteElements": (
        with_defaults(
            finite_elements.FiniteElements,
            mass=BAR.mass,
            stiffness=BAR.stiffness,
            points=BAR.points,
        ),
        {
            "mass": ("abc", None, [[1.0, 2.0]], int, [[NAN]]),
            "stiffness": ("abc", None, [[1.0, 2.0]], int, [[NAN]]),
            "points": ("abc", None, 3.0, [[1.0, 2.0]], int, [[NAN, 0.0, 0.0]]),
            "first_dof": ("abc", 3.0, True, [0.0], [0, 3], int),
            "strains": ("abc", 3.0, True, int),
        },
    ),
    "finite_elements.NodesOnPlane": (
        with_defaults(finite_elements.NodesOnPlane, normal=[0, 0, 1]),
        {"normal": (*_PLACE, None, [0, 0, 0]), "radius": _MAYBE_SIZE, "tolerance": _MAYBE_SIZE},
    ),
    "finite_elements.NodesWithin": (finite_elements.NodesWithin, {"radius": _SIZE}),
    "finite_elements.NodeNumbers": (
        finite_elements.NodeNumbers,
        {"numbers": ("a", None, 0.5, [0.5], True, int)},
    ),
    "finite_elements.NodesNamed": (finite_elements.NodesNamed, {"names": NO_NAMES}),
    "finite_elements.Attachment": (
        _ATTACHED,
        {
            "name": (*NO_TEXT, None),
            "point": _PLACE,
            "nodes": (*NO_OBJECT, None, finite_elements.NodesWithin),
            "connection": (*NO_OBJECT, None, finite_elements.RigidConnection),
        },
    ),
    "finite_elements.ModalDamping": (
        finite_elements.ModalDamping,
        {"ratio": ("a", True, 1j, None, NAN, INF, -0.1, [-0.1], ["a"], [[0.1]], int)},
    ),
    "finite_elements.StiffnessDamping": (
        finite_elements.StiffnessDamping,
        {"beta": (*NO_NUMBER, None, -1.0)},
    ),
    "finite_elements.reduce": (
        with_defaults(finite_elements.reduce, elements=BAR, attachments=[]),
        {
            "elements": _ELEMENTS,
            "attachments": (*(x for x in NO_OBJECT if x != []), None, finite_elements.Attachment),
            "modes": (*NO_COUNT, None, 10**6),
            "damping": (*NO_OBJECT, None, finite_elements.ModalDamping),
            # True: there is no attachment.
            "stiffening": (*(x for x in NO_FLAG if x is not None), True),
            "cache": NO_PATH,
        },
    ),
    "finite_elements.mode_shapes": (
        with_defaults(finite_elements.mode_shapes, elements=BAR, attachments=[]),
        {"elements": _ELEMENTS, "modes": (*NO_COUNT, None, 10**6)},
    ),
    "finite_elements.frequencies": (finite_elements.frequencies, {"reduced": (*NO_OBJECT, None)}),
    "finite_elements.axial_stiffness": (
        with_defaults(
            finite_elements.axial_stiffness,
            reduced=finite_elements.reduce(BAR, [], modes=1),
            nodes=("A", "B"),
        ),
        {"reduced": (*NO_OBJECT, None), "nodes": (*NO_NAMES, None, ["A", "B"])},
    ),
    "finite_elements.load": (finite_elements.load, {"path": NO_PATH}),
}

_LINKS = jm.mechanisms.elastic_parallelogram()
_SUBSETS = ("AB", 3, True, [], ["AB"], [3], [["AB", 3]])
_POSITIVE = (*NO_NUMBER, 0.0, -1.0)
_ROD = {
    "points": ("abc", 3.0, True, [[0.0, 0.0, NAN], [0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0]]),
    "stiffness": _POSITIVE,
    "young": (*_POSITIVE, 7e10),
    "area": (*_POSITIVE, 1e-4),
    "damping_time": (*NO_NUMBER, None, -1.0),
}

ELASTICITY: dict[str, tuple[Callable[..., Any], dict[str, tuple[Any, ...]]]] = {
    "elastic.flexibility": (
        with_defaults(elastic.flexibility, system=_LINKS),
        {
            "reactions": (*(x for x in NO_NAMES if x != ["A", ""]), [], ["A", ""]),
            "candidates": (*NO_NAMES, ["A"]),
            "subsets": _SUBSETS,
            "tolerance": (*NO_NUMBER, None, 0.0, 1.0, -0.1),
        },
    ),
    "elastic.SplitRod": (with_defaults(elastic.SplitRod, body="link AB"), _ROD),
    "elastic.split_rod": (
        with_defaults(elastic.split_rod, model=_LINKS, body="link AB"),
        {**_ROD, "start": (*NO_OBJECT, elastic.StaticStart)},
    ),
    "elastic.split_rods": (
        with_defaults(elastic.split_rods, model=_LINKS, rods=[elastic.SplitRod("link AB")]),
        {
            "rods": (*NO_OBJECT, ["link AB"], elastic.SplitRod("link AB"), None),
            "start": (*NO_OBJECT, elastic.StaticStart),
        },
    ),
    "elastic.StaticStart": (elastic.StaticStart, {"t": (*NO_NUMBER, None)}),
}
