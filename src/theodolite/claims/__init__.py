"""Every claim of the sources: a prediction, the cells it needs and a rule fixed before the run."""

from theodolite.claims import tensors
from theodolite.claims.contract import Claim, Verdict, check_claims, claims, judge, list_claims

__all__ = ["Claim", "Verdict", "check_claims", "claims", "judge", "list_claims", "tensors"]
