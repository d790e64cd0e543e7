from ._expression import Expression as Expression, names_in as names_in, reserved as reserved
from ._formula import (
    AbstractFormula as AbstractFormula,
    Constant as Constant,
    Entries as Entries,
    FormulaError as FormulaError,
    Number as Number,
)
from ._parameters import Definitions as Definitions, of_part as of_part, Parameters as Parameters
from ._pose import (
    InBarrel as InBarrel,
    MassOf as MassOf,
    MomentsOf as MomentsOf,
    Moved as Moved,
    Pose as Pose,
    QuaternionOf as QuaternionOf,
    TurnedTo as TurnedTo,
    Upright as Upright,
)
