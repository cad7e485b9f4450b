"""COUNT: what is asked of a table."""
