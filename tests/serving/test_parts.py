"""Every part answers what the function behind it gives, and a sentence to whatever else it is asked."""

from __future__ import annotations

import base64
import json
import lzma
import random
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.advice.advice import advise
from theodolite.errors import BadInput
from theodolite.instruments.gradient.signal import signal
from theodolite.instruments.rank.separation import separation_rank
from theodolite.serving.folder import Folder
from theodolite.serving.parts.every import every
from theodolite.serving.requests import Choice, Words
from theodolite.serving.serve import serve
from theodolite.serving.stores import Stores

from .conftest import Client

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
PARTS = {part.id: part for part in every(Folder("."), Stores(Folder(".")))}
NAMES = [f"{part.id}/{answer}".rstrip("/") for part in PARTS.values() for answer in part.answers]


def drawings(shown) -> list[str]:
    """As SVG, also where they are shown as pictures."""
    return [
        one["svg"] if "svg" in one else base64.b64decode(one["src"].partition(",")[2]).decode()
        for one in shown["drawings"]
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_part_answers_before_anything_is_moved(client, name):
    shown = client.part(name)
    assert shown["says"] or shown["facts"]
    for svg in drawings(shown):
        root = ElementTree.fromstring(svg)
        assert root.tag.endswith("svg")
        assert not re.search(r"<script|\son\w+=|javascript:|<foreignObject", svg, re.IGNORECASE)
    for drawing in shown["drawings"]:
        assert drawing["alt"]
        assert " style=" not in drawing.get("svg", "")  # the page's policy would drop it


def test_the_advisor_says_what_advise_says(client):
    shown = client.part("advisor", params=7e9, vocab=32000)
    truth = advise(params=7e9, vocab=32000)
    assert shown["says"] == [truth.headline]
    assert shown["data"]["recommended"]["depth"] == truth.advised.shape.depth
    assert "vocabulary" in client.send("/api/part/advisor", params=1e6, vocab=300000).json["error"]


def test_a_partition_has_the_rank_that_rank_measures(client):
    shown = client.part("partition", tokens=4, width=2, depth=2, partition="0,2|1,3")
    truth = separation_rank("self-attention", partition="0,2|1,3", tokens=4, width=2, depth=2)
    assert (shown["data"]["rank"], shown["data"]["cap"]) == (truth.rank, truth.cap)
    assert str(truth.rank) in shown["says"][0]
    for partition in ("0,1,2,3|", "|0,1", "0,1|1,2,3", "0,1|2", "0,1|2,9", "a|b", "0,1,2,3"):
        sent = client.send("/api/part/partition", tokens=4, partition=partition)
        assert sent.status == 400, partition


def test_a_rank_that_is_not_followed_to_its_end_is_a_lower_bound(client, monkeypatch):
    monkeypatch.setattr("theodolite.serving.parts.partition._MOST", 8)
    shown = client.part("partition", tokens=6, width=2, depth=2, partition="0,1,5|2,3,4")
    assert shown["facts"][0] == ["separation rank", "at least 8"]
    assert "or more" in shown["says"][0]


def test_an_iteration_steps_as_the_map_says(client):
    shown = client.part("iteration", map="logistic", parameter=3.7, first=0.3, step=25)
    z, states = 0.3, [0.3]
    for _ in range(25):
        z = 3.7 * z * (1 - z)
        states.append(z)
    assert [state[0] for state in shown["data"]["states"]] == pytest.approx(states)
    gone = client.part("iteration", map="henon", parameter=4.0, first=2.0, second=2.0, step=60)
    assert "out of bounds" in gone["says"][0]


@pytest.mark.parametrize(("parameter", "period"), [(2.8, 1), (3.2, 2), (3.5, 4)])
def test_the_logistic_map_doubles_its_period(client, parameter, period):
    found = client.part("iteration/ends", map="logistic", parameter=parameter)["data"]
    assert found["period"] == period


def test_the_sawtooth_is_exact_from_as_many_layers_as_folds_on(client):
    for depth, gap, pieces in ((3, True, 8), (4, False, 16), (9, False, 16)):
        data = client.part("sawtooth", folds=4, depth=depth, width=2)["data"]
        assert (data["gap"] > 0, data["pieces"]) == (gap, pieces)
        assert data["most"] == 3**depth
    assert "No network" in client.part("sawtooth", folds=6, depth=1, width=5)["says"][0]
    assert client.part("sawtooth", width=1)["data"]["pieces"] is None


def test_the_spectrum_is_that_of_signal(client):
    shown = client.part("spectrum", net="rnn", width=4, bits=5, loss="hinge")
    truth = signal("rnn", width=4, depth=1, bits=5, loss="hinge")
    assert shown["data"]["by_degree"] == pytest.approx(truth.by_degree)
    share = client.part("spectrum/task", net="rnn", width=4, bits=5, task="parity")["data"]["share"]
    assert 0 <= share <= 1


def test_a_valley_is_read_back_as_it_was_archived(tmp_path):
    kept = RESULTS / "scale-nvidia-h200-2026-11-16.store.db.xz"
    (tmp_path / "scale").mkdir()
    (tmp_path / "scale" / "store.db").write_bytes(lzma.decompress(kept.read_bytes()))
    truth = json.loads((RESULTS / "scale-nvidia-h200-2026-11-16.json").read_text())["sizes"]
    with serve(tmp_path, port=0, wait=False) as page:
        shown = Client(page).part("valley")
    found = shown["data"]["scale"]
    for name in ("size", "best", "interval", "flat", "worse", "enough"):
        assert [one[name] for one in found] == [one[name] for one in truth], name
    assert [p["bits_per_byte"] for p in found[0]["points"]] == pytest.approx(
        [p["bits_per_byte"] for p in truth[0]["points"]]
    )
    assert len(shown["drawings"]) == len(truth)


def test_without_a_valley_it_is_said(client):
    shown = client.part("valley")
    assert "no valley to draw" in shown["says"][0]
    assert shown["drawings"] == []
    assert shown["tables"][0]["rows"]


ODD = ["", "nan", "inf", "-inf", "1e999", "9" * 5000, "٣", "１", "0x10", "1_000", " 3", "3 ", "null", "%00", "\0"]
JUNK = st.one_of(
    st.text(max_size=30),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(ODD),
)


@settings(max_examples=120)
@given(data=st.data(), name=st.sampled_from(NAMES))
def test_whatever_is_asked_of_a_part_is_a_sentence(client, data, name):
    part = PARTS[name.partition("/")[0]]
    names = [control.name for control in part.controls]
    wrong = data.draw(st.dictionaries(st.sampled_from([*names, "nothing"]), JUNK, min_size=1), label="asked")
    wrong.setdefault("nothing", data.draw(JUNK))  # so that no long computation begins
    sent = client.send(f"/api/part/{name}", **wrong)
    assert sent.status in (400, 414), sent.body
    assert sent.json["error"]
    assert "\n" not in sent.json["error"].strip()


@settings(max_examples=150)
@given(data=st.data())
def test_a_control_reads_what_is_within_its_limits_and_refuses_the_rest(data):
    part = data.draw(st.sampled_from([part for part in PARTS.values() if part.controls]))
    control, text = data.draw(st.sampled_from(part.controls)), data.draw(JUNK)
    try:
        value = control.read(text)
    except BadInput:
        return
    if hasattr(control, "low"):
        assert control.low <= value <= control.high


@settings(max_examples=100)
@given(
    address=st.sampled_from(["/api/runs", "/api/compare", "/report", "/api/tables/x", "/api/places"]),
    asked=st.dictionaries(
        st.sampled_from(["place", "net", "task", "status", "where", "lines", "page", "first", "second", "metric", "x"]),
        JUNK,
    ),
)
def test_whatever_is_asked_of_the_folder_is_a_sentence(client, address, asked):
    sent = client.send(address, **asked)
    assert sent.status in (200, 400, 404), sent.body
    assert sent.status == 200 or sent.json["error"]


@pytest.mark.parametrize("name", NAMES)
def test_at_the_ends_of_its_sliders_a_part_answers(client, name):
    part = PARTS[name.partition("/")[0]]
    generator = random.Random(0)
    for end in ("low", "high", "drawn", "drawn", "drawn", "drawn"):
        asked = {}
        for control in part.controls:
            if isinstance(control, Choice):
                asked[control.name] = generator.choice(control.options)
            elif not isinstance(control, Words):
                value = generator.uniform(control.low, control.high) if end == "drawn" else getattr(control, end)
                asked[control.name] = value if isinstance(control.default, float) else int(value)
        if part.id == "partition":
            tokens = asked["tokens"]
            asked["partition"] = "|".join(",".join(str(i) for i in range(tokens) if i % 2 == side) for side in (0, 1))
        sent = client.send(f"/api/part/{name}", **asked)
        assert sent.status == 200 or (sent.status == 400 and sent.json["error"]), (asked, sent.body)
