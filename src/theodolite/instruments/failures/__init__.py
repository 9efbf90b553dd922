"""The failures of gradient-based deep learning, reproduced one experiment a file; their remedies with the cost counted.

Pure functions from settings and a seed to plain JSON; importing the package registers measures and experiments.
"""

from theodolite.instruments.failures import activations, curves, parity, remedies, stocks, tuples
from theodolite.instruments.failures.contract import Experiment, Part, experiments

__all__ = ["Experiment", "Part", "activations", "curves", "experiments", "parity", "remedies", "stocks", "tuples"]
