from ._mobility import mobility as mobility
from ._report import Branch as Branch, Mobility as Mobility
