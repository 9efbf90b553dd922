"""Results in a terminal: cards, tables and sentences, one file a kind of result."""
