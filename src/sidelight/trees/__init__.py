"""The engine of graphical models: triangulation, junction trees, sum-product, marginals."""
