"""APERTURE, our own mechanism (docs/papers/aperture.md)."""
