"""`theodolite serve`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

from typer import Option

from theodolite.cli.groups import Computing, grouped
from theodolite.cli.options import print_json
from theodolite.cli.terminal import terminal

_PORT = 8765


@grouped
def serve(
    output: Computing,
    out: Annotated[
        Path, Option("--out", help="Folder below which surveys and runs are shown; nothing outside it is read.")
    ] = Path(),
    port: Annotated[int, Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = _PORT,
    host: Annotated[
        str, Option(help="Address to listen on; only this machine reaches the default. 0.0.0.0 lets others in.")
    ] = "127.0.0.1",
) -> None:
    """A page to play on: surveys and runs as they go on, the advisor, ranks, fixed points, graphs of tables.

    It reads --out and writes nothing. Its address has a token, without which nothing is answered. Ctrl-C ends it.
    """
    from theodolite.serving.serve import serve as begin

    with begin(out, port=port, host=host, wait=False) as page, suppress(KeyboardInterrupt):
        if output.json:
            print_json({"address": page.address, "out": str(page.out), "port": page.port})
        else:
            terminal().print(f"{page.address}\nreads {page.out}; Ctrl-C ends it", markup=False, soft_wrap=True)
        page.wait()
