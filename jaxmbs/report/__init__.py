"""Reports that one can send (extra `report`)."""

from ._write import View as View, view as view, write as write, Written as Written
