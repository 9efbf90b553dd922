"""`learn`: what counts as the same member, what is refused, and that weights, curves and tables say what rows say."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from tests.each import each
from tests.lab.small_runs import MLP, RNN, keyed, net_file, rows_of
from theodolite.bench.learn import learn
from theodolite.bench.lengths import unseen_lengths
from theodolite.errors import BadInput, UnknownName
from theodolite.lab.checkpoint import write_checkpoint
from theodolite.nets.load import load
from theodolite.tasks.contract import make_task

QUICK = {**MLP, "steps": 20, "lr": 2e-2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A store that holds the two members of `QUICK`."""
    place = tmp_path_factory.mktemp("quick")
    assert len(learn(**QUICK, out=place).rows) == 2
    return place


# The same members, and others


def test_more_seeds_and_rates_join_those_that_are_there(folder):
    more = learn(**{**QUICK, "seeds": 4, "lr": [2e-2, 1e-3]}, out=folder)
    assert (more.reused, len(more.rows), more.asked) == (2, 8, 8)
    assert more.summary[0]["seeds"] == 4
    fewer = learn(**QUICK, out=folder)
    assert (fewer.reused, len(fewer.rows)) == (2, 2)
    assert learn(**{**QUICK, "seed": 2}, out=folder).reused == 2


@each(
    "changed",
    [
        {"lr": 1e-4},
        {"weight_decay": 0.1},
        {"steps": 21},
        {"batch": 8},
        {"every": 10},
        {"rows": 3},
        {"shape": {"width": 9}},
        {"shape": {"width": 8, "depth": 3}},
        {"task_args": {"bits": 5, "relevant": 2}},
        {"task_args": {"bits": 4, "relevant": 1}},
        {"optimiser": "sgd"},
        {"clip": None},
        {"to_the_end": True},
        {"seed": 50},
    ],
)
def test_what_changes_the_learning_makes_another_member(folder, changed):
    assert learn(**{**QUICK, **changed}, out=folder).reused == 0


@pytest.mark.parametrize(
    "changed",
    [{"chunk": 1}, {"save_every": 5.0}, {"lr": [2e-2, 0.02]}, {"task_args": {"relevant": 2, "bits": 4}}],
    ids=str,
)
def test_what_does_not_change_the_learning_does_not(folder, changed):
    assert learn(**{**QUICK, **changed}, out=folder).reused == 2


def test_members_are_the_same_to_rounding_however_they_are_batched(tmp_path):
    run = {**RNN, "steps": 40, "lr": 1e-2}
    one, many = (rows_of(run, tmp_path / str(chunk), chunk=chunk) for chunk in (1, 2))
    assert one.keys() == many.keys()
    for key, row in one.items():
        losses = torch.tensor([loss for _, loss, _ in row["curve"]])
        assert torch.allclose(losses, torch.tensor([loss for _, loss, _ in many[key]["curve"]]), rtol=1e-3)
        assert (row.facts["batching"], many[key].facts["batching"]) == ("loop", "ensemble of 2")
    first, second = one.values()
    assert first["curve"] != second["curve"], "two seeds that learn alike"


def test_nothing_is_left_where_nothing_was_asked_to_be_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    state = torch.random.get_rng_state()
    learn(**QUICK)
    assert list(tmp_path.iterdir()) == []
    assert torch.equal(torch.random.get_rng_state(), state)
    with pytest.raises(BadInput, match="give out as well"):
        learn(**QUICK, keep_weights=True)


# Shapes


@pytest.mark.parametrize(
    ("net", "task"), [("mlp", "parity"), ("lstm", "parity-check"), ("transformer", "parity-check")]
)
def test_a_budget_of_parameters_is_met_by_the_nearest_width(net, task):
    found = learn(net, task, params="20k", seeds=1, steps=0, rows=1, unseen="none" if net != "mlp" else None, chunk=1)
    [entry] = found.summary
    spec = make_task(task, {}).spec
    sizes = {"features": spec.features, "outputs": spec.outputs} | ({} if spec.vocab is None else {"vocab": spec.vocab})

    def count(width: int) -> int:
        given = {k: v for k, v in sizes.items() if net == "mlp" or k != "vocab"}
        module = load(net, **given, **{**entry["shape"], "width": width}).module
        return sum(p.numel() for p in module.parameters())

    width, step = entry["shape"]["width"], entry["shape"].get("heads", 1)
    assert entry["parameters"] == count(width)
    assert abs(count(width) - 20_000) <= min(abs(count(width + step) - 20_000), abs(count(width - step) - 20_000))
    assert abs(entry["parameters"] - 20_000) < 0.05 * 20_000


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"net": "lsmt"}, "did you mean 'lstm'"),
        ({"task": "parity-chek"}, "did you mean 'parity-check'"),
        ({"task_args": {"bit": 4}}, "did you mean 'bits'"),
        ({"task_args": {"majority.bits": 4}}, "'majority', which is not among the tasks: parity"),
        ({"task_args": {"parity.bit": 4}}, "did you mean 'bits'"),
        ({"shape": {"widht": 4}}, "did you mean 'width'"),
        ({"shape": {"width": 0}}, "width"),
        ({"shape": {}, "params": "3"}, "parameters"),
        ({"params": "64k"}, "not both"),
        ({"shape": {}, "params": "64 apples"}, "64 apples"),
        ({"seeds": 0}, "seeds must be at least 1, not 0"),
        ({"seed": 2**63}, "seed 9223372036854775808 cannot be kept"),
        ({"steps": -1}, "-1"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"every": 0}, "every must be at least 1"),
        ({"rows": 0}, "rows must be at least 1"),
        ({"lr": -1.0}, "-1"),
        ({"lr": float("nan")}, "nan"),
        ({"lr": []}, "names nothing"),
        ({"weight_decay": -1.0}, "-1"),
        ({"optimiser": "adam"}, "adamw"),
        ({"clip": -2.0}, "-2"),
        ({"net": []}, "names nothing"),
        ({"chunk": 0}, "chunk must be at least 1"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"device": "gpu"}, "gpu"),
        ({"net": "nowhere.py:Net"}, "there is no file 'nowhere.py'"),
        ({"net": "mlp", "task": "copy", "task_args": {}}, "'mlp' reads a vector and 'copy' gives tokens"),
        ({"checkpoint": "nowhere.safetensors"}, "there is no checkpoint 'nowhere.safetensors'"),
    ],
    ids=str,
)
def test_what_cannot_be_learnt_is_refused_in_a_sentence_before_a_store_is_made(tmp_path, changed, told):
    with pytest.raises(BadInput) as caught:
        learn(**{**QUICK, **changed}, out=tmp_path / "runs")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    if "workers" not in changed:
        assert not (tmp_path / "runs").exists()


def test_pairs_that_do_not_fit_are_named_and_the_others_run():
    found = learn(**{**QUICK, "net": "mlp,rnn", "task": "parity,parity-check", "task_args": {"parity.bits": 5}})
    assert found.not_applicable == ("'mlp' reads a vector and 'parity-check' gives tokens",)
    run = {("mlp", "parity"), ("rnn", "parity"), ("rnn", "parity-check")}
    assert {(entry["net"], entry["task"]) for entry in found.summary} == run
    assert [e["task_args"]["bits"] for e in found.summary if e["task"] == "parity"] == [5, 5]


def test_a_field_can_be_set_for_one_of_several_tasks():
    fields = {"longest": 5, "parity-check.longest": 4}
    found = learn(**{**RNN, "steps": 0, "seeds": 1, "lr": 1e-3, "task": "parity-check,copy", "task_args": fields})
    assert {e["task"]: e["task_args"]["longest"] for e in found.summary} == {"parity-check": 4, "copy": 5}
    assert {e["task"]: e["trained_lengths"] for e in found.summary} == {"parity-check": [1, 4], "copy": [1, 5]}


# Lengths


@st.composite
def parts(draw) -> tuple[str, list[int]]:
    """A text and the lengths it means, made side by side."""
    texts, lengths = [], []
    for _ in range(draw(st.integers(1, 4))):
        first, more, step = draw(st.integers(11, 90)), draw(st.integers(0, 60)), draw(st.integers(1, 30))
        kind = draw(st.sampled_from(["one", "range", "every"]))
        space = draw(st.sampled_from(["", " "]))
        if kind == "one":
            texts.append(f"{space}{first}")
            lengths.append(first)
        else:
            texts.append(f"{first}-{first + more}" + (f"/{step}" if kind == "every" else "") + space)
            lengths += [n for n in range(first, first + more + 1) if kind == "range" or (n - first) % step == 0]
    return ",".join(texts), lengths


@given(parts())
def test_lengths_are_read_as_they_are_written(case):
    text, lengths = case
    task = make_task("parity-check", {"longest": 10})
    assert unseen_lengths(task, text) == tuple(sorted(set(lengths)))
    assert unseen_lengths(task, lengths) == tuple(sorted(set(lengths)))


@given(st.text("0123456789-/, none", max_size=12))
def test_any_text_gives_lengths_beyond_training_or_a_sentence(text):
    task = make_task("recall", {"longest": 10})
    try:
        lengths = unseen_lengths(task, text)
    except BadInput:
        return
    assert all(10 < n <= 64 for n in lengths)
    assert lengths or text.strip() == "none"


@given(st.integers(1, 300), st.integers(1, 5))
def test_by_default_sixteen_lengths_up_to_five_times_the_longest(longest, shortest):
    lengths = unseen_lengths(make_task("parity-check", {"longest": max(longest, shortest)}), None)
    longest = max(longest, shortest)
    assert len(lengths) == min(16, 4 * longest)
    assert lengths[-1] == 5 * longest
    assert lengths[0] > longest
    assert list(lengths) == sorted(set(lengths))


def test_lengths_that_cannot_be_are_refused():
    check, recall = (
        make_task("parity-check", {"longest": 10}),
        make_task("recall", {"keys": 16, "values": 16, "longest": 8}),
    )
    assert unseen_lengths(recall, None)[-1] == 16
    assert unseen_lengths(make_task("parity", {}), "41-500") == ()
    assert unseen_lengths(check, "none") == ()
    for task, text, told in [
        (check, "5-20", "length 5 of 'parity-check' is one of training"),
        (recall, "9-17", "has no length 17: it ends at 16"),
        (check, "20-12", "holds no length"),
        (check, "1e3", "'1e3' is not a length"),
        (check, "20-30/0", "is not a length or a range"),
        (check, "", "is not a length"),
        (check, "11-999999999999", "length 999999999999 is too long"),
    ]:
        with pytest.raises(BadInput, match=told):
            unseen_lengths(task, text)


def test_lengths_a_users_net_cannot_take_are_named(tmp_path):
    (tmp_path / "net.py").write_text("""
import torch
from torch import nn
class Short(nn.Module):
    def __init__(self, vocab, outputs):
        super().__init__()
        self.words, self.places = nn.Embedding(vocab, 8), nn.Embedding(7, 8)
        self.out = nn.Linear(8, outputs)
    def forward(self, x):
        return self.out(self.words(x) + self.places(torch.arange(x.shape[1])))
""")
    run = {**RNN, "net": f"{tmp_path / 'net.py'}:Short", "shape": {}, "steps": 20}
    with pytest.raises(BadInput, match=r"'net.py:Short' cannot run on 'parity-check' at length 8 \(9 tokens\): Ind"):
        learn(**run)
    found = learn(**{**run, "unseen": "6"})
    assert [length for length, _ in found.rows[0]["by_length"]] == [1, 2, 3, 4, 6]


# Weights


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A folder with weights of four members: two that solved it and two that hardly moved."""
    place = tmp_path_factory.mktemp("trained")
    learn(**{**MLP, "rows": 64}, out=place, keep_weights=True)
    return place


def accuracy_over_all_inputs(file: Path) -> float:
    module = load("mlp", features=4, outputs=1, width=8).module
    module.load_state_dict(load_file(file))
    task = make_task("parity", {"bits": 4, "relevant": 2})
    inputs = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=4)))
    truth = torch.tensor([task.solve(row) for row in inputs.tolist()])
    with torch.no_grad():
        return ((module(inputs) >= 0) == (truth >= 0)).double().mean().item()


def test_kept_weights_are_those_of_the_rows_and_score_the_same_again(trained, tmp_path):
    rows = learn(**{**MLP, "rows": 64}, out=trained).rows
    assert [row["status"] for row in rows].count("solved") == 2
    for row in rows:
        file = trained / "weights" / f"{row.cell.key[:16]}.safetensors"
        truth = accuracy_over_all_inputs(file)
        assert row["accuracy"] == pytest.approx(truth, abs=0.04)  # 2048 rows
        assert (truth == 1.0) == (row["status"] == "solved")
        again = [learn(**{**MLP, "rows": 64}, checkpoint=file, out=tmp_path / name) for name in ("a", "b")]
        assert again[0].rows == again[1].rows
        [shown] = again[0].rows
        assert shown["accuracy"] == pytest.approx(truth, abs=0.04)
        assert shown["steps"] == 0
        assert len(learn(**MLP, checkpoint=file, out=tmp_path / "a").rows) == 1


def test_equal_members_have_equal_weights(trained, tmp_path):
    learn(**{**MLP, "rows": 64, "save_every": 1000.0}, out=tmp_path, keep_weights=True)
    files = sorted(file.name for file in (trained / "weights").iterdir())
    assert sorted(file.name for file in (tmp_path / "weights").iterdir()) == files
    assert len(files) == 4
    seen = [load_file(trained / "weights" / name) for name in files]
    for name, weights in zip(files, seen, strict=True):
        again = load_file(tmp_path / "weights" / name)
        assert weights.keys() == again.keys()
        assert all(torch.equal(weights[entry], again[entry]) for entry in weights)
    first = sorted(seen[0])[0]
    assert not torch.equal(seen[0][first], seen[1][first])


def test_weights_that_do_not_fit_are_refused(trained, tmp_path):
    file = next((trained / "weights").glob("*.safetensors"))
    evaluate = {**MLP, "checkpoint": file}
    with pytest.raises(BadInput, match=r"does not fit 'mlp' with this shape.*give the shape it was made with"):
        learn(**{**evaluate, "shape": {"width": 9}})
    with pytest.raises(BadInput, match=r"holds weights of 'mlp', not of 'net.py:Net'"):
        learn(**{**evaluate, "net": net_file(tmp_path)})
    for name, content in (("cut", file.read_bytes()[:100]), ("other", b"no weights"), ("empty", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadInput, match="is not a checkpoint, or it is cut short"):
            learn(**{**evaluate, "checkpoint": tmp_path / name})
    flipped = bytearray(file.read_bytes())
    flipped[-3] ^= 1
    (tmp_path / "flipped").write_bytes(flipped)
    with pytest.raises(BadInput, match="is damaged"):
        learn(**{**evaluate, "checkpoint": tmp_path / "flipped"})
    with pytest.raises(BadInput, match="is a folder"):
        learn(**{**evaluate, "checkpoint": tmp_path})


def test_weights_of_other_programs_are_evaluated_too(tmp_path):
    """A plain state dict in safetensors, without a word about the net."""
    module = load("mlp", features=4, outputs=1, width=8).module
    write_checkpoint(tmp_path / "plain.safetensors", module.state_dict(), {})
    [row] = learn(**{**MLP, "rows": 64}, checkpoint=tmp_path / "plain.safetensors").rows
    assert row["accuracy"] == pytest.approx(accuracy_over_all_inputs(tmp_path / "plain.safetensors"), abs=0.04)


# Curves and tables


def test_tensorboard_shows_the_curves_of_the_rows(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = learn(**{**QUICK, "steps": 60, "to_the_end": True}, tensorboard=tmp_path / "board")
    folders = sorted({file.parent for file in (tmp_path / "board").rglob("events*")})
    assert len(folders) == 2
    shown = {}
    for place in folders:
        events = EventAccumulator(str(place)).Reload()
        loss = {e.step: e.value for e in events.Scalars("loss")}
        shown[place.name.rsplit(maxsplit=1)[-1]] = [(e.step, loss[e.step], e.value) for e in events.Scalars("accuracy")]
        assert place.relative_to(tmp_path / "board").parts[:2] == ("mlp", "parity")
    for row in found.rows:
        curve = shown[row.cell.key[:8]]
        assert len(curve) == 3
        assert torch.allclose(torch.tensor(curve), torch.tensor([list(map(float, look)) for look in row["curve"]]))


def test_a_board_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be made"):
        learn(**QUICK, tensorboard=tmp_path / "file" / "board")


def test_a_frame_has_a_line_per_member(folder):
    found = learn(**QUICK, out=folder)
    table = found.to_pandas()
    assert table["seed"].tolist() == [0, 1]
    assert table["accuracy"].tolist() == [row["accuracy"] for row in found.rows]
    assert table["key"].tolist() == [row.cell.key[:12] for row in found.rows]


def test_the_summary_is_what_its_rows_say(folder):
    found = learn(**{**QUICK, "seeds": 4}, out=folder)
    [entry] = found.summary
    scores = [row["accuracy"] for row in found.rows]
    assert entry["accuracy"]["mean"] == pytest.approx(sum(scores) / 4)
    assert (entry["accuracy"]["max"], entry["accuracy"]["min"]) == (max(scores), min(scores))
    assert entry["solved"]["count"] == sum(row["status"] == "solved" for row in found.rows)
    assert entry["members"] == 4
    assert entry["parameters"] == (4 * 8 + 8) + (8 * 8 + 8) + (8 + 1)


def test_unknown_names_are_of_their_own_kind():
    with pytest.raises(UnknownName):
        learn(**{**QUICK, "task": "nothing"})
    assert keyed([]) == {}
