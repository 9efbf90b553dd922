"""The command line starts light, knows its commands and is strict about options."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

COMMANDS = (
    ["survey"],
    ["advise"],
    ["discover"],
    ["rank"],
    ["verify"],
    ["degree"],
    ["express"],
    ["signal"],
    ["learn"],
    ["scale"],
    ["runs"],
    ["compare"],
    ["fixed-points"],
    ["reproduce"],
    ["claims", "list"],
    ["claims", "check"],
    ["claims", "page"],
    ["nets"],
    ["tasks"],
)


@pytest.mark.parametrize("command", [[], *COMMANDS])
def test_every_command_explains_itself(theodolite, command):
    outcome = theodolite(*command, "--help")
    assert outcome.code == 0
    assert "Usage" in outcome.out


def test_help_does_not_import_heavy_packages():
    code = (
        "import sys\n"
        "sys.argv = ['theodolite', 'rank', '--help']\n"
        "from theodolite.cli.main import run\n"
        "try:\n    run()\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'numpy', 'jaxtyping', 'jinja2'} & set(sys.modules)\n"
        "print('HEAVY', sorted(heavy), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True)
    assert "HEAVY []" in done.stderr


def test_a_misspelt_option_names_the_near_one(theodolite):
    outcome = theodolite("rank", "self-attention", "--dpeth", "2")
    assert outcome.code == 2
    assert "--depth" in outcome.err


def test_version(theodolite):
    from theodolite import __version__

    assert theodolite("--version").out.strip() == f"theodolite {__version__}"


def test_the_module_is_the_command_too():
    run = subprocess.run([sys.executable, "-m", "theodolite", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("theodolite ")


def test_nets_and_tasks_list_the_registries(theodolite):
    from theodolite.nets import nets
    from theodolite.tasks import tasks

    assert [n["name"] for n in json.loads(theodolite("nets", "--json").out)] == sorted(nets)
    assert [t["name"] for t in json.loads(theodolite("tasks", "--json").out)] == sorted(tasks)
    shown = theodolite("nets").out
    for name, entry in nets.items():
        assert name in shown
        assert entry.summary.split()[0] in shown


def test_an_internal_fault_is_one_line_and_exit_code_three(theodolite, monkeypatch):
    def broken() -> None:
        raise ZeroDivisionError("first line\nsecond line")

    monkeypatch.setattr("theodolite.nets.list_nets", broken)
    outcome = theodolite("nets")
    assert outcome.code == 3
    assert outcome.err.startswith("internal error: ZeroDivisionError: first line (")
    assert outcome.err.count("\n") == 1


def test_public_names():
    import theodolite

    for name in dir(theodolite):
        assert getattr(theodolite, name) is not None
    assert set(theodolite.__all__) < set(dir(theodolite))  # pyright: ignore[reportAttributeAccessIssue]
    assert theodolite.run_survey is theodolite.survey
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = theodolite.nothing  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("words", "kind", "code"),
    [
        (["advise", "no/such/config.json"], "BadInput", 2),
        (["rank", "no-such-net"], "UnknownName", 2),
        (["rank", "self-attention", "--dpeth", "2"], "UsageError", 2),
        (["verify", "no-such-file"], "BadInput", 2),
    ],
)
def test_under_json_an_error_is_one_document_beside_the_sentence(theodolite, words, kind, code):
    outcome = theodolite(*words, "--json")
    found = json.loads(outcome.out)
    assert found["schema"] == 1
    assert (found["error"]["kind"], found["error"]["exit_code"]) == (kind, code)
    assert outcome.code == code
    assert outcome.err == f"error: {found['error']['message']}\n"
    assert theodolite(*words).out == ""


def test_under_json_a_fault_of_ours_is_a_document_too(theodolite, monkeypatch):
    monkeypatch.setattr("theodolite.advice.advice.advise", lambda *a, **k: 1 / 0)
    outcome = theodolite("advise", "--params", "1e9", "--json")
    assert outcome.code == 3
    assert json.loads(outcome.out)["error"]["kind"] == "InternalError"


def test_a_command_that_fails_on_its_finding_prints_its_document_only(theodolite, monkeypatch):
    from theodolite.cli import options
    from theodolite.errors import Finding

    def found(**_):
        options.print_json({"verdict": "fails"})
        raise Finding("T1 failed as measured")

    monkeypatch.setattr("theodolite.nets.list_nets", found)
    outcome = theodolite("nets", "--json")
    assert outcome.code == 1
    assert json.loads(outcome.out) == {"verdict": "fails"}
    assert theodolite("nets", "--help").code == 0


def test_help_works_beside_json(theodolite):
    outcome = theodolite("nets", "--json", "--help")
    assert outcome.code == 0
    assert "Usage" in outcome.out
