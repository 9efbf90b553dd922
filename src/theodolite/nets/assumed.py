"""Values for what a user's constructor needs and nobody gave: those of a small net, each named in `--explain`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from theodolite.nets.contract import ALIASES

WIDTH, DEPTH, HEADS = 32, 2, 4

_FIXED: dict[str, Any] = {
    "bias": True,
    "causal": True,
    "base": 10000.0,
    "rope_theta": 10000.0,
    "expand": 2,
    "mlp_ratio": 4,
    "ff_mult": 4,
    "device": None,
    "dtype": None,
    "model_type": None,
    **dict.fromkeys(("d_state", "state_size", "n_state", "state_dim"), 16),
    **dict.fromkeys(("kernel_size", "kernel", "d_conv", "conv_kernel"), 3),
    **dict.fromkeys(("initializer_range", "init_std"), 0.02),
}
_FEEDFORWARD = ("d_ff", "dim_feedforward", "ffn_dim", "ff_dim", "dim_ff", "intermediate_size", "mlp_dim", "d_mlp")
_KEY_HEADS = ("n_kv_heads", "num_key_value_heads", "kv_heads", "n_kv_head")


def assumed(missing: list[str], given: Mapping[str, Any], least_width: int) -> dict[str, Any]:
    """A value for every name that is known; `least_width` where a token's numbers go in as they are."""
    heads = _sized("heads", given) or HEADS
    width = _sized("width", given) or max(WIDTH, least_width) + -max(WIDTH, least_width) % heads
    sizes = {"width": width, "depth": DEPTH, "heads": heads, "attention_width": max(1, width // heads)}
    found: dict[str, Any] = {}
    for name in missing:
        meant = ALIASES.get(name, name)
        if meant in sizes:
            found[name] = sizes[meant]
        elif name in _FIXED:
            found[name] = _FIXED[name]
        elif name in _FEEDFORWARD:
            found[name] = 4 * width
        elif name in _KEY_HEADS:
            found[name] = heads
        elif "drop" in name:
            found[name] = 0.0
        elif name == "eps" or name.endswith(("_eps", "_epsilon")):
            found[name] = 1e-5
    return found


def _sized(meant: str, given: Mapping[str, Any]) -> int | None:
    """What was given for an argument, by whichever name."""
    return next((v for k, v in given.items() if ALIASES.get(k, k) == meant and type(v) is int), None)
