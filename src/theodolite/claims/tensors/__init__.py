"""Source T, on tensors and separation rank: its claims with their rules (t…), and what only they measure."""
