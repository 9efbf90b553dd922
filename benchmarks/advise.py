"""How often `advise` counts right.  python benchmarks/advise.py --seed 7 --draws 2 --out advise.json

Every model type of the installed transformers: its default configuration, and random changes of it (sizes, heads,
key-value heads, vocabulary, tied embeddings) that transformers still builds. Truth is the number of parameters of the
model built on the meta device, tied tensors once; of a model that also sees or hears, of its language model. (Of a T5
with untied embeddings transformers 5 builds a tied model and loads an untied one: the latter is counted.) Each
configuration is read twice: with transformers, and with transformers hidden, by what is described alone.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from theodolite.advice.building.classes import candidates
from theodolite.advice.building.library import hidden, quiet, transformers
from theodolite.advice.fields import DEPTH, HEADS, KEY_VALUE_HEADS, MLP_WIDTH, VOCAB, WIDTH
from theodolite.advice.reading import read_config
from theodolite.errors import BadInput
from timing import hardware

TEXT = ("text_config", "language_config", "llm_config")
T5 = ("t5", "mt5", "umt5")
OUTCOMES = ("exact", "within 0.1%", "within 1%", "said to be approximate", "refused", "wrong without a word")
WIDE = (*WIDTH, *MLP_WIDTH, "encoder_ffn_dim", "decoder_ffn_dim", "moe_intermediate_size", "embed_dim")
DEEP = (*DEPTH, "encoder_layers", "decoder_layers")
MANY = (*HEADS, "encoder_attention_heads", "decoder_attention_heads")


def truth(config: dict[str, Any]) -> tuple[int, str] | None:
    """The parameters that transformers makes of this configuration, and the class; None where it makes none."""
    with quiet():
        try:
            read = transformers().CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(config))
        except Exception:
            return None
        kind: Any = next(candidates(read, None), None)
        try:
            with torch.device("meta"):
                model = kind(read)
        except Exception:
            return None
        count = _language_parameters(model, read)
    untied = config["model_type"] in T5 and config.get("tie_word_embeddings") is False
    if untied and model.lm_head.weight is model.shared.weight:
        count += model.lm_head.weight.numel()  # untied in the published weights; advise says so
    return count, kind.__name__


def _language_parameters(model: Any, config: Any) -> int:
    inner = next((getattr(config, key) for key in TEXT if getattr(config, key, None) is not None), None)
    heard = [module for module in model.modules() if inner is not None and getattr(module, "config", None) is inner]
    heard = [module for module in heard if isinstance(module, transformers().PreTrainedModel) and module is not model]
    if not heard:
        return sum(parameter.numel() for parameter in model.parameters())
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    found = {
        id(p): p.numel() for module in (*heard, *([head] if head is not None else [])) for p in module.parameters()
    }
    return sum(found.values())


def changed(default: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Some of the sizes changed, so that heads still divide widths more often than not."""
    config = copy.deepcopy(default)
    place = next((config[key] for key in TEXT if isinstance(config.get(key), dict)), config)
    times = draw.choice((0.5, 1, 1, 1.5, 2))
    for name in WIDE:
        if type(place.get(name)) is int:
            place[name] = max(8, int(place[name] * times) // 8 * 8)
    if draw.random() < 0.4:
        for name in MLP_WIDTH:
            if type(place.get(name)) is int:
                place[name] = 8 * draw.randint(4, 2000)
    if draw.random() < 0.6:
        _deepen(place, draw)
    if draw.random() < 0.4:
        share = draw.choice((2, 4))
        for name in MANY:
            if type(place.get(name)) is int and place[name] % share == 0:
                place[name] //= share
        for name in KEY_VALUE_HEADS:
            if type(place.get(name)) is int:
                place[name] = max(1, place[name] // share)
    if draw.random() < 0.4:
        for name in KEY_VALUE_HEADS:
            if type(place.get(name)) is int and place[name] % 2 == 0:
                place[name] //= 2
    for name in VOCAB:
        if type(place.get(name)) is int and draw.random() < 0.5:
            place[name] = draw.randint(100, 300_000)
    if type(config.get("tie_word_embeddings")) is bool and draw.random() < 0.3:
        config["tie_word_embeddings"] = not config["tie_word_embeddings"]
    return config


def _deepen(place: dict[str, Any], draw: random.Random) -> None:
    """Another depth; lists with an entry a layer are left to the configuration class."""
    old = {place[name] for name in DEEP if type(place.get(name)) is int}
    factor = draw.choice((0.5, 0.75, 1.25, 1.5, 2))
    for name in DEEP:
        if type(place.get(name)) is int:
            place[name] = max(1, round(place[name] * factor))
    for name in [name for name, value in place.items() if isinstance(value, list) and len(value) in old]:
        del place[name]


def outcome(config: dict[str, Any], true: int) -> tuple[str, int | None, str]:
    try:
        shape = read_config(config, "it")
    except BadInput as error:
        return "refused", None, str(error)
    off = abs(shape.params / true - 1)
    if not shape.exact:
        return "said to be approximate", shape.params, "; ".join(shape.notes)
    if off == 0:
        return "exact", shape.params, ""
    return ("within 0.1%" if off < 1e-3 else "within 1%" if off < 1e-2 else "wrong without a word"), shape.params, ""


def cases(names: list[str], draws: int, seed: int) -> Iterator[tuple[str, str, dict[str, Any], int]]:
    for name in names:
        draw = random.Random(f"{seed} {name}")
        try:
            with quiet():
                default = json.loads(transformers().CONFIG_MAPPING[name]().to_json_string(use_diff=False))
        except Exception:
            continue
        default.pop("architectures", None)
        default.pop("transformers_version", None)
        found = truth(default)
        if found is not None:
            yield name, "default", default, found[0]
        made = 0
        for _ in range(6 * draws):
            if made == draws:
                break
            config = changed(default, draw)
            found = truth(config)
            if found is not None:
                made += 1
                yield name, "changed", config, found[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("types", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=2, help="random changes of each default")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    every = sorted(transformers().CONFIG_MAPPING.keys())
    tallies = {(how, which): Counter[str]() for how in ("with", "without") for which in ("default", "changed")}
    rows = []
    for name, which, config, true in cases(options.types or every, options.draws, options.seed):
        for how in ("with", "without"):
            if how == "without":
                with hidden():
                    found, count, why = outcome(config, true)
            else:
                found, count, why = outcome(config, true)
            tallies[how, which][found] += 1
            if found != "exact":
                rows.append(
                    {
                        "type": name,
                        "which": which,
                        "how": how,
                        "outcome": found,
                        "count": count,
                        "true": true,
                        "why": why[:300],
                    }
                )
                if found in ("within 1%", "wrong without a word") or options.types:
                    print(f"{name}, {which}, {how} transformers: {found}, {count} for {true} {why[:200]}", flush=True)
    summary = {}
    for (how, which), tally in tallies.items():
        total = max(1, sum(tally.values()))
        shares = {one: round(tally[one] / total, 4) for one in OUTCOMES}
        summary[f"{which}, {how} transformers"] = {"configurations": sum(tally.values()), **shares}
        right = (tally["exact"] + tally["within 0.1%"]) / total
        print(f"{which}, {how} transformers: {sum(tally.values())} configurations, right {right:.1%};",
              ", ".join(f"{one} {tally[one]}" for one in OUTCOMES))  # fmt: skip
    if options.out:
        document = {
            "benchmark": "advise",
            "hardware": hardware(torch.device("cpu")),
            "transformers": transformers().__version__,
            "types": len(every),
            "seed": options.seed,
            "summary": summary,
            "not exact": rows,
        }
        options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
