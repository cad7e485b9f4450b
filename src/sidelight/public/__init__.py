"""What public data become: sources, structure, smoothing, a prior."""
