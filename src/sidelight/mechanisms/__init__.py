"""One paper a file."""
