"""Instruments against functions whose answer is known, and against an independent evaluation."""
