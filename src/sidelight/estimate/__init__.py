"""ESTIMATE: models fitted to measurements."""
