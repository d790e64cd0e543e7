from ._catalogue import describe as describe, get as get, names as names
from ._chain import (
    four_bar_chain as four_bar_chain,
    four_bar_chain_spatial as four_bar_chain_spatial,
)
from ._manipulator import flexible_joint_manipulator as flexible_joint_manipulator
from ._parallelogram import (
    elastic_parallelogram as elastic_parallelogram,
    modal_parallelogram as modal_parallelogram,
    parallelogram as parallelogram,
)
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
