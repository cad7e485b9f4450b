"""SELECT: scores with their sensitivity, and the private choice among candidates."""
