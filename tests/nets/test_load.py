"""From what a user names to the subject of a measurement."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportIndexIssue=false

import hashlib
import subprocess
import sys

import pytest
import torch
from torch import nn

from tests.each import each
from theodolite.errors import BadInput, UnknownName
from theodolite.instruments.fixed_points.load_map import load_map
from theodolite.instruments.gradient.signal import signal
from theodolite.nets.contract import canonical_arguments, nets
from theodolite.nets.from_file import named_in_file
from theodolite.nets.load import load

SOURCE = """
import torch
from torch import nn

class Gate(nn.Module):
    def __init__(self, features, outputs, width=3):
        super().__init__()
        self.a, self.b = nn.Linear(features, width), nn.Linear(features, width)
        self.read = nn.Linear(width, outputs)

    def forward(self, x):
        return self.read(self.a(x) * self.b(x))

class Words(nn.Module):
    def __init__(self, vocab, tokens, width=2):
        super().__init__()
        self.table = nn.Embedding(vocab, width)
        self.tokens = tokens

    def forward(self, ids):
        return self.table(ids)

def factory(tokens, features, hidden_size=2):
    return nn.Sequential(nn.Linear(features, hidden_size), nn.Flatten(1))

def not_a_net(features):
    return "a string"

def fails(features):
    raise ValueError("no such thing")

ready = nn.Linear(5, 1)
number = 7
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        (":", "names no class or function: write file.py:Name"),
        (".txt:Gate", "there is no file"),
        (":gate", "no class or function is called 'gate': did you mean 'Gate'"),
    ],
)
def test_nets_maps_and_classes_of_functions_are_named_alike(file, ending, words):
    text = f"{file}{ending}"
    said = set()
    for use in (
        lambda: named_in_file(text),
        lambda: load(text),
        lambda: load_map(text, 1, {}),
        lambda: signal("mlp", family=text, bits=3),
    ):
        with pytest.raises(BadInput, match=words) as raised:
            use()
        said.add(str(raised.value))
    assert len(said) == 1
    named = named_in_file(f"{file}:number")
    assert (named.found, named.name, named.digest) == (
        7,
        "mine.py:number",
        hashlib.sha256(file.read_bytes()).hexdigest(),
    )


def test_a_class_of_a_users_file(file):
    found = load(f"{file}:Gate")
    assert found.name == "mine.py:Gate"
    assert found.kind == "vector"
    assert (found.sites, found.features) == (8, 1)
    assert found.source == hashlib.sha256(file.read_bytes()).hexdigest()
    assert not found.registered
    assert not found.module.training
    assert found.module(torch.zeros(2, 8)).shape == (2, 1)


def test_arguments_reach_the_class(file):
    found = load(f"{file}:Gate", features=5, outputs=4, width=7)
    assert found.module(torch.zeros(2, 5)).shape == (2, 4)
    assert found.module.a.out_features == 7
    assert found.shape["width"] == 7
    assert (found.sites, found.features) == (5, 1)


def test_naming_tokens_makes_a_sequence(file):
    found = load(f"{file}:factory", tokens=6, features=3)
    assert (found.kind, found.sites, found.features, found.vocab) == ("sequence", 6, 3, None)


def test_tokens_given_for_a_class_that_does_not_name_them(file):
    found = load(f"{file}:Gate", tokens=6, features=3)
    assert (found.kind, found.sites, found.features) == ("sequence", 6, 3)
    assert found.module.a.in_features == 3


def test_an_alias_means_the_same_as_the_name(file):
    by_alias, by_name = load(f"{file}:Gate", seq_len=6, features=3), load(f"{file}:Gate", tokens=6, features=3)
    assert (by_alias.kind, by_alias.sites, dict(by_alias.shape)) == (by_name.kind, by_name.sites, dict(by_name.shape))
    by_alias, by_name = load(f"{file}:Gate", hidden_size=6), load(f"{file}:Gate", width=6)
    assert dict(by_alias.shape) == dict(by_name.shape)
    assert load(f"{file}:factory", hidden_size=9).module[0].out_features == 9, "a name of the class is no alias"


def test_the_recorded_shape_builds_the_net_again(file):
    for text, arguments in [("Gate", {"hidden_size": 4}), ("Words", {"vocab_size": 5}), ("factory", {"seq_len": 4})]:
        first = load(f"{file}:{text}", **arguments)
        second = load(f"{file}:{text}", **first.shape)
        assert first.shape == second.shape
        assert [p.shape for p in first.module.parameters()] == [p.shape for p in second.module.parameters()]


def test_naming_vocab_means_ids(file):
    found = load(f"{file}:Words", vocab=11, tokens=4)
    assert (found.kind, found.vocab, found.sites, found.features) == ("sequence", 11, 4, 1)
    assert found.module.table.num_embeddings == 11
    assert load(f"{file}:Words", vocab_size=5).vocab == 5


def test_a_module_of_a_users_file_that_is_built_already(file):
    found = load(f"{file}:ready", features=5)
    assert (found.kind, found.sites) == ("vector", 5)
    with pytest.raises(BadInput, match=r"built already.*width"):
        load(f"{file}:ready", width=3)


def test_a_module_at_hand():
    module = nn.Sequential(nn.Linear(6, 1)).train()
    found = load(module, features=6)
    assert torch.equal(found.module[0].weight, module[0].weight)
    assert module.training, "what the user passed is left as it was"
    found.module[0].weight.data.zero_()
    assert module[0].weight.any()
    assert (found.kind, found.sites, found.name, found.source) == ("vector", 6, "Sequential", None)
    assert load(module, features=6, tokens=3).kind == "sequence"
    assert not found.registered


def test_a_class_at_hand_and_its_seed():
    class Mine(nn.Module):
        def __init__(self, features: int) -> None:
            super().__init__()
            self.map = nn.Linear(features, 1)

        def forward(self, x):
            return self.map(x)

    state = torch.random.get_rng_state()
    weights = [load(Mine, seed=seed).module.map.weight for seed in (1, 1, 2)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_users_function_is_not_taken_for_a_registered_net_of_its_name():
    def lstm(features: int) -> nn.Module:
        return nn.Linear(features, 1)

    assert "lstm" in nets
    assert not load(lstm).registered
    assert load("lstm").registered


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("{file}:Gat", {}, "Gate"),
        ("{file}:Nothing", {}, "Nothing.*Gate"),
        ("{file}", {}, "file.py:Name|there is no file"),
        ("{file}:", {}, "file.py:Name"),
        (":Gate", {}, "file.py:Name"),
        ("{folder}/other.py:Gate", {}, "there is no file"),
        ("{file}:not_a_net", {}, "nn.Module"),
        ("{file}:fails", {}, "could not be built.*no such thing"),
        ("{file}:number", {}, "int"),
        ("{file}:Gate", {"widht": 3}, "widht.*'width'"),
        ("{file}:Gate", {"depth": 3}, "depth"),
        ("{file}:Gate", {"width": 3, "hidden_size": 4}, "given twice"),
        ("{file}:Gate", {"features": -2}, "features|could not be built"),
    ],
)
def test_what_cannot_be_loaded_is_said_in_a_sentence(file, text, arguments, message):
    with pytest.raises(BadInput, match=message):
        load(text.format(file=file, folder=file.parent), **arguments)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("import no_such_library_at_all", "could not be imported: ModuleNotFoundError"),
        ("def broken(:", "could not be imported: SyntaxError"),
        ("raise RuntimeError('on import')", "could not be imported: RuntimeError: on import"),
        ("class Empty: pass", "nn.Module"),
    ],
)
def test_files_that_fail_to_import(tmp_path, content, message):
    path = tmp_path / "broken.py"
    path.write_text(content)
    with pytest.raises(BadInput, match=message):
        load(f"{path}:Empty")


def test_a_function_of_the_input_is_a_net():
    def product(x, scale=2.0):
        return scale * x.prod(-1)

    for function in (product, lambda x: 2.0 * x.prod(-1)):
        found = load(function, features=3)
        assert (found.kind, found.sites, list(found.module.parameters())) == ("vector", 3, [])
        assert found.module(torch.tensor([[1.0, 2.0, 3.0]])).tolist() == [12.0]
        assert load(function, tokens=4, features=2).kind == "sequence"
        with pytest.raises(BadInput, match="built already"):
            load(function, width=3)


def test_a_builder_that_computes_a_tensor_is_refused():
    def computes(features):
        return torch.zeros(features)

    with pytest.raises(BadInput, match=r"built a Tensor instead of an nn\.Module"):
        load(computes)


def test_two_files_of_the_same_name_are_two_nets(tmp_path):
    text = "from torch import nn\ndef net(features):\n    return nn.Linear(features, {})\n"
    found = []
    for folder, outputs in (("one", 2), ("two", 3)):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "net.py"
        path.write_text(text.format(outputs))
        found.append(load(f"{path}:net"))
    assert [net.module.out_features for net in found] == [2, 3]
    assert found[0].source != found[1].source


def test_registered_nets_by_name():
    found = load("self-attention", hidden_size=6, num_attention_heads=2, n_layer=3, seq_len=5)
    assert (found.module.width, found.module.heads, found.module.depth, found.sites) == (6, 2, 3, 5)
    assert found.registered
    assert found.shape["width"] == 6
    assert "hidden_size" not in found.shape
    again = load("self-attention", **found.shape)
    assert again.shape == found.shape


def test_none_counts_as_not_given():
    assert load("self-attention", width=None, depth=1).module.width == 4


@pytest.mark.parametrize(
    ("name", "near"), [("self-atention", "self-attention"), ("conv-circut", "conv-circuit"), ("Lstm", "lstm")]
)
def test_an_unknown_net_is_answered_with_a_near_one(name, near):
    with pytest.raises(UnknownName, match=f"did you mean.*'{near}'"):
        load(name)


def test_an_unknown_argument_is_answered_with_a_near_one():
    with pytest.raises(BadInput, match=r"no argument is called 'haeds'.*did you mean 'heads'"):
        load("self-attention", haeds=2)
    with pytest.raises(BadInput, match="given twice"):
        load("self-attention", width=4, hidden_size=4)
    with pytest.raises(BadInput, match="vocab"):
        load("self-attention", vocab=4)
    with pytest.raises(BadInput, match="tokens"):
        load("mlp", tokens=4)


@each("arguments", [{"features": -3}, {"features": 0}, {"outputs": -1}, {"outputs": 0}, {"tokens": -2}])
@each("name", ["self-attention", "degree-attention", "recurrent-circuit", "polynomial-mixer"])
def test_shapes_that_are_no_sizes_are_refused(name, arguments):
    """Neither a traceback of torch's nor another shape in silence."""
    with pytest.raises(BadInput, match=next(iter(arguments))):
        load(name, **arguments)


WITHOUT_CHECKER = """
from theodolite.errors import BadInput
from theodolite.nets.load import load

bad = [{"features": 2.5}, {"tokens": 2.5}, {"tokens": "x"}, {"width": 1.5}, {"width": "4"}, {"depth": True}]
for name, arguments in [*(("self-attention", a) for a in bad), (3, {})]:
    try:
        load(name, **arguments)
        print(arguments, "was accepted")
    except BadInput:
        pass
    except Exception as error:
        print(name, arguments, type(error).__name__, error)
"""


def test_values_of_the_wrong_type_are_refused_without_a_type_checker():
    """The checker that is on in these tests is off for users."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_CHECKER], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_canonical_arguments_prefers_the_nets_own_name():
    assert canonical_arguments("n", {"d_model": 3}, {"d_model": 1, "width": 2}) == {"d_model": 3}
    assert canonical_arguments("n", {"d_model": 3}, {"width": 2}) == {"width": 3}
    assert nets["self-attention"].build(d_model=6).width == 6


def test_a_users_own_default_size_is_kept():
    def build(features=16, outputs=2):
        return nn.Linear(features, outputs)

    found = load(build)
    assert (found.sites, found.module.out_features) == (16, 2)
    assert load(build, features=6).sites == 6
