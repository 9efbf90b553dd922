"""Which code a net is: it changes with everything of the user's that the net runs, and with nothing else."""

from __future__ import annotations

import importlib
import itertools
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from tests.each import each
from theodolite.bench.learn import learn
from theodolite.nets import fingerprint
from theodolite.nets.from_file import named_in_file
from theodolite.nets.load import load
from theodolite.tasks.contract import make_task
from theodolite.training.pairing import pair

from ..lab.small_runs import MLP

NET = """
{imports}
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, features, outputs, width=4):
        super().__init__()
        self.inner, self.outer = nn.Linear(features, width), nn.Linear(width, outputs)

    def forward(self, x):
        {inside}
        return self.outer({scale} * torch.tanh(self.inner(x)))
"""
_numbers = itertools.count()


class Project:
    """A folder of modules of names that no other test has; `{0}` in their texts is what makes the names theirs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tag = folder, f"t{next(_numbers)}_{folder.name[-3:]}".replace("-", "_")

    def write(self, path: str, text: str) -> Path:
        file = self.folder / path.format(self.tag)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text.replace("TAG", self.tag)))
        return file

    def net(self, imports: str = "", scale: str = "1.0", inside: str = "pass") -> str:
        return f"{self.write('net.py', NET.format(imports=imports, scale=scale, inside=inside))}:Net"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.syspath_prepend(tmp_path)
    return Project(tmp_path)


def code(net: str) -> str:
    return named_in_file(net).code


def changes(project: Project, net: str, path: str, text: str) -> bool:
    """Whether writing this text changes which code the net is; unchanged, it is the same twice."""
    before = code(net)
    assert code(net) == before
    project.write(path, text)
    return code(net) != before


def test_after_a_change_in_a_module_it_imports_a_net_is_trained_again(project):
    """The scenario in which a store answered for code that was not there any more."""
    project.write("{0}_scale.py", "FACTOR = 1.0")
    net = project.net("import TAG_scale", "TAG_scale.FACTOR")
    run = {**MLP, "net": net, "lr": 1e-2, "steps": 20, "out": project.folder / "runs"}
    first = learn(**run)
    assert (first.reused, learn(**run).reused) == (0, 2)
    project.write("{0}_scale.py", "FACTOR = 1.0 * 0")
    again = learn(**run)
    assert again.reused == 0
    assert again.rows != first.rows
    assert again.rows == learn(**{**run, "out": project.folder / "fresh"}).rows  # what a store without a past says
    project.write("{0}_scale.py", "FACTOR = 1.0")
    assert learn(**run).reused == 2


def test_another_process_says_the_same_and_so_do_workers(project):
    """A key is of the code alone: not of the folder, the process, or what else that one has imported."""
    project.write("{0}_scale.py", "import json\nFACTOR = 1.0")
    net = project.net("import TAG_scale", "TAG_scale.FACTOR")
    program = "import sys\nfrom theodolite.nets.from_file import named_in_file\nprint(named_in_file(sys.argv[1]).code)"
    command = [sys.executable, "-c", program, net]
    found = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join([str(project.folder), *sys.path])},
    )
    assert found.stdout.strip() == code(net)
    found = learn(**{**MLP, "net": net, "lr": 1e-2, "steps": 20, "workers": 1, "threads": 1})
    assert (len(found.rows), found.failures) == (2, ())


@each(
    ("imports", "inside"),
    [
        ("import TAG_one", "pass"),
        ("from TAG_one import value as other", "pass"),
        ("from TAG_one import *", "pass"),
        ("if False:\n    import TAG_one", "pass"),
        ("try:\n    import TAG_one\nexcept ImportError:\n    pass", "pass"),
        ("", "import TAG_one"),
        ("import importlib\none = importlib.import_module('TAG_one')", "pass"),
        ("import importlib\none = importlib.import_module('TAG' + '_one')", "pass"),
        ("import importlib\nf = importlib.import_module('TAG' + '_one').f", "pass"),
        ("one = __import__('TAG_one')", "pass"),
        ("import TAG_above", "pass"),
        ("import TAG_pkg", "pass"),
        ("import TAG_pkg.sub", "pass"),
        ("from TAG_pkg.deep import thing", "pass"),
        ("from TAG_space import inner", "pass"),
        ("", "import TAG_space.nested.inner"),
    ],
)
def test_a_module_is_seen_however_it_is_imported(project, imports, inside):
    project.write("{0}_one.py", "value = 1\ndef f(): pass")
    project.write("{0}_above.py", "import TAG_one")
    project.write("{0}_pkg/__init__.py", "from . import sub")
    project.write("{0}_pkg/sub.py", "from .deep import thing")
    project.write("{0}_pkg/deep/__init__.py", "from ..low import thing")
    project.write("{0}_pkg/low.py", "def thing():\n    from TAG_one import value")
    project.write("{0}_space/inner.py", "import TAG_one")  # a namespace package, and one inside it
    project.write("{0}_space/nested/inner.py", "from ..inner import TAG_one")
    net = project.net(imports, inside=inside)
    assert changes(project, net, "{0}_one.py", "value = 2000\ndef f(): pass")
    assert not changes(project, net, "{0}_other.py", "value = 1")


def test_packages_run_before_their_modules(project):
    project.write("{0}_pkg/__init__.py", "")
    project.write("{0}_pkg/sub.py", "")
    assert changes(project, project.net("from TAG_pkg.sub import *"), "{0}_pkg/__init__.py", "import math")


def test_imports_in_a_circle(project):
    project.write("{0}_a.py", "def f():\n    import TAG_b")
    project.write("{0}_b.py", "import TAG_a\nX = 1")
    assert changes(project, project.net("import TAG_b"), "{0}_a.py", "def f():\n    import TAG_b as b")


def test_a_file_that_cannot_be_read_as_python_counts_by_its_bytes(project):
    project.write("{0}_broken.py", "this is not Python")
    net = project.net("", inside="import TAG_broken")
    assert changes(project, net, "{0}_broken.py", "this is no Python at all")


def test_a_module_that_appears_is_seen(project):
    net = project.net("try:\n    import TAG_late\nexcept ImportError:\n    pass")
    assert changes(project, net, "{0}_late.py", "pass")


def test_a_name_of_the_standard_library_that_is_the_users_own_is_followed(project):
    """Python takes a module of the first folder on its path, whatever it is called."""
    sys.modules.pop("this", None)
    try:
        project.write("this.py", "X = 1")
        assert changes(project, project.net("import this"), "this.py", "X = 2000")
    finally:
        sys.modules.pop("this", None)


def test_versions_of_libraries_count_and_their_files_do_not(project, monkeypatch):
    site = project.folder / "lib" / "site-packages"
    library, info = f"lib_{project.tag}", f"lib/site-packages/Lib_{project.tag}_dist-1.dist-info"
    project.write(f"lib/site-packages/{library}/__init__.py", "X = 1")
    project.write(f"{info}/METADATA", f"Name: Lib-{project.tag}-dist\nVersion: 1.0\n")
    project.write(f"{info}/top_level.txt", library)
    monkeypatch.syspath_prepend(site)
    fingerprint._distributions.cache_clear()
    net = project.net(f"import {library}")
    assert not changes(project, net, f"lib/site-packages/{library}/__init__.py", "X = 2000")
    before = code(net)
    for version, same in (("1.0+cpu", True), ("1.1", False)):  # a build is not a version
        project.write(f"{info}/METADATA", f"Name: Lib-{project.tag}-dist\nVersion: {version}\n")
        fingerprint._version.cache_clear()
        assert (code(net) == before) is same
    fingerprint._distributions.cache_clear()


def test_the_version_of_torch_counts(project, monkeypatch):
    net = project.net()
    before, version = code(net), fingerprint._version
    monkeypatch.setattr(fingerprint, "_version", lambda top: "99.0" if top == "torch" else version(top))
    assert code(net) != before


def test_a_certificate_names_the_file_alone(project):
    """Certificates of earlier versions stay valid: theirs is the hash of the file."""
    project.write("{0}_one.py", "X = 1")
    net = project.net("import TAG_one")
    before = load(net, features=3, outputs=1).source
    project.write("{0}_one.py", "X = 2000")
    assert load(net, features=3, outputs=1).source == before


# Classes and functions that are passed from Python


def test_a_class_is_known_by_the_file_of_its_module_and_what_that_imports(project):
    project.write("{0}_one.py", "X = 1")
    file = project.write("{0}_nets.py", NET.format(imports="import TAG_one", scale="TAG_one.X", inside="pass"))
    module = importlib.import_module(f"{project.tag}_nets")
    before = fingerprint.of_object(module.Net)
    assert fingerprint.of_object(module.Net) == before
    file.write_text(file.read_text().replace("tanh", "sigmoid"))
    assert fingerprint.of_object(module.Net) == before  # what runs is what was imported
    importlib.invalidate_caches()
    changed = fingerprint.of_object(importlib.reload(module).Net)
    assert changed != before
    project.write("{0}_one.py", "X = 2000")
    importlib.reload(sys.modules[f"{project.tag}_one"])
    assert fingerprint.of_object(module.Net) not in (before, changed)


def scaled(scale: float, activation: Callable[..., object]) -> type[nn.Module]:
    class Net(nn.Module):
        def __init__(self, features: int, outputs: int) -> None:
            super().__init__()
            self.inner = nn.Linear(features, outputs)

        def forward(self, x):
            return activation(scale * self.inner(x))

    return Net


def inherited(scale: float) -> type[nn.Module]:
    above: Any = scaled(scale, nn.ReLU)

    class Net(above):
        pass

    return Net


def test_what_a_class_holds_of_the_place_it_was_made_in_counts():
    one, same, other = scaled(1.0, nn.ReLU), scaled(1.0, nn.ReLU), scaled(2.0, nn.ReLU)
    assert fingerprint.of_object(one) == fingerprint.of_object(same)
    assert len({fingerprint.of_object(net) for net in (one, other, scaled(1.0, nn.Tanh))}) == 3
    assert [len({fingerprint.of_object(inherited(scale)) for scale in (1.0, other)}) for other in (1.0, 2.0)] == [1, 2]
    builders = [
        lambda features, outputs, scale=scale: scaled(scale, nn.ReLU)(features, outputs) for scale in (1.0, 2.0)
    ]
    assert len({fingerprint.of_object(build) for build in builders}) == 2


def test_what_only_this_process_knows_is_not_taken_for_another():
    modules = [nn.Linear(2, 1), nn.Linear(2, 1)]
    made = [type("Made", (nn.Module,), {}) for _ in range(2)]
    held = [scaled(1.0, nn.ReLU()) for _ in range(2)]
    bound = [partial(scaled, 1.0), partial(scaled, 2.0)]
    found = [fingerprint.of_object(net) for net in (*modules, *made, *held, *bound)]
    assert len(set(found)) == 8
    assert [fingerprint.of_object(net) for net in (*modules, *made, *held, *bound)] == found
    passing = {
        fingerprint.of_object(partial(scaled, float(scale))) for scale in range(9)
    }  # each is gone before the next
    assert len(passing) == 9


SCRIPT = """
import json, sys
import torch
import TAG_one
from torch import nn
from theodolite.nets import fingerprint
WIDTH = {width}
unrelated = {unrelated}

def inner(features):
    return nn.Linear(features, WIDTH)

class Net(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.inner, self.outer = inner(features), nn.Linear(WIDTH, outputs)

    def forward(self, x):
        unrelated = torch.tanh(self.inner(x))
        return {scale} * TAG_one.f(self.outer(unrelated))

print(fingerprint.of_object(Net))
"""


def test_an_object_of_a_script_is_its_text_and_what_that_names(project):
    def said(one: str = "1.0", **changed: str) -> str:
        values = {"width": "4", "unrelated": "object()", "scale": "1.0", **changed}
        project.write("{0}_one.py", f"def f(x): return {one} * x")
        script = project.write("script.py", SCRIPT.format(**values))
        path = {"PYTHONPATH": ":".join([str(project.folder), *sys.path])}
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=path)
        return done.stdout

    first = said()
    assert said(unrelated="7 + 1") == first
    others = [said(width="400"), said(scale="2.00"), said(one="2.00")]
    assert len({first, *others}) == 4


def test_two_classes_of_one_name_are_two_nets_beside_a_task():
    """Sizes of states are kept by name, shape and code."""
    task = make_task("parity", {"bits": 4, "relevant": 2})
    found = [pair(scaled(scale, nn.functional.relu), task).source for scale in (1.0, 2.0)]
    assert len(set(found)) == 2
