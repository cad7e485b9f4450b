"""EVALUATE: comparisons with exact answers. Their results are private, except for screening under ε."""
