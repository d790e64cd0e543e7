from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._flexibility import flexibility as flexibility
    from ._report import Flexibility as Flexibility, SubsetAnswer as SubsetAnswer
    from ._split_rod import (
        AbstractStart as AbstractStart,
        SplitRod as SplitRod,
        StaticStart as StaticStart,
        SuddenStart as SuddenStart,
    )
    from ._splitting import split_rod as split_rod, split_rods as split_rods
else:
    _NAMES = {
        "_flexibility": ("flexibility",),
        "_report": ("Flexibility", "SubsetAnswer"),
        "_split_rod": ("AbstractStart", "SplitRod", "StaticStart", "SuddenStart"),
        "_splitting": ("split_rod", "split_rods"),
    }
    _load_late(__name__, _NAMES)
