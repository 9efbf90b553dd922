"""Every claim of the sources: a prediction, the cells it needs and a rule fixed before the run."""

from theodolite.claims import (
    approximation,
    attention,
    circuits,
    failures,
    hierarchy,
    limits,
    sawtooth,
    signal,
    sparse_masks,
    sparse_structure,
    sparse_training,
    tensors,
)
from theodolite.claims.contract import Claim, Verdict, check_claims, claims, judge, list_claims, ordered

__all__ = [
    "Claim",
    "Verdict",
    "approximation",
    "attention",
    "check_claims",
    "circuits",
    "claims",
    "failures",
    "hierarchy",
    "judge",
    "limits",
    "list_claims",
    "ordered",
    "sawtooth",
    "signal",
    "sparse_masks",
    "sparse_structure",
    "sparse_training",
    "tensors",
]
