"""What each command shows of its own result, in words, tables and pictures made of the pieces of `report/`."""
