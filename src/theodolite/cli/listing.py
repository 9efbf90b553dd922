"""`theodolite nets` and `theodolite tasks`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.markup import escape

from theodolite.cli.groups import Printing, grouped
from theodolite.cli.options import print_json
from theodolite.cli.terminal import plainly, tabbed, terminal


@grouped
def nets(output: Printing) -> None:
    """List the registered networks with their arguments."""
    from theodolite.nets import list_nets

    found = list_nets()
    if output.json:
        print_json(found)
        return
    show_nets(found)


@grouped
def tasks(output: Printing) -> None:
    """List the registered tasks with their shapes."""
    from theodolite.tasks import list_tasks

    found = list_tasks()
    if output.json:
        print_json(found)
        return
    show_tasks(found)


def show_nets(found: Sequence[dict[str, Any]]) -> None:
    _show([(n["name"], n["summary"], _net_kind(n), _arguments(n["arguments"])) for n in found])


def show_tasks(found: Sequence[dict[str, Any]]) -> None:
    _show([(t["name"], t["summary"], _task_shape(t), _arguments(t["arguments"])) for t in found])


def _net_kind(net: dict[str, Any]) -> str:
    shape = "tokens of features" if net["kind"] == "sequence" else "a vector"
    return f"reads {shape}; {'polynomial, so exact' if net['polynomial'] else 'not polynomial: mode epsilon'}"


def _arguments(arguments: dict[str, Any]) -> str:
    return ", ".join(name if value is None else f"{name}={value}" for name, value in arguments.items())


def _task_shape(task: dict[str, Any]) -> str:
    entering = f"{task['vocab']} symbols" if task["vocab"] else f"{task['features']} features"
    lengths = f", lengths {task['lengths'][0]}–{task['lengths'][1]}" if task["lengths"] else ""
    return f"{entering}{lengths} → {task['outputs']}"


def _show(entries: Sequence[tuple[str, str, str, str]]) -> None:
    from rich.padding import Padding

    console = terminal()
    if plainly():
        for entry in entries:
            console.print(tabbed(*entry))
        return
    for name, summary, shape, arguments in entries:
        console.print(f"[bold]{name}[/bold]")
        console.print(Padding(escape(summary), (0, 0, 0, 4)))
        console.print(Padding(escape(f"{shape}\n{arguments}"), (0, 0, 0, 4)), style="dim")
