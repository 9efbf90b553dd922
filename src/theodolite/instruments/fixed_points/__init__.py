"""What iterating a map does: converge, repeat, wander, diverge."""
