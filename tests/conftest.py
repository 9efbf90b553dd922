"""For every test: shapes in signatures are checked at run time, one torch thread, slow tests on request."""

from __future__ import annotations

import gc
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import pytest

import tests.shapes

gc.set_threshold(20_000, 10, 10)  # garbage is looked for seldom: at the usual rate that takes a seventh of the time

ROOT = Path(__file__).parents[1]
# Annotations such as `Float[Tensor, "batch token width"]` become checks, which must be there before the first import.
SHAPED = [
    ".".join(file.relative_to(ROOT / "src").with_suffix("").parts)
    for file in (ROOT / "src").rglob("*.py")
    if "from jaxtyping import" in file.read_text(encoding="utf-8")
]
assert not set(SHAPED) & set(sys.modules), "a module was imported before its annotations could be checked"
jaxtyping.install_import_hook(SHAPED, f"{tests.shapes.__name__}.checked")
# The tests of these rooms check them. In all the others they would cost a quarter of the time, and say nothing new.
CHECKED = ("advice", "claims", "instruments/gradient", "nets", "structure", "training", "witness")

import torch  # noqa: E402
from hypothesis import settings  # noqa: E402

settings.register_profile("theodolite", deadline=None, derandomize=True, database=None, max_examples=60)
settings.load_profile("theodolite")

ON_REQUEST = ("slow", "gpu")


def pytest_configure(config: pytest.Config) -> None:
    torch.set_num_threads(1)
    jaxtyping.config.update("jaxtyping_disable", True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    torch.set_num_threads(1)  # whatever a command in this process was told
    room = item.path.relative_to(ROOT / "tests").as_posix()
    jaxtyping.config.update("jaxtyping_disable", not room.startswith(CHECKED))


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()  # what is loaded stays


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    asked = set(re.findall(r"\w+", config.option.markexpr or ""))
    for item in items:
        for mark in ON_REQUEST:
            if item.get_closest_marker(mark) and mark not in asked:
                item.add_marker(pytest.mark.skip(reason=f"run with -m {mark}"))
        if item.get_closest_marker("gpu") and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="there is no CUDA device"))


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what is refused in a sentence of our own."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(scope="session")
def inductor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where torch's compiler keeps what is the same for all programs: the tests of a run, in whatever process, share
    it, and no others."""
    own = tmp_path_factory.getbasetemp()
    return (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "inductor"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte, where the system lets us make one."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("mounting a file system is not permitted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The system's Chromium; a test that needs it is skipped, with the reason, where it is not there."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no chromium on the path")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
