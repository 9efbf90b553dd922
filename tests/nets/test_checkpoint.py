"""A network with the weights of a file: its sizes are read off the tensors, and every instrument takes it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from theodolite import survey
from theodolite.errors import BadInput
from theodolite.instruments.rank.separation import separation_rank
from theodolite.lab.checkpoint import write_checkpoint
from theodolite.nets.checkpoint import Checkpoint, sizes_in
from theodolite.nets.load import load

SOURCE = """
from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocab_size, d_model=12, num_classes=2, block_size=64):
        super().__init__()
        self.table, self.place = nn.Embedding(vocab_size, d_model), nn.Embedding(block_size, d_model)
        self.core, self.read = nn.GRU(d_model, 2 * d_model, batch_first=True), nn.Linear(2 * d_model, num_classes)

    def forward(self, ids):
        return self.read(self.core(self.table(ids) + self.place.weight[: ids.shape[1]])[0])
"""


@pytest.fixture
def tagger(tmp_path):
    """A net of a file, the module that was trained, and its weights as `torch.save` writes them."""
    (tmp_path / "tagger.py").write_text(SOURCE)
    net = f"{tmp_path / 'tagger.py'}:Tagger"
    module = load(net, seed=3, vocab_size=7, d_model=20, num_classes=5, block_size=16).module
    torch.save({"state_dict": module.state_dict()}, tmp_path / "best.pt")
    return net, module, str(tmp_path / "best.pt")


def test_sizes_are_read_off_the_tensors(tagger):
    net, module, file = tagger
    found = Checkpoint(net, file)
    assert found.given == {"d_model": 20, "vocab_size": 7, "num_classes": 5, "block_size": 16}
    assert (found.name, Checkpoint(net, file, trained=False).name) == ("tagger.py:Tagger + best.pt", "tagger.py:Tagger")
    subject = load(found, tokens=9)
    ids = torch.randint(7, (2, 9), generator=torch.Generator().manual_seed(0))
    assert torch.equal(subject.module(ids), module.eval()(ids))
    assert not torch.equal(load(Checkpoint(net, file, trained=False), tokens=9).module(ids), module(ids))
    assert load(found, tokens=99).sites == 16, "its table of places ends there"


@pytest.mark.parametrize(
    ("net", "shape", "told"),
    [
        ("gru", {"width": 24, "depth": 2}, {"depth": 2}),
        ("transformer", {"width": 24, "heads": 4}, {}),
        ("s4d", {"width": 6, "state": 8}, {"state": 8}),
        ("convolution", {"width": 5, "kernel": 3}, {"kernel": 3}),
    ],
)
def test_of_built_in_nets_too(net, shape, told):
    module = load(net, features=5, outputs=3, **shape).module
    found = sizes_in(net, module.state_dict(), told)
    assert {**told, **found}.items() >= {"features": 5, "outputs": 3, "width": shape["width"]}.items()


def test_those_of_another_net_are_refused(tagger, tmp_path):
    net, _, file = tagger
    with pytest.raises(BadInput, match=r"does not fit 'gru' with this shape: .*; give the shape it was made with"):
        Checkpoint("gru", file)
    with pytest.raises(BadInput, match=r"does not fit 'tagger.py:Tagger' with this shape: 'core"):
        Checkpoint(net, file, {"d_model": 8})
    write_checkpoint(tmp_path / "kept.safetensors", load("lstm").module.state_dict(), {"net": "lstm"})
    with pytest.raises(BadInput, match="holds weights of 'lstm', not of 'gru': name that net"):
        Checkpoint("gru", str(tmp_path / "kept.safetensors"))


def test_a_survey_measures_it_before_and_after(tagger):
    net, _, file = tagger
    found = survey(net, weights=file, only=["leakage", "symmetry", "learnability", "matrix", "trained"])
    assert found.nets == ("tagger.py:Tagger", "tagger.py:Tagger + best.pt")
    errors = [row["permutation"]["value"] for row in next(s for s in found.sections if s.id == "symmetry").rows]
    assert len(set(errors)) == 2, "two sets of weights"
    assert not found.failures
    assert {s.id for s in found.sections} == {"leakage", "symmetry"}
    left = [reason for reason in found.not_applicable if "has one set of weights; learn --weights trains on" in reason]
    assert len(left) == 1
    assert left[0].partition(": ")[0].count("; ") == 2, "three sections"
    assert left[0].endswith("likewise 'tagger.py:Tagger + best.pt'")
    assert f"--weights {file}" in found.command


@pytest.mark.parametrize(
    ("nets", "more", "words"),
    [
        (["gru", "lstm"], {}, "weights are of one net and 2 are named: name that net alone"),
        (["all"], {}, "weights are of one net"),
        (["gru"], {"params": "64k"}, "give --weights or --params, not both"),
        (["gru"], {"engine": "ray"}, "weights are read on this machine, and the engine is ray: use local"),
    ],
)
def test_what_a_survey_of_weights_cannot_do(tagger, nets, more, words):
    with pytest.raises(BadInput, match=words):
        survey(nets, weights=tagger[2], **more)


def test_a_rank_finds_the_sizes_of_its_weights(tagger):
    net, module, file = tagger
    of_file = separation_rank(net, "epsilon", weights=file, points=8, repeats=1, tokens=6)
    at_hand = separation_rank(module, "epsilon", points=8, repeats=1, tokens=6, vocab=7)
    assert of_file.details["spectrum"] == pytest.approx(at_hand.details["spectrum"], rel=1e-6, abs=1e-9)


def test_a_module_at_hand_is_not_trained():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, x):
            return self.layer(x.cumsum(dim=1))

    found = survey(Net(), only=["leakage", "learnability"], alone=True)
    assert not found.failures
    assert "'Net' has one set of weights" in found.not_applicable[0]
