"""Training: members stacked into one program, one optimiser, one loop; whatever trains uses it."""
