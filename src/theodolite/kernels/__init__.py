"""Kernels written in Triton for what training repeats most: a recurrence over all tokens, attention, products."""
