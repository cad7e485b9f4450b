"""Models of a table: histogram, components, weighted records, graphical model, mixture."""
