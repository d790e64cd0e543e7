"""Cases of a mechanism whose parts deviate at random."""

from collections.abc import Mapping

import numpy as np

from .. import _settings
from .._custom_types import Setting
from .._errors import ModelError
from .._system import Model
from ._cases import Cases
from ._entries import places_of
from ._model_subject import ModelSubject
from ._subjects import doubled


# The words with which joints are made and which are marker points.
_POINTS = ("at", "points")


def tolerances(
    model: Model,
    widths: Setting[Mapping[str, float] | float],
    count: Setting[int],
    *,
    seed: Setting[int],
    uniform: Setting[bool] = False,
) -> Cases:
    """`count` independent cases in which numbers of the parts of a model deviate at random.

    A deviation belongs to one entry of one part. So where a joint has a point on each of its
    bodies, both deviate independently, like two holes drilled into two bodies: the mechanism need
    not close any more (`Misfit` gives the error). `Cases.uniform` moves both together, which is
    another design whose parts fit.

    **Arguments:**

    - `widths`: by name (see `Cases`: `joints.B.at.x`, `bodies.crank.mass`), in the unit of the
      number: standard deviations of normal distributions or, if `uniform`, half the widths of
      uniform ones. One number (m) is the width of all coordinates of all joints' marker points.
    - `seed`: of the random numbers.

    **Raises:** `ModelError` (a `ValueError`) for names that mean nothing; `ValueError` or
    `TypeError` for widths below 0 and other settings that cannot be.
    """
    subject = ModelSubject(model, None)
    count = _settings.whole_number(count, "count", least=1)
    seed, uniform = _settings.seed(seed), _settings.flag(uniform, "uniform")
    if isinstance(widths, Mapping):
        given = _settings.mapping(widths, "widths", '{"joints.B.at.x": 1e-4}')
    else:
        given = _all_points(model, _settings.known_number(widths, "widths", least=0))
    sizes = {
        name: _settings.known_number(x, f"the width of {name!r}", least=0)
        for name, x in given.items()
    }
    rng = np.random.default_rng(seed)
    arrays: dict[str, np.ndarray] = {}
    twice = doubled(subject, [subject.name(name) for name in given])
    if twice is not None:
        raise ModelError(f"{twice!r} is given twice.")
    for name, width in sizes.items():
        whole, entry = subject.parted(subject.name(name))
        values = arrays.setdefault(whole, _repeated(subject, whole, count))
        naming = subject.naming(whole)
        places = places_of(values[0].shape, entry, name, naming) if entry else (...,)
        shape = values[places[0]].shape
        drawn = rng.uniform(-1.0, 1.0, shape) if uniform else rng.normal(size=shape)
        for place in places:
            values[place] += width * drawn
    kind = "uniform" if uniform else "normal"
    return Cases(arrays, origin=f"tolerances, {kind}, seed {seed}")


def _repeated(subject: ModelSubject, name: str, count: int) -> np.ndarray:
    """The value in each case before it deviates."""
    value = np.asarray(subject.value(name), dtype=float)
    return np.repeat(value[None], count, axis=0)


def _all_points(model: Model, width: float) -> dict[str, float]:
    return {
        f"joints.{joint.name}.{word}": width
        for joint in model.joints
        for word in _POINTS
        if word in vars(joint)
    }
