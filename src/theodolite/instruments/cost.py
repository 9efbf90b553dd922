"""What a net costs, measured on the module itself, beside what its shape says: parameters, operations, memory, time.

- Operations: `torch.utils.flop_counter` over one forward pass. It sees matrix products and convolutions, 2 operations
  per multiplication; activations, norms, softmax and sums are not counted. They are counted on the CPU in float64,
  where recurrent layers are not one kernel that the counter cannot look into.
- Activations: bytes of the tensors that autograd keeps for the backward pass, each storage once, parameters and the
  input left out.
- Seconds: the fastest of repeated runs after warm-up, in float32, and how far above it the median lies: what else the
  machine does can only add. A training step is forward, backward and a plain gradient step.

A vector net has no tokens: everything "per token" is then per input.
"""

from __future__ import annotations

import copy
import inspect
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from theodolite.device import device_name, resolve_device
from theodolite.errors import BadInput
from theodolite.instruments.random_nets import call, draw_tokens, features_of, output_of, random_net
from theodolite.instruments.state_size import state_size
from theodolite.measurement import Measurement, Provenance, seed_of
from theodolite.nets.load import Blueprint, blueprint
from theodolite.nets.size import count_parameters
from theodolite.theory.cost import PRICES, Price

_WARM_UP = 2
_FEWEST, _MOST = 5, 51
_SECONDS = 0.2  # spent on one timing, once there are enough repeats

Net = str | nn.Module | Callable[..., Any]


def cost(
    net: Net,
    *,
    batch: int = 8,
    timed: bool = True,
    state: bool = True,
    most: int = 1024,
    seed: int = 0,
    device: str | torch.device = "cpu",
    **shape: Any,
) -> dict[str, Measurement]:
    """Every cost by name: `parameters`, `flops_per_token`, `activation_bytes_per_token`, `forward_seconds_per_token`,
    `training_seconds_per_token`, and for a sequence net `state_size`.

    In the diagnostics, `predicted` is the number the shape gives for a built-in net (None of any other), `formula` how.
    `timed` and `state` switch off what takes longer: the seconds, and the measured state size, of which `most` is the
    largest rank that is resolved.
    """
    if batch < 1:
        raise BadInput(f"a batch of {batch} inputs costs nothing: use at least 1")
    device, plan = resolve_device(device), blueprint(net, **shape)
    bench = _Bench(plan, random_net(plan, seed, 0, device, torch.float32), batch, seed, device)
    price = predicted_price(plan)
    found = {
        "parameters": bench.parameters(price),
        "flops_per_token": bench.operations(price),
        "activation_bytes_per_token": bench.activations(),
    }
    if timed:
        found["forward_seconds_per_token"] = bench.forward_seconds()
        if found["parameters"].value:
            found["training_seconds_per_token"] = bench.training_seconds()
    if state and plan.kind == "sequence":
        found["state_size"] = _state(net, price, seed, most, shape)
    return found


def predicted_price(plan: Blueprint) -> Price | None:
    """The formulas of a built-in family at the plan's arguments; None where theory has none."""
    formula = PRICES.get(plan.name) if plan.registered else None
    if formula is None:
        return None
    taken = inspect.signature(formula).parameters
    return formula(**{name: value for name, value in plan.shape.items() if name in taken})


class _Bench:
    """One net and one batch of inputs, on which all costs are measured."""

    def __init__(self, plan: Blueprint, module: nn.Module, batch: int, seed: int, device: torch.device) -> None:
        self.plan, self.module, self.seed, self.device = plan, module, seed, device
        sites = int(plan.shape["tokens"]) if plan.kind == "sequence" else features_of(plan, module)
        generator = torch.Generator().manual_seed(seed_of(["cost", seed]))
        self.x = draw_tokens(plan, module, batch, sites, generator, device, torch.float32)
        self.tokens = batch * sites if plan.kind == "sequence" else batch
        output_of(plan, module, self.x)  # a net that fails says so before anything is counted

    def parameters(self, price: Price | None) -> Measurement:
        started = time.perf_counter()
        return self._row(
            "parameters",
            count_parameters(self.module),
            "numbers in the parameters that training changes, shared ones once",
            started,
            exact=True,
            predicted=price.parameters if price else None,
            formula=price.formula if price else None,
        )

    def operations(self, price: Price | None) -> Measurement:
        started = time.perf_counter()
        counter = self._counted()
        counts: Mapping[Any, int] = counter.get_flop_counts().get("Global", {})
        value = counter.get_total_flops() / self.tokens
        weights = count_parameters(self.module)
        return self._row(
            "operations per token, forward",
            value,
            "torch.utils.flop_counter over one forward pass",
            started,
            exact=True,
            predicted=price.flops_per_token if price else None,
            formula=price.formula if price else None,
            per_parameter=value / weights if weights else None,
            counted={str(name): count / self.tokens for name, count in counts.items()},
            not_counted="activations, norms, softmax, sums, and kernels that torch's counter does not know",
            nothing_seen=value == 0,
        )

    def _counted(self) -> FlopCounterMode:
        x = self.x.cpu()
        module = copy.deepcopy(self.module).cpu()
        if x.is_floating_point():
            try:
                return _flops(self.plan, copy.deepcopy(module).double(), x.double())
            except BadInput:  # made for float32 alone
                pass
        return _flops(self.plan, module, x)

    def activations(self) -> Measurement:
        started = time.perf_counter()
        storages: dict[int, int] = {}

        def pack(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            output = call(self.plan, self.module, self.x)  # kept alive, so that no storage is used twice
        for known in (*self.module.parameters(), *self.module.buffers(), self.x):
            storages.pop(known.untyped_storage().data_ptr(), None)
        return self._row(
            "bytes kept for the backward pass per token",
            sum(storages.values()) / self.tokens,
            "storages that autograd saves, in float32, without parameters and input",
            started,
            exact=True,
            tensors=len(storages),
            trains=bool(getattr(output, "requires_grad", False)),
        )

    def forward_seconds(self) -> Measurement:
        def run() -> None:
            with torch.no_grad():
                self.module(self.x)

        return self._timing("seconds per token, forward", run)

    def training_seconds(self) -> Measurement:
        module = copy.deepcopy(self.module)
        weights = [p for p in module.parameters() if p.requires_grad]

        def run() -> None:
            with torch.enable_grad():
                loss = module(self.x).square().mean()
                slopes = torch.autograd.grad(loss, weights, allow_unused=True)
            with torch.no_grad():
                for weight, slope in zip(weights, slopes, strict=True):
                    if slope is not None:
                        weight.sub_(slope, alpha=1e-6)

        return self._timing("seconds per token, training step", run)

    def _timing(self, quantity: str, run: Callable[[], None]) -> Measurement:
        started = time.perf_counter()
        try:
            for _ in range(_WARM_UP):
                run()
            seconds, begun = [], time.perf_counter()
            while len(seconds) < _FEWEST or (len(seconds) < _MOST and time.perf_counter() - begun < _SECONDS):
                self._wait()
                before = time.perf_counter()
                run()
                self._wait()
                seconds.append((time.perf_counter() - before) / self.tokens)
        except RuntimeError as error:
            raise BadInput(f"'{self.plan.name}' cannot be timed ({quantity}): {error}") from error
        fastest, median = min(seconds), statistics.median(seconds)
        return self._row(
            quantity,
            fastest,
            f"fastest of {len(seconds)} runs after {_WARM_UP} for warm-up; the interval ends at their median",
            started,
            interval=(fastest, median),
            runs=len(seconds),
            median=median,
            slowest=max(seconds),
            spread=median / fastest - 1 if fastest else 0.0,
            threads=torch.get_num_threads(),
        )

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _row(
        self,
        quantity: str,
        value: float | int,
        method: str,
        started: float,
        exact: bool = False,
        interval: tuple[float, float] | None = None,
        **diagnostics: Any,
    ) -> Measurement:
        return Measurement(
            quantity=quantity,
            value=value,
            exact=exact,
            interval=interval,
            method=method,
            seconds=time.perf_counter() - started,
            provenance=Provenance.here(self.seed, device_name(self.device)),
            diagnostics={"batch": self.x.shape[0], "per": self._per, **diagnostics},
        )

    @property
    def _per(self) -> str:
        return "token" if self.plan.kind == "sequence" else "input"


def _flops(plan: Blueprint, module: nn.Module, x: Tensor) -> FlopCounterMode:
    # With gradients: without them the counter's own hooks stop at parameters that are used as inputs.
    with torch.enable_grad(), FlopCounterMode(display=False) as counter:
        call(plan, module, x)
    return counter


def _state(net: Net, price: Price | None, seed: int, most: int, shape: Mapping[str, Any]) -> Measurement:
    """The measured one, with the formula's beside it."""
    found = state_size(net, seed, most, **shape)
    beside = {
        "predicted": price.state if price else None,
        "predicted_per_token": price.state_per_token if price else None,
        "cache_per_token": price.cache_per_token if price else None,
        "formula": price.state_formula if price else None,
        "agrees": _meets(found, price),
    }
    return Measurement(**{**_fields(found), "diagnostics": {**found.diagnostics, **beside}})


def _meets(found: Measurement, price: Price | None) -> bool | None:
    """A state of the formula's size, or one that grows as the formula says; None where either side has no number.

    A size that was not resolved is a bound from above: only what is certain of it can contradict the formula.
    """
    if price is None or price.state_per_token is None:
        return None
    growth = found.diagnostics.get("growth_per_token")
    if found.value is not None and not found.diagnostics.get("resolved", True):
        return False if price.state is not None and found.diagnostics["at_least"] > price.state else None
    if price.state is not None:
        return None if found.value is None and not growth else found.value == price.state
    return None if not growth and found.value is None else growth == price.state_per_token


def _fields(row: Measurement) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__dataclass_fields__}


def measure_cost(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: net, shape, and any option of `cost`."""
    options = {k: v for k, v in config.items() if k not in ("net", "shape")}
    found = cost(config["net"], seed=seed, device=device, **options, **config.get("shape", {}))
    return {name: row.to_json() for name, row in found.items()}
