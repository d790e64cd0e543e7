from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._flexibility import flexibility as flexibility
    from ._report import Flexibility as Flexibility, SubsetAnswer as SubsetAnswer
    from ._splitting import (
        AbstractStart as AbstractStart,
        split_rod as split_rod,
        split_rods as split_rods,
        SplitRod as SplitRod,
        StaticStart as StaticStart,
        SuddenStart as SuddenStart,
    )
else:
    _NAMES = {
        "_flexibility": ("flexibility",),
        "_report": (
            "Flexibility",
            "SubsetAnswer",
        ),
        "_splitting": (
            "AbstractStart",
            "split_rod",
            "split_rods",
            "SplitRod",
            "StaticStart",
            "SuddenStart",
        ),
    }
    _load_late(__name__, _NAMES)
