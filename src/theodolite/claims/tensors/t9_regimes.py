"""Claim T9 of the tensor source, open: do the two regimes of depth against width show in training?"""

from __future__ import annotations

from theodolite.claims.contract import claim
from theodolite.claims.rule import Statistics, not_run
from theodolite.claims.tensors.rank_cell import TENSORS

claim(
    "T9",
    "Networks of equal size show two regimes in training: deeper is better only up to a depth that grows with the "
    "logarithm of the width.",
    TENSORS + "Section 7.3.2, Fig. 7.5",
    "Registered as open. It takes trained networks of equal size over depths and widths, on a GPU, beside the "
    "published fit of the best width, ln d = 5.039 + 0.0555·L (depths 6 to 48); rule, sample and cells are to be "
    "registered before that run.",
    lambda: [],
    quote="an experimental validation of the two depth efficiency/inefficiency regimes predicted by the tensorial "
    "framework of this chapter … the transition between regimes occurs in exponentially larger network sizes as the "
    "networks gets deeper",
    kind="observation",
    statistics=Statistics("none yet", "none yet", "none yet"),
)(not_run("open: it takes a study of trained networks on a GPU, whose rule is not registered yet"))
