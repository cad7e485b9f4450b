"""EVALUATE: comparisons with exact answers; whatever comes out is private."""
