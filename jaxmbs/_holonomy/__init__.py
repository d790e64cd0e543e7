from ._holonomy import holonomy as holonomy
from ._report import Holonomy as Holonomy, Integrability as Integrability
