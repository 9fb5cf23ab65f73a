"""From log probabilities to words."""
