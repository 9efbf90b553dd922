"""Pictures that stand alone as SVG files: graphs, the depth-width plane, basins, degrees."""
