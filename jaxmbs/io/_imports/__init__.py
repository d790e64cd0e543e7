from ._description import Omission as Omission
from ._import_model import (
    import_model as import_model,
    import_possible as import_possible,
    Imported as Imported,
    input_lines as input_lines,
    MODEL_FORMATS as MODEL_FORMATS,
    omission_lines as omission_lines,
)
