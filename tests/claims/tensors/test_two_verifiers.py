"""Two verifiers that share no code: both accept what is genuine, and both refuse every forgery."""

from __future__ import annotations

import ast
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from theodolite import standalone_verifier as alone
from theodolite.claims.certificates import verify
from theodolite.claims.tensors import graded_certificate as graded
from theodolite.claims.tensors.growth_certificate import growth_certificate
from theodolite.errors import CertificateRefused, TheodoliteError
from theodolite.instruments.rank import certificate as certificates
from theodolite.instruments.rank.document import read
from theodolite.instruments.rank.separation import separation_rank
from theodolite.measurement import canonical
from theodolite.theory.attention_rank import graded_cap, measured_law_depth_2

ARCHIVE = Path(__file__).resolve().parents[3] / "benchmarks" / "certificates"
Documents = dict[str, dict]


@pytest.fixture(scope="module")
def genuine() -> Documents:
    found = {"plain": separation_rank("self-attention", depth=2, width=2, tokens=4, certificate=True).certificate}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "BY_MINOR", 3)
        found["solutions"] = separation_rank("self-attention", depth=2, width=2, tokens=2, certificate=True).certificate
    parts = list(enumerate(graded_cap(2, 3, 3, 1)))
    found["graded"] = graded.graded_certificate(parts, depth=2, width=3, heads=3)
    found["growth"] = growth_certificate(3, base=2).document()
    return {kind: json.loads(json.dumps(document)) for kind, document in found.items()}


@pytest.fixture(autouse=True)
def small_minors(request, monkeypatch):
    """Certificates with solutions at small ranks: both verifiers count from 3 points on."""
    if "small" in request.keywords or "solutions" in request.node.name:
        monkeypatch.setattr(certificates, "BY_MINOR", 3)
        monkeypatch.setattr(alone, "BY_MINOR", 3)


def sealed(document: dict) -> dict:
    body = {name: document[name] for name in ("header", "solutions") if name in document}
    return {**document, "digest": hashlib.sha256(canonical(body).encode()).hexdigest()}


def accepted(text: str, folder: Path) -> tuple[bool, bool]:
    """What the first and the second verifier say to the same text."""
    file = folder / "certificate.json"
    file.write_text(text)
    answers = []
    for check in (lambda: [verify(document) for document in read(file)], lambda: alone.check(text)):
        try:
            check()
            answers.append(True)
        except (TheodoliteError, alone.Refused) as error:
            answers.append(not str(error))  # refused, and in words
    return answers[0], answers[1]


@pytest.mark.parametrize("kind", ["plain", "solutions", "graded", "growth"])
def test_both_accept_what_is_genuine(kind, genuine, tmp_path):
    assert accepted(json.dumps(genuine[kind]), tmp_path) == (True, True)


# For every field: values with which the header is false, or says nothing that can be followed.
COMMON = {"prime": [0, 1, 2, 15, -7, 7506437, 2**61 - 1, 7.0, True, "7", None], "draw_rule": [0, 2, "1", None, True]}
COMMON |= {"seed": [-1, 2**63, 0.5, "0", None], "extra": [1]}
PLAIN = COMMON | {
    "net": ["degree-attention", "SelfAttention", "file.py:Net", None, 3],
    "net_version": [0, 2, "1", True, None],
    "source": ["", "0" * 64, 1],
    "shape": [{}, None, [], {"depth": 1, "width": 2, "heads": 1, "tokens": 4}, {"depth": 2, "width": 2, "x": 1}],
    "kind": ["vector", None],
    "sites": [0, 3, 4.0, True],
    "features": [0, 1, 3, "2"],
    "token": [4, -1, 1.0, True, None],
    "entry": [2, -1, False, "0"],
    "repeat": [-1, 2**63, "0"],
    "rank": [0, -1, 17, 19, 10**9, 18.0, "18", None, True],
    "rows": [[], [[0, 16]], [[0, 18]], [[0, 8], [8, 16]], [[0, 9], [5, 12]], [[17, 0]], [[-1, 16]], [[0, 2**40]], None],
    "partition": [
        {"a": [0, 1], "b": [1, 2, 3]},
        {"a": [0, 0], "b": [1, 2]},
        {"a": [0, 1], "b": [2]},
        {"a": [], "b": [0, 1, 2, 3]},
        {"a": [0, 1], "b": [2, 3], "c": []},
        {"a": [0, 1], "b": [2, 4]},
        {"a": [0, 1], "b": [2.0, 3]},
        [[0, 1], [2, 3]],
        None,
    ],
}  # fmt: skip
PLAIN["columns"] = PLAIN["rows"]
GRADED = COMMON | {
    "net": ["degree-attention", None],
    "net_version": [0, 2, None, True],
    "depth": [0, 1, 9, "2", None],
    "width": [0, 2, 3.0, 10**6],
    "heads": [0, 1.5, True, 10**6],
    "attention_width": [0, None, 10**6],
    "features": [0, 4, "3"],
    "tokens_with_output": [0, 1, None],
    "tokens_other": [0, -3],  # with one token the parts have the same rank: true
    "repeat": [-1, "0"],
    "parts": [
        [],
        None,
        [[0, 2]],
        [[2, 19]],
        [[2, 16], [2, 16]],
        [[3, 10], [2, 10]],
        [[5, 1]],
        [[-1, 1]],
        [[0, 0]],
        [[0, 1.0]],
        [[True, 3]],
        [[0, 1, 2]],
        [[1, 10**9]],
        "parts",
    ],
}
GROWTH = COMMON | {
    "width": [0, 1, 4, "3", 10**6],
    "heads": [0, 2, None],
    "attention_width": [0, 2, True],
    "base": [0, 1, 3, 40],
    "point": [None, [], [0] * 6, [1] * 6, [0] * 5, [0] * 7, [-1] * 6, [0.0] * 6, [10**9] * 6, "point"],
}
GROWTH["prime"] = [*COMMON["prime"], 101, 31991]
TABLES = {"plain": PLAIN, "solutions": PLAIN, "graded": GRADED, "growth": GROWTH}


def test_the_tables_name_every_field(genuine):
    for kind, table in TABLES.items():
        assert set(table) == {*genuine[kind]["header"], "extra"}


def false_headers(kind: str, document: dict) -> Iterator[tuple[str, str]]:
    for field, values in TABLES[kind].items():
        for value in values:
            if field in document["header"] and value == document["header"][field] and type(value) is not bool:
                continue
            yield (
                f"{field} = {value!r}",
                json.dumps(sealed({**document, "header": {**document["header"], field: value}})),
            )
        if field in document["header"]:
            kept = {name: value for name, value in document["header"].items() if name != field}
            yield f"no {field}", json.dumps(sealed({**document, "header": kept}))


def false_frames(document: dict) -> Iterator[tuple[str, str]]:
    text = json.dumps(document)
    yield "truncated", text[: len(text) // 2]
    yield "empty", ""
    yield "two documents", text + text
    yield "deeply nested", "[" * 100_000
    yield "NaN", text.replace('"seed": 0', '"seed": NaN')
    yield "infinity", text.replace('"seed": 0', '"seed": 1e999')
    yield "a key twice", text.replace('"seed": 0', '"seed": 1, "seed": 0')
    yield "a header twice", text.replace('"header"', '"header": {}, "header"', 1)
    yield "the old digest", text.replace('"seed": 0', '"seed": 5')
    for changes in ({"version": 2}, {"version": True}, {"version": "1"}, {"format": "certificate"}, {"note": ""}):
        yield str(changes), json.dumps({**document, **changes})
    for name in document:
        yield f"no {name}", json.dumps({key: value for key, value in document.items() if key != name})
    for header in (None, [], "header", 3):
        yield f"header {header!r}", json.dumps(sealed({**document, "header": header}))
    for digest in ("", None, "0" * 64):
        yield f"digest {digest!r}", json.dumps({**document, "digest": digest})


def false_solutions(document: dict) -> Iterator[tuple[str, str]]:
    good, p, rank = document["solutions"], document["header"]["prime"], document["header"]["rank"]
    for solutions in (
        None,
        [],
        good[:-1],
        [*good, good[0]],
        [row[:-1] for row in good],
        [[0] * rank] * 4,
        [good[1], good[0], *good[2:]],
        [[*row[1:], row[0]] for row in good],
        [*good[:3], [(good[3][0] + 1) % p, *good[3][1:]]],
        [[str(v) for v in row] for row in good],
        [[2**70] * rank] * 4,
        {"a": good},
        7,
    ):
        yield f"solutions {str(solutions)[:40]}", json.dumps(sealed({**document, "solutions": solutions}))
    for field, value in (("seed", 1), ("repeat", 1), ("token", 0), ("entry", 1), ("prime", 8388593), ("prime", 65537)):
        forged = {**document, "header": {**document["header"], field: value}}
        yield f"solutions of another {field}", json.dumps(sealed(forged))


@pytest.mark.parametrize("kind", ["plain", "solutions", "graded", "growth"])
def test_both_refuse_every_forgery(kind, genuine, tmp_path):
    document = genuine[kind]
    forgeries = [*false_headers(kind, document), *false_frames(document)]
    if kind == "solutions":
        forgeries += false_solutions(document)
    assert len(forgeries) >= 60
    believed = {what: answers for what, text in forgeries if any(answers := accepted(text, tmp_path))}
    assert not believed


def test_a_rank_that_is_too_high_is_refused_at_any_points(genuine, tmp_path):
    """Nineteen points of either side: below the cap of other shapes, and the minor is singular whatever the points."""
    for rows in ([[0, 18]], [[10, 28]], [[0, 17], [500, 500]]):
        document = genuine["plain"]
        header = {**document["header"], "rank": 19, "rows": rows, "columns": rows}
        assert accepted(json.dumps(sealed({**document, "header": header})), tmp_path) == (False, False)
    # one narrow head stays below its cap: one more is possible for a cap, and false
    law = measured_law_depth_2(5, 1, 3)[2]
    assert law < graded_cap(2, 5, 1, 3)[2]
    for rank in (law, law + 1):
        stated = graded.graded_certificate([(2, rank)], depth=2, width=5, attention_width=3)
        assert accepted(json.dumps(stated), tmp_path) == (rank == law, rank == law)


@pytest.mark.parametrize(
    ("name", "chosen"),
    [("exact-rank.jsonl", slice(0, 160, 8)), ("growth.jsonl", slice(4)), ("two-layers.jsonl", slice(0, 24, 8))],
)
def test_both_accept_a_sample_of_the_archive(name, chosen):
    documents = read(ARCHIVE / name)
    size = {id(d): max((r for _, r in d["header"].get("parts", [])), default=d["header"]["width"]) for d in documents}
    documents = sorted(documents, key=lambda d: size[id(d)])[chosen]
    assert documents
    for document in documents:
        found = verify(document)
        assert str(getattr(found, "lower_bound", "growth")) in alone.check(json.dumps(document))


def test_the_archive_proves_the_table():
    """Every row of the table that has a certificate has one of exactly its ranks, and most have one."""
    table = json.loads((ARCHIVE.parent / "results" / "exact-rank-nvidia-h200-2026-11-15.json").read_text())["rows"]
    archived = set()
    for document in read(ARCHIVE / "exact-rank.jsonl"):
        h = document["header"]
        tokens = (h["tokens_with_output"], h["tokens_other"])
        shape = (h["depth"], h["width"], h["heads"], h["attention_width"], h["features"], *tokens)
        archived.add((shape, tuple(map(tuple, h["parts"]))))
    missing = []
    for row in table:
        s = row["shape"]
        d, heads = s["width"], s.get("heads", 1)
        tokens = (s.get("tokens_with_output", d), s.get("tokens_other", d))
        shape = (s["depth"], d, heads, s.get("attention_width") or d // heads, d, *tokens)
        if (shape, tuple((b[0], b[1]) for b in row["blocks"] if b[1])) not in archived:
            missing.append((row, max(b[1] for b in row["blocks"])))
    assert all(largest > 1_000 for _, largest in missing)
    page = (ARCHIVE.parents[1] / "docs" / "exact-rank.md").read_text()
    for name, chosen in ROWS.items():
        left = sum(chosen(row["shape"]) for row, _ in missing)
        rows = sum(chosen(row["shape"]) for row in table)
        assert f"{rows - left} of the {rows}" in page, f"{name}: {rows - left} of the {rows} have certificates"


def _heads_fill(shape: dict) -> bool:
    heads = shape.get("heads", 1)
    return heads * (shape.get("attention_width") or shape["width"] // heads) >= shape["width"]


ROWS = {
    "fewer tokens": lambda s: "tokens_other" in s,
    "depth 2, wide heads": lambda s: "tokens_other" not in s and s["depth"] == 2 and _heads_fill(s),
    "depth 2, narrow heads": lambda s: "tokens_other" not in s and s["depth"] == 2 and not _heads_fill(s),
    "depth 3": lambda s: "tokens_other" not in s and s["depth"] == 3 and _heads_fill(s) and s["width"] <= 4,
}


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [{"depth": 2, "width": 16}, {"depth": 3, "width": 4}])
def test_large_parts_on_a_gpu(shape):
    """What no core checks in minutes: 9,316 points at depth 2; 11,436 at depth 3, where 11,440 must be refused."""
    parts = graded_cap(shape["depth"], shape["width"], 1, shape["width"])
    largest = max(range(len(parts)), key=lambda c: parts[c])
    short = 4 if shape["depth"] == 3 else 0
    document = graded.graded_certificate([(largest, parts[largest] - short)], **shape)
    assert graded.verify_graded(document, device="cuda").lower_bound == parts[largest] - short
    if short:
        with pytest.raises(CertificateRefused, match="has rank 11436, not 11440"):
            verify(graded.graded_certificate([(largest, parts[largest])], **shape), device="cuda")


def test_solutions_of_large_parts(genuine, monkeypatch):
    """The path of large parts at small ones; refused where the matrix is singular or the prime small."""
    monkeypatch.setattr(graded, "BY_MINOR", 3)
    found = verify(genuine["graded"])
    assert "solutions put in" in found.method
    assert 0 < found.error_probability < 1e-25
    law = measured_law_depth_2(5, 1, 3)[2]
    with pytest.raises(CertificateRefused, match=f"has rank {law}, not {law + 1}"):
        verify(graded.graded_certificate([(2, law + 1)], depth=2, width=5, attention_width=3))
    small = {**genuine["graded"], "header": {**genuine["graded"]["header"], "prime": 10007}}
    with pytest.raises(CertificateRefused, match="too small"):
        verify(sealed(small))


def test_the_second_verifier_can_be_taken_away_alone(genuine, tmp_path):
    source = Path(alone.__file__)
    imported = {
        name.name.split(".")[0] if isinstance(node, ast.Import) else str(node.module)
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert imported - {"flint"} <= set(sys.stdlib_module_names)
    shutil.copy(source, tmp_path / "verifier.py")
    file = tmp_path / "all.jsonl"
    file.write_text("".join(json.dumps(genuine[kind]) + "\n" for kind in ("plain", "graded", "growth")))
    run = lambda: subprocess.run(
        [sys.executable, "-I", str(tmp_path / "verifier.py"), str(file)], capture_output=True, text=True, check=False
    )
    good = run()
    assert (good.returncode, good.stdout.count("valid: ")) == (0, 3)
    file.write_text(file.read_text().replace('"seed": 0', '"seed": 1', 1))
    bad = run()
    assert (bad.returncode, bad.stdout.count("REFUSED")) == (1, 1)
