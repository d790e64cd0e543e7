"""Model files (extra `cli`)."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._errors import ModelError as ModelError
from .._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._imports import (
        import_model as import_model,
        Imported as Imported,
        MODEL_FORMATS as MODEL_FORMATS,
        Omission as Omission,
        omission_lines as omission_lines,
    )
    from ._json_schema import json_schema as json_schema
    from ._read import model_from_tables as model_from_tables, read_model as read_model
    from ._reference import reference as reference
    from ._trajectory import load_trajectory as load_trajectory, save_trajectory as save_trajectory
    from ._write import write_model as write_model
else:
    _NAMES = {
        "_imports": ("import_model", "Imported", "MODEL_FORMATS", "Omission", "omission_lines"),
        "_json_schema": ("json_schema",),
        "_read": ("model_from_tables", "read_model"),
        "_reference": ("reference",),
        "_trajectory": ("load_trajectory", "save_trajectory"),
        "_write": ("write_model",),
    }
    _load_late(__name__, _NAMES, extra="cli")
