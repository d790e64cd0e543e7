class ModelError(ValueError):
    """A model that cannot be: one sentence that names the table, the entry and the fix."""
