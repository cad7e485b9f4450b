"""REPORT: what people read about a release."""
