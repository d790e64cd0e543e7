"""Built-in mechanisms, each of which is loaded when it is asked for."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._catalogue import get as get
    from ._chain import (
        four_bar_chain as four_bar_chain,
        four_bar_chain_spatial as four_bar_chain_spatial,
    )
    from ._manipulator import flexible_joint_manipulator as flexible_joint_manipulator
    from ._names import describe as describe, names as names
    from ._parallelogram import (
        elastic_parallelogram as elastic_parallelogram,
        modal_parallelogram as modal_parallelogram,
        parallelogram as parallelogram,
    )
    from ._planetary import planetary_set as planetary_set
    from ._robot import mobile_robot as mobile_robot
    from ._small import (
        bennett as bennett,
        door as door,
        driven_slider_crank as driven_slider_crank,
        sarrus as sarrus,
        slider_crank as slider_crank,
        table as table,
        three_crank_parallelogram as three_crank_parallelogram,
    )
    from ._spiral import spiral as spiral
    from ._swarm import swarm as swarm
else:
    _NAMES = {
        "_catalogue": ("get",),
        "_chain": ("four_bar_chain", "four_bar_chain_spatial"),
        "_manipulator": ("flexible_joint_manipulator",),
        "_parallelogram": ("elastic_parallelogram", "modal_parallelogram", "parallelogram"),
        "_names": ("describe", "names"),
        "_planetary": ("planetary_set",),
        "_robot": ("mobile_robot",),
        "_small": (
            "bennett",
            "door",
            "driven_slider_crank",
            "sarrus",
            "slider_crank",
            "table",
            "three_crank_parallelogram",
        ),
        "_spiral": ("spiral",),
        "_swarm": ("swarm",),
    }
    _load_late(__name__, _NAMES)
