"""LADDER: planned noise for tables whose relations fade, the more attributes they are between."""
