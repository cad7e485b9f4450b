"""Means and quantiles of people who each have their own ε."""
