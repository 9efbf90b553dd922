"""What the advice says: a shape rated, where it lies, and the decision in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from theodolite.advice.bottlenecks import Bottleneck
from theodolite.advice.cost import Cost
from theodolite.advice.hardware import ANY, Hardware
from theodolite.advice.heads_law import heads_law
from theodolite.advice.recommend import Recommendation
from theodolite.advice.shape import Modality, ModelShape
from theodolite.advice.trained import TrainedSize, trained
from theodolite.advice.usage import Usage
from theodolite.notebook import Shown
from theodolite.theory.shapes import EFFECT_RANGE
from theodolite.theory.vocabulary import Vocabulary, fitted_vocabulary

if TYPE_CHECKING:
    from theodolite.advice.budget.plan import Plan
    from theodolite.advice.measure import Measured

SCHEMA = 1
"""Of the JSON document; a higher number means that a field changed its meaning or went, not that one came."""

Verdict = Literal["shallower", "agrees", "deeper"]


@dataclass(frozen=True)
class Rated:
    """A shape with what it costs and what theory says of log₃ of its separation rank.

    `lower_log3` and `published_upper_log3` are those of Theorem 7.1 or 7.2, which take inputs of full rank: below it
    there is no lower bound. Where `upper_refuted`, the upper one is false for these heads. One head of full width has
    at least `growth_log3`, proven for as many tokens as the model reads. `cap_log3` is proven for every number of
    tokens and knows of the rank. All are None of what is not a Transformer.
    """

    shape: ModelShape
    cost: Cost
    lower_log3: float | None = None
    published_upper_log3: float | None = None
    upper_refuted: bool = False
    growth_log3: float | None = None
    cap_log3: float | None = None
    input_rank: int | None = None  # of the tokens, where it is below the width

    @property
    def upper_log3(self) -> float | None:
        """The published upper bound where it is not refuted for these heads."""
        return None if self.upper_refuted else self.published_upper_log3

    @property
    def leading_log3(self) -> float | None:
        """L·d(d+1)/2, log₃ of the rank to leading order in the depth; with r for d where the inputs' rank is r."""
        space = self.input_rank or self.shape.width
        return None if self.cap_log3 is None else self.shape.depth * space * (space + 1) / 2

    def to_json(self) -> dict[str, Any]:
        shape = self.shape
        sizes = ("depth", "decoder_depth", "width", "heads", "head_width", "key_value_heads", "mlp_width")
        sizes += ("params", "params_in_blocks")
        names = ("lower_log3", "upper_log3", "published_upper_log3", "upper_refuted")
        bounds = {name: getattr(self, name) for name in (*names, "growth_log3", "leading_log3", "cap_log3")}
        return {
            **{name: getattr(shape, name) for name in sizes},
            "params_exact": shape.exact,
            "bounds": bounds,
            "cost": asdict(self.cost),
        }


@dataclass(frozen=True)
class Regime:
    """Where a shape lies: L against log₃ d, and against the fit at the shape's own budget."""

    log3_width: float
    theorem: Literal["7.1: deepen before widening", "7.2: depth and width count alike", "neither: L = log3 d"]
    against_fit: Verdict
    fitted_depth: float  # where the fit meets this budget
    fitted_width: float  # there
    width_at_this_depth: float | None  # what the fit would give this depth
    depth_at_dense_parameters: float  # the fit's depth for N = 12·L·d²
    depth_at_params_without_embeddings: float  # and for N as counted
    dense_parameters: int  # 12·L·d²
    params_without_embeddings: int


@dataclass(frozen=True)
class Advice(Shown):
    """`given` is None where a budget was advised; then everything speaks of the advised shape.

    Where theory and fit do not speak of the model, or no other shape of it can be counted, there is no advice:
    `advised`, `recommendation` and `regime` are None, and `silent` says why.
    """

    name: str
    modality: Modality
    budget: int
    given: Rated | None
    advised: Rated | None
    recommendation: Recommendation | None
    regime: Regime | None
    bottlenecks: tuple[Bottleneck, ...]
    left: tuple[Bottleneck, ...]  # those of the advised shape
    alternatives: tuple[Rated, ...]
    warnings: tuple[str, ...]
    config: Mapping[str, Any]  # of the advised shape, or else the given one
    measured: Mapping[str, Measured] | None = None
    silent: str | None = None
    hardware: Hardware = ANY  # what the advised shape can be shared by
    plan: Plan | None = None  # of the judged shape, where resources were given
    usage: Usage | None = None  # what models of the judged one's size look like

    @property
    def judged(self) -> Rated:
        judged = self.given or self.advised
        assert judged is not None
        return judged

    @property
    def headline(self) -> str:
        """The decision, in one sentence."""
        if self.recommendation is None or self.advised is None or self.regime is None:
            return (
                f"{self.judged.shape.counted or 'The model'} has {said(self.judged.shape)} parameters; {self.silent}."
            )
        low, high = self.recommendation.depth_low, self.recommendation.depth_high
        range_ = counted(low, "layer") if low == high else f"{low} to {high} layers"
        new = self.advised.shape
        if new.two_stacks:
            range_ += ", encoder and decoder together"
        example = f"{new.layers} of width {new.width} with {counted(new.heads, 'head')}"
        shared = f"; {self.hardware} allows {example}" if self.hardware.asks else ""
        if self.modality == "image":
            only = "only a direction is published, about ten times the depth-to-width ratio of language"
            start = f"For {short(self.budget)} parameters" if self.given is None else _sizes(self.given.shape)
            return f"{start}: for images {only}{shared or f'; roughly, {example}'}."
        adviser = "our own trainings advise" if self.from_training else "the published fit advises"
        if self.given is None:
            return f"For {short(self.budget)} parameters {adviser} {range_}{shared or f': {example}'}."
        old, far = self.given.shape, self.regime.against_fit
        if far == "agrees":
            kept = f"{_sizes(old)}: no reason to change, {adviser} {range_} for {said(old)} parameters."
            if shared and new != old:
                return f"{kept[:-1]}{shared}."
            return kept if new == old else f"{kept} With as much attention as reads all of its input: {example}."
        be = "is" if old.depth == 1 else "are"
        if self.no_reason_to_change:
            return (
                f"{_sizes(old)}: no reason to change. {'It' if old.depth == 1 else 'They'} {be} {far} than "
                f"{adviser} for {said(old)} parameters ({range_}{shared or f', for example {example}'}), "
                "but models of this size look like it, and losses of shapes this far apart were published to differ by "
                "a few percent."
            )
        return (
            f"{_sizes(old)} {be} {far} than {adviser} for {said(old)} "
            f"parameters: {range_}{shared or f', for example {example}'}."
        )

    @property
    def from_training(self) -> bool:
        """Whether the advised depth is that of our own trainings, and not the published fit's."""
        return self.recommendation is not None and self.recommendation.from_training

    @property
    def no_reason_to_change(self) -> bool:
        """Depth and width: in the fit's interval, or in use at this size and no further off than what was published."""
        if self.regime is None or self.given is None or self.advised is None:
            return False
        if self.regime.against_fit == "agrees":
            return True
        if self.modality == "image" or self.usage is None:
            return False
        old, new = self.given.shape, self.advised.shape
        apart = (old.width / old.depth) / (new.width / new.depth)
        return self.usage.holds(old) and 1 / EFFECT_RANGE <= apart <= EFFECT_RANGE

    @property
    def vocabulary(self) -> Vocabulary | None:
        """What a published fit puts beside a language model of this size; one stack, no experts, no shared layers."""
        shape = self.judged.shape
        words = (shape.vocab or 0) >= shape.width  # not letters
        if self.modality != "language" or not shape.one_dense_stack or not words or not shape.params_in_blocks:
            return None
        return fitted_vocabulary(shape.params_in_blocks, shape.width)

    @property
    def trained(self) -> TrainedSize | None:
        """What our own trainings of about this size showed, where there are any."""
        return trained().near(self.judged.shape)

    def to_json(self) -> dict[str, Any]:
        shape, found = self.judged.shape, self.recommendation
        recommended = None
        if self.advised is not None and found is not None:
            ends = {name: getattr(found, name) for name in ("depth_low", "depth_high", "from_training")}
            recommended = {**self.advised.to_json(), **ends, "bottlenecks": [one.to_json() for one in self.left]}
        return {
            "schema": SCHEMA,
            "name": self.name,
            "headline": self.headline,
            "modality": self.modality,
            "budget": self.budget,
            "params": shape.params,
            "params_by_part": dict(shape.parts),
            "params_active": shape.active,
            "params_exact": shape.exact,
            "params_whole": shape.whole,
            "kind": shape.kind,
            "counted": shape.counted,
            "depth": shape.depth or None,
            "width": shape.width or None,
            "heads": shape.heads or None,
            "vocab": shape.vocab,
            "regime": None if self.regime is None else asdict(self.regime),
            "given": None if self.given is None else self.given.to_json(),
            "recommended": recommended,
            "silent": self.silent,
            "hardware": asdict(self.hardware),
            "no_reason_to_change": self.no_reason_to_change,
            "usage": None if self.usage is None else asdict(self.usage),
            "heads_law": asdict(heads_law(shape)) if shape.speaks else None,
            "vocabulary": None if self.vocabulary is None else asdict(self.vocabulary),
            "trained": None if self.trained is None else asdict(self.trained),
            "extrapolated": None if found is None else found.extrapolated,
            "bottlenecks": [one.to_json() for one in self.bottlenecks],
            "alternatives": [rated.to_json() for rated in self.alternatives],
            "warnings": list(self.warnings),
            "notes": list(shape.notes),
            "config": dict(self.config),
            "plan": None if self.plan is None else self.plan.to_json(),
            "measured": None if self.measured is None else {k: asdict(v) for k, v in self.measured.items()},
        }


def short(count: float) -> str:
    """1.3B, 124M, 64k: three digits, as people say them."""
    rounded = float(f"{count:.3g}")
    letters = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
    size, letter = next(((size, letter) for size, letter in letters if rounded >= size), (1.0, ""))
    return f"{rounded / size:g}{letter}"


def said(shape: ModelShape) -> str:
    """Its parameters in three digits, "about" where they are not exact."""
    return short(shape.params) if shape.exact else f"about {short(shape.params)}"


def _sizes(shape: ModelShape) -> str:
    return f"{layers(shape)} of width {shape.width}"


def layers(shape: ModelShape) -> str:
    return "1 layer" if shape.depth == 1 else f"{shape.layers} layers"


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
