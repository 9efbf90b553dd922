"""The parts of the page that are asked with sliders and answer with drawings, one a file."""
