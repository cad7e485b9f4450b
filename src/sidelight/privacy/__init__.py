"""What is promised, what is spent, and the noise that keeps the promise."""
