"""Networks of a given graph fitted to rows, and whether held-out rows prefer them to a dense one. No search."""
