"""`theodolite claims` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def test_list_has_every_claim_with_its_rule(theodolite):
    from theodolite.claims.contract import ordered

    found = json.loads(theodolite("claims", "list", "--json").out)
    assert [c["id"] for c in found] == [claim.id for claim in ordered()]
    assert all(c["rule"] and c["statement"] and c["source"] for c in found)
    assert "T1" in theodolite("claims", "list").out


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    """One store for the claims that several tests check."""
    return tmp_path_factory.mktemp("claims")


def test_check_prints_verdicts(theodolite, out):
    outcome = theodolite("claims", "check", "T6a", "T8", "--json", "--out", out)
    rows = json.loads(outcome.out)
    assert outcome.code == 0
    assert [r["id"] for r in rows] == ["T6a", "T8"]
    assert all(set(r) >= {"id", "verdict", "predicted", "measured", "detail"} for r in rows)
    assert {r["verdict"] for r in rows} == {"holds"}
    assert "T6a holds" in theodolite("claims", "check", "T6a", "--out", out).out


def test_the_scoreboard_is_written_as_a_page(theodolite, out):
    outcome = theodolite("claims", "check", "T6b", "T8", "--out", out)
    assert outcome.code == 0
    page = (out / "report.html").read_text()
    assert "Theory scoreboard" in page
    assert "theodolite claims check T6b T8" in page
    assert (out / "store.db").is_file()


def test_verdicts_are_kept_beside_others_and_make_the_page_of_claims(theodolite, tmp_path, out):
    kept, markdown = tmp_path / "claims.json", tmp_path / "claims.md"
    for name in ("T8", "T6b", "T8"):
        assert theodolite("claims", "check", name, "--archive", kept, "--out", out).code == 0
    assert [result["id"] for result in json.loads(kept.read_text())["results"]] == ["T6b", "T8"]
    assert theodolite("claims", "page", kept, "--markdown", markdown).code == 0
    text = markdown.read_text()
    assert "| T6b | fails | `" in text
    assert "| T8 | holds | `" in text
    assert "claims: holds 1, fails 1, not run " in text
    assert theodolite("claims", "page", kept).out == text
    earlier = [{**result, "record": "0" * 16} for result in json.loads(kept.read_text())["results"]]
    kept.write_text(json.dumps({"results": earlier}))
    assert "| T8 | not run | `" in theodolite("claims", "page", kept).out, "the verdict of another rule"
    kept.write_text("[]")
    refused = theodolite("claims", "page", kept)
    assert refused.code == 2
    assert "claims.json' is no file of results" in refused.err
    refused = theodolite("claims", "check", "T8", "--archive", tmp_path / "nowhere" / "claims.json")
    assert refused.code == 2
    assert "make it first" in refused.err


def test_strict_fails_on_a_claim_that_fails(theodolite, out):
    assert theodolite("claims", "check", "T6b", "--out", out).code == 0
    strict = theodolite("claims", "check", "T6b", "--strict", "--out", out)
    assert strict.code == 1
    assert "T6b failed" in strict.err


def test_which_claims_must_be_said(theodolite):
    assert theodolite("claims", "check").code == 2
    assert theodolite("claims", "check", "T4", "--all").code == 2
    unknown = theodolite("claims", "check", "T99")
    assert unknown.code == 2
    assert "T9" in unknown.err or "known: T1" in unknown.err
