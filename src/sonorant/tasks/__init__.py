"""Training: what a step is, and how a run is carried out, stopped and resumed."""
