"""`theodolite rank` and `theodolite verify` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

KEYS = {
    *("net", "shape", "partition", "rank", "exact", "lower_bound", "cap", "saturated", "failure_probability"),
    *("primes", "points", "bounds", "degree", "seconds"),
}

USER_NET = """
import torch
from torch import nn

class Product(nn.Module):
    def __init__(self, features, tokens, terms=2):
        super().__init__()
        self.maps = nn.Parameter(torch.randn(tokens, features, terms))

    def forward(self, x):
        return torch.einsum("bnf,nft->bnt", x, self.maps).prod(dim=1).sum(dim=-1, keepdim=True)

class Softmax(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)

class Batchy(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1, keepdim=True) - x.mean()

class Pair(nn.Module):
    def forward(self, x):
        return 1, None

class Shapeless(nn.Module):
    def forward(self, x):
        return x.sum()

class Nan(nn.Module):
    def forward(self, x):
        return (x - x) / (x - x)
"""


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    path = tmp_path / "my_net.py"
    path.write_text(USER_NET)
    return path


def test_the_json_document_has_the_promised_keys_and_stands_alone(theodolite):
    outcome = theodolite("rank", "self-attention", "--depth", 2, "--width", 2, "--tokens", 2, "--json")
    row = json.loads(outcome.out)
    assert outcome.code == 0
    assert set(row) >= KEYS
    assert set(row["bounds"]) == {"lower", "upper", "reason"}
    assert (row["rank"], row["exact"], row["cap"], row["saturated"]) == (15, True, 15, True)
    assert row["failure_probability"] == 0.0


@pytest.mark.parametrize("width", [2, 3, 5])
def test_depth_one_gives_width_plus_one(theodolite, width):
    row = json.loads(theodolite("rank", "self-attention", "--depth", 1, "--width", width, "--json").out)
    assert row["rank"] == width + 1


def test_the_table_says_what_may_be_claimed(theodolite):
    proven = theodolite("rank", "self-attention", "--depth", 1, "--width", 3, "--tokens", 4)
    bound = theodolite("rank", "conv-circuit", "--partition", "interleaved", "--max-points", 20)
    assert "4  (proven: equal to the cap)" in proven.out
    assert "≥ 20" in bound.out
    assert "a lower bound only" in bound.out


def test_an_upper_bound_that_is_refuted_is_not_shown_as_one(theodolite):
    shape = ("self-attention", "--depth", 9, "--width", 8, "--tokens", 16, "--points", 4, "--repeats", 1)
    told = " ".join(theodolite("rank", *shape).out.split())
    assert "55,206 ≤ rank (Theorem 7.2" in told
    assert "its upper half is false here" in told
    assert "docs/paper.md" in told


def test_other_names_for_an_argument_and_args_beyond_the_options(theodolite):
    row = json.loads(theodolite("rank", "self-attention", "--arg", "hidden_size=3", "--arg", "n_layer=1", "--json").out)
    assert (row["shape"]["width"], row["shape"]["depth"], row["rank"]) == (3, 1, 4)


def test_a_network_of_the_user(theodolite, user_file):
    net = f"{user_file}:Product"
    row = json.loads(theodolite("rank", net, "--tokens", 4, "--arg", "terms=3", "--json").out)
    assert (row["rank"], row["exact"], row["cap"], row["degree"]) == (3, True, None, 4)
    epsilon = theodolite("rank", f"{user_file}:Softmax", "--mode", "epsilon", "--points", 32, "--json")
    assert json.loads(epsilon.out)["mode"] == "epsilon"


def test_certificate_round_trip(theodolite, tmp_path):
    file = tmp_path / "bound.json"
    made = theodolite("rank", "self-attention", "--depth", 2, "--width", 3, "--tokens", 4, "--certificate", file)
    assert made.code == 0
    checked = theodolite("verify", file, "--json")
    verified = json.loads(checked.out)
    assert checked.code == 0
    assert (verified["valid"], verified["lower_bound"], verified["exact"]) == (True, 49, True)
    text = file.read_text()
    file.write_text(text.replace('"rank":49', '"rank":50'))
    refused = theodolite("verify", file, "--json")
    assert refused.code == 1
    assert json.loads(refused.out)["valid"] is False
    assert "digest" in refused.err
    file.write_text(text[: len(text) // 2])
    truncated = theodolite("verify", file)
    assert truncated.code == 2
    assert "truncated" in truncated.err


def test_many_certificates_are_summed_up(theodolite, tmp_path):
    from theodolite.claims.tensors.graded_certificate import graded_certificate
    from theodolite.claims.tensors.growth_certificate import growth_certificate

    shape = ("rank", "self-attention", "--depth", 1, "--width", 2, "--tokens", 4)
    assert theodolite(*shape, "--certificate", tmp_path / "rank.json").code == 0
    parts = graded_certificate([(0, 1), (1, 2)], depth=1, width=2)
    wrong = graded_certificate([(1, 3)], depth=1, width=2)
    lines = [json.dumps(document) for document in (parts, growth_certificate(2, base=1).document())]
    (tmp_path / "others.jsonl").write_text("\n".join(lines))
    good = theodolite("verify", tmp_path)
    assert good.code == 0
    assert "3 of 3 certificates are valid, 2 of them prove an exact rank" in good.out
    alone = theodolite("verify", tmp_path / "rank.json", tmp_path / "others.jsonl", "--json")
    assert [row["kind"] for row in json.loads(alone.out)["certificates"]] == ["rank", "graded", "growth"]
    (tmp_path / "others.jsonl").write_text("\n".join([*lines, json.dumps(wrong)]))
    bad = theodolite("verify", tmp_path)
    assert bad.code == 1
    assert "refused: " in bad.out
    assert "others.jsonl, certificate 3" in bad.out
    assert "3 of 4 certificates are valid" in bad.err
    assert theodolite("verify", tmp_path, "--json").code == 1
    (tmp_path / "empty").mkdir()
    assert "holds no file" in theodolite("verify", tmp_path / "empty").err
    (tmp_path / "twice.json").write_text('{"format": 1, "format": 2}')
    assert "stands twice" in theodolite("verify", tmp_path / "twice.json").err
    one = theodolite("verify", tmp_path / "others.jsonl", "--net", "file.py:Net")
    assert one.code == 1
    assert "built-in net" in one.out


def test_a_certificate_of_a_users_net_needs_that_very_file(theodolite, user_file, tmp_path):
    file = tmp_path / "bound.json"
    net = f"{user_file}:Product"
    assert theodolite("rank", net, "--tokens", 4, "--certificate", file).code == 0
    assert theodolite("verify", file).code == 2
    assert theodolite("verify", file, "--net", net).code == 0
    user_file.write_text(USER_NET + "\n# changed\n")
    changed = theodolite("verify", file, "--net", net)
    assert changed.code == 1
    assert "not the one" in changed.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuchnet"], ["nosuchnet", "known:"]),
        (["self-atention"], ["did you mean 'self-attention'"]),
        (["self-attention", "--partition", "0,1|1,2"], ["twice"]),
        (["self-attention", "--tokens", "4", "--partition", "0,1|2"], ["0 to 3"]),
        (["self-attention", "--tokens", "4", "--partition", "0,1|2,3,4"], ["names site 4"]),
        (["self-attention", "--partition", "halves"], ["left-right"]),
        (["self-attention", "--width", "4", "--heads", "3"], ["3 heads do not divide width 4"]),
        (["self-attention", "--points", "0"], ["at least 1"]),
        (["self-attention", "--prime", "15"], ["not prime"]),
        (["self-attention", "--prime", "2147483647"], ["too large"]),
        (["self-attention", "--mode", "exactly"], ["exact, epsilon or grid"]),
        (["self-attention", "--epsilon", "0.1"], ["--mode epsilon"]),
        (["self-attention", "--templates", "3"], ["--mode grid"]),
        (["self-attention", "--arg", "wdith=3"], ["did you mean 'width'"]),
        (["self-attention", "--arg", "width"], ["KEY=VALUE"]),
        (["self-attention", "--width", "3", "--arg", "width=3"], ["give it once"]),
        (["self-attention", "--width", "0"], ["at least 1"]),
        (["self-attention", "--tokens", "1"], ["at least 2"]),
        (["conv-circuit", "--tokens", "6"], ["power of two"]),
        (["self-attention", "--device", "cuda"], ["no CUDA device"]),
        (["self-attention", "--device", "tpu9"], ["cpu or cuda"]),
        (["transformer"], ["layer_norm", "--mode epsilon"]),
        (["mlp"], ["relu", "--mode epsilon"]),
        (["self-attention", "--token", "9"], ["0 to 7"]),
        (["self-attention", "--entry", "9"], ["4 outputs"]),
        (["nowhere.py:Net"], ["no file"]),
        (["self-attention", "--mode", "grid", "--templates", "9"], ["grid of"]),
        (["self-attention", "--mode", "epsilon", "--epsilon", "2"], ["between 0 and 1"]),
        (["self-attention", "--points", "9000000"], ["GiB"]),
        (["self-attention", "--certificate", "no/such/folder/c.json"], ["make it first"]),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(theodolite, arguments, words):
    import torch

    if "cuda" in arguments and torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    outcome = theodolite("rank", *arguments, "--json")
    assert outcome.code == 2
    assert json.loads(outcome.out)["error"]["exit_code"] == 2
    assert "Traceback" not in outcome.err
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1
    for word in words:
        assert word in outcome.err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Softmax", ["softmax", "--mode epsilon"]),
        ("Batchy", ["different batches"]),
        ("Pair", ["2 outputs"]),
        ("Shapeless", ["must return"]),
        ("Missing", ["no class or function is called 'Missing'"]),
    ],
)
def test_bad_networks_are_named(theodolite, user_file, name, words):
    outcome = theodolite("rank", f"{user_file}:{name}")
    assert outcome.code == 2
    for word in words:
        assert word in outcome.err


def test_nan_is_refused_in_floats(theodolite, user_file):
    outcome = theodolite("rank", f"{user_file}:Nan", "--mode", "epsilon")
    assert outcome.code == 2
    assert "NaN" in outcome.err


def test_nothing_is_written_when_the_measurement_fails(theodolite, tmp_path):
    file = tmp_path / "bound.json"
    assert theodolite("rank", "transformer", "--certificate", file).code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "theodolite-certificate"}', '{"a": 1}', "\x00\x01"])
def test_unreadable_certificates(theodolite, tmp_path, content):
    file = tmp_path / "bound.json"
    file.write_text(content)
    outcome = theodolite("verify", file)
    assert outcome.code == 2
    assert outcome.err.startswith("error: ")
    assert theodolite("verify", tmp_path / "absent.json").code == 2
