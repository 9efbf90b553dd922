"""The failures of gradient-based deep learning, one experiment a file; their remedies with the cost counted."""
