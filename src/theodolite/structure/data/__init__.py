"""What a scientist brings, a table or a black box, read and checked, as a source of values and slopes."""
