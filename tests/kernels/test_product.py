"""Batched products by the kernel against float64, and in place of torch's in traced operations."""

from __future__ import annotations

import json
import sys

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tests.kernels.interpreted import interpreted, mend_interpreter
from theodolite.kernels.product import batched_product, with_products

SIZES = [(3, 5, 7, 3), (2, 40, 33, 70), (1, 130, 70, 64), (2, 52, 156, 100), (1, 16, 16, 16)]  # member, rows, …, inner


def errors(device: str) -> dict[str, float]:
    """‖difference‖ / ‖truth‖, with either side transposed in memory or not."""
    draw, found = torch.Generator().manual_seed(0), {}
    for members, rows, columns, inner in SIZES:
        for turned in (False, True):
            left = torch.randn(members, inner, rows, generator=draw).to(device).mT
            right = torch.randn(members, columns, inner, generator=draw).to(device).mT
            left, right = (left, right.contiguous()) if turned else (left.contiguous(), right)
            true = left.double() @ right.double()
            error = (batched_product(left, right, "tf32x3").double() - true).norm() / true.norm()
            found[f"{rows}×{columns}×{inner}, {turned}"] = error.item()
    return found


def test_in_the_interpreter_it_agrees_with_float64():
    pytest.importorskip("triton")
    found = interpreted("tests.kernels.test_product")
    assert len(found) == 2 * len(SIZES)
    assert max(found.values()) < 1e-6, found


@pytest.mark.gpu
def test_on_cuda_it_is_as_exact_as_float32():
    found = errors("cuda")
    assert max(found.values()) < 1e-6, found


@pytest.mark.gpu
def test_traced_operations_have_it_in_place_of_torch_s():
    a, b, c = (torch.randn(4, n, m, device="cuda") for n, m in ((20, 30), (30, 10), (20, 10)))
    graph = with_products(make_fx(lambda a, b, c: torch.baddbmm(c, a, b) + a @ b)(a, b, c))
    assert sum(node.target is batched_product for node in graph.graph.nodes) == 2
    torch.testing.assert_close(graph(a, b, c), c + 2 * (a @ b), rtol=1e-5, atol=1e-4)


if __name__ == "__main__":
    mend_interpreter()
    print(json.dumps(errors("cpu")), file=sys.stdout)
