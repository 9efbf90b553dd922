"""`theodolite fixed-points`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from theodolite.cli.groups import Computing, Device, Seed, grouped
from theodolite.cli.options import labelled, numbers, panel, parse_arguments, print_json
from theodolite.cli.progress import progress_bar
from theodolite.cli.terminal import terminal
from theodolite.loading import loading

if TYPE_CHECKING:
    from theodolite.instruments.fixed_points.fixed_points import FixedPoints

_sampling = panel("Sampling")


@grouped
def fixed_points(
    output: Computing,
    map: Annotated[
        str,
        Argument(
            help="file.py:Name, a function of z (or of z and x) or an nn.Module; or logistic, tent, henon, rotation, "
            "newton, linear, tanh."
        ),
    ],
    size: Annotated[int | None, Option(min=1, help="Numbers in z; a named map knows its own.")] = None,
    x: Annotated[str | None, Option(help="Numbers handed to the map as x: 0.5,1,−2.")] = None,
    arg: Annotated[
        list[str] | None, Option("--arg", metavar="KEY=VALUE", help="An argument of the map; may be repeated.")
    ] = None,
    within: Annotated[str | None, Option(help="Starts are drawn from this range in every entry: -1,1.")] = None,
    starts: Annotated[int, _sampling(min=2, help="How many starts.")] = 32,
    steps: Annotated[int, _sampling(min=1, help="Applications of the map.")] = 2000,
    tolerance: Annotated[float, _sampling(help="A change below this, relative to 1 + |z|, is none.")] = 1e-9,
    basin: Annotated[
        Path | None, Option(metavar="FILE", help="Draw which start ends where, over two entries of z, as .svg.")
    ] = None,
    seed: Seed = 0,
    device: Device = "cpu",
) -> None:
    """What iterating a map does: it converges, repeats, is chaotic or diverges, and how fast."""
    with loading():
        import torch

        from theodolite.errors import BadInput
        from theodolite.files import check_writable, write_text
        from theodolite.instruments.fixed_points import fixed_points as instrument

    if basin is not None:
        if basin.suffix.lower() != ".svg":
            raise BadInput(f"the basin picture '{basin}' is drawn as SVG: give a file that ends in .svg")
        check_writable(basin)
    ends = None if within is None else tuple(numbers("--within", within, "0,1"))
    if ends is not None and len(ends) != 2:
        raise BadInput(f"--within '{within}' is no range: write two numbers, as in --within=-1,1")
    given = None if x is None else torch.tensor(numbers("--x", x, "0.5,1"), dtype=torch.float64)
    options: dict[str, Any] = {"size": size, "within": ends, "tolerance": tolerance, "device": device}
    options |= parse_arguments(arg)
    with progress_bar() as bar:
        found = instrument.fixed_points(map, given, starts=starts, steps=steps, seed=seed, progress=bar.step, **options)
    document = {"map": map, **found.to_json()}
    if basin is not None:
        from theodolite.report.svg.basin import draw_basin

        plane = instrument.basin(map, given, steps=min(steps, 500), **options)
        labels = plane.label[:1] if found.size == 1 else plane.label
        write_text(basin, draw_basin(labels, plane.names, plane.within, f"Where starts of {map} end"))
        document["basin"] = str(basin)
    if output.json:
        print_json(document)
    else:
        show(found, map, basin)


def show(found: FixedPoints, name: str = "the map", basin: Path | None = None) -> None:
    grid = labelled()
    grid.add_row("map", f"{name} ({found.size} {'number' if found.size == 1 else 'numbers'})")
    said = f"period {found.period}" if found.outcome == "period" else found.outcome
    shares = ", ".join(f"{share:.0%} {what}" for what, share in found.shares.items())
    grid.add_row("outcome", f"[bold]{said}[/bold]  ({shares} of {found.starts} starts)")
    if found.lyapunov is not None:
        low, high = found.interval or (found.lyapunov, found.lyapunov)
        grid.add_row("Lyapunov exponent", f"{found.lyapunov:.4f} per step  ({low:.4f} to {high:.4f} over starts)")
    if found.spectral_radius is not None:
        grid.add_row("spectral radius", f"{found.spectral_radius:.4g}" + ("" if found.period == 1 else " per cycle"))
    if found.steps_to_tolerance is not None:
        grid.add_row("steps", f"{found.steps_to_tolerance:.0f} to {found.tolerance:g}")
    for attractor in found.attractors[:4]:
        grid.add_row("ends at", f"{attractor.kind} {attractor.place}, {attractor.share:.0%} of starts")
    if len(found.attractors) > 4:
        grid.add_row("", f"and {len(found.attractors) - 4} more")
    grid.add_row("time", f"{found.seconds:.2f} s on {found.provenance.device}")
    if basin is not None:
        grid.add_row("basin", str(basin))
    terminal().print(grid)
