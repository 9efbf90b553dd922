"""Claims as one campaign: the same verdicts from one process, from several and from a store, also after kill −9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from theodolite.claims.check import check_claims
from theodolite.claims.comparing import members, scores, trained
from theodolite.claims.contract import Claim, claims
from theodolite.claims.rule import Rule, Verdict
from theodolite.errors import BadInput, StoreError
from theodolite.lab.cell import Cell
from theodolite.lab.running import Running
from theodolite.lab.store.store import Store

# Cells that say which process measured them; the third waits until it is told to go on.
HELD = """
import json, os, sys, time
from pathlib import Path
from theodolite.claims.check import check_claims
from theodolite.claims.contract import Claim, claims
from theodolite.claims.rule import Rule, Verdict
from theodolite.lab.cell import Cell
from theodolite.measures import measures

folder = Path(sys.argv[1])

def held(config):
    while config["number"] == 2 and not (folder / "go").exists():
        time.sleep(0.01)
    return {"parent": os.getppid()}

def decide(rows):
    return Verdict("holds", None, [row["parent"] for row in rows], "")

measures.add("held", held)
rule = Rule("r", lambda: [Cell("held", {"number": n}) for n in range(6)], decide)
claims.add("X", Claim("X", "s", "q", "p", "theorem", rule))
if __name__ == "__main__":
    (found,) = check_claims(["X"], out=folder / "store", workers=2)
    print(json.dumps([os.getpid(), found["measured"]]))
"""


def finished(folder: Path) -> int:
    try:
        with Store(folder, must_exist=True) as store:
            return len(store.rows())
    except StoreError:  # not made yet
        return 0


def test_what_was_finished_before_kill_9_is_not_measured_again(tmp_path):
    script = tmp_path / "held.py"
    script.write_text(HELD)
    command = [sys.executable, str(script), str(tmp_path)]
    killed = subprocess.Popen(command)
    try:
        while finished(tmp_path / "store") < 5:  # the other worker measures all the rest meanwhile
            assert killed.poll() is None
            time.sleep(0.05)
    finally:
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
    (tmp_path / "go").touch()
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    pid, parents = json.loads(again.stdout)
    assert parents == [killed.pid] * 2 + [pid] + [killed.pid] * 3


def test_verdicts_and_figures_are_the_same_from_several_processes_and_from_a_store(tmp_path):
    ids = ["T8", "G2"]
    alone = check_claims(ids)
    kept = check_claims(ids, out=tmp_path, workers=2)
    assert check_claims(ids[::-1], out=tmp_path) == kept[::-1], "the seconds too: nothing was measured again"
    for one in (alone, kept):
        for result in one:
            assert result.pop("seconds") > 0
            assert result.pop("finished") > result["registered"]
    assert alone == kept


def test_what_is_kept_decides_as_before_and_nothing_is_measured(tmp_path, monkeypatch):
    measured = check_claims(["T8"], out=tmp_path / "claims")
    monkeypatch.setattr(Running, "run", lambda *_, **__: pytest.fail("something was measured"))
    assert check_claims(["T8"], out=tmp_path / "claims", kept=True) == measured
    with pytest.raises(BadInput, match="cells of T1 are not kept there: measure them without --kept"):
        check_claims(["T1"], out=tmp_path / "claims", kept=True)
    with pytest.raises(BadInput, match=r"there is no folder '.*nowhere': .* name it with --out"):
        check_claims(["T8"], out=tmp_path / "nowhere", kept=True)


def test_members_of_a_claim_are_trained_together_and_kept_one_by_one(tmp_path, monkeypatch):
    def cells():
        fast, slow = (
            trained("mlp", {"width": 16}, "majority", {"bits": 5}, 2, rate, steps=300, batch=32, every=100)
            for rate in (1e-2, 1e-9)
        )
        return [*fast, *slow]

    def decide(rows):
        found = {rate: scores(seeds, "accuracy") for rate, seeds in members(rows, lambda c: c["lr"]).items()}
        good = min(found[1e-2]) >= 0.99 > max(found[1e-9])
        return Verdict("holds" if good else "fails", None, found, "")

    monkeypatch.setitem(claims._items, "X", Claim("X", "s", "q", "p", "theorem", Rule("r", cells, decide)))
    (first,) = check_claims(["X"], out=tmp_path)
    assert (first["verdict"], first["cells"]) == ("holds", 4)
    with Store(tmp_path, must_exist=True) as store:
        rows = store.rows()
    assert len({row.facts["group"] for row in rows}) == 1
    assert len(rows) == len({row.cell.seed for row in rows}) == 4
    assert check_claims(["X"], out=tmp_path) == [first]


def test_heavy_claims_are_measured_first_and_results_come_in_the_order_asked_for(tmp_path, monkeypatch):
    def cell(depth):
        shape = {"depth": depth, "width": 2, "tokens": 2}
        return Cell("line-degree", {"net": "self-attention", "shape": shape})

    for name, depths, heavy in (("X", (1,), False), ("Y", (2, 3), True)):
        rule = Rule(
            "r",
            lambda depths=depths: [cell(depth) for depth in depths],
            lambda rows: Verdict("holds", None, [row["degree"] for row in rows], ""),
        )
        made = Claim(name, "s", "q", "p", "theorem", rule, heavy=heavy)
        monkeypatch.setitem(claims._items, name, made)
    found = check_claims(["X", "Y"], out=tmp_path)
    assert [(one["id"], one["measured"]) for one in found] == [("X", [3]), ("Y", [9, 27])]
    with Store(tmp_path, must_exist=True) as store:
        assert [row.cell.config["shape"]["depth"] for row in store.rows()] == [2, 3, 1]


@pytest.mark.parametrize("option", [{"workers": 0}, {"engine": "lokal"}])
def test_options_that_make_no_sense_are_refused_before_anything_is_planned(option):
    with pytest.raises(BadInput, match=r"workers must be|lokal"):
        check_claims(["T8"], **option)
