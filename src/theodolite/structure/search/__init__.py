"""From evidence to a graph: blocks, shared inputs, kinds, and the moves from one graph to the next. No fitting."""
