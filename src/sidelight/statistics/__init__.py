"""One number, many privacy needs."""
