"""A user's net by the names its author chose, with what it needs assumed, called and read as it is."""

# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import os
import py_compile
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from theodolite.errors import BadInput
from theodolite.instruments.rank.separation import separation_rank
from theodolite.nets.calling import answer
from theodolite.nets.explain import assumptions, explain
from theodolite.nets.fingerprint import neighbours
from theodolite.nets.load import blueprint, load
from theodolite.nets.reading import kind_of
from theodolite.tasks import make_task
from theodolite.training.pairing import pair

SOURCE = """
from dataclasses import dataclass

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocab_size, embedding_dim, hidden_dim, num_classes, dropout):
        super().__init__()
        self.table, self.drop = nn.Embedding(vocab_size, embedding_dim), nn.Dropout(dropout)
        self.core, self.out = nn.GRU(embedding_dim, hidden_dim), nn.Linear(hidden_dim, num_classes)

    def forward(self, ids):
        y, h = self.core(self.drop(self.table(ids)))
        return self.out(y), h


@dataclass
class ModelArgs:
    vocab_size: int
    dim: int = 16
    n_layers: int = 1
    max_seq_len: int = 64


class Language(nn.Module):
    def __init__(self, params: ModelArgs):
        super().__init__()
        self.table, self.out = nn.Embedding(params.vocab_size, params.dim), nn.Linear(params.dim, params.vocab_size)
        self.layers = nn.ModuleList(nn.Linear(params.dim, params.dim) for _ in range(params.n_layers))
        self.places = nn.Parameter(torch.zeros(params.max_seq_len, params.dim))

    def forward(self, tokens, start_pos):
        x = self.table(tokens) + self.places[start_pos : start_pos + tokens.shape[1]]
        for layer in self.layers:
            x = x + torch.tanh(layer(x)).cumsum(dim=1)
        return {"loss": None, "logits": self.out(x)}


class Free(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.into = nn.Linear(config.input_dim, config.d_model)
        self.out = nn.Linear(config.d_model, config["num_classes"])
        self.gain = config.get("gain", 2.0)

    def forward(self, x):
        return self.gain * self.out(torch.tanh(self.into(x)).cumsum(dim=1))


class Parent(nn.Module):
    def __init__(self, input_size, output_size, width=8):
        super().__init__()
        self.into, self.out = nn.Linear(input_size, width), nn.Linear(width, output_size)

    def forward(self, x):
        return self.out(torch.tanh(self.into(x)))


class Child(Parent):
    def __init__(self, **kwargs):
        super().__init__(width=6, **kwargs)


class Fixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.core, self.out = nn.LSTM(16, 8, batch_first=True), nn.Linear(8, 10)

    def forward(self, x):
        return self.out(self.core(x)[0])


class FixedIds(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(12, 6), nn.Linear(6, 12)

    def forward(self, x):
        return self.out(self.table(x).cumsum(dim=1))


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.map = nn.Linear(dim, dim)

    def forward(self, x):
        return torch.tanh(self.map(x)).cumsum(dim=1)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "theirs.py"
    path.write_text(SOURCE)
    return path


CHECK, REVERSE = make_task("parity-check", {}), make_task("reverse", {})


@pytest.mark.parametrize("task", [CHECK, REVERSE], ids=lambda task: task.name)
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Tagger", ["embedding_dim=32, hidden_dim=32, dropout=0.0", "(token, batch)"]),
        ("Language", ["ModelArgs", "'start_pos'", "entries are read"]),
        ("Free", ["d_model=32"]),
        ("Child", []),
        ("Fixed", ["filled up with zeros to its 16 features", "entries are read"]),
        ("FixedIds", ["an embedding of 12 comes first", "entries are read"]),
        ("Layer", ["dim=32", "filled up", "entries are read"]),
    ],
)
def test_nets_under_other_names_meet_a_task_without_a_wrapper(file, name, told, task):
    found = pair(f"{file}:{name}", task)
    words = "; ".join((*found.assumed, *found.read_as))
    assert all(one in words for one in told), words
    assert bool(words) == bool(told)


def test_a_gru_that_takes_tokens_first_is_fed_so(file):
    """Against the module itself, called the way its author calls it."""
    plan = blueprint(f"{file}:Tagger", vocab=5, tokens=7)
    torch.manual_seed(0)
    ours = plan.build().eval()
    torch.manual_seed(0)
    theirs = sys.modules[type(ours).__module__].Tagger(5, 32, 32, 1, 0.0).eval()
    ids = torch.randint(5, (3, 7))
    assert torch.equal(ours(ids), theirs(ids.T)[0].transpose(0, 1))


def test_arguments_reach_a_configuration_by_any_of_their_names(file):
    found = load(f"{file}:Language", vocab=6, width=12, depth=3)
    assert (found.module.out.in_features, len(found.module.layers), found.vocab) == (12, 3, 6)
    assert load(f"{file}:Language", dim=20).module.out.in_features == 20
    assert load(f"{file}:Language", tokens=100).module.places.shape[0] == 100, "a table that is too short grows"
    assert load(f"{file}:Language", tokens=9).module.places.shape[0] == 64, "and one that is long enough stays"
    again = load(f"{file}:Language", **found.shape)
    assert again.shape == found.shape
    with pytest.raises(BadInput, match="no argument is called 'dmi'"):
        load(f"{file}:Language", dmi=3)


def test_a_vocabulary_of_ones_own_is_kept_and_its_first_entries_are_read(file):
    found = pair(f"{file}:Language", CHECK, {"vocab_size": 20})
    assert found.shape["vocab"] == 20
    assert found.build(0)(torch.zeros(1, 3, dtype=torch.int64)).shape == (1, 3, 2)
    with pytest.raises(BadInput, match=r"knows 1 symbols and 'parity-check' has 3: give it a larger vocabulary"):
        pair(f"{file}:Language", CHECK, {"vocab_size": 1})


def test_a_net_of_one_size_says_when_the_task_is_larger(file):
    with pytest.raises(BadInput, match=r"reads 16 numbers, not 40: choose a smaller input, or a wider net"):
        load(f"{file}:Fixed", features=40)


def test_rank_finds_out_by_itself_what_a_net_reads(file):
    found = {
        name: separation_rank(f"{file}:{name}", "epsilon", points=6, repeats=1).shape
        for name in ("Layer", "Child", "FixedIds")
    }
    assert (found["Layer"]["tokens"], found["Layer"]["features"]) == (8, 32)
    assert "tokens" not in found["Child"]
    assert found["FixedIds"]["tokens"] == 8


def test_what_was_assumed_is_one_line(file):
    line = explain(f"{file}:Tagger", num_classes=3)
    assert line.startswith("theirs.py:Tagger(vocab_size=8, num_classes=3, embedding_dim=32")
    assert "\n" not in line
    assert "of the 2 things it returns" in line
    assert assumptions(f"{file}:Child") is None
    assert assumptions("lstm") is None


@pytest.mark.parametrize("way", [tuple, list, lambda parts: dict(zip("abc", parts, strict=True))])
def test_the_answer_is_what_has_the_inputs_rows_and_tokens(way):
    x, state, y = torch.zeros(3, 5, 2), torch.zeros(1, 3, 4), torch.zeros(3, 5, 4)
    assert answer(way([None, state, y]), x) is y
    assert answer(way([None, state, state[0]]), x) is not y
    assert answer({"hidden": y, "logits": state}, x) is state, "a name says more than a shape"
    assert answer((None, 1), x) == (None, 1)


def test_neighbours_of_a_file_can_be_imported_and_the_path_stays(tmp_path):
    nets = {}
    for folder, width in (("one", 3), ("two", 5)):
        home = tmp_path / folder
        (home / "parts").mkdir(parents=True)
        (home / "sizes.py").write_text(f"WIDTH = {width}\n")
        (home / "parts" / "__init__.py").write_text("")
        (home / "parts" / "maps.py").write_text("from torch import nn\nMap = nn.Linear\n")
        (home / "net.py").write_text(
            "from parts.maps import Map\n\ndef build(features):\n    from sizes import WIDTH\n"
            "    return Map(features, WIDTH)\n"
        )
        nets[folder] = f"{home / 'net.py'}:build"
    before, hooks = list(sys.path), list(sys.path_hooks)
    codes = {folder: blueprint(net).code for folder, net in nets.items()}
    widths = [load(nets[folder]).module.out_features for folder in ("one", "two", "one")]
    assert widths == [3, 5, 3], "each file has the neighbours of its own folder"
    assert sys.path == before
    assert sys.path_hooks == hooks
    (tmp_path / "one" / "sizes.py").write_text("WIDTH = 4\n")
    assert load(nets["one"]).module.out_features == 4
    assert blueprint(nets["one"]).code != codes["one"], "a neighbour belongs to a net's code"
    assert codes["one"] != codes["two"]
    sent = neighbours((tmp_path / "one").resolve())
    assert set(sent) == {"sizes.py", "parts/__init__.py", "parts/maps.py"}, "what goes with it to another machine"
    assert sent["sizes.py"] == b"WIDTH = 4\n"


def test_bytecode_of_a_neighbour_is_neither_read_nor_written(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    home, moment = tmp_path / "parts", (1e9, 1e9)
    home.mkdir()
    (home / "__init__.py").write_text("")
    sizes = home / "sizes.py"
    (tmp_path / "net.py").write_text(
        "from torch import nn\nfrom parts.sizes import WIDTH\n"
        "def build(features):\n    return nn.Linear(features, WIDTH)\n"
    )
    for width in (3, 4):
        sizes.write_text(f"WIDTH = {width}\n")
        os.utime(sizes, moment)
        assert load(f"{tmp_path / 'net.py'}:build").module.out_features == width
    assert not list(tmp_path.rglob("__pycache__"))
    py_compile.compile(str(sizes))  # as Python itself would have left it
    sizes.write_text("WIDTH = 5\n")
    os.utime(sizes, moment)
    assert load(f"{tmp_path / 'net.py'}:build").module.out_features == 5


def test_relative_imports_of_a_package(tmp_path):
    home = tmp_path / "mine" / "inner"
    home.mkdir(parents=True)
    for folder in (home, home.parent):
        (folder / "__init__.py").write_text("")
    (home.parent / "layers.py").write_text("from torch import nn\nclass Map(nn.Linear):\n    pass\n")
    (home / "net.py").write_text("from ..layers import Map\ndef build(features):\n    return Map(features, 2)\n")
    assert load(f"{home / 'net.py'}:build").module.out_features == 2


def test_a_plain_net_is_built_as_before():
    class Plain(nn.Module):
        def __init__(self, features, outputs):
            super().__init__()
            self.map = nn.Linear(features, outputs)

        def forward(self, x):
            return self.map(x)

    plan = blueprint(Plain, features=3, outputs=2)
    assert (dict(plan.arguments), plan.assumed, plan.calling.words()) == ({"features": 3, "outputs": 2}, (), [])
    assert list(plan.build().state_dict()) == ["map.weight", "map.bias"]


class Halves(nn.Module):
    """One number for a vector; on a sequence it would run, too, and take tokens for entries."""

    def forward(self, x):
        return (x[:, :2] * x[:, 2:4]).sum(-1)


class Recurrent(nn.Module):
    """Runs on a batch of vectors as on the tokens of one sequence."""

    def __init__(self, features: int = 4, outputs: int = 1) -> None:
        super().__init__()
        self.layer, self.read = nn.LSTM(features, 8, batch_first=True), nn.Linear(8, outputs)

    def forward(self, x):
        return self.read(self.layer(x)[0])


def test_what_takes_vectors_row_by_row_reads_vectors():
    assert kind_of(Halves(), {"features": 4}) == "vector"
    assert kind_of(Recurrent, {}) == "sequence"
    assert separation_rank(Halves(), features=4, mode="epsilon", points=32, epsilon=0.01).rank == 2
