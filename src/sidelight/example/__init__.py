"""People who never lived, and the schema of their survey: for demonstrations."""
