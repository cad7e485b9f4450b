"""The one door to private data: pay, write, look, draw; and the journal of what was paid for."""
