"""A first schema, from a public table."""
