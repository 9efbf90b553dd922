"""Published tables, one a file: what is run to measure it again, and what was published. No claims live here."""
