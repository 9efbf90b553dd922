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
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.device import device_name, resolve_device
from theodolite.errors import BadInput, NotApplicable, TheodoliteError
from theodolite.instruments.random_nets import draw_tokens, output_of, random_net
from theodolite.instruments.sensitivity.influence import decay, logit_range, profile_distances, reach
from theodolite.measurement import Measurement, Provenance, seed_of
from theodolite.nets.contract import Influenced
from theodolite.nets.load import Blueprint, blueprint
from theodolite.statistics.power_law import FEWEST, curve, power_law
from theodolite.theory.sensitivity import InfluenceLaw, first_symbol_exponents

LENGTHS = (8, 16, 32, 64, 128, 256)
TOLERANCE = 0.1  # of a slope: laws hold for long inputs, and these have an end
FLOOR = 1e-12  # of the unit; changes below are rounding

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
    """The slope of log change over log n, with its interval; None where the change is 0 or rounding at most lengths.

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
    samples = [_sample(plan, seed, draw, lengths, inputs, places, device) for draw in range(draws)]
    kept = lengths[: min(len(each.median) for each in samples)]
    median = np.array([each.median[: len(kept)] for each in samples])
    first = np.array([each.first[: len(kept)] for each in samples])
    generator = np.random.default_rng(seed_of(["bootstrap", seed]))
    slope, interval, fitted = power_law(median, kept, FLOOR, generator)
    first_slope, first_interval, _ = power_law(first, kept, FLOOR, generator)
    module = random_net(plan, seed, 0, device, sizes=_sized(plan, kept[-1]))
    law = influence_law(module)
    circular = law is not None and law.circular
    reached = _reach(plan, module, seed, kept[-1], device, circular)
    ends = reached is not None and reached < (kept[-1] // 2 if circular else kept[-1] - 1)
    if ends:  # what is exactly 0 follows no power
        slope = interval = None
    found: dict[str, Any] = {
        "curve": curve(median, kept),
        "first": {"curve": curve(first, kept), "slope": first_slope, "interval": first_interval},
        "mean": curve(np.array([each.mean[: len(kept)] for each in samples]), kept),
        "fitted_lengths": fitted,
        "profile": _profile(plan, seed, samples, inputs, kept, device),
        "reach": reached,
        "logit_range": _logits(plan, module, seed, kept[-1], device),
        "draws": draws,
        "inputs": inputs,
        "places": places,
        "reads": "the last token" if samples[0].by_token else "the whole output",
        "weights": "as they are" if plan.built else "drawn",
    }
    if len(kept) < len(lengths):
        found["lengths_not_taken"] = [n for n in lengths if n not in kept]
    if ends:
        found["no_slope"] = f"the change is exactly 0 beyond {reached} tokens"
        fitted_away = ("half_life", "exponent")
        kept_profile = {name: each for name, each in found["profile"].items() if name not in fitted_away}
        found["profile"] = {**kept_profile, "shape": "window"}
    elif slope is None:
        found["no_slope"] = f"the change is 0 or below rounding at all but {len(fitted)} lengths"
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
class _Sample:
    """One draw: changes by length, relative to the output's deviation at the shortest."""

    median: list[float]
    mean: list[float]
    first: list[float]
    unit: float
    by_token: bool


def _sample(
    plan: Blueprint, seed: int, draw: int, lengths: Sequence[int], inputs: int, places: int, device: torch.device
) -> _Sample:
    generator = torch.Generator().manual_seed(seed_of(["sensitivity", seed, draw]))
    unit, by_token, tokens = 1.0, True, torch.empty(0)
    median, mean, first = [], [], []
    for length in lengths:
        try:
            module = random_net(plan, seed, draw, device, sizes=_sized(plan, length))
            if not median:
                unit, by_token = _unit(plan, module, length, generator, device)
                tokens = draw_tokens(plan, module, inputs, 2 * places + 3, generator, device)
            ends = length - 1 if by_token else length  # the token that is read is not changed
            shares = [int((k + 0.5) * ends / places) for k in range(places)]
            changes = _changes(plan, module, length, [0, *shares], tokens, generator) / unit
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


def _unit(
    plan: Blueprint, module: nn.Module, length: int, generator: torch.Generator, device: torch.device
) -> tuple[float, bool]:
    output = output_of(plan, module, draw_tokens(plan, module, 64, length, generator, device))
    read = output[:, -1] if output.dim() == 3 else output
    deviation = float((read - read.mean(dim=0)).square().sum(dim=1).mean().sqrt())
    return deviation or 1.0, output.dim() == 3


def _changes(
    plan: Blueprint,
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
    count = len(places)
    x = draw_tokens(plan, module, len(tokens), length, generator, tokens.device)
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
    plan: Blueprint, seed: int, samples: Sequence[_Sample], inputs: int, lengths: Sequence[int], device: torch.device
) -> dict[str, Any]:
    """Change by distance from the token that is read, at the longest length but one; a vector has no distances."""
    length = lengths[-2]
    if plan.kind != "sequence" or not samples[0].by_token:
        return {"tokens": length, "shape": None, "reason": "the output has no token to count distances from"}
    distances = profile_distances(length)
    places = [length - 1 - distance for distance in distances]
    rows = []
    for draw, sample in enumerate(samples):
        module = random_net(plan, seed, draw, device, sizes=_sized(plan, length))
        generator = torch.Generator().manual_seed(seed_of(["profile", seed, draw]))
        tokens = draw_tokens(plan, module, inputs, 2 * len(places) + 1, generator, device)
        changes = _changes(plan, module, length, places, tokens, generator) / sample.unit
        rows.append(changes.median(dim=0).values)
    middle = torch.stack(rows).median(dim=0).values.tolist()
    return {"tokens": length, "distance": distances, "change": middle, **decay(distances, middle, FLOOR)}


def _reach(
    plan: Blueprint, module: nn.Module, seed: int, length: int, device: torch.device, circular: bool
) -> int | None:
    if plan.kind != "sequence" or plan.vocab is not None:
        return None
    generator = torch.Generator().manual_seed(seed_of(["reach", seed]))
    return reach(plan, module, draw_tokens(plan, module, 2, length, generator, device), circular)


def _logits(plan: Blueprint, module: nn.Module, seed: int, length: int, device: torch.device) -> float | None:
    generator = torch.Generator().manual_seed(seed_of(["logits", seed]))
    return logit_range(plan, module, draw_tokens(plan, module, 2, length, generator, device))


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
