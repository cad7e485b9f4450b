"""The door to private tables: pay, write, look, draw; and the journal of what was paid for."""
