"""Compiled steps move the weights as plain ones do; what was compiled is found again; what cannot be is said."""

from __future__ import annotations

import logging
import shutil

import pytest
import torch

from tests.training.plain import batches, program, weights
from theodolite.tasks import make_task
from theodolite.training import compiler
from theodolite.training.compiler import CannotCompile, Compiled, compile_function
from theodolite.training.group import MemberSpec, Schedule
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.pairing import pair
from theodolite.training.program import Batching
from theodolite.training.session import Session

PLAIN, COMPILED = Batching(2, batched=True), Batching(2, batched=True, compiled=True)
RATES = [Rates(1e-2, 0.1), Rates(3e-3, 0.0)]

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler on a CPU")


@pytest.fixture
def folder(tmp_path, monkeypatch, inductor):
    monkeypatch.setenv("THEODOLITE_CACHE", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(inductor))
    compiler._say_once.cache_clear()
    return tmp_path


def uncompiled(function, tensors, recipe=None):
    """A program that is the function itself, where only what is done with programs is tested."""
    return Compiled(function, 0.0, False)


def double(x):
    x.mul_(2)


def test_a_compiled_step_moves_every_member_as_a_plain_one_does(folder):
    pairing = pair("mlp", make_task("majority", {"bits": 3}), {"width": 4})
    drawn = batches(pairing, 2)
    plain, compiled = (program(pairing, RATES, Rule(clip=0.1), way) for way in (PLAIN, COMPILED))
    for each in (plain, compiled):
        each.train(drawn, 1)
    assert compiled.compiled is not None
    assert compiled.compiled.refused is None
    before = weights(program(pairing, RATES, Rule(), PLAIN))
    for name, found in weights(compiled).items():
        torch.testing.assert_close(found, weights(plain)[name], rtol=1e-5, atol=1e-6)
        assert not torch.equal(found, before[name])
    assert not program(pairing, RATES, Rule(), PLAIN).compiled_before(drawn[0])  # another rule, another program
    assert program(pairing, RATES, Rule(clip=0.1), PLAIN).compiled_before(drawn[0])


def test_a_second_time_it_is_read_from_the_disk_and_another_recipe_is_not(folder):
    first = compile_function(double, [torch.ones(3)], {"a": 1})
    second = compile_function(double, [torch.ones(3)], {"a": 1})
    assert [first.kept, second.kept] == [False, True]
    x = torch.ones(3)
    second.run(x)
    assert x.tolist() == [2, 2, 2]
    assert not compiler.is_kept({"a": 2}, [x])
    assert not compiler.is_kept({"a": 1}, [torch.ones(4)])


def test_a_broken_file_and_a_folder_that_cannot_be_written_cost_time_only(folder, caplog):
    compile_function(double, [torch.ones(3)], {"a": 1})
    (file,) = (folder / "steps").glob("*.bin")
    file.write_bytes(b"nothing")
    with caplog.at_level(logging.WARNING):
        assert not compile_function(double, [torch.ones(3)], {"a": 1}).kept
    assert "cannot be read" in caplog.text
    assert "compiled anew" in caplog.text


def test_a_cache_that_is_a_file_is_said_once_and_nothing_is_lost(folder, monkeypatch, caplog):
    monkeypatch.setenv("THEODOLITE_CACHE", str(folder / "taken"))
    (folder / "taken").write_text("")
    with caplog.at_level(logging.WARNING):
        found = compile_function(double, [torch.ones(3)], {"a": 1})
    assert "cannot be kept" in caplog.text
    assert "THEODOLITE_CACHE" in caplog.text
    x = torch.ones(3)
    found.run(x)
    assert x.tolist() == [2, 2, 2]


def test_tensors_that_were_not_handed_over_are_read_anew(folder):
    shift = torch.ones(3)
    found = compile_function(lambda x: x.add_(shift), [torch.zeros(3)], {"a": 1})
    shift.fill_(5)
    x = torch.zeros(3)
    found.run(x)
    assert x.tolist() == [5, 5, 5]
    assert not compiler.is_kept({"a": 1}, [x])  # a file could not hold them


def test_what_depends_on_the_data_is_refused_with_its_operation(folder, caplog):
    with pytest.raises(CannotCompile, match=r"item|_local_scalar_dense|data-dependent"):
        compile_function(lambda x: x.mul_(float(x.sum())), [torch.ones(3)])


def test_an_assertion_without_words_is_told_by_its_place(folder, monkeypatch):
    def broken(*_, **__):
        raise AssertionError

    monkeypatch.setattr(torch._inductor, "standalone_compile", broken)
    with pytest.raises(CannotCompile, match=r"AssertionError in test_compiler\.py, line \d+"):
        compile_function(lambda x: x.mul_(2), [torch.ones(3)])


def test_where_reordering_loops_fails_it_compiles_without(folder, monkeypatch):
    import torch._inductor
    from torch._inductor import config

    whole = torch._inductor.standalone_compile

    def stumbles(*args):
        assert not config.loop_ordering_after_fusion
        return whole(*args)

    monkeypatch.setattr(torch._inductor, "standalone_compile", stumbles)
    monkeypatch.setattr(config, "loop_ordering_after_fusion", True)
    x = torch.ones(3)
    compile_function(double, [x]).run(x)
    assert x.tolist() == [2, 2, 2]


def by_the_system():
    return FileNotFoundError(2, "No such file or directory", "g++")


def by_torch():
    """Torch's own error around the cause, which it does not name as one."""
    from torch._inductor.exc import InductorError, InvalidCxxCompiler

    return InductorError(InvalidCxxCompiler(), None)


def test_a_program_that_torch_cannot_keep_is_said_once_and_no_folder_is_blamed(folder, monkeypatch, caplog):
    class Unkept:
        def save(self, **_):
            raise RuntimeError("no artifact to save")

    with caplog.at_level(logging.WARNING):
        for name in ("a", "b"):
            compiler._write(folder / "steps" / name, Unkept())
    assert caplog.text.count("torch cannot keep") == 1
    assert "THEODOLITE_CACHE" not in caplog.text
    assert not list((folder / "steps").iterdir())


@pytest.mark.parametrize("raised", [by_the_system, by_torch])
def test_a_missing_compiler_is_said_and_training_goes_on(folder, monkeypatch, caplog, raised):
    def missing(*_, **__):
        raise raised()

    monkeypatch.setattr(torch._inductor, "standalone_compile", missing)
    pairing = pair("mlp", make_task("majority", {"bits": 3}), {"width": 4})
    compiled, plain = (program(pairing, RATES, Rule(), way) for way in (COMPILED, PLAIN))
    drawn = batches(pairing, 2)
    with caplog.at_level(logging.WARNING):
        compiled.train(drawn, 1)
    plain.train(drawn, 1)
    assert "there is no C++ compiler: install g++" in caplog.text
    assert caplog.text.count("cannot be compiled") == 1
    for name, found in weights(compiled).items():
        torch.testing.assert_close(found, weights(plain)[name])


def test_out_of_memory_while_compiling_halves_the_chunk(folder, monkeypatch):
    asked = []

    def tight(function, tensors, recipe=None):
        asked.append(len(tensors[0]))
        if len(tensors[0]) > 1:
            raise torch.OutOfMemoryError("no memory")
        return uncompiled(function, tensors)

    monkeypatch.setattr("theodolite.training.compiled_step.compile_function", tight)
    pairing = pair("mlp", make_task("majority", {"bits": 3}), {"width": 4})
    found, expected = (program(pairing, RATES, Rule(), way) for way in (COMPILED, PLAIN))
    drawn = batches(pairing, 2, count=1)
    found.train(drawn, 1)
    expected.train(drawn, 1)
    assert asked == [2, 1]
    assert found.batching == Batching(1, batched=True, compiled=True)
    for name, moved in weights(found).items():
        torch.testing.assert_close(moved, weights(expected)[name], rtol=1e-5, atol=1e-6)


def test_a_session_compiles_where_that_is_earned_and_says_so(folder, monkeypatch):
    monkeypatch.setattr("theodolite.training.earning._SECONDS", {"cpu": 0.0})
    monkeypatch.setattr("theodolite.training.compiled_step.compile_function", uncompiled)
    schedule = Schedule(60, 8, every=10, rows=4, to_the_end=True)
    pairing = pair("mlp", make_task("majority", {"bits": 3}), {"width": 4})
    members = [MemberSpec(str(seed), seed, Rates(1e-2)) for seed in range(3)]
    found = {}
    for way in ("auto", "never"):
        session = Session(pairing, members, schedule, Rule(), Batching(3, batched=True), torch.device("cpu"), way)
        said, finished = set(), []
        while not session.done:
            finished, _ = session.advance()
            said.add(session.note)
        found[way] = finished
        if way == "auto":
            assert session.compiling.said is not None
            assert session.compiling.said.startswith(("compiled from step 20 on", "not compiled after step"))
            assert said <= {"", "compiling steps, 0 of 1"}
    for ours, theirs in zip(found["auto"], found["never"], strict=True):
        assert ours.key == theirs.key
        for name, weight in ours.weights.items():
            torch.testing.assert_close(weight, theirs.weights[name], rtol=1e-4, atol=1e-5)
