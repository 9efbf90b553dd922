"""The description of one model type, or why there is none."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.advise_descriptions.built_type import BuiltType, Sample, number_of
from benchmarks.advise_descriptions.experiments import (
    derived_lists,
    effective_lists,
    many_changed,
    one_changed,
    small,
    written_out,
)
from benchmarks.advise_descriptions.filled_in import filling_rules
from benchmarks.advise_descriptions.terms import Found, settle, total, written

from theodolite.advice.described.flat import OTHER_PARTS
from theodolite.advice.described.formulas import evaluate_rule
from theodolite.advice.described.harmless import is_harmless
from theodolite.advice.fields import HEADS, KEY_VALUE_HEADS, MLP_WIDTH, WIDTH

JOINT, CHECKS, FLAGS, OF_FLAG = 18, 8, 12, 6
ROUNDS = 5

# Fields that are kept with their defaults whether or not they change the count: costs are computed from them.
_COSTS = {
    *WIDTH, *HEADS, *KEY_VALUE_HEADS, *MLP_WIDTH, "num_hidden_layers", "n_layer", "num_layers", "n_layers",
    "vocab_size", "max_position_embeddings", "n_positions", "head_dim", "d_kv", "sliding_window",
    "tie_word_embeddings", "model_type", "encoder_layers", "decoder_layers", "encoder_attention_heads",
    "decoder_attention_heads", "num_experts_per_tok", "num_experts", "num_local_experts", "n_routed_experts",
    "moe_intermediate_size", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim",
    "attention_chunk_size", "top_k", "moe_topk", "num_decoder_layers", "use_sliding_window", "encoder_ffn_dim",
    "decoder_ffn_dim", "sliding_window_pattern", "image_size", "patch_size", "hidden_act",
}  # fmt: skip


def describe(model_type: str, whole_sized: frozenset[str] = frozenset()) -> dict[str, Any] | str:
    """Fields in `whole_sized` are not made small for the experiments."""
    draw = random.Random(f"0 {model_type}")
    it = BuiltType(model_type)
    whole = it.build(dict(it.default))
    if whole is None:
        return "its defaults cannot be built"
    lists = derived_lists(it)
    full = {k: v for k, v in it.default.items() if k not in lists}
    base = small(it, full, whole_sized)
    shapes = it.build(base)
    if shapes is None:
        return "a small one cannot be built"
    base, given = written_out(it, base, shapes)
    singles = one_changed(it, base, shapes)
    relevant = {name: [(value, built) for value, built in tried if built != shapes] for name, tried in singles.items()}
    harmless = {name for name, tried in singles.items() if tried and not relevant[name]}
    relevant = {name: tried for name, tried in relevant.items() if tried}
    flags = {name for name in relevant if isinstance(base[name], bool)}
    sizes = set(relevant) - flags
    options = {name: [value for value, _ in tried] for name, tried in relevant.items()}
    samples: list[Sample] = [(base, shapes)]
    for name, tried in relevant.items():
        samples += [({**base, name: value}, built) for value, built in tried]
    samples += many_changed(it, base, options, draw, JOINT)
    of_sizes = {name: values for name, values in options.items() if name in sizes}
    for flag in sorted(flags)[:FLAGS]:
        samples += many_changed(it, {**base, flag: not base[flag]}, of_sizes, draw, OF_FLAG, (0.35, 0.5, 0.65))
    fixed: set[str] = set()
    known = set(relevant) | harmless | set(given)
    as_default = {**full, **{k: evaluate_rule(r, full) for k, r in given.items() if full.get(k) is None}}
    terms: list[Found] = []
    for _ in range(ROUNDS):
        explained = settle(base, samples, sizes, flags, fixed, it.effort)
        if explained is None:
            return "no formula"
        terms, fixed = explained
        elsewhere = frozenset(name for name in fixed if base.get(name) != full.get(name) and name not in given)
        if elsewhere:  # only the default is described, so the experiments must be made there
            again = not elsewhere <= whole_sized
            return describe(model_type, whole_sized | elsewhere) if again else "no formula at the default"
        loose = {name: values for name, values in options.items() if name not in fixed}
        checks = list(many_changed(it, base, loose, draw, CHECKS))
        if all(full.get(name) == base.get(name) or name in known - fixed or OTHER_PARTS.match(name) for name in full):
            checks.append((as_default, whole))
        wrong = [(flat, built) for flat, built in checks if total(terms, flat) != number_of(built)]
        if not wrong:
            break
        samples += wrong
    else:
        return "checks failed"
    unstated = harmless | lists - set(effective_lists(it, base, shapes, lists))
    free = [name for name in it.default if name in relevant and name not in fixed]
    aliases = getattr(it.kind, "attribute_map", None) or {}
    return {
        "class": it.counted,
        "language_part": any(name.startswith("text_config.") for name in it.default),
        "aliases": {alias: name for alias, name in aliases.items() if alias != name},
        "defaults": _defaults(it, {*relevant, *fixed}, harmless),
        "rules": {**filling_rules(it, free), **given},
        "harmless": _with_defaults(it, unstated - fixed),
        "fixed": sorted(fixed),
        "terms": written(terms),
    }


def _defaults(it: BuiltType, effective: set[str], harmless: set[str]) -> dict[str, Any]:
    def wanted(name: str) -> bool:
        costs = name.split(".")[-1] in _COSTS
        return name in effective or costs or not (is_harmless(name) or name in harmless)

    plain = {name: value for name, value in it.default.items() if _plain(value)}
    return {name: value for name, value in plain.items() if wanted(name) and not OTHER_PARTS.match(name)}


def _with_defaults(it: BuiltType, names: set[str]) -> dict[str, Any]:
    """With their defaults: under flags that are not the default's, other values were not tried."""
    there = [name for name in sorted(names) if name in it.default]
    return {name: it.default[name] if _plain(it.default[name]) else None for name in there}


def _plain(value: Any) -> bool:
    short = isinstance(value, list) and len(value) < 100
    return value is None or isinstance(value, int | float | str | bool) or short
