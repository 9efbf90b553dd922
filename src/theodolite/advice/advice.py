"""One shape judged, and the shape that the published fit asks for at the same budget."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from theodolite.advice.bottlenecks import bottlenecks, input_rank
from theodolite.advice.configs import load_config, read_config
from theodolite.advice.cost import cost
from theodolite.advice.other_networks import WORDS
from theodolite.advice.recommend import Family, Recommendation, alternatives, fit_for, recommend
from theodolite.advice.reshaped import Reshaped
from theodolite.advice.result import Advice, Rated, Regime, Verdict, short
from theodolite.advice.shape import Modality, ModelShape
from theodolite.advice.template import BYTE_VOCAB, template
from theodolite.errors import BadInput
from theodolite.theory.attention import attention_bounds
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
    vocab: int | None = None,
    modality: str | None = None,
    embedding_rank: int | None = None,
    context: int | None = None,
    measure: bool = False,
    device: str = "cpu",
) -> Advice:
    """Judge the shape in a configuration, or choose one for a budget of parameters.

    Parameters:
        config: a Hugging Face config.json, a folder that holds one, or its content
        params: instead of it, a budget with embeddings included: 64k, 1.3e9
        vocab: with `params`, the size of the vocabulary; 256 for bytes
        modality: language, image or bytes; the configuration's own, or language
        embedding_rank: of the inputs: a factored embedding where a budget is advised, and what is known of the inputs
            where a configuration is judged
        context: tokens at which costs are computed; up to 2,048 by default
        measure: time both shapes, on `device`

    Examples:
        >>> shape = advise(params=1.3e9, vocab=50257).advised.shape
        >>> shape.depth, shape.width, shape.heads
        (43, 1536, 24)
    """
    _check(vocab, modality, embedding_rank, context)
    if (config is None) == (params is None):
        raise BadInput("give a configuration or a budget with --params, one of them and not both")
    if params is not None:
        budget = _budget(params)
        chosen = _modality(modality or "language")
        content = template(chosen, budget, _vocabulary(vocab, chosen), embedding_rank)
        name, given = f"{short(budget)} parameters", None
        start = replace(read_config(content, name), modality=chosen)
    else:
        if vocab is not None:
            raise BadInput("--vocab goes with --params: a configuration states its own, change it there")
        assert config is not None
        content = dict(config) if isinstance(config, Mapping) else load_config(config)
        name = "the configuration" if isinstance(config, Mapping) else str(config)
        start = read_config(content, name)
        chosen = _modality(modality or start.modality)
        given = start = replace(start, modality=chosen)
        budget = start.params
    advice = _advise(content, name, start, given, chosen, budget, embedding_rank, context)
    if measure and advice.judged.shape.speaks:
        from theodolite.advice.measure import measure_shapes

        return replace(advice, measured=measure_shapes(advice, device))
    return advice


def _advise(
    config: Mapping[str, Any],
    name: str,
    start: ModelShape,
    given: ModelShape | None,
    modality: Modality,
    budget: int,
    rank: int | None,
    context: int | None,
) -> Advice:
    tokens = context or min(CONTEXT, start.positions or CONTEXT)

    def rated(shape: ModelShape) -> Rated:
        if not shape.speaks:
            return Rated(shape, cost(shape, tokens), None, None, None)
        bounds = attention_bounds(shape.depth, shape.width, shape.heads)
        inputs = input_rank(shape, rank)
        full = inputs is None or inputs >= shape.width
        cap = attention_cap_log3(shape.depth, shape.width, inputs)
        return Rated(shape, cost(shape, tokens), bounds.lower_log3 if full else None, bounds.upper_log3, cap)

    if given is not None:
        reason = _silence(given)
        if reason is not None:
            return _counted_only(config, name, modality, rated(given), rank, reason)
    fit = fit_for(modality)
    shapes = Reshaped(config, name, start, modality)
    try:
        family = Family.of(start, shapes.near)
        found = recommend(family, budget, fit, min(start.depth, 1000))
        found = replace(found, shape=shapes.exact(found.shape))
        others = tuple(shapes.exact(shape) for shape in alternatives(family, budget, found.shape))
    except BadInput as error:
        if given is None or shapes.by_hand:
            raise
        reason = f"no other shape of it is advised, since {error}"
        return _counted_only(config, name, modality, rated(given), rank, reason)
    if modality == "image":
        found = replace(found, extrapolated=True)  # from language
    verdict = _verdict(given, found)
    if given is not None and verdict == "agrees" and given.attention_width <= given.width:
        found = replace(found, shape=given)  # nothing to change
    new = found.shape
    logger.info("the fit meets the budget at depth %.2f and width %.1f", found.fitted_depth, found.fitted_width)
    kept = given is not None and new is given
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
        warnings=_warnings(given or new, new, modality, found),
        config=dict(config) if kept else shapes.config(new),
    )


def _silence(shape: ModelShape) -> str | None:
    """Why there is no advice, where there is none."""
    if shape.speaks:
        return None
    return f"it is {WORDS[shape.kind]}, and of those the theorems and the published fit say nothing"


def _counted_only(
    config: Mapping[str, Any], name: str, modality: Modality, given: Rated, rank: int | None, reason: str
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


def _warnings(judged: ModelShape, new: ModelShape, modality: Modality, found: Recommendation) -> tuple[str, ...]:
    low, high = FITTED_DEPTHS
    notes = []
    if modality == "image":
        notes.append(
            "Images: the fit was made on language and is moved to a ten times larger depth-to-width ratio, which is "
            "published as a rough figure: take the depth as a direction, not as a number."
        )
    elif found.extrapolated:
        notes.append(f"A depth of {new.depth} lies outside the fitted depths {low} to {high}: the fit is extrapolated.")
    if modality == "bytes":
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
        notes.append("No shape with heads of this width lies in the interval; the nearest one is given.")
    return tuple(notes)


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
