"""Two surveys side by side: what counts as a change, what is left out, and files that are no survey."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from theodolite.errors import BadInput
from theodolite.report import Answer
from theodolite.surveys import saved
from theodolite.surveys.against import Change, against, paired
from theodolite.surveys.run import survey
from theodolite.surveys.saved import Saved

BASE = Answer(
    "lstm", "Does it?", "partly", "1/4", ability="recall", value="0.50", number=0.5, interval=(0.4, 0.6), setting="s"
)

EMPTY = {"schema": 1, "nets": [], "preset": "quick", "command": "", "answers": [], "facts": {}}


def kept(*answers: Answer, nets: tuple[str, ...] = ("lstm",), parameters: int = 100) -> Saved:
    return Saved(nets, "quick", "theodolite survey lstm", answers, {nets[0]: {"parameters": parameters}})


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        (BASE, "as before"),
        (replace(BASE, standing="yes"), "changed"),
        (replace(BASE, standing="unknown"), "as before"),  # the same number: what is not known is no change
        (replace(BASE, number=0.7, interval=(0.61, 0.8)), "changed"),
        (replace(BASE, number=0.7, interval=(0.55, 0.8)), "not told apart"),
        (replace(BASE, number=0.5, interval=None), "as before"),
        (replace(BASE, number=0.6, interval=None), "changed"),
        (replace(BASE, number=None, interval=None, text="2/4"), "not told apart"),
    ],
)
def test_a_change_is_another_mark_or_intervals_that_do_not_meet(after, verdict):
    assert Change("lstm", "lstm", BASE, after).verdict == verdict


def test_other_settings_and_lone_answers_are_left_out_and_counted():
    before = kept(BASE, replace(BASE, ability="copy"), replace(BASE, ability="old"), nets=("lstm", "gru"))
    now = kept(
        replace(BASE, standing="yes", number=1.0, interval=(0.9, 1.0)),
        replace(BASE, ability="copy", setting="other steps", standing="yes"),
        parameters=120,
    )
    found = against("OLD", before, now)
    assert found.headline == (
        "1 of 1 answers changed, 0 are as before; left out: 1 measured with another setting; 1 asked in one survey "
        "only; networks of one survey only: gru. lstm, recall: ◐ 0.5 (0.4–0.6) → ✓ 1 (0.9–1)."
    )
    assert found.costs == (("lstm", "parameters", 100, 120),)
    answers, costs = found.summary().tables
    assert [row["verdict"] for row in answers.rows] == ["changed"]
    assert costs.rows[0]["after"] == 120
    assert against("OLD", before, kept(replace(BASE, setting="x"))).headline.startswith("Nothing can be compared with")


def test_networks_of_other_names_are_compared_where_one_is_left_on_either_side():
    assert paired(["lstm", "a.py:Old"], ["a.py:New", "lstm"]) == {"a.py:New": "a.py:Old", "lstm": "lstm"}
    assert paired(["gru", "rnn"], ["lstm"]) == {}


def test_two_that_are_left_and_were_asked_other_things_are_not_compared():
    asked = lambda net, *abilities: [replace(BASE, net=net, ability=one) for one in abilities]
    old = kept(*asked("mlp", "rank", "majority", "carry"), nets=("mlp",))
    found = against("OLD", old, kept(*asked("lstm", "rank", "copy", "causality")))
    assert (found.changes, found.costs, found.unpaired) == ((), (), ("lstm", "mlp"))
    assert len(against("OLD", old, kept(*asked("lstm", "rank", "majority", "copy"))).changes) == 2


def test_a_survey_is_compared_with_the_one_in_its_folder(tmp_path):
    first = survey("sum-of-products", only=["separation-rank", "symmetry"], out=tmp_path / "out")
    assert first.against is None
    again = survey("sum-of-products", only=["separation-rank"], out=tmp_path / "out", against=tmp_path / "out")
    assert again.against is not None
    assert [change.verdict for change in again.against.changes] == ["as before"]
    assert again.against.one_sided == 2
    more = survey(
        "sum-of-products", args={"terms": 4}, only=["separation-rank"], out=tmp_path / "b", against=tmp_path / "out"
    )
    assert more.against is not None
    assert "separation rank (exact): ✓ 3 → ✓ 4" in more.against.headline


def test_a_folder_without_a_survey_and_networks_that_share_nothing_are_refused_at_once(tmp_path):
    with pytest.raises(BadInput, match=r"holds no survey \(survey.json\): give the folder"):
        survey("sum-of-products", against=tmp_path)
    saved.write(tmp_path, kept(BASE, nets=("gru", "rnn")))
    with pytest.raises(BadInput, match="is of gru, rnn, none of which is surveyed now"):
        survey("sum-of-products", against=tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "not json",
        '{"schema": 2}',
        "[" * 100_000,
        '{"schema": ' + "9" * 5000 + "}",
        json.dumps({**EMPTY, "nets": "lstm"}),
        json.dumps({**EMPTY, "answers": [{"standing": "maybe"}]}),
        json.dumps({**EMPTY, "answers": [{**asdict(BASE), "number": "1"}]}),
        json.dumps({**EMPTY, "facts": {"a": {"b": [1]}}}),
        json.dumps({**EMPTY, "facts": {"a": {"b": float("nan")}}}),
        "\xff\xfe",
    ],
)
def test_what_is_no_survey_is_refused_in_a_sentence(tmp_path, text):
    (tmp_path / saved.FILE).write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInput, match="is no survey that can be read") as caught:
        saved.read(tmp_path)
    assert "\n" not in str(caught.value)


def test_what_is_written_is_what_is_read(tmp_path):
    whole = kept(BASE, replace(BASE, ability="x", agrees=True, published="0.5 (a paper)", number=None, interval=None))
    saved.write(tmp_path, whole)
    assert saved.read(tmp_path) == whole
