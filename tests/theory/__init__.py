"""Predictions against independent truths: hand-worked values, ranks by python-flint, brute force."""
