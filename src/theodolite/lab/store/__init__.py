"""The SQLite store of a folder: its schema, transactions, and who holds which group."""
