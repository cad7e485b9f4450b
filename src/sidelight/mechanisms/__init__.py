"""The mechanisms, each in a file of its own."""
