"""Files are whole or absent; cells are named by their configuration alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from theodolite.errors import BadInput
from theodolite.files import OutputFolder, check_writable, write_text
from theodolite.lab.cell import Cell
from theodolite.lab.run_cells import run


def test_key_and_seed_depend_on_the_configuration_and_not_on_its_order():
    first = Cell("separation-rank", {"net": "a", "shape": {"depth": 1, "width": 2}})
    same = Cell("separation-rank", {"shape": {"width": 2, "depth": 1}, "net": "a"})
    other = Cell("separation-rank", {"net": "a", "shape": {"depth": 1, "width": 3}})
    assert (first.key, first.seed) == (same.key, same.seed)
    assert first.key != other.key
    assert first.seed != other.seed
    assert 0 <= first.seed < 2**63


def test_the_seed_rule_is_sha256_of_the_canonical_text():
    import hashlib

    cell = Cell("m", {"b": 1, "a": [1, 2]})
    text = '{"config":{"a":[1,2],"b":1},"measure":"m"}'
    assert cell.seed == int(hashlib.sha256(text.encode()).hexdigest()[:16], 16) >> 1


def test_a_cell_that_cannot_be_measured_does_not_stop_the_others():
    cells = [
        Cell("separation-rank", {"net": "mlp", "shape": {}}),
        Cell("separation-rank", {"net": "self-attention", "shape": {"depth": 1, "width": 2, "tokens": 2}}),
    ]
    rows = list(run(cells))
    assert rows[0].error is not None
    assert "relu" in rows[0].error
    assert rows[1]["rank"] == 3


def test_writing_replaces_whole_files_and_leaves_nothing_beside(tmp_path):
    target = tmp_path / "a.txt"
    write_text(target, "one")
    write_text(target, "two")
    assert target.read_text() == "two"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / "a.txt"
    write_text(target, "old")

    def full(self: Path, other: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(BadInput, match="No space left"):
        write_text(target, "new")
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_names_that_escape_the_folder_are_refused(tmp_path):
    folder = OutputFolder(tmp_path / "out")
    for name in ("../a", "/etc/a", "b/../../a"):
        with pytest.raises(BadInput, match="outside"):
            folder.write(name, "x")


def test_places_that_cannot_be_written_are_refused_at_once(tmp_path):
    with pytest.raises(BadInput, match="is a folder"):
        check_writable(tmp_path)
    with pytest.raises(BadInput, match="not there"):
        check_writable(tmp_path / "no" / "file")
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(BadInput, match="cannot be written"):
            check_writable(tmp_path / "file")
