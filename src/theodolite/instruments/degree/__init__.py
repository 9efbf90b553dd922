"""Which degree a building block should have: rank, degree and trained error at equal cost."""
