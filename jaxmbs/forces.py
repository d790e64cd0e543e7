"""Forces on bodies."""

from ._forces import Applied as Applied, Following as Following
