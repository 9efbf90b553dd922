"""A network of a graph, computed in groups, against the same function as masked dense layers and as a loop over nodes.

python benchmarks/graph_net.py --json
python benchmarks/graph_net.py --device cuda --width 64 --batch 4096 --json

Binary trees with a perceptron of one hidden layer in every node, float32. All sides have the same weights and read the
same batch. A step is forward, backward and Adam. Masked: a level is a dense layer whose weights are multiplied by a
mask of the graph, as pruning does it. Loop: two `nn.Linear` per node, node after node. `difference` is the largest
between their outputs, relative to the largest output. Medians of repeated steps after a warm-up.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from typing import cast

import torch
from torch import Tensor, nn

from theodolite.nets.compositional_net import CompositionalNet, Perceptrons
from theodolite.nets.size import count_parameters
from timing import hardware, timed


class MaskedLinear(nn.Module):
    """A dense layer of the blocks (node, out, in) at the columns each node reads; the rest is masked."""

    mask: Tensor

    def __init__(self, blocks: Tensor, bias: Tensor | None, columns: Tensor, inputs: int) -> None:
        super().__init__()
        nodes, rows, _ = blocks.shape
        weight, mask = blocks.new_zeros(2, nodes, rows, inputs)
        at = columns.view(nodes, 1, -1).expand_as(blocks)
        self.weight = nn.Parameter(weight.scatter(-1, at, blocks).flatten(0, 1))
        self.bias = None if bias is None else nn.Parameter(bias.flatten())
        self.register_buffer("mask", mask.scatter(-1, at, 1.0).flatten(0, 1))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight * self.mask, self.bias)


def levels(net: CompositionalNet) -> list[Perceptrons]:
    """One group of nodes a level, in a binary tree of 2^k variables."""
    return [module for module in net.modules() if isinstance(module, Perceptrons)]


class Masked(nn.Module):
    def __init__(self, net: CompositionalNet) -> None:
        super().__init__()
        self.levels, inputs = nn.ModuleList(), net.features
        for block in levels(net):
            nodes, width, _ = block.weights[0].shape
            read = torch.arange(inputs).view(nodes, -1)  # neighbours
            hidden = torch.arange(nodes * width).view(nodes, -1)
            self.levels.append(
                nn.ModuleList(
                    [
                        MaskedLinear(block.weights[0].detach(), block.biases[0].detach(), read, inputs),
                        MaskedLinear(block.combine.detach(), block.bias.detach(), hidden, nodes * width),
                        MaskedLinear(block.linear.detach(), None, read, inputs),
                    ]
                )
            )
            inputs = nodes

    def forward(self, x: Tensor) -> Tensor:
        for enter, combine, linear in cast("Iterable[Iterable[nn.Module]]", self.levels):
            x = combine(nn.functional.gelu(enter(x))) + linear(x)
        return x


class Loop(nn.Module):
    def __init__(self, net: CompositionalNet) -> None:
        super().__init__()
        self.levels = nn.ModuleList()
        for block in levels(net):
            self.levels.append(nn.ModuleList([self._node(block, k) for k in range(block.bias.shape[0])]))

    @staticmethod
    def _node(block: Perceptrons, k: int) -> nn.ModuleList:
        width, inputs = block.weights[0].shape[1:]
        enter, combine, linear = nn.Linear(inputs, width), nn.Linear(width, 1), nn.Linear(inputs, 1, bias=False)
        with torch.no_grad():
            enter.weight.copy_(block.weights[0][k])
            enter.bias.copy_(block.biases[0][k, :, 0])
            combine.weight.copy_(block.combine[k])
            combine.bias.copy_(block.bias[k, :, 0])
            linear.weight.copy_(block.linear[k])
        return nn.ModuleList([enter, combine, linear])

    def forward(self, x: Tensor) -> Tensor:
        for level in cast("Iterable[nn.ModuleList]", self.levels):
            said, inputs = [], x.shape[1] // len(level)
            for k, (enter, combine, linear) in enumerate(cast("Iterable[Iterable[nn.Module]]", level)):
                u = x[:, k * inputs : (k + 1) * inputs]
                said.append(combine(nn.functional.gelu(enter(u))) + linear(u))
            x = torch.cat(said, dim=1)
        return x


def step(net: nn.Module, x: Tensor, y: Tensor) -> Callable[[], None]:
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)

    def run() -> None:
        optimiser.zero_grad()
        (net(x) - y).square().mean().backward()
        optimiser.step()

    return run


def measured(variables: int, width: int, batch: int, repeats: int, device: torch.device) -> dict[str, object]:
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        net = CompositionalNet("binary-tree", features=variables, width=width)
    sides = {"grouped": net, "masked": Masked(net), "loop": Loop(net)}
    x, y = torch.randn(batch, variables, generator=generator).to(device), torch.zeros(batch, 1, device=device)
    with torch.no_grad():
        outputs = {name: side.to(device)(x) for name, side in sides.items()}
    scale = float(outputs["grouped"].abs().max())
    difference = max(float((output - outputs["grouped"]).abs().max()) / scale for output in outputs.values())
    assert difference < 1e-4
    seconds = {name: timed(step(side, x, y), repeats, device) for name, side in sides.items()}
    return {
        "variables": variables,
        "width": width,
        "batch": batch,
        "parameters": count_parameters(net),
        "masked_weights": count_parameters(sides["masked"]),
        "difference": difference,
        "seconds_per_step": seconds,
        "times_faster_than_masked": seconds["masked"] / seconds["grouped"],
        "times_faster_than_loop": seconds["loop"] / seconds["grouped"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--variables", type=int, nargs="+", default=[8, 32, 128, 512], help="powers of 2 [8 32 128 512]"
    )
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    if any(n < 2 or n & (n - 1) for n in options.variables):
        parser.error("--variables must be powers of 2")
    if options.threads:
        torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    rows = [measured(n, options.width, options.batch, options.repeats, device) for n in options.variables]
    if options.json:
        print(json.dumps({"benchmark": "graph_net", "hardware": hardware(device), "rows": rows}, indent=2))
        return
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
