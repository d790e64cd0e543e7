"""Model files (extra `cli`)."""

from .._errors import ModelError as ModelError
from ._read import model_from_tables as model_from_tables, read_model as read_model
from ._write import write_model as write_model
