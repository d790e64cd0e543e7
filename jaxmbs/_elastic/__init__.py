from ._flexibility import flexibility as flexibility
from ._report import Flexibility as Flexibility, SubsetAnswer as SubsetAnswer
from ._split_rod import (
    AbstractStart as AbstractStart,
    SplitRod as SplitRod,
    StaticStart as StaticStart,
    SuddenStart as SuddenStart,
)
from ._splitting import split_rod as split_rod, split_rods as split_rods
