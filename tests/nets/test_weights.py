"""Weights of a file, wherever they were written."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from theodolite.bench.learn import learn
from theodolite.errors import BadInput, StoreError
from theodolite.instruments.rank.separation import separation_rank
from theodolite.nets.weights import load_weights, read_checkpoint


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.read = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        self.read.weight = self.table.weight


class Product(nn.Module):
    def __init__(self, features: int, outputs: int = 1) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(features, 4, bias=False), nn.Linear(features, 4, bias=False)
        self.read = nn.Linear(4, outputs, bias=False)

    def forward(self, x):
        return self.read(self.a(x) * self.b(x))


@pytest.mark.parametrize(
    "keep",
    [
        lambda state, path: torch.save(state, path),
        lambda state, path: torch.save({"state_dict": state, "epoch": 3}, path),
        lambda state, path: torch.save({f"module.{k}": v for k, v in state.items()}, path),
        lambda state, path: torch.save({f"_orig_mod.{k}": v for k, v in state.items()}, path),
        lambda state, path: torch.save({"table.weight": state["table.weight"]}, path),
    ],
    ids=["plain", "in a loop's dict", "of a wrapper", "compiled", "tied once"],
)
def test_weights_are_found_however_they_were_kept(tmp_path, keep):
    theirs, ours = Tied(), Tied()
    keep(theirs.state_dict(), tmp_path / "w.pt")
    load_weights("tied", ours, tmp_path / "w.pt")
    assert torch.equal(ours.read.weight, theirs.table.weight)


def test_a_file_that_would_run_code_is_refused(tmp_path):
    torch.save(nn.Linear(2, 2), tmp_path / "whole.pt")
    with pytest.raises(StoreError, match="holds more than tensors, which is not run here"):
        read_checkpoint(tmp_path / "whole.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(StoreError, match="holds no weights by name"):
        read_checkpoint(tmp_path / "list.pt")
    (tmp_path / "cut.pt").write_bytes(b"no")
    with pytest.raises(StoreError, match=r"not a checkpoint, or it is cut short|more than tensors"):
        read_checkpoint(tmp_path / "cut.pt")


def test_the_rank_of_weights_in_a_file(tmp_path):
    module = Product(4)
    with torch.no_grad():
        module.read.weight.zero_()[0, 0] = 1.0  # one product is left
        module.a.weight[0], module.b.weight[0] = torch.tensor([1.0, 1, 0, 0]), torch.tensor([0.0, 0, 1, 1])
    save_file(module.state_dict(), tmp_path / "w.safetensors")
    assert separation_rank(Product, features=4, weights=tmp_path / "w.safetensors", repeats=1).rank == 1
    assert separation_rank(Product, features=4, repeats=1).rank == 4
    with pytest.raises(BadInput, match=r"does not fit 'Product' with this shape: 'a.weight' is \(4, 4\) there and"):
        separation_rank(Product, features=6, weights=tmp_path / "w.safetensors")
    with pytest.raises(BadInput, match="use drawn, own or the path of a file"):
        separation_rank(Product, features=4, weights="nowhere.pt")


def test_training_starts_from_the_weights_of_a_file(tmp_path):
    asked = {"net": Product, "task": "majority", "task_args": {"bits": 3}, "seeds": 1, "chunk": 1, "lr": 1e-9}
    state = Product(3).state_dict()
    torch.save(state, tmp_path / "w.pth")
    found = learn(**asked, steps=2, weights=tmp_path / "w.pth", keep_weights=True, out=tmp_path / "runs")
    kept, _ = read_checkpoint(next((tmp_path / "runs" / "weights").iterdir()))
    assert all(torch.allclose(kept[name], state[name], atol=1e-6) for name in state)
    assert "checkpoint" in found.rows[0].cell.config
    drawn = learn(**asked, steps=2, out=tmp_path / "runs")
    assert drawn.reused == 0, "members that start elsewhere are others"
    with pytest.raises(BadInput, match="give one of --checkpoint and --weights"):
        learn(**asked, steps=2, weights=tmp_path / "w.pth", checkpoint=tmp_path / "w.pth")
