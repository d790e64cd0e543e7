from ._doors import (
    refuse_acceleration_level as refuse_acceleration_level,
    refuse_internal as refuse_internal,
    takes_state as takes_state,
)
from ._light_parts import (
    alike as alike,
    diagonal_masses as diagonal_masses,
    masses_alike as masses_alike,
    masses_far_apart as masses_far_apart,
    MOST as MOST,
)
from ._loads import FrictionMaps as FrictionMaps
from ._model import GeneralizedSystem as GeneralizedSystem, Model as Model
from ._multibody import MultibodySystem as MultibodySystem
from ._places import Attachments as Attachments
from ._states import is_state as is_state, LARGEST as LARGEST
from ._structure import (
    BodyInfo as BodyInfo,
    ColumnInfo as ColumnInfo,
    ConstraintInfo as ConstraintInfo,
    Equations as Equations,
    Evaluation as Evaluation,
    State as State,
    Structure as Structure,
)
from ._vanishing import (
    named_vanishing_rows as named_vanishing_rows,
    refuse_vanishing_rows as refuse_vanishing_rows,
    smallest_rows as smallest_rows,
    vanishing_on_the_way as vanishing_on_the_way,
    vanishing_rows as vanishing_rows,
    vanishing_sentence as vanishing_sentence,
)
from .base import AbstractSystem as AbstractSystem, ReleaseOption as ReleaseOption
