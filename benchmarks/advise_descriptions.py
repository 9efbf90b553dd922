"""Descriptions of model types, found by experiment.  python benchmarks/advise_descriptions.py [types] --out table.json

Each type's default configuration is built by `transformers` on the meta device, then again with one field changed, then
with many changed at once. From how the tensors' sizes answer, formulas are found: polynomials in the fields with
rational coefficients, by part of the model, and under which flags they hold. A description is kept only if it counts
further random configurations to the last parameter. Fields that changed nothing are listed as harmless; those whose
effect no formula caught are listed as fixed, and only their default is described.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from theodolite.advice.building.build import build
from theodolite.advice.building.language_part import parameters
from theodolite.advice.building.library import quiet, transformers
from theodolite.advice.building.parts import is_expert, part_of
from theodolite.advice.described.flat import OTHER_PARTS, Flat, flatten, labelled
from theodolite.advice.described.formulas import NotStated, derived, evaluate_rule
from theodolite.advice.described.harmless import is_harmless
from theodolite.advice.fields import HEADS, KEY_VALUE_HEADS, MLP_WIDTH, WIDTH

logger = logging.getLogger("descriptions")

HEAD = "@head"  # the width over the heads
Signature = dict[str, tuple[int, tuple[int, ...]]]  # name with # for numbers → how many, dimensions
NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")
JOINT, CHECKS = 18, 8
SECONDS = 20.0  # of the processor, for the experiments with one type


def nest(flat: Flat) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        *path, last = name.split(".")
        place = nested
        for step in path:
            place = place.setdefault(step, {})
        place[last] = value
    return _lists(nested)


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if (
        value
        and all(isinstance(key, str) and key.isdigit() for key in value)
        and sorted(map(int, value)) == list(range(len(value)))
    ):
        return [value[str(index)] for index in range(len(value))]
    return {key: _lists(item) for key, item in value.items()}


class Type:
    """One model type, built in variations of its default configuration."""

    def __init__(self, model_type: str) -> None:
        self.model_type = model_type
        self.kind = transformers().CONFIG_MAPPING[model_type]
        with quiet():
            self.default = labelled(flatten(self.kind().to_dict()))
        self.builds = 0
        started_at[0] = time.process_time()
        self.fixed: set[str] = set()
        self.counted = ""
        self.nothing_derived: set[str] = set()

    def try_build(self, flat: Flat) -> dict[str, tuple[int, ...]] | None:
        self.builds += 1
        _in_time()
        content = {**nest(flat), "model_type": self.model_type}
        if self.counted:
            content["architectures"] = [self.counted]
        try:
            built = build(content, "it")
        except Exception:
            return None
        if self.counted and built.counted != self.counted:
            return None
        self.counted = built.counted
        text = getattr(built.config, "text_config", None)
        return {name: tuple(p.shape) for name, p in parameters(built.model, text).items()}

    def filled(self, flat: Flat) -> Flat:
        """What the configuration class makes of these fields."""
        with quiet():
            return labelled(flatten(self.kind.from_dict(nest(flat)).to_dict()))


def patterns(shapes: Mapping[str, tuple[int, ...]], refined: Mapping[str, int]) -> Signature | str:
    """Numbered names folded; or the folded name whose tensors differ in shape."""
    found: Signature = {}
    for name, shape in shapes.items():
        folded = fold(name, refined)
        count, first = found.get(folded, (0, shape))
        if first != shape:
            return NUMBER.sub("#", name)
        found[folded] = (count + 1, shape)
    return found


def fold(name: str, refined: Mapping[str, int]) -> str:
    folded = NUMBER.sub("#", name)
    keep = refined.get(folded, 0)
    if not keep:
        return folded
    seen = itertools.count()
    return NUMBER.sub(lambda found: found[0] if next(seen) < keep else "#", name)


started_at = [0.0]


def _in_time() -> None:
    if time.process_time() - started_at[0] > SECONDS:
        raise TimeoutError("it takes too long")


class Unexplained(Exception):
    pass


def describe(model_type: str, seed: int = 0, whole_sized: frozenset[str] = frozenset()) -> dict[str, Any] | str:
    """The description, or why there is none; fields in `whole_sized` are not made small for the experiments."""
    draw = random.Random(f"{seed} {model_type}")
    it = Type(model_type)
    whole = it.try_build(dict(it.default))
    if whole is None:
        return "its defaults cannot be built"
    derived_lists = _derived(it)
    base = _small(it, {k: v for k, v in it.default.items() if k not in derived_lists}, whole_sized)
    shapes = it.try_build(base)
    if shapes is None:
        return "a small one cannot be built"
    base, given = _written_out(it, base, shapes)
    singles = _singles(it, base, shapes)
    relevant = {name: [(value, found) for value, found in tried if found != shapes] for name, tried in singles.items()}
    harmless = sorted(name for name, tried in singles.items() if tried and not any(f != shapes for _, f in tried))
    relevant = {name: tried for name, tried in relevant.items() if tried}
    sizes = {name for name in relevant if not isinstance(base[name], bool)}
    flags = {name for name in relevant if isinstance(base[name], bool)}
    samples: list[tuple[Flat, Mapping[str, tuple[int, ...]]]] = [(base, shapes)]
    for name, tried in relevant.items():
        samples += [({**base, name: value}, found) for value, found in tried]
    options = {name: [value for value, _ in tried] for name, tried in relevant.items()}
    samples += list(_joint(it, base, options, draw, JOINT))
    for flag in sorted(flags)[:12]:
        samples += list(
            _joint(
                it,
                {**base, flag: not base[flag]},
                {n: v for n, v in options.items() if n in sizes},
                draw,
                6,
                (0.35, 0.5, 0.65),
            )
        )
    fixed: set[str] = set()
    full = {k: v for k, v in it.default.items() if k not in derived_lists}
    known = sizes | flags | set(harmless) | set(given)
    as_default = {**full, **{k: evaluate_rule(r, full) for k, r in given.items() if full.get(k) is None}}
    terms: list[Term] = []
    checks: list[tuple[Flat, Any]] = []
    for _ in range(5):
        explained = _settle(base, samples, sizes, flags, fixed)
        if explained is None:
            return "no formula"
        terms, fixed = explained
        elsewhere = frozenset(name for name in fixed if base.get(name) != full.get(name) and name not in given)
        if elsewhere:  # only the default is described, so the experiments must be made there
            return (
                "no formula at the default"
                if elsewhere <= whole_sized
                else describe(model_type, seed, whole_sized | elsewhere)
            )
        free = {name: values for name, values in options.items() if name not in fixed}
        checks = list(_joint(it, base, free, draw, CHECKS))
        if all(full.get(name) == base.get(name) or name in known - fixed or OTHER_PARTS.match(name) for name in full):
            checks.append((as_default, whole))
        wrong = [(flat, found) for flat, found in checks if _total(terms, flat) != _parameters(found)]
        if not wrong:
            break
        samples += wrong
    else:
        return "checks failed"
    rules = {**_rules(it, [n for n in relevant if n not in fixed], draw), **given}
    stated = {name: it.default.get(name) for name in (*relevant, *fixed)}
    return {
        "class": it.counted,
        "language_part": any(name.startswith("text_config.") for name in it.default),
        "aliases": {
            alias: name for alias, name in (getattr(it.kind, "attribute_map", None) or {}).items() if alias != name
        },
        "defaults": {
            k: v
            for k, v in it.default.items()
            if _plain(v)
            and not OTHER_PARTS.match(k)
            and (k in stated or _read_by_shape(k) or not (is_harmless(k) or k in harmless))
        },
        "rules": rules,
        "harmless": _with_defaults(
            it, {*harmless, *derived_lists} - fixed - set(_effective_lists(it, base, shapes, derived_lists))
        ),
        "fixed": sorted(fixed),
        "terms": _written(terms),
        "checked": len(checks),
    }


def _with_defaults(it: Type, names: set[str]) -> dict[str, Any]:
    """With their defaults: under flags that are not the default's, other values were not tried."""
    return {
        name: it.default[name] if _plain(it.default.get(name)) else None for name in sorted(names) if name in it.default
    }


def _plain(value: Any) -> bool:
    return (
        value is None or isinstance(value, int | float | str | bool) or (isinstance(value, list) and len(value) < 100)
    )


def _read_by_shape(name: str) -> bool:
    last = name.split(".")[-1]
    return last in NAMES


NAMES = {
    *WIDTH, *HEADS, *KEY_VALUE_HEADS, *MLP_WIDTH, "num_hidden_layers", "n_layer", "num_layers", "n_layers",
    "vocab_size", "max_position_embeddings", "n_positions", "head_dim", "d_kv", "sliding_window",
    "tie_word_embeddings", "model_type", "encoder_layers", "decoder_layers", "encoder_attention_heads",
    "decoder_attention_heads", "num_experts_per_tok", "num_experts", "num_local_experts", "n_routed_experts",
    "moe_intermediate_size", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim",
    "attention_chunk_size", "top_k", "moe_topk", "num_decoder_layers", "use_sliding_window", "encoder_ffn_dim",
    "decoder_ffn_dim", "sliding_window_pattern", "image_size", "patch_size", "hidden_act",
}  # fmt: skip


def _parameters(shapes: Mapping[str, tuple[int, ...]]) -> int:
    return sum(int(np.prod(shape, dtype=object)) for shape in shapes.values())


def _settle(
    base: Flat, samples: list[tuple[Flat, Any]], sizes: set[str], flags: set[str], fixed: set[str]
) -> tuple[list[Term], set[str]] | None:
    """Formulas, after as few fields as that takes are held at their default."""
    fixed = set(fixed)

    def attempt(held: set[str]) -> list[Term] | str:
        try:
            return _explain(base, [s for s in samples if _keeps(s[0], base, held)], sizes - held, flags - held)
        except Unexplained as error:
            return str(error)

    for _ in range(10):
        found = attempt(fixed)
        if not isinstance(found, str):
            return found, fixed
        if not found or found in fixed:
            break
        fixed.add(found)
    always = {n for n in sizes | flags if n.split(".")[-1] in ("vocab_size", "tie_word_embeddings", "num_labels")}
    singly = [{name} for name in sorted(flags | sizes)] if len(samples) * len(sizes) < 1500 else []
    for held in (*singly, flags - always, (sizes | flags) - always, sizes | flags):
        found = attempt(held)
        if not isinstance(found, str):
            return found, held
    return None


def _keeps(flat: Flat, base: Flat, fixed: set[str]) -> bool:
    return all(flat.get(name) == base.get(name) for name in fixed)


def _derived(it: Type) -> set[str]:
    """Lists and nested values that the configuration class works out from other fields when they are not stated."""
    lists = {name for name, value in it.default.items() if isinstance(value, list) and len(value) > 1}
    lists |= {name for name, value in it.default.items() if isinstance(value, list) and "layer" in name}
    found = set()
    for name in lists:
        without = {k: v for k, v in it.default.items() if k != name}
        try:
            if it.filled(without).get(name) == it.default[name]:
                found.add(name)
        except Exception:
            continue
    return found


def _effective_lists(it: Type, base: Flat, shapes: Any, lists: set[str]) -> Iterator[str]:
    """Those whose entries change the count: only the derived list is described."""
    for name in lists:
        value = it.filled(base).get(name) if name not in base else base[name]
        if not isinstance(value, list) or not value:
            continue
        for one in {json.dumps(item): item for item in value}.values():
            if it.try_build({**base, name: [one] * len(value)}) != shapes:
                yield name
                break


def _small(it: Type, base: Flat, whole_sized: frozenset[str]) -> Flat:
    """With few layers and experts, so that it is built fast."""
    for name, v in base.items():
        if type(v) is int and v > 1 and OTHER_PARTS.match(name) and re.search(r"layers?$|depth$", name):
            fewer = {**base, name: 1}
            base = fewer if it.try_build(fewer) is not None else base
    stacks = [name for name in base if re.search(r"layers?$|depth$|n_layer", name) and not OTHER_PARTS.match(name)]
    wanted = [name for name in stacks if type(base[name]) is int and base[name] > 4 and name not in whole_sized]
    many = [
        n
        for n, v in base.items()
        if type(v) is int and v > 16 and n not in whole_sized and re.search(r"(num|n)_\w*experts$", n)
    ]
    small = {**base, **dict.fromkeys(wanted, 4)}
    if it.try_build(small) is None:
        small = dict(base)
        for name in wanted:
            attempt = {**small, name: 4}
            small = attempt if it.try_build(attempt) is not None else small
    fewer = {**small, **dict.fromkeys(many, 16)}
    return fewer if many and it.try_build(fewer) is not None else small


def _written_out(it: Type, base: Flat, shapes: Any) -> tuple[Flat, dict[str, str]]:
    """Null sizes given the value that changes nothing: a share of the width, as many as heads, four times the width."""
    rules: dict[str, str] = {}
    for name, value in list(base.items()):
        prefix, last = name.rpartition(".")[::2]
        prefix = f"{prefix}." if prefix else ""
        width = next((f"{prefix}{one}" for one in WIDTH if type(base.get(f"{prefix}{one}")) is int), None)
        heads = next((f"{prefix}{one}" for one in HEADS if type(base.get(f"{prefix}{one}")) is int), None)
        if value is not None or width is None or last not in ("head_dim", "d_kv", *KEY_VALUE_HEADS, *MLP_WIDTH):
            continue
        for rule in filter(None, (heads and f"{width}/{heads}", heads, f"4*{width}", width)):
            worth = evaluate_rule(rule, base)
            if worth is not None and it.try_build({**base, name: worth}) == shapes:
                base = {**base, name: worth}
                rules[name] = rule
                break
    return base, rules


def _singles(it: Type, base: Flat, shapes: Any) -> dict[str, list[tuple[Any, Any]]]:
    found: dict[str, list[tuple[Any, Any]]] = {}
    for name, value in base.items():
        if OTHER_PARTS.match(name) or is_harmless(name) or isinstance(value, str | list | dict) or value is None:
            continue
        if isinstance(value, bool):
            tries: list[Any] = [not value]
        elif isinstance(value, float):
            tries = [value * 2, value / 2 + 0.25]
        elif value == 0:
            tries = [1, 2]
        else:
            depth = re.search(r"layer|depth", name)
            tries = (
                [value + 1, value + 2, 2 * value] if depth else [2 * value, 3 * value, value // 2, value + 1, 4 * value]
            )
        got: list[tuple[Any, Any]] = []
        for one in tries:
            if one in (value, 0) and not isinstance(value, bool):
                continue
            shape = it.try_build({**base, name: one})
            if shape is not None:
                got.append((one, shape))
            if len(got) == (2 if any(s != shapes for _, s in got) else 1) and (
                len(got) > 1 or (got[0][1] == shapes and not depth_like(name, value))
            ):
                break
            if len(got) >= 3:
                break
        found[name] = got
    return found


def depth_like(name: str, value: Any) -> bool:
    return type(value) is int and value > 1 and ("layer" in name or "step" in name or "freq" in name)


def _joint(
    it: Type,
    base: Flat,
    options: Mapping[str, list[Any]],
    draw: random.Random,
    wanted: int,
    shares: tuple[float, ...] = (0.15, 0.3, 0.5),
) -> Iterator[tuple[Flat, Any]]:
    made = 0
    for attempt in range(4 * wanted):
        share = draw.choice(shares) if attempt < 3 * wanted else min(shares)
        flat = {**base}
        for name, values in options.items():
            if values and draw.random() < share:
                value = draw.choice(values)
                if type(value) is int and draw.random() < 0.3 and value > 3 and not isinstance(base[name], bool):
                    value *= draw.choice((2, 3))
                flat[name] = value
        found = it.try_build(flat)
        if found is not None:
            yield flat, found
            made += 1
        if made == wanted:
            return


# ── formulas ──────────────────────────────────────────────────────────────────────────────────────────────────────

Polynomial = dict[tuple[str, ...], Fraction]
Term = tuple[str, bool, dict[str, Any], Polynomial]


def _value(name: str, flat: Flat) -> Fraction:
    if name.startswith("@"):
        return Fraction(derived(name, flat))
    return Fraction(flat[name]).limit_denominator(10**6)


def evaluate(polynomial: Polynomial, flat: Flat) -> Fraction:
    total = Fraction(0)
    for names, factor in polynomial.items():
        worth = factor
        for name in names:
            worth *= _value(name, flat)
        total += worth
    return total


def _total(terms: list[Term], flat: Flat) -> Fraction:
    return sum(
        (evaluate(p, flat) for _, _, when, p in terms if all(flat.get(k) == v for k, v in when.items())), Fraction(0)
    )


def _explain(base: Flat, samples: list[tuple[Flat, Any]], sizes: set[str], flags: set[str]) -> list[Term]:
    refined: dict[str, int] = {}
    signatures: list[Signature] = []
    for _ in range(400):
        signatures = []
        for _, shapes in samples:
            made = patterns(shapes, refined)
            if isinstance(made, str):
                refined[made] = refined.get(made, 0) + 1
                if refined[made] > 3:
                    raise Unexplained("")
                break
            signatures.append(made)
        else:
            break
    names = sorted({name for signature in signatures for name in signature})
    if len(names) > 1500:
        raise Unexplained("")
    terms: list[Term] = []
    memo: dict[Any, Polynomial] = {}
    for name in names:
        present = [index for index, signature in enumerate(signatures) if name in signature]
        when = _condition(present, samples, flags)
        terms += _of_tensor(base, name, when, samples, signatures, sizes, flags, memo)
    return terms


def _of_tensor(
    base: Flat,
    name: str,
    when: dict[str, Any],
    samples: list[tuple[Flat, Any]],
    signatures: list[Signature],
    sizes: set[str],
    flags: set[str],
    memo: dict[Any, Polynomial],
) -> list[Term]:
    """One term, or two where a flag changes the tensor's size."""

    def fitted(when: dict[str, Any]) -> Term:
        where = [i for i in range(len(samples)) if all(samples[i][0].get(k) == v for k, v in when.items())]
        there = [i for i in where if name in signatures[i]]
        counts = [signatures[i][name][0] if name in signatures[i] else 0 for i in where]
        product = _fit(base, [samples[i][0] for i in where], counts, sizes, memo)
        for axis in range(len(signatures[there[0]][name][1]) if there else 0):
            dims = [signatures[i][name][1][axis] for i in there]
            product = _times(product, _fit(base, [samples[i][0] for i in there], dims, sizes, memo))
        return part_of(re.sub("#", "0", name)), is_expert(name), when, product

    try:
        return [fitted(when)]
    except Unexplained:
        for flag in sorted(flags - set(when)):
            try:
                return [fitted({**when, flag: value}) for value in (True, False)]
            except Unexplained:
                continue
        raise


def _condition(present: list[int], samples: list[tuple[Flat, Any]], flags: set[str]) -> dict[str, Any]:
    """The flags that decide whether a tensor is there; none where its number goes to zero by itself."""
    if len(present) == len(samples):
        return {}
    there = set(present)
    absent = [i for i in range(len(samples)) if i not in there]
    single = []
    for flag in sorted(flags):
        values = {samples[i][0].get(flag) for i in present}
        if len(values) == 1:
            single.append((flag, values.pop()))
    for some in itertools.chain.from_iterable(itertools.combinations(single, n) for n in (1, 2, 3)):
        if all(any(samples[i][0].get(k) != v for k, v in some) for i in absent):
            return dict(some)
    return {}


def _fit(base: Flat, flats: list[Flat], values: list[int], sizes: set[str], memo: dict[Any, Polynomial]) -> Polynomial:
    key = (tuple(map(id, flats)), tuple(values))
    if key not in memo:
        memo[key] = _fitted(base, flats, values, sizes)
    return memo[key]


def _fitted(base: Flat, flats: list[Flat], values: list[int], sizes: set[str]) -> Polynomial:
    if len(set(values)) == 1:
        return {(): Fraction(values[0])}
    moved = _responding(base, flats, values, sizes)
    for hypothesis in _hypotheses(base, moved):
        found = _solve(hypothesis, flats, values)
        if found is not None:
            return found
    more = [name for name in sorted(sizes) if len({flat.get(name) for flat in flats}) > 1]
    if len(flats) > 4:
        for hypothesis in itertools.chain(
            _simple(more), _pairs(moved, more)
        ):  # tensors that only a flag brings were not seen with one field changed
            found = _solve(hypothesis, flats, values)
            if found is not None:
                return found
    for culprit in sorted(moved, key=lambda one: "expert" not in one and "step" not in one):
        kept = [i for i, flat in enumerate(flats) if flat.get(culprit) == base.get(culprit)]
        fewer = [values[i] for i in kept]
        if len(set(fewer)) == 1 or any(
            _solve(h, [flats[i] for i in kept], fewer) is not None
            for h in _hypotheses(base, [m for m in moved if m != culprit])
        ):
            raise Unexplained(culprit)
    logger.debug("no formula in %s: %s", moved, sorted(set(values))[:8])
    raise Unexplained(moved[0] if moved else "")


def _responding(base: Flat, flats: list[Flat], values: list[int], sizes: set[str]) -> list[str]:
    """Fields whose change alone changes the value, or that at least go with it."""
    groups = defaultdict(set)
    for flat, value in zip(flats, values, strict=True):
        changed = [name for name in sizes if flat.get(name) != base.get(name)]
        if len(changed) <= 1:
            groups[changed[0] if changed else ""].add(value)
    if "" in groups:
        return sorted(name for name, seen in groups.items() if name and seen != groups[""])
    scored = []
    for name in sizes:
        seen = defaultdict(set)
        for flat, value in zip(flats, values, strict=True):
            seen[flat.get(name)].add(value)
        scored.append((sum(len(s) for s in seen.values()) / len(seen), name))
    return [name for _, name in sorted(scored)[:4]]


def _hypotheses(base: Flat, moved: list[str]) -> Iterator[list[tuple[str, ...]]]:
    """Monomials to combine, simple ones first."""
    for count in (1, 2, 3):
        for some in itertools.combinations(moved, count):
            yield [some]
            yield [some, ()]
    yield from _pairs(moved, moved)
    heads = [name for name in moved if name.split(".")[-1] in HEADS or name.endswith("attention_heads")]
    widths = [name for name in moved if name.split(".")[-1] in WIDTH]
    shares = [f"{HEAD}:{width}/{head}" for width in widths for head in heads]
    for share in shares:
        for count in (0, 1, 2):
            for some in itertools.combinations([n for n in moved if n not in widths], count):
                yield [(share, *some)]
    if len(moved) <= 4:
        every = [some for count in range(len(moved) + 1) for some in itertools.combinations(moved, count)]
        yield every
        for share in shares:
            others = [n for n in moved if n not in widths and n not in heads]
            yield [*((n,) for n in widths), (share,)]
            yield [*((n,) for n in widths), *((share, n) for n in others), ()]
    if len(moved) > 4:
        yield [(), *((n,) for n in moved), *itertools.combinations(moved, 2)]


def _pairs(moved: list[str], names: list[str]) -> Iterator[list[tuple[str, ...]]]:
    """Patches of an image; layers from the first few on; every second layer."""
    for one, two in itertools.permutations(names, 2):
        if one not in moved and two not in moved:
            continue
        if "image" in one or ("size" in one and "patch" in two):
            yield [(f"@grid:{one}/{two}",), ()]
        if "layer" in one or "depth" in one:
            for kind in ("over", "under", "floor", "ceil"):
                yield [(f"@{kind}:{one}/{two}",)]
            yield [(one,), (f"@floor:{one}/{two}",)]
            yield [(one,), (f"@ceil:{one}/{two}",)]


def _simple(names: list[str]) -> Iterator[list[tuple[str, ...]]]:
    for name in names:
        yield [(name,)]
    for name in names:
        yield [(name,), ()]
    for pair in itertools.combinations(names, 2):
        yield [pair]
    for one, two in itertools.combinations(names, 2):
        yield [(one,), (two,)]
    for width in (name for name in names if name.split(".")[-1] in WIDTH):
        for heads in (name for name in names if name.split(".")[-1] in HEADS):
            share = f"{HEAD}:{width}/{heads}"
            yield [(share,)]
            yield [(width,), (share,)]
            for name in names:
                yield [(share, name)]


def _solve(monomials: list[tuple[str, ...]], flats: list[Flat], values: list[int]) -> Polynomial | None:
    if len(flats) < len(monomials) + 1:
        return None
    _in_time()
    try:
        return _solved(monomials, flats, values)
    except NotStated:
        return None


def _solved(monomials: list[tuple[str, ...]], flats: list[Flat], values: list[int]) -> Polynomial | None:
    rows = [
        [float(np.prod([float(_value(n, flat)) for n in some])) if some else 1.0 for some in monomials]
        for flat in flats
    ]
    matrix = np.array(rows)
    scale = np.abs(matrix).max(axis=0)
    scale[scale == 0] = 1
    solution, _, rank, _ = np.linalg.lstsq(matrix / scale, np.array(values, dtype=float), rcond=1e-10)
    if rank < len(monomials):
        return None
    factors = [Fraction(float(c / s)).limit_denominator(64) for c, s in zip(solution, scale, strict=True)]
    found = {some: factor for some, factor in zip(monomials, factors, strict=True) if factor}
    if all(evaluate(found, flat) == value for flat, value in zip(flats, values, strict=True)):
        return found
    return None


def _times(a: Polynomial, b: Polynomial) -> Polynomial:
    product: Polynomial = defaultdict(Fraction)
    for (one, x), (two, y) in itertools.product(a.items(), b.items()):
        product[tuple(sorted((*one, *two)))] += x * y
    return dict(product)


def _rules(it: Type, relevant: list[str], draw: random.Random) -> dict[str, str]:
    """What the configuration class fills in for a size that is not stated: nothing here means the default."""
    rules: dict[str, str] = {}
    plain = {name: v for name, v in it.default.items() if type(v) is int}
    sizes = [name for name in relevant if type(it.default.get(name)) is int and not isinstance(it.default[name], bool)]
    drawn: list[tuple[set[str], Flat, Flat]] = []
    for _ in range(40):
        changed = {one: it.default[one] * draw.choice((1, 2, 3)) for one in sizes if draw.random() < 0.4}
        stated = set(changed)
        for prefix in {one.rpartition(".")[0] for one in changed}:
            key = f"{prefix}.model_type" if prefix else "model_type"
            if key in it.default:
                changed[key] = it.default[key]
        try:
            filled = it.filled(changed)
        except Exception:
            continue
        drawn.append((stated, {**plain, **{k: v for k, v in filled.items() if type(v) is int}}, filled))
    for name in sizes:
        others = [one for one in sizes if one != name]
        seen = [(flat, filled.get(name)) for stated, flat, filled in drawn if name not in stated]
        if not seen or len({value for _, value in seen}) == 1:
            continue
        made: list[str] = [
            *others,
            *(f"{a}/{b}" for a in others for b in others if a != b),
            *(f"{c}*{a}" for a in others for c in (2, 3, 4, 8)),
            *(f"{a}/16" for a in others),
        ]
        rules[name] = next(
            (rule for rule in made if all(evaluate_rule(rule, flat) == value for flat, value in seen)), "?"
        )
    return rules


def _written(terms: list[Term]) -> list[list[Any]]:
    """[part, whether of experts, flags, sum of products], terms of a kind together."""
    together: dict[str, tuple[str, bool, dict[str, Any], Polynomial]] = {}
    for part, expert, when, polynomial in terms:
        key = json.dumps([part, expert, when], sort_keys=True)
        sum_ = together.setdefault(key, (part, expert, when, defaultdict(Fraction)))[3]
        for names, factor in polynomial.items():
            sum_[names] += factor
    written = []
    for part, expert, when, polynomial in together.values():
        sum_ = " + ".join("*".join((str(factor), *names)) for names, factor in sorted(polynomial.items()) if factor)
        written.append([part, expert, when, sum_])
    return written


def _of_parts(name: str) -> bool:
    with quiet():
        return bool(getattr(transformers().CONFIG_MAPPING[name], "sub_configs", None))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("types", nargs="*")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--part", default="0/1", help="of the types: 0/2 and 1/2 are the two halves")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    names = options.types or sorted(transformers().CONFIG_MAPPING.keys())[part::parts]
    found: dict[str, Any] = {}
    if options.out and options.out.exists():
        found = json.loads(options.out.read_text(encoding="utf-8"))
    names = sorted(names, key=lambda name: (_of_parts(name), name))
    log = options.out.with_suffix(".failed") if options.out else None
    failed = log.read_text(encoding="utf-8").splitlines() if log and log.exists() else []
    for name in names:
        if name in found or name in failed:
            continue
        started = time.perf_counter()
        try:
            made: dict[str, Any] | str = describe(name)
        except Exception as error:
            made = f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - started
        print(
            f"{name}: {made if isinstance(made, str) else 'described'} ({seconds:.1f} s)", file=sys.stderr, flush=True
        )
        found[name] = made
        if isinstance(made, str) and log:
            with log.open("a", encoding="utf-8") as file:
                file.write(f"{name}\n")
        if options.out:
            kept = {key: value for key, value in found.items() if not isinstance(value, str)}
            options.out.write_text(json.dumps(kept, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    if not options.out:
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
