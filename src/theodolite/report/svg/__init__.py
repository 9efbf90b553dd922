"""Pictures as SVG that stand alone: graphs, charts, basins, and the pieces that views draw theirs with."""
