"""`theodolite rank`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from theodolite.cli.groups import Computing, Device, Explain, Seed, Shape, grouped
from theodolite.cli.options import labelled, panel, print_explained, print_json
from theodolite.cli.progress import progress_bar
from theodolite.cli.terminal import terminal
from theodolite.loading import loading

if TYPE_CHECKING:
    from theodolite.instruments.rank.result import RankResult

_shape, _sampling = panel("Shape of the net"), panel("Sampling")


_SCALES = {"size": "root mean square", "spread": "standard deviation"}


@grouped
def rank(
    shape: Shape,
    output: Computing,
    net: Annotated[str, Argument(help="A built-in net (see 'theodolite nets') or file.py:Name.")],
    mode: Annotated[str, Option(help="exact (polynomial nets), epsilon (any net) or grid (templates).")] = "exact",
    partition: Annotated[
        str, Option(help="left-right, interleaved, or two lists of places from 0: 0,1|2,3.")
    ] = "left-right",
    tokens: Annotated[int | None, _shape(help="Length of the input.")] = None,
    features: Annotated[int | None, _shape(help="Numbers per token, or in all.")] = None,
    attention_width: Annotated[int | None, _shape(help="Width per head.")] = None,
    embedding_rank: Annotated[int | None, _shape(help="Rank of the map from features to width.")] = None,
    degree: Annotated[int | None, _shape(help="Degree of a block.")] = None,
    token: Annotated[int | None, Option(help="Token whose output is read; the last one otherwise.")] = None,
    entry: Annotated[int, Option(help="Output entry that is read.")] = 0,
    epsilon: Annotated[float | None, Option(help="Relative error of mode epsilon; 0.01 unless given.")] = None,
    templates: Annotated[int | None, Option(help="Template vectors of mode grid; 2 unless given.")] = None,
    points: Annotated[int | None, _sampling(help="A fixed number of points per side.")] = None,
    max_points: Annotated[int | None, _sampling(help="Stop growing here, with a lower bound only.")] = None,
    repeats: Annotated[int | None, _sampling(help="Fresh primes, weights and points; 3 unless given.")] = None,
    prime: Annotated[int | None, _sampling(help="Use this prime.")] = None,
    weights: Annotated[
        str | None, _sampling(help="drawn (generic), own: the net as it is built, as in epsilon; or a file of weights.")
    ] = None,
    inputs: Annotated[str | None, _sampling(help="normal, uniform or signs, in mode epsilon.")] = None,
    dtype: Annotated[str | None, _sampling(help="float64 or float32, in mode epsilon.")] = None,
    relative_to: Annotated[
        str | None, Option("--relative-to", help="Epsilon mode: errors relative to the output's size or spread.")
    ] = None,
    certificate: Annotated[
        Path | None, Option(metavar="FILE", help="Write a certificate that 'theodolite verify' checks.")
    ] = None,
    explain: Explain = False,
    seed: Seed = 0,
    device: Device = "cpu",
) -> None:
    """Separation rank of a network: how strongly it ties two groups of its inputs together.

    Exact for polynomial networks, over a finite field, beside the bounds that theory proves.
    """
    with loading():
        from theodolite.files import check_writable, write_text
        from theodolite.instruments.rank.separation import separation_rank
        from theodolite.measurement import canonical

    if certificate is not None:
        check_writable(certificate)
    arguments = shape.arguments(
        tokens=tokens,
        features=features,
        attention_width=attention_width,
        embedding_rank=embedding_rank,
        degree=degree,
    )
    print_explained([net], arguments, explain)
    options: dict[str, Any] = {"mode": mode, "weights": weights, "inputs": inputs, "dtype": dtype}
    with progress_bar() as bar:
        result = separation_rank(
            net,
            partition=partition,
            epsilon=epsilon,
            templates=templates,
            token=token,
            entry=entry,
            points=points,
            max_points=max_points,
            repeats=repeats,
            prime=prime,
            certificate=certificate is not None,
            seed=seed,
            device=device,
            progress=bar.step,
            **{**options, "relative_to": relative_to, **arguments},
        )
    if certificate is not None:
        write_text(certificate, canonical(result.certificate) + "\n")
    if output.json:
        print_json(result.to_json())
    else:
        show(result, certificate)


def show(result: RankResult, certificate: Path | None = None) -> None:
    from theodolite.report.numbers import format_value

    grid = labelled()
    shape = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in result.shape.items())
    grid.add_row("net", f"{result.net} ({shape})")
    if result.source is not None and result.mode != "epsilon":
        grid.add_row("file's SHA-256", result.source)
    grid.add_row("partition", result.partition)
    for label, value in _lines(result, format_value):
        grid.add_row(label, value)
    grid.add_row("time", f"{result.seconds:.2f} s on {result.provenance.device}")
    if certificate is not None:
        grid.add_row("certificate", str(certificate))
    terminal().print(grid)


def _lines(result: RankResult, show: Any) -> list[tuple[str, str]]:
    if result.mode == "epsilon":
        d = result.details
        low, high = d["interval"]
        first, last = d["d1_interval"]
        rank = f"[bold]{result.rank}[/bold]  (between {low} in the sample and {high} held out)"
        reached = f"{d['held_out_error']:.2e} at rank {result.rank}"
        if not d["resolved"]:
            rank = f"[bold]≥ about {low}[/bold]  (in the sample; no upper estimate from {d['points']} points)"
            reached = f"{d['held_out_error']:.2e} at best"
        return [
            ("ε-rank", rank),
            ("ε", f"{d['epsilon']:g} of the output's {_SCALES[d['relative_to']]}, {d['resamples']} resamples"),
            ("by mean error", f"between {first} and {'?' if last is None else last}"),
            ("effective rank", f"{d['effective_rank']:.3g}"),
            ("held-out error", reached),
            ("sampling", f"{d['points']} points a side, {d['inputs']} inputs, {d.get('precision') or d['dtype']}"),
        ]
    if result.saturated:
        claim = "proven: equal to the cap"
    elif result.exact:
        doubt = result.failure_probability or 0.0
        chance = f"at most {doubt:.0e}" if doubt > 1e-300 else "below 1e-300"
        missing = [word for word in ("points", "weights", "primes") if word not in result.covers]
        counted = f"counting {' and '.join(result.covers)}" + (f", not {' and '.join(missing)}" if missing else "")
        claim = f"measured: {len(result.ranks)} repeats agree, chance of error {chance}, {counted}"
    else:
        claim = "a lower bound only"
    bounds = result.bounds
    lower, upper = (show(bounds[side]) for side in ("lower", "upper"))
    theory = bounds["reason"]
    if bounds["upper"] is not None and (bounds["lower"] or 0) <= 1:
        theory = f"rank ≤ {upper} ({bounds['reason']}; no lower bound)"
    elif bounds["upper"] is not None:
        theory = f"{lower} ≤ rank ≤ {upper} ({bounds['reason']})"
    elif (bounds["lower"] or 0) > 1:
        theory = f"{lower} ≤ rank ({bounds['reason']})"
    return [
        ("separation rank", f"[bold]{'' if result.exact else '≥ '}{result.rank:,}[/bold]  ({claim})"),
        ("cap", "none known" if result.cap is None else f"{show(result.cap)}, for all weights"),
        ("theory", theory),
        ("degree", "unknown" if result.degree is None else f"{result.degree:,}"),
        ("points", f"{result.points:,} a side, primes {', '.join(map(str, result.primes))}"),
    ]
