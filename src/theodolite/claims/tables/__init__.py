"""Published tables, one a file: what is run to measure it again, and what was published. No claims live here."""

from theodolite.claims.tables import chomsky, failures, recall, universal_transformer
from theodolite.claims.tables.contract import PublishedTable, tables

__all__ = ["PublishedTable", "chomsky", "failures", "recall", "tables", "universal_transformer"]
