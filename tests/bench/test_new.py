"""Files to begin with: they run, and their tests pass and can fail."""

from __future__ import annotations

import runpy

import pytest

from theodolite.bench.new import new
from theodolite.errors import BadInput


@pytest.mark.parametrize(("kind", "name"), [("net", "GatedMean"), ("task", "seen_before")])
def test_the_test_of_a_template_passes_and_fails_where_the_file_is_broken(tmp_path, kind, name):
    file, test = new(kind, name, tmp_path)
    tests = {name: run for name, run in runpy.run_path(str(test)).items() if name.startswith("test_")}
    for run in tests.values():
        run()
    text = file.read_text()
    broken = text.replace("tril(-1)", "tril(0)").replace("stack(states, dim=1)", "stack(states, dim=1).flip(1)")
    assert broken != text
    file.write_text(broken)
    with pytest.raises((AssertionError, BadInput)):
        next(iter(tests.values()))()


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("nets", "Mine", "'nets' cannot be made anew: use net or task"),
        ("net", "my net", "'my net' is no name for a class"),
        ("net", "class", "'class' is no name"),
        ("task", "_hidden", "'_hidden' is no name"),
    ],
)
def test_what_cannot_be_made(tmp_path, kind, name, words):
    with pytest.raises(BadInput, match=words):
        new(kind, name, tmp_path)


def test_nothing_is_overwritten(tmp_path):
    new("net", "Mine", tmp_path)
    with pytest.raises(BadInput, match=r"mine.py' is there already"):
        new("task", "Mine", tmp_path)
    with pytest.raises(BadInput, match="there is no folder"):
        new("net", "Other", tmp_path / "nowhere")
