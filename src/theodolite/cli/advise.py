"""`theodolite advise`."""

from __future__ import annotations

import json as json_text
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from theodolite.cli.configurations import Refused, end, of_each
from theodolite.cli.groups import Computing, Device, grouped
from theodolite.cli.options import panel, print_json
from theodolite.cli.progress import progress_bar
from theodolite.cli.resources import ResourceOptions
from theodolite.cli.terminal import terminal
from theodolite.errors import BadInput
from theodolite.loading import loading

if TYPE_CHECKING:
    from theodolite.advice.advice import Advice
    from theodolite.advice.rules import Broken

_devices, _checking = panel("Devices"), panel("Checking")


@grouped
def advise(
    output: Computing,
    having: ResourceOptions,
    config: Annotated[
        list[str] | None,
        Argument(help="A Hugging Face config.json, the folder that holds it, or a cached model's name; or several."),
    ] = None,
    params: Annotated[
        str | None,
        Option(help="Choose a shape for this many parameters, embeddings included: 7B, 1.3e9; of CONFIG's family."),
    ] = None,
    like: Annotated[str | None, Option(help="With --params: of this family, llama, qwen3 or moe.")] = None,
    vocab: Annotated[int | None, Option(help="With --params: size of the vocabulary; 256 for bytes.")] = None,
    modality: Annotated[
        str | None, Option(help="language, image or bytes; the configuration's own, or language.")
    ] = None,
    embedding_rank: Annotated[
        int | None, Option(help="Rank of the input embedding, where it is below the width.")
    ] = None,
    context: Annotated[int | None, Option(help="Tokens of context to compute costs at; up to 2048 by default.")] = None,
    plot: Annotated[Path | None, Option(help="Draw the depth-width plane to this file, .svg or .html.")] = None,
    out: Annotated[Path | None, Option("--out", help="Folder to write the advised config.json into.")] = None,
    export: Annotated[
        str | None, Option(help="With --out: also for a trainer, megatron, torchtitan, nanotron or litgpt.")
    ] = None,
    given: Annotated[bool, Option("--given", help="With --export: the given shape, not the advised one.")] = False,
    tp: Annotated[int, _devices(help="Devices that share each layer: they divide heads and key-value heads.")] = 1,
    pp: Annotated[int, _devices(help="Groups of layers, one after the other: they divide the depth.")] = 1,
    multiple_of: Annotated[
        int, _devices(help="Tile or block of quantisation that sizes on a device are multiples of.")
    ] = 1,
    check: Annotated[bool, _checking("--check", help="Only check rules; exit with 1 if one is broken.")] = False,
    ignore: Annotated[
        list[str] | None, _checking("--ignore", metavar="RULE", help="With --check: leave out a rule; may be repeated.")
    ] = None,
    measure: Annotated[bool, Option("--measure", help="Time both shapes on the device too.")] = False,
    device: Device = "cpu",
) -> None:
    """Judge a model's depth, width and heads before it is trained, or choose them for a budget of parameters."""
    with loading():
        from theodolite.advice.advice import advise as judge
        from theodolite.files import check_writable

    if not measure and (device != "cpu" or output.threads is not None):
        option = f"--threads {output.threads}" if device == "cpu" else f"--device {device}"
        raise BadInput(f"{option} is for timing alone: add --measure, or leave it out")
    names = config or []
    one_only = {"--params": params, "--like": like, "--plot": plot, "--out": out, "--export": export}
    one_only |= {"--vocab": vocab, "--measure": measure or None, **having.by_option()}
    _check_options(names, one_only, check=check, ignore=ignore, export=export, out=out, given=given)
    if check:
        return _check_rules(names, embedding_rank, (tp, pp, multiple_of), ignore or [], json=output.json)
    resources = having.resources()
    if plot is not None:
        from theodolite.advice.plane.drawing import check_suffix

        check_suffix(plot)
        check_writable(plot)
    judge_one = partial(
        judge,
        params=params,
        like=like,
        vocab=vocab,
        modality=modality,
        embedding_rank=embedding_rank,
        context=context,
        tp=tp,
        pp=pp,
        multiple_of=multiple_of,
        measure=measure,
        device=device,
        resources=resources,
    )
    with progress_bar() as bar:
        watched = partial(judge_one, progress=bar.count)
        found: list[Advice | Refused] = (
            of_each(names, watched) if len(names) > 1 else [watched(names[0] if names else None)]
        )
    if len(names) > 1:
        return _show_several(found, json=output.json)
    (advice,) = found
    assert not isinstance(advice, Refused)  # of one alone the error is raised
    written, left_out = _write(advice, names[0] if names else None, plot, out, export, given)
    if output.json:
        return print_json({**advice.to_json(), "written": written, "not_carried_over": list(left_out)})

    from theodolite.cli.views.advise import print_advice

    console = terminal()
    print_advice(console, advice)
    for what, path in written.items():
        console.print(f"{what}: {path}", markup=False, soft_wrap=True)
    for what in left_out:
        console.print(f"not carried over: {what}", markup=False, soft_wrap=True)
    return None


def _check_options(
    names: list[str],
    one_only: dict[str, Any],
    *,
    check: bool,
    ignore: list[str] | None,
    export: str | None,
    out: Path | None,
    given: bool,
) -> None:

    asked = [option for option, value in one_only.items() if value is not None]
    if check and (asked or not names):
        clash = f", without {asked[0]}" if asked else ""
        raise BadInput(
            f"--check goes with configurations{clash}: write for example theodolite advise config.json --check"
        )
    if len(names) > 1 and asked:
        raise BadInput(f"{asked[0]} goes with one configuration, and {len(names)} are given: give one of them")
    if ignore and not check:
        raise BadInput("--ignore goes with --check: add it, or leave out --ignore")
    if given and (export is None or not names or one_only["--params"] is not None):
        raise BadInput("--given goes with --export and a configuration, without --params: it writes that one's shape")
    if export is not None:
        from theodolite.advice.exports.export import check_format

        check_format(export)
        if out is None:
            raise BadInput(f"--export {export} needs a folder: add for example --out advised")


def _show_several(found: list[Advice | Refused], *, json: bool) -> None:
    from theodolite.advice.result import SCHEMA

    if json:
        print_json({"schema": SCHEMA, "configurations": [one.to_json() for one in found]})
    else:
        from theodolite.cli.views.advise_table import print_table

        print_table(terminal(), found)
    end(found)


def _check_rules(
    names: list[str], rank: int | None, devices: tuple[int, int, int], ignore: list[str], *, json: bool
) -> None:
    from dataclasses import asdict

    from theodolite.advice.hardware import Hardware
    from theodolite.advice.hub import load
    from theodolite.advice.reading import read_config
    from theodolite.advice.result import SCHEMA
    from theodolite.advice.rules import broken_rules, check_names

    ignored, hardware = check_names(ignore), Hardware(*devices)

    def check_one(name: str) -> tuple[Broken, ...]:
        content = load(name)
        broken = broken_rules(content, read_config(content, name), hardware, rank)
        return tuple(one for one in broken if one.rule not in ignored)

    found = of_each(names, check_one)
    if json:
        checks = [
            broken.to_json() if isinstance(broken, Refused) else {"name": name, "broken": [asdict(b) for b in broken]}
            for name, broken in zip(names, found, strict=True)
        ]
        print_json({"schema": SCHEMA, "hardware": asdict(hardware), "ignored": sorted(ignored), "checks": checks})
    else:
        from theodolite.cli.views.advise_table import print_refused, print_rules

        console = terminal()
        for name, broken in zip(names, found, strict=True):
            if isinstance(broken, Refused):
                print_refused(console, broken)
            else:
                print_rules(console, name, broken, ignored)
    end(found, finding=any(found))


def _write(
    advice: Advice, name: str | None, plot: Path | None, out: Path | None, export: str | None, given: bool
) -> tuple[dict[str, str], tuple[str, ...]]:
    """What was written where, and what an export leaves out; nothing is written unless all of it can be."""
    from theodolite.files import OutputFolder, write_text

    written: dict[str, str] = {}
    texts: dict[str, tuple[str, str]] = {}
    if plot is not None and not advice.judged.shape.speaks:
        raise BadInput(f"{advice.name} has no place in the depth-width plane, since {advice.silent}: leave out --plot")
    made = None
    if export is not None:
        made = _exported(advice, name, export, given)
    if out is not None and not given:
        from theodolite.advice.promise import check_promise

        check_promise(advice)
        texts["config"] = ("config.json", json_text.dumps(advice.config, indent=2, ensure_ascii=False) + "\n")
    if made is not None:
        texts["export"] = (made.file, made.text)
    if out is not None:
        folder = OutputFolder(out)
        for file, text in texts.values():
            _refuse_another(folder.file(file), text)
        written |= {what: str(folder.write(file, text)) for what, (file, text) in texts.items()}
    if plot is not None:
        from theodolite.advice.plane.drawing import draw_plane

        written["plot"] = str(write_text(plot, draw_plane(advice, html=plot.suffix.lower() == ".html")))
    return written, made.left_out if made else ()


def _exported(advice: Advice, name: str | None, form: str, given: bool) -> Any:
    from theodolite.advice.exports.export import export
    from theodolite.advice.hub import load

    if given:
        assert name is not None
        return export(load(name), advice.judged.shape, form, advice.hardware)
    if advice.advised is None:
        raise BadInput(f"there is no advised shape to export, since {advice.silent}: export the given one with --given")
    return export(advice.config, advice.advised.shape, form, advice.hardware)


def _refuse_another(target: Path, text: str) -> None:
    """Nothing is written over another configuration, the one that was read among them."""

    if target.exists() and (not target.is_file() or target.read_text(encoding="utf-8", errors="replace") != text):
        raise BadInput(f"'{target}' is there already and differs from the advised one: choose another --out")
