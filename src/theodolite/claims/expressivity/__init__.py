"""Source G, on expressivity and learnability: its claims with their rules (g…), and what only they measure."""
