"""The command line, one thin file per command; nothing is computed here, and torch is imported only inside commands."""
