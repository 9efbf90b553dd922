"""Real text: what is read, what is held out, and what is asked."""

from __future__ import annotations

import math
import random
import shutil

import pytest
import torch

from theodolite import learn
from theodolite.errors import BadInput
from theodolite.tasks import make_task
from theodolite.tasks.contract import evaluated
from theodolite.tasks.shared.corpus import read_corpus
from theodolite.tasks.text import Text

WORDS = ("rank", "depth", "width", "token", "head", "layer", "größe", "träge", "the", "of", "and")


def document(number: int, words: int = 60) -> str:
    """Words in an order of its own, so that no two documents are alike."""
    return " ".join(random.Random(number).choices(WORDS, k=words)) + "\n"


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "texts"
    (home / "deeper").mkdir(parents=True)
    for number in range(40):
        (home / ("deeper" if number % 3 else ".") / f"{number}.txt").write_text(document(number), encoding="utf-8")
    (home / "picture.png").write_bytes(b"\x89PNG\0\0\1")
    (home / "empty.txt").write_bytes(b"")
    return home


def test_documents_are_on_one_side_and_none_is_lost(folder):
    found = read_corpus(str(folder))
    expected = {document(number).encode() for number in range(40)}
    assert set(found.trained) | set(found.held_out) == expected
    assert not set(found.trained) & set(found.held_out)
    share = sum(map(len, found.held_out)) / sum(map(len, expected))
    assert 0.1 <= share < 0.15


def test_the_split_follows_from_the_words_alone(folder, tmp_path):
    found = read_corpus(str(folder))
    for number, path in enumerate(sorted(folder.rglob("*.txt"))):
        path.rename(tmp_path / f"{99 - number}.txt")
    shutil.copy(tmp_path / "50.txt" if (tmp_path / "50.txt").exists() else tmp_path / "70.txt", tmp_path / "twice.txt")
    again = read_corpus(str(tmp_path))
    assert (again.trained, again.held_out, again.digest) == (found.trained, found.held_out, found.digest)


def test_one_file_is_cut_at_the_ends_of_lines(tmp_path):
    whole = "".join(document(number, 5) for number in range(500))
    (tmp_path / "one.txt").write_text(whole, encoding="utf-8")
    found = read_corpus(str(tmp_path / "one.txt"))
    parts = [part.decode() for part in (*found.trained, *found.held_out)]
    assert all(part.endswith("\n") and part in whole for part in parts)
    assert 40 <= len(parts) <= 65


@pytest.mark.parametrize("vocabulary", [256, 300])
def test_windows_are_of_the_text_and_ask_for_the_next_symbol(folder, vocabulary):
    task = make_task("text", {"corpus": str(folder), "vocabulary": vocabulary, "context": 16})
    drawn = task.sample(2, 5, 9, torch.Generator().manual_seed(0))
    text = task.symbols.trained.tolist()  # pyright: ignore[reportAttributeAccessIssue]
    starts = {tuple(text[i : i + 9]) for i in range(len(text) - 8)}
    rows = (part.flatten(0, 1).tolist() for part in (drawn.inputs, drawn.targets, drawn.mask))
    for inputs, targets, mask in zip(*rows, strict=True):
        assert tuple(inputs) in starts
        assert targets[:-1] == inputs[1:]
        assert mask == [True] * 8 + [False]
        assert list(task.solve(inputs)) == targets


def test_bytes_are_the_text(folder):
    task = Text(str(folder), context=16)
    joined = b"".join(each + b"\0" for each in read_corpus(str(folder)).trained)
    assert bytes(task.symbols.trained.tolist()) == joined
    assert task.spec.chance == max(joined.count(bytes([b])) for b in range(256)) / len(joined)
    assert task.bits_per_byte(math.log(256)) == pytest.approx(8)  # a uniform guess


def test_pieces_hold_every_byte_and_fewer_symbols(folder):
    plain, pieces = Text(str(folder), context=8), Text(str(folder), vocabulary=300, context=8)
    assert 0 <= int(pieces.symbols.held_out.min()) <= int(pieces.symbols.held_out.max()) < 300
    ratio = len(plain.symbols.held_out) / len(pieces.symbols.held_out)
    assert ratio > 1.5
    assert pieces.symbols.bytes_per_symbol == pytest.approx(ratio)
    assert pieces.bits_per_byte(math.log(300)) == pytest.approx(math.log2(300) / ratio)


def test_scores_are_of_what_is_held_out_and_the_same_for_all(folder):
    task = Text(str(folder), context=16)
    held_out = evaluated(task)
    one, two = (held_out.sample(2, 6, 16, torch.Generator().manual_seed(seed)) for seed in (0, 1))
    assert torch.equal(one.inputs, two.inputs)
    text = bytes(task.symbols.held_out.tolist())
    assert all(bytes(row) in text for row in one.inputs[0].tolist())
    assert bytes(one.inputs[0, 0].tolist()) == text[:16]
    assert bytes(one.inputs[0, -1].tolist()) == text[-16:]


def test_a_network_learns_from_it_and_its_loss_is_in_its_row(folder):
    found = learn(
        "rnn",
        "text",
        seeds=1,
        steps=60,
        batch=8,
        shape={"width": 16},
        lr=1e-2,
        unseen="none",
        task_args={"corpus": str(folder), "context": 16},
    )
    (row,) = found.rows
    assert row["loss"] < 0.7 * math.log(256)
    assert row.cell.config["task_args"]["digest"] == read_corpus(str(folder)).digest


@pytest.mark.parametrize(
    ("content", "fields", "sentence"),
    [
        (b"", {}, "there is no text in"),
        (b"\0\1\2" * 500, {}, "is binary"),
        (b"one line\n", {}, "too short to hold out"),
        (b"a b c d e f g\n" * 70 + b"h i j k l m n\n" * 70, {"context": 4096}, "too short for a context of 4096"),
        ("".join(map(document, range(30))).encode("latin-1"), {"vocabulary": 300, "context": 8}, "is not UTF-8"),
        ("".join(map(document, range(30))).encode(), {"vocabulary": 9000, "context": 8}, "supports a vocabulary of"),
        (
            b"some words\n" * 900,
            {"vocabulary": 200},
            "vocabulary=200 is too small .* use 256 for bytes, or 258 or more",
        ),
        (b"some words\n" * 900, {"context": 1}, "context=1 is too small"),
        (b"some words\n" * 900, {"digest": "0123"}, "has changed"),
    ],
)
def test_text_that_cannot_be_used_is_told_in_a_sentence(tmp_path, content, fields, sentence):
    path = tmp_path / "given.txt"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=sentence):
        make_task("text", {"corpus": str(path), **fields})


def test_the_file_of_a_folder_that_is_not_utf8_is_named(tmp_path):
    for place, encoding in enumerate(["utf-8", "latin-1", "utf-8"]):
        text = "".join(map(document, range(30)))
        (tmp_path / f"{place}.txt").write_bytes(text.encode(encoding))
    with pytest.raises(BadInput, match=r"1\.txt' is not UTF-8 \(byte \d+\): use --vocabulary 256"):
        make_task("text", {"corpus": str(tmp_path), "vocabulary": 300, "context": 8})


def test_a_place_that_is_not_there(tmp_path):
    with pytest.raises(BadInput, match="there is no file or folder"):
        make_task("text", {"corpus": str(tmp_path / "none")})
