"""Campaigns: cells, the groups they run in, the store that keeps them, the engines that run them, checkpoints."""
