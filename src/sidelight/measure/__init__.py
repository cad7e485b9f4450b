"""MEASURE: noisy answers."""
