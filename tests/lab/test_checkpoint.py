"""A checkpoint is read back bit for bit, or refused in one sentence; a failed write leaves the old one."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from theodolite.errors import DiskFull, StoreError
from theodolite.lab import checkpoint
from theodolite.lab.checkpoint import read_checkpoint, write_checkpoint

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint8, torch.bool,
]  # fmt: skip


def drawn(seed: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2 if dtype == torch.bool else 100, shape, generator=generator).to(dtype)


@given(
    shapes=st.lists(st.tuples(st.lists(st.integers(0, 4), max_size=3).map(tuple), st.sampled_from(DTYPES)), max_size=5),
    metadata=st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8"))),
)
@settings(max_examples=40)
def test_what_is_read_is_what_was_written(tmp_path_factory, shapes, metadata):
    path = tmp_path_factory.getbasetemp() / "exact.safetensors"
    tensors = {f"t{number}": drawn(number, *what) for number, what in enumerate(shapes)}
    write_checkpoint(path, tensors, metadata)
    read, told = read_checkpoint(path)
    assert told == metadata
    assert read.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert read[name].dtype == tensor.dtype
        assert read[name].shape == tensor.shape
        assert torch.equal(read[name], tensor)


def test_bits_survive_where_numbers_do_not_compare(tmp_path):
    strange = torch.tensor([float("nan"), float("inf"), -0.0, 5e-324], dtype=torch.float64)
    write_checkpoint(tmp_path / "a", {"strange": strange}, {})
    read, _ = read_checkpoint(tmp_path / "a")
    assert torch.equal(read["strange"].view(torch.int64), strange.view(torch.int64))


def test_views_parameters_and_generators_can_be_kept(tmp_path):
    whole = torch.arange(12.0).reshape(3, 4)
    generator = torch.Generator().manual_seed(3)
    torch.rand(5, generator=generator)
    tensors = {
        "whole": whole, "part": whole[1:], "turned": whole.t(), "again": whole, "wide": torch.ones(1, 3).expand(4, 3),
        "weight": torch.nn.Parameter(torch.ones(2)), "empty": torch.zeros(0, 3), "none": torch.zeros(0),
        "generator": generator.get_state(),
    }  # fmt: skip
    write_checkpoint(tmp_path / "a", tensors, {"step": "5"})
    read, _ = read_checkpoint(tmp_path / "a")
    assert all(torch.equal(read[name], tensor.detach()) for name, tensor in tensors.items())
    assert load_file(tmp_path / "a").keys() == tensors.keys()  # an ordinary safetensors file
    restored = torch.Generator()
    restored.set_state(read["generator"])
    assert torch.equal(torch.rand(9, generator=restored), torch.rand(9, generator=generator))
    read["whole"].zero_()
    assert torch.equal(read["again"], whole)
    assert torch.equal(read_checkpoint(tmp_path / "a")[0]["whole"], whole)


def test_a_cut_or_foreign_file_is_refused(tmp_path):
    path = tmp_path / "a"
    write_checkpoint(path, {"w": torch.arange(100.0)}, {})
    whole = path.read_bytes()
    torch.save({"w": torch.zeros(3)}, tmp_path / "pickled")
    pickled = (tmp_path / "pickled").read_bytes()
    cut = [whole[:size] for size in (0, 1, 7, 8, 9, 60, len(whole) // 2, len(whole) - 1)]
    for wrong in (*cut, whole + b"x", pickled, b"\x89PNG" + bytes(400), random.Random(0).randbytes(999)):
        path.write_bytes(wrong)
        with pytest.raises(StoreError, match="not a checkpoint") as caught:
            read_checkpoint(path)
        assert "\n" not in str(caught.value)
        assert caught.value.exit_code == 2


def test_every_flipped_byte_is_noticed(tmp_path):
    path = tmp_path / "a"
    tensors = {"v": torch.arange(20), "w": torch.arange(40.0)}
    write_checkpoint(path, tensors, {"step": "5"})
    whole = path.read_bytes()
    body = int.from_bytes(whole[:8], "little") + 8
    rng = random.Random(0)
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            read, _ = read_checkpoint(path)
        except StoreError:
            continue
        # Only names and remarks in the header can differ unnoticed, never a tensor.
        assert at < body
        assert all(torch.equal(read[name], tensor) for name, tensor in tensors.items())


def test_a_safetensors_file_of_another_program_is_read(tmp_path):
    save_file({"w": torch.ones(2)}, tmp_path / "a", {"format": "pt"})
    tensors, metadata = read_checkpoint(tmp_path / "a")
    assert torch.equal(tensors["w"], torch.ones(2))
    assert metadata == {"format": "pt"}


def test_paths_that_cannot_be_are_told(tmp_path):
    for path, words in ((tmp_path, "is a folder"), (tmp_path / "none", "no checkpoint")):
        with pytest.raises(StoreError, match=words):
            read_checkpoint(path)
    with pytest.raises(StoreError, match="cannot be written"):
        write_checkpoint(tmp_path / "none" / "a", {}, {})


@pytest.mark.parametrize("code", [28, 13, 5])
@pytest.mark.parametrize("where", ["mkstemp", "fsync", "replace"])
def test_a_failed_write_leaves_the_old_checkpoint_and_nothing_beside(tmp_path, monkeypatch, where, code):
    write_checkpoint(tmp_path / "a", {"w": torch.ones(3)}, {})

    def fails(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    owner = {"mkstemp": checkpoint.tempfile, "fsync": os, "replace": Path}[where]
    monkeypatch.setattr(owner, where, fails)
    with pytest.raises(
        DiskFull if code == 28 else StoreError, match="disk is full" if code == 28 else "cannot be written"
    ):
        write_checkpoint(tmp_path / "a", {"w": torch.zeros(3)}, {})
    monkeypatch.undo()
    assert torch.equal(read_checkpoint(tmp_path / "a")[0]["w"], torch.ones(3))
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_a_full_and_a_read_only_disk_are_told(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("mounting a file system is not permitted here")
    try:
        write_checkpoint(place / "a", {"w": torch.ones(1000)}, {})
        for size in (2**17, 2**18, 2**20):
            if size > 2**17:
                with pytest.raises(DiskFull, match="finished cells are kept"):
                    write_checkpoint(place / "a", {"w": torch.zeros(size)}, {})
            assert torch.equal(read_checkpoint(place / "a")[0]["w"], torch.ones(1000))
            assert [file.name for file in place.iterdir()] == ["a"]
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        with pytest.raises(StoreError, match="Read-only file system"):
            write_checkpoint(place / "a", {"w": torch.zeros(3)}, {})
    finally:
        subprocess.run(["umount", "-l", place], check=True)
