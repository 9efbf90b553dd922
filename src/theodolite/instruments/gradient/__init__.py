"""What the gradient says of a class of targets, or of one target, before training."""
