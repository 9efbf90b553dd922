"""The logarithm in causal attention's law: the first symbol moves the last output by (log n)^(L−1)/n in L layers (G14).

In a causal net the output at token m is that of the input cut off after m, so one pair of inputs that differ in their
first token gives the change at every length at once. change·n is averaged over octaves of n, as a median of logarithms,
for each draw of the weights. The value is the slope of its mean logarithm over log log n, with an interval by
resampling draws. A power and a sum of lower powers of a logarithm are hard to tell apart over three decades, so the
laws (log n + s)^a of a = 0, 1, … are compared too, with a free shift s that stands for the lower powers: `residual` is
what each leaves, `chosen` the one that leaves least, `chosen_in` the share of resamples that choose it.

`gain` multiplies what attention adds to the residual stream. The law holds for any, and the larger it is the sooner
the leading term outweighs the others: with L layers the term of order (log n)^a has a factor gain^(a+1).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theodolite.device import device_name, resolve_device
from theodolite.errors import BadInput, NotApplicable
from theodolite.instruments.random_nets import draw_tokens, output_of, random_net
from theodolite.measurement import Measurement, Provenance, seed_of
from theodolite.nets.contract import Influenced
from theodolite.nets.load import Blueprint, blueprint
from theodolite.nets.transformer import TransformerBlock, attention
from theodolite.statistics.bootstrap import percentile_interval, resampled_means

_SHIFTS = np.linspace(-1.5, 3.0, 91)  # of log n; octaves begin at n = 8, whose logarithm is 2.1

Net = str | nn.Module | Callable[..., Any]


def log_law(
    net: Net,
    *,
    longest: int = 2048,
    draws: int = 8,
    inputs: int = 2,
    powers: int = 4,
    gain: float = 1.0,
    seed: int = 0,
    device: str | torch.device = "cpu",
    **shape: Any,
) -> Measurement:
    """The power of log n in n times the change that the first symbol makes, for causal sequence nets."""
    started = time.perf_counter()
    if longest < 64 or draws < 2 or inputs < 1 or powers < 1 or gain <= 0:
        raise BadInput(
            f"a longest of {longest}, {draws} draws, {inputs} inputs, {powers} powers and a gain of {gain:g} give no "
            "law: use at least 64, 2, 1, 1 and a gain above 0"
        )
    device, plan = resolve_device(device), blueprint(net, **shape)
    if plan.kind != "sequence":
        raise NotApplicable(f"'{plan.name}' reads vectors, which have no length to grow")
    octaves = [2**k for k in range(3, longest.bit_length() - 1)]
    curves = np.array([_curve(plan, seed, draw, octaves, inputs, gain, device) for draw in range(draws)])
    middles = [1.5 * n for n in octaves]
    x = np.log(np.log(middles))
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    generator = np.random.default_rng(seed_of(["bootstrap", seed]))
    means = resampled_means(curves, generator)
    residual, shifts = _compared(curves.mean(axis=0), middles, powers)
    resampled = np.array([int(np.argmin(_compared(row, middles, powers)[0])) for row in means[:200]])
    chosen = int(np.argmin(residual))
    law = _predicted(plan, seed, device, longest)
    value = float(curves.mean(axis=0) @ weights)
    return Measurement(
        quantity="power of log n in n times the first symbol's change",
        value=value,
        exact=False,
        interval=percentile_interval(means @ weights),
        method="least squares of the mean log of change·n over log log n in octaves, bootstrap over draws",
        seconds=time.perf_counter() - started,
        provenance=Provenance.here(seed, device_name(device)),
        diagnostics={
            "curve": [
                {"tokens": n, "change_times_n": float(np.exp(v))}
                for n, v in zip(middles, curves.mean(axis=0), strict=True)
            ],
            "residual": [float(r) for r in residual],
            "shift": [float(s) for s in shifts],
            "chosen": chosen,
            "chosen_in": float((resampled == chosen).mean()),
            "predicted": law,
            "gain": gain,
            "draws": draws,
            "inputs": inputs,
            "longest": longest,
        },
    )


def _curve(
    plan: Blueprint, seed: int, draw: int, octaves: Sequence[int], inputs: int, gain: float, device: torch.device
) -> np.ndarray:
    """log(change·n), its median over the inputs and over the lengths n … 2n of every octave."""
    length = 2 * octaves[-1]
    sizes = {"tokens": length}
    module = amplified(random_net(plan, seed, draw, device, sizes=sizes), gain)
    generator = torch.Generator().manual_seed(seed_of(["log law", seed, draw]))
    x = draw_tokens(plan, module, inputs, length, generator, device)
    fresh = draw_tokens(plan, module, inputs, 1, generator, device)
    change = first_symbol_changes(plan, module, x, fresh[:, 0])
    if not bool((change > 0).all()):
        raise NotApplicable(f"'{plan.name}' does not feel its first token at every length: it follows no power law")
    logs = (change * torch.arange(1, length + 1, device=change.device)).log().cpu()
    return np.array([float(logs[:, n - 1 : 2 * n - 1].median()) for n in octaves])


def first_symbol_changes(plan: Blueprint, module: nn.Module, x: Tensor, fresh: Tensor) -> Tensor:
    """(input, length): how far the output at token m moves when the first token is replaced, for every m at once."""
    other = x.clone()
    other[:, 0] = fresh if plan.vocab is None else (x[:, 0] + 1 + fresh % (plan.vocab - 1)) % plan.vocab
    plain, moved = output_of(plan, module, x), output_of(plan, module, other)
    if plain.dim() != 3:
        raise NotApplicable(f"'{plan.name}' pools its tokens, so that lengths cannot be read off one input")
    half = x.shape[1] // 2
    cut = output_of(plan, module, x[:, :half])
    if not torch.allclose(cut, plain[:, :half], rtol=1e-6, atol=1e-9):
        raise NotApplicable(f"'{plan.name}' is not causal: what follows a token changes its output")
    return (moved - plain).norm(dim=-1)


def amplified(module: nn.Module, gain: float) -> nn.Module:
    """Softmax blocks with a fused attention, which needs no matrix of n² weights, and with their output enlarged."""
    for block in module.modules():
        if isinstance(block, TransformerBlock) and block.mix is attention:
            block.mix = _fused
            with torch.no_grad():
                block.combine.weight.mul_(gain)
    return module


def _fused(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None = None) -> Tensor:
    """A square bias without a batch is the causal mask, which the fused kernel makes for itself."""
    if bias is None or bias.dim() == 2:
        return F.scaled_dot_product_attention(query, key, value, is_causal=bias is not None)
    return attention(query, key, value, bias)


def _compared(logs: np.ndarray, lengths: Sequence[float], powers: int) -> tuple[np.ndarray, np.ndarray]:
    """For a = 0 … powers: the least variance of logs − a·log(log n + s) over the shifts s, and that shift."""
    bases = np.log(np.log(lengths)[None, :] + _SHIFTS[:, None])
    left = np.array([(logs - a * bases).var(axis=1) for a in range(powers + 1)])
    return left.min(axis=1), _SHIFTS[left.argmin(axis=1)]


def _predicted(plan: Blueprint, seed: int, device: torch.device, length: int) -> int | None:
    module = random_net(plan, seed, 0, device, sizes={"tokens": length})
    law = module.influence() if isinstance(module, Influenced) else None
    return None if law is None or law.law != "power" or law.exponent != -1 else law.log_power


def measure_log_law(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: net, shape, and any option of `log_law`."""
    options = {k: v for k, v in config.items() if k not in ("net", "shape")}
    return log_law(config["net"], seed=seed, device=device, **options, **config.get("shape", {})).to_json()
