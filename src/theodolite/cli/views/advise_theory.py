"""What theory, training and practice say of a shape, in sentences; what is refuted is called so."""

from __future__ import annotations

from collections.abc import Iterator

from theodolite.advice.bottlenecks import percent
from theodolite.advice.heads_law import heads_law, proven_heads
from theodolite.advice.result import Advice, Rated, Regime, counted, layers, short
from theodolite.advice.shape import ModelShape
from theodolite.advice.trained import trained
from theodolite.theory.attention_growth import refuted_depth
from theodolite.theory.shapes import FITTED_DEPTHS, Fit, dense_parameters
from theodolite.theory.vocabulary import FITTED_SIZES, FITTED_SYMBOLS

Line = tuple[str, str]


def decision(advice: Advice) -> Iterator[Line]:
    """What weighs for depth, what does not, and what models of this size look like: before all numbers."""
    if advice.regime is None:
        return
    yield "Depth or width", _depth_or_width(advice.judged, advice.regime)
    yield (
        "Effect",
        (
            '"The loss varies only a few percent over a wide range of shapes" (Kaplan et al. 2020, language, up to '
            "1.5B): 6 layers of width 4288 came within 3% of 48 of width 1600."
        ),
    )
    yield "Models of this size", _usage(advice)


def theory(advice: Advice) -> Iterator[Line]:
    """The regime, the fit, the heads and the vocabulary."""
    shape = advice.judged.shape
    if advice.regime is not None:
        yield "Theory", _regime(advice.judged, advice.regime)
        yield "Fit", _fit(advice)
        if advice.modality != "image":
            yield "Trained here", _trained(advice)
    if shape.speaks and advice.judged.input_rank is None:
        yield "Heads", _heads(shape)
    if advice.vocabulary is not None:
        yield "Vocabulary", _vocabulary(advice)


def _depth_or_width(rated: Rated, regime: Regime) -> str:
    if regime.theorem.startswith("7.1"):
        return (
            "with fewer than log3 d layers depth lets inputs interact far more strongly than width does (Theorem "
            "7.1); from there on the rank grows with the parameters alone (docs/exact-rank.md)."
        )
    assert rated.cap_log3 is not None
    assert rated.leading_log3 is not None
    if rated.input_rank is not None:
        return (
            f"the inputs have rank r = {rated.input_rank}, and log3 of the separation rank grows as L·r(r+1)/2 "
            "(docs/exact-rank.md): with depth, and not with width beyond r. The theorem knows no MLP and no positions, "
            "and no share of the width is claimed to be of no use."
        )
    return (
        "to leading order theory prefers no shape of a size: log3 of the separation rank grows as L·d(d+1)/2 (proven, "
        "docs/exact-rank.md), about a 24th of the parameters in the blocks. That is for L far beyond 2·log3 d = "
        f"{2 * regime.log3_width:.1f}; here the cap has {percent(rated.cap_log3 / rated.leading_log3)} of it, and "
        "deeper shapes of this size have more. For depth speak besides the fit of trained models and, where L < log3 "
        "d, Theorem 7.1; not Theorem 7.2, whose upper half is false."
    )


def _usage(advice: Advice) -> str:
    shape, usage = advice.judged.shape, advice.usage
    if usage is None:
        return "fewer than five public models of its kind are near."
    ratio, here = shape.width / shape.depth, "" if usage.holds(shape) else ", outside"
    return (
        f"{usage.models} public ones have a width of {usage.low:.0f} to {usage.high:.0f} times the depth, in the "
        f"median {usage.median:.0f}; this one {ratio:.0f}{here}."
    )


def _regime(rated: Rated, regime: Regime) -> str:
    shape = rated.shape
    relation = {"7.1": "<", "7.2": ">"}.get(regime.theorem[:3], "=")
    start = f"{layers(shape)} {relation} log3({shape.width}) = {regime.log3_width:.1f}"
    if relation != ">":
        return f"{start}: {'Theorem 7.1 speaks.' if relation == '<' else 'the border of Theorems 7.1 and 7.2.'}"
    published, grown = rated.published_upper_log3, rated.growth_log3
    one_head = published is not None and grown is not None and grown > published
    if rated.upper_refuted:
        assert published is not None
        assert grown is not None
        return (
            f"{start}: Theorem 7.2 speaks, and its upper bound {short(published)} does not hold: these heads have "
            f"more, proven (docs/paper.md), and one head of full width at least {short(grown)}."
        )
    heads = proven_heads(shape)
    depth = None if heads is None else refuted_depth(shape.width, heads=heads[0], head_width=heads[1])
    false = "" if depth is None else f"; with {2 * shape.width} tokens of full rank it is false from {depth} layers on"
    here = "refuted for one head of full width, not for these heads" if one_head else "not refuted here"
    return f"{start}: Theorem 7.2 speaks. Its upper bound is {here}{false} (docs/paper.md)."


def _fit(advice: Advice) -> str:
    (low, high), fit = FITTED_DEPTHS, Fit()
    least, most = (short(dense_parameters(depth, fit.width(depth))) for depth in FITTED_DEPTHS)
    text = (
        f"Levine et al. (2020) trained language models of {low} to {high} layers; their curve runs there from {least} "
        f"to {most} parameters in the blocks (here {short(advice.judged.shape.params_in_blocks)})."
    )
    found = advice.recommendation
    if found is not None and advice.from_training:
        text += f" Extrapolated, it would ask for {counted(max(1, round(found.fitted_depth)), 'layer')} here."
    return text if advice.modality == "language" else f"{text} Of {advice.modality} it says nothing."


def _trained(advice: Advice) -> str:
    study, found = trained(), advice.trained
    if found is None:
        least, most = (short(edge(one.size for one in study.sizes)) for edge in (min, max))
        return (
            f"decoders of {least} to {most} parameters in their blocks were trained on bytes, and some with larger "
            "vocabularies, which want less depth (docs/depth-width.md); nothing follows from them for this size and "
            "vocabulary."
        )
    (low, high), best, listed = found.interval, counted(found.best, "layer"), ", ".join(map(str, found.flat))
    return (
        f"decoders of {short(found.size)} parameters in their blocks, on {study.text} as {found.symbols}, learnt best "
        f"with {best} (95%: {low} to {high}; within 1% of that: {listed}), with {found.deepest} layers "
        f"{percent(found.deepest_worse)} worse, after {short(found.tokens)} tokens each (docs/depth-width.md)."
    )


def _heads(shape: ModelShape) -> str:
    law = heads_law(shape)
    if law.sees_all:
        return f"a layer reads all {law.entries:,} numbers of its input that matter."
    read = f"a layer reads {law.seen:,} of the {law.entries:,} numbers of its input that matter"
    if law.reached < law.entries:
        return (
            f"{read}, and none ever sees more than {law.reached:,}: attention is narrower than the network, and the "
            "rank grows by that much less a layer."
        )
    return f"{read}. The cap loses less than one layer's worth by that (docs/exact-rank.md)."


def _vocabulary(advice: Advice) -> str:
    found, given = advice.vocabulary, advice.judged.shape.vocab
    assert found is not None
    (small, large), (few, many) = FITTED_SIZES, FITTED_SYMBOLS
    return (
        f"a published fit (Tao et al. 2024: {short(small)} to {short(large)} parameters beside {short(few)} to "
        f"{short(many)} symbols, trained as long as is best for their compute) puts {found.low:,} to {found.high:,} "
        f"symbols here{' by extrapolation' if found.extrapolated else ''}"
        f"{'' if given is None else f'; there are {given:,}'}."
    )
