"""How far off an answer may be."""
