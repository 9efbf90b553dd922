"""The formula of training memory beside what CUDA allocates, for real models of transformers.

    PYTHONPATH=src python benchmarks/advise_memory.py --device cuda [--out memory.json] [--only llama-gqa,gpt2]
    PYTHONPATH=src python benchmarks/advise_memory.py --dry

Weights and gradients are bfloat16, gradients stay between steps (as where they are accumulated), and Adam keeps a
master copy and two moments in float32: the 16 bytes a parameter that the formula assumes. Two steps are trained; the
peak is `torch.cuda.max_memory_allocated`, which knows nothing of the CUDA context nor of the allocator's gaps. `--dry`
needs no GPU: it runs one step on tensors without content and counts the storages that are alive.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

from theodolite.advice.alive import AliveBytes
from theodolite.advice.budget.activations import Recompute
from theodolite.advice.budget.training_memory import Setting, training_memory
from theodolite.advice.configs import read_config
from theodolite.advice.shape import ModelShape

STEPS = 2
SLICE = 2**24  # numbers that the optimiser works on at once, so that what it needs in passing is small


class Case(NamedTuple):
    name: str
    family: str
    sizes: dict[str, Any]
    batch: int
    sequence: int
    recompute: Recompute = "none"


def llama(depth: int, width: int, heads: int, key_value_heads: int, mlp: int, vocab: int = 32000) -> dict[str, Any]:
    attention = {"num_attention_heads": heads, "num_key_value_heads": key_value_heads}
    sizes = {"num_hidden_layers": depth, "hidden_size": width, "intermediate_size": mlp, "vocab_size": vocab}
    return {**sizes, **attention, "max_position_embeddings": 32768, "tie_word_embeddings": False}


def gpt2(depth: int, width: int, heads: int) -> dict[str, Any]:
    quiet = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}
    return {"n_layer": depth, "n_embd": width, "n_head": heads, "vocab_size": 50257, "n_positions": 1024, **quiet}


CASES = [
    Case("gpt2", "gpt2", gpt2(12, 768, 12), 8, 1024),
    Case("gpt2-medium", "gpt2", gpt2(24, 1024, 16), 4, 1024),
    Case("gpt2-medium-full", "gpt2", gpt2(24, 1024, 16), 16, 1024, "full"),
    Case("llama-gqa", "llama", llama(16, 1536, 12, 4, 4096), 2, 2048),
    Case("llama-gqa-selective", "llama", llama(16, 1536, 12, 4, 4096), 4, 2048, "selective"),
    Case("llama-gqa-full", "llama", llama(16, 1536, 12, 4, 4096), 8, 2048, "full"),
    Case("llama-batch-1", "llama", llama(16, 1536, 12, 4, 4096), 1, 512),
    Case("deep-narrow", "llama", llama(64, 512, 8, 8, 1408), 4, 1024),
    Case("wide-shallow", "llama", llama(4, 4096, 32, 8, 11008), 2, 2048),
    Case("large-vocabulary", "llama", llama(8, 1024, 8, 8, 2816, 256000), 2, 1024),
    Case("long-sequence", "llama", llama(8, 1024, 16, 4, 2816), 1, 16384),
    Case("long-sequence-full", "llama", llama(8, 1024, 16, 4, 2816), 1, 32768, "full"),
    Case("qwen3", "qwen3", llama(12, 1024, 16, 8, 3072, 65536) | {"head_dim": 64}, 4, 1024),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="cuda or cuda:1")
    parser.add_argument("--dry", action="store_true", help="no GPU: count storages of tensors without content")
    parser.add_argument("--only", default="", help="names of cases, with commas")
    parser.add_argument("--seconds", type=float, default=85, help="start no further case after so many")
    parser.add_argument("--out", type=Path, help="write the JSON to this file too")
    given = parser.parse_args()
    if not given.dry and (not given.device.startswith("cuda") or not torch.cuda.is_available()):
        sys.exit(
            "advise_memory measures CUDA's allocator and there is no CUDA device here: run it on one, or add --dry"
        )
    names = given.only.split(",") if given.only else [case.name for case in CASES]
    if unknown := set(names) - {case.name for case in CASES}:
        sys.exit(f"there is no case {', '.join(sorted(unknown))}: there are {', '.join(case.name for case in CASES)}")
    started, rows = time.monotonic(), []
    for case in CASES:
        if case.name in names and time.monotonic() - started < given.seconds:
            rows.append(row(case, given.dry, given.device))
            print(json.dumps(rows[-1]), flush=True)
    document = {"hardware": hardware(given.dry, given.device), "date": str(date.today()), **versions(), "rows": rows}
    document["worst"] = max((abs(one["ratio"] - 1) for one in rows if "ratio" in one), default=None)
    document["left_out"] = [name for name in names if name not in [one["case"] for one in rows]]
    print(json.dumps(document, indent=2))
    if given.out:
        given.out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def row(case: Case, dry: bool, device: str) -> dict[str, Any]:
    shape = read_config({"model_type": case.family, **case.sizes}, case.name)
    found = training_memory(shape, Setting(case.batch, case.sequence, case.recompute))
    about = {"case": case.name, "params": shape.params, "batch": case.batch, "sequence": case.sequence}
    about |= {"recompute": case.recompute, "formula": round(found.total)}
    begun = time.monotonic()
    try:
        measured, requested = dry_peak(case, shape) if dry else cuda_peak(case, device)
    except Exception as error:  # one case that does not fit must not end the run
        return {**about, "error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
    parts = {name: round(getattr(found, name)) for name in ("states", "activations", "working")} | {
        "requested": requested
    }
    ratio = round(measured / found.total, 4)
    return {**about, "measured": measured, "ratio": ratio, **parts, "seconds": round(time.monotonic() - begun, 2)}


def built(case: Case) -> Any:
    """On the device that is the default here; gradients are there from the start."""
    import transformers

    special = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    config = transformers.AutoConfig.for_model(case.family, **case.sizes, **special)
    config._attn_implementation = "sdpa"
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).train()
    arguments: dict[str, Any] = {"use_reentrant": False}
    if case.recompute == "selective":
        arguments["context_fn"] = functools.partial(create_selective_checkpoint_contexts, policy)
    if case.recompute != "none":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=arguments)
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    return model


def policy(ctx: Any, operation: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    """Matrix products and attention are kept."""
    name = str(operation)
    product = name.split(".")[1] in ("mm", "addmm", "bmm") or "_scaled_dot_product" in name
    return CheckpointPolicy.MUST_SAVE if product else CheckpointPolicy.PREFER_RECOMPUTE


def cuda_peak(case: Case, device: str) -> tuple[int, int]:
    """Bytes of the allocator's blocks, and what was asked for: a block may be up to 1 MiB larger."""
    gc.collect()
    torch.cuda.empty_cache()
    place = torch.device(device)
    before = torch.cuda.memory_allocated(place)
    with place:
        model = built(case)
        torch.cuda.reset_peak_memory_stats(place)
        train(model, case, torch.Generator(place).manual_seed(0))
        torch.cuda.synchronize(place)
        requested = torch.cuda.memory_stats(place).get("requested_bytes.all.peak", 0)
        return torch.cuda.max_memory_allocated(place) - before, requested


def train(model: Any, case: Case, generator: torch.Generator) -> list[float]:
    """The losses; all on the device that is the default here."""
    adam, losses = Adam(list(model.parameters())), []
    ids = torch.randint(0, model.config.vocab_size, (case.batch, case.sequence), generator=generator)
    for _ in range(STEPS):
        loss = model(ids, labels=ids, use_cache=False).loss
        loss.backward()
        losses.append(loss.item())
        adam.step()
    return losses


class Adam:
    """bfloat16 weights with a float32 master and two float32 moments, a slice at a time."""

    def __init__(self, weights: list[Tensor]) -> None:
        self.weights = weights
        self.masters = [weight.detach().float().flatten() for weight in weights]
        self.first, self.second = ([torch.zeros_like(master) for master in self.masters] for _ in range(2))
        self.taken = 0

    @torch.no_grad()
    def step(self, rate: float = 1e-4, decay: tuple[float, float] = (0.9, 0.95)) -> None:
        self.taken += 1
        scales = [1 - one**self.taken for one in decay]
        for weight, *states in zip(self.weights, self.masters, self.first, self.second, strict=True):
            assert weight.grad is not None
            flat, gradients = weight.view(-1), weight.grad.view(-1)
            for start in range(0, flat.numel(), SLICE):
                here = slice(start, start + SLICE)
                master, first, second = (state[here] for state in states)
                gradient = gradients[here].float()
                first.lerp_(gradient, 1 - decay[0])
                second.mul_(decay[1]).addcmul_(gradient, gradient, value=1 - decay[1])
                master.addcdiv_(first, (second / scales[1]).sqrt_().add_(1e-8), value=-rate / scales[0])
                flat[here] = master.to(flat.dtype)
            weight.grad.zero_()


def dry_peak(case: Case, shape: ModelShape) -> tuple[int, int]:
    """Weights, gradients and storages alive at most in a pass; the optimiser's 12 bytes a parameter are added."""
    with FakeTensorMode(allow_non_fake_inputs=True), without_mask(case.family), AliveBytes() as alive:
        model = built(case)
        ids = torch.zeros(case.batch, case.sequence, dtype=torch.long)
        loss = model(ids, labels=ids, use_cache=False).loss
        loss.backward()
    found = alive.most + 12 * shape.params
    return found, found


def without_mask(family: str) -> Any:
    """transformers builds no mask for causal attention, unless it thinks that it is traced, as here."""
    return mock.patch(f"transformers.models.{family}.modeling_{family}.create_causal_mask", return_value=None)


def hardware(dry: bool, device: str) -> str:
    return "none: tensors without content" if dry else torch.cuda.get_device_name(torch.device(device))


def versions() -> dict[str, str]:
    import transformers

    return {"torch": torch.__version__, "transformers": transformers.__version__}


if __name__ == "__main__":
    main()
