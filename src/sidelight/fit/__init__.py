"""From noisy answers to a model."""
