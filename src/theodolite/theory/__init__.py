"""Predictions: plain functions from shapes to numbers, each with its formula, its domain and its source."""
