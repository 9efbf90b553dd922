"""Records of rules: registered before they are measured by, and rows from before do not count."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

import pytest

from theodolite.claims import records
from theodolite.claims.contract import FINDINGS, Claim, Kind, claims, ordered
from theodolite.claims.judge import judge, list_claims
from theodolite.claims.records import Change, Record, registered, unregistered, update
from theodolite.claims.rule import Rule, Statistics, Verdict
from theodolite.errors import BadInput
from theodolite.lab.cell import Cell, Row

LONG = ("G15", "G16")  # planning their cells at full size builds every network of a table


def check_registered(claim: Claim, size) -> None:
    found = unregistered(claim, size)
    assert found is None, (
        f"the rule or the cells of {claim.id} ({size}) changed and have the hash {found}: register that, before you "
        f'measure by them, with `python -m theodolite.claims.records --update {claim.id} --why "…"`'
    )


@pytest.mark.parametrize("claim", ordered(), ids=lambda claim: claim.id)
def test_every_rule_is_registered_as_it_is(claim):
    check_registered(claim, "quick")
    if claim.full is not None and claim.id not in LONG:
        check_registered(claim, "full")


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_rules_at_the_size_of_tables_are_registered_as_they_are(name):
    check_registered(claims[name], "full")


def test_every_record_is_of_a_rule_and_every_claim_has_its_words():
    known = json.loads(records.FILE.read_text(encoding="utf-8"))
    assert list(known) == [claim.id for claim in ordered()]
    for claim in ordered():
        assert set(known[claim.id]) == set(claim.sizes)
        assert claim.kind in get_args(Kind)
        assert bool(claim.quote) == (claim.kind != "ours"), f"{claim.id} needs the source's words"


RULE = Rule("a rule", lambda: [Cell("m", {"n": 1})], lambda rows: Verdict("holds", None, None, "said"))


def test_a_record_changes_with_rule_statistics_and_cells_and_not_with_the_code_of_a_net():
    cells = [Cell("m", {"n": 1, "source": "abc"}), Cell("m", {"n": 2})]
    own = RULE.record(cells)
    assert own == RULE.record([Cell("m", {"n": 1, "source": "def"}), Cell("m", {"n": 2})])
    others = [
        replace(RULE, words="another").record(cells),
        replace(RULE, statistics=Statistics("9 seeds", "Holm")).record(cells),
        replace(RULE, statistics=Statistics("9 seeds", "Holm", "two stages")).record(cells),
        RULE.record(cells[:1]),
        RULE.record(cells[::-1]),
    ]
    assert len({own, *others}) == 6


@pytest.fixture
def claim(monkeypatch) -> Claim:
    made = Claim("X", "s", "q", "p", "theorem", RULE)
    record = Record(RULE.record(RULE.cells()), "2026-11-16T12:00:00+00:00")
    monkeypatch.setattr("theodolite.claims.judge.registered", lambda id, size="quick": record)
    return made


def row(finished: str | None, n: int = 1) -> Row:
    return Row(Cell("m", {"n": n}), {}, None, {} if finished is None else {"finished": finished})


def test_rows_from_before_the_rule_do_not_count(claim):
    assert judge(claim, [row("2026-11-16T12:00:00.500+00:00")])["verdict"] == "holds"
    assert judge(claim, [row(None)])["verdict"] == "holds", "measured just now, not kept"
    told = judge(claim, [row("2026-11-16T11:59:59.999+00:00")])
    assert told["verdict"] == "not run"
    assert "1 of 1 rows are from before the rule" in told["detail"]
    assert "measure anew" in told["detail"]


def test_a_rule_that_is_not_the_registered_one_decides_nothing(claim):
    told = judge(claim, [row(None, n=2)])
    assert (told["verdict"], told["record"]) == ("not run", RULE.record([Cell("m", {"n": 2})]))
    assert "--update X" in told["detail"]


def test_what_nobody_claims_can_neither_hold_nor_fail(claim):
    with pytest.raises(ValueError, match="X is a task"):
        judge(replace(claim, kind="task"), [row(None)])
    found = replace(RULE, decide=lambda rows: Verdict("not a claim", None, None, "found"))
    for kind in FINDINGS:
        assert judge(replace(claim, kind=kind, quick=found), [row(None)])["verdict"] == "not a claim"
    with pytest.raises(ValueError, match="cannot be said to be 'not a claim'"):
        judge(replace(claim, quick=found), [row(None)])


def test_a_hash_of_the_same_date_is_the_record_in_another_form():
    record = Record("b", "2026-11-16", (Change("z", "2026-11-15", "new"), Change("a", "2026-11-16", "form")))
    assert [record.covers(hash) for hash in ("a", "b", "z", None)] == [True, True, False, False]


def test_an_update_keeps_what_was_before_and_why(tmp_path, monkeypatch):
    file = tmp_path / "records.json"
    file.write_text(records.FILE.read_text(encoding="utf-8"), encoding="utf-8")
    before = registered("T8")
    known = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({"T0": known["T8"], **known}), encoding="utf-8")
    assert update(["T8"], "nothing", file) == []
    assert json.loads(file.read_text(encoding="utf-8")) == known, "a claim that is no more has no record"
    monkeypatch.setitem(claims._items, "T8", replace(claims["T8"], quick=replace(claims["T8"].quick, words="other")))
    assert unregistered(claims["T8"], "quick") is not None
    with pytest.raises(BadInput, match="--why"):
        update(["T8"], " ", file)
    assert update(["T8", "T2"], "a better rule", file) == ["T8 (quick)"]
    entry = json.loads(file.read_text(encoding="utf-8"))["T8"]["quick"]
    assert before is not None
    assert entry["hash"] != before.hash
    assert entry["date"] > before.date
    assert entry["history"][-1] == {"hash": before.hash, "date": before.date, "why": "a better rule"}
    assert registered("T8") == before, "another file was written"


def test_records_stand_in_the_list_of_claims():
    listed = {claim["id"]: claim for claim in list_claims()}
    record = registered("S8", "full")
    assert record is not None
    assert (listed["S8"]["full"]["record"], listed["S8"]["full"]["registered"]) == (record.hash, record.date)
    assert listed["S8"]["record"] == registered("S8").hash  # pyright: ignore[reportOptionalMemberAccess]
