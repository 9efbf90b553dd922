"""`theodolite discover`."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from theodolite.cli.groups import Computing, Seed, grouped
from theodolite.cli.options import panel, print_json, provenance
from theodolite.cli.progress import progress_bar
from theodolite.cli.terminal import terminal
from theodolite.errors import BadInput
from theodolite.loading import loading
from theodolite.structure.workers import ready

_table, _box = panel("Tables"), panel("Black boxes")
_MOST_VARIABLES = 1_000  # every pair of them is looked at


@grouped
def discover(
    output: Computing,
    data: Annotated[str, Argument(help="A table (.csv, .tsv, .parquet) or file.py:function, a black box.")],
    targets: Annotated[list[str] | None, _table("--target", help="The column to explain by the others.")] = None,
    drop: Annotated[list[str] | None, _table(metavar="NAME", help="Leave a column out; may be repeated.")] = None,
    category: Annotated[
        list[str] | None,
        _table(metavar="NAME", help="A column whose numbers are names, as codes are; may be repeated."),
    ] = None,
    no_header: Annotated[bool, _table("--no-header", help="The file has no names; they become x1, x2, …")] = False,
    ranges: Annotated[
        list[str] | None,
        _box(
            "--range",
            metavar="[NAME=]LOW:HIGH",
            help="Where a variable lives, such as x1=0:1; without a name, all of them. May be repeated.",
        ),
    ] = None,
    variables: Annotated[str | None, _box(metavar="COUNT|NAME,…", help="How many variables, or their names.")] = None,
    graph_only: Annotated[bool, _box("--graph-only", help="Find the graph and fit no network to it.")] = False,
    rows: Annotated[int | None, Option(min=1, help="Use so many rows, drawn at random; points of a black box.")] = None,
    effort: Annotated[
        str, Option(help="quick, standard or thorough fits; auto is quick below 250 rows, else standard.")
    ] = "auto",
    seconds: Annotated[
        float | None, Option(min=1.0, help="End fitting about so long after the start, however far it is.")
    ] = None,
    boosting: Annotated[
        bool, Option("--boosting/--no-boosting", help="Measure gradient boosting beside the networks.")
    ] = True,
    process: Annotated[
        bool, Option("--process/--no-process", help="Let a Gaussian process predict too, which keeps training rows.")
    ] = True,
    additive: Annotated[
        bool, Option("--additive", help="Measure an additive model (EBM) too; needs interpret-core.")
    ] = False,
    resamples: Annotated[
        int, Option(min=0, max=1000, help="With --out: look again in so many halves of the rows.")
    ] = 0,
    out: Annotated[
        Path | None, Option("--out", help="Folder for the graph, its drawing, the network and a report.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Find which variables enter which constituent function, and a network of that shape.

    From a table of measurements, or from a function that can be asked. Abstains where rows held out do not prefer the
    graph to a dense network.
    """
    if Path(data).is_file():
        ready(output.threads)  # they load while this process does
    with loading():
        from theodolite.structure.discover import discover as find
        from theodolite.structure.explain.explanation import explain
        from theodolite.structure.saving import check_folder, save

    target = None if not targets else targets[0]
    if targets is not None and len(targets) > 1:
        raise BadInput(
            f"--target is given {len(targets)} times: one column is explained at a time, so ask once for each, and "
            f"leave out the others with --drop {shlex.quote(targets[1])}"
        )
    if resamples and out is None:
        raise BadInput("--resamples goes into the report: give --out, a folder for it")
    if seconds is not None and math.isnan(seconds):
        raise BadInput("--seconds nan is no time: give a number of seconds, such as 60")
    if out is not None:
        check_folder(out)
    # what a black box prints must not stand before the JSON document
    with progress_bar() as bar, redirect_stdout(sys.stderr):
        found = find(
            data,
            target,
            ranges=parse_ranges(ranges),
            variables=_variables(variables),
            rows=rows,
            seed=seed,
            effort=effort,
            seconds=seconds,
            boosting=boosting,
            process=process,
            additive=additive,
            fit=not graph_only,
            drop=drop or (),
            categories=category or (),
            header=not no_header,
            progress=bar.count,
        )
        if out is not None and found.model is not None:
            found = replace(found, explanation=explain(found, resamples=resamples, progress=bar.count))
    files: dict[str, str] = {}
    if out is not None:
        from theodolite.cli.views.discover import discovery_page
        from theodolite.report.svg.graph import draw_graph

        options = {
            "--target": target,
            "--drop": drop,
            "--category": category,
            "--no-header": no_header,
            "--range": ranges,
            "--variables": variables,
            "--graph-only": graph_only,
            "--rows": rows,
            "--effort": None if effort == "auto" else effort,
            "--seconds": seconds,
            "--no-boosting": not boosting,
            "--no-process": not process,
            "--additive": additive,
            "--resamples": resamples or None,
            "--seed": seed,
            "--out": out,
        }
        written = save(
            found,
            out,
            {
                "graph.svg": draw_graph(found.graph, found.confidence or None),
                "report.html": discovery_page(found, _command(data, options), provenance("cpu")),
            },
        )
        files = {path.name: str(path) for path in written}
    if output.json:
        from theodolite.measurement import finite

        print_json({**finite(found.to_json()), "files": files})
        return

    from theodolite.cli.views.discover import print_discovery

    console = terminal()
    print_discovery(console, found)
    for path in files.values():
        console.print(path, style="dim", markup=False, soft_wrap=True)


def parse_ranges(texts: Sequence[str] | None) -> Any:
    """`LOW:HIGH` for all variables, or `NAME=LOW:HIGH` for each; None without any."""
    named: dict[str, tuple[float, float]] = {}
    for text in texts or ():
        name, _, span = text.rpartition("=")
        try:
            low, high = (float(end) for end in span.split(":"))
        except ValueError:
            raise BadInput(f"--range '{text}' is not [NAME=]LOW:HIGH: write for example --range x1=0:1") from None
        if name.strip() in named:
            raise BadInput(f"--range is given twice for '{name.strip() or 'all variables'}': give it once")
        named[name.strip()] = (low, high)
    if "" in named and len(named) > 1:
        raise BadInput("--range is given for all variables and for single ones: give a name with each, or one for all")
    return named.get("", named) if named else None


def _variables(text: str | None) -> int | list[str] | None:
    if text is None:
        return None
    try:
        count = int(text)
    except ValueError:
        pass
    else:
        if not 0 < count <= _MOST_VARIABLES:
            raise BadInput(
                f"--variables {count} cannot be searched: give a count from 1 to {_MOST_VARIABLES:,}, or names"
            )
        return count
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise BadInput(f"--variables '{text}' is neither a count nor names: write for example 8, or a,b,c")
    return names


def _command(data: str, options: Mapping[str, Any]) -> str:
    """What makes the same page again."""
    words = ["theodolite", "discover", data]
    for name, value in options.items():
        if value is True:
            words.append(name)
        elif value is not None and value is not False:
            words += [word for one in (value if isinstance(value, list) else [value]) for word in (name, f"{one}")]
    return shlex.join(words)
