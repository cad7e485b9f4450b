"""From a file, a frame or a database to a source that can be counted."""
