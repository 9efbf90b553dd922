"""Architectures, one family per file; a file registers what it defines, and importing this folder registers all."""

from theodolite.nets import (
    circuits,
    convolution,
    degree_attention,
    linear_transformer,
    lstm,
    mlp,
    polynomial_mixer,
    polynomial_mlp,
    rnn,
    self_attention,
    sum_of_products,
    transformer,
)
from theodolite.nets.contract import NetEntry, Prediction, list_nets, nets

__all__ = [
    "NetEntry",
    "Prediction",
    "circuits",
    "convolution",
    "degree_attention",
    "linear_transformer",
    "list_nets",
    "lstm",
    "mlp",
    "nets",
    "polynomial_mixer",
    "polynomial_mlp",
    "rnn",
    "self_attention",
    "sum_of_products",
    "transformer",
]
