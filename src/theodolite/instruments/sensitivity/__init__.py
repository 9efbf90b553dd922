"""How far one changed symbol moves the output, and which tokens an output depends on at all."""
