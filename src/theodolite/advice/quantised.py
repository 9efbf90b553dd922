"""Weights stored in fewer bits, as a configuration's `quantization_config` says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from theodolite.advice.shape import Quantised

_BITS = {"fp8": 8.0, "fbgemm_fp8": 8.0, "finegrained_fp8": 8.0, "eetq": 8.0, "bitnet": 2.0, "mxfp4": 4.25, "higgs": 4.0}
_SCALE_BITS = 16


def quantised(config: Mapping[str, Any]) -> Quantised | None:
    """None where nothing is said; bits of 0 where the method is not read here."""
    stated = config.get("quantization_config")
    if not isinstance(stated, Mapping) or not stated:
        return None
    method = stated.get("quant_method")
    method = method if isinstance(method, str) else "an unnamed method"
    bits = _bits(stated, method)
    group = next((stated[key] for key in ("group_size", "q_group_size") if _whole(stated.get(key))), None)
    if bits and group and bits < 8:
        bits += (_SCALE_BITS + bits) / group  # a scale and a zero point for each group
    return Quantised(method, bits)


def _bits(stated: Mapping[str, Any], method: str) -> float:
    for key in ("bits", "w_bit", "nbits"):
        if _whole(stated.get(key)):
            return float(stated[key])
    if stated.get("load_in_4bit") is True or stated.get("_load_in_4bit") is True:
        return 4.0
    if stated.get("load_in_8bit") is True or stated.get("_load_in_8bit") is True:
        return 8.0
    weights = stated.get("weights")
    if isinstance(weights, str) and weights.lstrip("intfloa").isdigit():
        return float(weights.lstrip("intfloa"))
    groups = stated.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        inner = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(inner, Mapping) and _whole(inner.get("num_bits")):
            return float(inner["num_bits"])
    return _BITS.get(method, 0.0)


def _whole(value: Any) -> bool:
    return type(value) is int and 0 < value <= 1024
