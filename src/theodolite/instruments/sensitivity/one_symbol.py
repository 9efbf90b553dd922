"""One-symbol sensitivity: how far one changed token moves the output at another one, over the length n (claim G14).

The output is read at the last token; the tokens that are changed stand at fixed shares of the length, the last one
never among them. The change is ‖f(x′) − f(x)‖ at the last token, in units of the output's standard deviation at the
shortest length, so that it can be compared over lengths. Its median over places and inputs is taken for each draw of
the weights, and the slope of its logarithm over log n for all draws, with an interval by resampling draws.

The median, not the mean: a net that remembers its last τ tokens only has a mean of order τ/n, as attention does.
A vector net's entries stand for tokens, and its whole output is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.device import device_name, resolve_device
from theodolite.errors import BadInput, NotApplicable, TheodoliteError
from theodolite.instruments.precision import Precision
from theodolite.instruments.random_nets import draw_tokens, output_of, random_net, trial_precision
from theodolite.instruments.sensitivity.influence import decay, law_of, logit_range, profile_distances, reach
from theodolite.instruments.through_embedding import through_embedding
from theodolite.measurement import Measurement, Provenance, seed_of
from theodolite.nets.contract import Influenced
from theodolite.nets.load import Blueprint, blueprint
from theodolite.statistics.power_law import FEWEST, curve, power_law
from theodolite.theory.sensitivity import InfluenceLaw, first_symbol_exponents

LENGTHS = (8, 16, 32, 64, 128, 256)
TOLERANCE = 0.1  # of a slope: laws hold for long inputs, and these have an end
FLOOR = 5e3  # times the rounding, of the unit; changes below are not looked at: 1e-12 in float64

Net = str | nn.Module | Callable[..., Any]


def sensitivity(
    net: Net,
    *,
    lengths: Sequence[int] = LENGTHS,
    draws: int = 8,
    inputs: int = 2,
    places: int = 6,
    seed: int = 0,
    device: str | torch.device = "cpu",
    **shape: Any,
) -> Measurement:
    """The slope of log change over log n, with its interval; None where the change is 0 or rounding at most lengths,
    and where lengths that were held out follow another law or none (`over_length`, `no_slope`).

    In the diagnostics: `curve` (change at every length, with an interval over draws), `first` (the same with the
    first token changed), `profile` (change by distance at one length), `reach` (how many tokens back the output still
    depends on an input, by derivatives that are not 0), `logit_range` of softmax attention, and what theory says.
    A net that is built already is not drawn again: its draws are of inputs only.
    """
    started = time.perf_counter()
    lengths = _checked_lengths(lengths)
    if draws < 2 or inputs < 1 or places < 2:
        raise BadInput(
            f"{draws} draws, {inputs} inputs and {places} places are too few: use at least 2 draws, 1 input, 2 places"
        )
    device = resolve_device(device)
    plan = _variable(blueprint(net, **shape))
    precision = trial_precision(plan, seed, device, lengths[0])
    subject = _Subject(plan, seed, device, precision)
    samples = [_sample(subject, draw, lengths, inputs, places) for draw in range(draws)]
    kept = lengths[: min(len(each.median) for each in samples)]
    median = np.array([each.median[: len(kept)] for each in samples])
    first = np.array([each.first[: len(kept)] for each in samples])
    generator = np.random.default_rng(seed_of(["bootstrap", seed]))
    floor = max(FLOOR * precision.rounding, 1e-12)
    slope, interval, fitted = power_law(median, kept, floor, generator)
    first_slope, first_interval, _ = power_law(first, kept, floor, generator)
    over_length = law_of(np.array(fitted, dtype=float), median[:, [kept.index(n) for n in fitted]])
    module = subject.net(0, kept[-1])
    law = influence_law(module)
    circular = law is not None and law.circular
    reached = _reach(subject, kept[-1], circular)
    ends = reached is not None and reached < (kept[-1] // 2 if circular else kept[-1] - 1)
    if ends:  # what is exactly 0 follows no law
        over_length = {"shape": "window"}
    found: dict[str, Any] = {
        "curve": curve(median, kept),
        "first": {"curve": curve(first, kept), "slope": first_slope, "interval": first_interval},
        "mean": curve(np.array([each.mean[: len(kept)] for each in samples]), kept),
        "fitted_lengths": fitted,
        "over_length": over_length,
        "profile": _profile(subject, samples, inputs, kept, floor),
        "reach": reached,
        "logit_range": _logits(subject, module, kept[-1]),
        "draws": draws,
        "inputs": inputs,
        "places": places,
        "reads": "the last token" if samples[0].by_token else "the whole output",
        "weights": "as they are" if plan.built else "drawn",
        "precision": precision.note or "float64",
    }
    if len(kept) < len(lengths):
        found["lengths_not_taken"] = [n for n in lengths if n not in kept]
    if ends:
        found["no_slope"] = f"the change is exactly 0 beyond {reached} tokens"
        fitted_away = ("half_life", "exponent", "held_out_errors")
        kept_profile = {name: each for name, each in found["profile"].items() if name not in fitted_away}
        found["profile"] = {**kept_profile, "shape": "window"}
    elif slope is None:
        found["no_slope"] = f"the change is 0 or below rounding at all but {len(fitted)} lengths"
    elif over_length["shape"] == "exponential":
        found["no_slope"] = f"the change halves every {over_length['half_life']:.2g} tokens of the length"
    elif over_length["shape"] is None:
        found["no_slope"] = "the change follows neither a power of the length nor an exponential"
    if "no_slope" in found:
        slope = interval = None
    return Measurement(
        quantity="sensitivity exponent",
        value=slope,
        exact=False,
        interval=interval,
        method="least squares of the log of the median change over log n, geometric mean and bootstrap over draws",
        seconds=time.perf_counter() - started,
        provenance=Provenance.here(seed, device_name(device)),
        diagnostics={**found, **_beside_theory(law, interval, first_slope, reached, kept)},
    )


def influence_law(module: nn.Module) -> InfluenceLaw | None:
    """What a net declares; None where it declares nothing."""
    return module.influence() if isinstance(module, Influenced) else None


@dataclass(frozen=True)
class _Subject:
    """The nets that are measured, and what they are given."""

    plan: Blueprint
    seed: int
    device: torch.device
    precision: Precision

    def net(self, draw: int, length: int) -> nn.Module:
        sizes = _sized(self.plan, length)
        return random_net(self.plan, self.seed, draw, self.device, self.precision.dtype, sizes)

    def tokens(self, module: nn.Module, count: int, length: int, generator: torch.Generator) -> Tensor:
        return draw_tokens(self.plan, module, count, length, generator, self.device, self.precision.dtype)

    def generator(self, *names: object) -> torch.Generator:
        return torch.Generator().manual_seed(seed_of([names[0], self.seed, *names[1:]]))


@dataclass(frozen=True)
class _Sample:
    """One draw: changes by length, relative to the output's deviation at the shortest."""

    median: list[float]
    mean: list[float]
    first: list[float]
    unit: float
    by_token: bool


def _sample(subject: _Subject, draw: int, lengths: Sequence[int], inputs: int, places: int) -> _Sample:
    plan, generator = subject.plan, subject.generator("sensitivity", draw)
    unit, by_token, tokens = 1.0, True, torch.empty(0)
    median, mean, first = [], [], []
    for length in lengths:
        try:
            module = subject.net(draw, length)
            if not median:
                unit, by_token = _unit(subject, module, length, generator)
                tokens = subject.tokens(module, inputs, 2 * places + 3, generator)
            ends = length - 1 if by_token else length  # the token that is read is not changed
            shares = [int((k + 0.5) * ends / places) for k in range(places)]
            changes = _changes(subject, module, length, [0, *shares], tokens, generator) / unit
        except TheodoliteError as error:
            if len(median) >= FEWEST:
                break  # a net that is made for so many tokens and no more
            if median or plan.registered:
                raise NotApplicable(f"'{plan.name}' cannot be measured over lengths: {error}") from error
            raise
        median.append(float(changes[:, 1:].median()))
        mean.append(float(changes[:, 1:].mean()))
        first.append(float(changes[:, 0].median()))
    return _Sample(median, mean, first, unit, by_token)


def _unit(subject: _Subject, module: nn.Module, length: int, generator: torch.Generator) -> tuple[float, bool]:
    output = output_of(subject.plan, module, subject.tokens(module, 64, length, generator))
    read = output[:, -1] if output.dim() == 3 else output
    deviation = float((read - read.mean(dim=0)).square().sum(dim=1).mean().sqrt())
    return deviation or 1.0, output.dim() == 3


def _changes(
    subject: _Subject,
    module: nn.Module,
    length: int,
    places: Sequence[int],
    tokens: Tensor,
    generator: torch.Generator,
) -> Tensor:
    """(input, place): how far the output moves when the token at a place is replaced. One batch.

    `tokens` (input, 1 + 2·places) are the one that is read, those that are replaced and what replaces them: the same at
    every length, so that lengths differ in nothing else and the noise of what is drawn cancels in the slope.
    """
    plan, count = subject.plan, len(places)
    x = subject.tokens(module, len(tokens), length, generator)
    x[:, -1], fresh = tokens[:, 0], tokens[:, count + 1 :]
    for row, place in enumerate(places):
        x[:, place] = tokens[:, row + 1]
    if plan.vocab is not None:  # another id than the one that stands there
        fresh = (x[:, list(places)] + 1 + fresh % (plan.vocab - 1)) % plan.vocab
    changed = x.unsqueeze(1).repeat(1, count + 1, *(1 for _ in x.shape[1:]))
    for row, place in enumerate(places):
        changed[:, row, place] = fresh[:, row]
    output = output_of(plan, module, changed.flatten(0, 1))
    read = (output[:, -1] if output.dim() == 3 else output).unflatten(0, (len(tokens), count + 1))
    return (read[:, :-1] - read[:, -1:]).norm(dim=-1).cpu()


def _profile(
    subject: _Subject, samples: Sequence[_Sample], inputs: int, lengths: Sequence[int], floor: float
) -> dict[str, Any]:
    """Change by distance from the token that is read, at the longest length but one; a vector has no distances."""
    plan, length = subject.plan, lengths[-2]
    if plan.kind != "sequence" or not samples[0].by_token:
        return {"tokens": length, "shape": None, "reason": "the output has no token to count distances from"}
    distances = profile_distances(length)
    places = [length - 1 - distance for distance in distances]
    rows = []
    for draw, sample in enumerate(samples):
        module, generator = subject.net(draw, length), subject.generator("profile", draw)
        tokens = subject.tokens(module, inputs, 2 * len(places) + 1, generator)
        changes = _changes(subject, module, length, places, tokens, generator) / sample.unit
        rows.append(changes.median(dim=0).values)
    changes = torch.stack(rows)
    middle = changes.median(dim=0).values.tolist()
    return {"tokens": length, "distance": distances, "change": middle, **decay(distances, changes.numpy(), floor)}


def _reach(subject: _Subject, length: int, circular: bool) -> int | None:
    """By derivatives, of a net that reads ids through its embedding; None where there are none."""
    if subject.plan.kind != "sequence":
        return None
    try:
        subject = replace(subject, plan=through_embedding(subject.plan))
    except NotApplicable:
        return None
    module = subject.net(0, length)
    x = subject.tokens(module, 2, length, subject.generator("reach"))
    return reach(subject.plan, module, x, circular)


def _logits(subject: _Subject, module: nn.Module, length: int) -> float | None:
    return logit_range(subject.plan, module, subject.tokens(module, 2, length, subject.generator("logits")))


def _beside_theory(
    law: InfluenceLaw | None,
    interval: tuple[float, float] | None,
    first_slope: float | None,
    reached: int | None,
    lengths: Sequence[int],
) -> dict[str, Any]:
    if law is None or law.law == "none":
        reason = law.reason if law else "theory says nothing of this net"
        return {"law": None, "predicted": None, "reason": reason, "agrees": None}
    found: dict[str, Any] = {"law": law.law, "reason": law.reason, "tolerance": TOLERANCE}
    if law.window is not None:
        expected = min(law.window, lengths[-1] // 2 if law.circular else lengths[-1] - 1)
        return {**found, "predicted": None, "predicted_reach": law.window, "agrees": reached == expected}
    assert law.exponent is not None
    near = interval is not None and interval[0] - TOLERANCE <= law.exponent <= interval[1] + TOLERANCE
    if law.log_power:
        low, high = first_symbol_exponents(law.log_power + 1, lengths[0], lengths[-1])
        found["first_predicted"] = [low, high]
        found["first_agrees"] = first_slope is not None and low - TOLERANCE <= first_slope <= high + TOLERANCE
    return {**found, "predicted": law.exponent, "agrees": near}


def _checked_lengths(lengths: Sequence[int]) -> list[int]:
    kept = sorted({int(n) for n in lengths})
    if len(kept) < FEWEST or kept[0] < 4:
        raise BadInput(f"lengths {list(lengths)} give no slope: use at least {FEWEST} different ones from 4 on")
    return kept


def _variable(plan: Blueprint) -> Blueprint:
    """A plan whose length can be changed, or the reason why it cannot."""
    if plan.kind == "vector" and "features" not in plan.known:
        raise NotApplicable(f"'{plan.name}' reads vectors of one size: pass its class, with an argument 'features'")
    if plan.vocab == 1:
        raise NotApplicable(f"'{plan.name}' has one symbol, which cannot be changed: give it a vocabulary of 2 or more")
    return plan


def _sized(plan: Blueprint, length: int) -> dict[str, int]:
    return {"tokens": length} if plan.kind == "sequence" else {"features": length}


def measure_sensitivity(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: net, shape, and any option of `sensitivity`."""
    options = {k: v for k, v in config.items() if k not in ("net", "shape")}
    return sensitivity(config["net"], seed=seed, device=device, **options, **config.get("shape", {})).to_json()
