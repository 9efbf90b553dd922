"""Source S, on compositional sparsity: its claims with their rules (s…), and what only they measure."""
