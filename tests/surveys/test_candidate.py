"""What a survey knows of a net before it measures: kind, polynomial or not, and the size it is given."""

from __future__ import annotations

from dataclasses import replace

import pytest

import theodolite.surveys.candidate as module
from tests.each import each
from theodolite.errors import BadInput
from theodolite.nets import nets
from theodolite.nets.load import load
from theodolite.nets.size import count_parameters
from theodolite.surveys.candidate import candidate, candidates
from theodolite.surveys.run import BUDGET, DEFAULT

from .user_nets import write


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write(tmp_path_factory.mktemp("nets"))


@pytest.mark.parametrize(
    ("name", "kind", "polynomial"),
    [
        ("Square", "vector", True),
        ("Mean", "sequence", False),
        ("Ids", "sequence", False),
        ("Short", "sequence", False),
        ("Recurrent", "sequence", False),
        ("Pooled", "sequence", False),
    ],
)
def test_what_a_users_net_reads_is_found_by_trying(file, name, kind, polynomial):
    found = candidate(f"{file}:{name}")
    assert (found.kind, found.polynomial, found.registered) == (kind, polynomial, False)
    assert found.name == f"nets.py:{name}"
    assert found.source is not None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Said", r"returned a tuple instead of one tensor on a sequence of shape \(2, 6, 4\)"),
        (
            "Crash",
            r"failed \(RuntimeError: no such thing\) on a sequence .* and failed .* on a vector of shape \(2, 4\)",
        ),
        ("NoModule", "built a NoModule instead of an nn.Module"),
    ],
)
def test_a_net_that_runs_on_nothing_is_refused_at_once(file, name, words):
    with pytest.raises(BadInput, match=words):
        candidates([f"{file}:{name}"], DEFAULT, None, None, 8000)


def test_where_the_users_net_fails_the_others_keep_the_presets_size(file):
    _, *others = candidates([f"{file}:Recurrent"], DEFAULT, None, None, 8000)
    assert others[0].target(features=-1, outputs=1, tokens=8) == 8000


def test_a_linear_map_of_every_token_is_a_net_of_vectors(file):
    assert candidate(f"{file}:Needs", {"rooms": 4}).kind == "vector"


@each("name", list(nets))
def test_registered_nets_are_what_their_entries_say(name):
    found = candidate(name)
    assert (found.kind, found.polynomial) == (nets[name].kind, nets[name].polynomial)
    assert found.source is None


def test_without_names_the_common_architectures_have_the_presets_size():
    found = candidates((), DEFAULT, None, None, BUDGET["quick"])
    assert [one.name for one in found] == list(DEFAULT)
    for one in found:
        sizes = one.fitting({"tokens": 8, "features": 4})
        assert one.parameters(**sizes) == pytest.approx(BUDGET["quick"], rel=0.2)


def test_a_users_net_brings_others_of_its_kind_and_size(file):
    own, *others = candidates([f"{file}:Mean"], DEFAULT, {"hidden": 300}, None, BUDGET["quick"])
    assert [one.name for one in others] == ["convolution", "lstm", "transformer", "linear-transformer"]
    for sizes in ({"features": 4, "outputs": 2, "tokens": 8}, {"features": 9, "outputs": 8, "tokens": 8}):
        count = count_parameters(load(own.net, hidden=300, **sizes).module)
        assert own.parameters(**sizes) == count
        for one in others:
            assert one.target(**sizes) == count
            assert one.parameters(**sizes) == pytest.approx(count, rel=0.4)
    assert [one.name for one in candidates([f"{file}:Mean"], DEFAULT, None, None, 8000, alone=True)] == ["nets.py:Mean"]


def test_a_budget_is_for_built_in_nets(file):
    own, *others = candidates([f"{file}:Square"], DEFAULT, None, 3000, BUDGET["quick"])
    assert own.target(features=8) is None
    assert [one.parameters(features=8) for one in others] == [pytest.approx(3000, rel=0.1)]


def test_a_width_that_is_given_stays():
    (found,) = candidates(["mlp"], DEFAULT, {"width": 7}, None, 8000)
    assert found.shape(features=4) == {"width": 7}


def test_nets_that_would_share_a_name_are_refused(file, tmp_path):
    other = write(tmp_path)
    with pytest.raises(BadInput, match=r"two nets are called 'nets.py:Mean'"):
        candidates([f"{file}:Mean", f"{other}:Mean"], DEFAULT, None, None, 8000)


def test_a_constructor_that_needs_more_says_how_to_give_it(file):
    with pytest.raises(BadInput, match=r"'nets.py:Needs' needs 'rooms' to be built: give --arg rooms=VALUE"):
        candidate(f"{file}:Needs")


def test_a_width_is_fitted_once_for_all_sections_and_anew_for_another_budget(monkeypatch):
    fits = []
    monkeypatch.setattr(module, "fit_budget", lambda net, budget, **sizes: fits.append(budget) or {"width": budget})
    (lstm,) = candidates(["lstm"], DEFAULT, None, 8000, 1000)
    asked = [lstm.measured(), lstm.measured(), lstm.shape(features=4), lstm.measured(tokens=4)]
    assert {one["width"] for one in asked} == {8000}
    assert fits == [8000] * 3  # four times asked, at three sizes
    asked[0]["width"] = 1
    assert replace(lstm, budget=500).measured()["width"] == 500
    assert lstm.measured()["width"] == 8000
