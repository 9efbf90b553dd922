"""The version, read by the build and by every row's provenance."""

__version__ = "0.1.0"
