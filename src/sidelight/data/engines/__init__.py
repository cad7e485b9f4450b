"""Where counting runs: one engine a file."""
