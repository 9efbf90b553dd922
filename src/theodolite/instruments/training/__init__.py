"""Training many networks at once: members of one shape stacked into one batched program, each with rates of its own.

Nothing here touches disk; `lab` plans groups, keeps rows and writes checkpoints.
"""
