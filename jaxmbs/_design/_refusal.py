class DesignError(ValueError):
    """A derivative or a study that does not exist: one sentence that names what it breaks and the
    ways out."""
