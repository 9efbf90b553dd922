"""What several architectures share: attention weights, positions, scans, solvers. No net is registered here."""
