"""Rows of a file as a task: what is read, how it is split, and what is refused."""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from theodolite.bench.learn import learn
from theodolite.bench.lengths import unseen_lengths
from theodolite.errors import BadInput
from theodolite.tasks.contract import Batch, evaluated, make_task
from theodolite.training.scoring import losses, row_scores
from theodolite.training.session import spread


def bits(length: int) -> list[str]:
    return [format(n, f"0{length}b") for n in range(2**length)]


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def parity(tmp_path):
    """All words of 2, 4 and 7 bits, each with whether its ones are even."""
    rows = [{"inputs": w, "targets": "even" if w.count("1") % 2 == 0 else "odd"} for n in (2, 4, 7) for w in bits(n)]
    return written(tmp_path / "parity.jsonl", rows)


def drawn(task, length, rows=64):
    return task.sample(2, rows, length, torch.Generator().manual_seed(0))


def test_rows_are_split_by_their_inputs_and_drawn_by_length(parity):
    task = make_task("data", {"file": parity})
    assert (task.spec.vocab, task.spec.outputs, task.spec.lengths, task.spec.chance) == (
        2,
        2,
        (2, 7),
        pytest.approx(0.5, abs=0.1),
    )
    assert spread(task, 16) == [2, 4, 7]
    for length in (2, 4, 7):
        own, held = drawn(task, length), drawn(evaluated(task), length)
        assert own.inputs.shape == (2, 64, length)
        assert own.mask.sum(dim=-1).eq(1).all(), "one answer, at the last symbol"
        sides = [{tuple(row) for row in batch.inputs.flatten(0, 1).tolist()} for batch in (own, held)]
        assert not sides[0] & sides[1]
        even = (own.inputs.sum(dim=-1) + 1) % 2
        assert own.targets[..., -1].eq(1 - even).all(), "'even' sorts before 'odd'"
        assert [task.solve(row) for row in own.inputs[0].tolist()] == own.targets[0].tolist()


def test_a_longest_length_leaves_longer_rows_for_the_curve(parity):
    task = make_task("data", {"file": parity, "longest": 4})
    assert task.spec.lengths == (2, 4)
    assert unseen_lengths(task, None) == (7,)
    assert drawn(evaluated(task), 7, rows=128).inputs[0].unique(dim=0).shape[0] == 128, "all of them are held out"
    with pytest.raises(BadInput, match="no rows of length 6: choose among 2, 4, 7"):
        unseen_lengths(task, "6")
    with pytest.raises(BadInput, match=r"no row of .* is of length 1 or less"):
        make_task("data", {"file": parity, "longest": 1})


def test_it_is_trained_on_as_any_task_is(parity):
    found = learn("rnn", data=parity, task_args={"longest": 4}, seeds=2, steps=4, chunk=2, shape={"width": 4})
    assert found.rows[0].cell.config["task"] == "data"
    assert [length for length, _ in found.rows[0]["by_length"]] == [2, 4, 7]


def test_targets_at_every_symbol_with_a_mask_in_a_csv(tmp_path):
    lines = ["inputs,targets,mask"] + [f"{' '.join(w)},{' '.join(w[::-1])},{'0' + '1' * (len(w) - 1)}" for w in bits(4)]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    task = make_task("data", {"file": str(tmp_path / "rows.csv")})
    batch = drawn(task, 4)
    assert batch.mask[0, 0].tolist() == [False, True, True, True]
    assert batch.targets.eq(batch.inputs.flip(-1) * batch.mask).all()


def test_lengths_with_too_few_rows_share_a_group_and_say_where_nothing_counts(tmp_path):
    rows = [{"inputs": w, "targets": int(w[0])} for w in (*bits(3), "10010", "0110110")]
    task = make_task("data", {"file": written(tmp_path / "few.jsonl", rows)})
    assert task.spec.vocab == 3, "a symbol to fill up with"
    assert task.lengths_at_hand == (3, 7)
    batch = drawn(task, 7)
    assert not (batch.mask & (batch.inputs == 2)).any()


ROW = '{"inputs": "ab", "targets": 1}\n'


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("x.jsonl", "", "holds no rows"),
        ("x.jsonl", ROW + "{", "line 2 of .* is no JSON: write one object a line"),
        ("x.jsonl", ROW + "[1]\n", "line 2 of .* is no object"),
        ("x.jsonl", '{"inputs": "ab", "target": 1}\n', "line 1 of .* has no 'targets' but inputs, target: name inputs"),
        (
            "x.jsonl",
            ROW + '{"inputs": "aba", "targets": [1, 0]}\n',
            "line 2 of .* has 3 inputs and 2 targets: give one",
        ),
        ("x.jsonl", '{"inputs": "ab", "targets": "yn", "mask": [1]}\n' * 2, "has 2 inputs and a mask of 1"),
        ("x.jsonl", '{"inputs": "ab", "targets": "yn", "mask": "x1"}\n' * 2, "has 'x' in its mask: use 0 and 1"),
        ("x.jsonl", '{"inputs": "", "targets": 1}\n', "line 1 of .* has no inputs"),
        ("x.jsonl", ROW * 3, "all rows have the same inputs"),
        ("x.jsonl", ROW + '{"inputs": "ba", "targets": 1}\n', "every target in .* is '1': there is nothing to learn"),
        ("x.csv", "a,b\n1,2\n", "line 1 of .* has no 'inputs' but a, b"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=words) as told:
        make_task("data", {"file": str(tmp_path / name)})
    assert "\n" not in str(told.value)


def test_a_symbol_that_only_held_out_rows_have_is_named(parity, tmp_path):
    rows = [{"inputs": w, "targets": w.count("1") % 2} for w in bits(4)] + [{"inputs": "01201", "targets": 1}] * 2
    rows += [{"inputs": "01101", "targets": 1}, {"inputs": "11111", "targets": 1}]
    file = written(tmp_path / "strange.jsonl", rows)
    with pytest.raises(BadInput, match=r"line 17 of .*, which is held out, has the symbol '2' that no row in training"):
        make_task("data", {"file": file, "longest": 4})
    with pytest.raises(BadInput, match="there is no file"):
        make_task("data", {"file": "nowhere.csv"})
    kept = make_task("data", {"file": parity})
    with pytest.raises(BadInput, match="has changed"):
        make_task("data", {"file": file, "digest": kept.digest})


@pytest.fixture
def means(tmp_path):
    """The mean so far of 3, 4 and 6 numbers, at every place; far from 0 and of a large spread."""
    generator = torch.Generator().manual_seed(0)
    rows = []
    for length in (3, 4, 6):
        for x in (5 + 2 * torch.randn(40, length, generator=generator)).tolist():
            rows.append({"inputs": x, "targets": [100 * sum(x[: i + 1]) / (i + 1) for i in range(length)]})
    return written(tmp_path / "means.jsonl", rows)


def test_numbers_are_read_as_numbers_about_zero(means):
    task = make_task("data", {"file": means, "longest": 4})
    spec = task.spec
    assert (spec.vocab, spec.features, spec.outputs, spec.loss, spec.chance) == (None, 1, 1, "square", 0.0)
    batch = drawn(task, 4, rows=4000)
    assert batch.inputs.shape == (2, 4000, 4, 1)
    x, y = batch.inputs[0, ..., 0].double(), batch.targets[0].double()
    assert abs(float(x.mean())) < 0.1
    assert 0.9 < float(x.std()) < 1.1
    so_far = x.cumsum(1) / torch.arange(1, 5)
    slope = torch.linalg.lstsq(torch.stack([so_far.flatten(), torch.ones(so_far.numel())], 1), y.flatten()).solution
    fitted = slope[0] * so_far + slope[1]
    torch.testing.assert_close(fitted, y, rtol=1e-4, atol=1e-5)
    assert task.solve(batch.inputs[0, 0].tolist()) == pytest.approx(batch.targets[0, 0].tolist())


def test_their_score_is_the_explained_variance(means):
    metrics = pytest.importorskip("sklearn.metrics")
    task = make_task("data", {"file": means})
    whole = [task.rows.trained[n] for n in (3, 4, 6)]
    every = torch.cat([part.targets.flatten() for part in whole]).double()
    assert float(every.var(correction=0)) == pytest.approx(1.0, abs=1e-5)
    part = whole[1]
    said = 0.7 * part.targets + 0.1
    batch = Batch(part.inputs[None], part.targets[None], part.mask[None])
    found = float(row_scores(task.spec, said[None, ..., None], batch).mean())
    error = metrics.mean_squared_error(part.targets.flatten(), said.flatten())
    assert found == pytest.approx(1 - error, abs=1e-5)
    assert float(losses(task.spec, said[None, ..., None], batch)) == pytest.approx(error, abs=1e-6)
    alike = replace(task.spec, variance=None)  # as a task of one's own has it: of this batch alone
    told = float(row_scores(alike, said[None, ..., None], batch).mean())
    assert told == pytest.approx(metrics.r2_score(part.targets.flatten(), said.flatten()), abs=1e-5)


def test_numbers_are_trained_on_at_every_length(means):
    found = learn("rnn", data=means, task_args={"longest": 4}, seeds=1, steps=60, lr=1e-2, chunk=1, shape={"width": 8})
    by_length = dict(found.rows[0]["by_length"])
    assert list(by_length) == [3, 4, 6]
    assert all(0.3 < score <= 1 for score in by_length.values()), "the mean alone explains nothing"


def test_symbols_may_ask_for_numbers_and_numbers_for_symbols(tmp_path):
    rows = [{"inputs": w, "targets": w.count("1") / 3} for w in bits(5)]
    spec = make_task("data", {"file": written(tmp_path / "counts.jsonl", rows)}).spec
    assert (spec.vocab, spec.loss, spec.outputs) == (2, "square", 1)
    lines = ["inputs,targets"] + [f"{n / 7:.3f} {n % 5} 0.5,{'up' if n > 12 else 'down'}" for n in range(24)]
    (tmp_path / "up.csv").write_text("\n".join(lines))
    spec = make_task("data", {"file": str(tmp_path / "up.csv")}).spec
    assert (spec.vocab, spec.features, spec.loss, spec.outputs) == (None, 1, "cross-entropy", 2)
    pairs = [{"inputs": [[n, 0.5 * n], [1, n]], "targets": n % 3} for n in range(12)]
    spec = make_task("data", {"file": written(tmp_path / "pairs.jsonl", pairs)}).spec
    assert (spec.vocab, spec.features, spec.outputs) == (None, 2, 3)
    hexadecimal = [{"inputs": f"{n:03x}", "targets": "0" if n % 2 else "1"} for n in range(0x1E0, 0x240)]
    assert make_task("data", {"file": written(tmp_path / "hex.jsonl", hexadecimal)}).spec.vocab == 16


NUMBER = '{"inputs": [0.5, 1], "targets": 1}\n'


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("x.jsonl", NUMBER + '{"inputs": [0.5, "n/a"], "targets": 1}\n', "line 2 of .* has n/a among numbers: give"),
        ("x.jsonl", NUMBER + '{"inputs": [0.5, NaN], "targets": 1}\n', "line 2 of .* has nan among numbers"),
        ("x.jsonl", NUMBER + '{"inputs": [[0.5, 2], 1], "targets": 1}\n', "line 2 of .* has 2 numbers at one place"),
        ("x.jsonl", NUMBER + '{"inputs": [0.7, 1], "targets": 1}\n' * 3, "every target in .* is '1'"),
        ("x.csv", "inputs,targets\n0.5 0.1,a\n0.5 0.2 ?,b\n", "line 3 of .* has . among numbers"),
    ],
)
def test_numbers_that_cannot_be_used(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=words) as told:
        make_task("data", {"file": str(tmp_path / name)})
    assert "\n" not in str(told.value)


def test_a_network_of_ids_has_no_use_for_numbers(means):
    class Table(torch.nn.Module):
        def __init__(self, vocab_size, num_classes):
            super().__init__()
            self.table = torch.nn.Embedding(vocab_size, num_classes)

        def forward(self, ids):
            return self.table(ids)

    with pytest.raises(BadInput, match="'Table' reads ids, and 'data' gives numbers that are none"):
        learn(Table, data=means, seeds=1, steps=1)
