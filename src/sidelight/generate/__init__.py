"""GENERATE: synthetic records from a model."""
