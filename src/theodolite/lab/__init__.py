"""Plans, the engine that runs them, and every file that is written; nothing here knows what a measure computes."""
