from ._box import Box as Box
from ._cylinder import Cylinder as Cylinder
from ._sphere import Sphere as Sphere
from ._tube import Tube as Tube
from .base import AbstractShape as AbstractShape
