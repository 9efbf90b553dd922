"""Models fitted to rows only to be asked: ensembles, Gaussian processes, and the evidence that their slopes give."""
