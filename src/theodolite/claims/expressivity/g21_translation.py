"""Claim G21: the Universal Transformer in translation, which takes data that are not shipped."""

from __future__ import annotations

from theodolite.claims.contract import EXPRESSIVITY, claim
from theodolite.claims.rule import Statistics, not_run

claim(
    "G21",
    "In translation (WMT14, English to German) the Universal Transformer is ahead of a Transformer of as many "
    "parameters.",
    EXPRESSIVITY + "Universal Transformers, Table 7 (Dehghani et al. 2019)",
    "Not run: it takes the WMT14 texts, which are not shipped.",
    lambda: [],
    quote="BLEU: Universal Transformer small 26.8, Transformer base 28.0, Weighted Transformer base 28.4, Universal "
    "Transformer base 28.9. All base results have the same number of parameters.",
    kind="published table",
    statistics=Statistics("none", "none", "none"),
)(not_run("it takes the WMT14 texts, which are not shipped"))
