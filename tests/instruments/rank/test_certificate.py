"""A certificate proves what it states, and nothing else passes for one."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import replace

import pytest
import torch
from flint import nmod_mat

from tests.each import each
from theodolite.errors import BadInput, CertificateRefused, TheodoliteError
from theodolite.field import eliminate
from theodolite.instruments.rank import certificate as certificates
from theodolite.instruments.rank.certificate import verify
from theodolite.instruments.rank.exact import exact_rank
from theodolite.instruments.rank.pair_matrix import pair_matrix
from theodolite.instruments.rank.separation import separation_rank
from theodolite.measurement import canonical
from theodolite.nets.load import load

SHAPE = {"depth": 2, "width": 2, "tokens": 2}
RANK = 15


def measured(**arguments) -> dict:
    """A certificate as another lab reads it: through JSON text."""
    found = separation_rank(**{"net": "self-attention", "certificate": True, "repeats": 2, **arguments})
    return json.loads(json.dumps(found.certificate, allow_nan=False))


def sealed(document: dict) -> dict:
    """The digest written anew: what somebody does who wants a changed certificate to pass."""
    body = {"header": document["header"], "solutions": document["solutions"]}
    return {**document, "digest": hashlib.sha256(canonical(body).encode()).hexdigest()}


def changed(document: dict, field: str, value: object) -> dict:
    document = copy.deepcopy(document)
    document["header"][field] = value
    return document


@pytest.fixture(scope="module")
def by_minor() -> dict:
    return measured(**SHAPE)


@pytest.fixture(scope="module")
def by_solutions() -> dict:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "BY_MINOR", 3)
        return measured(**SHAPE)


@pytest.fixture
def small_minors(monkeypatch):
    """The path of large ranks at small ones."""
    monkeypatch.setattr(certificates, "BY_MINOR", 3)


def test_a_certificate_survives_json_and_proves_its_rank(by_minor):
    found = verify(by_minor)
    assert found.lower_bound == RANK
    assert found.exact
    assert found.cap == RANK
    assert found.error_probability == 0
    assert (found.net, found.partition) == ("self-attention", "left-right")
    assert found.shape["depth"] == 2
    assert found.prime == by_minor["header"]["prime"]
    assert found.to_json()["valid"] is True
    json.dumps(found.to_json(), allow_nan=False)
    assert by_minor["solutions"] is None


def test_the_solutions_of_a_large_rank(by_solutions, small_minors):
    assert len(by_solutions["solutions"]) == certificates.SYSTEMS
    assert all(len(row) == RANK for row in by_solutions["solutions"])
    found = verify(by_solutions)
    assert found.lower_bound == RANK
    assert 0 < found.error_probability < 1e-26
    assert "solutions" in found.method


@pytest.mark.parametrize(
    ("net", "arguments"),
    [
        (
            "self-attention",
            {"depth": 2, "width": 2, "heads": 2, "tokens": 4, "partition": "interleaved", "token": 1, "entry": 1},
        ),
        ("self-attention", {"depth": 1, "width": 3, "tokens": 3, "partition": "1|0,2", "seed": 5}),
        ("conv-circuit", {"tokens": 4, "width": 2, "partition": "interleaved"}),
        ("recurrent-circuit", {"tokens": 4, "width": 2, "depth": 2}),
        ("degree-attention", {"tokens": 2, "width": 2, "depth": 1, "degree": 4}),
        ("polynomial-mlp", {"features": 6, "width": 3, "depth": 1, "prime": 8388593}),
        ("polynomial-mixer", {"tokens": 2, "width": 2}),
    ],
)
@pytest.mark.parametrize("limit", [4000, 0])
def test_certificates_of_many_nets(net, arguments, limit, monkeypatch):
    monkeypatch.setattr(certificates, "BY_MINOR", limit)
    document = measured(net=net, **arguments)
    found = verify(document)
    assert found.lower_bound == document["header"]["rank"] > 1


def test_the_header_can_be_followed_without_this_library(by_minor):
    """Draw rule, streams and order of coordinates as documented; Eq. 7.6 and the determinant in plain integers."""
    from tests.field.test_draw import word

    header = by_minor["header"]
    p, stream = header["prime"], f"{header['seed']}/{header['repeat']}"
    number = lambda name, n: (word(f"{stream}/{name}", n) >> 1) % p
    matrix = lambda name, rows, columns: [[number(name, r * columns + c) for c in range(columns)] for r in range(rows)]
    layers = [
        (matrix(f"weights/layers.{k}.project.weight", 6, 2), matrix(f"weights/layers.{k}.combine.weight", 2, 2))
        for k in range(2)
    ]
    times = lambda m, x: [sum(a * b for a, b in zip(row, x, strict=True)) % p for row in m]

    def output(tokens):
        for project, combine in layers:
            projected = [times(project, x) for x in tokens]
            q, k, v = ([t[i : i + 2] for t in projected] for i in (0, 2, 4))
            new = []
            for i in range(2):
                scores = [sum(a * b for a, b in zip(q[i], key, strict=True)) for key in k]
                new.append(
                    times(combine, [sum(s * value[c] for s, value in zip(scores, v, strict=True)) for c in range(2)])
                )
            tokens = new
        return tokens[header["token"]][header["entry"]]

    indices = {
        side: [i for first, last in header[side] for i in range(first, last + 1)] for side in ("rows", "columns")
    }
    a = [[number("a", 2 * i), number("a", 2 * i + 1)] for i in indices["rows"]]
    b = [[number("b", 2 * j), number("b", 2 * j + 1)] for j in indices["columns"]]
    assert int(nmod_mat([[output([x, y]) for y in b] for x in a], p).det()) != 0
    assert len(a) == header["rank"] == RANK


# For each field of the header: values that state something false or nothing that can be followed.
FALSE = {
    "net": [
        "degree-attention",
        "polynomial-mixer",
        "mlp",
        "no-such-net",
        "file.py:Net",
        None,
        3,
        ["self-attention"],
        {},
    ],
    "net_version": [0, 2, -1, "1", None, True, 1.5],
    "source": ["", "0" * 64, 3, [], {"a": 1}],
    "shape": [
        {},
        {"depth": 1, "width": 2, "tokens": 2},
        {"depth": 2, "width": 1, "tokens": 2},
        {"depth": 2, "width": 2, "tokens": 4},
        {"depth": 2, "width": 2, "tokens": 2, "height": 3},
        {"depth": 2, "width": 2, "tokens": 2, "net": "mlp"},
        {"depth": -1, "width": 2, "tokens": 2},
        {"depth": "2", "width": 2, "tokens": 2},
        {"depth": 2, "width": 2, "tokens": "two"},
        {"depth": 2, "width": 2, "tokens": 2, "features": -2},
        None,
        [],
        [1],
        "depth",
        7,
    ],
    "kind": ["vector", "Sequence", None, 3, []],
    "sites": [0, 1, 3, "2", None, True, -2, 2.0],
    "features": [0, 1, 3, "2", None, True, -2],
    "token": [2, 99, -1, "1", None, True, 1.0],
    "entry": [2, 99, -1, "0", None, False, 0.5],
    "partition": [
        {"a": [0], "b": []},
        {"a": [0], "b": [0]},
        {"a": [0], "b": [2]},
        {"a": [0, 1], "b": [2, 3]},
        {"a": [0], "b": ["1"]},
        {"a": [0], "b": [1.0]},
        {"a": [False], "b": [True]},
        {"a": [0], "b": [[1]]},
        {"a": 0, "b": 1},
        {"a": [0]},
        {},
        None,
        "left-right",
        [[0], [1]],
    ],
    "prime": [15, 0, 1, -7, 2, 3, 2**31 - 1, 2**61 - 1, "8388593", None, 7.0, True],
    "draw_rule": [0, 2, "1", None, [1]],
    "seed": [-1, 2**63, 2**70, "0", None, 1.5, [0]],
    "repeat": [-1, "0", None, 0.5],
    "rank": [0, 1, 14, 16, -1, "15", None, 15.0, True, 10**9],
    "rows": [
        [],
        [[0, 13]],
        [[0, 15]],
        [[0, 6], [6, 13]],
        [[0, 6], [5, 12]],
        [[7, 14], [0, 6]],
        [[14, 0]],
        [[-1, 13]],
        [[0.0, 14.0]],
        [["0", "14"]],
        [[0, 14, 20]],
        [[0], [1]],
        [0, 14],
        [[0, 10**12]],
        "0-14",
        None,
        {"0": 14},
        [None],
    ],
}
FALSE["columns"] = FALSE["rows"]
# Other values that may state something true: another certificate, which a minor can prove and solutions cannot.
OTHER = {
    "seed": [1, 2**63 - 1],
    "repeat": [1, 99],
    "prime": [8388593, 65537, 33554393],
    "token": [0],
    "entry": [1],
    "partition": [{"a": [1], "b": [0]}],
    "rows": [[[1, 15]], [[0, 6], [20, 27]]],
    "columns": [[[100, 114]]],
    "shape": [{"depth": 2, "width": 2, "tokens": 2}, {"depth": 2, "hidden_size": 2, "seq_len": 2}],
}


def cases(table: dict) -> list:
    return [(name, value) for name, values in table.items() for value in values]


def test_every_field_of_the_header_is_tampered_with(by_minor):
    assert set(FALSE) == set(by_minor["header"]) == certificates._FIELDS


@each(("field", "value"), cases(FALSE) + cases(OTHER))
def test_a_changed_header_with_the_old_digest_is_refused(by_minor, field, value):
    if by_minor["header"][field] != value or type(by_minor["header"][field]) is not type(value):
        with pytest.raises(CertificateRefused, match="digest"):
            verify(changed(by_minor, field, value))


@each(("field", "value"), cases(FALSE))
def test_a_false_header_with_a_new_digest_is_refused(by_minor, field, value):
    """Refused in a sentence, never with a traceback."""
    document = sealed(changed(by_minor, field, value))
    with pytest.raises(CertificateRefused) as raised:
        verify(document)
    assert str(raised.value)


@each(("field", "value"), cases(FALSE) + cases(OTHER))
def test_with_solutions_every_change_is_refused(by_solutions, small_minors, field, value):
    """The right-hand sides are drawn from the header: other words, other systems."""
    with pytest.raises(TheodoliteError) as raised:
        verify(sealed(changed(by_solutions, field, value)))
    assert isinstance(raised.value, CertificateRefused)


@each(("field", "value"), cases(OTHER))
def test_another_true_header_is_another_certificate(by_minor, field, value):
    """What a recomputed minor accepts is true of the header it read, not of the one it was made from."""
    document = sealed(changed(by_minor, field, value))
    found = verify(document)
    assert found.lower_bound == RANK
    assert found.prime == document["header"]["prime"]


def test_fields_that_are_missing_or_too_many(by_minor):
    for name in by_minor["header"]:
        document = copy.deepcopy(by_minor)
        del document["header"][name]
        with pytest.raises(CertificateRefused):
            verify(sealed(document))
    with pytest.raises(CertificateRefused, match="fields"):
        verify(sealed(changed(by_minor, "note", "hello")))


@pytest.mark.parametrize("missing", ["format", "version", "header", "solutions", "digest"])
def test_a_truncated_document_is_refused(by_minor, missing):
    document = {k: v for k, v in by_minor.items() if k != missing}
    with pytest.raises(BadInput):
        verify(document)


@pytest.mark.parametrize("document", [None, [], "text", 3, {}, {"format": "theodolite-certificate"}, {"valid": True}])
def test_what_is_no_certificate_is_refused(document):
    with pytest.raises(BadInput):
        verify(document)


def test_other_documents_are_refused(by_minor):
    for changes in ({"format": "other"}, {"version": 2}, {"version": "1"}, {"version": None}, {"extra": 1}):
        with pytest.raises(BadInput):
            verify({**by_minor, **changes})
    for header in (None, [], "x", 3):
        with pytest.raises(CertificateRefused):
            verify(sealed({**by_minor, "header": header}))
    with pytest.raises(BadInput, match="finite"):
        verify(changed(by_minor, "rank", float("nan")))
    for digest in ("", None, "0" * 64, 5):
        with pytest.raises(CertificateRefused, match="digest"):
            verify({**by_minor, "digest": digest})


def test_a_rank_that_is_too_high_is_refused(by_minor):
    """Sixteen points of either side: the minor has rank 15, whichever points they are."""
    for rows in ([[0, 15]], [[10, 25]], [[0, 14], [500, 500]]):
        document = copy.deepcopy(by_minor)
        document["header"].update(rank=16, rows=rows, columns=rows)
        with pytest.raises(CertificateRefused, match="rank 15, not 16"):
            verify(sealed(document))


def test_solutions_cannot_be_made_up(by_solutions, small_minors):
    good = by_solutions["solutions"]
    prime = by_solutions["header"]["prime"]
    bad = [
        None,
        [],
        good[:-1],
        [*good, good[0]],
        [row[:-1] for row in good],
        [[0] * RANK] * 4,
        [good[1], good[0], *good[2:]],
        [[*row[1:], row[0]] for row in good],
        [*good[:3], [*good[3][:-1], (good[3][-1] + 1) % prime]],
        [*good[:3], [(-v) % prime for v in good[3]]],
        [[str(v) for v in row] for row in good],
        [[None] * RANK] * 4,
        [[2**70] * RANK] * 4,
        "solutions",
        {"a": 1},
        7,
        [[row] for row in good],
    ]
    for solutions in bad:
        with pytest.raises(CertificateRefused, match="solution"):
            verify(sealed({**by_solutions, "solutions": solutions}))
        with pytest.raises(CertificateRefused, match="digest"):
            verify({**by_solutions, "solutions": solutions})
    # the same residues written otherwise still solve the systems
    assert verify(sealed({**by_solutions, "solutions": [[v - prime for v in row] for row in good]})).lower_bound == RANK


def test_solutions_modulo_a_small_prime_prove_nothing(by_solutions, small_minors):
    """Modulo 7 one made-up solution in 7 would pass: neither written nor accepted."""
    with pytest.raises(BadInput, match="prime of at least"):
        measured(prime=101, **SHAPE)
    with pytest.raises(CertificateRefused, match="too small"):
        verify(sealed(changed(by_solutions, "prime", 7)))


def test_a_certificate_without_solutions_does_not_pass_for_one_that_needs_them(by_minor, small_minors):
    with pytest.raises(CertificateRefused, match="solutions"):
        verify(by_minor)


SOURCE = """
import torch
from torch import nn

class Mine(nn.Module):
    def __init__(self, features=2, tokens=2, width=3):
        super().__init__()
        self.a, self.b = (nn.Linear(features, width, bias=False) for _ in range(2))
        self.register_buffer("mix", torch.randn(width, width))

    def forward(self, x):
        return ((self.a(x[:, 0]) ** 2 @ self.mix) * self.b(x[:, 1])).sum(-1)

class Other(Mine):
    def forward(self, x):
        return super().forward(x) + 1
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize("limit", [4000, 0])
@pytest.mark.parametrize("shape", [{}, {"hidden_size": 2}, {"seed": 3}, {"tokens": 3, "features": 3}])
def test_a_net_of_the_users_own(file, monkeypatch, limit, shape):
    monkeypatch.setattr(certificates, "BY_MINOR", limit)
    document = measured(net=f"{file}:Mine", max_points=80, **{"tokens": 2, "features": 2, **shape})
    found = verify(document, net=f"{file}:Mine")
    assert found.lower_bound == document["header"]["rank"] >= 2 - (shape.get("tokens") == 3)
    assert found.net == "mine.py:Mine"
    assert str(file.parent) not in json.dumps(document), "a path of one machine does not belong into a certificate"
    with pytest.raises(BadInput, match=r"pass --net file\.py:Name"):
        verify(document)


def test_reading_a_certificate_never_imports_code(tmp_path):
    marker = tmp_path / "ran"
    path = tmp_path / "evil.py"
    path.write_text(f"open({str(marker)!r}, 'w').close()\n{SOURCE}")
    document = measured(net=f"{path}:Mine", tokens=2, features=2, max_points=80)
    assert marker.exists()
    marker.unlink()
    with pytest.raises(BadInput, match="--net"):
        verify(document)
    for name in (f"{path}:Mine", str(path), "evil.py:Mine"):
        with pytest.raises(TheodoliteError):
            verify(sealed(changed(changed(document, "net", name), "source", None)))
    assert not marker.exists()


def test_another_file_or_another_class_of_it_is_refused(file):
    document = measured(net=f"{file}:Mine", tokens=2, features=2, max_points=80)
    with pytest.raises(CertificateRefused):
        verify(document, net=f"{file}:Other")
    with pytest.raises(CertificateRefused):
        verify(sealed(changed(document, "net", "mine.py:Other")), net=f"{file}:Mine")
    for shape in (None, [], 5, "x", {"no_such": 1}, {"seed": 1, "net": 2}):
        with pytest.raises(TheodoliteError):
            verify(sealed(changed(document, "shape", shape)), net=f"{file}:Mine")
    file.write_text(SOURCE + "\n# a remark\n")
    with pytest.raises(CertificateRefused, match="not the one the certificate was made from"):
        verify(document, net=f"{file}:Mine")
    with pytest.raises(CertificateRefused):
        verify(document, net="self-attention")


def test_what_has_no_certificate_says_so():
    from torch import nn

    class Local(nn.Module):
        def __init__(self, features: int) -> None:
            super().__init__()
            self.w = nn.Parameter(nn.Linear(features, 1).weight)

        def forward(self, x):
            return (x * self.w).prod(-1)

    def lstm(features: int) -> nn.Module:
        return Local(features)

    for net in (Local, lstm):
        with pytest.raises(BadInput, match=r"file\.py:Name"):
            measured(net=net, features=4, max_points=70)
    with pytest.raises(BadInput, match="weights drawn"):
        measured(weights="own", **SHAPE)

    with pytest.raises(BadInput, match="rank of 0 needs no certificate"):
        measured(prime=2, depth=2, width=2, tokens=2)


@pytest.mark.parametrize("limit", [4000, 0])
def test_pivots_in_any_order(monkeypatch, limit):
    """An elimination that had to exchange rows and columns: the header sorts its pivots, the solutions follow."""
    monkeypatch.setattr(certificates, "BY_MINOR", limit)
    kept = []
    exact_rank(load("self-attention", **SHAPE), points=20, repeats=1, keep=kept.append)
    sample = kept[0].sample
    matrix = pair_matrix(sample.evaluate(), sample.points("a", 20), sample.points("b", 20), sample.partition)
    rows, columns = (torch.randperm(20, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    done = eliminate(matrix[rows][:, columns], sample.modulus)
    done = replace(done, rows=rows[done.rows], columns=columns[done.columns])
    assert done.pivot_rows.tolist() != sorted(done.pivot_rows.tolist())
    document = certificates.certificate(replace(kept[0], elimination=done))
    assert verify(json.loads(json.dumps(document))).lower_bound == RANK


def test_the_best_repeat_is_certified():
    """Modulo 7 the repeats find different ranks: the certificate is about the largest."""
    found = separation_rank("self-attention", prime=7, repeats=6, certificate=True, **SHAPE)
    assert min(found.ranks) < max(found.ranks)
    assert found.certificate["header"]["rank"] == found.rank == max(found.ranks)
    assert found.certificate["header"]["repeat"] == found.ranks.index(found.rank)
    assert verify(json.loads(json.dumps(found.certificate))).lower_bound == found.rank


def test_progress_is_reported(by_minor):
    shares = []
    verify(by_minor, progress=lambda label, share: shares.append(share))
    assert sum(shares) == pytest.approx(1)
