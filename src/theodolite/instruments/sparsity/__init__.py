"""Training that seeks sparsity: penalties, pruning, the masks they leave, and what a known graph is worth beside them.

Pure functions from settings and a seed to plain JSON; importing the package registers its measures.
"""

from theodolite.instruments.sparsity import dense_study, density_study, embedding, graph_study
from theodolite.instruments.sparsity.descent import Schedule, descend
from theodolite.instruments.sparsity.locality import Against, against_chance, neighbours
from theodolite.instruments.sparsity.penalties import Penalty
from theodolite.instruments.sparsity.pruning import Pruned, Pruning, iterate

__all__ = [
    "Against",
    "Penalty",
    "Pruned",
    "Pruning",
    "Schedule",
    "against_chance",
    "dense_study",
    "density_study",
    "descend",
    "embedding",
    "graph_study",
    "iterate",
    "neighbours",
]
