from ._conditions import InBarrel as InBarrel, Upright as Upright
from ._directions import TurnedTo as TurnedTo
from ._expression import Expression as Expression, names_in as names_in, reserved as reserved
from ._formula import (
    AbstractFormula as AbstractFormula,
    Constant as Constant,
    Entries as Entries,
    FormulaError as FormulaError,
    Number as Number,
)
from ._parameters import Definitions as Definitions, of_part as of_part, Parameters as Parameters
from ._pose import Moved as Moved, Pose as Pose, QuaternionOf as QuaternionOf
from ._shape import MassOf as MassOf, MomentsOf as MomentsOf
