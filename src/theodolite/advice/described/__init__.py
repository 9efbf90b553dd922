"""Descriptions of model types, found by experiment and kept as data: formulas in the fields of a configuration."""
