"""LOAD, ENCODE: from files and frames to coded records."""
