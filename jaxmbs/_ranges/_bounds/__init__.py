from ._friction_cone import FrictionCone as FrictionCone
from ._limit import Limit as Limit
from ._linear import AtLeast as AtLeast, AtMost as AtMost, Between as Between
from ._one_sided import PullsOnly as PullsOnly, PushesOnly as PushesOnly
from ._resultant_limit import ResultantLimit as ResultantLimit
from ._text import Inequality as Inequality
from .base import AbstractBound as AbstractBound, Inequalities as Inequalities
