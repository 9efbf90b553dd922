"""`theodolite advise`."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from theodolite.cli.groups import Computing, Device, grouped
from theodolite.cli.options import print_json

if TYPE_CHECKING:
    from theodolite.files import OutputFolder


@grouped
def advise(
    output: Computing,
    config: Annotated[Path | None, Argument(help="A Hugging Face config.json, or the folder that holds it.")] = None,
    params: Annotated[
        str | None, Option(help="Choose a shape for this many parameters, embeddings included: 64k, 1.3e9.")
    ] = None,
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
    measure: Annotated[bool, Option("--measure", help="Time both shapes on the device too.")] = False,
    device: Device = "cpu",
) -> None:
    """Judge a model's depth, width and heads before it is trained, or choose them for a budget of parameters."""
    from theodolite.advice.advice import advise as judge
    from theodolite.errors import BadInput
    from theodolite.files import OutputFolder, check_writable, write_text

    if plot is not None:
        from theodolite.cli.views.depth_width_plane import check_suffix

        check_suffix(plot)
        check_writable(plot)
    advice = judge(
        config,
        params=params,
        vocab=vocab,
        modality=modality,
        embedding_rank=embedding_rank,
        context=context,
        measure=measure,
        device=device,
    )
    written: dict[str, str] = {}
    if plot is not None and not advice.judged.shape.speaks:
        raise BadInput(f"{advice.name} has no place in the depth-width plane, since {advice.silent}: leave out --plot")
    if out is not None:
        from theodolite.advice.promise import check_promise

        check_promise(advice)
        text = json_text.dumps(advice.config, indent=2, ensure_ascii=False) + "\n"
        written["config"] = str(_write_config(OutputFolder(out), text))
    if plot is not None:
        from theodolite.cli.views.depth_width_plane import draw_plane

        written["plot"] = str(write_text(plot, draw_plane(advice, html=plot.suffix.lower() == ".html")))
    if output.json:
        print_json({**advice.to_json(), "written": written})
        return
    from rich.console import Console

    from theodolite.cli.views.advise import print_advice

    console = Console(highlight=False)
    print_advice(console, advice)
    for what, path in written.items():
        console.print(f"{what}: {path}", markup=False, soft_wrap=True)


def _write_config(folder: OutputFolder, text: str) -> Path:
    """Never over another configuration, the one that was read among them."""
    from theodolite.errors import BadInput

    target = folder.file("config.json")
    if target.exists() and (not target.is_file() or target.read_text(encoding="utf-8", errors="replace") != text):
        raise BadInput(f"'{target}' is there already and differs from the advised one: choose another --out")
    return folder.write("config.json", text)
