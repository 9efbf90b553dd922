"""What a command is doing, how far it is and how long it will take, on stderr: a bar, or lines where it is a log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from theodolite.cli.terminal import plainly, terminal

_SECONDS = 3.0  # of work before a rate is taken for one
_SHARE = 0.01  # of the work, likewise
_EVERY = 10.0  # seconds between lines in a log
_SILENCE = 60.0  # seconds after which a log says that the same still goes on


class Pace:
    """How long the rest takes at the rate measured so far; what was done before the clock began does not count."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: tuple[float, float] | None = None

    def left(self, done: float, total: float | None) -> float | None:
        """Seconds, or None while there is too little to tell."""
        if self._began is None or done < self._began[1]:
            self._began = (self._clock(), done)
        seconds, fresh = self._clock() - self._began[0], done - self._began[1]
        if total and done >= total:
            return 0.0
        if not total or seconds < _SECONDS or fresh < _SHARE * total:
            return None
        return seconds * max(total - done, 0.0) / fresh


class Bar:
    """`step` for shares of one task, `count` for parts of many; `show` is told (done, total, label, seconds left)."""

    def __init__(self, show: Callable[[float, float | None, str, float | None], None]) -> None:
        self._show = show
        self._pace, self._label, self._done = Pace(), "", 0.0

    def step(self, label: str, share: float) -> None:
        if label != self._label:
            self._pace, self._label, self._done = Pace(), label, 0.0
        self._done += share
        total = 1.0 if self._done else None
        self._show(self._done, total, label, self._pace.left(self._done, total))

    def count(self, done: float, total: float, label: str) -> None:
        self._show(done, total, label, self._pace.left(done, total))


@contextmanager
def progress_bar() -> Iterator[Bar]:
    """A bar that is gone at the end; a line now and then with --plain; nothing where stderr is no terminal."""
    console = terminal(stderr=True)
    if plainly():
        log = _Log(console)
        log(0.0, None, "getting ready", None)
        with log.beating():
            yield Bar(log)
        return
    if not console.is_terminal:
        yield Bar(lambda done, total, label, left: None)
        return
    columns = (
        SpinnerColumn(),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with _Lines(*columns, console=console, transient=True) as progress:
        task = progress.add_task("getting ready", total=None, left="estimating")
        yield Bar(_Drawn(progress, task))


class _Lines(Progress):
    """What is going on stands below the bar, and has the whole width."""

    def get_renderables(self) -> Iterator[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        for task in self.tasks:
            yield Text(task.description, no_wrap=True, overflow="ellipsis")


@contextmanager
def catching_up() -> Iterator[Callable[[int, int], None]]:
    """For what is seldom to be done: a bar from the first time it is told how far that is."""
    with ExitStack() as stack:
        bars: list[Bar] = []

        def tell(done: int, total: int) -> None:
            if not bars:
                bars.append(stack.enter_context(progress_bar()))
            bars[0].count(done, total, f"bringing a store of an older version up to date, {done:,} of {total:,} rows")

        yield tell


class _Drawn:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def __call__(self, done: float, total: float | None, label: str, left: float | None) -> None:
        self._progress.update(self._task, description=label, completed=done, total=total, left=spoken(left))


class _Log:
    """A line at the start, another with the first that is known, then at most one every ten seconds, and at least one a
    minute while the same goes on."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock, self._began = console, clock, clock()
        self._last: float | None = None
        self._told = False  # that a share of the work was
        self._heard: tuple[float, float | None, str] = (0.0, None, "")

    def __call__(self, done: float, total: float | None, label: str, left: float | None) -> None:
        self._heard = (done, total, label)
        if self._last is not None and (self._clock() - self._last < _EVERY and (self._told or not total)):
            return
        self._told = bool(total)
        self._print(f"{spoken(left)}: {label}")

    def beat(self) -> None:
        """Nobody has said anything for a while."""
        if self._last is not None and self._clock() - self._last >= _SILENCE:
            self._print(f"still {self._heard[2]}")

    @contextmanager
    def beating(self) -> Iterator[None]:
        ended = threading.Event()

        def beat() -> None:
            with suppress(OSError, ValueError):  # an output that is full or closed: the command itself says so
                while not ended.wait(_EVERY):
                    self.beat()

        thread = threading.Thread(target=beat, name="theodolite-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _print(self, text: str) -> None:
        self._last = self._clock()
        done, total, _ = self._heard
        share = "" if not total else f"{done / total:.0%} "
        self._console.print(f"progress: {share}after {self._last - self._began:.0f} s, {text}", markup=False)


def spoken(left: float | None) -> str:
    """`1:40 left`, no finer than is known."""
    if left is None:
        return "estimating"
    seconds = max(round(left), 0)
    minutes, hours = seconds // 60 % 60, seconds // 3600
    return (f"{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{minutes}:{seconds % 60:02}") + " left"
