"""The advised shape as files of common trainers, each with a reader that gives the same parameters back."""
