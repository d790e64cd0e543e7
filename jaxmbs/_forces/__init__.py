from ._applied import Applied as Applied, Following as Following
from .base import AbstractForce as AbstractForce, AbstractLoad as AbstractLoad
