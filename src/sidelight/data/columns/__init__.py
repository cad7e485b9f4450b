"""What a column declares, and what one of its values means."""
