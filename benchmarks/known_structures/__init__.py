"""Functions whose structure is known, to measure what is found of it. No search and no fitting."""
