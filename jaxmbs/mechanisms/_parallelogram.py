from collections.abc import Sequence

import numpy as np

from .. import _settings, spatial
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


def parallelogram(theta: Setting[float] = 0.0) -> Model:
    """Spatial parallelogram mechanism (Wojtyra & Fraczek 2012).

    **Arguments:** `theta`: angle (rad) of the reference configuration; all links lie in
    parallel planes at +-pi/2, a singular configuration.
    """
    return _model("parallelogram", _points(theta))


def elastic_parallelogram(
    theta: Setting[float] = 0.0, *, stiffness: Setting[Numbers] = 17e6
) -> Model:
    """The spatial parallelogram with its six links as elastic rods (Wojtyra & Fraczek 2012).

    The motion is that of `parallelogram`; `analyze(..., elastic=True)`, `ElasticResolution` and
    `jaxmbs.elastic.flexibility` ask the rods "AB" to "MN".

    **Arguments:** `theta`: as for `parallelogram`; `stiffness`: axial, of each link (N/m, eq. 11).
    """
    points, stiffness = _points(theta), _settings.between(stiffness, "stiffness", above=0)
    rods = [
        Rod(name, f"link {name}", points=[points[end] for end in name], stiffness=stiffness)
        for name in _LINKS
    ]
    return _model("elastic-parallelogram", points, rods)


def _points(theta: Setting[float]) -> dict[str, np.ndarray]:
    """Of the joints."""
    theta = _settings.known_number(theta, "theta")
    radial = 0.5 * np.array([np.sin(theta), np.cos(theta), 0.0])
    up = np.array([0.0, 0.0, 0.5])
    points = {name: np.array(point) for name, point in _BASE.items()}
    for lower, upper in ("AB", "CD", "EF", "GH"):
        points[upper] = points[lower] + radial + up
    for fixed, moved in ("KL", "MN"):
        points[moved] = points[fixed] + radial - up
    return points


def _model(name: str, points: dict[str, np.ndarray], rods: Sequence[Rod] = ()) -> Model:
    links = [
        spatial.Body(
            f"link {start}{end}",
            mass=0.34,
            inertia=(56e-3, 56e-3, 0.08e-3),
            position=(points[start] + points[end]) / 2,
            rotation=_with_z_along(points[end] - points[start]),
        )
        for start, end in _LINKS
    ]
    platform = spatial.Body(
        "platform",
        mass=39.0,
        inertia=(3.25, 6.5, 3.25),
        position=np.mean([points[k] for k in "BDFH"], axis=0),
        # The middle moment is that about the plate's normal, the world's z axis.
        rotation=((1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0)),
    )
    joints = []
    for link in links:
        start, end = link.name[-2:]
        joints.append(spatial.Spherical(start, ("ground", link.name), points[start]))
        joints.append(spatial.Spherical(end, (link.name, "platform"), points[end]))
    load = Applied("load", "platform", force=(2000.0, 3000.0, 3000.0), torque=(300.0, 0.0, 500.0))
    return Model(
        name,
        3,
        bodies=[*links, platform],
        joints=joints,
        forces=[load],
        compliances=rods,
        gravity=(0.0, 0.0, -9.81),
        remark=_REMARK,
    )


def _with_z_along(direction: np.ndarray) -> np.ndarray:
    z = direction / np.linalg.norm(direction)
    x = np.cross([0.0, 1.0, 0.0] if abs(z[0]) > 0.9 else [1.0, 0.0, 0.0], z)
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)
