from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from .. import _settings, spatial
from .._bodies import AbstractBody, ReducedBody
from .._compliances import Rod
from .._custom_types import Numbers, Setting
from .._forces import Applied
from .._system import Model


_BASE = {
    "A": (0.0, 0.0, 0.0),
    "C": (0.5, 0.0, 0.0),
    "E": (0.5, 0.5, 0.0),
    "G": (0.0, 0.5, 0.0),
    "K": (0.0, 0.25, 1.0),
    "M": (0.5, 0.25, 1.0),
}
_LINKS = ("AB", "CD", "EF", "GH", "KL", "MN")
_REMARK = (
    "Chosen, since the source has lost its figures: the base points A, C, E, G and the platform "
    "points L, N. The printed link inertias are four times those of the printed tubes, and the "
    "printed inner diameter contradicts the printed mass; the printed inertias and masses are "
    "kept (Wojtyra & Fraczek 2012)."
)


_REMARK_ELASTIC = (
    "Chosen, since the source has lost its figures: the base points A, C, E, G and the platform "
    "points L, N. Mass, inertia and stiffness are those of the bodies given (Wojtyra & Fraczek "
    "2012, section 5)."
)
_LINKS = ("AB", "CD", "EF", "GH", "KL", "MN")
_Points = dict[str, Float[np.ndarray, "3"]]


def parallelogram(theta: Setting[float] = 0.0) -> Model:
    """Spatial parallelogram mechanism (Wojtyra & Fraczek 2012).

    **Arguments:** `theta`: angle (rad) of the reference configuration; all links lie in
    parallel planes at +-pi/2, a singular configuration.
    """
    points = _points(_settings.known_number(theta, "theta"))
    return _mechanism("parallelogram", points, _rigid(points), _REMARK)


def _rigid(points: _Points) -> list[AbstractBody]:
    """Rigid links, and the platform."""
    links = [
        spatial.Body(
            f"link {link}", mass=0.34, inertia=(56e-3, 56e-3, 0.08e-3), **_placed(points, link)
        )
        for link in _LINKS
    ]
    platform = spatial.Body(
        "platform",
        mass=39.0,
        inertia=(3.25, 6.5, 3.25),
        position=_centre(points),
        # The middle moment is that about the plate's normal, the world's z axis.
        rotation=((1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0)),
    )
    return [*links, platform]


def elastic_parallelogram(
    theta: Setting[float] = 0.0, *, stiffness: Setting[Numbers] = 17e6
) -> Model:
    """The spatial parallelogram with its six links as elastic rods (Wojtyra & Fraczek 2012).

    The motion is that of `parallelogram`; `analyze(..., elastic=True)`, `ElasticResolution` and
    `jaxmbs.elastic.flexibility` use the rods "AB" to "MN".

    **Arguments:** `theta`: as for `parallelogram`; `stiffness`: axial, of each link (N/m, eq. 11).
    """
    points = _points(_settings.known_number(theta, "theta"))
    stiffness = _settings.between(stiffness, "stiffness", above=0)
    rods = [
        Rod(name, f"link {name}", points=[points[end] for end in name], stiffness=stiffness)
        for name in _LINKS
    ]
    return _mechanism("elastic-parallelogram", points, _rigid(points), _REMARK, rods)


def modal_parallelogram(
    link: Setting[ReducedBody], platform: Setting[ReducedBody], theta: Setting[float] = 0.0
) -> Model:
    """Spatial parallelogram mechanism of elastic bodies (Wojtyra & Fraczek 2012, section 5).

    Bodies, joints and load have the names and places that they have in `parallelogram`, and each
    body is a `spatial.ModalBody`: a floating frame of reference with the modes of a reduced body.
    The bodies come from anywhere: `finite_elements.parallelogram_link` and `parallelogram_platform`
    make those of the source.

    **Arguments:**

    - `link`: of all six links: z along it, with nodes at (0, 0, -l/2) and (0, 0, l/2),
      l = sqrt(1/2) m, where its first and its second joint are, as of "link AB" A and B.
    - `platform`: x and y along its edges, with nodes at the joints B, D, F, H (+-0.25, +-0.25, 0)
      and L, N (-+0.25, 0, 0), and at (0, 0, 0), where the load acts (m).
    - `theta`: angle (rad) of the reference configuration, where nothing is deformed.

    **Raises:** `TypeError` for a value that is not a `ReducedBody`; `ModelError` where no node lies
    at a joint.
    """
    points = _points(_settings.known_number(theta, "theta"))
    such_as = "what finite_elements.reduce(...) returns"
    link = _settings.instance(link, ReducedBody, "link", such_as)
    platform = _settings.instance(platform, ReducedBody, "platform", such_as)
    links = [spatial.ModalBody(f"link {name}", link, **_placed(points, name)) for name in _LINKS]
    plate = spatial.ModalBody("platform", platform, position=_centre(points), rotation=np.eye(3))
    return _mechanism("modal-parallelogram", points, [*links, plate], _REMARK_ELASTIC)


def _points(theta: float) -> _Points:
    """Points of the joints (m) in the reference configuration."""
    radial = 0.5 * np.array([np.sin(theta), np.cos(theta), 0.0])
    up = np.array([0.0, 0.0, 0.5])
    points = {name: np.array(point) for name, point in _BASE.items()}
    for lower, upper in ("AB", "CD", "EF", "GH"):
        points[upper] = points[lower] + radial + up
    for fixed, moved in ("KL", "MN"):
        points[moved] = points[fixed] + radial - up
    return points


def _placed(points: _Points, link: str) -> dict[str, Any]:
    """Pose of a link: its frame in the middle between its joints, z from the first to the
    second."""
    start, end = points[link[0]], points[link[1]]
    return {"position": (start + end) / 2, "rotation": _with_z_along(end - start)}


def _centre(points: _Points) -> Float[np.ndarray, "3"]:
    """Centre of the platform."""
    return np.mean([points[k] for k in "BDFH"], axis=0)


def _mechanism(
    name: str,
    points: _Points,
    bodies: list[AbstractBody],
    remark: str,
    rods: Sequence[Rod] = (),
) -> Model:
    """The six links and the platform, joined and loaded."""
    joints = []
    for start, end in _LINKS:
        link = f"link {start}{end}"
        joints.append(spatial.Spherical(start, ("ground", link), points[start]))
        joints.append(spatial.Spherical(end, (link, "platform"), points[end]))
    load = Applied("load", "platform", force=(2000.0, 3000.0, 3000.0), torque=(300.0, 0.0, 500.0))
    return Model(
        name,
        3,
        bodies=bodies,
        joints=joints,
        forces=[load],
        compliances=rods,
        gravity=(0.0, 0.0, -9.81),
        remark=remark,
    )


def _with_z_along(direction: np.ndarray) -> np.ndarray:
    z = direction / np.linalg.norm(direction)
    x = np.cross([0.0, 1.0, 0.0] if abs(z[0]) > 0.9 else [1.0, 0.0, 0.0], z)
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)
