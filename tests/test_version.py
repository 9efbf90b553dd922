"""What a row says of the code that made it, against git itself."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from theodolite import version
from theodolite.measurement import Provenance


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is the truth here, and it is not installed")
    root = tmp_path / "checkout"
    (root / "src" / "theodolite").mkdir(parents=True)
    (root / "pyproject.toml").touch()
    (root / "src" / "theodolite" / "version.py").write_text("1")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    return root


def seen_from(package: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str | None, str]:
    monkeypatch.setattr(version, "_PACKAGE", package)
    return version.commit.__wrapped__(), version.package_hash.__wrapped__()


def test_the_commit_is_the_one_git_names(checkout, monkeypatch):
    package = checkout / "src" / "theodolite"
    first = git(checkout, "rev-parse", "HEAD")
    assert seen_from(package, monkeypatch)[0] == first
    git(checkout, "pack-refs", "--all")
    assert seen_from(package, monkeypatch)[0] == first
    git(checkout, "commit", "-q", "--allow-empty", "-m", "second")
    second = git(checkout, "rev-parse", "HEAD")
    git(checkout, "worktree", "add", "-q", "-b", "feature/one", "../beside", first)
    assert seen_from(package, monkeypatch)[0] == second != first
    assert seen_from(checkout.parent / "beside" / "src" / "theodolite", monkeypatch)[0] == first
    git(checkout, "checkout", "-q", "--detach", first)
    assert seen_from(package, monkeypatch)[0] == first


def test_an_installed_package_does_not_take_the_commit_of_the_project_it_lies_in(checkout, monkeypatch):
    """As in a virtual environment inside somebody's repository."""
    installed = checkout / ".venv" / "site-packages" / "theodolite"
    shutil.copytree(checkout / "src" / "theodolite", installed)
    commit, package = seen_from(installed, monkeypatch)
    assert commit is None
    assert package == seen_from(checkout / "src" / "theodolite", monkeypatch)[1]


def test_an_edit_that_nobody_committed_is_seen(checkout, monkeypatch):
    package = checkout / "src" / "theodolite"
    commit, before = seen_from(package, monkeypatch)
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "version.pyc").write_text("2")
    assert seen_from(package, monkeypatch) == (commit, before)
    (package / "version.py").write_text("2")
    assert seen_from(package, monkeypatch)[1] != before


def test_provenance_says_which_code_it_is():
    here = Provenance.here(0, "cpu")
    assert (here.version, here.commit, here.package) == (version.__version__, version.commit(), version.package_hash())
    assert len(version.package_hash()) == 16


def test_the_lowest_versions_tested_are_those_declared():
    root = Path(__file__).parents[1]
    declared = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    lowest = dict(line.split(">=") for line in declared)
    lines = (root / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert tested.keys() == lowest.keys()
    for name in lowest.keys() - {"torch"}:
        assert f"{tested[name]}.".startswith(f"{lowest[name]}."), f"{name}: {tested[name]} for {lowest[name]}"
