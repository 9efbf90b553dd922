"""From data or a black box to a compositional graph, and to a network of that graph. No claims, no survey."""
