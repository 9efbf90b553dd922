"""Models by their name: found in a cache laid out as the hub's own library lays it out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from theodolite import advise
from theodolite.advice.hub import cached, locate
from theodolite.errors import BadInput

from .shapes import GPT2

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for owner in ("models--openai--gpt2", "models--gpt2"):
        snapshot = tmp_path / owner / "snapshots" / COMMIT
        snapshot.mkdir(parents=True)
        (snapshot / "config.json").write_text(json.dumps(GPT2))
        (tmp_path / owner / "refs").mkdir()
        (tmp_path / owner / "refs" / "main").write_text(COMMIT)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "openai/gpt2",
        "gpt2",
        "https://huggingface.co/openai/gpt2",
        "https://hf.co/openai/gpt2/",
        "https://huggingface.co/openai/gpt2/blob/main/config.json",
        f"https://huggingface.co/openai/gpt2/tree/{COMMIT}",
    ],
)
def test_a_name_or_a_page_is_the_cached_configuration(cache, name):
    assert locate(name).read_text() == json.dumps(GPT2)
    assert advise(name).judged.shape.params == 124_439_808


def test_the_library_of_the_hub_finds_the_same(cache):
    hub = pytest.importorskip("huggingface_hub")
    assert hub.try_to_load_from_cache("openai/gpt2", "config.json", cache_dir=cache) == str(cached("openai/gpt2"))


def test_a_path_comes_before_a_name(cache):
    (cache / "gpt2").mkdir()
    (cache / "gpt2" / "config.json").write_text(json.dumps({**GPT2, "n_layer": 3}))
    assert advise("gpt2").judged.shape.depth == 3


@pytest.mark.parametrize("variable", ["HF_HOME", "XDG_CACHE_HOME"])
def test_the_cache_is_where_its_variables_say(tmp_path, monkeypatch, variable):
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.delenv("HUGGINGFACE_HUB_CACHE", raising=False)
    monkeypatch.delenv("HF_HOME", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    from theodolite.advice.hub import cache_folder

    assert cache_folder() == tmp_path / ("hub" if variable == "HF_HOME" else "huggingface/hub")


@pytest.mark.parametrize("name", ["openai/gpt3", "https://huggingface.co/openai/gpt2/blob/v2/config.json"])
def test_what_is_not_cached_is_not_fetched(cache, name):
    with pytest.raises(BadInput, match="cache"):
        locate(name)


@pytest.mark.parametrize("name", ["no/such/config.json", "a/b/c", "config.json", "../x"])
def test_what_is_no_name_stays_a_path(cache, name):
    assert locate(name) == Path(name)


def test_a_ref_that_leads_outside_is_not_followed(cache):
    (cache / "models--gpt2" / "refs" / "main").write_text("../../../etc")
    assert cached("gpt2") is None
