"""Measurements: pure functions from a net to numbers; nothing here touches a disk or prints."""
