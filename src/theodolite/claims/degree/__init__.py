"""Source P, on the degree of a building block: its claims with their rules (p…), and what only they measure."""
