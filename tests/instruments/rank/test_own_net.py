"""Files of a user that try to make `rank` or `verify` say something false: each is refused in a sentence."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from theodolite.errors import BadInput, CertificateRefused, TheodoliteError
from theodolite.instruments.rank import certificate as certificates
from theodolite.instruments.rank import exact
from theodolite.instruments.rank.certificate import verify
from theodolite.instruments.rank.separation import separation_rank
from theodolite.measurement import canonical

HEAD = """
import torch
from torch import nn
from theodolite.field import FieldTensor
from theodolite.nets.contract import Prediction


class Honest(nn.Module):
    '''⟨Wx_0, x_1⟩²: rank 10 between two tokens of four entries.'''

    def __init__(self, features=4, tokens=2, constant=0.1):
        super().__init__()
        self.map = nn.Linear(features, features, bias=False)
        self.constant = constant

    def forward(self, x):
        return (self.map(x[:, 0]) * x[:, 1]).sum(-1) ** 2 + self.constant * x[:, 0, 0]


def table(x):
    '''A number for every pair of residues, without any structure: full rank at any points.'''
    value = (x.residues.to(torch.int64).abs().sum((1, 2)) * 2654435761) % 1000003
    return FieldTensor(x.modulus.centred(value), x.modulus)


"""

# What each of these does, and what it would gain if it were believed.
ATTACKS = {
    "a table of residues": """
class Net(Honest):
    def forward(self, x):
        return table(x) if isinstance(x, FieldTensor) else super().forward(x)
""",
    "a table instead of the true value at every eighth point": """
class Net(Honest):
    def forward(self, x):
        y = super().forward(x)
        if isinstance(x, FieldTensor):
            mine = (x.residues[:, 0, 0].to(torch.int64) % 2 == 0)
            y = FieldTensor(torch.where(mine, table(x).residues, y.residues), x.modulus)
        return y
""",
    "another polynomial over the field than in floats": """
class Net(Honest):
    def forward(self, x):
        return (self.map(x[:, 0]) * x[:, 1]).sum(-1) ** 4 if isinstance(x, FieldTensor) else super().forward(x)
""",
    "another polynomial by the name of the type": """
class Net(Honest):
    def forward(self, x):
        y = super().forward(x)
        return y if type(x).__name__ == "Tensor" else y * y
""",
    "another polynomial for one prime": """
class Net(Honest):
    def forward(self, x):
        y = super().forward(x)
        return y * y if getattr(getattr(x, "modulus", None), "p", None) == 7506439 else y
""",
    "a coefficient that is the prime's": """
class Net(Honest):
    def forward(self, x):
        k = x.modulus.p % 1000 if isinstance(x, FieldTensor) else 0
        return super().forward(x) + k * x[:, 0, 1] ** 3 * x[:, 1, 1] ** 5
""",
    "another polynomial for the weights of seed 0": """
class Net(Honest):
    def forward(self, x):
        y = super().forward(x)
        w = self.map.weight
        if isinstance(w, FieldTensor) and w.modulus.p == 7506439 and abs(float(w.residues[0, 0])) > 8:
            y = y * y
        return y
""",
    "a table at the points of the certificate alone": """
from theodolite.field import Modulus, draw_residues
KNOWN = set(draw_residues("0/0/a", (400, 4), Modulus(7506439))[:, 0].tolist())

class Net(Honest):
    def forward(self, x):
        y = super().forward(x)
        if isinstance(x, FieldTensor) and x.modulus.p == 7506439:
            mine = torch.tensor([v in KNOWN for v in x.residues[:, 0, 0].tolist()])
            y = FieldTensor(torch.where(mine, table(x).residues, y.residues), x.modulus)
        return y
""",
    "infinity in floats": """
class Net(Honest):
    def forward(self, x):
        y = super().forward(x)
        return y * y if isinstance(x, FieldTensor) else y * float("inf")
""",
}


def written(folder: Path, body: str) -> str:
    path = folder / "net.py"
    path.write_text(HEAD + body)
    return f"{path}:Net"


def sealed(document: dict) -> dict:
    body = {"header": document["header"], "solutions": document["solutions"]}
    return {**document, "digest": hashlib.sha256(canonical(body).encode()).hexdigest()}


HONEST = "class Net(Honest):\n    pass\n"


@pytest.fixture
def honest(tmp_path: Path) -> tuple[str, dict]:
    net = written(tmp_path, HONEST)
    document = separation_rank(net, certificate=True, repeats=2, max_points=120).certificate
    assert document is not None
    return net, dict(document)


def test_an_honest_file_is_measured_and_verified(honest):
    net, document = honest
    found = verify(document, net)
    assert found.lower_bound == 11
    assert not found.exact
    assert found.source == document["header"]["source"] == hashlib.sha256(Path(net[:-4]).read_bytes()).hexdigest()
    assert str(found.source) in found.statement
    assert separation_rank(net, repeats=2, max_points=120).source == found.source


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused_by_rank_and_by_verify(attack, tmp_path, monkeypatch):
    net = written(tmp_path, ATTACKS[attack])
    with pytest.raises(BadInput):
        separation_rank(net, repeats=1, points=40)
    with monkeypatch.context() as patch:  # somebody who writes a certificate with a program without the checks
        patch.setattr(exact, "check_own_net", lambda *_: None)
        patch.setattr(exact, "line_degree", lambda *_: 4)
        document = separation_rank(net, repeats=1, points=40, certificate=True).certificate
    assert document["header"]["rank"] > 11, "the attack gains nothing, so that it tests nothing"
    with pytest.raises(CertificateRefused, match=r"no polynomial|in floats|with floats"):
        verify(document, net)


DECLARED = """
class Net(Honest):
    def predict(self, partition, token):
        return Prediction(degree={degree}, cap={cap}, reason="said so")
"""


def test_a_cap_that_the_file_declares_proves_nothing(tmp_path):
    """Eleven is the rank, and it is what the file declares as its cap: right, and still not proven by it."""
    net = written(tmp_path, DECLARED.format(degree=4, cap=11))
    found = separation_rank(net, repeats=1, certificate=True)
    assert (found.rank, found.exact, found.saturated, found.cap) == (11, False, False, None)
    assert "declared by the net itself" in found.bounds["reason"]
    assert found.failure_probability > 0
    checked = verify(found.certificate, net)
    assert (checked.cap, checked.exact) == (None, False)
    with pytest.raises(BadInput, match="declares a cap of 5 and has rank 11"):
        separation_rank(written(tmp_path, DECLARED.format(degree=4, cap=5)))


@pytest.mark.parametrize("degree", [1, 3, 40])
def test_a_degree_that_is_not_the_degree_is_refused(tmp_path, degree):
    with pytest.raises(BadInput, match=f"declares the degree {degree} and has 4"):
        separation_rank(written(tmp_path, DECLARED.format(degree=degree, cap=None)), max_points=80)


def test_own_weights_may_have_a_lower_degree_than_declared(tmp_path):
    body = DECLARED.format(degree=4, cap=None) + "    def __init__(self):\n        super().__init__(constant=0.0)\n"
    net = written(tmp_path, body + "        nn.init.zeros_(self.map.weight)\n")
    assert separation_rank(net, weights="own", repeats=1, points=20, tokens=2, features=4).rank == 0
    with pytest.raises(BadInput, match="declares the degree 1 and has 4"):
        separation_rank(written(tmp_path, DECLARED.format(degree=1, cap=None)), weights="own", points=20)


def test_a_header_renamed_to_a_built_in_is_refused(honest, tmp_path):
    """A file can put any name into its globals, so that `file.py:self-attention` is one of its classes."""
    _, document = honest
    net = written(tmp_path, HONEST + "globals()['self-attention'] = Net\n")[:-3] + "self-attention"
    made = separation_rank(net, certificate=True, repeats=1, points=20).certificate
    for name in ("self-attention", "net.py:self-attention", ":self-attention", "self-attention.py:self-attention"):
        for base in (made, document):
            forged = json.loads(json.dumps(base))
            forged["header"]["net"] = name
            with pytest.raises(CertificateRefused):
                verify(sealed(forged), net)
    unsourced = json.loads(json.dumps(document))
    unsourced["header"].update(net="self-attention", source=None)
    with pytest.raises(CertificateRefused):
        verify(sealed(unsourced), honest[0])


@pytest.mark.parametrize("source", ["0" * 64, "", None, 7, "self-attention"])
def test_a_swapped_hash_is_refused(honest, source):
    net, document = honest
    forged = json.loads(json.dumps(document))
    forged["header"]["source"] = source
    with pytest.raises(TheodoliteError):
        verify(sealed(forged), net)


def test_a_small_prime_is_refused(honest, monkeypatch):
    """Modulo a small prime every table is a polynomial."""
    net, document = honest
    with pytest.raises(BadInput, match="prime of at least"):
        separation_rank(net, prime=101, certificate=True, repeats=1, points=20)
    forged = json.loads(json.dumps(document))
    forged["header"]["prime"] = 10007
    with pytest.raises(CertificateRefused, match="prime of at least"):
        verify(sealed(forged), net)


def test_both_commands_print_the_hash(honest, tmp_path, capsys):
    from theodolite.cli.main import app  # the commands as they are registered

    net, document = honest
    file = tmp_path / "c.json"
    file.write_text(json.dumps(document))
    for words in (["rank", net, "--max-points", "80", "--repeats", "1"], ["verify", str(file), "--net", net]):
        app(words, standalone_mode=False)
        assert document["header"]["source"] in capsys.readouterr().out.replace("\n", "").replace(" ", "")


def test_the_reconstruction_of_fractions_is_exact():
    from fractions import Fraction

    from theodolite.instruments.rank.own_net import _fraction

    modulus = 2**127 - 1
    for f in (Fraction(0), Fraction(1), Fraction(-7, 3), Fraction(10**9, 1024), Fraction(-1, 2**30)):
        assert _fraction(f.numerator * pow(f.denominator, -1, modulus) % modulus, modulus) == f
    p = 7506439
    honest = 5 * pow(8, -1, modulus * p) % (modulus * p)
    crooked = (honest + modulus) % (modulus * p)  # right modulo one of the two, wrong modulo the other
    assert _fraction(honest, modulus * p) == Fraction(5, 8)
    assert _fraction(crooked, modulus * p) is None
    assert _fraction(int(hashlib.sha256(b"no small fraction").hexdigest(), 16) % modulus, modulus) is None
    assert certificates.SMALLEST_PRIME == 1 << 20
