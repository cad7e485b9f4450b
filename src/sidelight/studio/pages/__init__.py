"""One module for each step: what its page shows, and what its buttons do."""
