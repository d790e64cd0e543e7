"""Reports that one can send (extra `report`)."""

from ._view import View as View, view as view
from ._write import write as write, Written as Written
