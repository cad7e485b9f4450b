"""What a table can be taken for: histogram, components, weighted records, graphical model, mixture."""
