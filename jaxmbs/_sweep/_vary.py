from collections.abc import Mapping

from .. import _settings
from .._checks import shown
from .._custom_types import Numbers, Setting
from .._errors import ModelError
from .._system import Model
from ._model_subject import subject_of, with_values
from ._subjects import doubled, STATE


def vary(model: Setting[Model], values: Setting[Mapping[str, Numbers]]) -> Model:
    """The model with other numbers, as a case of a sweep or a design has them.

    What follows from a number follows: a parameter of a model file takes along all that is an
    expression of it. The result is written with its parameters by `jaxmbs.io.write_model`.

    **Arguments:** `values`: by name, as in `Cases`: `bodies.crank.mass`, `parameters.length`,
    `uses.leg 1.position.x`. The value of a driver holds it there; coordinates of joints and of the
    state are none of a model.

    **Returns:** the model. Works under `jit`, `vmap` and differentiation.

    **Raises:** `ModelError` for a name that means nothing or a number that cannot be.
    """
    _settings.instance(model, Model, "model", "jaxmbs.mechanisms.door()")
    _settings.mapping(values, "values", '{"bodies.crank.mass": 1.0}')
    subject = subject_of(model, None, None, 0.0)
    for name, value in values.items():
        if not _settings.holds_numbers(value):
            raise ModelError(f"{name!r} needs a number or an array, got {shown(value)}.")
    full = {subject.name(name): value for name, value in values.items()}
    twice = doubled(subject, list(full))
    if twice is not None or len(full) < len(values):
        raise ModelError(f"{twice or next(iter(full))!r} is given twice.")
    changed, holders = with_values(model, full)
    strange = [name for name in full if name.split(".")[0] in STATE]
    strange += [f"joints.{own.joint}.{own.coordinate}" for own in holders]
    if strange:
        raise ModelError(
            f"{strange[0]!r} is a number of the state and none of the model; assemble it there."
        )
    return changed
