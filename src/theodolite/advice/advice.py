"""One shape judged, and the shape that is advised at the same budget."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from theodolite.advice.bottlenecks import bottlenecks, input_rank
from theodolite.advice.budget.plan import plan
from theodolite.advice.budget.resources import Resources
from theodolite.advice.configs import read_config
from theodolite.advice.cost import cost
from theodolite.advice.fields import VOCAB
from theodolite.advice.hardware import Hardware
from theodolite.advice.heads_law import heads_law, proven_heads
from theodolite.advice.hub import load
from theodolite.advice.kept import gave_way, stays
from theodolite.advice.like import like as like_public
from theodolite.advice.other_networks import WORDS
from theodolite.advice.recommend import Family, Recommendation, alternatives, fit_for, recommend
from theodolite.advice.reshaped import Reshaped
from theodolite.advice.result import Advice, Rated, Regime, Verdict, short
from theodolite.advice.rules import broken_by_hardware
from theodolite.advice.shape import Modality, ModelShape
from theodolite.advice.sharded import fit_to_hardware
from theodolite.advice.sizes import shapes_by_size
from theodolite.advice.template import BYTE_VOCAB, template
from theodolite.advice.usage import usage_near
from theodolite.errors import BadInput
from theodolite.notebook import watching
from theodolite.theory.attention import attention_bounds
from theodolite.theory.attention_growth import proven_log3, upper_refuted
from theodolite.theory.cap import attention_cap_log3
from theodolite.theory.domain import parse_budget
from theodolite.theory.shapes import FITTED_DEPTHS, Fit, boundary_depth, dense_parameters, fitted_depth

logger = logging.getLogger(__name__)

SMALLEST, LARGEST = 10**4, 10**15
_GUESSED = "The parameters are about so many: not every field of the configuration was read; see the notes."
CONTEXT = 2048
"""Tokens of context at which costs are computed, or the longest input where that is shorter."""


def advise(
    config: str | Path | Mapping[str, Any] | None = None,
    *,
    params: int | float | str | None = None,
    like: str | None = None,
    vocab: int | None = None,
    modality: str | None = None,
    embedding_rank: int | None = None,
    context: int | None = None,
    tp: int = 1,
    pp: int = 1,
    multiple_of: int = 1,
    measure: bool = False,
    device: str = "cpu",
    resources: Resources | None = None,
    progress: Callable[[float, float, str], None] | None = None,
) -> Advice:
    """Judge the shape in a configuration, or choose one for a budget of parameters.

    Parameters:
        config: a Hugging Face config.json, a folder that holds one, its content, or a model's name on the hub that the
            local cache has
        params: instead of it a budget with embeddings included, such as 64k, 7B or 1.3e9; beside it, its family is
            advised at that size
        like: with `params`, the family: llama, qwen3 or moe
        vocab: with `params`, the size of the vocabulary; 256 for bytes
        modality: language, image or bytes; the configuration's own, or language
        embedding_rank: of the inputs: a factored embedding where a budget is advised, and what is known of the inputs
            where a configuration is judged
        context: tokens at which costs are computed; up to 2,048 by default
        tp, pp, multiple_of: the advised shape can be shared by `tp` devices in each layer and by `pp` groups of layers,
            with sizes on a device that are multiples of `multiple_of`
        measure: time both shapes, on `device`
        resources: a budget of tokens, FLOPs or GPU-hours, GPUs and how a pass is laid out; without `config` and
            `params`, the size is the one that the budget is best spent on
        progress: is told of progress; a notebook shows it unless another is given

    Examples:
        >>> shape = advise(params=1.3e9, vocab=50257).advised.shape
        >>> shape.depth, shape.width, shape.heads
        (43, 1536, 24)
    """
    _check(vocab, modality, embedding_rank, context)
    tell = progress or watching() or _silent
    parts = 4 if measure else 2
    tell(0, parts, "reading the shape")
    hardware = Hardware(tp, pp, multiple_of)
    if config is None and params is None:
        params = None if resources is None else resources.best_size(modality or "language")
    if config is None and params is None:
        raise BadInput(
            "give a configuration, or a budget with --params, or both for its family at that size, or one of training "
            "with --flops, --tokens or --gpu-hours"
        )
    budget = None if params is None else _budget(params)
    if config is None:
        assert budget is not None
        name, model = f"{short(budget)} parameters", None
        if like is not None:
            _language_only(modality, embedding_rank)
            content, public = like_public(like, budget, vocab)
            start = read_config(content, name)
            chosen, model = start.modality, public.name
        else:
            chosen = _modality(modality or "language")
            content = template(chosen, budget, _vocabulary(vocab, chosen), embedding_rank)
            start = read_config(content, name)
        start, given = replace(start, modality=chosen), None
    else:
        content, name = _loaded(config)
        if like is not None:
            raise BadInput("--like goes with --params alone: a configuration is a family of its own")
        if vocab is not None:
            content = _with_vocabulary(content, vocab, budget)
        start = read_config(content, name)
        chosen = _modality(modality or start.modality)
        given = start = replace(start, modality=chosen)
        model = None
        if budget is not None:
            reason = _silence(start)
            if reason is not None:
                raise BadInput(f"{name} cannot be advised at another size, since {reason}: leave out --params")
            given, model = None, name
    budget = start.params if budget is None else budget
    tell(1, parts, f"choosing a shape for {short(budget)} parameters")
    advice = _advise(content, name, start, given, chosen, budget, embedding_rank, context, hardware, model)
    if resources is not None and resources.said:
        judged, sizes = advice.judged, shapes_by_size(content, name, start, chosen)
        planned = plan(judged.shape, resources, judged.cost.context, sizes, tensor=tp, pipeline=pp)
        advice = replace(advice, plan=planned)
    if measure and advice.judged.shape.speaks:
        from theodolite.advice.measure import measure_shapes

        timing = lambda place, label: tell(2 + place, parts, label)
        advice = replace(advice, measured=measure_shapes(advice, device, timing))
    tell(parts, parts, "done")
    return advice


def _silent(done: float, total: float, label: str) -> None:
    pass


def _advise(
    config: Mapping[str, Any],
    name: str,
    start: ModelShape,
    given: ModelShape | None,
    modality: Modality,
    budget: int,
    rank: int | None,
    context: int | None,
    hardware: Hardware,
    model: str | None,
) -> Advice:
    tokens = context or min(CONTEXT, start.positions or CONTEXT)

    def rated(shape: ModelShape) -> Rated:
        if not shape.speaks:
            return Rated(shape, cost(shape, tokens))
        bounds = attention_bounds(shape.depth, shape.width, shape.heads)
        inputs = input_rank(shape, rank)
        full = inputs is None or inputs >= shape.width
        side = None if shape.positions is None else max(1, shape.positions // 2)
        heads = proven_heads(shape)
        return Rated(
            shape,
            cost(shape, tokens),
            lower_log3=bounds.lower_log3 if full else None,
            published_upper_log3=bounds.upper_log3,
            upper_refuted=heads is not None and upper_refuted(shape.depth, shape.width, side, inputs, *heads),
            growth_log3=proven_log3(shape.depth, shape.width, side, inputs),
            cap_log3=attention_cap_log3(shape.depth, shape.width, inputs),
            input_rank=None if full else inputs,
        )

    if given is not None:
        reason = _silence(given)
        if reason is not None:
            return _counted_only(config, name, modality, rated(given), rank, reason, hardware)
    fit, said = fit_for(modality), ()
    shapes = Reshaped(config, name, start, modality)
    try:
        family = Family.of(start, shapes.near)
        found = recommend(family, budget, modality, min(start.depth, 1000))
        found = replace(found, shape=shapes.exact(found.shape))
        verdict = _verdict(given, found)
        kept = given is not None and verdict == "agrees" and heads_law(given).kept == given.heads
        if hardware.asks and not (kept and not any(broken_by_hardware(config, start, hardware))):
            kept = False
            sharded = fit_to_hardware(config, name, start, modality, family, found, budget, hardware)
            shapes, others, said = sharded.shapes, sharded.alternatives, sharded.notes
            outside = not found.from_training and fit.extrapolates(sharded.shape.depth)
            found = replace(found, shape=sharded.shape, extrapolated=outside)
        else:
            others = tuple(shapes.exact(shape) for shape in alternatives(family, budget, found.shape))
    except BadInput as error:
        if given is None or shapes.by_hand or hardware.asks:
            raise
        reason = f"no other shape of it is advised, since {error}"
        return _counted_only(config, name, modality, rated(given), rank, reason, hardware)
    if modality == "image":
        found = replace(found, extrapolated=True)  # from language
    if kept:
        assert given is not None
        found = replace(found, shape=given)  # nothing to change
    new = found.shape
    if given is not None or model is not None:  # else heads are the template's
        said = (*said, *gave_way(start, new, hardware))
    if model is not None:
        said = (stays(start, new, model), *said)
    logger.info("the fit meets the budget at depth %.2f and width %.1f", found.fitted_depth, found.fitted_width)
    return Advice(
        name=name,
        modality=modality,
        budget=budget,
        given=None if given is None else rated(given),
        advised=rated(new),
        recommendation=found,
        regime=_regime(given or new, fit, found, verdict),
        bottlenecks=bottlenecks(given or new, rank),
        left=bottlenecks(new, rank),
        alternatives=tuple(rated(shape) for shape in others),
        warnings=(*_warnings(given or new, new, modality, found, hardware), *said),
        config=dict(config) if kept else shapes.config(new),
        hardware=hardware,
        usage=usage_near(given or new),
    )


def _silence(shape: ModelShape) -> str | None:
    """Why there is no advice, where there is none."""
    if shape.speaks:
        return None
    return f"it is {WORDS[shape.kind]}, and of those the theorems and the published fit say nothing"


def _counted_only(
    config: Mapping[str, Any],
    name: str,
    modality: Modality,
    given: Rated,
    rank: int | None,
    reason: str,
    hardware: Hardware,
) -> Advice:
    notes = () if given.shape.exact else (_GUESSED,)
    return Advice(
        name=name,
        modality=modality,
        budget=given.shape.params,
        given=given,
        advised=None,
        recommendation=None,
        regime=None,
        bottlenecks=bottlenecks(given.shape, rank) if given.shape.speaks else (),
        left=(),
        alternatives=(),
        warnings=notes,
        config=dict(config),
        silent=reason,
        hardware=hardware,
    )


def _verdict(given: ModelShape | None, found: Recommendation) -> Verdict:
    new = found.shape
    if given is None or (new.depth, new.width) == (given.depth, given.width):  # nothing nearer can be built
        return "agrees"
    if found.depth_low <= given.depth <= found.depth_high:
        return "agrees"
    return "shallower" if given.depth < found.depth_low else "deeper"


def _regime(shape: ModelShape, fit: Fit, found: Recommendation, verdict: Verdict) -> Regime:
    reach, wide = 3**shape.depth, fit.width(shape.depth)
    if reach < shape.width:
        theorem = "7.1: deepen before widening"
    else:
        theorem = "neither: L = log3 d" if reach == shape.width else "7.2: depth and width count alike"
    return Regime(
        log3_width=boundary_depth(shape.width),
        theorem=theorem,
        against_fit=verdict,
        fitted_depth=found.fitted_depth,
        fitted_width=found.fitted_width,
        width_at_this_depth=wide if math.isfinite(wide) else None,
        depth_at_dense_parameters=fitted_depth(dense_parameters(shape.depth, shape.width), fit),
        depth_at_params_without_embeddings=fitted_depth(shape.params_in_blocks, fit),
        dense_parameters=round(dense_parameters(shape.depth, shape.width)),
        params_without_embeddings=shape.params_in_blocks,
    )


def _warnings(
    judged: ModelShape, new: ModelShape, modality: Modality, found: Recommendation, hardware: Hardware
) -> tuple[str, ...]:
    low, high = FITTED_DEPTHS
    notes = []
    if modality == "image":
        notes.append(
            "Images: the fit was made on language and is moved to a ten times larger depth-to-width ratio, which is "
            "published as a rough figure: take the depth as a direction, not as a number."
        )
    elif found.extrapolated:
        notes.append(f"A depth of {new.depth} lies outside the fitted depths {low} to {high}: the fit is extrapolated.")
    if modality == "bytes" and not found.from_training:
        notes.append("Bytes: the fit was made on vocabularies of words; a small vocabulary favours depth over width.")
    if judged.experts > 1:
        notes.append("The fit was made on dense models; here it decides depth and width, and the experts stay.")
    if judged.decoder_depth and judged.decoder_depth < judged.depth:
        notes.append("The fit was made on one stack; here the layers of encoder and decoder are counted together.")
    if judged.distinct_layers is not None and judged.distinct_layers < judged.depth:
        notes.append("Layers share their weights, so depth costs time and no parameters.")
    if not judged.exact:
        notes.append(_GUESSED)
    if found.depth_low > new.depth or found.depth_high < new.depth:
        which = f"that {hardware} can share" if hardware.asks else "with such heads and groups of them"
        notes.append(f"No shape {which} lies in the interval; the nearest one is given.")
    return tuple(notes)


def _loaded(config: str | Path | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    if isinstance(config, Mapping):
        return dict(config), "the configuration"
    return load(config), str(config)


def _with_vocabulary(content: dict[str, Any], vocab: int, budget: int | None) -> dict[str, Any]:
    if budget is None:
        raise BadInput("--vocab goes with --params: a configuration states its own, change it there")
    stated = [name for name in VOCAB if content.get(name) is not None]
    if not stated:
        raise BadInput("the configuration states no vocabulary that --vocab could change: change it there")
    return {**content, **dict.fromkeys(stated, vocab)}


def _language_only(modality: str | None, embedding_rank: int | None) -> None:
    if modality not in (None, "language") or embedding_rank is not None:
        raise BadInput("--like names families of language models: leave out --modality and --embedding-rank")


def _budget(params: int | float | str) -> int:
    if isinstance(params, str):
        if params.strip().startswith("-"):
            raise BadInput(f"a budget of {params} parameters is negative: write 64k, 1.5M or 1.3e9")
        params = parse_budget(params)
    if isinstance(params, bool) or not SMALLEST <= params <= LARGEST:  # also what is not a number
        raise BadInput(f"a budget of {params} parameters is absurd: pass a number from 1e4 to 1e15")
    return round(params)


def _modality(name: str) -> Modality:
    if name not in get_args(Modality):
        raise BadInput(f"there is no modality '{name}': use {', '.join(get_args(Modality))}")
    return name  # type: ignore[return-value]


def _vocabulary(vocab: int | None, modality: Modality) -> int | None:
    if vocab is None and modality == "language":
        raise BadInput("--params needs the size of the vocabulary for language: add for example --vocab 50257")
    return BYTE_VOCAB if vocab is None and modality == "bytes" else vocab


def _check(vocab: int | None, modality: str | None, embedding_rank: int | None, context: int | None) -> None:
    if modality is not None:
        _modality(modality)
    for name, value in (("vocabulary", vocab), ("embedding rank", embedding_rank), ("context", context)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise BadInput(f"the {name} is {value!r}: pass an integer of at least 1")
