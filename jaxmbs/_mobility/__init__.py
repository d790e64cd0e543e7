from ._mobility import may_differ as may_differ, mobility as mobility
from ._report import Branch as Branch, Mobility as Mobility
