from ._flexibility import flexibility as flexibility
from ._report import Flexibility as Flexibility, SubsetAnswer as SubsetAnswer
