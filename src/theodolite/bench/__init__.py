"""The learning bench: plans of what to train, summaries of what was learnt, comparisons, earlier runs."""
