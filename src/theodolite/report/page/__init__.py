"""The report as one HTML page that opens offline: its first screen, tables, plots, colours."""
