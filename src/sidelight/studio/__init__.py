"""The studio: sidelight as a local web page, for the people who decide."""
