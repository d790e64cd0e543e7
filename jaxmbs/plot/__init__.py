"""Pictures (extra `cli`)."""

from ._mechanism import draw_mechanism as draw_mechanism
