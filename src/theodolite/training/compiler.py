"""Functions of tensors, traced once and compiled by torch's inductor; what was compiled is kept on disk.

A function that changes its tensors in place is traced operation by operation, gradients included, whatever Python it is
written in, and becomes one program for exactly these shapes. A file in the cache is named by a hash of what went into
the program, versions included, so that one of another version is never read.
"""

# pyright: reportPrivateImportUsage=false
# `torch._inductor` makes and keeps programs for fixed shapes; only its use through `torch.compile` is public.

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from theodolite.kernels.launch import fusing, tracing
from theodolite.kernels.product import with_products

logger = logging.getLogger(__name__)

_SOURCES = ("kernels", "nets", "tasks", "training")  # folders whose code a compiled step is made of


class CannotCompile(Exception):
    """Why, in words that end a sentence."""


@dataclass(frozen=True)
class Compiled:
    """`run` takes the tensors in the order they were traced in; `seconds` it took to have it, `kept` if it was there
    before."""

    run: Callable[..., Any]
    seconds: float
    kept: bool


def compile_function(
    function: Callable[..., None], tensors: Sequence[Tensor], recipe: Mapping[str, Any] | None = None
) -> Compiled:
    """`function` of these tensors, some of which it changes in place, as a program for their shapes.

    `recipe` says what the function is made of, in plain JSON: with it the program is kept on disk, without it it is
    compiled anew in every process.
    """
    os.environ.setdefault("TORCH_WARM_POOL", "0")  # no processes before there is something to compile
    started = time.perf_counter()
    path = None if recipe is None else _path(recipe, tensors)
    found = None if path is None else _read(path)
    if found is not None:
        return Compiled(found, time.perf_counter() - started, True)
    graph, constants = _traced(function, tensors)
    program = _program(graph, [*tensors, *constants])
    if path is not None and not constants:
        _write(path, program)
    run = (lambda *given: program(*given, *constants)) if constants else program
    return Compiled(run, time.perf_counter() - started, False)


def _program(graph: torch.fx.GraphModule, tensors: list[Any]) -> Any:
    """Where the compiler stumbles over loops that it would reorder (torch 2.11 does, over nodes that it has fused
    already), without reordering any."""
    from torch._inductor import config, standalone_compile

    failures: list[Exception] = []
    ways: list[dict[str, Any]] = [{}, {"loop_ordering_after_fusion": False}]
    for changed in ways:
        try:
            with _processes(tensors[0].device), config.patch(changed):
                return standalone_compile(graph, tensors)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            failures.append(error)
    raise CannotCompile(_reason(failures[0])) from failures[0]


def send_workers_home() -> None:
    """The processes that compiled, if any: a process that ends while they wait leaves warnings behind."""
    if (made := sys.modules.get("torch._inductor.async_compile")) is not None:
        made.shutdown_compile_workers()


def cache_folder() -> Path:
    """`$THEODOLITE_CACHE`, or `theodolite` in the user's cache."""
    chosen = os.environ.get("THEODOLITE_CACHE")
    return Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "theodolite"


def is_kept(recipe: Mapping[str, Any], tensors: Sequence[Tensor]) -> bool:
    """Whether compiling this would take no time."""
    return _path(recipe, tensors).is_file()


def _processes(device: torch.device) -> AbstractContextManager[Any]:
    """Kernels for a GPU are compiled by several processes; for a CPU they are few, and the compiler is another
    process anyway."""
    from torch._inductor import config

    return nullcontext() if device.type == "cuda" else config.patch(compile_threads=1)


def _traced(function: Callable[..., None], tensors: Sequence[Tensor]) -> tuple[torch.fx.GraphModule, list[Tensor]]:
    """The operations, and the tensors among them that were not handed over, which become its last arguments."""
    from torch.fx.experimental.proxy_tensor import make_fx

    def traced(*given: Tensor) -> tuple[()]:
        function(*given)
        return ()

    try:
        with tracing(), fusing():
            graph = make_fx(traced, tracing_mode="fake", _allow_non_fake_inputs=True)(*tensors)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        raise CannotCompile(_reason(error)) from error
    constants = _lifted(graph)
    with fusing():
        return with_products(graph), constants


def _lifted(graph: torch.fx.GraphModule) -> list[Tensor]:
    """Constants as arguments: the compiler may not fold what can change, nor keep it in a file."""
    constants: list[Tensor] = []
    last = [node for node in graph.graph.nodes if node.op == "placeholder"][-1]
    for node in [node for node in graph.graph.nodes if node.op == "get_attr"]:
        value = getattr(graph, node.target)
        with graph.graph.inserting_after(last):
            last = graph.graph.placeholder(f"constant_{len(constants)}")
        last.meta = dict(node.meta)
        node.replace_all_uses_with(last)
        graph.graph.erase_node(node)
        constants.append(value)
    graph.recompile()
    return constants


def _path(recipe: Mapping[str, Any], tensors: Sequence[Tensor]) -> Path:
    matmul = torch.backends.cuda.matmul
    facts = {
        "recipe": recipe,
        "tensors": [[str(t.dtype), str(t.device), list(t.shape), list(t.stride())] for t in tensors],
        "versions": {"torch": torch.__version__, "python": platform.python_version(), "triton": _version("triton")},
        "machine": _machine(tensors[0].device),
        "precision": [matmul.allow_tf32, torch.is_autocast_enabled("cuda"), torch.is_autocast_enabled("cpu")],
        "code": _code(),
    }
    name = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:32]
    return cache_folder() / "steps" / f"{name}.bin"


@cache
def _code() -> str:
    """Of the files a step is made of: a program of other code is another program."""
    found, root = hashlib.sha256(), Path(__file__).parents[1]
    for path in sorted(path for folder in _SOURCES for path in (root / folder).rglob("*.py")):
        found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def _machine(device: torch.device) -> str:
    """Programs for the CPU use its own instructions."""
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)} {torch.cuda.get_device_capability(device)}"
    return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _read(path: Path) -> Callable[..., Any] | None:
    if not path.is_file():
        return None
    if path.stat().st_uid != os.getuid():
        logger.warning("'%s' belongs to another user and is not read: the step is compiled anew", path)
        return None
    try:
        with _processes(torch.device("cpu")):
            return torch._inductor.CompiledArtifact.load(path=str(path), format="binary")
    except Exception as error:
        logger.warning("'%s' cannot be read (%s): the step is compiled anew", path, _reason(error))
        return None


def _write(path: Path, program: Any) -> None:
    """Whole or not at all; without a place to write to, the next run compiles again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=path.parent)
        os.close(handle)
        try:
            program.save(path=name, format="binary")
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        _say_once(
            f"the compiled step cannot be kept in '{path.parent}' ({_reason(error)}): the next run compiles it again; "
            "set THEODOLITE_CACHE to a folder that can be written to"
        )
    except Exception as error:
        _say_once(f"the compiled step is one that torch cannot keep ({_reason(error)}): the next run compiles it again")


@cache
def _say_once(message: str) -> None:
    """A step is compiled for every length, and all of them end alike."""
    logger.warning("%s", message)


def _reason(error: BaseException) -> str:
    """The innermost cause in one line: what it says, and where it was raised."""
    while (inner := error.__cause__ or getattr(error, "inner_exception", None)) is not None:  # the latter: inductor's
        error = inner
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    name = type(error).__name__
    if name == "InvalidCxxCompiler" or isinstance(error, FileNotFoundError):
        return "there is no C++ compiler: install g++"
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{name}{place}: {lines[0][:200]}" if lines else f"{name}{place}"
